"""Source files, modules and functions that documents name exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests import ROOT
from tests.docs.pages import FENCE, pages
from tests.docs.test_extending import EXAMPLES

SOURCE = re.compile(r"(?<![\w./~<-])((?:[\w-]+/)+[\w-]+\.(?:py|c))\b")
PLACES = (ROOT, ROOT / "omb_py")
"""Where the names of source files begin."""

PAGES = pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))


def missing(text: str) -> list[str]:
    """The names of files below a folder of the project or the package that are not there."""
    found = []
    for name in SOURCE.findall(text):
        there = [place for place in PLACES if (place / name.partition("/")[0]).is_dir()]
        if there and name not in EXAMPLES and not any((place / name).exists() for place in there):
            found.append(name)
    return found


def unknown(text: str) -> Iterator[str]:
    """Names of omb_py in Python code that no module has."""
    tree = ast.parse(text)
    modules: dict[str, object] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("omb_py"):
            for alias in node.names:
                try:
                    found = getattr(import_module(str(node.module)), alias.name, None)
                    found = found or import_module(f"{node.module}.{alias.name}")
                except ImportError:
                    yield f"{node.module}.{alias.name}"
                else:
                    modules[alias.asname or alias.name] = found
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id)
            if module is not None and not hasattr(module, node.attr):
                yield f"{node.value.id}.{node.attr}"


@PAGES
def test_source_files_that_a_page_names_exist(page: Path) -> None:
    assert missing(page.read_text()) == []


@PAGES
def test_names_of_omb_py_in_python_examples_exist(page: Path) -> None:
    blocks = [block for block in FENCE.finditer(page.read_text()) if block["language"] == "python"]
    assert [name for block in blocks for name in unknown(block["text"])] == []


def test_a_name_that_is_not_there_is_found() -> None:
    text = "`measure/nowhere.py:23`, `omb_py/cli/show.py`, my/own.py, tests/nothing/test_it.py"
    assert missing(text) == ["measure/nowhere.py", "tests/nothing/test_it.py"]
    code = "from omb_py.tracing.timeline import assembly as s, nothing\ns.chosen(1)\ns.select(1)"
    assert list(unknown(code)) == ["omb_py.tracing.timeline.nothing", "s.chosen"]
