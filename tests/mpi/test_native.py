"""Binding native: what it says when its loop is not there, or a call fails."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from omb_py.core.errors import MissingError
from omb_py.tracing.recorder.library import compiler as mpi_compiler
from tests import ROOT
from tests.conftest import OMB_PY, Run, run, succeeded
from tests.helpers.battery import Battery, Line, each_line, line, passes
from tests.helpers.refusals import assert_refused, missing

QUICK = ("-i", "20", "-x", "1", "--sizes", "8", "--binding", "native")
NO_LIBRARIES = shutil.ignore_patterns("*.so", "__pycache__")
CHECKED = "-c -i 3 --sizes 8,4096"


def test_missing_compiled_loop_names_the_compiler(mpiexec: Run, tmp_path: Path) -> None:
    hidden = tmp_path / "sitecustomize.py"
    hidden.write_text(
        "import omb_py.bindings.compiled.loop as loop\nloop.FILE = '/nowhere/loop.so'\n"
    )
    job = mpiexec(2, "allreduce", *QUICK, PYTHONPATH=str(tmp_path))
    assert_refused(job, MissingError.exit_code, "no compiled loop gcc --binding prebound")


@pytest.mark.parametrize(
    ("tree", "system", "words"),
    [
        (True, "linux", "omb-py comes from {root}, a source tree that was never built: leave that"),
        (False, "linux", "there was no C compiler when omb-py was installed"),
        (True, "darwin", "it exists only on Linux"),
    ],
)
def test_missing_loop_names_a_source_tree_the_compiler_or_the_system(
    tmp_path: Path, tree: bool, system: str, words: str
) -> None:
    copied = shutil.copytree(ROOT / "omb_py", tmp_path / "omb_py", ignore=NO_LIBRARIES)
    if tree:
        (tmp_path / "pyproject.toml").touch()
    program = (
        f"import ctypes, sys; sys.platform = {system!r}; "
        "from omb_py.bindings.compiled.loop import compiled; compiled()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=copied.parent, env={}, capture_output=True, text=True
    )
    assert words.format(root=tmp_path) in done.stderr


@each_line(
    *(
        line(2, f"allgather {CHECKED} --buffer interface --binding {binding}")
        for binding in ("native", "prebound", "buffer")
    ),
    *(
        line(2, f"{name} {CHECKED} --buffer bytearray --binding native")
        for name in ("bw", "allreduce", "alltoallv", "scatter")
    ),
)
def test_memory_of_any_interface_is_sent_from_there(battery: Battery, line: Line) -> None:
    passes(battery(line), rows=2)


def test_a_failing_call_is_named(mpiexec: Run) -> None:
    job = mpiexec(2, "latency", *QUICK, "--sizes", "4,8", "--binding", "misdirected")
    assert_refused(job, 1, "MPI_Send failed: rank")
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
    job = succeeded(run(command, {}, tmp_path, timeout=60))
    assert job.out.strip() == "sent" or not missing("binding native no MPI_Send_c pkl5", job.out)


@pytest.mark.long
def test_a_profiling_library_sees_native_calls(mpi: str, tmp_path: Path) -> None:
    source = tmp_path / "count.c"
    source.write_text(
        "#include <mpi.h>\n#include <stdio.h>\nstatic int calls;\n"
        "int MPI_Barrier(MPI_Comm comm) { calls++; return PMPI_Barrier(comm); }\n"
        'int MPI_Finalize(void) { fprintf(stderr, "barriers: %d\\n", calls);\n'
        "  return PMPI_Finalize(); }\n"
    )
    library = tmp_path / "libcount.so"
    compiler = [mpi_compiler(), "-shared", "-fPIC", "-o", str(library), str(source)]
    if subprocess.run(compiler, capture_output=True, check=False).returncode:
        pytest.skip("no C compiler")
    counts = []
    for iterations in ("100", "300"):
        arguments = ["barrier", "-i", iterations, "-x", "0", "--binding", "native"]
        launch = [mpi, "-n", "2", "env", f"LD_PRELOAD={library}"]
        job = succeeded(run([*launch, OMB_PY, *arguments], {}, tmp_path, timeout=60))
        counts.append(int(job.err.split("barriers: ")[1].split()[0]))
    assert counts[1] - counts[0] == 200
