"""A folder is made where its parent exists, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.core.text.files import make_folder
from tests.helpers.refusals import refuses


@pytest.mark.parametrize("name", ["new", "new/", "./new", "there", ""])
def test_a_folder_is_made_in_one_that_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    make_folder(name)
    make_folder(name)
    assert Path(name).is_dir()


def test_a_missing_parent_is_named_and_not_made(tmp_path: Path) -> None:
    with refuses(OSError, "no folder reslts: make"):
        make_folder(tmp_path / "reslts" / "today")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    for name in ("taken", "taken/below"):
        with pytest.raises(NotADirectoryError):
            make_folder(tmp_path / name)
