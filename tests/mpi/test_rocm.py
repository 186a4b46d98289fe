"""Buffer cupy on AMD's devices: stand-ins for HIP and for CuPy (`tests/fakes`), no CUDA driver."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import mpi4py
import pytest

from tests.conftest import BIN, Run, run, succeeded
from tests.helpers.battery import Battery, Line, each_line, line, passes, refused
from tests.helpers.devices import jobs_on, with_rocm
from tests.helpers.refusals import assert_refused

CHECKED = "-c -i 4 -x 1 -u 1"
STAGED = f"--buffer cupy --staging {CHECKED}"


@pytest.fixture
def job(mpi: str, hip: Path, tmp_path: Path) -> Run:
    """``job(ranks, *words)`` runs a program, whichever the words begin with."""
    return jobs_on(hip, tmp_path, with_rocm(), program=())


@each_line(
    line(ranks, f"{name} {STAGED} {words} --sizes 8,4096")
    for ranks, name, words in (
        (2, "latency", ""),
        (2, "latency D H", ""),
        (2, "latency", "--stream-sync --cold"),
        (2, "bw", "--binding native"),
        (3, "allreduce", "--binding prebound"),
        (3, "alltoallv", "--binding array"),
    )
)
def test_staged_data_is_right(on_rocm: Battery, line: Line) -> None:
    passes(on_rocm(line), rows=2)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (line(2, "latency --buffer cupy --sizes 8"), "built with ROCm UCX --staging"),
        (line(2, "put_latency --buffer cupy --sizes 8"), "built with ROCm UCX"),
        (line(2, "iallreduce -r gpu --staging --buffer cupy --sizes 8"), "NVIDIA devices -r cpu"),
        (line(2, "latency --buffer numba --sizes 8"), "no CUDA driver libcuda.so.1"),
        (line(2, "latency --buffer cupy --device 3 --sizes 8"), "no device 3"),
    ],
    ids=str,
)
def test_impossible_on_rocm_refused(on_rocm: Battery, line: Line, words: str) -> None:
    refused(on_rocm(line), words)


def test_output_names_the_runtime(job: Run, tmp_path: Path) -> None:
    words = f"latency {STAGED} --sizes 8 --output rows.csv".split()
    done = succeeded(job(2, str(BIN / "omb-py"), *words))
    assert "# OSU MPI-ROCM Latency Test" in done.out
    metadata = (tmp_path / "rows.csv").read_text().splitlines()
    assert "# hip_runtime: 7.0.51831" in metadata
    assert "# accelerator: ROCM" in metadata
    assert not [row for row in metadata if row.startswith("# cuda")]


def test_native_program_of_rocm_uses_cupy(job: Run, tmp_path: Path) -> None:
    (tmp_path / "osu_latency").symlink_to(BIN / "omb-py")
    words = ("-d", "rocm", "-m", "8:8", "-i", "4", "-x", "1")
    hosts = job(2, str(tmp_path / "osu_latency"), *words)
    assert "# OSU MPI-ROCM Latency Test" in succeeded(hosts).out
    assert_refused(job(2, str(tmp_path / "osu_latency"), *words, "D", "D"), 8, "built with ROCm")
    cuda = job(2, str(tmp_path / "osu_latency"), "-d", "cuda")
    assert_refused(cuda, 8, "-d cuda: cupy: its device is one of ROCM")


def test_address_of_an_array_without_cuda_s_interface_comes_by_dlpack(
    hip: Path, tmp_path: Path
) -> None:
    """CuPy before 14 hides that interface on ROCm; mpi4py asks for DLPack first."""
    program = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
from omb_py.buffers.cupy import BUFFER
from omb_py.core.datatypes import find_types
(kind,) = find_types(["float32"])
memory = BUFFER.prepare(0).allocate(100, kind).slice(12, 40)
assert not hasattr(memory.array, "__cuda_array_interface__")
found = MPI.memory(memory.array)
assert (found.address, found.nbytes) == (memory.address, 40)
"""
    if tuple(map(int, mpi4py.__version__.split(".")[:2])) < (4, 1):
        pytest.skip("an older mpi4py has no MPI.memory")
    folders = [str(hip.parent), os.environ.get("LD_LIBRARY_PATH", "")]
    settings = with_rocm() | {"LD_LIBRARY_PATH": ":".join(filter(None, folders))}
    succeeded(run([sys.executable, "-c", program], settings, tmp_path, timeout=60))
