"""Runs on an ideal network: serialisation and transfer efficiency that are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.tracing.efficiency import Run, load
from omb_py.tracing.records.layout import EventKind
from tests.helpers.refusals import missing
from tests.tracing.made_records import MadeRecord

MS = 1_000_000


def run_of(folder: Path, *ranks: str, events: int = 1000) -> Run:
    """The run of ranks, each with its calls and the time of its end, in ms.

    A call is a routine, when it began and ended, its peer and its number; ``done`` stands before an
    operation that another call completes.
    """
    for rank, calls in enumerate(ranks):
        record = MadeRecord(folder, rank, len(ranks), events=events)
        *those, end = calls.split(", ")
        for call in those:
            done = call.startswith("done ")
            name, *numbers = call.removeprefix("done ").split()
            began, ended, peer, number = (*map(int, numbers), -1, 0)[:4]
            kind = EventKind.DONE if done else EventKind.CALL
            times = (began * MS, ended * MS)
            record.call(f"MPI_{name}", *times, kind=kind, peer=peer, sequence=number)
        record.finish(int(end) * MS)
    (run,) = load([str(folder)])
    return run


CASES: dict[str, tuple[int, tuple[str, ...]]] = {
    "ranks work in turn, 10 ms each, and a message takes 1 ms": (
        40,
        (
            "Send 10 11 1 1, 11",
            "Recv 0 11 0 1, Send 21 22 2 1, 22",
            "Recv 0 22 1 1, Send 32 33 3 1, 33",
            "Recv 0 33 2 1, 43",
        ),
    ),
    "all work 10 ms, and an allreduce takes as long": (10, ("Allreduce 10 20 -1 1, 20",) * 4),
    "another rank is slow before each barrier": (
        40,
        (
            "Barrier 10 21 -1 1, Barrier 41 42 -1 2, 42",
            "Barrier 20 21 -1 1, Barrier 31 42 -1 2, 42",
        ),
    ),
    "a broadcast waits for its root": (50, ("Bcast 10 50 1 1, 60", "Bcast 40 50 1 1, 55")),
    "its root waits for none": (70, ("Bcast 10 50 0 1, 70", "Bcast 60 65 0 1, 75")),
    "a reduction's root waits": (40, ("Reduce 10 45 0 1, 45", "Reduce 40 45 0 1, 45")),
    "the others do not": (40, ("Reduce 10 45 0 1, 55", "Reduce 30 50 0 1, 60")),
    "a scan waits for lower ranks": (70, ("Scan 40 50 -1 1, 60", "Scan 10 50 -1 1, 80")),
    "and for no higher ones": (50, ("Scan 10 50 -1 1, 90", "Scan 20 50 -1 1, 55")),
    "a receive that was begun early waits in its completion": (
        30,
        (
            "Irecv 0 1 1, done Irecv 0 35 1 1, Wait 10 35, 35",
            "Isend 30 31 0 1, done Isend 30 35 0 1, Wait 31 35, 35",
        ),
    ),
    "an allreduce in the background waits for the last rank to begin it": (
        40,
        (
            "Iallreduce 0 1 -1 1, done Iallreduce 0 45 -1 1, Wait 21 45, 45",
            "Iallreduce 40 41 -1 1, done Iallreduce 40 45 -1 1, Wait 41 45, 45",
        ),
    ),
    "a synchronous send waits for its receive": (45, ("Ssend 10 41 1 1, 46", "Recv 40 41 0 1, 41")),
    "other sends do not": (40, ("Send 10 41 1 1, 46", "Recv 40 41 0 1, 41")),
    "communicators are made by all of their ranks": (
        50,
        ("Comm_dup 10 31, Comm_dup 41 42, 42", "Comm_dup 30 31, Comm_dup 51 52, 52"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_factors_are_those_of_the_ideal_run(tmp_path: Path, case: str) -> None:
    ideal, ranks = CASES[case]
    run = run_of(tmp_path, *ranks)
    assert (run.serialisation, run.transfer) == pytest.approx(
        (1e3 * max(run.outside) / ideal, ideal / (1e3 * run.elapsed)), rel=1e-6
    )
    assert run.notes == ()
    assert run.serialisation is not None
    assert run.transfer is not None
    assert run.serialisation * run.transfer == pytest.approx(run.communication)


def test_turns_of_four_ranks_have_a_serialisation_of_a_quarter(tmp_path: Path) -> None:
    run = run_of(tmp_path, *next(iter(CASES.values()))[1])
    assert (run.serialisation, run.transfer) == pytest.approx((1 / 4, 40 / 43))


@pytest.mark.parametrize(
    ("ranks", "events", "words"),
    [
        (("Barrier 10 20 -1 1, 20",), 0, "run omb-py profile with --events N"),
        (("Barrier 1 2 -1 1, Barrier 3 4 -1 2, 20",), 1, "all events (--events 2)"),
        (("Win_lock 10 20, 30",), 9, "1 wait of unknown cause count as transfer"),
        (("Recv 10 20 0 1, 30",), 9, "1 wait of unknown cause count as transfer"),
    ],
)
def test_what_the_records_lack_is_said(
    tmp_path: Path, ranks: tuple[str, ...], events: int, words: str
) -> None:
    run = run_of(tmp_path, *ranks, events=events)
    assert not missing(words, run.notes[-1])
    assert (run.transfer is None) is ("wait" not in words)
