"""Guidelines checked on results: which are violated by more than noise, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from omb_py.algorithms import DEFAULT
from omb_py.analysis.conclusion import Conclusion, conclude, within
from omb_py.analysis.failures import Failure
from omb_py.analysis.guidelines.rules import (
    PADDING,
    SMALLEST,
    Guideline,
    chosen,
    size_beside,
)
from omb_py.analysis.judging import check_part
from omb_py.analysis.points import at_size, distinctions, label
from omb_py.analysis.table import Source, results_of
from omb_py.analysis.values import spoilt
from omb_py.analysis.verdict import LEVEL, MARGIN, adjusted, by_runs, chance, enough, factor
from omb_py.benchmarks.collective import TABLE
from omb_py.core.options import LIBRARY
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import size_text, value_text
from omb_py.core.text.words import count, first_of
from omb_py.results.columns import CONFIGURATION

ALIKE = (
    *(name for name in CONFIGURATION if name not in ("sync", "library_algorithm", "algorithm")),
    *("ranks", "hosts", "validated"),
)
"""Columns in which the sides of a guideline agree, also if they are empty."""

OPEN = ("mpi_type", "root", "in_place", "layout", "sync", "test_calls", "compute_target")
"""Columns in which sides agree that have them."""

TIMES = {"slowest": "slowest_p50_us", "median": "sample_p50_us", "mean": "latency_us"}
"""Times of a call, best first: rows that were measured alike have the first that all of them have.

The slowest rank's time is when the data is where it belongs. A mean over ranks is not: most ranks
leave a reduction long before it is done.
"""

VIOLATED, HOLDS, CANNOT_TELL = "violated", "holds", "cannot tell"

REDUCTIONS = tuple(
    form.format(row.name) for row in TABLE if row.adds for form in ("{}", "i{}", "{}_persistent")
)

COLUMNS = (
    *("guideline", "kind", "benchmark", *ALIKE, *OPEN, "bytes", "time"),
    *("left_us", "right_us", "ratio", "ratio_low", "ratio_high", "p_value", "p_adjusted"),
    *("runs_left", "runs_right", "verdict"),
)
"""Columns of `guidelines`."""


def guidelines(
    source: Source, tolerance: float = MARGIN, only: Sequence[str] | None = None
) -> pd.DataFrame:
    """Check that MPI calls are no slower than equivalent ones: a row for each guideline,
    experiment and message size.

    ``source`` are files or folders, results of `load` or `run`, or a table of their rows. Rows of
    one point are repeated launches. ``only`` names kinds of guidelines or benchmarks
    (`chosen`). The columns:

    - ``guideline``, its ``kind``, the ``benchmark`` on its left side, the configuration, and
      ``bytes`` of the left side (missing for a barrier);
    - ``left_us`` and ``right_us``: times of both sides, medians over launches, the right one of
      the sums; ``time`` says which (`TIMES`);
    - ``ratio``: left over right; ``ratio_low`` and ``ratio_high``, its 95 % interval
      (`verdict.by_runs`), missing below 4 launches on each side;
    - ``p_value``: chance of such ranks if left were no longer than 1 + ``tolerance`` times right,
      by the one-sided rank test; ``p_adjusted``: with `compare`'s correction for all tests of this
      table;
    - ``verdict``: ``violated`` where ``p_adjusted`` is at most 5 % and the whole interval above
      1 + ``tolerance``, ``holds`` if it is at or below that, else ``cannot tell``.

    Raises `UsageError` for a name in ``only`` that is neither.
    """
    check_part("tolerance", tolerance, zero=True)
    rules, rows = chosen(only), results_of(source).rows
    found = [
        point | {"guideline": rule.name, "kind": rule.kind, "benchmark": rule.left}
        for key, sides in groups(rows)
        for rule in rules
        for point in checks_of(key, sides, rule, tolerance)
    ]
    table = pd.DataFrame(found).reindex(columns=list(COLUMNS))
    table["p_adjusted"] = adjusted(table["p_value"].astype(float), pd.Series(0, table.index))
    violated = (table["p_adjusted"] <= LEVEL) & (table["ratio_low"] > 1 + tolerance)
    holds = ~violated & (table["ratio_high"] <= 1 + tolerance)
    table["verdict"] = np.select([violated, holds], [VIOLATED, HOLDS], CANNOT_TELL)
    return table


def not_measured(rows: pd.DataFrame, points: pd.DataFrame, only: Sequence[str] | None) -> list[str]:
    """Return names of the guidelines about benchmarks in ``rows`` that were checked at no size."""
    there = set(rows["benchmark"].dropna())
    checked = set(points["guideline"])
    return [one.name for one in chosen(only) if one.left in there and one.name not in checked]


def not_checked(rows: pd.DataFrame, only: Sequence[str] | None) -> list[str]:
    """Return names of the guidelines that were checked at no size though ``rows`` have all of
    their benchmarks: these were asked for, of each configuration (`ALIKE`) that has the left
    side."""
    there = set(rows["benchmark"].dropna())
    asked = [
        one for one in chosen(only) if one.kind not in OF_SIZES and there.issuperset(one.right)
    ]
    every = list(groups(rows))
    usable = {name for _, sides in every for name in sides}
    telling = distinctions(pd.DataFrame([key for key, _ in every], columns=list(ALIKE)), ALIKE)
    found = [one.name for one in asked if one.left in there - usable]
    for key, sides in every:
        checked = {rule.name for rule in asked if any(checks_of(key, sides, rule, MARGIN))}
        words = label([key[name] for name in telling], telling)
        found += [
            f"{rule.name} ({words})" if words else rule.name
            for rule in asked
            if rule.left in sides and rule.name not in checked
        ]
    return found


OF_SIZES = ("monotony", "splitting")
"""Kinds of guidelines that are about two sizes of one benchmark: one size asks for none."""


@dataclass(frozen=True)
class Side:
    """A benchmark in one of its settings (`OPEN`).

    ``times`` are those of its launches, in order of their runs, by message size; None for none: a
    point's runs, not their median (`points.points_of`), for sums are those of one launch.
    """

    settings: Mapping[str, Any]
    times: Mapping[int | None, np.ndarray]

    def from_size(self, wanted: int) -> np.ndarray | None:
        """Return the smallest size that is at least so large, if it is not much larger."""
        there = [size for size in self.times if size is not None and size >= wanted]
        return self.times[there[0]] if there and there[0] <= PADDING * wanted else None


def checks_of(
    key: Mapping[str, Any], there: Mapping[str, Sequence[Side]], rule: Guideline, tolerance: float
) -> Iterator[dict[str, Any]]:
    """Yield a guideline's result for each size of its left side for which all sides are there.

    ``key`` is the configuration that all benchmarks of ``there`` share; each has a side for each
    setting.
    """
    names = list(dict.fromkeys((rule.left, *rule.right)))
    for sides in product(*(there.get(name, ()) for name in names)):
        settings = {name: value for side in sides for name, value in side.settings.items()}
        if any(settings[name] != value for side in sides for name, value in side.settings.items()):
            continue
        named = dict(zip(names, sides, strict=True))
        for size, left in named[rule.left].times.items():
            if calls := right_side(rule, size, named, int(key["ranks"])):
                yield {**key, **settings, "bytes": size, **judged(left, calls, tolerance)}


def right_side(
    rule: Guideline, size: int | None, sides: Mapping[str, Side], ranks: int
) -> list[np.ndarray]:
    """Return times of the calls of a guideline's right side at a size of its left side; none if one
    was not measured."""
    times = sides[rule.right[0]].times
    sizes = [each for each in times if each is not None]
    if rule.kind == "monotony":
        larger = next((each for each in sizes if size is not None and each > size), None)
        return [] if larger is None else [times[larger]]
    if rule.kind == "splitting":
        smaller = max((each for each in sizes if size is not None and each < size), default=None)
        if smaller is None or size is None or size % smaller:
            return []
        return [size // smaller * times[smaller]]
    if size is None:
        smallest = next(iter(times))
        return [times[smallest]] if (smallest or 0) <= SMALLEST else []
    found = [
        sides[name].from_size(size_beside(rule.left, name, size, ranks)) for name in rule.right
    ]
    there = [call for call in found if call is not None]
    return there if len(there) == len(found) else []


def judged(own: np.ndarray, calls: Sequence[np.ndarray], tolerance: float) -> dict[str, Any]:
    """Return the columns of `check` about the numbers of both sides."""
    launches = min(map(len, calls))
    sums = np.sum([times[:launches] for times in calls], axis=0)
    found = by_runs(sums[None, :], own[None, :])
    beyond = by_runs(sums[None, :] * (1 + tolerance), own[None, :])
    one_sided = beyond.p_value[0] / 2 if beyond.ratio[0] > 1 else 1.0
    return {
        "left_us": float(np.median(own)),
        "right_us": float(np.median(sums)),
        "runs_left": len(own),
        "runs_right": launches,
        "ratio": found.ratio[0],
        "ratio_low": found.low[0],
        "ratio_high": found.high[0],
        "p_value": one_sided if enough(launches, len(own)) else np.nan,
    }


def groups(rows: pd.DataFrame) -> Iterator[tuple[Mapping[str, Any], Mapping[str, list[Side]]]]:
    """Yield the benchmarks that guidelines are about, those together that were measured alike.

    Only with the library's own choice of algorithms.
    """
    needed = ("benchmark", "part", "bytes", "run", "library_algorithm", "algorithm")
    frame = rows.reindex(columns=[*needed, *ALIKE, *OPEN, *TIMES.values()])
    known = {name for rule in chosen(None) for name in (rule.left, *rule.right)}
    own = frame["algorithm"].isna() | (frame["algorithm"] == LIBRARY)
    own &= frame["library_algorithm"].isna() | (frame["library_algorithm"] == DEFAULT)
    sized = frame["bytes"].isna() | (frame["bytes"] > 0)
    timed = (frame["latency_us"] > 0) & frame["ranks"].notna() & ~spoilt(rows)
    frame = frame[own & sized & timed & frame["part"].isna() & frame["benchmark"].isin(known)]
    frame = frame.sort_values("run", kind="stable", ignore_index=True)
    frame["mpi_type"] = frame["mpi_type"].where(frame["benchmark"].isin(REDUCTIONS))
    for key, alike in frame.groupby(list(ALIKE), dropna=False, sort=False, observed=True):
        sides: dict[str, list[Side]] = {}
        time = next(name for name, column in TIMES.items() if (alike[column] > 0).all())
        parts = alike.groupby(["benchmark", *OPEN], dropna=False, sort=False, observed=True)
        for (name, *settings), members in parts:
            said = {n: each for n, each in zip(OPEN, settings, strict=True) if not pd.isna(each)}
            by_size = members.groupby("bytes", dropna=False)[TIMES[time]]
            times = {
                None if pd.isna(size) else int(float(str(size))): here.to_numpy(float)
                for size, here in by_size
            }
            sides.setdefault(str(name), []).append(Side(said, times))
        yield {**dict(zip(ALIKE, key, strict=True)), "time": time}, sides


HEADINGS = ("guideline", "sizes", "slower", "95 % interval", "at", "left", "right")

LONGEST_LIST = 6
"""Names of guidelines in a sentence."""

WHOSE = {
    "slowest": "of the slowest rank",
    "median": "mean over ranks",
    "mean": "mean over ranks and iterations",
}
"""The meaning of a side's time, by column ``time``."""


def sheets(points: pd.DataFrame) -> Iterator[Sheet]:
    """Yield a table of the violations of each group of rows that were measured alike."""
    telling = distinctions(points, [*ALIKE, *OPEN])
    names = list(dict.fromkeys(["mpi", "ranks", "binding", *telling]))
    names = [name for name in names if name not in OPEN]
    for key, members in points.groupby(names, sort=False, dropna=False):
        worst = [(run, run.loc[run["ratio"].idxmax()]) for run in runs(members)]
        if not worst:
            continue
        whose = " or ".join({WHOSE[point["time"]]: None for _, point in worst})
        remark = f"Times {whose}; slower, interval and times at the size that is worst."
        rows = tuple(line(run, point) for run, point in worst)
        yield Sheet(f"Violated: {label(key, names)}", HEADINGS, rows, (remark,))


def runs(points: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield violations of each guideline at sizes that follow each other."""
    for _, members in points.groupby(["guideline", *OPEN], sort=False, dropna=False):
        violated = members["verdict"] == VIOLATED
        between = (~violated).cumsum()
        yield from (run for _, run in members[violated].groupby(between[violated]))


def line(run: pd.DataFrame, worst: pd.Series) -> tuple[str, ...]:
    """Return cells about violations at successive sizes; numbers are those of the worst."""
    sizes = [size_text(size) for size in run["bytes"].dropna()]
    return (
        worst["guideline"],
        f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else "".join(sizes),
        factor(worst["ratio"]),
        f"{factor(worst['ratio_low'])} to {factor(worst['ratio_high'])}",
        at_size(worst["bytes"], ""),
        value_text(worst["left_us"], "us"),
        value_text(worst["right_us"], "us"),
    )


def summary(points: pd.DataFrame, missing: Sequence[str]) -> str:
    """Return the number of checks by verdict, and the guidelines that were not measured."""
    counts = points["verdict"].value_counts()
    parts = [f"{counts.get(verdict, 0)} {words}" for verdict, words in SAID.items()]
    text = (
        f"{count(len(points), 'check')} of {count(points['guideline'].nunique(), 'guideline')}: "
        f"{', '.join(parts)}"
    )
    if missing:
        text += f"; not measured: {first_of(missing, LONGEST_LIST)}"
    return text


SAID = {VIOLATED: "violated", HOLDS: "hold", CANNOT_TELL: "cannot be told"}


def remarks(points: pd.DataFrame) -> Iterator[str]:
    """Yield sentences about the limits of the verdicts, and advice about violations."""
    tested = points[points["p_value"].notna()]
    if len(tested) < len(points):
        yield (
            f"{len(points) - len(tested)} checks rest on too few launches to tell anything: "
            "repeat them 10 times alternately, as omb-py sweep guidelines does"
        )
    if len(tested):
        sides = set(zip(tested["runs_left"], tested["runs_right"], strict=True))
        left, right = min(sides, key=lambda each: (chance(*each)[0], each))
        if chance(left, right)[0] / 2 * len(tested) > LEVEL:
            launches = "a side" if left == right else f"against {right}"
            yield (
                f"with {left} launches {launches}, a single violation among {len(tested)} "
                "checks cannot be told from chance: measure more, or fewer guidelines (--only)"
            )
    if (points["verdict"] == VIOLATED).any():
        yield (
            "another algorithm may mend a violation: omb-py tune measures them and writes rules, "
            "omb-py show --across library_algorithm compares those of --coll-algorithm"
        )


def conclusion(
    points: pd.DataFrame,
    missing: Sequence[str],
    wrong: Sequence[Failure],
    allowed: float,
    lost: Sequence[str] = (),
) -> Conclusion:
    """Conclude on checks by a limit on slowdowns.

    Violations fail whose whole interval is above ``allowed``. Others are undecided that have no
    interval, or one that reaches beyond it. ``missing`` are guidelines that were asked for and
    checked at no size (`not_checked`), ``wrong`` failures of data that was wrong, ``lost`` names
    results that could not be read (`Results.lost`).
    """
    fail = (points["verdict"] == VIOLATED) & (points["ratio_low"] > allowed)
    undecided = points[~fail & ~(points["ratio_high"] <= allowed)]
    failed = [
        Failure(f"{sentence(row)}, allowed is {factor(allowed)}")
        for row in points[fail].to_dict("records")
    ]
    return conclude(
        len(points) - len(undecided),
        [*failed, *wrong],
        [*map(named, undecided.to_dict("records")), *lost],
        missing,
        what="check",
        held=within(allowed),
    )


def sentence(point: Mapping[Any, Any]) -> str:
    """Return a violation at one size, in words."""
    return (
        f"{named(point)}: {value_text(point['left_us'], 'us')} against "
        f"{value_text(point['right_us'], 'us')}, {factor(point['ratio'])} (95 % interval "
        f"{factor(point['ratio_low'])} to {factor(point['ratio_high'])})"
    )


def named(point: Mapping[Any, Any] | pd.Series) -> str:
    """Name a guideline and the message size at which it was judged."""
    return f"{point['guideline']}{at_size(point['bytes'])}"
