"""Results against results: how much slower or faster, and whether that is more than noise."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.compare.pairing import pair
from omb_py.analysis.judging import check_part, refuse_wrong
from omb_py.analysis.points import points_of, sizes_of
from omb_py.analysis.sources import short_names
from omb_py.analysis.table import Source, results_of
from omb_py.analysis.values import (
    NUMBERS,
    TAIL,
    TAIL_COLUMNS,
    TAIL_ITERATIONS,
    check_statistic,
    rounding,
    tails,
    with_values,
)
from omb_py.analysis.verdict import (
    LAUNCHES_FOR_SPREAD,
    LEVEL,
    MARGIN,
    ONE_SIDED,
    Interval,
    adjusted,
    by_runs,
    by_samples,
    enough,
    verdicts,
    with_launches,
)
from omb_py.core.errors import UsageError
from omb_py.core.text.units import is_time
from omb_py.results.columns import CONFIGURATION, EXPERIMENT

ONLY_BASE, ONLY_OTHER = "only in base", "only in other"
NO_BASE, NO_OTHER = "no value in base", "no value in other"

COLUMNS = (
    *("other", "pair", *EXPERIMENT, "bytes"),
    *("base", "value", "unit", "difference", "ratio", "ratio_low", "ratio_high"),
    *("slowdown", "slowdown_low", "slowdown_high", "slowdown_bound"),
    *("p_value", "runs_base", "runs_other"),
    *("p_adjusted", "launch_spread", "statistic", "noise", "verdict"),
    *("tolerance", "rounding"),
    *(f"base_{name}" for name in CONFIGURATION),
    *(f"other_{name}" for name in CONFIGURATION),
)
"""Columns of a comparison: see `compare`."""

SIZE_CLASSES = (1 << 10, 1 << 16)
"""Largest message sizes in bytes of the small and the medium size class; above is large. Rows
without a size are small."""

IDENTITY = (*EXPERIMENT, *CONFIGURATION, "unit")


@dataclass(frozen=True)
class ComparedSide:
    """One side of a comparison.

    ``kinds`` are the combinations of `IDENTITY` that were measured, a row each; ``runs`` has a row
    for each row of results: ``kind`` (a row of ``kinds``), ``bytes`` (-1 for none), ``mean``,
    ``median`` and ``p99`` where it has them, ``low``, ``high`` and ``rounding``, missing if its
    number is not above 0.
    """

    kinds: pd.DataFrame
    runs: pd.DataFrame


POINT = ["pair", "bytes"]
"""Columns of a point's identity."""

ENDS = ("x", "y")
"""Base and other in the columns of points and pairs."""


def compare(
    base: Source,
    *others: Source,
    statistic: str = "auto",
    names: Sequence[str] | None = None,
    launch_spread: float | None = None,
    tolerance: float | None = MARGIN,
    tail: bool = False,
) -> pd.DataFrame:
    """Compare results with those of ``base``, point by point: one row per point and other.

    Each argument is a file, a folder, results of `load` or `run`, or a table of their rows;
    ``names`` are words for them, the base's first. Rows of one point in one argument are repeated
    runs. ``launch_spread`` states the relative standard deviation between launches (0.03 for 3 %)
    if runs were not repeated often enough for a rank test; without it that of the compared runs is
    used, if it is known from `LAUNCHES_FOR_SPREAD` launches of a pair and size class.
    ``tolerance`` is the slowdown up to which points are equal (0.05 for 5 %, None for not at
    all). With ``tail``, 99th percentiles are compared, too, in separate pairs, if both sides have
    them of `TAIL_ITERATIONS` iterations or more. The columns:

    - ``other``: name of what is compared with the base; ``pair``: the same number for all points
      that differ in their message size alone;
    - ``benchmark`` and the other columns of the experiment, as in results, ``validated`` (whether
      data was checked) and ``bytes``;
    - ``base`` and ``value``: the numbers of base and other in ``unit`` (``us``, ``MB/s`` or
      ``msg/s``), medians over repeated runs; ``statistic`` tells whether a run's number is its
      ``median``, its ``mean`` or its ``p99``: ``auto`` takes medians where both sides have them at
      all sizes;
    - ``difference``: value - base;
    - ``ratio``: value / base; ``ratio_low`` and ``ratio_high``: its 95 % interval, where the noise
      between launches is known;
    - ``slowdown``, ``slowdown_low``, ``slowdown_high``: the ratio for latencies, its inverse for
      bandwidths and rates, so that above 1 the other is slower; ``slowdown_bound``: it is less
      than this with 95 % confidence, a one-sided bound and so at most ``slowdown_high``;
    - ``noise``: where the interval is from, ``runs`` (`verdict.by_runs`) or ``spread``
      (`verdict.with_launches`), or why there is none, ``one run a side`` or ``too few runs``;
    - ``p_value``: of the rank test of repeated runs, or of Student's test with the ``spread``;
      ``runs_base``, ``runs_other``: how many runs;
    - ``p_adjusted``: the same for the number of points of the whole table (`verdict.adjusted`);
    - ``launch_spread``: relative standard deviation between launches, pooled over the repeated
      runs of both sides in the pair and size class; missing if nothing is repeated;
    - ``verdict``: ``slower`` or ``faster`` (the whole interval is, and ``p_adjusted`` is 5 % at
      most), ``equal`` (else, if the whole interval of the slowdown is between 1 / (1 +
      ``tolerance``) and 1 + ``tolerance``), ``within noise`` (neither can be told),
      ``unclear`` (no interval, or one that reaches beyond a factor of 2), ``only in base``,
      ``only in other``, and ``no value in base`` or ``no value in other`` where that side has
      only numbers that are not above 0 or whose data was wrong;
    - ``rounding``: numbers printed with two decimals leave the ratio between ratio / (1 + rounding)
      and ratio * (1 + rounding), which intervals take in; 0 where files have all digits;
    - ``base_…`` and ``other_…``: how each was measured.

    Raises `UsageError` if the pairs of rows are ambiguous, or there are none, `WrongDataError` if
    there are none because their data was wrong.
    """
    check_part("launch_spread", launch_spread)
    check_part("tolerance", tolerance)
    check_statistic(statistic)
    if not others:
        raise UsageError("nothing to compare with: name a base and at least one other")
    called = names_of((base, *others), names)
    tables = [results_of(one).rows for one in (base, *others)]
    sides = [measured(table, name) for table, name in zip(tables, called, strict=True)]
    parts: list[pd.DataFrame] = []
    for side, name in zip(sides[1:], called[1:], strict=True):
        pairs = pair(sides[0].kinds, side.kinds, (called[0], name))
        judged = partial(against, sides[0], side, pairs, launch_spread)
        part = judged(statistic)
        if not part["ratio"].notna().any():
            refuse_wrong(*tables)
            raise UsageError(
                f"nothing to compare: no message size of {called[0]} has a number above 0 in "
                f"{name}, too"
            )
        if tail:
            tails = judged(TAIL)
            tails = tails[tails["ratio"].notna() | (tails["verdict"] == ONLY_BASE)]
            if tails["ratio"].isna().all():
                raise UsageError(
                    f"no 99th percentile of {TAIL_ITERATIONS} iterations or more is on both "
                    f"sides: measure with -i {TAIL_ITERATIONS}"
                )
            tails["pair"] = tails["pair"].factorize()[0] + part["pair"].max() + 1
            part = pd.concat([part, tails], ignore_index=True)
        part["other"] = name
        part["pair"] += sum(int(earlier["pair"].nunique()) for earlier in parts)
        parts.append(part.reindex(columns=list(COLUMNS)))
    table = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    return table.assign(**verdicts_of(table, tolerance))


def names_of(sources: Sequence[Source], names: Sequence[str] | None) -> list[str]:
    """Return a different name for each source: those given, or the shortest that tells them apart.

    Raises `UsageError` unless the given names are as many as the sources, and different.

    >>> names_of(["mpich.csv", "openmpi.csv"], None)
    ['mpich', 'openmpi']
    >>> names_of(["old/latency.csv", "new/latency.csv"], None)
    ['old/latency.csv', 'new/latency.csv']
    """
    if names:
        if len(names) != len(sources) or len(set(names)) != len(names):
            raise UsageError(
                f"{len(sources)} different names are needed, the base's first, and "
                f"{len(set(names))} given"
            )
        return list(names)
    if not all(isinstance(source, str | Path) for source in sources):
        others = [f"other {i}" for i in range(1, len(sources))]
        return ["base", *(others if len(others) > 1 else ["other"])]
    paths = [Path(os.path.abspath(str(source))) for source in sources]
    stems = [path.name if path.is_dir() else path.stem for path in paths]
    if len(set(stems)) == len(stems) and all(stems):
        return stems
    if len(set(paths)) < len(paths):
        return [f"{path.name} ({i})" for i, path in enumerate(paths, 1)]
    return list(short_names(map(str, paths)).values())


def measured(rows: pd.DataFrame, name: str) -> ComparedSide:
    """Return one side of a comparison; rows of a file and its copy count once.

    Raises `UsageError` if no row has a number.
    """
    rows = rows.reset_index(drop=True)
    numbers = rows.reindex(columns=["run", "bytes", *NUMBERS, *TAIL_COLUMNS])
    medians = with_values(numbers, "median")[["value", "statistic", "low", "high"]]
    means = with_values(numbers, "mean")
    if means["value"].isna().all():
        refuse_wrong(rows)
        raise UsageError(f"{name} has no row of a benchmark with a number to compare")
    runs = means[["run"]].assign(
        bytes=sizes_of(means),
        mean=means["value"],
        median=medians["value"].where((medians["statistic"] == "median") & (medians["value"] > 0)),
        low=medians["low"],
        high=medians["high"],
        rounding=rounding(means),
        p99=tails(means),
    )
    whole = rows if len(means) == len(rows) else rows.loc[means.index]
    whole = whole.assign(unit=means["unit"])
    varying = [n for n in IDENTITY if n in whole and whole[n].nunique(dropna=False) > 1]
    runs["kind"] = whole.groupby(varying or ["unit"], sort=False, dropna=False).ngroup()
    kinds = whole[~runs["kind"].duplicated()].reindex(columns=IDENTITY).reset_index(drop=True)
    twice = runs["run"].notna() & runs.duplicated()
    return ComparedSide(kinds, runs[~twice].drop(columns="run").reset_index(drop=True))


def against(
    base: ComparedSide,
    other: ComparedSide,
    pairs: pd.DataFrame,
    launch_spread: float | None,
    statistic: str,
) -> pd.DataFrame:
    """Return a comparison's rows, all points of both: without the other's name, and with a verdict
    only where one side has no value."""
    sides = dict(zip(ENDS, (base, other), strict=True))
    every = {
        end: side.runs.merge(pairs[["pair", f"kind_{end}"]], left_on="kind", right_on=f"kind_{end}")
        for end, side in sides.items()
    }
    numbered = [side[side["mean"].notna()] for side in every.values()]
    runs, statistics = chosen(numbered, statistic)
    points = pd.merge(*map(with_all_intervals, runs), on=POINT, how="outer")
    rows = [
        side.kinds.reindex(pairs[f"kind_{end}"]).set_axis(pairs["pair"])
        for end, side in sides.items()
    ]
    facts = {name: rows[0][name].combine_first(rows[1][name]) for name in (*EXPERIMENT, "unit")}
    for side, frame in zip(("base", "other"), rows, strict=True):
        facts |= {f"{side}_{name}": frame[name] for name in CONFIGURATION}
    table = pd.DataFrame(facts).reindex(points["pair"]).reset_index()
    table["bytes"] = points["bytes"].where(points["bytes"] >= 0).astype("Int64")
    table["statistic"] = points["pair"].map(statistics)
    table["base"], table["value"] = points["value_x"], points["value_y"]
    table["difference"] = table["value"] - table["base"]
    table["runs_base"] = points["runs_x"].fillna(0).astype(int)
    table["runs_other"] = points["runs_y"].fillna(0).astype(int)
    one, two = (points[f"rounding_{end}"] / points[f"value_{end}"] for end in ENDS)
    outer = np.maximum((1 + two) / (1 - one), (1 + one) / (1 - two)) - 1
    table["rounding"] = outer.fillna(0.0).astype("float64")
    table = table.assign(**ratios_of(table, points, runs, launch_spread))
    table["verdict"] = pd.Series(None, table.index, dtype=object)
    table.loc[points["runs_x"].isna(), "verdict"] = ONLY_OTHER
    table.loc[points["runs_y"].isna(), "verdict"] = ONLY_BASE
    places = pd.MultiIndex.from_frame(points[POINT])
    for verdict, alone, side in ((NO_BASE, ONLY_OTHER, "x"), (NO_OTHER, ONLY_BASE, "y")):
        without = every[side][every[side]["mean"].isna()]
        there = places.isin(pd.MultiIndex.from_frame(without[POINT]))
        table.loc[(table["verdict"] == alone) & there, "verdict"] = verdict
    return table.sort_values(POINT, kind="stable", ignore_index=True)


def chosen(
    runs: Sequence[pd.DataFrame], statistic: str
) -> tuple[list[pd.DataFrame], Mapping[int, str]]:
    """Return runs with their ``value``, in order of pair and size, and each pair's statistic.

    Means and tails have no interval. Raises `UsageError` when medians are asked for and a run has
    none.
    """
    has = pd.concat([side["median"].notna().groupby(side["pair"]).all() for side in runs])
    medians = has.groupby(level=0).all()
    if statistic == "median" and not medians[has.groupby(level=0).size() == 2].all():
        raise UsageError(
            "not all rows have a median: native OMB prints means; compare with --statistic mean, "
            "or auto, which takes medians where both sides have them"
        )
    names = medians.map({True: "median", False: "mean"})
    if statistic in (TAIL, "mean"):
        names[:] = statistic
    found = []
    for side in runs:
        of_run = side["pair"].map(names)
        value = (
            side["mean"].where(of_run == "mean", side["median"]).where(of_run != TAIL, side[TAIL])
        )
        side = side.assign(value=value)
        side.loc[of_run != "median", ["low", "high"]] = np.nan
        found.append(side[side["value"].notna()].sort_values(POINT, kind="stable"))
    return found, names


def with_all_intervals(runs: pd.DataFrame) -> pd.DataFrame:
    """Return `points_of` runs, which are in order of pair and size, with what a verdict needs.

    ``low`` and ``high`` are the ends of all runs' intervals, missing if a run has none;
    ``rounding`` is the largest, ``start`` the place of a point's first run.
    """
    points, at = points_of(runs, POINT), runs.groupby(POINT)
    for name, extreme in (("low", "min"), ("high", "max"), ("rounding", "max")):
        points[name] = at[name].agg(extreme).to_numpy()
    points.loc[at["low"].count().to_numpy() < points["runs"], ["low", "high"]] = np.nan
    points["start"] = points["runs"].cumsum() - points["runs"]
    return points


def launch_spreads(
    points: pd.DataFrame, runs: Sequence[pd.DataFrame]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the spread of launches at each point, and its degrees of freedom.

    It is that of a pair and size class, missing if none of these has repeated ``runs``: the pooled
    standard deviation of the values' logarithms around the mean of their point. All sizes of a
    launch share its noise, so degrees are those of the size with the most, not their sum.
    """
    every = pd.concat([side.assign(side=number) for number, side in enumerate(runs)])
    classes = np.searchsorted(SIZE_CLASSES, every["bytes"])
    every = every.assign(log=np.log(every["value"]), size_class=classes)
    sides = every.groupby(["pair", "size_class", "bytes", "side"])["log"].agg(["var", "count"])
    sides["degrees"] = sides["count"] - 1
    sides["squares"] = sides["var"].fillna(0.0) * sides["degrees"]
    sizes = sides.groupby(["pair", "size_class", "bytes"])[["squares", "degrees"]].sum()
    groups = sizes.groupby(["pair", "size_class"])
    pooled = groups["squares"].sum() / groups["degrees"].sum()
    found = pd.DataFrame({"spread": np.sqrt(pooled), "degrees": groups["degrees"].max()})
    classes = np.searchsorted(SIZE_CLASSES, points["bytes"])
    at = pd.MultiIndex.from_arrays([points["pair"], classes])
    spread, degrees = found[found["degrees"] > 0].reindex(at).to_numpy(float).T
    return spread, degrees


def ratios_of(
    table: pd.DataFrame,
    points: pd.DataFrame,
    runs: Sequence[pd.DataFrame],
    launch_spread: float | None,
) -> dict[str, Any]:
    """Return the columns of ratios and slowdowns, their intervals, and where these are from."""
    spread, degrees = launch_spreads(points, runs)
    between = np.expm1(spread)
    if launch_spread is not None:
        spread, degrees = (
            np.full(len(points), np.log1p(launch_spread)),
            np.full(len(points), np.inf),
        )
    spread = np.where(degrees + 2 >= LAUNCHES_FOR_SPREAD, spread, np.nan)
    rounding = table["rounding"].to_numpy()
    found, noise = intervals(points, runs, spread, degrees, rounding, LEVEL)
    ends, _ = intervals(points, runs, spread, degrees, rounding, ONE_SIDED)
    time = is_time(table["unit"]).to_numpy()
    return {
        "launch_spread": between,
        **dict(zip(("ratio", "ratio_low", "ratio_high", "p_value"), found, strict=True)),
        "noise": pd.Series(noise).where(~np.isnan(found.ratio), None),
        "slowdown": np.where(time, found.ratio, 1 / found.ratio),
        "slowdown_low": np.where(time, found.low, 1 / found.high),
        "slowdown_high": np.where(time, found.high, 1 / found.low),
        "slowdown_bound": np.where(time, ends.high, 1 / ends.low),
    }


def intervals(
    points: pd.DataFrame,
    runs: Sequence[pd.DataFrame],
    spread: np.ndarray,
    degrees: np.ndarray,
    rounding: np.ndarray,
    level: float,
) -> tuple[Interval, np.ndarray]:
    """Return the points' ratios with their intervals of a level, and where these are from."""
    found = with_launches(
        by_samples(
            *([points[f"{name}_{e}"].to_numpy() for name in ("value", "low", "high")] for e in ENDS)
        ),
        [points[f"runs_{end}"].to_numpy(float) for end in ENDS],
        spread,
        degrees,
        level,
    )
    single = (points["runs_x"] == 1) & (points["runs_y"] == 1)
    noise = np.where(single, "one run a side", "too few runs").astype(object)
    noise[~np.isnan(found.low)] = "spread"
    repeated = points[(points["runs_x"] > 1) & (points["runs_y"] > 1)]
    for (m, n), members in repeated.groupby(["runs_x", "runs_y"]):
        if not enough(int(m), int(n)):
            continue
        values = [
            side["value"].to_numpy()[members[f"start_{end}"].to_numpy(int)[:, None] + np.arange(k)]
            for side, end, k in zip(runs, ENDS, (int(m), int(n)), strict=True)
        ]
        which = members.index.to_numpy()
        tested = by_runs(values[0], values[1], level)
        # the quotient of the medians may lie outside of the interval of the median quotient
        found.low[which] = np.minimum(tested.low, found.ratio[which])
        found.high[which] = np.maximum(tested.high, found.ratio[which])
        found.p_value[which] = tested.p_value
        noise[which] = "runs"
    return found._replace(low=found.low / (1 + rounding), high=found.high * (1 + rounding)), noise


def verdicts_of(table: pd.DataFrame, tolerance: float | None) -> dict[str, Any]:
    """Return the columns of verdicts on points that both sides have, and of their tolerance.

    P-values are adjusted for the number of points of the whole table.
    """
    p_adjusted = adjusted(table["p_value"], pd.Series(0, table.index))
    margin = np.nan if tolerance is None else tolerance
    names = ("slowdown", "slowdown_low", "slowdown_high", "p_value")
    slowdown = Interval(*(table[name].to_numpy(float) for name in names))
    told = verdicts(slowdown, p_adjusted.to_numpy(float), margin)
    verdict = table["verdict"].where(table["ratio"].isna(), told)
    return {"p_adjusted": p_adjusted, "tolerance": margin, "verdict": verdict}
