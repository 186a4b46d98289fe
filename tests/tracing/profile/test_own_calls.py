"""Calls of omb-py for itself, and of programs while recording is stopped, count for nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omb_py.tracing.efficiency import load
from omb_py.tracing.profile import store, tables
from omb_py.tracing.records.reading import RankRecord
from omb_py.tracing.records.routines import Role, role, sent_bytes
from tests.conftest import Run, succeeded
from tests.tracing.fixtures import Profiled, calls_of, succeeded_records

ONCE = "--repeats 1 --warmup-repeats 0 --no-references".split()
APPLICATIONS = (
    "halo --rows 64 --columns 64 --steps 20",
    "kmeans --samples 1000",
    "knn --samples 1000",
    "matmul --rows 99",
    "dispatch --tokens 512",
    "transpose_sum --size 96",
    "merge --rows 1000",
    "train --model resnet20 --epochs 1",
    "train --model resnet20 --strategy hybrid --stages 3 --epochs 1",
)
CALLS = re.compile(r"^MPI_(\w+) +(\d+) calls?(?: of ([\d.]+) bytes)?", re.MULTILINE)


def counted(folder: Path) -> dict[str, int]:
    """The calls of a profile by routine."""
    found = tables.routines(store.load([str(folder)]).members)
    return {name: sums.calls for name, sums in found.items()}


def moving(record: RankRecord) -> dict[str, list[float]]:
    """Calls and bytes of each routine that moves data or waits; of sendrecv what it sends."""
    return {
        name: [calls, sent_bytes(name, nbytes)]
        for name, (calls, nbytes) in calls_of(record).items()
        if role(name) is not Role.MANAGEMENT
    }


@pytest.mark.parametrize("application", APPLICATIONS)
def test_application_has_its_own_calls_alone_and_counts_them_alike(
    profiled: Profiled, application: str
) -> None:
    profile = profiled(3, "omb-py", *application.split(), *ONCE)
    busiest: dict[str, list[float]] = {}
    for name, calls, nbytes in CALLS.findall(profile.job.out):
        sums = busiest.setdefault(f"MPI_{name}", [0, 0])
        sums[0] += int(calls)
        sums[1] += int(calls) * float(nbytes or 0)
    assert busiest
    found = [moving(record) for record in succeeded_records(profile)]
    # a mean of blocks that differ is rounded in each record
    close = {name: [n, pytest.approx(nbytes, abs=n)] for name, (n, nbytes) in busiest.items()}
    assert close in found


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
