"""docs/python.md has the public names, and no others."""

from __future__ import annotations

import ast
import importlib
import re

import omb_py
from tests import ROOT
from tests.docs.pages import DOCS

BLOCK = re.compile(r"^::: (\S+)\n((?: {4,}.*\n)*)", re.MULTILINE)
TERMS = ("omb_py.benchmarks", "omb_py.buffers", "omb_py.bindings", "omb_py.apps")
MEMBERS = re.compile(r"members: \[(.*)\]")


def blocks() -> dict[str, list[str]]:
    """Return what the page documents, a module or a name of one, and the members it chooses."""
    text = (DOCS / "python.md").read_text(encoding="utf-8")
    chosen = {name: MEMBERS.search(options) for name, options in BLOCK.findall(text)}
    return {name: found[1].split(", ") if found else [] for name, found in chosen.items()}


def test_everything_that_omb_py_exports_is_documented() -> None:
    documented = {name for name in blocks() if name.count(".") == 1}
    assert documented - {*TERMS} == {f"omb_py.{name}" for name in omb_py.API if name != "OmbError"}


def test_what_is_documented_exists() -> None:
    for name, members in blocks().items():
        try:
            found = importlib.import_module(name)
        except ModuleNotFoundError:
            module, _, last = name.rpartition(".")
            found = getattr(importlib.import_module(module), last)
        missing = [member for member in members if not hasattr(found, member)]
        assert missing == [], name


def test_terms_that_plug_ins_import_are_documented() -> None:
    documented = blocks()
    for path in (ROOT / "tests/plugin").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in TERMS:
                assert {one.name for one in node.names} <= {*documented[node.module]}
