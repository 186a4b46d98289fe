"""An iteration calls MPI as often as one of native OMB's: `perf/native_calls.py` counted those.

Differences are rows of `docs/programs.md`, under "Differences".
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omb_py.benchmarks import own_benchmarks
from tests import ROOT
from tests.conftest import MPIEXEC, OMB_PY, run, succeeded

PROGRAM = Path(__file__).parent / "programs" / "calls_of_benchmarks.py"
NATIVE = json.loads((ROOT / "tests" / "data" / "native-calls.json").read_text())
DIFFERENT = {
    "mbw_mr": {"Barrier": 1.0}  # native OMB: two in a row
}
"""Calls of omb-py that differ from native OMB's, on every rank."""

UNCOUNTED = ("latency_mp",)
"""Forks processes, which is done once in a job."""


def names(ranks: int) -> list[str]:
    """The benchmarks that were counted on so many ranks."""
    return [name for name, calls in NATIVE.items() if len(calls) == ranks and name not in UNCOUNTED]


def test_every_program_of_native_omb_was_counted() -> None:
    programs = {one.name for one in own_benchmarks() if one.native and one.planned}
    assert set(NATIVE) == programs


@pytest.mark.parametrize("ranks", [2, 3])
def test_an_iteration_calls_mpi_as_native_omb_does(mpi: str, ranks: int, tmp_path: Path) -> None:
    folder, found = tmp_path / "record", tmp_path / "calls.json"
    words = [OMB_PY, "profile", "--folder", str(folder), str(PROGRAM), str(folder), str(found)]
    command = [MPIEXEC, "-n", str(ranks), *words, *names(ranks)]
    succeeded(run(command, {}, tmp_path, timeout=240))
    ours = json.loads(found.read_text())
    expected = {
        name: [calls | DIFFERENT.get(name, {}) for calls in NATIVE[name]] for name in names(ranks)
    }
    assert ours == expected
