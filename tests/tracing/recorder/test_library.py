"""The recorder's library: compiled once, with every routine that the MPI library has."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest

from omb_py.tracing.recorder import compilation, library
from tests.conftest import BIN
from tests.helpers.pace import slowness
from tests.tracing.fixtures import Profiled, calls_of


@pytest.mark.long
def test_large_counts_are_defined_as_declared(recorder_cache: str) -> None:
    mpicc = library.compiler()
    looked_at = compilation.compile_library(mpicc, f"{recorder_cache}/looked_at.so")
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", looked_at], capture_output=True, text=True, check=True
    )
    defined = {line.split()[-1] for line in listed.stdout.splitlines()}
    assert {"MPI_Send", "MPI_Allreduce", "MPI_Waitall", "MPI_Win_fence"} <= defined
    assert not defined & {"MPI_Comm_rank", "MPI_Comm_size", "MPI_Type_size", "MPI_Get_count"}
    header = Path(mpicc).resolve().parent.parent / "include"
    declared = "".join(path.read_text(errors="replace") for path in header.glob("mpi*.h"))
    large = {name for name in defined if name.startswith("MPI_") and name.endswith("_c")}
    assert bool(large) == ("MPI_Send_c(" in declared)
    assert all(f" {name}(" in declared for name in large)
    real = ctypes.CDLL(looked_at)
    assert all(hasattr(real, f"P{name}") for name in large)


@pytest.mark.parametrize("ranks", [1, 2])
def test_missing_compiler_is_said_once(profiled: Profiled, tmp_path: Path, ranks: int) -> None:
    job = profiled(
        ranks,
        program="raise SystemExit('has run')",
        OMB_PY_CACHE_DIR=str(tmp_path / "empty"),
        MPICH_CC="no-such-compiler",
        OMPI_CC="no-such-compiler",
    ).job
    assert job.code == 2
    assert job.seconds < 30 * slowness()  # ranks that wait for the library are told
    (sentence,) = job.sentences
    assert re.search(r"mpicc(_abi)? cannot compile profile.s library", sentence)
    assert "no-such-compiler" in sentence
    assert "load a C compiler" in sentence
    assert "has run" not in job.out + job.err


@pytest.mark.long
def test_a_library_that_is_there_needs_no_compiler(profiled: Profiled, recorder_cache: str) -> None:
    program = "from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n"
    profiled(1, program=program)
    libraries = {
        path: path.stat().st_mtime_ns for path in Path(recorder_cache).glob("recorder-*.so")
    }
    record = profiled(1, "--force", program=program, PATH=str(BIN)).record
    assert calls_of(record) == {"MPI_Barrier": [1, 0]}
    kept = {path: path.stat().st_mtime_ns for path in Path(recorder_cache).glob("recorder-*.so")}
    assert kept == libraries
    assert libraries
