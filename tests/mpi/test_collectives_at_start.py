"""The collective calls of a run beside those that it measures: each costs all ranks their slowest.

docs/architecture.md says what each is for. Who adds one adds it there, too.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from omb_py.measure.transport import network_devices
from tests.conftest import ENVIRONMENT, MPIEXEC, run, succeeded

PROGRAM = Path(__file__).parent / "programs" / "collectives.py"

HOSTS = {"Split_type examine": 1, "Gather examine": 2, "Gatherv examine": 2}
BEFORE = HOSTS | {
    "Iallreduce meet": 1,
    "Allreduce adapted": 1,
    "Allreduce start_writers": 1,
    "Allreduce plan": 1,
    "Allreduce loop": 1,
    "Barrier measure_case": 1,
}
"""Before the first iteration of a benchmark that does not reduce."""

AFTER = {
    "Allreduce unstopped": 1,
    "Allreduce measure_case": 4,
    "Reduce measure_case": 2,
    "Reduce _cpu": 1,
    "Gather finish": 2,
    "Gatherv finish": 2,
    "Allreduce used": 1,
    "Allreduce finish_writers": 1,
    "Free launch": 1,
}
"""After the last one, of one message size."""


@pytest.mark.every_library
@pytest.mark.parametrize(
    ("benchmark", "before"),
    [("bcast", BEFORE), ("allreduce", BEFORE | {"Allreduce begin_type": 1})],
)
def test_collectives_beside_a_run_are_these(
    mpi: str, tmp_path: Path, benchmark: str, before: dict[str, int]
) -> None:
    words = [benchmark, "-m", "8:8", "-i", "1", "-x", "0", "--quiet"]
    command = [MPIEXEC, "-n", "2", sys.executable, str(PROGRAM), *words]
    job = succeeded(run(command, ENVIRONMENT, tmp_path, 60))
    lines = [line.split(maxsplit=1) for line in job.out.splitlines()]
    found = {
        phase: Counter(call for when, call in lines if when == phase)
        for phase in ("before", "after")
    }
    told = {"Gather used": 1, "Gatherv used": 1} if network_devices() else {}
    assert found == {"before": before, "after": AFTER | told}
