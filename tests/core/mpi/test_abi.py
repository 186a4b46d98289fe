"""Which ABI mpi4py calls MPI by: the standard's, or the library's own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from omb_py.core.mpi import abi
from tests.conftest import BIN, CHOOSES_ITS_LIBRARY, Run, succeeded
from tests.helpers.refusals import ANY_CODE, assert_refused

MPICC_ABI = BIN / "mpicc_abi"


def linked(folder: Path, compiler: Path) -> Path:
    """A shared object that calls MPI, made by a compiler of MPI's."""
    source, library = folder / "source.c", folder / f"{compiler.name}.so"
    source.write_text("#include <mpi.h>\nint f(void) { return MPI_Barrier(MPI_COMM_WORLD); }\n")
    command = [str(compiler), "-shared", "-fPIC", "-o", str(library), str(source)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no C compiler")
    return library


@pytest.mark.skipif(not MPICC_ABI.exists(), reason="an MPI library without the standard's ABI")
def test_program_of_the_standard_abi_is_recognised(tmp_path: Path) -> None:
    assert abi.is_linked(str(linked(tmp_path, MPICC_ABI)))
    assert not abi.is_linked(str(linked(tmp_path, BIN / "mpicc")))


def test_the_module_of_mpi4py_and_the_library_it_loads_agree() -> None:
    before = abi.is_standard()
    from mpi4py import MPI

    assert abi.is_standard() == before
    assert before == (Path(abi.library_path()).name.startswith("libmpi_abi."))
    assert abi.described() == ("standard 1.0" if before else "own")
    assert MPI._sizeof(MPI.Comm) in ((8,) if before else (4, 8))


def test_the_library_s_file_is_the_one_that_is_mapped() -> None:
    path = abi.library_path()
    assert path in Path("/proc/self/maps").read_text()
    assert os.path.basename(path).startswith("libmpi")


@pytest.mark.skipif(not CHOOSES_ITS_LIBRARY, reason="an mpi4py of one ABI")
def test_an_mpi4py_without_a_module_for_the_abi_is_said(omb_py: Run) -> None:
    job = omb_py("barrier", MPI4PY_MPIABI="mpiabi")
    words = "ABIs mpich and openmpi, MPI library MPI4PY_BUILD_MPIABI=1 MPICC=mpicc_abi pip install"
    assert_refused(job, ANY_CODE, words)
    info = succeeded(omb_py("info", MPI4PY_MPIABI="mpiabi"))
    assert "MPI      none: mpi4py" in info.out
