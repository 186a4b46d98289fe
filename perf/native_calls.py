"""Calls of MPI in an iteration of native OMB: the facts of `tests/data/native-calls.json`.

Usage: python -m perf.native_calls DIR > tests/data/native-calls.json

DIR has native OMB 7.4, built with this environment's MPI. Each program runs under a counter of all
MPI routines (preloaded; its functions call MPI's own by the profiling interface, PMPI), once with
20 and once with 40 iterations of a size: the difference, divided by 20, is what an iteration calls.
The table has, for each program, the calls of each rank.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from omb_py.benchmarks import Benchmark, own_benchmarks
from omb_py.core.errors import UsageError
from omb_py.sweeps.compare_native import find_binary
from omb_py.tracing.recorder.library import compiler
from perf.jobs import BIN, ENVIRONMENT, compile_c
from perf.native import NODES, THREADS, ranks_of

FEW, MANY = 20, 40
PROTOTYPE = re.compile(r"\bint\s+MPI_(\w+)\s*\(([^;{}()]*)\)")
PARAMETER = re.compile(r"(\w+)\s*(?:\[[^\]]*\])*\s*$")
WITHOUT = {"Init", "Init_thread", "Finalize", "Abort", "Pcontrol", "Get_processor_name"}
"""Routines of other kinds."""

BEGIN = f"""{NODES}
#include <stdlib.h>
#include <unistd.h>
"""
END = """
static int process, finalized;
__attribute__((constructor)) static void begin(void) { process = getpid(); }

int MPI_Finalize(void)
{
    finalized = 1;
    return PMPI_Finalize();
}

__attribute__((destructor)) static void write_counts(void)
{
    char path[4096];
    const char *rank = getenv("PMI_RANK");
    rank = rank ? rank : getenv("OMPI_COMM_WORLD_RANK");
    if (!rank || getpid() != process) /* the launcher, or a forked process */
        return;
    snprintf(path, sizeof path, "%s.%s", getenv("CALLS"), rank);
    FILE *file = fopen(path, "w");
    for (int index = 0; index < COUNTED; index++)
        if (calls[index])
            fprintf(file, "%s %ld\\n", names[index], calls[index]);
    fclose(file);
    if (!finalized) /* as latency_mt: the launcher kills the others when this one ends */
        sleep(1);
}
"""


def counter_source() -> str:
    """Return a C library that counts the calls of every routine that mpi.h declares."""
    command = [compiler(), "-E", "-x", "c", "-"]
    header = subprocess.run(
        command,
        input="#include <mpi.h>",
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    routines = {
        name: parameters
        for name, parameters in PROTOTYPE.findall(header)
        if name not in WITHOUT and "..." not in parameters and not name.startswith("T_")
    }
    names = ", ".join(f'"{name}"' for name in routines)
    parts = [f"enum {{ COUNTED = {len(routines)} }};\nstatic long calls[COUNTED];"]
    parts.append(f"static const char *names[] = {{ {names} }};")
    for number, (name, parameters) in enumerate(routines.items()):
        given = [PARAMETER.search(one) for one in parameters.split(",")]
        passed = ", ".join(one[1] for one in given if one and one[1] != "void")
        parts.append(
            f"int MPI_{name}({parameters}) {{ calls[{number}]++; return PMPI_{name}({passed}); }}"
        )
    return BEGIN + "\n".join(parts) + END


def counted(command: list[str], ranks: int, library: Path) -> list[Counter[str]]:
    """Return the calls of each rank of a run."""
    with tempfile.TemporaryDirectory() as folder:
        preload = {"LD_PRELOAD": str(library), "CALLS": f"{folder}/calls"}
        launch = [str(BIN / "mpiexec"), "-n", str(ranks)]
        # latency_mt does not finalize MPI, which some launchers call a failure
        subprocess.run(
            [*launch, *command], env=ENVIRONMENT | preload, check=False, capture_output=True
        )
        lines = [Path(folder, f"calls.{rank}").read_text().split() for rank in range(ranks)]
    return [Counter(dict(zip(one[::2], map(int, one[1::2]), strict=True))) for one in lines]


def of_an_iteration(benchmark: Benchmark, place: Path, library: Path) -> list[dict[str, float]]:
    """Return the calls of each rank in one iteration of native OMB's program."""
    ranks = ranks_of(benchmark)
    words = ["-m", "64:64"] if benchmark.sized else []
    command = [str(find_binary(place, benchmark.name)), *words, *THREADS.get(benchmark.name, ())]
    few, many = (
        counted([*command, "-i", str(number), "-x", "0"], ranks, library) for number in (FEW, MANY)
    )
    return [
        {name: (calls[name] - less[name]) / (MANY - FEW) for name in sorted(calls - less)}
        for less, calls in zip(few, many, strict=True)
    ]


def main() -> None:
    place = Path(sys.argv[1])
    table: dict[str, list[dict[str, float]]] = {}
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "counter.c"), Path(folder, "counter.so")
        source.write_text(counter_source())
        compile_c(str(source), str(library), "-shared", "-fPIC", "-w")
        for benchmark in own_benchmarks():
            if not (benchmark.native and benchmark.planned):
                continue
            try:
                table[benchmark.name] = of_an_iteration(benchmark, place, library)
            except (subprocess.CalledProcessError, OSError, UsageError) as error:
                print(f"{benchmark.name}: left out: {error}", file=sys.stderr)
    lines = (f"{json.dumps(name)}: {json.dumps(calls)}" for name, calls in table.items())
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
