"""How much launches differ and iterations within them, and how many of each are best.

T. Kalibera and R. Jones, *Rigorous benchmarking in reasonable time*, ISMM 2013: a number that has
a part of its own in each launch is known no better by more iterations. The variance of a launch's
number is B + W / n, of ``n`` iterations: B between launches, W of an iteration within them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, floor, inf, sqrt

import numpy as np
import pandas as pd
from scipy.stats import t as student

from omb_py.analysis.points import distinctions, group_ids, label
from omb_py.analysis.values import with_values
from omb_py.core.errors import UsageError
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits, duration, size_text, value_text
from omb_py.results.columns import CONFIGURATION, EXPERIMENT

KIND = (*EXPERIMENT, *CONFIGURATION)
"""What launches of one kind have in common: they measure the same, at the same message sizes."""

COLUMNS = (
    *("kind", *KIND, "bytes", "unit", "statistic", "launches", "iterations", "mean", "low", "high"),
    *("half_width", "within", "between", "share", "launch_seconds", "iteration_seconds"),
)
"""Columns of `launches`."""

NORMAL = 1.959964
"""Half of a 95 % interval in standard errors, where there are many samples."""

FEWEST_LAUNCHES = 5
"""Launches below which none are advised: Student's interval of 3 is twice as wide as that of 5."""

FEWEST_ITERATIONS = 10
"""Iterations below which none are advised: the median of fewer than 6 has no interval."""

MOST_LAUNCHES = 10_000
"""Launches beyond which a precision is said to be out of reach."""


def launches(
    rows: pd.DataFrame, runs: Mapping[str, Mapping[str, str]], statistic: str = "auto"
) -> pd.DataFrame:
    """Variances within and between repeated launches: a row for each point of `load`'s ``rows``.

    ``runs`` is the metadata of each run by its name. ``auto`` takes medians where all rows of a
    benchmark have one with its interval, else means. The columns:

    - ``kind``: a number for all points that the same launches measure; the columns of experiment
      and configuration; ``bytes``; ``statistic``, ``median`` or ``mean``;
    - ``launches``: how many; ``iterations`` of each (their harmonic mean);
    - ``mean`` of the launches' numbers in ``unit``, its 95 % interval ``low`` to ``high`` (of
      Student, over the launches), and ``half_width`` of that as a part of the mean;
    - ``within``: standard deviation of an iteration as a part of the mean. Of medians it is the
      standard error of a launch's median, a quarter of its interval's width or nearly, times the
      root of the iterations: neighbours that are alike count in it, and a few outliers do not;
    - ``between``: standard deviation between launches as a part of the mean, the root of the
      unbiased estimate of B: the variance of the launches' numbers less W / n, or 0 where that is
      below 0;
    - ``share``: which part of the variance of a launch's number is between launches, B/(B + W/n);
    - ``launch_seconds``: what a launch costs without its iterations, ``iteration_seconds``: what an
      iteration does; missing where the metadata do not say.

    Numbers are of times: of bandwidths, ``mean`` belongs to the mean time. Raises `UsageError`
    where no point was launched twice.
    """
    found = samples(rows, statistic)
    found = found.join(costs(found, runs))
    groups = found.groupby("place")
    table = found.drop_duplicates("place").set_index("place").reindex(columns=list(COLUMNS))
    table["launches"] = groups.size()
    table = table[table["launches"] > 1]
    if table.empty:
        raise UsageError(
            "no point was launched twice: repeat launches, as a sweep with launches = 5 does"
        )
    groups = found[found["place"].isin(table.index)].groupby("place")
    mean, spread, noise = groups["time"].mean(), groups["time"].std(), groups["noise"].mean()
    table["iterations"] = 1 / groups["iterations"].agg(lambda counts: (1 / counts).mean())
    table["within"] = np.sqrt(groups["variance"].mean()) / mean
    table["between"] = np.sqrt((spread**2 - noise).clip(lower=0)) / mean
    table["share"] = ((spread**2 - noise) / spread**2).clip(lower=0).where(spread > 0, 0.0)
    table["half_width"] = half_width(table["launches"], (spread / mean) ** 2)
    scale = groups["product"].mean()
    rate = table["unit"] != "us"
    ends = [mean * (1 + sign * table["half_width"]) for sign in (-1, 1)]
    table["mean"] = mean.where(~rate, scale / mean)
    table["low"] = ends[0].where(~rate, scale / ends[1])
    table["high"] = ends[1].where(~rate, (scale / ends[0]).where(ends[0] > 0, inf))
    for name in ("launch_seconds", "iteration_seconds"):
        table[name] = groups[name].median()
    return table.sort_values(["kind", "bytes"], kind="stable").reset_index(drop=True)


def samples(rows: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """Rows that tell how their iterations vary: ``time`` in us, an iteration's ``variance``, the
    ``noise`` that it leaves in the time, and the value times the time (``product``)."""
    rows = rows[rows["sample_mean_us"].gt(0) & rows["iterations"].gt(0) & rows["part"].isna()]
    with_interval = rows["sample_p50_us"].gt(0) & rows["median_high_us"].notna()
    by_median = with_interval.groupby(rows["benchmark"]).transform("all")
    if statistic != "auto":
        by_median = pd.Series(statistic == "median", rows.index)
        rows, by_median = (
            part[with_interval | (statistic == "mean")] for part in (rows, by_median)
        )
    found = with_values(rows.assign(by_median=by_median), "mean")
    found = found[found["value"] > 0]
    medians = found["by_median"].astype(bool)
    error = (found["median_high_us"] - found["median_low_us"]) / (2 * NORMAL)
    iterations = found["iterations"].astype(float)
    found["iterations"] = iterations
    found["time"] = found["sample_p50_us"].where(medians, found["sample_mean_us"])
    found["noise"] = (error**2).where(medians, found["sample_stddev_us"] ** 2 / iterations)
    found["variance"] = found["noise"] * iterations
    found["product"] = found["value"] * found["sample_mean_us"]
    found["statistic"] = medians.map({True: "median", False: "mean"})
    found["kind"] = group_ids(found[name] for name in KIND) if len(found) else []
    found["place"] = group_ids([found["kind"], found["bytes"]])
    return found.reset_index(drop=True)


def costs(found: pd.DataFrame, runs: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    """What a launch costs without its timed iterations, and an iteration, in seconds, by row.

    The seconds of all iterations of a run are shared out by the means of their samples.
    """
    known = pd.DataFrame.from_dict(dict(runs), orient="index").reindex(
        index=found["run"], columns=["launch_seconds", "iterating_seconds"]
    )
    total, iterating = (pd.to_numeric(known[name]).to_numpy(float) for name in known)
    warmup = found["warmup"].astype("Float64").fillna(0).astype(float)
    planned = found["sample_mean_us"] * (found["iterations"] + warmup)
    each = found["sample_mean_us"] * iterating / planned.groupby(found["run"]).transform("sum")
    warming = (each * warmup).groupby(found["run"]).transform("sum")
    return pd.DataFrame({"launch_seconds": total - iterating + warming, "iteration_seconds": each})


def half_width(launches: pd.Series, variance: pd.Series) -> pd.Series:
    """Half of the 95 % interval of the mean of launches whose numbers have a ``variance``."""
    return student.ppf(0.975, launches - 1) * np.sqrt(variance / launches)


def best_iterations(launch: float, iteration: float, within: float, between: float) -> float:
    """The iterations of a launch with which a given time tells most.

    ``launch`` and ``iteration`` are what they cost, ``within`` and ``between`` variances:
    ceil(sqrt(launch / iteration * within / between)), which is the repetition count of Kalibera and
    Jones (2013) for two levels; infinite where launches do not differ.

    >>> best_iterations(1.0, 0.001, 0.04, 0.01)
    64
    """
    return ceil(sqrt(launch / iteration * within / between)) if between > 0 else inf


@dataclass(frozen=True)
class Design:
    """So many launches, each of so many iterations at each message size, which take ``seconds``.

    ``half_width`` is half the 95 % interval, as a part of the mean, at the size where it is widest.
    """

    launches: int
    iterations: int
    half_width: float
    seconds: float


@dataclass(frozen=True)
class Kind:
    """What is known of launches of one kind: what they cost, and the variances at each size.

    ``within`` and ``between`` are relative variances, ``iteration`` is the cost of one iteration at
    every size.
    """

    launch: float
    iteration: float
    within: np.ndarray
    between: np.ndarray

    @property
    def best(self) -> float:
        """`best_iterations` for the mean of the sizes' variances; `FEWEST_ITERATIONS` at least."""
        means = float(self.within.mean()), float(self.between.mean())
        return max(FEWEST_ITERATIONS, best_iterations(self.launch, self.iteration, *means))

    def design(self, launches: int, iterations: int) -> Design:
        """What so many launches of so many iterations give."""
        variance = pd.Series(self.between + self.within / iterations)
        width = half_width(pd.Series(launches, variance.index), variance).max()
        seconds = launches * (self.launch + iterations * self.iteration)
        return Design(launches, iterations, float(width), seconds)

    def within_time(self, seconds: float) -> Design | None:
        """The best design that takes ``seconds`` at most; None where they are too few."""
        cost = self.launch + self.best * self.iteration
        about = floor(seconds / cost)
        designs = []
        for launches in {max(FEWEST_LAUNCHES, about), max(FEWEST_LAUNCHES, about + 1)}:
            iterations = floor((seconds / launches - self.launch) / self.iteration)
            if iterations >= FEWEST_ITERATIONS:
                designs.append(self.design(launches, iterations))
        return min(designs, key=lambda design: design.half_width, default=None)

    def to_within(self, precision: float) -> Design | None:
        """The cheapest design of half intervals of ``precision`` at most, a part of the mean.

        None where no number of launches up to `MOST_LAUNCHES` is enough.
        """
        fewest = FEWEST_LAUNCHES * (precision / student.ppf(0.975, FEWEST_LAUNCHES - 1)) ** 2
        if fewest > self.between.max():
            needed = ceil(float((self.within / (fewest - self.between)).max()))
            if needed <= self.best:
                return self.design(FEWEST_LAUNCHES, max(FEWEST_ITERATIONS, needed))
        number = np.arange(FEWEST_LAUNCHES, MOST_LAUNCHES + 1)
        worst = float((self.between + self.within / self.best).max())
        enough = student.ppf(0.975, number - 1) * np.sqrt(worst / number) <= precision
        return self.design(int(number[enough.argmax()]), int(self.best)) if enough.any() else None


def kind_of(points: pd.DataFrame) -> Kind | None:
    """What the points of one kind tell; None where they do not say what a launch costs."""
    launch = float(points["launch_seconds"].median())
    iteration = float(points["iteration_seconds"].sum(min_count=len(points)))
    if not (launch > 0 and iteration > 0):
        return None
    variances = (points[name].to_numpy(float) ** 2 for name in ("within", "between"))
    return Kind(launch, iteration, *variances)


def advice(points: pd.DataFrame, seconds: float | None, precision: float | None) -> str:
    """A sentence on the launches of one kind, and on those that would be better.

    In ``seconds``, or else in the time that these took; with a ``precision``, to reach it.
    """
    number = int(points["launches"].median())
    widest = points["half_width"].max()
    each = sorted({round(value) for value in points["iterations"]})
    iterations = f"{each[0]} to {each[-1]}" if len(each) > 1 else f"{each[0]}"
    yours = f"{number} launches of {iterations} iterations"
    known = kind_of(points)
    if known is None:
        return f"{yours} give {within(widest)}; the files do not say what a launch costs"
    per_launch = known.launch + float((points["iteration_seconds"] * points["iterations"]).sum())
    took = number * per_launch
    so_far = f"{yours} took {duration(took)} and give {within(widest)}"
    if precision is not None:
        design = known.to_within(precision)
        goal = f"for {within(precision)}"
    else:
        design = known.within_time(took if seconds is None else seconds)
        goal = "in the same time" if seconds is None else f"in {duration(seconds)}"
    if design is None and precision is not None:
        return f"{so_far}; {goal}, {MOST_LAUNCHES} launches would not be enough"
    if design is None:
        return f"{so_far}; {goal} there is no room for {FEWEST_LAUNCHES} launches"
    then = f"{design.launches} launches of {design.iterations} iterations"
    if precision is not None:
        return f"{so_far}; {goal}, {then} are best, in {duration(design.seconds)}"
    return f"{so_far}; {goal}, {then} would give {within(design.half_width)}"


def within(part: float) -> str:
    """Half the width of an interval as a percentage.

    >>> within(0.0213)
    '± 2.1 %'
    """
    return f"± {digits(100 * part, 2)} %"


def sheets(
    points: pd.DataFrame, seconds: float | None = None, precision: float | None = None
) -> Iterator[Sheet]:
    """A table of `launches` for each benchmark, and `advice` below it."""
    for benchmark, members in points.groupby("benchmark", sort=False):
        telling = distinctions(members)
        lines, remarks = [], []
        for _, kind in members.groupby("kind", sort=False):
            name = label([kind[column].iloc[0] for column in telling], telling)
            remarks.append(f"{name}: " * bool(name) + advice(kind, seconds, precision))
            lines += [(*[name] * bool(telling), *cells(row)) for row in kind.to_dict("records")]
        columns = ("size", "launches", "iterations", "mean", "interval", "within", "between")
        yield Sheet(
            f"{benchmark}, {members['statistic'].iloc[0]}s",
            (*["configuration"] * bool(telling), *columns, "share between"),
            tuple(lines),
            tuple(remarks),
            left=len(telling[:1]),
        )


def cells(row: Mapping[object, object]) -> tuple[str, ...]:
    """A point's numbers as text."""
    number = {str(name): float(str(value)) for name, value in row.items() if name in NUMBERS}
    return (
        "" if pd.isna(row["bytes"]) else size_text(number["bytes"]),
        str(row["launches"]),
        str(round(number["iterations"])),
        value_text(number["mean"], str(row["unit"])),
        within(number["half_width"]),
        f"{digits(100 * number['within'], 2)} %",
        f"{digits(100 * number['between'], 2)} %",
        f"{100 * number['share']:.0f} %",
    )


NUMBERS = ("bytes", "iterations", "mean", "half_width", "within", "between", "share")
