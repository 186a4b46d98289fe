"""Who wins where: the best configuration at each message size and number of ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan, log, nan

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from omb_py.algorithms import DEFAULT
from omb_py.analysis.plots.charts import facts, measure, number_points
from omb_py.analysis.plots.groups import Group, benchmarks
from omb_py.analysis.plots.style import (
    MAX_LINES,
    SMALL,
    Page,
    color,
    empty_figure,
    finish,
    muted,
    paper,
    readable_on,
    text_width,
)
from omb_py.analysis.points import along, by, distinctions, line_name
from omb_py.core.text.units import digits, size_text
from omb_py.results.columns import CONFIGURATION

CHOSEN = ("library_algorithm", "algorithm", "segment", "variant")
"""What a map is about unless ``lines`` say so, where rows differ in it; else all of the
configuration in which they differ."""

FOLLOWERS = ("algorithm", "segment", "variant")
"""What a binding may bring: an own algorithm for collectives, options as a label."""

TIMES = "\N{MULTIPLICATION SIGN}"
PALEST = 0.2
"""How much of its colour a winner has that is no better than the second; none of less."""

FULL = 2.0
"""The factor to the second from which a winner has all of its colour."""

OTHERS = "others"


@dataclass(frozen=True)
class Contender:
    """A configuration in one cell: its value, and the interval that it is known to lie in.

    The interval is a pair of nan where it is not known.
    """

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Cell:
    """The winner of a cell, and how many times better it is than the second.

    ``factor`` is None for the only contender; ``within_noise`` means that both intervals overlap.
    """

    winner: str
    factor: float | None
    within_noise: bool

    @property
    def text(self) -> str:
        """The cell in words."""
        return f"{self.winner}{',' * self.within_noise} {self.lead}"

    @property
    def lead(self) -> str:
        """How far it leads."""
        if self.factor is None:
            return "alone"
        return "within noise" if self.within_noise else f"{digits(self.factor)}{TIMES}"

    @property
    def strength(self) -> float:
        """How much of its winner's colour the cell has, from `PALEST` to 1."""
        if self.factor is None or self.within_noise:
            return PALEST
        return PALEST + (1 - PALEST) * min(1.0, log(self.factor) / log(FULL))


@dataclass(frozen=True)
class WinnerMap:
    """A row of cells for each message size (nan where there is none), a column for ranks.

    ``names`` are all contenders, in the order of their colours; a cell is None where nobody was
    measured.
    """

    name: str
    title: str
    words: str
    names: tuple[str, ...]
    ranks: tuple[str, ...]
    sizes: tuple[float, ...]
    cells: tuple[tuple[Cell | None, ...], ...]
    caption: tuple[str, ...]


def winner_maps(
    rows: pd.DataFrame,
    lines: Sequence[str] | None = None,
    value: str = "auto",
    statistic: str = "auto",
) -> Iterator[WinnerMap]:
    """A map for each benchmark of which two configurations were measured at one size and ranks.

    ``lines`` are the columns that tell contenders apart; all others that differ make maps of their
    own.
    """
    whole = rows[rows["part"].isna() & rows["ranks"].notna()]
    for _, part in benchmarks(whole, (), lines):
        others = [name for name in CONFIGURATION if name not in FOLLOWERS]
        part = without_followers(part, lines or distinctions(part, others))
        columns = list(lines or contest(part))
        axes = ["bytes", *along(part, "ranks"), *columns]
        for group in number_points(part, axes, [], value, statistic):
            found = winner_map(group, axes, columns)
            if any(cell and cell.factor for row in found.cells for cell in row):
                yield found


def contest(rows: pd.DataFrame) -> tuple[str, ...]:
    """The columns that tell contenders apart."""
    for names in (CHOSEN, CONFIGURATION):
        if found := distinctions(rows, names):
            return tuple(found)
    return CHOSEN[:1]


def without_followers(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The rows without what each configuration has one of, so that it tells none apart."""
    keys = ["benchmark", *columns]
    for name in FOLLOWERS:
        if name not in columns and rows.groupby(keys, dropna=False)[name].nunique(False).max() == 1:
            rows = rows.assign(**{name: None})
    return rows


def winner_map(group: Group, axes: Sequence[str], columns: Sequence[str]) -> WinnerMap:
    """The map of a group's rows."""
    first = group.rows.iloc[0]
    lower = str(first["unit"]) == "us"
    ranks = sorted(map(int, group.rows["ranks"].unique()))
    cells = []
    sizes = []
    for (size,), of_size in by(group.rows, ["bytes"]):
        sizes.append(nan if size is None else float(size))
        cells.append(
            tuple(
                best(contenders(of_size[of_size["ranks"] == count], columns), lower)
                for count in ranks
            )
        )
    what = measure(group.rows)
    best_is = ", ".join(filter(None, (what.words, what.statistic)))
    notes = [*facts(group, axes, columns)]
    notes.append("The smaller the lead, the paler")
    notes.append(f"Numbers: how many times {'longer' if lower else 'less'} the second best is")
    if any(cell and cell.within_noise for row in cells for cell in row):
        notes.append("Hatched: within noise, the intervals of best and second best overlap")
    if any(len(members) == 1 for _, members in by(group.rows, ["bytes", "ranks", *columns])):
        notes.append("Single launches say nothing of what launches differ by: repeat them")
    return WinnerMap(
        group.name("winner"),
        group.benchmark,
        f"{best_is}: the {'lowest' if lower else 'highest'}",
        tuple(name_of(key, columns) for key, _ in by(group.rows, list(columns))),
        tuple(f"{count} rank{'s' * (count != 1)}" for count in ranks),
        tuple(sizes),
        tuple(cells),
        tuple(notes),
    )


def name_of(values: Sequence[object], columns: Sequence[str]) -> str:
    """A contender's name; an algorithm by its word alone where it is about nothing else.

    Where nothing was chosen, all was as it is by default.
    """
    if set(columns) <= set(CHOSEN) and all(map(pd.isna, values)):
        return DEFAULT
    name = line_name(values, columns)
    return name.removesuffix(" algorithm") if list(columns) == ["library_algorithm"] else name


def contenders(rows: pd.DataFrame, columns: Sequence[str]) -> list[Contender]:
    """The configurations in a cell; of several runs the median, between minimum and maximum."""
    found = []
    for key, members in by(rows, list(columns)):
        values = members["value"]
        low, high = members[["low", "high"]].iloc[0] if len(members) == 1 else (nan, nan)
        if len(members) > 1:
            low, high = values.min(), values.max()
        found.append(
            Contender(name_of(key, columns), float(values.median()), float(low), float(high))
        )
    return found


def best(found: Sequence[Contender], lower: bool) -> Cell | None:
    """The winner of some contenders; ``lower`` says whether low values are good."""
    if not found:
        return None
    ordered = sorted(found, key=lambda one: one.value if lower else -one.value)
    first = ordered[0]
    if len(ordered) == 1:
        return Cell(first.name, None, within_noise=False)
    second = ordered[1]
    factor = second.value / first.value if lower else first.value / second.value
    known = not any(map(isnan, (first.low, first.high, second.low, second.high)))
    overlap = first.low <= second.high and second.low <= first.high
    return Cell(first.name, factor, within_noise=known and overlap)


def draw(chart: WinnerMap, page: Page | None = None) -> Figure:
    """A figure of a map: a colour for each winner, the paler the smaller its lead."""
    page = page or Page()
    height, width = len(chart.sizes), len(chart.ranks)
    figure = empty_figure(page, 1.4 + 0.5 * height)
    axes = figure.add_subplot()
    tints = colors_of(chart)
    room = 0.86 * page.points / width
    drawn = [cell for cells in chart.cells for cell in cells if cell is not None]
    leads = {cell.lead: cell.lead.replace("within ", "") for cell in drawn}
    short = any(text_width(text, SMALL) > room - 4 for text in leads)
    written = all(text_width(text, SMALL) <= room - 2 for text in leads.values())
    for row, cells in enumerate(chart.cells):
        for column, cell in enumerate(cells):
            if cell is not None:
                text = leads[cell.lead] if short else cell.lead
                paint(axes, cell, (row, column), tints[cell.winner], text if written else "")
    axes.set_xlim(-0.5, width - 0.5)
    axes.set_ylim(height - 0.5, -0.5)
    axes.set_xticks(range(width), [ranks.split()[0] for ranks in chart.ranks])
    axes.set_xlabel("Ranks")
    axes.set_yticks(range(height), ["" if isnan(size) else size_text(size) for size in chart.sizes])
    axes.tick_params(length=0)
    axes.set_ylabel("" if all(map(isnan, chart.sizes)) else "Message size")
    axes.spines[:].set_visible(False)
    named = {tint: name if tint != muted() else OTHERS for name, tint in tints.items()}
    handles = [Rectangle((0, 0), 1, 1, facecolor=tint, label=name) for tint, name in named.items()]
    return finish(figure, chart.title, [chart.words, *chart.caption], handles)


def colors_of(chart: WinnerMap) -> dict[str, str]:
    """The colour of each winner; those that win least share one where colours are too few."""
    wins = Counter(cell.winner for cells in chart.cells for cell in cells if cell is not None)
    known = [name for name, _ in wins.most_common(MAX_LINES - 2)]
    ordered = [name for name in chart.names if name in known]
    tints = {name: color(number) for number, name in enumerate(ordered, 1)}
    return {name: tints.get(name, muted()) for name in chart.names if name in wins}


def paint(axes: Axes, cell: Cell, at: tuple[int, int], tint: str, text: str) -> None:
    """A cell in its winner's colour, with a text."""
    row, column = at
    shade = cell.strength
    mixed = tuple(
        shade * part + (1 - shade) * rest
        for part, rest in zip(to_rgb(tint), to_rgb(paper()), strict=True)
    )
    axes.add_patch(
        Rectangle(
            (column - 0.48, row - 0.46),
            0.96,
            0.92,
            facecolor=mixed,
            edgecolor=paper(),
            linewidth=0,
            hatch="///" if cell.within_noise else None,
        )
    )
    axes.text(
        column,
        row,
        text,
        ha="center",
        va="center",
        fontsize=SMALL,
        color=readable_on(mixed),
    )
