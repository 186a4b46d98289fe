"""Limits on results: what is beyond them, in words and exit codes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from omb_py.analysis.points import Cells, label, plain_values
from omb_py.analysis.values import TAIL, tails, value_column, with_values
from omb_py.analysis.verdict import factor
from omb_py.core.errors import UsageError
from omb_py.core.text.words import count, first_of
from omb_py.results.columns import IDENTITY

FAILED = 4
"""Exit code of a comparison that found more of a slowdown than was allowed."""

UNDECIDED = 7
"""Exit code of a comparison whose slowdown may or may not be above the limit."""

MOST_UNDECIDED = 3
"""Points that cannot be judged that a sentence names."""

MAX_REASONS = 20
"""Reasons to fail that are printed; of the others only their number."""


def limit(text: str) -> float:
    """Return the slowdown that ``5%`` or ``1.05x`` allows.

    Raises `UsageError` for anything else.

    >>> limit("5%"), limit("1.05x")
    (1.05, 1.05)
    """
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+)([%x])", text, re.ASCII)
    if match is None:
        raise UsageError(f"--fail-above {text}: write 5% or 1.05x, which mean the same")
    number = float(match[1])
    found = 1 + number / 100 if match[2] == "%" else number
    if found < 1:
        raise UsageError(f"--fail-above {text}: a slowdown is 1x or more, as in 1.05x")
    return found


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
        return value / self.limit if self.unit == "us" else self.limit / value

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

    Of several points it is their geometric mean that is beyond the limit.
    """

    reason: str
    points: tuple[Beyond, ...] = ()

    def excess(self, medians: Sequence[float]) -> float:
        """Return how many times the points' medians are worse than the limit, on average."""
        pairs = zip(self.points, medians, strict=True)
        return float(np.exp(np.mean([np.log(point.excess(value)) for point, value in pairs])))


def rows_at(rows: pd.DataFrame, cells: Cells) -> pd.DataFrame:
    """Return the rows of a point: a value that a row lacks agrees with any.

    A point without ``source`` may be of several.
    """
    places = np.arange(len(rows))
    for name in ("bytes", *IDENTITY):
        if name in rows and (name != "source" or name in cells):
            column = rows[name].iloc[places]  # few after the first ones
            value = cells.get(name)
            if name == "placement" and value is not None:
                value, column = same_ends(value), column.map(same_ends, na_action="ignore")
            same = column.isna() if value is None else column.eq(value)
            places = places[(same.fillna(False) | column.isna()).to_numpy(bool)]
    return rows.iloc[places]


def only_first(
    side: str,
    rows: pd.DataFrame,
    runs: Mapping[str, Mapping[str, str]],
    failures: Sequence[Failure],
    judged: Sequence[Cells],
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


def same_ends(placement: str) -> str:
    """Return the placement of both ends as one if they are alike.

    >>> same_ends("D D"), same_ends("D H")
    ('D', 'D H')
    """
    ends = placement.split()
    return ends[0] if len(set(ends)) == 1 else placement


def failure_lines(reasons: Sequence[str]) -> Iterator[str]:
    """Yield the first `MAX_REASONS` reasons to fail, and how many more there are."""
    yield from (f"FAIL: {reason}" for reason in reasons[:MAX_REASONS])
    if len(reasons) > MAX_REASONS:
        yield f"FAIL: and {len(reasons) - MAX_REASONS} more reasons"


@dataclass(frozen=True)
class Guard:
    """A limit on slowdowns and its violations (``--fail-above``).

    ``undecided`` points are sentences; ``points`` is the number of all points.
    """

    allowed: float
    failures: tuple[Failure, ...]
    undecided: tuple[str, ...]
    points: int

    @property
    def reasons(self) -> tuple[str, ...]:
        """A sentence for each violation."""
        return tuple(one.reason for one in self.failures)

    @property
    def exit_code(self) -> int:
        """`FAILED`, `UNDECIDED`, or 0 where it passes."""
        return FAILED if self.failures else UNDECIDED if self.undecided else 0

    @property
    def cannot_tell(self) -> str:
        """Return a sentence about the undecided points; empty without any."""
        if not self.undecided:
            return ""
        return (
            f"{len(self.undecided)} of {count(self.points, 'point')} may be more than "
            f"{factor(self.allowed)} slower ({first_of(self.undecided, MOST_UNDECIDED)}): repeat "
            "the runs"
        )

    def lines(self) -> Iterator[str]:
        """Yield its verdict, with the first `MAX_REASONS`."""
        if self.cannot_tell:
            yield f"CANNOT TELL: {self.cannot_tell}"
        elif not self.failures:
            yield f"PASS: nothing is more than {factor(self.allowed)} slower"
        yield from failure_lines(self.reasons)
