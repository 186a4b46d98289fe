"""What handing an array to MPI costs on the processor, part by part, in microseconds.

Usage: mpiexec -n 1 python -m perf.device_lookup BUFFER     (CSV on standard output)

Each part is run in blocks that take turns; a part's time is the median over the blocks.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from itertools import repeat
from statistics import median
from time import perf_counter
from typing import Any

from omb_py.buffers import BUFFERS
from omb_py.core.datatypes import find_types

CALLS = 2000
BLOCKS = 21


def main() -> None:
    (char,) = find_types(["mpi_char"])
    buffer = BUFFERS.load(sys.argv[1]).prepare(0)
    memory = buffer.allocate(8, char)
    memory.fill(b"\1")
    from mpi4py import MPI

    array = memory.array
    parts: dict[str, Callable[[], Any]] = {
        "__cuda_array_interface__": lambda: array.__cuda_array_interface__,
        "__dlpack__": lambda: array.__dlpack__(stream=-1),
        "lookup by mpi4py": lambda: MPI.buffer.frombuffer(array),
        "an empty call": lambda: None,
    }
    wait = buffer.wait()
    if wait is not None:
        parts["waiting for the idle stream"] = wait.run
    seconds: dict[str, list[float]] = {}
    for _ in range(BLOCKS):
        for name, part in list(parts.items()):
            try:
                begin = perf_counter()
                for _ in repeat(None, CALLS):
                    part()
                seconds.setdefault(name, []).append((perf_counter() - begin) / CALLS)
            except (AttributeError, NotImplementedError, TypeError, ValueError):
                del parts[name]
    empty = median(seconds["an empty call"])
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["buffer", "part", "microseconds"])
    for name, values in seconds.items():
        if name in parts:
            time = median(values) - (0 if name == "an empty call" else empty)
            writer.writerow([sys.argv[1], name, f"{1e6 * time:.3f}"])
    MPI.Finalize()
    parts.clear()
    buffer.close()


if __name__ == "__main__":
    main()
