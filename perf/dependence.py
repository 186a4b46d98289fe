"""How often the interval of the median holds the median where samples depend on each other.

Usage: python -m perf.dependence [SERIES]

Draws AR(1) series (each sample is rho times the one before it, and noise) of different lengths and
prints the share of intervals that hold the true median, and their mean width, as for independent
samples and widened by the autocorrelation time; nominal are 95 %. Then what the time costs.
"""

from __future__ import annotations

import sys
import time
from math import nan, sqrt
from statistics import median

import numpy as np
from numpy.typing import NDArray

from omb_py.core.statistics import autocorrelation_time, median_interval

LENGTHS = (50, 100, 1000, 10_000)
RHOS = (0.0, 0.3, 0.6, 0.9)


def series(
    generator: np.random.Generator, count: int, length: int, rho: float
) -> NDArray[np.float64]:
    """So many stationary normal series; the median is 0."""
    found = generator.standard_normal((count, length))
    found[:, 1:] *= sqrt(1 - rho**2)
    for place in range(1, length):
        found[:, place] += rho * found[:, place - 1]
    return found


def coverage(drawn: NDArray[np.float64], widened: bool) -> tuple[float, float, float]:
    """The share of intervals that hold 0, of series that have none, and the mean width."""
    held, widths, without = 0, [], 0
    for samples in drawn.tolist():
        interval = median_interval(
            sorted(samples), autocorrelation_time(samples) if widened else 1.0
        )
        if interval is None:
            without += 1
            continue
        held += interval[0] <= 0 <= interval[1]
        widths.append(interval[1] - interval[0])
    there = len(drawn) - without
    return held / there if there else nan, without / len(drawn), float(np.mean(widths or [nan]))


def seconds(samples: list[float]) -> float:
    """What the autocorrelation time of samples takes, median of some."""
    taken = []
    for _ in range(11):
        begin = time.perf_counter()
        autocorrelation_time(samples)
        taken.append(time.perf_counter() - begin)
    return median(taken)


def main() -> None:
    """Both tables."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    generator = np.random.default_rng(1)
    print("| samples | rho | before | after | without interval | times as wide |")
    print("|---|---|---|---|---|---|")
    for length in LENGTHS:
        for rho in RHOS:
            drawn = series(generator, count, length, rho)
            before, after = coverage(drawn, False), coverage(drawn, True)
            print(
                f"| {length:,} | {rho} | {before[0]:.1%} | {after[0]:.1%} | {after[1]:.1%} "
                f"| {after[2] / before[2]:.2f} |",
                flush=True,
            )
    for length in (*LENGTHS[2:], 1_000_000):
        (alike,) = series(generator, 1, length, 0.9).tolist()
        growing = [float(number) for number in range(length)]
        print(
            f"{length:>9,} samples: {1e3 * seconds(alike):.3f} ms with rho 0.9, "
            f"{1e3 * seconds(growing):.3f} ms where they only grow, of which "
            f"{1e3 * timed_sort(alike):.3f} ms sort them"
        )


def timed_sort(samples: list[float]) -> float:
    """What sorting takes."""
    begin = time.perf_counter()
    sorted(samples)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
