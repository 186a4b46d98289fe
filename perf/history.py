"""How long `omb-py history` takes, and how often it finds changes that are there, and others.

Usage: python -m perf.history [--runs 5000] [--points 50] [--series 200] [--skip-time | --gate]

Writes a CSV file for each run as omb-py would have, one an hour, and prints the seconds of reading
and of analysing. Then it judges made series with a noise of 2 %: steps, drifts, outliers and gaps.
Last, or with --gate only, it prints what the gate says of flat series and of slow newest runs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from omb_py.results.columns import Row
from omb_py.results.csv_json import cell, header_of

NOISE = 0.02
FIRST = datetime(2026, 1, 1)
BENCHMARKS = ("latency", "allreduce", "alltoall", "bcast", "allgather", "reduce", "gather")
NEAR = 2
"""Runs by which a change that is found may be off."""

BEFORE, AFTER = 100, 20
"""Runs before and after a step."""

Random = np.random.Generator


def write(folder: Path, runs: int, points: int) -> None:
    """A file for each run, in which a third of the points take 10 % longer from two thirds on."""
    random = np.random.default_rng(1)
    for number in range(runs):
        name = f"{FIRST + timedelta(hours=number):%Y%m%dT%H%M%SZ}-{number:06x}"
        library = f"MPICH Version: 5.0.{1 + (number >= 2 * runs // 3)}"
        lines = [f"# run: {name}\n", "# omb_py: 0.1.0\n", "# processor: AMD EPYC 9654\n"]
        lines += ["# hosts: node1:2\n", f"# mpi_library: {library}\n", header_of(Row.columns)]
        for point in range(points):
            level = 1 + point + (0.1 * (1 + point) if 3 * number >= 2 * runs and point % 3 else 0)
            row = Row(
                run=name,
                benchmark=BENCHMARKS[point % len(BENCHMARKS)],
                bytes=1 << point // len(BENCHMARKS),
                ranks=2,
                buffer="numpy",
                binding="native",
                latency_us=level * random.lognormal(0, NOISE),
            )
            lines.append(",".join(map(cell, (getattr(row, name) for name in Row.columns))) + "\n")
        (folder / f"{name}.csv").write_text("".join(lines))


def measure(runs: int, points: int) -> None:
    """Print the seconds of reading and of analysing so many runs."""
    from omb_py.analysis.history import history, summary
    from omb_py.analysis.table import load

    with tempfile.TemporaryDirectory() as temporary:
        write(Path(temporary), runs, points)
        began = time.perf_counter()
        results = load(temporary)
        loaded = time.perf_counter()
        found = history(results)
        ended = time.perf_counter()
    print(f"{runs} runs of {points} points: {summary(found)}")
    print(f"reading {loaded - began:.1f} s, analysing {ended - loaded:.1f} s")


def noise(random: Random, runs: int) -> np.ndarray:
    """Values without any change."""
    return 10 * random.lognormal(0, NOISE, runs)


def with_outliers(random: Random, runs: int) -> np.ndarray:
    """Values of which one in fifty is 30 % above the others."""
    return noise(random, runs) * np.where(random.random(runs) < 0.02, 1.3, 1.0)


def step(size: float, after: int) -> Callable[[Random], np.ndarray]:
    """Values with outliers and a step after `BEFORE` runs."""
    factor = np.where(np.arange(BEFORE + after) < BEFORE, 1.0, 1 + size)
    return lambda random: with_outliers(random, BEFORE + after) * factor


def rates(series: int) -> None:
    """Print the share of steps that are found, and how many changes are found where none is."""
    from omb_py.analysis.history import starts_of

    random = np.random.default_rng(2)
    print(f"\nsteps after {BEFORE} runs, {series} series each, 2 % outliers of 30 %")
    for size in (0.05, 0.1, 0.2):
        for after in (5, AFTER, BEFORE):
            hits = others = 0
            for _ in range(series):
                starts = starts_of(step(size, after)(random))[1:]
                near = [one for one in starts if abs(one - BEFORE) <= NEAR]
                hits += bool(near)
                others += len(starts) - len(near)
            print(
                f"{size:5.0%}, {after:3} runs after it: found {hits / series:6.1%} within {NEAR} "
                f"runs, {others / series:.3f} other changes a series"
            )
    print(f"\nno step, 1000 runs, {series} series each: changes found in 1000 runs")
    steady: dict[str, Callable[[], np.ndarray]] = {
        "noise": lambda: noise(random, 1000),
        "outliers": lambda: with_outliers(random, 1000),
        "gaps": lambda: with_outliers(random, 1300)[random.random(1300) < 1000 / 1300],
        "drift of 10 %": lambda: noise(random, 1000) * np.linspace(1, 1.1, 1000),
        "Laplace noise": lambda: 10 * np.exp(random.laplace(0, NOISE / 2**0.5, 1000)),
    }
    for name, made in steady.items():
        found = [len(starts_of(made())) - 1 for _ in range(series)]
        print(f"{name:14} {np.mean(found):.3f}, in {np.mean(np.array(found) > 0):.1%} of series")


LIMIT = 1.05
FAILS, PASSES, UNSURE = False, True, None


def shares(made: Callable[[], np.ndarray], series: int) -> dict[bool | None, float]:
    """Return the shares of made series that pass, fail, and of which the gate cannot tell."""
    from omb_py.analysis.history import Series, outliers_of, starts_of
    from omb_py.analysis.history_gate import verdict

    said: list[bool | None] = []
    for _ in range(series):
        values = made()
        dates = tuple(FIRST + timedelta(days=day) for day in range(len(values)))
        starts = starts_of(values)
        outliers = tuple(outliers_of(values, starts))
        names = tuple(map(str, dates))
        one = Series("made", {"unit": "us"}, names, dates, values, starts, outliers)
        said.append(verdict(one, LIMIT)[0])
    return {kind: said.count(kind) / series for kind in (FAILS, PASSES, UNSURE)}


def gate(series: int) -> None:
    """Print how often the gate fails, or cannot tell, for flat series and for slow newest runs."""
    random = np.random.default_rng(3)

    def flat(deviation: float, runs: int) -> np.ndarray:
        return np.asarray(10 * random.lognormal(0, deviation, runs))

    print(f"\ngate of {LIMIT - 1:.0%}, {series} flat series each: FAIL / CANNOT TELL, in percent")
    lengths = (10, 16, 30, 60, 200)
    print("noise    " + "".join(f"{runs:>8} runs" for runs in lengths))

    def line(name: str, made: Callable[[int], np.ndarray]) -> None:
        found = [shares(lambda runs=runs: made(runs), series) for runs in lengths]  # type: ignore[misc]
        cells = (f"{100 * one[FAILS]:6.2f}/{100 * one[UNSURE]:5.2f} " for one in found)
        print(f"{name:9}" + "".join(cells))

    for deviation in (0.01, 0.02, 0.05, 0.1):
        line(f"{deviation:.0%}", lambda runs, own=deviation: flat(own, runs))  # type: ignore[misc]
    line("2%, odd", lambda runs: with_outliers(random, runs))
    laplace = NOISE / 2**0.5
    line("2%, wide", lambda runs: np.asarray(10 * np.exp(random.laplace(0, laplace, runs))))
    print("odd: one run in fifty is 30 % slower; wide: Laplace's distribution")

    print(f"\n60 runs, the newest ones slower, {series // 10} series each: FAIL / CANNOT TELL")
    newest = (1, 2, 3, 4, 5, 8)
    print("noise, slower    " + "".join(f"{runs:>4} newest" for runs in newest))
    for deviation in (0.01, 0.02, 0.05, 0.1):
        for slower in (1.1, 1.2, 1.5, 3.0):
            found = [
                shares(
                    lambda own=deviation, by=slower, last=runs: (  # type: ignore[misc]
                        flat(own, 60) * np.where(np.arange(60) < 60 - last, 1.0, by)
                    ),
                    series // 10,
                )
                for runs in newest
            ]
            cells = (f"{100 * one[FAILS]:5.0f}/{100 * one[UNSURE]:3.0f} " for one in found)
            print(f"{deviation:5.0%}, {slower:4.2f}x     " + "".join(cells))


def main() -> None:
    """Print seconds, then rates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--points", type=int, default=50)
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--skip-time", action="store_true", help="print rates alone")
    parser.add_argument("--gate", action="store_true", help="print what the gate says alone")
    asked = parser.parse_args()
    if asked.gate:
        gate(asked.series)
        return
    if not asked.skip_time:
        measure(asked.runs, asked.points)
    rates(asked.series)
    gate(asked.series)


if __name__ == "__main__":
    main()
