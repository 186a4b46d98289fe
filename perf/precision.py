"""What ``--precision`` saves: the same interval of the median in how much of the time.

Usage: python -m perf.precision [ROUNDS]

Runs latency over 1 B to 1 MiB with the default counts and with ``--precision 2%``, alternately, and
prints for each size half the width of the median's 95 % interval and the iterations of each, and
the quotient of the medians; then the seconds that the whole job took and those of iterations alone.
"""

from __future__ import annotations

import sys
import time
from statistics import median

from perf.jobs import rows_of

WAYS = {"default counts": [], "--precision 2%": ["--precision", "2%", "-x", "auto"]}
SIZES = ["-m", "1:1048576"]


def run(options: list[str]) -> tuple[float, list[dict[str, str]]]:
    """The seconds of a job, and its rows."""
    begin = time.perf_counter()
    rows = rows_of("latency", *options)
    return time.perf_counter() - begin, rows


def width(row: dict[str, str]) -> float:
    """Half the interval of the median in percent of the median."""
    low, high = float(row["median_low_us"]), float(row["median_high_us"])
    return 50 * (high - low) / float(row["sample_p50_us"])


def iterating(row: dict[str, str]) -> float:
    """Seconds of timed and warm-up iterations: two messages each."""
    iterations = int(row["iterations"]) + int(row["warmup"])
    return 2e-6 * float(row["sample_mean_us"]) * iterations


def main() -> None:
    """Both ways alternately, and a table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    runs: dict[str, list[tuple[float, list[dict[str, str]]]]] = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, options in WAYS.items():
            runs[name].append(run([*SIZES, *options]))
    print(
        f"{'bytes':>8}"
        + "".join(f"{name + ': +/- %':>24}{'iterations':>12}" for name in WAYS)
        + f"{'medians':>12}"
    )
    for index, row in enumerate(runs["default counts"][0][1]):
        cells = ""
        for name in WAYS:
            rows = [found[index] for _, found in runs[name]]
            widths = median(width(row) for row in rows)
            cells += f"{widths:24.2f}{median(int(row['iterations']) for row in rows):12.0f}"
        medians = [
            median(float(found[index]["sample_p50_us"]) for _, found in runs[name]) for name in WAYS
        ]
        print(f"{row['bytes']:>8}{cells}{medians[1] / medians[0]:12.3f}")
    idle = median(run(["--sizes", "1", "-i", "1", "-x", "0"])[0] for _ in range(3))
    for name in WAYS:
        whole = median(seconds for seconds, _ in runs[name])
        loops = median(sum(map(iterating, rows)) for _, rows in runs[name])
        print(
            f"{name:<16} job {whole:.3f} s, of which {whole - idle:.3f} s measuring, {loops:.3f} s "
            "iterating"
        )


if __name__ == "__main__":
    main()
