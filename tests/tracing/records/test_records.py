"""Records: what is written is read, whatever state the file is in."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from omb_py.core.errors import OmbError, UsageError
from omb_py.tracing.recorder.record_file import RecordFile
from omb_py.tracing.records import layout, reading
from omb_py.tracing.records.layout import Communicator, EventKind, path_in, size_bin
from omb_py.tracing.records.run import open_run
from tests.helpers.properties import examples
from tests.helpers.refusals import refuses
from tests.tracing.made_records import START, MadeRecord, WrittenFile, communicator_line


def test_what_is_written_is_read_at_once(tmp_path: pathlib.Path) -> None:
    file = WrittenFile(path_in(str(tmp_path), 3), 3, 4, 10, {"command": "a.py"})
    world = Communicator("world", 4, "world")
    numbers = [file.name(text) for text in ("MPI_Send", communicator_line(world), "MPI_Send")]
    file.write_cells([(1, 2, 0, 1, 0, 0, 3, 12, 100, 30, 40)])

    record = reading.read(file.path)

    assert numbers == [1, 2, 1]
    assert (record.rank, record.ranks, record.complete) == (3, 4, False)
    assert record.about == {"command": "a.py"}
    assert record.communicators == {2: world}
    assert record.name(1) == "MPI_Send"
    assert record.name(99) == ""
    assert record.cells["calls"].tolist() == [3]
    assert record.cells["nbytes"].tolist() == [12]


def test_a_ring_keeps_the_last_events_in_order(tmp_path: pathlib.Path) -> None:
    made = MadeRecord(tmp_path, 0, 1, events=4)
    for number in range(10):
        made.call("MPI_Barrier", number, number + 1)

    record = made.finish(20)

    assert [began - START for began in record.events["began"]] == [6, 7, 8, 9]
    assert record.lost_events == 6
    assert record.cells["calls"].tolist() == [10]


def test_a_record_that_is_there_is_never_written_over(tmp_path: pathlib.Path) -> None:
    path = path_in(str(tmp_path / "new"), 0)
    first = RecordFile(path, 0, 1, 0, {"command": "first.py"})
    with refuses(OmbError, "another job is writing"):
        RecordFile(path, 0, 1, 0, {})
    assert first.in_place()
    assert reading.read(path).about == {"command": "first.py"}
    pathlib.Path(path).unlink()
    RecordFile(path, 0, 1, 0, {})
    assert not first.in_place()


def test_clocks_are_interpolated_between_two_comparisons(tmp_path: pathlib.Path) -> None:
    clocks = {"first_at": 10, "first_offset": 1e-3, "last_at": 10 + 10**9, "last_offset": 2e-3}
    record = MadeRecord(tmp_path, 0, 1).finish(1, **clocks)
    times = np.array([10, 10 + 5 * 10**8, 10 + 10**9])
    assert (record.common(times) - times).tolist() == [1_000_000, 1_500_000, 2_000_000]


def test_a_rank_that_was_killed_ends_with_its_last_sign_of_life(tmp_path: pathlib.Path) -> None:
    made = MadeRecord(tmp_path, 0, 1)
    made.call("MPI_Barrier", 5, 4_000)
    record = made.finish(None)
    assert not record.complete
    assert record.elapsed_s == pytest.approx(4e-6)


def test_records_of_two_runs_are_not_mixed(tmp_path: pathlib.Path) -> None:
    MadeRecord(tmp_path, 0, 2).finish(1)
    MadeRecord(tmp_path, 1, 3).finish(1)
    with refuses(UsageError, "several runs"):
        open_run(tmp_path)


@pytest.mark.parametrize("content", [b"", b"text\n" * 1000])
def test_other_files_are_no_records(tmp_path: pathlib.Path, content: bytes) -> None:
    path = tmp_path / "rank-000000.record"
    path.write_bytes(content)
    with refuses(UsageError, "no record"):
        open_run(tmp_path)


@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cut=st.integers(0, layout.HEADER_BYTES + 2000),
    changes=st.lists(st.tuples(st.integers(8, layout.HEADER_BYTES), st.integers(0, 255))),
)
def test_damaged_files_are_read_or_refused_in_a_sentence(
    tmp_path: pathlib.Path, cut: int, changes: list[tuple[int, int]]
) -> None:
    made = MadeRecord(tmp_path, 0, 1, events=3)
    made.call("MPI_Send", 1, 2, peer=0, nbytes=8)
    made.finish(10)
    content = bytearray(pathlib.Path(made.file.path).read_bytes())
    for at, value in changes:
        content[at] = value
    damaged = tmp_path / "damaged"
    damaged.write_bytes(content[: len(content) - cut])
    try:
        record = reading.read(damaged)
    except UsageError:
        return
    assert isinstance(record.communicators, dict)
    assert all(isinstance(thread.routine, str) for thread in record.threads)


@given(nbytes=st.integers(1, 2**60))
def test_a_bin_holds_sizes_up_to_a_power_of_two(nbytes: int) -> None:
    number = size_bin(nbytes)
    assert nbytes <= 2 ** (number + 1)
    assert number == 1 or nbytes > 2**number


def test_no_bytes_and_no_message_have_bins_of_their_own() -> None:
    assert (size_bin(0), size_bin(-1), size_bin(4), size_bin(5)) == (0, -1, 1, 2)


def test_events_have_their_documented_kinds(tmp_path: pathlib.Path) -> None:
    made = MadeRecord(tmp_path, 0, 1)
    made.call("forward", 1, 2, kind=EventKind.PHASE)
    record = made.finish(5)
    (event,) = record.events
    assert (event["kind"], record.name(event["name"])) == (EventKind.PHASE, "forward")
    assert len(record.cells) == 0
