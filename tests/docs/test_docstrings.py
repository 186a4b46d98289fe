"""Examples in docstrings give what they show."""

from __future__ import annotations

import doctest
import re

import pytest

from tests import ROOT

PROMPT = re.compile(r"^ *>>> ", re.MULTILINE)


def modules_with_examples() -> list[str]:
    """The modules of the package whose source has a prompt of Python."""
    sources = sorted((ROOT / "omb_py").rglob("*.py"))
    found = [path for path in sources if PROMPT.search(path.read_text(encoding="utf-8"))]
    names = [path.relative_to(ROOT).with_suffix("").parts for path in found]
    return [".".join(name).removesuffix(".__init__") for name in names]


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_of_a_module_give_what_they_show(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)  # examples read files of the repository
    found = doctest.testmod(pytest.importorskip(name))  # some need packages that are optional
    assert found.attempted > 0
    assert found.failed == 0
