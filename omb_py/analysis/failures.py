"""Failures: points beyond their limits, the rows that they are of, and which to measure again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from omb_py.analysis.points import Cells, label, plain_values
from omb_py.analysis.values import TAIL, same_ends, tails, value_column, with_values
from omb_py.core.text.units import slowdown
from omb_py.core.text.words import first_of
from omb_py.results.columns import IDENTITY, SOFTWARE
from omb_py.results.metadata import Runs

RESULTS_OF = "results_of"
"""The column of what is judged by itself: hosts by their names, or a file."""

APART = ("source", *SOFTWARE, RESULTS_OF)
"""Columns by which rows are told apart only if a point has them."""


class Beyond(NamedTuple):
    """A point beyond its ``limit``: a time above it, a bandwidth or rate below, in ``unit``.

    ``cells`` are what its rows have in the columns of `IDENTITY` and ``bytes``. ``statistic`` is
    ``median``, ``mean``, `TAIL`, or a column. ``side`` names the results that it is in, if there
    are several.
    """

    cells: Cells
    limit: float
    unit: str
    statistic: str
    side: str = ""

    def excess(self, value: float) -> float:
        """Return how many times a value is worse than the limit; 1 or less is within it."""
        return slowdown(value / self.limit, self.unit)

    def values(self, rows: pd.DataFrame) -> list[float]:
        """Return the numbers of its rows, without those that have not its statistic."""
        if self.statistic in rows:
            found = rows[self.statistic]
        elif self.statistic == TAIL:
            found = tails(with_values(rows, "mean"))
        else:
            known = value_column(rows, self.statistic)
            found = known["value"][known["statistic"] == self.statistic]
        return [float(one) for one in found.dropna()]


class Failure(NamedTuple):
    """A reason to fail, and the points that it is about, if they can be measured again.

    Of several points it is their geometric mean that is beyond the limit. ``on_top`` is true for a
    reason that is not one of the things that were judged, such as that mean.
    """

    reason: str
    points: tuple[Beyond, ...] = ()
    on_top: bool = False

    def excess(self, medians: Sequence[float]) -> float:
        """Return how many times the points' medians are worse than the limit, on average."""
        pairs = zip(self.points, medians, strict=True)
        return float(np.exp(np.mean([np.log(point.excess(value)) for point, value in pairs])))


def rows_at(rows: pd.DataFrame, cells: Cells) -> pd.DataFrame:
    """Return the rows of a point: a value that a row lacks agrees with any.

    A point without one of `APART` may be of several.
    """
    places = np.arange(len(rows))
    for name in ("bytes", *IDENTITY, RESULTS_OF):
        if name in rows and (name not in APART or name in cells):
            column = rows[name].iloc[places]  # few after the first ones
            value = cells.get(name)
            if name == "placement" and value is not None:
                value, column = same_ends(value), column.map(same_ends, na_action="ignore")
            same = column.isna() if value is None else column.eq(value)
            places = places[(same.fillna(False) | column.isna()).to_numpy(bool)]
    return rows.iloc[places]


def only_first(
    side: str, rows: pd.DataFrame, runs: Runs, failures: Sequence[Failure], judged: Sequence[Cells]
) -> list[str]:
    """Return a sentence for each run of a side of which only the first points fail.

    Later ones must have been ``judged``; ``runs`` is the metadata.
    """
    alone = [one.points[0] for one in failures if len(one.points) == 1]
    of_side = [rows_at(rows, point.cells) for point in alone if point.side == side]
    slow = {place for slow_rows in of_side for place in slow_rows.index}
    known: dict[tuple[str, int | None], list[Cells]] = {}
    for point in judged:
        known.setdefault((point["benchmark"], point.get("bytes")), []).append(point)
    found = []
    of_runs = rows[rows["run"].isin(rows.loc[[*slow], "run"])]
    for run, members in of_runs.groupby("run", sort=False):
        failed = members.index.isin(slow)
        first, later = members[failed], members[~failed]
        in_order = 0 < len(first) == failed[: len(first)].sum()
        keys = zip(later["benchmark"], plain_values(later["bytes"]), strict=True)
        candidates = (point for key in keys for point in known.get(key, ()))
        if in_order and any(len(rows_at(later, point)) for point in candidates):
            together = runs.get(str(run), {}).get("command", "").startswith("omb-py run ")
            names = ["benchmark", "bytes"]
            texts = [label(row, names) for row in first[names].to_numpy().tolist()]
            of_what = "benchmark in its launch" if together else "launch"
            found.append(f"only the first points of the {of_what} fail: {first_of(texts, 5)}")
    return found
