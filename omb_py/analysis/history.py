"""Changes in months of results: since when a point is slower, by how much, and what changed then.

Change points are those of Apache Otava: E-divisive in windows, each split judged by Student's
t-test (M. Fleming and others, *Hunter: Using Change Point Detection to Hunt for Performance
Regressions*, ICPE 2023, on D. S. Matteson and N. A. James, *A Nonparametric Approach for Multiple
Change Point Analysis of Multivariate Data*, JASA 109, 2014).
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import median_abs_deviation

from omb_py.analysis.judging import rows_to_judge
from omb_py.analysis.points import TELLING, distinctions, group_ids, label, points_of
from omb_py.analysis.report.runs import FIRST, described
from omb_py.analysis.table import Source, results_of
from omb_py.analysis.values import faults, with_values
from omb_py.analysis.verdict import FASTER, SLOWER
from omb_py.core.errors import UsageError, needing
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import slowdown, value_text
from omb_py.core.text.words import count, first_of
from omb_py.results.columns import CONFIGURATION, EXPERIMENT, SOFTWARE
from omb_py.results.readers import Problem

MAY_CHANGE = ("suite", "mpi", *SOFTWARE, "source")
"""Columns in which runs of one series may differ: they are what may have changed."""

POINT = (
    *(name for name in (*EXPERIMENT, *CONFIGURATION) if name not in MAY_CHANGE),
    *("bytes", "unit", "program", "machine", "host"),
)
"""Columns that runs of one series have in common; ``program`` is a suite without its version,
``host`` one of a fleet (`host_of`)."""

WINDOW = 50
"""Runs in which Otava looks for a change at a time, its own default."""

P_VALUE = 1e-4
"""Chance of a false change, for each split that is tried. ``perf/history.py`` prints
how often that is."""

LEAST_CHANGE = 0.02
"""Smallest change that is reported, as a part of the mean."""

SHORTEST = 5
"""Runs on either side of a change, at least: fewer may be a disturbance that is over."""

ENOUGH = 2 * SHORTEST
"""Runs of the shortest series that is judged."""

UNSURE = 2
"""Runs by which a change point may be off: what changed is looked for between runs that far away
from it on both sides."""

NEIGHBOURS = 5
"""Runs on either side that an outlier is compared with before changes are looked for."""

OUTLIER = 4.0
"""Scaled median absolute deviations from the median beyond which a run is an outlier."""

LEAST_DEVIATION = 0.0025
"""Deviation as a part of the median that a series has at least: numbers may be rounded."""

MAX_LISTED = 30
"""Changes and outliers of a text; other formats have all."""

MAX_DIFFERENCES = 5
"""Differences of metadata that a change has."""

IMPLIED = ("mpi_library: ", "suite: omb-py")
"""Differences that follow from others: the name of the library, the version of omb-py."""

DATE = re.compile(
    r"(?<!\d)(20\d\d)([-_]?)(\d\d)\2(\d\d)(?:[T_ -]?(\d\d)[-:]?(\d\d)[-:]?(\d\d))?(?!\d)"
)
"""A date, perhaps with a time, as ``2026-11-21`` or ``20261121T094543``."""

COLUMNS = (
    *("kind", "date", "point", *POINT, "before", "after", "change", "slowdown"),
    *("verdict", "runs_before", "runs_after", "run_before", "run_after", "newest", "changed"),
)
"""Columns of the rows of changes and outliers."""


@dataclass(frozen=True)
class Series:
    """One point over its runs, in the order of their dates.

    ``point`` has the columns of `POINT`, ``name`` the words that tell it from the others.
    ``starts`` are the places at which segments begin, the first at 0; ``outliers`` the places of
    single runs beyond `OUTLIER` of their segment.
    """

    name: str
    point: Mapping[str, Any]
    runs: tuple[str, ...]
    dates: tuple[datetime, ...]
    values: np.ndarray
    starts: tuple[int, ...]
    outliers: tuple[int, ...]


@dataclass(frozen=True)
class History:
    """All series that are long enough, the ``short`` ones, and the number of all ``runs``.

    ``rows`` has the changes and outliers as `rows_of` makes them; ``undated`` are files without a
    date. ``wrong`` has a sentence for each series whose newest run has wrong data, by the name of
    the series. ``since`` is the first date that counts, ``left_out`` the number of runs before it,
    ``gone`` names the series that have only those. ``lost`` names what could not be read and may be
    newer than the newest run.
    """

    series: tuple[Series, ...]
    short: tuple[Series, ...]
    rows: pd.DataFrame
    runs: int
    undated: tuple[str, ...] = ()
    wrong: Mapping[str, str] = field(default_factory=dict)
    since: datetime | None = None
    left_out: int = 0
    gone: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


def history(
    source: Source, statistic: str = "auto", since: datetime | str | None = None
) -> History:
    """Return the changes of every point over the runs of results, from the date ``since`` on.

    ``source`` are files or folders, results of `omb_py.load`, or a table of their rows.
    ``statistic`` is the number of a row, as in `value_column`; ``auto`` is decided for each series
    by its runs that count, for a series is compared with itself only. A run's date is in its name,
    or else in the name of its file or of a folder above it; without one, its rows are left out.
    """
    results, since = results_of(source), since_of(since) if isinstance(since, str) else since
    rows = results.comparable
    files = rows[["run", "file"]].drop_duplicates()
    dates = {run: date_of(run, file) for run, file in files.itertuples(index=False)}
    machines = {run: machine_of(results.runs.get(run, {})) or None for run in dates}
    rows = rows.assign(
        date=pd.to_datetime(rows["run"].map(dates)),
        program=rows["suite"].astype("string").str.split().str[0],
        machine=rows["run"].map(machines),
    )
    rows = rows.assign(host=host_of(rows))
    undated = tuple(map(str, rows["file"][rows["date"].isna()].unique()))
    rows = rows[rows["date"].notna()]
    lost = tuple(lost_now(results.problems, rows))
    values = numbered(rows, statistic)
    gone: tuple[str, ...] = ()
    left_out = 0
    if since is not None:
        late = values["date"] >= since
        left_out = values["run"].nunique() - values["run"][late].nunique()
        over = values[~values["series"].isin(values["series"][late])]
        gone = tuple(names_of(over.drop_duplicates("series")).values())
        values = numbered(rows[rows["date"] >= since], statistic)
    heads = values.drop_duplicates("series").set_index("series")
    names = names_of(heads)
    facts: dict[str, dict[str, Any]] = {}
    for row in values.drop_duplicates("run")[["run", "suite", "mpi"]].to_dict("records"):
        facts[row["run"]] = {**row, **results.runs.get(row["run"], {})}
    right, _ = rows_to_judge(values)
    wrong = values.drop(right.index).assign(fault=faults)
    right = right[right["value"] > 0]
    nights = points_of(right, ["series", "date", "run"]).sort_values(["series", "date", "run"])
    found = [
        series_of(names[number], heads.loc[number], own)
        for number, own in nights.groupby("series", sort=True)
    ]
    newest = right.groupby("series")["date"].max().to_dict()
    pairs = zip(wrong["series"], wrong["date"], strict=True)
    late = np.array([date >= newest.get(number, date) for number, date in pairs], bool)
    enough = [one for one in found if len(one.values) >= ENOUGH]
    return History(
        tuple(enough),
        tuple(one for one in found if len(one.values) < ENOUGH),
        rows_of(enough, facts),
        len(facts),
        undated,
        {
            names[row["series"]]: f"{names[row['series']]}: "
            f"{row['fault'].replace(' was', ' of the newest run was', 1)}, in {row['file']}"
            for row in wrong[late].to_dict("records")
        },
        since,
        left_out,
        gone,
        lost,
    )


def host_of(rows: pd.DataFrame) -> pd.Series:
    """Return the host of each row of a fleet, for each of its hosts has series of its own.

    A fleet has runs of several hosts, one in each, on half of the days; else the nights of a job
    that gets any host would be no series.
    """
    alone = rows["hosts"].eq(1).fillna(False).astype(bool) & rows["host_names"].notna()
    days = rows["date"].dt.normalize()
    hosts = rows[alone].groupby(days[alone])["host_names"].nunique()
    return rows["host_names"].where(alone & (len(hosts) > 0 and hosts.median() > 1))


def lost_now(problems: Sequence[Problem], rows: pd.DataFrame) -> Iterator[str]:
    """Yield the problems that may have cost results of the newest day, or of an unknown one.

    A line is of the day of the last row above it in its file.
    """
    newest = rows["date"].max()
    for one in problems:
        if one.lost:
            date = date_of("", one.path)
            own = rows[rows["file"] == one.path]
            above = own["date"][own["line"] <= one.line] if one.line is not None else own["date"]
            if len(above):
                date = above.iloc[-1].to_pydatetime()
            if date is None or pd.isna(newest) or date.date() >= newest.date():
                yield str(one)


def numbered(rows: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """Return the rows of `with_values`, with a number for each ``series``."""
    values = with_values(rows, statistic, POINT).reset_index(drop=True)
    return values.assign(series=group_ids(values[name] for name in POINT))


def series_of(name: str, head: pd.Series, runs: pd.DataFrame) -> Series:
    """Return the series of runs in their order, with its changes if there are `ENOUGH`."""
    values = runs["value"].to_numpy()
    starts = starts_of(values) if len(values) >= ENOUGH else (0,)
    outliers = tuple(outliers_of(values, starts)) if len(values) >= ENOUGH else ()
    return Series(
        name,
        {column: head[column] for column in POINT},
        tuple(runs["run"]),
        tuple(runs["date"]),
        values,
        starts,
        outliers,
    )


def since_of(text: str) -> datetime:
    """Return the date that ``--since`` names, in UTC as the names of runs.

    Raises `UsageError` if it is none.
    """
    match = DATE.fullmatch(text.strip())
    found = date_of(text.strip(), "") if match else None
    if found is None:
        raise UsageError(f"--since {text}: write a date as in 2026-11-21")
    return found


def date_of(run: object, file: object) -> datetime | None:
    """Return when a run started: by its name in UTC, else by the last date in its file's path.

    >>> date_of("20261121T094543Z-12b457", "a.csv"), date_of("a.txt:1", "2026-11-20/a.txt")
    (datetime.datetime(2026, 11, 21, 9, 45, 43), datetime.datetime(2026, 11, 20, 0, 0))
    """
    match = DATE.match(str(run)) or next(reversed([*DATE.finditer(str(file))]), None)
    if match is None:
        return None
    parts = [part for part in match.groups() if part and part.isdigit()]
    try:
        return datetime(*map(int, parts))  # type: ignore[arg-type]
    except ValueError:
        return None


def machine_of(data: Mapping[str, Any]) -> str:
    """Return the machine of metadata: a system, or else a processor and a device."""
    device = re.sub(r"^\d+: ", "", data.get("device", ""))
    return data.get("machine") or ", ".join(filter(None, (data.get("processor", ""), device)))


def names_of(heads: pd.DataFrame) -> dict[Any, str]:
    """Return the name of each series, by what tells it from the others of its benchmark.

    Two that round to the same words, such as sizes of 1,000,000 and 1,000,001 bytes, are numbered.
    """
    telling = [name for name in TELLING if name not in MAY_CHANGE]
    names = {}
    uses: dict[str, int] = {}
    for benchmark, members in heads.groupby("benchmark"):
        apart = distinctions(members, (*telling, "program", "machine", "host", "unit"))
        columns = [*apart, "bytes"]
        for number, head in members.iterrows():
            words = label([head[name] for name in columns], columns)
            name = ", ".join(filter(None, (str(benchmark), words)))
            uses[name] = uses.get(name, 0) + 1
            names[number] = name if uses[name] == 1 else f"{name} ({uses[name]})"
    return names


def starts_of(values: np.ndarray) -> tuple[int, ...]:
    """Return the places at which segments of a series begin, the first at 0.

    Single outliers do not count. A segment of less than `SHORTEST` runs is joined to the neighbour
    from which it differs less.
    """
    with needing("history"):
        from otava.analysis import TTestSignificanceTester, compute_change_points, merge

    plain = without_outliers(values)
    found, _ = compute_change_points(plain.tolist(), WINDOW, P_VALUE, LEAST_CHANGE)
    tester = TTestSignificanceTester(P_VALUE)
    while found:
        lengths = np.diff([0, *(one.index for one in found), len(plain)])
        if lengths.min() >= SHORTEST:
            break
        shortest = int(lengths.argmin())
        ends = [place for place in (shortest - 1, shortest) if 0 <= place < len(found)]
        del found[max(ends, key=lambda place: found[place].stats.pvalue)]
        intervals = tester.get_intervals(found)
        found = [tester.change_point(one.to_candidate(), plain, intervals) for one in found]
        found = merge(found, plain, P_VALUE, LEAST_CHANGE)
    return (0, *(int(one.index) for one in found))


def without_outliers(values: np.ndarray) -> np.ndarray:
    """Return values; the median of its neighbours replaces each single one beyond `OUTLIER`."""
    padded = np.pad(values, NEIGHBOURS, mode="reflect")
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1)
    median = np.median(around, axis=1)
    return np.where(alone(values, median, around), median, values)


def outliers_of(values: np.ndarray, starts: Sequence[int]) -> Iterator[int]:
    """Yield the places of single runs beyond `OUTLIER` of their segment."""
    for start, own in zip(starts, np.split(values, starts[1:]), strict=True):
        yield from map(int, start + np.flatnonzero(alone(own, np.median(own), own)))


def alone(values: np.ndarray, median: Any, around: np.ndarray) -> np.ndarray:
    """Return which values are beyond `OUTLIER` of those ``around``, unlike their neighbours."""
    deviation = median_abs_deviation(around, axis=-1, scale="normal")
    odd = np.abs(values - median) > OUTLIER * np.maximum(deviation, LEAST_DEVIATION * median)
    return np.asarray(odd & ~np.append(odd[1:], False) & ~np.insert(odd[:-1], 0, False))


def rows_of(series: Sequence[Series], facts: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return changes and outliers as rows, the newest first, changes before outliers.

    ``before`` and ``after`` are medians of the segments on both sides, of an outlier that of its
    segment and its own value; ``change`` is their quotient less 1, ``slowdown`` by how many times
    ``after`` is worse. ``runs_before`` and ``runs_after`` count the runs of these segments,
    ``run_before`` and ``run_after`` are the runs next to the change. ``newest`` tells whether no
    other change of the series follows. ``facts`` is what is known of each run.
    """
    rows = [row for one in series for row in (*changes(one, facts), *odd_runs(one))]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    frame = frame.sort_values(
        ["kind", "date", "slowdown"], ascending=[True, False, False], ignore_index=True
    )
    return frame.assign(date=pd.to_datetime(frame["date"]).dt.strftime("%Y-%m-%d %H:%M"))


def changes(one: Series, facts: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the changes of a series as rows."""
    segments = np.split(one.values, one.starts[1:])
    for start, before, after in zip(one.starts[1:], segments, segments[1:], strict=False):
        earlier, later = (facts[one.runs[at]] for at in (start - 1 - UNSURE, start + UNSURE))
        yield row_of(one, start, np.median(before), np.median(after)) | {
            "kind": "change",
            "runs_before": len(before),
            "runs_after": len(after),
            "run_before": one.runs[start - 1],
            "newest": start == one.starts[-1],
            "changed": differences(earlier, later),
        }


def odd_runs(one: Series) -> Iterator[dict[str, Any]]:
    """Yield the outliers of a series as rows."""
    segments = np.split(one.values, one.starts[1:])
    for place in one.outliers:
        own = segments[bisect(one.starts, place) - 1]
        counts = {"kind": "outlier", "runs_before": len(own), "runs_after": 1}
        yield row_of(one, place, np.median(own), one.values[place]) | counts


def row_of(one: Series, place: int, before: float, after: float) -> dict[str, Any]:
    """Return the columns that a change and an outlier have in common."""
    change = after / before
    slower = slowdown(change, one.point["unit"])
    return {
        "date": one.dates[place],
        "point": one.name,
        **one.point,
        "before": before,
        "after": after,
        "change": change - 1,
        "slowdown": slower,
        "verdict": SLOWER if slower > 1 else FASTER,
        "run_after": one.runs[place],
    }


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the metadata that differs between two runs, the most telling first.

    >>> differences({"mpi": "MPICH 5.0.1", "ranks": "2"}, {"mpi": "MPICH 5.0.2", "ranks": "2"})
    'mpi: MPICH 5.0.1 → MPICH 5.0.2'
    """
    sides = [
        described({name: str(value) for name, value in data.items() if not pd.isna(value)})
        for data in (before, after)
    ]
    names = sorted({*sides[0], *sides[1]}, key=lambda name: [*FIRST, name].index(name))
    pairs = ((name, *(side.get(name, "-") for side in sides)) for name in names)
    found = [f"{name}: {old} → {new}" for name, old, new in pairs if old != new]
    return first_of([text for text in found if not text.startswith(IMPLIED)], MAX_DIFFERENCES)


def sheets(found: History) -> Iterator[Sheet]:
    """Yield a table of the changes and one of the outliers, the newest of each first."""
    for kind, title in (("change", "Changes"), ("outlier", "Single outliers")):
        members = found.rows[found.rows["kind"] == kind]
        extra = ("what changed",) * (kind == "change")
        heads = ("date", "point", "before", "after", "change", "verdict", *extra)
        lines = [
            tuple(cell_of(row, name) for name in heads)
            for row in members[:MAX_LISTED].to_dict("records")
        ]
        more = len(members) - len(lines)
        remarks = (f"and {more:,} more",) * (more > 0) or ("none",) * members.empty
        yield Sheet(title, heads, tuple(lines), remarks, left=len(heads))


def cell_of(row: Mapping[Any, Any], name: str) -> str:
    """Return the cell of a change or an outlier in the column with this heading."""
    if name in ("before", "after"):
        return value_text(row[name], row["unit"])
    if name == "change":
        return f"{100 * row[name]:+.1f} %"
    if name == "what changed":
        return row["changed"] or "nothing in the metadata"
    return str(row[name])


def summary(found: History) -> str:
    """Return how many series and runs were judged, and the findings, in a sentence."""
    kinds = found.rows["kind"].value_counts()
    of_which = (
        f" since {day(found.since)} (of {found.runs + found.left_out})" if found.since else ""
    )
    text = (
        f"{len(found.series)} series of {count(found.runs, 'run')}{of_which} were judged: "
        f"{count(int(kinds.get('change', 0)), 'change')}, "
        f"{count(int(kinds.get('outlier', 0)), 'outlier')}"
    )
    text += f"; {len(found.short)} had fewer than {ENOUGH} runs" if found.short else ""
    return text + (f"; not run since then: {first_of(found.gone, 3)}" if found.gone else "")


def day(date: datetime) -> str:
    """Return a date, with the time of day if it has one."""
    return f"{date:%Y-%m-%d}" if date.time() == time() else f"{date:%Y-%m-%d %H:%M}"
