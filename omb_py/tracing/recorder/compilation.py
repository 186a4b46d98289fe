"""The library that intercepts calls: its source put together, and compiled."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from omb_py.core.errors import UsageError
from omb_py.tracing.records import layout
from omb_py.tracing.records.routines import STARTED

if TYPE_CHECKING:
    from omb_py.tracing.recorder.wrappers import Declaration

HERE = Path(__file__).parent
HEADER, LIBRARY = "generated.h", "library.c"
FLAGS = ("-O2", "-fPIC", "-shared", "-w", "-pthread")
STEPS, SECONDS_OF_A_STEP = 4, 120.0
"""Runs of the compiler with the check, and the time limit of each."""
UNFINISHED = ".recorder-"  # begins the name of a folder in which a library is made
LINES_OF_COMPILER = 3

C_TYPES = {"i": "int32_t {}", "q": "int64_t {}", "d": "double {}", "64s": "char {}[64]"}
C_TYPES["32s"] = "int32_t {}[PEERS]"
INCLUDES = (
    "dlfcn errno fcntl inttypes mpi pthread sched stdbool stddef stdint stdio stdlib string "
    "sys/mman sys/stat sys/syscall time unistd"
).split()


def compile_library(mpicc: str, path: str) -> str:
    """Compile the library to a path, whole or not at all; raises `UsageError` if that fails."""
    try:
        beside = Path(path).parent
        beside.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=beside, prefix=UNFINISHED) as folder:
            made = build(mpicc, Path(folder))
            check(made, mpicc)
            made.chmod(0o755)
            os.replace(made, path)
    except OSError as error:
        raise UsageError(
            f"cannot write {path} ({error.strerror or error}): set OMB_PY_CACHE_DIR to a folder "
            "that can be written"
        ) from error
    return path


def build(mpicc: str, folder: Path) -> Path:
    """Write the source into a folder and compile it there."""
    from omb_py.tracing.recorder.wrappers import declarations

    header = folder / "declared.c"
    header.write_text("#include <mpi.h>\n")
    declared = declarations(_run([mpicc, "-E", str(header)], mpicc))
    for name, text in generated(declared).items():
        (folder / name).write_text(text)
    library = folder / "recorder.so"
    shown = _run([mpicc, "-show"], mpicc).split()
    paths = [word[2:] for word in shown if word.startswith("-L") and len(word) > 2]
    # mpi4py loads its library for itself alone: what stands before it must find its own way
    mpi = "-lmpi_abi" if "-lmpi_abi" in shown else "-lmpi"
    linked = [mpi, *(f"-Wl,-rpath,{path}" for path in paths)]
    included = (f"-I{folder}", f"-I{HERE}")
    _run([mpicc, *FLAGS, *included, "-o", str(library), str(folder / LIBRARY), *linked], mpicc)
    return library


def generated(declared: Mapping[str, Declaration]) -> dict[str, str]:
    """Return the generated files for a library that declares these functions, by their names.

    `HEADER` is included by the C files next to this module; `LIBRARY` is all of them, and wrappers.
    """
    from omb_py.tracing.recorder.wrappers import HAND_WRITTEN, declared_wrappers, definition

    found = list(declared_wrappers(declared))
    routines = list(dict.fromkeys([*HAND_WRITTEN, *(wrapper.routine for wrapper, _ in found)]))
    numbers = "".join(f"    ROUTINE_{name},\n" for name in routines)
    rows = "".join(f'    {{.name = "MPI_{name}"}},\n' for name in routines)
    header = [
        "#define _GNU_SOURCE",
        *(f"#include <{name}.h>" for name in INCLUDES),
        *constants(),
        *map(structure, ("header", "cell", "event", "thread"), LAYOUTS),
        f"enum routine_number {{\n{numbers}    ROUTINES\n}};",
        "struct routine { const char *name; int number, started; struct cell *last; };",
        f"static struct routine routines[ROUTINES] = {{\n{rows}}};\n",
    ]
    library = [
        '#include "recorder_wrappers.c"',
        *(definition(wrapper, function) for wrapper, function in found),
    ]
    return {HEADER: "\n".join(header), LIBRARY: "\n".join(library)}


def constants() -> list[str]:
    """Return the constants that Python and C share, as definitions in C."""
    numbers = {kind.name: int(kind) for kind in layout.EventKind} | {
        name: getattr(layout, name) for name in CONSTANTS
    }
    hashing = {name: getattr(layout, name) for name in ("FNV_START", "FNV_PRIME")}
    return [
        f'#define STARTED "{STARTED}"',
        *(f"#define {name} ({number})" for name, number in numbers.items()),
        *(f"#define {name} UINT64_C({number})" for name, number in hashing.items()),
    ]


LAYOUTS = (layout.HEADER, layout.CELL, layout.EVENT, layout.THREAD)
CONSTANTS = [
    *"NOBODY ANYONE PEERS UNKNOWN_BYTES BIN_1_BYTES BETWEEN ELSEWHERE".split(),
    *layout.ORDER,
]


def structure(name: str, fields: tuple[tuple[str, str], ...]) -> str:
    """Return a structure in C with the fields of a record's part, which leave no gaps."""
    rows = "".join(f"    {C_TYPES[kind].format(field)};\n" for field, kind in fields)
    size = sum(layout.TYPES[kind] for _, kind in fields)
    checked = f'_Static_assert(sizeof(struct {name}) == {size}, "fields of {name}");'
    return f"struct {name} {{\n{rows}}};\n{checked}"


def check(library: Path, mpicc: str) -> None:
    """Raise `UsageError` if mpi4py loads another MPI library than the compiler's."""
    program = (
        "import ctypes, mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI\n"
        "def loaded():\n"
        "    with open('/proc/self/maps') as maps:\n"
        "        words = [line.split()[-1] for line in maps]\n"
        "    return {w for w in words if w.rpartition('/')[2].startswith('libmpi')}\n"
        f"before = loaded(); ctypes.CDLL({str(library)!r}); more = loaded() - before\n"
        "print(*before, sep=', ', end='\\n' + ', '.join(more))\n"
    )
    if not Path("/proc/self/maps").exists():
        return
    mine, theirs, *_ = [*_run([sys.executable, "-c", program], mpicc).split("\n"), ""]
    if theirs:
        raise UsageError(
            f"mpi4py loads {mine}, but {mpicc} belongs to {theirs}: put the compiler of mpi4py's "
            "library first on PATH"
        )


def _run(command: list[str], mpicc: str) -> str:
    """Return the output of a command; raises `UsageError` if it fails."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS_OF_A_STEP,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        failed, said = done.returncode != 0, done.stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        failed, said = True, str(error)
    if failed:
        lines = [line for line in said.splitlines() if "error" in line.lower() or "not" in line]
        shown = "; ".join((lines or said.splitlines())[:LINES_OF_COMPILER])
        raise UsageError(
            f"{mpicc} cannot compile profile's library ({shown}): load a C compiler that it can "
            "use, for profile alone; all else works without"
        )
    return done.stdout
