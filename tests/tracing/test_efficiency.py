"""Small runs whose efficiencies are known, and a program on real ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omb_py.core.errors import UsageError
from omb_py.tracing.efficiency import Run, load, scaling
from tests.conftest import Run as Command
from tests.conftest import succeeded
from tests.helpers.refusals import missing, refuses
from tests.tracing.made_records import START, MadeRecord

EXACT = 1e-12


def found(folder: Path) -> Run:
    """The run of the records in a folder."""
    (run,) = load([str(folder)])
    return run


def computing(folder: Path, *times: int, elapsed: int, **header: Any) -> Run:
    """Ranks that compute for so many ns, then wait in a barrier until all of them end."""
    for rank, time in enumerate(times):
        record = MadeRecord(folder, rank, len(times))
        record.call("MPI_Barrier", time, elapsed, sequence=1)
        record.finish(elapsed, **header)
    return found(folder)


def assert_is(actual: Run, balance: float, communication: float) -> None:
    """The two independent factors, and their product."""
    assert actual.load_balance == pytest.approx(balance, abs=EXACT)
    assert actual.communication == pytest.approx(communication, abs=EXACT)
    assert actual.parallel == pytest.approx(balance * communication, abs=EXACT)


def test_ranks_that_compute_alike_and_never_wait_are_perfect(tmp_path: Path) -> None:
    run = computing(tmp_path, 100, 100, 100, 100, elapsed=100, user_ns=100)
    assert_is(run, 1, 1)
    assert run.notes == ()


def test_one_slow_rank_is_load_imbalance(tmp_path: Path) -> None:
    assert_is(computing(tmp_path, 100, 100, 400, 100, elapsed=400), 700 / 4 / 400, 1)


def test_time_in_which_all_ranks_are_in_mpi_is_lost_to_communication(tmp_path: Path) -> None:
    assert_is(computing(tmp_path, 100, 100, elapsed=400), 1, 100 / 400)
    assert_is(computing(tmp_path, 200, 100, elapsed=400), 150 / 200, 200 / 400)


def test_a_run_lasts_from_the_first_beginning_to_the_last_end(tmp_path: Path) -> None:
    for rank, late in enumerate((0, 100)):
        record = MadeRecord(tmp_path, rank, 2)
        record.call("MPI_Barrier", 100 + late, 200, sequence=1)
        record.finish(200, began=START + late)
    run = found(tmp_path)
    assert run.elapsed == pytest.approx(200e-9)
    assert_is(run, 1, 100 / 200)


def test_times_of_another_host_are_put_on_one_clock(tmp_path: Path) -> None:
    first, second = (MadeRecord(tmp_path, rank, 2, host="ab"[rank]) for rank in range(2))
    first.finish(100)
    second.finish(100, clock=8, first_at=START, first_offset=50e-9, first_error=1e-9)
    assert found(tmp_path).elapsed == pytest.approx(150e-9)


def test_clocks_that_were_not_compared_leave_the_longest_time(tmp_path: Path) -> None:
    for rank, clock in ((0, 3), (1, 4)):
        record = MadeRecord(tmp_path, rank, 2, host="ab"[rank])
        record.call("MPI_Barrier", 30, 100, sequence=1)
        record.finish(100 + rank, clock=clock)
    run = found(tmp_path)
    assert run.elapsed == pytest.approx(101e-9)
    assert not missing("not known on one clock: longest time of a rank", run.notes[0])


def test_the_call_that_a_killed_rank_died_in_is_no_computation(tmp_path: Path) -> None:
    killed, other = (MadeRecord(tmp_path, rank, 2) for rank in range(2))
    killed.call("MPI_Barrier", 50, 60, sequence=1)
    now = killed.file.name("MPI_Recv")
    killed.finish(None, updated=START + 300, now_name=now, now_began=START + 100)
    other.call("MPI_Barrier", 50, 60, sequence=1)
    other.finish(300)
    run = found(tmp_path)
    assert run.outside == pytest.approx((90e-9, 290e-9))
    assert any("no end of rank 0" in note for note in run.notes)


def test_calls_that_poll_are_said(tmp_path: Path) -> None:
    record = MadeRecord(tmp_path, 0, 1)
    record.call("MPI_Testall", 10, 12)
    record.call("MPI_Iprobe", 20, 22)
    record.call("MPI_Probe", 30, 32)
    record.finish(100)
    assert not missing("2 calls tested or probed", "\n".join(found(tmp_path).notes))


def test_files_and_cpu_time_are_told_apart(tmp_path: Path) -> None:
    first, second = (MadeRecord(tmp_path, rank, 2) for rank in range(2))
    first.call("MPI_File_write_all", 0, 40)
    second.call("MPI_Barrier", 0, 10, sequence=1)
    first.finish(100, user_ns=50)
    second.finish(100, user_ns=80, system_ns=10)
    run = found(tmp_path)
    assert run.io == pytest.approx(40e-9)
    assert run.cpu == pytest.approx(140 / 200)


def made(ranks: int, outside: tuple[float, ...], elapsed: float) -> Run:
    """A run of these times."""
    return Run("run", "", ranks, outside, elapsed)


def test_scaling_is_relative_to_the_reference_and_its_work() -> None:
    one, four = made(1, (8.0,), 8.0), made(4, (2.0, 2.0, 3.0, 3.0), 4.0)
    strong = scaling(four, one, weak=False)
    assert strong is not None
    assert (strong.computation, strong.speedup) == (0.8, 2.0)
    assert strong.whole == pytest.approx(four.parallel * 0.8, abs=EXACT)
    assert strong.whole == pytest.approx(strong.speedup / 4 * one.parallel, abs=EXACT)
    weak = scaling(four, one, weak=True)
    assert weak is not None
    assert (weak.computation, weak.speedup) == (3.2, 8.0)


def test_ranks_without_times_count_as_the_others_do() -> None:
    assert made(4, (1.0, 3.0), 3.0).total == 8.0


def test_ranks_that_computed_nothing_have_no_scaling() -> None:
    idle = made(2, (0.0, 0.0), 1.0)
    assert scaling(idle, made(1, (1.0,), 1.0), weak=False) is None
    assert (idle.load_balance, idle.communication, idle.parallel) == (1.0, 0.0, 0.0)


def test_a_run_that_took_no_time_is_an_error(tmp_path: Path) -> None:
    MadeRecord(tmp_path, 0, 1).finish(0)
    with refuses(UsageError, "took no time"):
        found(tmp_path)


def test_calls_of_threads_at_a_time_are_said(tmp_path: Path) -> None:
    record = MadeRecord(tmp_path, 0, 1)
    record.call("MPI_Send", 10, 80)
    record.call("MPI_Recv", 10, 80)
    record.finish(100)
    assert not missing("calls of rank 0 several threads added up", "\n".join(found(tmp_path).notes))


def test_a_killed_rank_needs_no_more_events_for_factors(tmp_path: Path) -> None:
    record = MadeRecord(tmp_path, 0, 1, events=9)
    record.call("MPI_Barrier", 10, 20, sequence=1)
    record.finish(None, updated=START + 30)
    note = found(tmp_path).notes[-1]
    assert not missing("no serialisation need each rank's end", note)
    assert "--events" not in note


CHAIN = """
import time
from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank > 0:
    comm.recv(source=comm.rank - 1)
time.sleep(0.1)
if comm.rank < comm.size - 1:
    comm.send(None, comm.rank + 1)
"""


def test_serial_work_is_lost_to_communication(mpiexec: Command, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(CHAIN)
    succeeded(mpiexec(3, "profile", "--events", "1000", "--folder", "run", "program.py"))
    run = found(tmp_path / "run")
    assert run.elapsed >= 0.3
    assert min(run.outside) >= 0.1
    assert run.parallel == pytest.approx(run.load_balance * run.communication, abs=1e-12)
    assert 0 < run.parallel <= run.communication <= 1
    assert run.serialisation is not None
    assert run.transfer is not None
    assert run.serialisation * run.transfer == pytest.approx(run.communication)
    assert max(run.outside) / run.serialisation >= 0.3, "on an ideal network, too, ranks take turns"
    assert run.cpu is not None
    assert run.cpu > 0
