"""Every benchmark where rank 1 has no memory, and what each rank is told: FILE gets it.

Usage: scarce_memory.py FILE BENCHMARK…
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
errors = {}
for name in names:
    benchmark = find_benchmark(name)
    more = required(benchmark, 64, f"{output}.data")
    if "window_kind" in benchmark.options:
        more["w"] = "create"
    try:
        omb_py.run(name, buffer="scarce", iterations=1, warmup=0, **more)
    except omb_py.OmbError as error:
        errors[name] = str(error)
found = MPI.COMM_WORLD.gather(errors)
if MPI.COMM_WORLD.rank == 0:
    Path(output).write_text(json.dumps(found))
