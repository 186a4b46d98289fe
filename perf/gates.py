"""How often `check` and `compare --fail-above` pass, and fail, results whose truth is known.

Usage: python -m perf.gates [check | compare] [--trials 100] [--seed 1] [--whole 1]

Made results of 80 benchmarks at 2 sizes, half of them in one size class. A launch has a lognormal
noise of a given standard deviation. It is independent from point to point, or half of its variance
is that of the benchmark's launch, or all of it that of the whole launch; or a benchmark is in one
of two states (``two states``), or Student's with 3 degrees of freedom (``heavy tails``), both with
the same standard deviation.

The statistics are the project's own functions on all trials at once. So that they are what the
commands do, the first trials (--whole) of each line go through `from_runs` and `check`, or
`compare` and `conclusion`, too, and the results must be the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from omb_py.analysis.compare.side_by_side import compare, launch_spreads
from omb_py.analysis.compare.summary import conclusion, slower_than
from omb_py.analysis.conclusion import FAILED, PASSED, UNDECIDED, WORDS
from omb_py.analysis.references_check import check
from omb_py.analysis.references_learned import LARGEST, SMALLEST, found_from, from_runs
from omb_py.analysis.table import of_rows
from omb_py.analysis.verdict import (
    LEVEL,
    ONE_SIDED,
    Interval,
    adjusted,
    by_runs,
    prediction,
    verdicts,
)

SERIES = 80
SIZES = np.array([(8, 64 if series % 2 else 1 << 20) for series in range(SERIES)]).ravel()
POINTS = len(SIZES)
SPREADS = (0.01, 0.02, 0.05, 0.10)
LIMIT = 1.05
NOISES = ("independent", "shared by half", "one for all", "two states", "heavy tails")


def noise(
    random: np.random.Generator, name: str, spread: float, trials: int, launches: int
) -> np.ndarray:
    """Logarithms of launches, by trial, point and launch."""
    shape = (trials, SERIES, 2, launches)
    if name == "independent":
        found = random.normal(size=shape)
    elif name == "shared by half":
        common = random.normal(size=(trials, SERIES, 1, launches))
        found = np.sqrt(0.5) * (common + random.normal(size=shape))
    elif name == "one for all":
        found = np.broadcast_to(random.normal(size=(trials, 1, 1, launches)), shape)
    elif name == "two states":
        states = random.integers(0, 2, (trials, SERIES, 1, launches)) * 2 - 1.0
        found = np.sqrt(0.9) * states + np.sqrt(0.1) * random.normal(size=shape)
    else:
        found = random.standard_t(3, size=shape) / np.sqrt(3)
    return spread * found.reshape(trials, POINTS, launches)


def rows_of(logs: np.ndarray) -> pd.DataFrame:
    """The rows of results with these logarithms, by point and launch."""
    same = {"benchmark": "allreduce", "hosts": 2, "placement": "H", "binding": "native"}
    same |= {"mpi": "MPICH 5.0.2", "suite": "omb-py"}
    rows = [
        same
        | {"run": f"run {run}", "ranks": 2 + point // 2, "bytes": int(SIZES[point])}
        | {"latency_us": float(np.exp(value))}
        for (point, run), value in np.ndenumerate(logs)
    ]
    return of_rows(rows, {}).rows


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    """A table's rows by ranks and size, as points are."""
    return table.sort_values(["ranks", "bytes"], ignore_index=True)


def spreads_of(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The spread between launches of each point, by trial, and its degrees of freedom."""
    trials, _, launches = logs.shape
    pairs = np.arange(trials * POINTS) // 2
    sizes = np.tile(SIZES, trials)
    runs = pd.DataFrame({"pair": np.repeat(pairs, launches), "value": np.exp(logs).ravel()})
    runs["bytes"] = np.repeat(sizes, launches).astype(float)
    spread, degrees = launch_spreads(pd.DataFrame({"pair": pairs, "bytes": sizes}), [runs])
    return spread.reshape(trials, POINTS), degrees.reshape(trials, POINTS)


class Checks(NamedTuple):
    """Of each trial: whether a healthy launch passed, and by point the limit and slowdowns.

    ``needed`` is the slowdown at which the new launch exceeds its limit, ``told`` that of which
    `sensitivity` says that it is found nine times of ten, all on logarithms.
    """

    passed: np.ndarray
    limits: np.ndarray
    needed: np.ndarray
    told: np.ndarray


def check_made(
    random: np.random.Generator, name: str, spread: float, launches: int, trials: int, whole: int
) -> Checks:
    """Learn references from launches and check one more, in each trial."""
    logs = noise(random, name, spread, trials, launches)
    new = noise(random, name, spread, trials, 1)[..., 0]
    known, degrees = spreads_of(logs)
    learned = prediction(known, degrees, float(launches), POINTS)
    limits = np.clip(learned, np.log1p(SMALLEST), np.log1p(LARGEST))
    needed = limits - (new - np.median(logs, axis=2))
    passed = (needed >= 0).all(axis=1)
    for trial in range(whole):
        own = from_runs(rows_of(logs[trial]), "made")
        tolerances = in_order(own)["high"].to_numpy(float)
        assert np.allclose(tolerances, np.expm1(limits[trial]), atol=1e-4)
        checked = check(rows_of(new[trial][:, None]), own, "made")
        assert (checked.conclusion.exit_code == 0) == passed[trial]
    told = np.log1p(found_from(limits, known, degrees, float(launches)))
    return Checks(passed, limits, needed, told)


def checks(trials: int, seed: int, whole: int) -> Iterator[str]:
    """Yield a line for each kind of noise, spread and number of launches.

    ``passes``: healthy launches that pass the whole check; ``limit``: its median; ``seen``: the
    slowdown that is above the limit with a chance of 90 %; ``told``: the median of those that
    `sensitivity` tells, and how often these are ``found``.
    """
    columns = ("passes", "limit", "seen", "told", "found")
    yield f"{'noise':16}{'spread':>7}{'launches':>9}" + "".join(f"{name:>9}" for name in columns)
    random = np.random.default_rng(seed)
    for name, spread, launches in product(NOISES, SPREADS, (3, 5, 10, 20)):
        made = check_made(random, name, spread, launches, trials, whole)
        parts = (
            *(made.passed.mean(), np.expm1(np.median(made.limits))),
            *(np.expm1(np.quantile(made.needed, 0.9)), np.expm1(np.median(made.told))),
            (made.told > made.needed).mean(),
        )
        yield f"{name:16}{spread:7.0%}{launches:9}" + "".join(f"{part:9.0%}" for part in parts)


def judged(base: np.ndarray, other: np.ndarray) -> pd.DataFrame:
    """The points of all trials as `compare` judges them, in its columns."""
    trials = len(base)
    logs = [side.reshape(trials * POINTS, -1) for side in (base, other)]
    values = [np.exp(side) for side in logs]
    found, ends = (by_runs(values[0], values[1], level) for level in (LEVEL, ONE_SIDED))
    ratio = np.median(values[1], axis=1) / np.median(values[0], axis=1)
    low, high = np.minimum(found.low, ratio), np.maximum(found.high, ratio)
    trial = pd.Series(np.repeat(np.arange(trials), POINTS))
    p_adjusted = adjusted(pd.Series(found.p_value), trial).to_numpy(float)
    verdict = verdicts(Interval(ratio, low, high, found.p_value), p_adjusted)
    slowdown = {"slowdown": ratio, "slowdown_low": low, "slowdown_high": high}
    bound = np.maximum(ends.high, ratio)
    return pd.DataFrame({"trial": trial, **slowdown, "slowdown_bound": bound, "verdict": verdict})


def compare_made(
    random: np.random.Generator,
    name: str,
    spread: float,
    launches: int,
    slower: int,
    trials: int,
    whole: int,
) -> np.ndarray:
    """Return the word that each comparison ends with, of launches a side of which the other's are
    1.1 times slower in the first points."""
    base, other = (noise(random, name, spread, trials, launches) for _ in "ab")
    other = other + np.log(1.1) * (np.arange(POINTS) < slower)[:, None]
    points = judged(base, other)
    masks = slower_than(points, LIMIT)
    slow, may_be = (mask.groupby(points["trial"]).any().to_numpy() for mask in masks)
    words = np.select([slow, may_be], [WORDS[FAILED], WORDS[UNDECIDED]], WORDS[PASSED])
    for trial in range(whole):
        real = compare(rows_of(base[trial]), rows_of(other[trial]))
        mine = points[points["trial"] == trial]
        assert in_order(real)["verdict"].tolist() == mine["verdict"].tolist()
        assert WORDS[conclusion(real, LIMIT).exit_code] == words[trial]
    return np.asarray(words)


def comparisons(trials: int, seed: int, whole: int) -> Iterator[str]:
    """Yield a line for each truth, kind of noise, spread and number of launches a side."""
    yield f"{'truth':10}{'noise':16}{'spread':>7}{'launches':>9}" + "".join(
        f"{word:>13}" for word in WORDS.values()
    )
    random = np.random.default_rng(seed)
    for truth, slower in {"A/A": 0, "one 1.1x": 1, "all 1.1x": POINTS}.items():
        names = NOISES if truth == "A/A" else NOISES[:2]
        for name, spread, launches in product(names, SPREADS, (5, 10, 20)):
            words = compare_made(random, name, spread, launches, slower, trials, whole)
            yield f"{truth:10}{name:16}{spread:7.0%}{launches:9}" + "".join(
                f"{(words == word).mean():13.0%}" for word in WORDS.values()
            )


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["check", "compare"])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--whole", type=int, default=1)
    given = parser.parse_args()
    tables = {"check": checks, "compare": comparisons}
    for what in given.what:
        for line in tables[what](given.trials, given.seed, given.whole):
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
