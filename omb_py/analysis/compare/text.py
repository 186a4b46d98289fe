"""A comparison as tables: on a terminal, as Markdown."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import floor, log10
from typing import Any, NamedTuple, TextIO

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from omb_py.analysis.compare.side_by_side import NO_BASE, NO_OTHER, ONLY_OTHER, TAIL
from omb_py.analysis.compare.verdict import (
    VERDICTS,
    configuration_columns,
    counted,
    experiment_columns,
    factor,
    margin_of,
    sizes_text,
    summary,
    times,
    titles,
    whole,
    words_of,
)
from omb_py.analysis.points import label
from omb_py.benchmarks import Metric, all_benchmarks
from omb_py.core.text.tables import UNLIMITED, escaped, markdown_rows
from omb_py.core.text.units import digits, size_text, value_text
from omb_py.results.columns import CONFIGURATION, EXPERIMENT

LEVELS = (
    ("value", "difference", "ratio", "95 % interval", "verdict"),
    ("value", "ratio", "verdict"),
    ("ratio", "verdict"),
    ("slowdown",),
)
"""Columns of each other, from the most to the fewest."""

BOUND = "of its bound"
"""A column more, where some value has a bound: the points' column ``of_bound``."""

CLOCK_INSIDE = (
    "native OMB's one-sided latencies include two clock readings in each iteration (some 40 ns "
    "together), omb-py's do not"
)

STATISTICS = {"median": "medians", "mean": "means", TAIL: "99th percentiles"}

STYLES = {"slower": "red", "faster": "green"}
LONGEST_TAG = 14
"""Characters of a name that may stand above each of its columns."""


@dataclass(frozen=True)
class PairTable:
    """One experiment in one configuration of the base: a line for each size, columns for others.

    ``shown`` is the base's name with its configuration; ``others`` are such names of what is
    compared, ``points`` their rows of the comparison.
    """

    experiment: str
    base: str
    shown: str
    others: tuple[str, ...]
    points: tuple[pd.DataFrame, ...]

    @property
    def title(self) -> str:
        """What is compared."""
        what = f": {self.others[0]}" if len(self.others) == 1 else ""
        statistic = self.points[0]["statistic"].iloc[0]
        return f"{self.experiment}{what} against {self.shown}, {STATISTICS[statistic]}"

    @property
    def alone(self) -> tuple[PairTable, ...]:
        """A sheet for each other."""
        return tuple(
            replace(self, others=(name,), points=(part,))
            for name, part in zip(self.others, self.points, strict=True)
        )

    @property
    def tags(self) -> tuple[str, ...]:
        """What stands above the columns of each other: nothing for one, letters for long names."""
        if len(self.others) == 1:
            return ("",)
        names = tuple(str(part["other"].iloc[0]) for part in self.points)
        for tags in (self.others, names):
            if max(map(len, tags)) <= LONGEST_TAG and len(set(tags)) == len(tags):
                return tags
        return tuple(f"[{chr(ord('A') + i)}]" for i in range(len(self.others)))

    @property
    def legend(self) -> tuple[str, ...]:
        """Lines below the title: what letters mean, and what numbers differ in by definition."""
        pairs = zip(self.tags, self.others, strict=True)
        names = [
            f"{tag} {name.removeprefix(tag).lstrip()}"
            for tag, name in pairs
            if tag not in ("", name)
        ]
        return (*names, *([CLOCK_INSIDE] if any(map(clock_inside, self.points)) else []))

    def heading(self, columns: tuple[str, ...]) -> list[str]:
        """The columns' names, above each other's its tag."""
        mine = [f"{tag}\n{name}".strip() for tag in self.tags for name in columns]
        return ["size", self.base, *mine]

    def shown_columns(self, level: tuple[str, ...]) -> tuple[str, ...]:
        """The columns of each other: of a level of `LEVELS`, and `BOUND` where there are any."""
        bounded = any("of_bound" in part and part["of_bound"].any() for part in self.points)
        return (*level, BOUND) if bounded else level

    def lines(self, columns: tuple[str, ...]) -> Iterator[list[str]]:
        """Cells of each size at which something is compared."""
        by_size = [{size_of(row): row for row in part.to_dict("records")} for part in self.points]
        compared = [size for rows in by_size for size, row in rows.items() if row["ratio"] > 0]
        sizes = sorted(set(compared))
        for size in sizes:
            there = [rows.get(size) for rows in by_size]
            bases = [row["base"] for row in there if row and row["base"] == row["base"]]
            unit = next(row["unit"] for row in there if row)
            cells = ["-" if size < 0 else size_text(size), text_of(bases, unit)]
            for row in there:
                cells += [cell(row, name) for name in columns]
            yield cells


def clock_inside(points: pd.DataFrame) -> bool:
    """Whether one side alone is native OMB, which reads the clock within its one-sided latencies.

    It times all iterations together, and each of them besides, for its percentiles.
    """
    known = {item.name: item for item in all_benchmarks() if item.family == "one-sided"}
    benchmark = known.get(str(points["benchmark"].iloc[0]))
    if benchmark is None or benchmark.metric is not Metric.LATENCY:
        return False
    sides = [points[f"{side}_suite"].dropna().str.startswith("OSU") for side in ("base", "other")]
    return any(sides[0]) != any(sides[1])


def size_of(row: dict[Any, Any]) -> int:
    """A row's message size; -1 where it has none."""
    return -1 if pd.isna(row["bytes"]) else int(row["bytes"])


def text_of(values: list[float], unit: str) -> str:
    """The first of values, if there is one."""
    return value_text(values[0], unit) if values else "-"


def cell(row: dict[Any, Any] | None, name: str) -> str:
    """What stands in a column of an other."""
    if row is None:
        return "-"
    if name == BOUND:
        return str(row["of_bound"])
    if name == "verdict":
        return words_of(row["verdict"], row["equal_within"])
    if name == "value":
        return text_of([row["value"]] if row["value"] == row["value"] else [], row["unit"])
    if row["ratio"] != row["ratio"]:
        return "-"
    if name == "slowdown":
        changed = row["verdict"] in STYLES
        return (
            times(row["slowdown"], row["rounding"])
            if changed
            else words_of(row["verdict"], row["equal_within"])
        )
    if name == "difference":
        return difference_text(row["difference"], row["unit"], row["rounding"] * row["base"])
    if name == "ratio":
        return number(row["ratio"], row["rounding"])
    if row["ratio_low"] != row["ratio_low"]:
        return "-"
    rounding = row["rounding"]
    return f"{number(row['ratio_low'], rounding)} to {number(row['ratio_high'], rounding)}"


def difference_text(difference: float, unit: str, step: float) -> str:
    """Return a difference with its sign and no digit below ``step``, what its sides may be off.

    >>> difference_text(-0.00001, "us", 0.01), difference_text(0.021, "us", 0.01)
    ('0 ns', '+20 ns')
    >>> difference_text(0.021, "us", 0.0)
    '+21.0 ns'
    """
    if step > 0:
        difference = round(difference, -floor(log10(step)))
    text = value_text(difference, unit)
    if step > 0:
        value, _, rest = text.partition(" ")
        text = f"{value.rstrip('0').rstrip('.') if '.' in value else value} {rest}"
    return f"+{text}" if difference > 0 else text


def number(ratio: float, rounding: float = 0.0) -> str:
    """A ratio with as many digits as tell a tenth of a percent, or as its rounding leaves.

    >>> number(1.0321), number(0.00123), number(0.05, rounding=0.5)
    ('1.032', '0.00123', '0.05')
    """
    if ratio >= 0.1 or ratio * rounding > 0.001:
        return factor(max(ratio, 0.0), rounding).rstrip("x")
    return digits(ratio)


def sheets(points: pd.DataFrame, base: str) -> Iterator[PairTable]:
    """The tables of a comparison with a base of that name; pairs of one side alone are in none."""
    columns = experiment_columns(points), configuration_columns(points)
    there = points[points.groupby("pair")["ratio"].transform("count") > 0]
    keys = [*EXPERIMENT, "unit", "statistic", *(f"base_{name}" for name in CONFIGURATION)]
    telling = [name for name in keys if there[name].nunique(dropna=False) > 1] or ["unit"]
    for _, members in there.groupby(telling, dropna=False, sort=False):
        groups = tuple(part for _, part in members.groupby("pair", sort=False))
        ways = [part[part["ratio"].notna()].iloc[0].to_dict() for part in groups]
        what, how = (each[ways[0]["benchmark"]] for each in columns)
        yield PairTable(
            label([ways[0][name] for name in what], what),
            base,
            name_text(base, [ways[0][f"base_{name}"] for name in how], how),
            tuple(
                name_text(way["other"], [way[f"other_{name}"] for name in how], how) for way in ways
            ),
            groups,
        )


def name_text(name: str, values: list[Any], columns: list[str]) -> str:
    """A name with how it was measured."""
    told = label(values, columns)
    return f"{name} ({told})" if told else name


def introduction(base: str) -> str:
    """What the numbers of the tables mean."""
    return (
        f"Ratio: value / {base}; a latency's is above 1 where it is slower, a bandwidth's below 1. "
        "Intervals: 95 %."
    )


def endings(points: pd.DataFrame, base: str) -> Iterator[str]:
    """A line for the points of each pair of which one side has no number: no table shows them."""
    alone = points[points["ratio"].isna()]
    names = titles(points)
    for (pair, verdict), rows in alone.groupby(["pair", "verdict"], sort=False):
        other = rows["other"].iloc[0]
        where = f"Only in {other if verdict == ONLY_OTHER else f'the base, not in {other}'}"
        if verdict in (NO_BASE, NO_OTHER):
            where = f"Without a number above 0 in {base if verdict == NO_BASE else other}"
        count = f"{len(rows)} point{'s' if len(rows) > 1 else ''}"
        yield f"{where}: {names[pair]}: {count}{sizes_text(rows['bytes'])}"


def pair_lines(points: pd.DataFrame) -> Iterator[str]:
    """A line about each pair that has points of both sides."""
    for row in summary(points).to_dict("records"):
        if row["slowdown"] == row["slowdown"]:
            margin = margin_of(points)
            counts = counted(row, margin, VERDICTS[:5])
            slowdown = whole(
                row,
                row["slowdown"],
                (row["slowdown_low"], row["slowdown_high"]),
                (row["minimum"], row["maximum"]),
                row["rounding"],
                margin=margin,
            )
            yield f"{row['other']}: {row['title']}: {slowdown}; {', '.join(counts)}"


def print_text(points: pd.DataFrame, base: str, stream: TextIO) -> None:
    """The tables: coloured and as wide as there is room on a terminal, without limit elsewhere."""
    width = None if stream.isatty() else UNLIMITED
    console = Console(file=stream, width=width, highlight=False, soft_wrap=True)
    console.print(Text(introduction(base)))
    for sheet in sheets(points, base):
        for part in fitting(sheet, console):
            console.print()
            console.print(Text("\n".join([part.sheet.title, *part.sheet.legend]), style="bold"))
            console.print(part.table, soft_wrap=False)
    for line in endings(points, base):
        console.print(Text(line))


class Fitted(NamedTuple):
    """A sheet and its table."""

    sheet: PairTable
    table: Table


def fitting(sheet: PairTable, console: Console) -> list[Fitted]:
    """A sheet as tables that the console has room for: of fewer columns, or one for each other."""
    options = console.options.update(width=UNLIMITED)
    for level in LEVELS:
        table = rich_table(sheet, sheet.shown_columns(level))
        if Measurement.get(console, options, table).maximum <= console.width:
            return [Fitted(sheet, table)]
    if len(sheet.others) == 1:
        return [Fitted(sheet, table)]
    return [fitted for one in sheet.alone for fitted in fitting(one, console)]


def rich_table(sheet: PairTable, columns: tuple[str, ...]) -> Table:
    """A sheet with these columns."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in sheet.heading(columns):
        table.add_column(Text(name), justify="left" if "verdict" in name else "right", no_wrap=True)
    for cells in sheet.lines(columns):
        table.add_row(
            *(Text(text, style=STYLES.get(text.rpartition(" ")[2], "")) for text in cells)
        )
    return table


def markdown(points: pd.DataFrame, base: str, allowed: float | None = None) -> str:
    """The tables as Markdown."""
    blocks = [introduction(base)]
    for sheet in sheets(points, base):
        columns = sheet.shown_columns(LEVELS[0])
        names = [name.replace("\n", " ") for name in sheet.heading(columns)]
        right = ["verdict" not in name for name in names]
        lines = markdown_rows(names, sheet.lines(columns), right)
        legend = "".join(f"  \n{line}" for line in sheet.legend)
        blocks += [f"**{escaped(sheet.title)}**{escaped(legend)}", "\n".join(lines)]
    blocks += [f"- {escaped(line)}" for line in endings(points, base)]
    return "\n\n".join(blocks) + "\n"


def text(points: pd.DataFrame, base: str, allowed: float | None = None) -> str:
    """The tables as on a terminal of any width."""
    stream = io.StringIO()
    print_text(points, base, stream)
    return stream.getvalue()
