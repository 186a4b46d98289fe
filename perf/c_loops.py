"""Binding native beside the same loops in C: one job, one process, alternately.

Usage: python -m perf.c_loops [ROUNDS]   (compiles perf/reference.c with the MPI's own mpicc -O2)

Prints, for latency, windowed bandwidth and allreduce on two ranks, the medians of C and of binding
native, their difference and their ratio, with 95 % intervals over the rounds.
"""

from __future__ import annotations

import sys

from perf.contenders import compare

SIZES = tuple(1 << power for power in range(23))


def main() -> None:
    """A table for each benchmark; an allreduce has at least one integer."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    for benchmark, sizes in {"latency": SIZES, "bw": SIZES, "allreduce": SIZES[2:]}.items():
        compare(benchmark, sizes, ["C", "native"], rounds)


if __name__ == "__main__":
    main()
