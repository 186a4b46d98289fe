"""What thread level costs: jobs at single and at multiple, alternately, since a job has only one.

Usage: python -m perf.thread_level [ROUNDS]   (8-byte latency on two ranks)
"""

from __future__ import annotations

import sys
from statistics import median

from omb_py.measure.turns import with_interval
from perf.jobs import rows_of

BINDINGS = ("native", "buffer")
LEVELS = ("single", "multiple")


def run(level: str) -> dict[str, float]:
    """The median of each binding in a job of this level, in microseconds."""
    options = ["--bindings", ",".join(BINDINGS), "--thread-level", level]
    rows = rows_of("overhead", "latency", "--sizes", "8", *options)
    return {row["binding"]: float(row["median_us"]) for row in rows if not row["split"]}


def main() -> None:
    """Both levels alternately, and the median of the differences."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    runs: dict[str, list[dict[str, float]]] = {level: [] for level in LEVELS}
    for _ in range(rounds):
        for level in LEVELS:
            runs[level].append(run(level))
    print(f"8-byte latency, {rounds} jobs at each level alternately, us")
    for binding in BINDINGS:
        single, multiple = ([found[binding] for found in runs[level]] for level in LEVELS)
        added, low, high = with_interval([b - a for a, b in zip(single, multiple, strict=True)])
        print(
            f"{binding:<10}single {median(single):.3f}  multiple {median(multiple):.3f}  "
            f"added {added:+.3f} [{low:+.3f}, {high:+.3f}]"
        )


if __name__ == "__main__":
    main()
