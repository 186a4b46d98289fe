"""Which rows are one figure, and which of their columns tell lines and panels apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from omb_py.analysis.charts.axes import Measure
from omb_py.analysis.charts.spec import MAX_LINES
from omb_py.analysis.points import (
    GROWING,
    by,
    caption_part,
    common,
    distinctions,
    without_implied,
)
from omb_py.analysis.select import no_column
from omb_py.analysis.sources import short_names
from omb_py.analysis.values import measured
from omb_py.core.errors import UsageError
from omb_py.results.columns import CONFIGURATION, EXPERIMENT

MAX_PANELS = 12
"""Panels of one figure; more of them are figures of their own."""

PANELS_FIRST = ("ranks", "mpi")
"""Columns whose values become panels before those of others, where lines are too many for one."""

COLUMNS = tuple(name for name in (*CONFIGURATION, *EXPERIMENT) if name != "benchmark")
"""Columns that may tell lines apart."""

OF_FILES = ("suite", "mpi", "hosts")
"""Columns that need not be in a line's name beside the name of its file, if they follow from it."""


@dataclass(frozen=True)
class Choice:
    """What is asked of every figure: the columns of its lines, its value, statistic and units."""

    lines: tuple[str, ...] | None = None
    value: str = "auto"
    statistic: str = "auto"
    binary: bool = False


@dataclass(frozen=True)
class Group:
    """The rows of one figure.

    ``values`` is what tells this figure from others of the same benchmarks, ``lines`` the columns
    that tell its lines apart.
    """

    benchmark: str
    values: Mapping[str, object]
    rows: pd.DataFrame
    lines: tuple[str, ...]
    binary: bool

    def name(self, kind: str = "") -> str:
        """Its title as the name of a file."""
        parts = [self.benchmark, kind, *(caption_part(*item) for item in self.values.items())]
        return "-".join(plain(part) for part in parts if part)

    @property
    def measure(self) -> Measure:
        """What the values of its rows are."""
        first = self.rows.iloc[0]
        statistic = " or ".join(sorted(set(self.rows["statistic"].unique()) - {""}))
        return Measure(str(first["words"]), str(first["unit"]), statistic, self.binary)

    def facts(self, axes: Sequence[str], columns: Sequence[str]) -> list[str]:
        """What does not vary within the figure, what grows along its axis, and what units mean."""
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
        return [*found, *self.measure.note]


def groups(rows: pd.DataFrame, axes: Sequence[str], choice: Choice) -> Iterator[Group]:
    """A group for each figure, with its numbers. ``axes`` are the columns along its axes.

    With lines chosen, all other columns tell figures apart; without, all columns in which rows
    differ tell lines apart. Each benchmark by itself decides between medians and means; those
    without such numbers are left out. Raises `UsageError` for a line's column that there is not.
    """
    lines = choice.lines
    for name in lines or ():
        if name not in rows.columns or name in ("value", "line"):
            raise no_column(name, COLUMNS)
    for benchmark, part in benchmarks(rows, axes, lines):
        try:
            part = measured(part, choice.value, choice.statistic)
        except UsageError:
            continue
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
            yield Group(benchmark, named, members, apart, choice.binary)


def benchmarks(
    rows: pd.DataFrame, axes: Sequence[str], lines: Sequence[str] | None
) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each benchmark, or of all at once where a figure tells benchmarks apart."""
    if "benchmark" in (*axes, *(lines or ())):
        yield "benchmarks", rows
        return
    for (name,), members in by(rows, ["benchmark"]):
        yield str(name), members


def panel_columns(rows: pd.DataFrame, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns whose values become panels, so that these have `MAX_LINES` lines where they can.

    None where all lines go into one panel; `PANELS_FIRST`, then those of the fewest values.
    """
    rows = rows[list(columns)].drop_duplicates()
    places = {name: place for place, name in enumerate(PANELS_FIRST)}
    others = sorted(columns, key=lambda name: (places.get(name, 9), rows[name].nunique()))
    chosen: list[str] = []
    while len(others) > 1 and max(len(part) for _, part in by(rows, chosen)) > MAX_LINES:
        chosen.append(others.pop(0))
    return tuple(name for name in columns if name in chosen)


def plain(text: str) -> str:
    """A text as part of a file's name.

    >>> plain("Open MPI 5.0.11")
    'open-mpi-5.0.11'
    """
    return re.sub(r"[^A-Za-z0-9._+]+", "-", text).strip("-.").lower() or "x"
