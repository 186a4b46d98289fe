"""What ``--samples`` costs: the seconds of a job, and of each row.

Usage: python -m perf.samples [ROUNDS]

Two ranks, latency with 1000 iterations, without ``--samples`` and with it, by turns: jobs of one
row, and of some. Prints medians of the job, and of what each further row adds, and the medians that
were measured.
"""

from __future__ import annotations

import sys
import tempfile
import time
from statistics import median

from perf.jobs import rows_of

FILES = {"without": "", "with": "run.npy"}
ROWS = 41


def measured(rows: int, file: str) -> tuple[float, float]:
    """The seconds of a job of so many rows, and the median of its first."""
    sizes = ",".join(str(size) for size in range(1, rows + 1))
    with tempfile.TemporaryDirectory() as folder:
        options = ["--samples", f"{folder}/{file}"] if file else []
        begin = time.perf_counter()
        found = rows_of("latency", "-i", "1000", "--sizes", sizes, *options)
        return time.perf_counter() - begin, float(found[0]["sample_p50_us"])


def main() -> None:
    """All by turns, and a table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    single: dict[str, list[tuple[float, float]]] = {name: [] for name in FILES}
    more: dict[str, list[float]] = {name: [] for name in FILES}
    for _ in range(rounds):
        for name, file in FILES.items():
            single[name].append(measured(1, file))
            seconds, _ = measured(ROWS, file)
            more[name].append((seconds - single[name][-1][0]) / (ROWS - 1))
    print(f"{'--samples':<10} {'job of one row':>15} {'each row more':>15} {'median':>10}")
    for name in FILES:
        job = median(seconds for seconds, _ in single[name])
        value = median(latency for _, latency in single[name])
        print(f"{name:<10} {job:13.3f} s {1e3 * median(more[name]):12.2f} ms {value:7.3f} us")


if __name__ == "__main__":
    main()
