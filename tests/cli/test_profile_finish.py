"""What is checked before a profiled program starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.cli.profile_finish import prepare
from omb_py.core.errors import OmbError
from omb_py.tracing.records.layout import SUFFIX, path_in
from tests.helpers.refusals import assert_names


@pytest.mark.parametrize(
    ("folder", "timeline", "words"),
    [
        ("run", "t.json", "run profile of another run"),
        ("file", "t.json", "--folder file is a file"),
        ("file/new", "t.json", "cannot write file/new: Not a directory"),
        ("/proc/new", "t.json", "cannot write /proc/new"),
        ("new", "folder.json", "--timeline folder.json is a folder"),
        ("new", "file/t.json", "cannot write file/t.json: Not a directory"),
        ("new", "/proc/new/t.json", "cannot write /proc/new/t.json"),
    ],
)
def test_places_that_cannot_be_written_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, timeline: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("folder.json").mkdir()
    Path("run").mkdir()
    record = Path(path_in("run", 0))
    record.touch()
    with pytest.raises(OmbError) as raised:
        prepare(folder, (timeline,), force=False)
    assert_names(raised.value, words)
    assert not raised.value.shared
    assert record.exists()


def test_old_profile_replaced_if_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(f"rank-000000{SUFFIX}").touch()
    Path("notes.txt").touch()
    with pytest.raises(OmbError):
        prepare(".", ("notes.txt/t.json",), force=True)
    assert len(list(Path().iterdir())) == 2
    prepare(".", ("new/t.json", "t.json.gz"), force=True)
    assert sorted(map(str, Path().iterdir())) == ["new", "notes.txt"]
