"""Calls of omb-py for itself, and of programs while recording is stopped, count for nothing."""

from __future__ import annotations

from pathlib import Path

from omb_py.tracing.efficiency import load
from omb_py.tracing.profile import store, tables
from tests.conftest import Run, succeeded

HALO = "halo --rows 64 --columns 64 --steps 20 --repeats 2 --no-references"


def counted(folder: Path) -> dict[str, int]:
    """The calls of a profile by routine."""
    found = tables.routines(store.load([str(folder)]).members)
    return {name: sums.calls for name, sums in found.items()}


def test_application_has_no_calls_of_its_measurement(mpiexec: Run, tmp_path: Path) -> None:
    succeeded(mpiexec(2, "profile", "-q", "-m", "omb_py", *HALO.split()))
    found = counted(tmp_path / "omb-profile")
    assert found.pop("MPI_Pcontrol") > 10
    assert set(found) == {"MPI_Isend", "MPI_Irecv", "MPI_Waitall"}
    assert len(set(found.values())) == 1


def test_stopped_time_is_neither_computation_nor_elapsed(mpiexec: Run, tmp_path: Path) -> None:
    program = tmp_path / "stops.py"
    program.write_text(
        "import time\n"
        "from mpi4py import MPI\n"
        "MPI.COMM_WORLD.Barrier()\n"
        "for last in (False, True):\n"
        "    MPI.Pcontrol(0)\n"
        "    MPI.COMM_WORLD.Barrier()\n"
        "    time.sleep(1)\n"
        "    last or MPI.Pcontrol(1)\n"
    )
    succeeded(mpiexec(2, "profile", "-q", "--traffic", "--events", "1000", str(program)))
    assert counted(tmp_path / "omb-profile") == {"MPI_Barrier": 2, "MPI_Pcontrol": 4}
    (run,) = load([str(tmp_path / "omb-profile")])
    stopped = [one.stopped_s for one in store.load([str(tmp_path / "omb-profile")]).members]
    assert min(stopped) >= 2
    whole = store.load([str(tmp_path / "omb-profile")]).elapsed_s
    assert whole is not None
    assert run.elapsed == whole - min(stopped)
    assert max(run.outside) <= run.elapsed
