"""Binding native: where its machine code comes from, and what it says when a call fails."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from omb_py.tracing.recorder import compilation
from tests.conftest import OMB_PY, Finished, run
from tests.helpers.battery import Battery, Line, line, passes

QUICK = ("-i", "20", "-x", "1", "--sizes", "8", "--binding", "native")
CHECKED = "-c -i 3 --sizes 8,4096"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "cache"


def the_file(cache: Path) -> Path:
    """The only file that the cache holds."""
    (path,) = cache.iterdir()
    assert path.suffix == ".code"
    return path


@pytest.mark.any_library
def test_ranks_share_code_that_is_kept(mpiexec: Callable[..., Finished], cache: Path) -> None:
    assert mpiexec(4, "allreduce", *QUICK, OMB_PY_CACHE_DIR=str(cache)).code == 0
    path = the_file(cache)
    kept = path.stat()
    assert mpiexec(2, "latency", *QUICK, OMB_PY_CACHE_DIR=str(cache)).code == 0
    assert the_file(cache).stat().st_mtime_ns == kept.st_mtime_ns
    assert kept.st_mode & 0o077 == 0


@pytest.mark.any_library
def test_jobs_that_start_together_on_a_cold_cache(
    mpiexec: Callable[..., Finished], cache: Path
) -> None:
    def start(_: int) -> Finished:
        return mpiexec(2, "allreduce", *QUICK, "-c", OMB_PY_CACHE_DIR=str(cache))

    with ThreadPoolExecutor(3) as pool:
        jobs = list(pool.map(start, range(3)))
    assert [job.code for job in jobs] == [0] * 3
    the_file(cache)


@pytest.fixture(scope="module")
def filled(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which the code of two ranks' latency is."""
    folder = tmp_path_factory.mktemp("filled")
    command = [mpi, "-n", "2", OMB_PY, "latency", *QUICK]
    job = run(command, {"OMB_PY_CACHE_DIR": str(folder / "cache")}, folder, timeout=120)
    assert job.code == 0, job.err
    return folder / "cache"


@pytest.mark.product(strength=0)
@pytest.mark.any_library
@pytest.mark.parametrize("harm", ["truncated", "altered", "writable by others", "empty"])
def test_code_that_cannot_be_trusted_is_made_anew(
    mpiexec: Callable[..., Finished], filled: Path, cache: Path, harm: str
) -> None:
    shutil.copytree(filled, cache)
    path = the_file(cache)
    good = path.read_bytes()
    if harm == "writable by others":
        path.write_bytes(bytes(len(good)))
        path.chmod(0o666)
    else:
        bad = {"truncated": good[:-100], "altered": good[:-1] + b"\xff", "empty": b""}[harm]
        path.write_bytes(bad)
    assert mpiexec(2, "latency", *QUICK, OMB_PY_CACHE_DIR=str(cache)).code == 0
    assert len(the_file(cache).read_bytes()) == len(good)
    assert the_file(cache).stat().st_mode & 0o022 == 0


@pytest.mark.any_library
def test_a_home_that_cannot_be_written(mpiexec: Callable[..., Finished]) -> None:
    job = mpiexec(2, "latency", *QUICK, OMB_PY_CACHE_DIR="/proc/nowhere")
    assert job.code == 0
    assert job.sentences == []


@pytest.mark.parametrize(("package", "ranks"), [("numba", 2), ("llvmlite", 3)])
def test_what_is_missing_is_one_sentence(
    mpiexec: Callable[..., Finished], tmp_path: Path, cache: Path, package: str, ranks: int
) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    text = f"raise ModuleNotFoundError('No module named {package}', name='{package}')\n"
    (hidden / f"{package}.py").write_text(text)
    environment = {"PYTHONPATH": str(hidden), "OMB_PY_CACHE_DIR": str(cache)}
    job = mpiexec(ranks, "allreduce", *QUICK, **environment)
    assert job.code != 0
    (sentence,) = job.sentences
    assert "[native]'" in sentence
    assert package.lower() in sentence.lower()


@pytest.mark.parametrize(
    "line",
    [
        line(2, f"allgather {CHECKED} --buffer interface --binding {binding}")
        for binding in ("native", "prebound", "buffer")
    ],
    ids=str,
)
def test_arrays_that_show_a_device_address_are_sent_from_there(
    battery: Battery, line: Line
) -> None:
    passes(battery(line), rows=2)


@pytest.mark.parametrize(
    "line",
    [
        line(2, f"{name} {CHECKED} --buffer bytearray --binding native")
        for name in ("bw", "allreduce", "alltoallv", "scatter")
    ],
    ids=str,
)
def test_bytearrays_are_sent_natively(battery: Battery, line: Line) -> None:
    passes(battery(line), rows=2)


def test_a_failing_call_is_named(mpiexec: Callable[..., Finished]) -> None:
    job = mpiexec(2, "latency", *QUICK, "--sizes", "4,8", "--binding", "misdirected")
    assert job.code != 0
    (sentence,) = job.sentences
    assert "MPI_Send failed: " in sentence
    assert "rank" in sentence.lower()
    assert [row[0] for row in job.rows] == ["4"]


LARGE = """
from array import array
import mpi4py
mpi4py.rc.thread_level = "single"
from mpi4py import MPI
from omb_py.bindings.native import NativeBinding
from omb_py.buffers.bytearray import BytearrayMemory
from omb_py.core.calls import Call, Message
from omb_py.core.datatypes import find_types
from omb_py.core.errors import UnsupportedError
from omb_py.core.options import Options


(char,) = find_types(["mpi_char"])
memory = BytearrayMemory(memoryview(bytearray(8)))
message = Message(memory, char, (2**31,))
binding = NativeBinding(MPI.COMM_WORLD, Options())
try:
    binding.bind(Call("send", (message,), peer=MPI.PROC_NULL, tag=1))()
    print("sent")
except UnsupportedError as error:
    print(error)
"""


def test_counts_beyond_an_int_take_the_large_functions(mpi: str, tmp_path: Path) -> None:
    command = [mpi, "-n", "1", sys.executable, "-c", LARGE]
    job = run(command, {}, tmp_path, timeout=60)
    assert job.code == 0, job.err
    assert job.out.strip() in (
        "sent",
        "binding native cannot do it: this MPI library has no MPI_Send_c",
    )


def test_a_profiling_library_sees_native_calls(mpi: str, tmp_path: Path) -> None:
    source = tmp_path / "count.c"
    source.write_text(
        "#include <mpi.h>\n#include <stdio.h>\nstatic int calls;\n"
        "int MPI_Barrier(MPI_Comm comm) { calls++; return PMPI_Barrier(comm); }\n"
        'int MPI_Finalize(void) { fprintf(stderr, "barriers: %d\\n", calls);\n'
        "  return PMPI_Finalize(); }\n"
    )
    library = tmp_path / "libcount.so"
    compiler = [str(compilation.compiler()), "-shared", "-fPIC", "-o", str(library), str(source)]
    if subprocess.run(compiler, capture_output=True, check=False).returncode:
        pytest.skip("no C compiler")
    counts = []
    for iterations in ("100", "300"):
        arguments = ["barrier", "-i", iterations, "-x", "0", "--binding", "native"]
        launch = [mpi, "-n", "2", "env", f"LD_PRELOAD={library}"]
        job = run([*launch, OMB_PY, *arguments], {}, tmp_path, timeout=60)
        assert job.code == 0, job.err
        counts.append(int(job.err.split("barriers: ")[1].split()[0]))
    assert counts[1] - counts[0] == 200
