"""Choice of the rows of a figure, and of the columns that distinguish its lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from omb_py.analysis.anomalies import BUSY_PERCENT, busy_hosts
from omb_py.analysis.charts.spec import Measure
from omb_py.analysis.points import (
    GROWING,
    by,
    caption_part,
    common,
    distinctions,
    group_ids,
    line_name,
    points_of,
    without_implied,
)
from omb_py.analysis.select import no_column
from omb_py.analysis.sources import short_names
from omb_py.core.text.words import count
from omb_py.results.columns import CONFIGURATION, EXPERIMENT, SOFTWARE
from omb_py.results.metadata import Runs, crowded_hosts

COLUMNS = tuple(name for name in (*CONFIGURATION, *EXPERIMENT) if name != "benchmark")
"""Columns that may distinguish lines."""

OF_FILES = ("suite", "mpi", "hosts", *SOFTWARE)
"""Columns omitted from a line's name next to the name of its file, if they follow from it."""


@dataclass(frozen=True)
class Request:
    """A request for charts: the options of ``omb-py plot``.

    ``lines`` are the columns that distinguish lines, None for all that differ. ``sizes`` are the
    message sizes to keep, empty for all (a few over ranks).
    """

    kind: str = "auto"
    lines: Sequence[str] | None = None
    sizes: tuple[int, ...] = ()
    value: str = "auto"
    statistic: str = "auto"


@dataclass(frozen=True)
class Group:
    """The rows of one figure.

    ``values`` distinguishes this figure from others of the same benchmarks. ``lines`` are the
    columns that distinguish its lines.
    """

    benchmark: str
    values: Mapping[str, object]
    rows: pd.DataFrame
    lines: tuple[str, ...]

    def name(self, *more: object) -> str:
        """Return its title as the name of a file."""
        return stem(self.benchmark, *more, *(caption_part(*item) for item in self.values.items()))

    @property
    def measure(self) -> Measure:
        """The quantity, unit and statistic of the values of the group's rows."""
        first = self.rows.iloc[0]
        statistic = " or ".join(sorted(set(self.rows["statistic"].unique()) - {""}))
        return Measure(str(first["words"]), str(first["unit"]), statistic)

    def points(
        self, columns: Sequence[str], others: Sequence[str], apart: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Return its points (`points_of`) by ``columns``, which name the ``line``, and ``others``.

        Columns ``apart`` name the ``title`` of a panel; ``text`` is the value with its unit;
        ``crowded`` is true if a run of the point was (`with_conditions`).
        """
        found = []
        names = [*apart, *columns, *others]
        every = points_of(self.rows, names)
        at = group_ids(self.rows[name] for name in names)
        every["crowded"] = self.rows["crowded"].groupby(at).any()
        for key, points in by(every, [*apart, *columns]):
            title = line_name(key[: len(apart)], apart) if apart else ""
            name = line_name(key[len(apart) :], columns) if columns else self.benchmark
            found.append(points.assign(title=title, line=name))
        data, measure = pd.concat(found, ignore_index=True), self.measure
        return data.assign(text=[measure.text(value) for value in data["value"]])

    def facts(self, axes: Sequence[str], columns: Sequence[str]) -> list[str]:
        """Return constant columns, the columns that grow along the axis, and explanations of
        units."""
        rows = self.rows
        own = [caption_part(*item) for item in self.values.items() if item[0] != "unit"]
        found = [" · ".join([*own, *common(rows, {*axes, *columns, *self.values})])]
        for name in (name for name in GROWING if name in axes and rows[name].nunique() > 1):
            found.append(f"{rows[name].min()} to {caption_part(name, rows[name].max())}")
        for file in (name for name in ("file", "source") if name in columns):
            for name in OF_FILES:
                if name not in columns and rows[name].nunique() > 1:
                    pairs = (values for values, _ in by(rows, [file, name]))
                    found.append("; ".join(f"{at}: {caption_part(name, it)}" for at, it in pairs))
        found += ["MB are 1,000,000 bytes"] * (self.measure.unit == "MB/s")
        return [*found, *conditions(rows)]


def with_conditions(rows: pd.DataFrame, runs: Runs) -> pd.DataFrame:
    """Return rows that say whether their run was ``crowded`` or ``busy``, by its metadata.

    A host of a crowded run had more ranks than logical cores; on one of a busy run, other programs
    took `BUSY_PERCENT` of the cores.
    """
    crowded = [run for run, data in runs.items() if any(crowded_hosts(data))]
    busy = [run for run, data in runs.items() if any(busy_hosts({run: data}))]
    return rows.assign(crowded=rows["run"].isin(crowded), busy=rows["run"].isin(busy))


def conditions(rows: pd.DataFrame) -> list[str]:
    """Return sentences about crowded and busy runs, if some are (`with_conditions`)."""
    of = count(rows["run"].nunique(), "run")
    crowded, busy = (rows["run"][rows[name]].nunique() for name in ("crowded", "busy"))
    found = [f"In {crowded} of {of}, ranks shared cores: times include waiting"] * (crowded > 0)
    taken = f"In {busy} of {of}, other programs used {BUSY_PERCENT:g} % or more of the cores"
    return [*found, *[taken] * (busy > 0)]


def groups(rows: pd.DataFrame, axes: Sequence[str], request: Request) -> Iterator[Group]:
    """Yield a group for each figure of rows with numbers. ``axes`` are the columns along its axes.

    If lines are chosen, all other columns distinguish figures; else all columns in which rows
    differ distinguish lines. Raises `UsageError` for an unknown column of lines.
    """
    lines = request.lines
    for name in lines or ():
        if name not in rows.columns or name in ("value", "line"):
            raise no_column(name, COLUMNS)
    for benchmark, part in benchmarks(rows, axes, lines):
        columns = [name for name in COLUMNS if name not in axes]
        found = [distinctions(members, columns) for _, members in by(part, ["benchmark"])]
        telling = [name for name in columns if any(name in names for names in found)]
        wanted = list(telling if lines is None else [name for name in lines if name not in axes])
        if "file" in wanted:
            part = part.assign(file=part["file"].map(short_names(part["file"].dropna().unique())))
        if lines is None and part["source"].notna().all():
            sure = without_implied(part, OF_FILES, ["source"])
            telling = wanted = [name for name in wanted if name not in OF_FILES or name in sure]
        others = without_implied(part, [name for name in telling if name not in wanted], wanted)
        others += ["unit"] * (part["unit"].nunique() > 1)
        for values, members in by(part, others):
            named = dict(zip(others, values, strict=True))
            apart = tuple(distinctions(members, wanted))
            yield Group(benchmark, named, members, apart)


def benchmarks(
    rows: pd.DataFrame, axes: Sequence[str], lines: Sequence[str] | None
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the rows of each benchmark, or all rows if a figure distinguishes benchmarks."""
    if "benchmark" in (*axes, *(lines or ())):
        yield "benchmarks", rows
        return
    for (name,), members in by(rows, ["benchmark"]):
        yield str(name), members


def run_facts(runs: pd.Series, statistic: str, marks: str, of_one: str) -> list[str]:
    """Return the meaning of points, by their numbers of ``runs``, and of the ``marks`` next to
    them.

    ``of_one`` is what marks of a single run mean; empty if it has none.

    >>> run_facts(pd.Series([1, 2]), "mean", "Bands", "all samples")[1]
    'Bands: the minimum to the maximum of the runs; of single runs, all samples'
    """
    most = max(runs, default=0)
    spans = ["the minimum to the maximum of the runs"] * (most > 1)
    if of_one and (runs == 1).any():
        spans.append(f"of single runs, {of_one}" if most > 1 else of_one)
    found = [f"Medians of up to {most} runs' {statistic or 'value'}s"] * (most > 1)
    return [*found, *[f"{marks}: {'; '.join(spans)}"] * bool(spans)]


def stem(*parts: object) -> str:
    """Return a file's name of some texts.

    >>> stem("latency", "", "Open MPI 5.0.11")
    'latency-open-mpi-5.0.11'
    """
    return "-".join(plain(str(part)) for part in parts if part)


def plain(text: str) -> str:
    """Return a text as part of a file's name."""
    return re.sub(r"[^A-Za-z0-9._+]+", "-", text).strip("-.").lower() or "x"
