"""What each binding adds to another: `omb-py overhead` as a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, SymmetricalLogLocator

from omb_py.analysis.plots.axes import (
    Measure,
    axis_unit,
    min_size,
    number_text,
    size_axis,
    value_axis,
)
from omb_py.analysis.plots.bars import make_room
from omb_py.analysis.plots.charts import Line, Point, by_kind_of_line
from omb_py.analysis.plots.groups import plain
from omb_py.analysis.plots.lines import WIDE, draw_line, handles
from omb_py.analysis.plots.style import (
    Page,
    empty_figure,
    finish,
    line_style,
    muted,
    style_numbers,
    text_width,
)
from omb_py.analysis.points import by, caption_part, common
from omb_py.core.text.units import size_text, value_text

APART = ("base", "ranks", "buffer", "placement", "staged", "mpi_type", "window", "thread_level")
"""Columns in which rows of one figure do not differ."""

PICKLING = ("pickle", "pkl5")
"""Bindings that take so much longer that beside theirs no other bar could be seen."""

BAR_SIZE = 8
TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True)
class Panel:
    """One MPI library: for each binding, in order, a point for each size.

    A point's value is what the binding adds, its interval that of the difference; ``base`` has the
    times of the base itself, ``ratios`` the quotients at ``size``.
    """

    title: str
    base: Line
    added: tuple[Line, ...]
    ratios: tuple[float, ...]


@dataclass(frozen=True)
class Overhead:
    """One figure: panels beside each other, bars at ``size`` (None where there are no sizes)."""

    name: str
    title: str
    base: str
    size: float | None
    panels: tuple[Panel, ...]
    caption: tuple[str, ...]
    marks: tuple[str, ...]


def overheads(rows: pd.DataFrame, size: float | None = None) -> Iterator[Overhead]:
    """A figure for each benchmark, with a panel for each MPI library.

    Bars are at ``size``, or at 8 bytes, or at the minimum size where there is no such row.
    """
    whole = rows[rows["split"].isna()]
    for (benchmark,), part in by(whole, ["benchmark"]):
        others = [name for name in APART if part[name].nunique(dropna=False) > 1]
        for values, members in by(part, others):
            words = [caption_part(name, value) for name, value in zip(others, values, strict=True)]
            yield overhead(str(benchmark), words, members, size)


def overhead(
    benchmark: str, words: Sequence[str], rows: pd.DataFrame, size: float | None
) -> Overhead:
    """The figure of rows that differ in MPI library, binding, size and run alone."""
    sizes = sorted(rows["bytes"].dropna().unique())
    wanted = [nbytes for nbytes in (size, BAR_SIZE) if nbytes in sizes]
    first = next(iter([*wanted, *sizes]), None)
    shown = None if first is None else float(first)
    base = str(rows["base"].iloc[0])
    panels = tuple(
        panel(library[0] or "", members.assign(bytes=members["bytes"].astype(float)), base, shown)
        for library, members in by(rows, ["mpi"])
    )
    counts = [len(members) for _, members in by(rows, ["mpi", "binding", "bytes"])]
    runs = max(counts)
    known = common(rows, {"binding"})
    rounds = " or ".join(str(count) for count in sorted(rows["rounds"].unique()))
    again = f", of up to {runs} runs" if runs > 1 else ""
    band = by_kind_of_line(
        "minimum to maximum of the runs" if runs > 1 else "",
        "95\N{NO-BREAK SPACE}% intervals of the difference" if min(counts) == 1 else "",
    )
    marks = [
        f"Grey: {base}",
        f"Bands: {band}",
        "Where one holds 0 no difference is known, and none drawn",
    ]
    barless = [
        line.name
        for panel in panels[:1]
        for line, ratio in zip(panel.added, panel.ratios, strict=True)
        if not isnan(at(line, shown)) and not has_bar(line, ratio, shown)
    ]
    if barless:
        marks.append(f"No bars of {' and '.join(barless)}, which would be many times as long")
    return Overhead(
        "-".join(plain(text) for text in (benchmark, "overhead", *words)),
        benchmark,
        base,
        shown,
        panels,
        (
            f"What bindings add to {base}",
            " · ".join([*words, *known]),
            f"Medians of {rounds} rounds{again}",
        ),
        tuple(marks) if len(sizes) > 1 else (),
    )


def panel(title: str, rows: pd.DataFrame, base: str, size: float | None) -> Panel:
    """The lines of one MPI library."""
    added, ratios = [], []
    numbers = style_numbers([base, *(str(name) for (name,), _ in by(rows, ["binding"]))])
    own = Line(base, (), numbers[base])
    for (binding,), members in by(rows, ["binding"]):
        name = str(binding)
        line = Line(name, tuple(points(members, "added")), numbers[name])
        if name == base:
            own = Line(base, tuple(points(members, "base")), numbers[name])
            continue
        here = members if size is None else members[members["bytes"] == size]
        ratios.append(float(here["ratio"].median()))
        added.append(line)
    if not own.points:
        own = Line(base, tuple(points(rows.drop_duplicates("bytes"), "base")), own.style)
    return Panel(title, own, tuple(added), tuple(ratios))


def points(rows: pd.DataFrame, what: str) -> Iterator[Point]:
    """Points of ``added`` or ``base`` times; of several runs their median, minimum and maximum."""
    for (where,), members in by(rows, ["bytes"]):
        values = members[f"{what}_us"]
        spread = (values.min(), values.max())
        if len(members) == 1:
            row = members.iloc[0]
            spread = (nan, nan) if what == "base" else (row["added_low_us"], row["added_high_us"])
        yield Point(nan if where is None else where, float(values.median()), (nan, nan), spread, 1)


def draw(found: Overhead, page: Page | None = None) -> Figure:
    """A figure: bars at one size above, what is added over all sizes below, for each library.

    Libraries stand beside each other on a wide page, else below each other.
    """
    page = page or Page()
    sized = len({point.x for panel in found.panels for point in panel.base.points}) > 1
    columns = len(found.panels) if page.width >= WIDE else 1
    rows = (1 + sized) * len(found.panels) // columns
    most = max(len(panel.added) for panel in found.panels)
    heights = [1.3 + 0.42 * most, 5.5][: 1 + sized] * (rows // (1 + sized))
    figure = empty_figure(page, sum(heights))
    grid = figure.subplots(rows, columns, squeeze=False, height_ratios=heights)
    room = page.points / columns - 50
    lines: list[Axes] = []
    for number, part in enumerate(found.panels):
        place = (0, number) if columns > 1 else ((1 + sized) * number, 0)
        bars(grid[place], part, found, room)
        if sized:
            axes = grid[place[0] + 1, place[1]]
            over_sizes(axes, part, found, room)
            if lines:
                axes.sharey(lines[0])
            lines.append(axes)
    if sized:
        for axes in lines:
            scale(axes, found)
    return finish(figure, found.title, [*found.caption, *found.marks], handles(lines))


def bars(axes: Axes, part: Panel, found: Overhead, room: float) -> None:
    """A bar for each binding that does not pickle: the base, and what is added to it."""
    base = at(part.base, found.size)
    shown = [
        pair for pair in zip(part.added, part.ratios, strict=True) if has_bar(*pair, found.size)
    ]
    most = base + max([at(line, found.size) for line, _ in shown] + [0.0])
    value_axis(axes.xaxis, [most], Measure(time_of(found), "us", "median"))
    axes.barh(0, base, color=line_style(part.base.style).color, height=0.7)
    texts = [(base, value_text(base, "us"))]
    for row, (line, ratio) in enumerate(shown, 1):
        more = at(line, found.size)
        color = line_style(line.style).color
        axes.barh(row, min(base, base + more), color=muted(), height=0.7)
        if more >= 0:
            axes.barh(row, more, left=base, color=color, height=0.7)
        else:
            axes.barh(row, -more, left=base + more, color="none", edgecolor=color, height=0.7)
        texts.append((base + max(more, 0.0), f"{difference(more)}  {TIMES} {ratio:.2f}"))
    for row, (end, text) in enumerate(texts):
        axes.annotate(
            text, (end, row), (3, 0), textcoords="offset points", va="center", fontsize=7.5
        )
    make_room(axes, max(text_width(text, 7.5) for _, text in texts) + 6, 0.8 * room)
    axes.set_yticks(range(len(shown) + 1), [found.base, *(line.name for line, _ in shown)])
    axes.set_ylim(len(shown) + 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_title(part.title, loc="left")
    axes.grid(True, axis="x")


def time_of(found: Overhead) -> str:
    """What bars are."""
    return "Time" if found.size is None else f"Time of {size_text(found.size)}"


def difference(value: float) -> str:
    """What is added, with its sign.

    >>> difference(0.25), difference(-1.5)
    ('+250 ns', '-1.50 µs')
    """
    return f"{'+' if value >= 0 else '-'}{value_text(abs(value), 'us')}"


def has_bar(line: Line, ratio: float, size: float | None) -> bool:
    """Whether a binding was measured at a size and its bar leaves room for the others."""
    return not isnan(at(line, size)) and (line.name not in PICKLING or ratio < 5)


def at(line: Line, size: float | None) -> float:
    """A line's value at a size."""
    for point in line.points:
        if size is None or point.x == size:
            return point.value
    return nan


def scale(axes: Axes, found: Overhead) -> None:
    """A logarithmic axis of what is added in all panels; on both sides of 0 if some is saved."""
    lines = [line for panel in found.panels for line in panel.added]
    certain = [point for line in lines for point in line.points if is_certain(point)]
    numbers = [number for point in certain for number in (point.value, *point.spread)]
    measure = Measure(f"Added to {found.base}", "us", "median")
    if min((point.value for point in certain), default=0) >= 0:
        base = [point.value for panel in found.panels for point in panel.base.points]
        value_axis(axes.yaxis, [*numbers, *base], measure)
        return
    nearest = min(abs(point.value) for point in certain)
    factor, name = axis_unit([abs(point.value) for point in certain], "us")
    axes.axhline(0, color=muted(), linewidth=0.6)
    axes.set_yscale("symlog", linthresh=nearest)
    axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=nearest))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value / factor)))
    axes.set_ylabel(measure.label(name))


def is_certain(point: Point) -> bool:
    """Whether a difference is known to be one: its interval, if there is one, has no 0 in it."""
    low, high = point.spread
    return point.value != 0 if isnan(low) else low > 0 or high < 0


def over_sizes(axes: Axes, part: Panel, found: Overhead, room: float) -> None:
    """What is added over message size, where it is known to be above or below zero."""
    sizes = [point.x for point in part.base.points]
    minimum = min_size(sizes)
    axes.plot(
        [point.x for point in part.base.points if point.x > 0],
        [point.value for point in part.base.points if point.x > 0],
        color=muted(),
        linewidth=0.9,
        linestyle=(0, (1, 1.5)),
        label=f"{found.base} itself",
    )
    for line in part.added:
        known = tuple(point for point in line.points if is_certain(point))
        if known:
            draw_line(axes, Line(line.name, known, line.style), minimum, bands=True)
    size_axis(axes, sizes, room)
    axes.grid(True)
