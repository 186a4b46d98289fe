"""``omb-py timeline``: a file for a viewer, and what has to be known about it on stderr."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from omb_py.core.errors import OmbError
from omb_py.tracing.timeline import assembly, json_trace
from tests.conftest import Run, succeeded
from tests.helpers.refusals import assert_names, assert_refused, refuses
from tests.tracing.made_records import MadeRecord
from tests.tracing.timeline.rules import of_json


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of three ranks; rank 0 sends to the others, one of which does not receive."""
    found = tmp_path / "run"
    found.mkdir()
    records = [MadeRecord(found, rank, 3) for rank in range(3)]
    for rank in (1, 2):
        records[0].call("MPI_Send", 1000 * rank, 1000 * rank + 500, peer=rank, sequence=1)
    records[1].call("MPI_Recv", 500, 2000, peer=0, sequence=1)
    for record in records:
        record.finish(4000)
    return found


def test_json_is_written_into_the_folder_by_default(in_process: Run, folder: Path) -> None:
    done = in_process("timeline", "run")
    assert (done.code, done.out) == (0, "run/timeline.json: 3 ranks, 9 slices, 1 arrow, 0.0 MB\n")
    (note,) = done.sentences
    assert_names(note, "note: 1 send without an arrow: receive")
    assert len(of_json((folder / "timeline.json").read_text()).slices) == 9
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", *[".record"] * 3]


def test_the_name_says_the_kind_of_file(in_process: Run, folder: Path) -> None:
    for name in ("a.json", "new/b.json.gz"):
        assert in_process("timeline", "run", "-o", name).code == 0
    parent = folder.parent
    plain = (parent / "a.json").read_bytes()
    assert gzip.decompress((parent / "new/b.json.gz").read_bytes()) == plain
    refused = in_process("timeline", "run", "-o", "d.txt")
    assert_refused(refused, 2, "written as .json or .json.gz")


@pytest.mark.usefixtures("folder")
def test_a_file_that_is_there_is_kept_without_force(in_process: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("my notes")
    refused = in_process("timeline", "run", "-o", "mine.json")
    assert_refused(refused, 2, "overwrite it with --force")
    assert (tmp_path / "mine.json").read_text() == "my notes"
    assert in_process("timeline", "run", "-o", "mine.json", "--force").code == 0
    assert in_process("timeline", "run", "-o", ".json", "--force").code == 0


@pytest.mark.usefixtures("folder")
def test_a_part_can_be_chosen(in_process: Run) -> None:
    done = succeeded(in_process("timeline", "run", "--ranks", "0-1"))
    assert "2 ranks, 8 slices, 1 arrow" in done.out
    done = succeeded(in_process("timeline", "run", "--ranks", "1-2", "--force"))
    assert "2 ranks, 4 slices, 0 arrows" in done.out


def test_nothing_is_left_where_writing_fails(folder: Path, tmp_path: Path) -> None:
    timeline = assembly.read(folder)
    (tmp_path / "file").write_text("")
    with refuses(OmbError, "cannot write"):
        json_trace.write(timeline, tmp_path / "file" / "a.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "run"]
