"""The row of each benchmark on the clock of binding `clock`, whose calls take known times.

Usage: on_a_set_clock.py FILE BENCHMARK…; FILE gets the rows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import mpi4py

mpi4py.rc.thread_level = "multiple"

from mpi4py import MPI  # noqa: E402
from omb_test_required import required  # noqa: E402

import omb_py  # noqa: E402
from omb_py.benchmarks import find_benchmark  # noqa: E402

output, *names = sys.argv[1:]
rows = {}
for name in names:
    benchmark = find_benchmark(name)
    more = required(benchmark, 1024, f"{output}.data", node=2)
    more |= {"iterations": 4, "warmup": 1, "tail_lat": "50,99"}
    if "threads" in benchmark.options:  # each of two threads makes every second iteration
        more |= {"num_threads": "2:2", "iterations": 8, "warmup": 2}
    if measured := omb_py.run(name, binding="clock", **more):
        rows[name] = measured.rows[-1]
if MPI.COMM_WORLD.rank == 0:
    Path(output).write_text(json.dumps(rows, default=str))
