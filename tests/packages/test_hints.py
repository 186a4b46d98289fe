"""Hints: how to install an extra of this project, and nothing that a wheel does not have."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from omb_py.core import DISTRIBUTION
from omb_py.core.errors import installing
from tests import ROOT
from tests.packages import project

OF_A_STRANGER = re.compile(r"omb-py\[|\b(?:pip|uv tool|pipx) install\b[^`\n#]*[ '\"]omb-py\b")
HINT = re.compile(r"\b(?:installing|needing)\(\"(\w+)\"\)")
FOLDERS = ("omb_py", "docs", "contrib", "configs", "jobs", "tests", "perf", ".ci", ".github")


def texts() -> dict[str, str]:
    """Files in which a hint can be, by name."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    found += [path for path in ROOT.iterdir() if path.is_file()]
    kinds = (".py", ".md", ".toml", ".yaml", ".def", ".sh", ".ipynb", ".txt", ".cff", "")
    return {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8", errors="replace")
        for path in found
        if path.suffix in kinds and path != Path(__file__)
    }


@pytest.mark.slow
def test_no_text_installs_the_stranger_on_pypi() -> None:
    assert [name for name, text in texts().items() if OF_A_STRANGER.search(text)] == []


def test_hints_name_extras_of_the_project() -> None:
    named = {extra for text in texts().values() for extra in HINT.findall(text)}
    assert len(named) > 5
    assert named <= set(project()["optional-dependencies"])
    assert project()["name"] == DISTRIBUTION


def printed(tree: ast.Module, docstrings: bool) -> list[str]:
    """Return the texts of a module that a program can print: with docstrings if they are help."""
    of_source = {
        id(one.value)
        for node in ast.walk(tree)
        if not (docstrings and isinstance(node, ast.FunctionDef))
        for one in ast.iter_child_nodes(node)
        if isinstance(one, ast.Expr)
    }
    constants = (one for one in ast.walk(tree) if isinstance(one, ast.Constant))
    return [str(one.value) for one in constants if id(one) not in of_source]


@pytest.mark.long
def test_messages_name_no_document_that_a_wheel_lacks() -> None:
    found = []
    for path in (ROOT / "omb_py").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        shown = printed(tree, path.parent.name == "cli" or path.name == "api.py")
        found += [(path.name, text) for text in shown if re.search(r"docs/|constraints\.txt", text)]
    assert found == []


def test_hint_in_a_checkout_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert installing("apps") == "pip install -e '.[apps]'"
    monkeypatch.chdir(tmp_path)
    assert installing("apps") == f"pip install -e '{ROOT}[apps]'"


def test_hint_in_a_removed_folder_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert installing("apps") == f"pip install -e '{ROOT}[apps]'"


def test_hint_of_a_wheel_names_the_distribution(tmp_path: Path) -> None:
    (tmp_path / "omb_py").symlink_to(ROOT / "omb_py")
    code = "from omb_py.core.errors import installing; print(installing('apps'))"
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said == f"pip install '{DISTRIBUTION}[apps]'\n"
