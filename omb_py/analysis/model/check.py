"""How good a model's predictions are: each size, and each number of ranks, left out in turn."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from omb_py.analysis.model import lines, over_ranks
from omb_py.analysis.model.bounded import Array, Mask
from omb_py.analysis.model.fit import Curve, Model

COLUMNS = (
    "benchmark",
    "curve",
    "left_out",
    "ranks",
    "bytes",
    "measured",
    "predicted",
    "low",
    "high",
    "unit",
    "error",
    "covered",
    "beyond",
)


def check(model: Model) -> pd.DataFrame:
    """Every measured value predicted without it.

    ``left_out`` is ``size`` where a curve was fitted again without that size, ``ranks`` where all
    formulas were without that number of ranks; switches and formulas are looked for anew. Times,
    ``predicted`` and their 95 % bands are in ``unit``. ``error`` is predicted over measured, less
    one, ``covered`` whether the band had the value, ``beyond`` whether it was outside what was
    left. How errors grow beyond that is known from all sizes here.
    """
    tables = [table for curve in model.curves for table in of_curve(curve)]
    if not tables:
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.concat(tables, ignore_index=True)


def of_curve(curve: Curve) -> Iterator[pd.DataFrame]:
    """One curve's part of `check`."""
    points = curve.points
    for number, fitted in curve.lines.items():
        here = points.where(points.ranks == number)
        sizes, *predicted = lines.left_out(points.curve(number), fitted)
        place = np.searchsorted(sizes, here.sizes)
        known = (place < len(sizes)) & (sizes[np.minimum(place, len(sizes) - 1)] == here.sizes)
        times = [each[place[known]] for each in predicted]
        beyond = np.isin(here.sizes[known], (here.sizes.min(), here.sizes.max()))
        yield table(curve, "size", here.where(known), times, beyond)
    if curve.over_ranks is None or len(curve.over_ranks.ranks) < 2:
        return
    for number in curve.over_ranks.ranks.tolist():
        here = points.where(points.ranks == number)
        others = points.where(points.ranks != number)
        without = over_ranks.fit(others, curve.shapes, curve.over_ranks.growth_of_sizes)
        times = list(without.predict(here.ranks, here.sizes))
        ends = (curve.over_ranks.ranks[0], curve.over_ranks.ranks[-1])
        yield table(curve, "ranks", here, times, np.full(len(here.times), number in ends))


def table(
    curve: Curve, left_out: str, points: over_ranks.Points, times: list[Array], beyond: Mask
) -> pd.DataFrame:
    """Predictions beside what was measured, without those that cannot be made."""
    value, low, high = curve.values(points.sizes, *times)
    measured = curve.values(points.sizes, points.times, points.times, points.times)[0]
    frame = pd.DataFrame(
        {
            "benchmark": curve.benchmark,
            "curve": curve.label,
            "left_out": left_out,
            "ranks": points.ranks.astype(int),
            "bytes": pd.array(
                points.sizes.astype(int) if curve.sized else [None] * len(low), dtype="Int64"
            ),
            "measured": measured,
            "predicted": value,
            "low": low,
            "high": high,
            "unit": curve.unit,
            "error": value / measured - 1,
            "covered": (low <= measured) & (measured <= high),
            "beyond": beyond,
        },
        columns=list(COLUMNS),
    )
    return frame[np.isfinite(low) & np.isfinite(high)]


def scores(checked: pd.DataFrame) -> pd.DataFrame:
    """One row for each curve and what was left out of it.

    ``number`` of predictions, ``median_error`` and ``worst_error`` (largest factor between
    prediction and measurement, less one, so that half and double are both 1), and ``coverage``,
    the part that the band had.
    """
    factor = np.exp(np.abs(np.log(checked["predicted"] / checked["measured"]))) - 1
    groups = checked.assign(factor=factor).groupby(
        ["benchmark", "curve", "left_out"], sort=False, dropna=False
    )
    return groups.agg(
        number=("factor", "size"),
        median_error=("factor", "median"),
        worst_error=("factor", "max"),
        coverage=("covered", "mean"),
    ).reset_index()
