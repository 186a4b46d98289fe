"""Recorded runs as programs: the same messages, rank by rank; and records of simulated runs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from omb_py.core.errors import UsageError
from omb_py.simulation import recording, replay
from omb_py.simulation.engine import Event, Outcome
from omb_py.simulation.program import Background, Compute, Receive, Send
from omb_py.tracing.records import Kind, Record, read_folder
from omb_py.tracing.records.messages import sides_of
from tests.conftest import OMB_PY, Finished, run
from tests.mpi.programs.exchanges import MESSAGES_EACH, MESSAGES_TO_ROOT

pytestmark = pytest.mark.any_library

PROGRAM = Path(__file__).parents[1] / "mpi" / "programs" / "exchanges.py"
RANKS = 4
MESSAGES = MESSAGES_EACH * RANKS + MESSAGES_TO_ROOT * (RANKS - 1)


@pytest.fixture(scope="module")
def recorded(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of messages of every kind, and of collectives on two communicators."""
    folder = tmp_path_factory.mktemp("recorded")
    profile = [OMB_PY, "profile", "-q", "--timeline", "run.json", "--folder", "profile"]
    done = run([mpi, "-n", str(RANKS), *profile, str(PROGRAM)], {}, folder, 240)
    assert done.code == 0, done.err
    return folder / "profile"


def recorded_messages(records: list[Record]) -> list[Counter[tuple[int, int]]]:
    """Peer and bytes of the messages that each rank sent."""
    found = []
    for index, one in enumerate(records):
        sides = sides_of(index, one.rank, one.events, one.names, one.communicators, {})
        events = {event for *_, event in sides.sends.tolist()}
        rows = one.events[sorted(events)]
        rows = rows[rows["kind"] == Kind.CALL]
        found.append(Counter(zip(rows["peer"].tolist(), rows["nbytes"].tolist(), strict=True)))
    return found


def test_every_message_is_sent_again(recorded: Path) -> None:
    records = read_folder(recorded)
    found = replay.program_of(records, "exchanges")
    assert not found.left_out
    wanted = recorded_messages(records)
    for rank in range(RANKS):
        operations = list(found.program.operations(rank))
        # collectives have tags below 0
        mine = [one for one in operations if isinstance(one, Send | Receive) and one.tag >= 0]
        sent = Counter((one.peer, int(one.nbytes)) for one in mine if isinstance(one, Send))
        persistent = 2  # are started, and have no call of their own in a record
        assert sum((wanted[rank] - sent).values()) == 0
        assert sum((sent - wanted[rank]).values()) <= persistent
        assert sum(isinstance(one, Receive) for one in mine) == MESSAGES_EACH + (
            MESSAGES_TO_ROOT * (RANKS - 1) if rank == 0 else 0
        )
        assert sum(isinstance(one, Background) for one in operations) == 1  # MPI_Iallreduce


def test_computing_is_what_was_recorded_outside_mpi(recorded: Path) -> None:
    records = read_folder(recorded)
    for scale in (1.0, 0.5):
        program = replay.program_of(records, "exchanges", scale).program
        for rank, record in enumerate(records):
            computed = sum(
                one.seconds for one in program.operations(rank) if isinstance(one, Compute)
            )
            assert 0 < computed <= record.elapsed_s * scale + 0.1


@pytest.mark.usefixtures("simgrid")
def test_a_recorded_run_is_simulated_and_recorded_again(recorded: Path, tmp_path: Path) -> None:
    """The timeline of the simulation has an arrow for each message of two ranks."""
    done = simulate(tmp_path, str(recorded), "--record", "simulated")
    assert done.code == 0, done.err
    assert f"{RANKS}" in done.out
    assert "of the recorded time" in done.out
    done = run([OMB_PY, "timeline", "simulated", "-o", "run.json"], {}, tmp_path, 60)
    assert done.code == 0, done.err
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    starts = [event for event in events if event["ph"] == "s"]
    assert len(starts) >= MESSAGES
    done = run([OMB_PY, "efficiency", "simulated"], {}, tmp_path, 60)
    assert "Parallel efficiency" in done.out
    assert "calls began while another" not in done.out


@pytest.mark.usefixtures("simgrid")
def test_counted_calls_are_simulated_on_any_number_of_ranks(recorded: Path, tmp_path: Path) -> None:
    done = simulate(tmp_path, str(recorded / "profile.0.txt"), "--ranks", "4,16")
    assert done.code == 0, done.err
    assert " 16 " in done.out
    done = simulate(tmp_path, str(recorded / "profile.0.txt"))
    assert (done.code, "name --ranks" in done.err) == (2, True)
    done = simulate(tmp_path, str(recorded), "--ranks", "8")
    assert (done.code, "leave out --ranks" in done.err) == (2, True)


def simulate(folder: Path, *words: str) -> Finished:
    import os

    environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    return run([OMB_PY, "simulate", *words], environment, folder, 120)


@pytest.mark.parametrize(
    ("routine", "counted", "root", "nbytes"),
    [
        ("MPI_Allreduce", (800, 800, 800, 800), -1, 800),
        ("MPI_Gatherv", (0, 100, 200, 300), 0, 200),  # the root's own block is not sent
        ("MPI_Allgatherv", (0, 100, 200, 300), -1, 150),
        ("MPI_Bcast (pickle)", (-1, 64, 64, 64), 1, 64),
        ("MPI_Scatter (pickle)", (100, 100, 400, 100), 2, 100),  # the root pickles all objects
        ("MPI_Alltoall (pickle)", (400, 400, 400, 400), -1, 100),
        ("MPI_Ireduce_scatter_block", (100, 100, 100, 100), -1, 400),
        ("MPI_Reduce_scatter", (400, 400, 400, 400), -1, 400),
        ("MPI_Iallgatherv", (-1, -1, -1, -1), -1, 0),
    ],
)
def test_sizes_of_collectives_are_those_of_all_ranks(
    routine: str, counted: tuple[int, ...], root: int, nbytes: int
) -> None:
    assert replay.size_of(routine, dict(enumerate(counted)), root) == nbytes


def test_messages_without_another_side_are_left_out_and_counted(tmp_path: Path) -> None:
    events = (
        Event(0, Kind.CALL, "MPI_Send", 0.0, 1e-3, 1, 800, 7, 1),
        Event(0, Kind.CALL, "MPI_Send", 1e-3, 2e-3, 1, 800, 8, 1),
        Event(1, Kind.CALL, "MPI_Recv", 0.0, 1e-3, 0, 800, 7, 1),
        Event(1, Kind.CALL, "MPI_Recv", 1e-3, 2e-3, 0, 800, 9, 1),
        Event(1, Kind.CALL, "MPI_Recv", 2e-3, 3e-3, 0, 800, 9, 2),
    )
    recording.write(Outcome((2e-3, 3e-3), 1, events=events), (0, 1), str(tmp_path), "made")
    found = replay.program_of(read_folder(tmp_path), "made")
    assert found.left_out == {"MPI_Send": 1, "MPI_Recv": 2}
    made = [one for rank in range(2) for one in found.program.operations(rank)]
    assert sum(isinstance(one, Send | Receive) for one in made) == 2


def test_what_no_operation_stands_for_is_known() -> None:
    beyond = ("MPI_Put", "MPI_Win_fence", "MPI_File_write_all", "MPI_Comm_spawn")
    assert all(map(replay.is_beyond, beyond))
    assert not any(map(replay.is_beyond, ("MPI_Send", "MPI_Waitall", "MPI_Comm_dup")))


class TestRecording:
    def test_events_are_read_as_they_were(self, tmp_path: Path) -> None:
        events = (
            Event(0, Kind.SPAN, "forward", 0.0, 1e-3),
            Event(0, Kind.CALL, "MPI_Isend", 1e-3, 1.1e-3, 1, 800, 7, 1),
            Event(0, Kind.CALL, "MPI_Waitall", 1.1e-3, 2e-3),
            Event(0, Kind.DONE, "MPI_Isend", 1e-3, 2e-3, 1, 800, 7, 1),
            Event(1, Kind.CALL, "MPI_Recv", 0.0, 2.5e-3, 0, 800, 7, 1),
        )
        recording.write(Outcome((2e-3, 2.5e-3), 1, events=events), (0, 1), str(tmp_path), "made")
        first, second = read_folder(tmp_path)
        assert (first.host, second.host) == ("node0", "node1")
        assert (first.elapsed_s, second.elapsed_s) == pytest.approx((2e-3, 2.5e-3))
        assert first.about == {"program": "made", "simulated": "SimGrid"}
        assert [first.name(int(one)) for one in first.events["name"]] == [
            *("forward", "MPI_Isend", "MPI_Isend", "MPI_Waitall")
        ]
        (received,) = second.events
        assert (received["peer"], received["nbytes"], received["sequence"]) == (0, 800, 1)
        assert first.events["sequence"].tolist() == [0, 1, 1, 0]

    def test_clocks_and_events_are_needed(self, tmp_path: Path) -> None:
        recording.write(Outcome((0.0, 0.0), 0), (0, 1), str(tmp_path), "made")
        records = read_folder(tmp_path)
        with pytest.raises(UsageError, match="has no events"):
            replay.program_of(records, "made")
        with pytest.raises(UsageError, match="lacks the records of ranks 1"):
            replay.program_of(records[:1], "made")
