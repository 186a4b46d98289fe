"""Each sentence of docs/troubleshooting.md is one that the program can print."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests import ROOT
from tests.docs.pages import DOCS

ROW = re.compile(r"^\| `([^`]+)` \|[^|]+\|[^|]+\|$", re.MULTILINE)
SENTENCES = ROW.findall((DOCS / "troubleshooting.md").read_text(encoding="utf-8"))
GAP = "…"


@cache
def printable() -> tuple[str, ...]:
    """The strings of the package, with `GAP` for each value that is formatted into them."""
    found: list[str] = []
    for path in (ROOT / "omb_py").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = (
                    str(part.value) if isinstance(part, ast.Constant) else GAP
                    for part in node.values
                )
                found.append("".join(parts))
    return tuple(found)


def can_be_printed(sentence: str) -> bool:
    """Whether one string of the package has the constant parts of a sentence, in their order."""
    parts = [part for part in re.split(rf"\s?{GAP}\s?", sentence) if len(part) > 1]
    pattern = re.compile(".*?".join(map(re.escape, parts)), re.DOTALL)
    return any(pattern.search(text) for text in printable())


def test_each_sentence_is_explained_once() -> None:
    assert len(set(SENTENCES)) == len(SENTENCES) == 21


@pytest.mark.slow
@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_is_one_of_the_program(sentence: str) -> None:
    assert can_be_printed(sentence)


def test_a_sentence_that_nothing_prints_is_found() -> None:
    assert not can_be_printed("the flux capacitor of … is empty: …")
