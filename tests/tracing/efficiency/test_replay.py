"""A run replayed on an ideal network takes the time that it would take there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.tracing.efficiency.replay import Work, replay
from omb_py.tracing.efficiency.runs import efficiency, measured
from omb_py.tracing.records.layout import EventKind
from omb_py.tracing.records.reading import NS, RankRecord
from omb_py.tracing.records.run import run_of
from tests.helpers.properties import examples
from tests.helpers.refusals import missing
from tests.tracing.efficiency.machine import Machine
from tests.tracing.efficiency.programs import PROGRAMS, Program, run
from tests.tracing.made_records import MadeRecord

NETWORKS = st.tuples(st.integers(0, 300), st.integers(0, 5))


@examples(150)
@given(program=PROGRAMS, network=NETWORKS, starts=st.lists(st.integers(0, 90), min_size=4))
def test_ideal_time_is_that_of_an_ideal_network(
    program: Program, network: tuple[int, int], starts: list[int]
) -> None:
    ranks = program[0]
    with tempfile.TemporaryDirectory() as folder:
        slow = run(Machine(Path(folder, "slow"), ranks, *network, starts=starts[:ranks]), program)
        ideal = run(Machine(Path(folder, "ideal"), ranks, starts=starts[:ranks]), program)
        found = measured(run_of(slow.finish()))
    assert found.times.outside == pytest.approx([time * NS for time in slow.outside])
    assert found.times.elapsed == pytest.approx(slow.elapsed * NS)
    assert found.times.ideal == pytest.approx(ideal.elapsed * NS, abs=1e-12)
    assert found.notes == ()


@examples(100)
@given(program=PROGRAMS, network=NETWORKS)
def test_factors_are_their_products(program: Program, network: tuple[int, int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        records = run(Machine(Path(folder), program[0], *network), program).finish()
        times = measured(run_of(records)).times
    found = efficiency(times)
    assert found.serialisation is not None
    assert found.transfer is not None
    assert times.ideal is not None
    assert found.parallel == pytest.approx(found.load_balance * found.communication, abs=1e-12)
    assert found.communication == pytest.approx(found.serialisation * found.transfer, abs=1e-12)
    assert found.parallel == pytest.approx(
        found.load_balance * found.serialisation * found.transfer, abs=1e-12
    )
    for factor in (found.load_balance, found.communication, found.serialisation, found.transfer):
        assert 0 < factor <= 1 + 1e-12
    assert max(times.outside) <= times.ideal * (1 + 1e-12)
    assert times.ideal <= times.elapsed * (1 + 1e-12)


@examples(100)
@given(
    program=PROGRAMS,
    network=NETWORKS,
    room=st.integers(1, 12),
    gone=st.integers(0, 3),
    skew=st.integers(-400, 400),
)
def test_whatever_is_missing_the_replay_ends_within_its_bounds(
    program: Program, network: tuple[int, int], room: int, gone: int, skew: int
) -> None:
    """Rings too small, a record that is not there, and a clock that is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder), program[0], *network, events=room)
        records = run(machine, program).finish()
    del records[gone % len(records)]
    records[0].header.update(first_at=1, first_offset=skew * NS)
    times = measured(run_of(records)).times
    assert times.ideal is None or max(times.outside) <= times.ideal * (1 + 1e-12)
    assert times.ideal is None or times.ideal <= times.elapsed * (1 + 1e-12)


@given(
    st.lists(
        st.lists(st.tuples(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3))), max_size=4),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
)
def test_a_replay_ends_whatever_the_gates_are(
    ranks: list[list[tuple[list[int], list[int]]]], gates: list[int]
) -> None:
    work = [
        Work(
            0,
            10 * len(steps),
            [10 * at for at in range(len(steps))],
            [posts for posts, _ in steps],
            [waits for _, waits in steps],
            list(range(len(steps))),
        )
        for steps in ranks
    ]
    found = replay(work, gates)
    assert max(found.ends) <= 10 * sum(map(len, ranks))
    assert all(end >= 10 * len(steps) for end, steps in zip(found.ends, ranks, strict=True))


def test_waits_that_nobody_can_end_are_given_up_and_counted() -> None:
    one = Work(0, 5, [2, 5], [[], [0]], [[1], []], [2, 5])
    other = Work(0, 7, [3, 7], [[], [1]], [[0], []], [3, 7])
    found = replay([one, other], [1, 1])
    assert (found.given_up, found.ends) == (1, (5, 9))
    assert replay([Work(0, 5, [5], [()], [[0]], [5])], [1]).given_up == 1


Made = Callable[..., MadeRecord]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return lambda rank, ranks=2, **more: MadeRecord(tmp_path, rank, ranks, **more)


def test_a_persistent_receive_waits_where_it_is_completed(made: Made) -> None:
    sender, receiver = made(0), made(1)
    sender.call("MPI_Send", 60, 61, peer=1, sequence=1)
    receiver.call("MPI_Recv_init", 0, 1, peer=0)
    receiver.call("MPI_Start", 10, 11, peer=0, request=4)
    receiver.call("MPI_Wait", 31, 90)
    receiver.call("MPI_Recv_init", 10, 90, kind=EventKind.DONE, peer=0, request=4, sequence=1)
    found = measured(run_of([sender.finish(61), receiver.finish(100)]))
    assert found.times.ideal == pytest.approx(70e-9)
    assert found.notes == ()


def test_a_persistent_send_begins_when_it_is_started(made: Made) -> None:
    sender, receiver = made(0), made(1)
    sender.call("MPI_Ssend_init", 0, 1, peer=1)
    sender.call("MPI_Start", 41, 42, peer=1, request=1, sequence=1)
    sender.call("MPI_Wait", 50, 60)
    sender.call("MPI_Ssend_init", 41, 60, kind=EventKind.DONE, peer=1, request=1, sequence=1)
    receiver.call("MPI_Recv", 0, 70, peer=0, sequence=1)
    found = measured(run_of([sender.finish(60), receiver.finish(80)]))
    assert found.times.ideal == pytest.approx(50e-9)
    assert found.notes == ()


def test_a_synchronous_send_waits_for_its_receive(made: Made) -> None:
    sender, receiver = made(0), made(1)
    sender.call("MPI_Ssend", 10, 100, peer=1, sequence=1)
    receiver.call("MPI_Recv", 80, 100, peer=0, sequence=1)
    found = measured(run_of([sender.finish(150), receiver.finish(101)]))
    assert found.times.ideal == pytest.approx(130e-9)


@pytest.mark.parametrize("routine", ["MPI_Comm_dup", "MPI_Comm_dup_with_info"])
def test_ranks_wait_for_each_other_to_duplicate_a_communicator(made: Made, routine: str) -> None:
    first, second = made(0), made(1)
    first.call(routine, 0, 100)
    second.call(routine, 80, 100)
    found = measured(run_of([first.finish(150), second.finish(101)]))
    assert found.times.ideal == pytest.approx(130e-9)


def test_both_halves_of_a_nonblocking_exchange_are_told_apart(made: Made) -> None:
    """Each rank sends to the other; the second message of rank 1 is late."""
    for_both: dict[str, Any] = {"tag": 0, "nbytes": 8}
    left, right = made(0), made(1)
    left.call("MPI_Isendrecv", 0, 1, peer=1, request=1, sequence=1, **for_both)
    left.call("MPI_Wait", 11, 41)
    for request in (1, 2):
        left.call(
            *("MPI_Isendrecv", 0, 41),
            kind=EventKind.DONE,
            peer=1,
            request=request,
            sequence=1,
            **(for_both | {"tag": 0 if request == 1 else 5}),
        )
    right.call("MPI_Recv", 0, 2, peer=0, sequence=1, **for_both)
    right.call("MPI_Send", 32, 33, peer=0, sequence=1, tag=5)
    found = measured(run_of([left.finish(41), right.finish(33)]))
    assert found.times.ideal == pytest.approx(30e-9)
    assert found.notes == ()


def test_a_probe_waits_for_the_message_that_is_received_next(made: Made) -> None:
    sender, receiver = made(0), made(1)
    sender.call("MPI_Send", 60, 61, peer=1, sequence=1)
    receiver.call("MPI_Mprobe", 0, 80)
    receiver.call("MPI_Mrecv", 100, 101, peer=0, sequence=1)
    found = measured(run_of([sender.finish(61), receiver.finish(101)]))
    assert found.times.ideal == pytest.approx(80e-9)


def test_the_call_that_a_killed_rank_died_in_is_no_computation(made: Made) -> None:
    killed, other = made(0), made(1)
    killed.call("MPI_Barrier", 50, 60, sequence=1)
    now = killed.file.name("MPI_Recv")
    died = killed.finish(None, updated=1_000_000_300, now_name=now, now_began=1_000_000_100)
    other.call("MPI_Barrier", 50, 60, sequence=1)
    found = measured(run_of([died, other.finish(300)]))
    assert found.times.outside == pytest.approx((90e-9, 290e-9))
    assert any("no end of rank 0" in note for note in found.notes)


def test_what_is_not_replayed_is_said(made: Made) -> None:
    first, second = made(0), made(1)
    first.call("MPI_Recv", 0, 10, peer=1, sequence=1)
    first.call("MPI_Neighbor_alltoall", 20, 30, sequence=1)
    first.call("MPI_Recv", 40, 50, peer=1, sequence=2)
    second.call("MPI_Send", 60, 61, peer=0, sequence=2)
    second.call("MPI_Testall", 65, 66)
    notes = "\n".join(measured(run_of([first.finish(70), second.finish(70)])).notes)
    assert not missing("1 of 2 waits not replayed: other side", notes)
    assert not missing("1 of 2 waits not replayed: ended before", notes)
    assert "MPI_Neighbor_alltoall (1)" in notes
    assert "1 call tested or probed" in notes


def test_calls_of_threads_that_overlap_are_one(made: Made) -> None:
    one, other = made(0), made(1)
    one.call("MPI_Recv", 10, 60, peer=1, sequence=1)
    one.call("MPI_Send", 20, 25, peer=1, sequence=1)
    other.call("MPI_Recv", 0, 30, peer=0, sequence=1)
    other.call("MPI_Send", 50, 51, peer=0, sequence=1)
    found = measured(run_of([one.finish(60), other.finish(60)]))
    assert found.times.outside == pytest.approx((10e-9, 29e-9))
    assert found.times.ideal == pytest.approx(39e-9)
    assert any("1 call began while another" in note for note in found.notes)


def test_a_small_ring_shows_the_time_that_all_ranks_have(made: Made) -> None:
    """Rank 0 lost what ended before 70: all ranks are looked at from there."""
    small, large = made(0, events=3), made(1)
    for at in range(4):
        small.call("MPI_Send", 40 + 20 * at, 50 + 20 * at, peer=1, sequence=at + 1)
        large.call("MPI_Recv", 38 + 20 * at, 54 + 20 * at, peer=0, sequence=at + 1)
    found = measured(run_of([small.finish(120), large.finish(130)]))
    assert found.times.elapsed == pytest.approx(60e-9)
    assert found.times.outside == pytest.approx((30e-9, 24e-9))
    assert not missing("last 0.000 s", found.notes[0])
    assert len(found.notes) == 1


def test_run_without_a_timeline_has_two_factors(made: Made) -> None:
    first, second = made(0, events=0), made(1, events=0)
    first.call("MPI_Barrier", 30, 100)
    second.call("MPI_Barrier", 90, 100)
    found = measured(run_of([first.finish(100), second.finish(100)]))
    assert found.times.outside == pytest.approx((30e-9, 90e-9))
    assert found.times.ideal is None
    assert "record with omb-py profile --timeline" in found.notes[0]


def test_ranks_whose_clocks_were_not_compared_are_not_replayed(made: Made) -> None:
    first, second = made(0, host="a"), made(1, host="b")
    records: list[RankRecord] = []
    for record, clock in ((first, 3), (second, 4)):
        record.call("MPI_Barrier", 30, 100, sequence=1)
        records.append(record.finish(100, clock=clock))
    found = measured(run_of(records))
    assert found.times.ideal is None
    assert found.times.elapsed == pytest.approx(100e-9)
    assert "clocks were not compared" in "\n".join(found.notes)


def test_files_and_cpu_time_are_told_apart(made: Made) -> None:
    first, second = made(0), made(1)
    first.call("MPI_File_write_all", 0, 40)
    second.call("MPI_Barrier", 0, 10, sequence=1)
    told = {"outside_ns": 30, "user_ns": 50}
    found = measured(
        run_of([first.finish(100, **told), second.finish(100, **(told | {"outside_ns": 90}))])
    )
    assert found.io == pytest.approx(40e-9)
    assert found.processor is not None
    assert found.processor.share == pytest.approx(120 / 150)
    assert found.processor.balance == pytest.approx(60 / 90)
