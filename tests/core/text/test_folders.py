"""Folders are made with those that they lie in."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.core.text.files import make_folder
from tests.helpers.refusals import refuses


@pytest.mark.parametrize("name", ["new", "new/", "./new", "there", "", "new/est/of/all"])
def test_folder_is_made_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    make_folder(name)
    make_folder(name)
    assert Path(name).is_dir()


@pytest.mark.parametrize(
    ("name", "words"),
    [("taken", "Not a directory"), ("taken/below", "Not a directory")],
)
def test_impossible_folder_refused(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "taken").touch()
    with refuses(OSError, words):
        make_folder(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
