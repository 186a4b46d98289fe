"""What is checked before a profiled program starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.cli.profile_finish import prepare
from omb_py.core.errors import OmbError
from omb_py.tracing.records.layout import SUFFIX, path_in
from tests.helpers.refusals import assert_names


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("run", "run profile of another run"),
        ("table", "table profile of another run"),
        ("file", "--folder file is a file"),
        ("file/new", "cannot write file/new: Not a directory"),
        ("/proc/new", "cannot write /proc/new: with --folder"),
    ],
)
def test_places_that_cannot_be_written_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("run").mkdir()
    Path("table").mkdir()
    record = Path(path_in("run", 0))
    record.touch()
    Path("table/profile.csv").touch()
    with pytest.raises(OmbError) as raised:
        prepare(folder, force=False)
    assert_names(raised.value, words)
    assert record.exists()


def test_old_profile_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (f"rank-000000{SUFFIX}", "profile.txt", "traffic-000000.json", "profile-notes.txt"):
        Path(name).touch()
    prepare(".", force=True)
    assert sorted(map(str, Path().iterdir())) == ["profile-notes.txt"]
