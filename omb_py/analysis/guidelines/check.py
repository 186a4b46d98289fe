"""Guidelines checked on results: which are violated by more than noise, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from omb_py.algorithms import DEFAULT
from omb_py.analysis.guidelines.rules import (
    PADDING,
    SMALLEST,
    Guideline,
    chosen,
    guidelines,
    size_beside,
)
from omb_py.analysis.verdict import LEVEL, MARGIN, adjusted, by_runs, enough
from omb_py.benchmarks.collective import TABLE
from omb_py.core.options import LIBRARY
from omb_py.results.columns import CONFIGURATION

ALIKE = (
    *(name for name in CONFIGURATION if name not in ("sync", "library_algorithm", "algorithm")),
    *("ranks", "hosts", "validated"),
)
"""Columns in which the sides of a guideline agree, also where they are empty."""

OPEN = ("mpi_type", "root", "in_place", "layout", "sync", "test_calls", "compute_target")
"""Columns in which sides agree that have them."""

TIMES = {"slowest": "slowest_p50_us", "median": "sample_p50_us", "mean": "latency_us"}
"""Times of a call, best first: rows that were measured alike have the first that all of them have.

The slowest rank's time is when the data is where it belongs. A mean over ranks is not: most ranks
leave a reduction long before it is done.
"""

OWN_CHOICE = ""
"""Stands for the algorithm that the library chooses itself."""

VIOLATED, HOLDS, CANNOT_TELL = "violated", "holds", "cannot tell"

REDUCTIONS = tuple(
    form.format(row.name) for row in TABLE if row.adds for form in ("{}", "i{}", "{}_persistent")
)

COLUMNS = (
    *("guideline", "kind", "benchmark", *ALIKE, *OPEN, "bytes", "time"),
    *("left_us", "right_us", "ratio", "ratio_low", "ratio_high", "p_value", "p_adjusted"),
    *("runs_left", "runs_right", "verdict"),
    *("library_algorithm", "algorithm_us", "algorithm_speedup", "algorithm_ratio"),
)
"""Columns of `check`."""


def check(
    rows: pd.DataFrame,
    tolerance: float = MARGIN,
    only: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Check guidelines on rows of results: one row for each guideline, experiment and message size.

    Rows of one point are repeated launches. ``only`` names kinds of guidelines or benchmarks
    (`chosen`). The columns:

    - ``guideline``, its ``kind``, the ``benchmark`` on its left side, how all was measured, and
      ``bytes`` of the left side (missing for a barrier);
    - ``left_us`` and ``right_us``: times of both sides, medians over launches, the right one of
      the sums; ``time`` says which (`TIMES`);
    - ``ratio``: left over right; ``ratio_low`` and ``ratio_high``, its 95 % interval
      (`verdict.by_runs`), missing below 4 launches on each side;
    - ``p_value``: chance of such ranks if left were no longer than 1 + ``tolerance`` times right,
      by the one-sided rank test; ``p_adjusted``: with `compare`'s correction for all tests of this
      table;
    - ``verdict``: ``violated`` where ``p_adjusted`` is at most 5 % and the whole interval above
      1 + ``tolerance``, ``holds`` where it is at or below that, else ``cannot tell``;
    - ``library_algorithm``: the fastest of those that were measured for the left side;
      ``algorithm_us``, its time; ``algorithm_speedup``, how many times faster it is than the
      library's choice; ``algorithm_ratio``, its time over that of the right side.

    Raises `UsageError` where ``only`` names neither.
    """
    rules = chosen(None if only is None else tuple(only))
    found = [
        point | {"guideline": rule.name, "kind": rule.kind, "benchmark": rule.left}
        for key, sides in groups(rows)
        for rule in rules
        for point in points_of(key, sides, rule, tolerance)
    ]
    table = pd.DataFrame(found).reindex(columns=list(COLUMNS))
    table["p_adjusted"] = adjusted(table["p_value"].astype(float), pd.Series(0, table.index))
    violated = (table["p_adjusted"] <= LEVEL) & (table["ratio_low"] > 1 + tolerance)
    holds = ~violated & (table["ratio_high"] <= 1 + tolerance)
    table["verdict"] = np.select([violated, holds], [VIOLATED, HOLDS], CANNOT_TELL)
    return table


def not_measured(rows: pd.DataFrame, points: pd.DataFrame, only: Sequence[str] | None) -> list[str]:
    """Names of the guidelines about benchmarks in ``rows`` that were checked at no size."""
    there = set(rows["benchmark"].dropna())
    checked = set(points["guideline"])
    rules = chosen(None if only is None else tuple(only))
    return [rule.name for rule in rules if rule.left in there and rule.name not in checked]


Point: TypeAlias = Mapping[str, np.ndarray]
"""One message size of a benchmark: times of launches by algorithm, in order of their runs;
`OWN_CHOICE` has those of the library's."""


@dataclass(frozen=True)
class Side:
    """A benchmark in one of its settings (`OPEN`): its points by message size, None for none."""

    settings: Mapping[str, Any]
    points: Mapping[int | None, Point]

    def from_size(self, wanted: int) -> Point | None:
        """The smallest size that is at least so large, if it is not much larger."""
        there = [size for size in self.points if size is not None and size >= wanted]
        return self.points[there[0]] if there and there[0] <= PADDING * wanted else None


def points_of(
    key: Mapping[str, Any], there: Mapping[str, Sequence[Side]], rule: Guideline, tolerance: float
) -> Iterator[dict[str, Any]]:
    """Yield what a guideline says of each size of its left side for which all is there.

    ``key`` is how all benchmarks of ``there`` were measured; each has a side for each setting.
    """
    names = list(dict.fromkeys((rule.left, *rule.right)))
    for sides in product(*(there.get(name, ()) for name in names)):
        settings = {name: value for side in sides for name, value in side.settings.items()}
        if any(settings[name] != value for side in sides for name, value in side.settings.items()):
            continue
        named = dict(zip(names, sides, strict=True))
        for size, left in named[rule.left].points.items():
            calls, factor = right_side(rule, size, named, int(key["ranks"]))
            if calls:
                numbers = judged(left, calls, factor, tolerance)
                yield {**key, **settings, "bytes": size, **numbers}


def right_side(
    rule: Guideline, size: int | None, sides: Mapping[str, Side], ranks: int
) -> tuple[list[Point], int]:
    """Calls of the right side of a guideline at a size of its left side, and how often they are
    made; no calls where one was not measured."""
    points = sides[rule.right[0]].points
    if rule.kind in ("monotony", "splitting"):
        is_splitting = rule.kind == "splitting"
        sizes = [each for each in points if each is not None]
        other = dict(pairwise(reversed(sizes) if is_splitting else sizes)).get(size or 0)
        if other is None or size is None or (is_splitting and size % other):
            return [], 1
        return [points[other]], size // other if is_splitting else 1
    if size is None:
        smallest = next(iter(points))
        return [points[smallest]] if (smallest or 0) <= SMALLEST else [], 1
    found = [
        sides[name].from_size(size_beside(rule.left, name, size, ranks)) for name in rule.right
    ]
    there = [call for call in found if call is not None]
    return there if len(there) == len(found) else [], 1


def judged(left: Point, calls: Sequence[Point], factor: int, tolerance: float) -> dict[str, Any]:
    """Return the columns of `check` about the numbers of both sides."""
    own, rights = left[OWN_CHOICE], [call[OWN_CHOICE] for call in calls]
    launches = min(map(len, rights))
    sums = factor * np.sum([times[:launches] for times in rights], axis=0)
    found = by_runs(sums[None, :], own[None, :])
    beyond = by_runs(sums[None, :] * (1 + tolerance), own[None, :])
    one_sided = beyond.p_value[0] / 2 if beyond.ratio[0] > 1 else 1.0
    point = {
        "left_us": float(np.median(own)),
        "right_us": float(np.median(sums)),
        "runs_left": len(own),
        "runs_right": launches,
        "ratio": found.ratio[0],
        "ratio_low": found.low[0],
        "ratio_high": found.high[0],
        "p_value": one_sided if enough(launches, len(own)) else np.nan,
    }
    if others := {word: float(np.median(left[word])) for word in left if word != OWN_CHOICE}:
        best, median = min(others.items(), key=lambda one: one[1])
        point |= {
            "library_algorithm": best,
            "algorithm_us": median,
            "algorithm_speedup": point["left_us"] / median,
            "algorithm_ratio": median / point["right_us"],
        }
    return point


def groups(rows: pd.DataFrame) -> Iterator[tuple[Mapping[str, Any], Mapping[str, list[Side]]]]:
    """Yield the benchmarks that guidelines are about, those together that were measured alike."""
    needed = ("benchmark", "part", "bytes", "run", "library_algorithm", "algorithm")
    frame = rows.reindex(columns=[*needed, *ALIKE, *OPEN, *TIMES.values()])
    known = {name for rule in guidelines() for name in (rule.left, *rule.right)}
    own = frame["algorithm"].isna() | (frame["algorithm"] == LIBRARY)
    sized = frame["bytes"].isna() | (frame["bytes"] > 0)
    timed = (frame["latency_us"] > 0) & frame["ranks"].notna()
    frame = frame[own & sized & timed & frame["part"].isna() & frame["benchmark"].isin(known)]
    frame = frame.sort_values("run", kind="stable", ignore_index=True)
    frame = frame.assign(
        word=frame["library_algorithm"].replace(DEFAULT, OWN_CHOICE).fillna(OWN_CHOICE),
        mpi_type=frame["mpi_type"].where(frame["benchmark"].isin(REDUCTIONS)),
    )
    for key, alike in frame.groupby(list(ALIKE), dropna=False, sort=False, observed=True):
        sides: dict[str, list[Side]] = {}
        time = next(name for name, column in TIMES.items() if (alike[column] > 0).all())
        parts = alike.groupby(["benchmark", *OPEN], dropna=False, sort=False, observed=True)
        for (name, *settings), members in parts:
            said = {n: each for n, each in zip(OPEN, settings, strict=True) if not pd.isna(each)}
            if points := points_by_size(members, TIMES[time]):
                sides.setdefault(str(name), []).append(Side(said, points))
        yield {**dict(zip(ALIKE, key, strict=True)), "time": time}, sides


def points_by_size(rows: pd.DataFrame, column: str) -> dict[int | None, Point]:
    """Return the message sizes of a benchmark at which the library's own choice was measured."""
    points: dict[int | None, Point] = {}
    for size, here in rows.groupby("bytes", dropna=False):
        point = {str(word): times.to_numpy(float) for word, times in here.groupby("word")[column]}
        if OWN_CHOICE in point:
            points[None if pd.isna(size) else int(float(str(size)))] = point
    return points
