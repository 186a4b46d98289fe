"""Small runs whose efficiencies are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.core.errors import UsageError
from omb_py.tracing.efficiency.runs import Efficiency, Times, efficiency, measured, scaling
from omb_py.tracing.records.run import run_of
from tests.tracing.efficiency.machine import Machine

EXACT = 1e-12


def found(machine: Machine) -> Efficiency:
    """The efficiencies of what a machine ran, which has nothing to be said about."""
    result = measured(run_of(machine.finish()))
    assert result.notes == ()
    return efficiency(result.times)


def assert_is(actual: Efficiency, balance: float, serialisation: float, transfer: float) -> None:
    """The three independent factors, and their products."""
    assert actual.load_balance == pytest.approx(balance, abs=EXACT)
    assert actual.serialisation == pytest.approx(serialisation, abs=EXACT)
    assert actual.transfer == pytest.approx(transfer, abs=EXACT)
    assert actual.communication == pytest.approx(serialisation * transfer, abs=EXACT)
    assert actual.parallel == pytest.approx(balance * serialisation * transfer, abs=EXACT)


def test_ranks_that_compute_alike_and_never_wait_are_perfect(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 4)
    for _ in range(3):
        for rank in machine.ranks:
            machine.compute(rank, 100)
        machine.collective("MPI_Allreduce")
    assert_is(found(machine), 1, 1, 1)


def test_one_slow_rank_is_load_imbalance(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 4)
    for rank in machine.ranks:
        machine.compute(rank, 400 if rank == 2 else 100)
    machine.collective("MPI_Barrier")
    assert_is(found(machine), 700 / 4 / 400, 1, 1)


def test_a_chain_in_which_one_works_at_a_time_is_serialisation(tmp_path: Path) -> None:
    """Three ranks compute 100 ns each, one after the other."""
    machine = Machine(tmp_path, 3)
    for rank in machine.ranks:
        machine.compute(rank, 100)
        machine.receive((rank + 1) % 3, rank, machine.send(rank, (rank + 1) % 3))
    assert_is(found(machine), 1, 1 / 3, 1)


def test_a_slow_network_alone_is_transfer(tmp_path: Path) -> None:
    """Both compute 100 ns, then exchange what takes 300 ns."""
    machine = Machine(tmp_path, 2, latency=100, per_byte=2)
    for rank in machine.ranks:
        machine.compute(rank, 100)
    machine.exchange(0, 1, nbytes=100)
    assert_is(found(machine), 1, 1, 100 / 400)


def test_all_three_together(tmp_path: Path) -> None:
    """0 computes 200, sends (100); 1 receives, computes 100: 400, of which ideally 300."""
    machine = Machine(tmp_path, 2, latency=100)
    machine.compute(0, 200)
    message = machine.send(0, 1)
    machine.receive(1, 0, message)
    machine.compute(1, 100)
    assert_is(found(machine), 150 / 200, 200 / 300, 300 / 400)


def test_who_begins_late_is_not_the_network_s_fault(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 2, starts=[0, 100])
    for rank in machine.ranks:
        machine.compute(rank, 100)
    machine.collective("MPI_Barrier")
    assert_is(found(machine), 1, 100 / 200, 1)


@pytest.mark.parametrize(
    ("routine", "root", "ideal"),
    [
        ("MPI_Bcast", 0, 410),  # the slowest root is waited for by all
        ("MPI_Bcast", 1, 310),
        ("MPI_Reduce", 0, 310),  # nobody waits but the root, who is the last
        ("MPI_Reduce", 1, 400),
        ("MPI_Allreduce", -1, 410),
        ("MPI_Scan", -1, 410),  # rank 2 waits for 0 and 1
        ("MPI_Exscan", -1, 410),
    ],
)
def test_collective_calls_wait_for_whom_they_must(
    tmp_path: Path, routine: str, root: int, ideal: int
) -> None:
    """Before the call ranks compute 300, 10, 20; after it 10, 100, 110 (rank 2 the most)."""
    machine = Machine(tmp_path, 3, latency=50)
    for rank, time in enumerate((300, 10, 20)):
        machine.compute(rank, time)
    machine.collective(routine, root=root)
    for rank, time in enumerate((10, 100, 110)):
        machine.compute(rank, time)
    times = measured(run_of(machine.finish())).times
    assert times.ideal == pytest.approx(ideal * 1e-9)


@pytest.mark.parametrize(("overlapped", "elapsed"), [(400, 404), (100, 300)])
def test_overlapped_communication_costs_its_remainder(
    tmp_path: Path, overlapped: int, elapsed: int
) -> None:
    """A message of 300 ns is under way while both compute; beginning and waiting cost 2 ns each."""
    machine = Machine(tmp_path, 2, latency=300)
    (_, sent), (_, received) = machine.post(0, 1)
    for rank in machine.ranks:
        machine.compute(rank, overlapped)
    machine.wait(1, received)
    machine.wait(0, sent)
    assert_is(found(machine), 1, 1, overlapped / elapsed)


def test_a_nonblocking_collective_waits_where_it_is_completed(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 2)
    machine.compute(0, 100)
    requests = machine.start_collective("MPI_Iallreduce")
    machine.compute(1, 40)
    for rank, request in requests:
        machine.wait(rank, request)
    assert_is(found(machine), 70 / 100, 1, 1)


def test_sub_communicators_wait_only_for_their_own(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 4)
    for rank, time in enumerate((100, 10, 200, 20)):
        machine.compute(rank, time)
    machine.collective("MPI_Barrier", (0, 1), key="low")
    machine.collective("MPI_Barrier", (2, 3), key="high")
    for rank in (0, 1):
        machine.compute(rank, 100)
    assert_is(found(machine), (200 + 110 + 200 + 20) / 4 / 200, 1, 1)


def test_scaling_is_relative_to_the_reference_and_its_work() -> None:
    one, four = Times(1, (8.0,), 8.0), Times(4, (2.0, 2.0, 3.0, 3.0), 4.0)
    strong = scaling(four, one, weak=False)
    assert strong is not None
    assert (strong.computation, strong.speedup) == (0.8, 2.0)
    assert strong.whole == pytest.approx(efficiency(four).parallel * 0.8, abs=EXACT)
    assert strong.whole == pytest.approx(strong.speedup / 4 * efficiency(one).parallel, abs=EXACT)
    weak = scaling(four, one, weak=True)
    assert weak is not None
    assert (weak.computation, weak.speedup) == (3.2, 8.0)


def test_ranks_without_times_count_as_the_others_do() -> None:
    assert Times(4, (1.0, 3.0), 3.0).total == 8.0


def test_nothing_is_an_error() -> None:
    with pytest.raises(UsageError, match="took no time"):
        efficiency(Times(1, (), 1.0))
    with pytest.raises(UsageError, match="took no time"):
        efficiency(Times(1, (0.0,), 0.0))
    assert scaling(Times(1, (0.0,), 1.0), Times(1, (1.0,), 1.0), weak=False) is None
    idle = efficiency(Times(2, (0.0, 0.0), 1.0, 0.0))
    assert (idle.load_balance, idle.communication, idle.transfer) == (1.0, 0.0, 0.0)
