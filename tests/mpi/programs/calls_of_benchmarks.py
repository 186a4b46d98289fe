"""The calls of MPI in one iteration of each benchmark, on each rank, as omb-py's recorder counts.

Usage: omb-py profile --folder FOLDER calls_of_benchmarks.py FOLDER FILE BENCHMARK…; FILE gets them.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import mpi4py

mpi4py.rc.thread_level = "multiple"

from mpi4py import MPI  # noqa: E402
from omb_test_required import required  # noqa: E402

import omb_py  # noqa: E402
from omb_py.benchmarks import find_benchmark  # noqa: E402
from omb_py.tracing.records.layout import CELL, path_in  # noqa: E402
from omb_py.tracing.records.reading import read  # noqa: E402

FEW, MANY = 20, 40
folder, output, *names = sys.argv[1:]
rank = MPI.COMM_WORLD.rank
FIELDS = [name for name, _ in CELL]


def recorded() -> Counter[str]:
    """The calls of this rank until now, by routine."""
    record = read(path_in(folder, rank), events=False)
    calls: Counter[str] = Counter()
    for values in record.cell_values():
        cell = dict(zip(FIELDS, values, strict=True))
        routine = record.name(cell["routine"]).removeprefix("MPI_")
        if not routine.endswith("(started)"):  # what a Start began; the Start counts
            calls[routine] += cell["calls"]
    return calls


def measured(name: str, iterations: int) -> Counter[str]:
    """The calls of this rank in one measurement of so many iterations."""
    benchmark = find_benchmark(name)
    more = required(benchmark, 64)
    if "threads" in benchmark.options:
        more["num_threads"] = "1:1"
    before = recorded()
    omb_py.run(name, iterations=iterations, warmup=0, **more)
    return recorded() - before


table = {}
for name in names:
    measured(name, 1)  # what is done once in a job is done then
    few, many = measured(name, FEW), measured(name, MANY)
    own = {one: (many[one] - few[one]) / (MANY - FEW) for one in sorted(many - few)}
    table[name] = MPI.COMM_WORLD.gather(own)
if rank == 0:
    Path(output).write_text(json.dumps(table))
