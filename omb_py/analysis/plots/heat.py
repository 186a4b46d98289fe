"""Heat maps: a value, or the ratio of two, over message sizes and ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log2

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from omb_py.analysis.plots.axes import Measure, axis_unit, number_text, quantity_text
from omb_py.analysis.plots.charts import facts, measure, number_points, units_note
from omb_py.analysis.plots.groups import Group, benchmarks
from omb_py.analysis.plots.style import (
    DIVERGING,
    SEQUENTIAL,
    SMALL,
    Page,
    empty_figure,
    finish,
    paper,
    readable_on,
    text_width,
    wrap,
)
from omb_py.analysis.points import along, by, caption_part, line_name
from omb_py.analysis.select import convert
from omb_py.analysis.table import EXTRA
from omb_py.core.errors import UsageError
from omb_py.core.text.units import digits, size_text
from omb_py.results.row import KINDS

Cells = NDArray[np.float64]


@dataclass(frozen=True)
class Ratio:
    """``--ratio``: rows whose ``column`` is ``above``, divided by those where it is ``below``."""

    column: str
    above: object
    below: object

    @classmethod
    def parsed(cls, text: str) -> Ratio:
        """From ``COLUMN=ABOVE/BELOW``; raises `UsageError` for anything else."""
        column, equals, values = (part.strip() for part in text.partition("="))
        above, slash, below = (part.strip() for part in values.partition("/"))
        if not (equals and slash and above and below) or above == below:
            raise UsageError(f"{text!r} is not COLUMN=A/B, as in binding=buffer/native")
        if column not in (*KINDS, *EXTRA) or column in ("bytes", "benchmark"):
            raise UsageError(f"there is no column {column!r} to take a ratio of")
        return cls(column, convert(column, above), convert(column, below))


@dataclass(frozen=True)
class HeatMap:
    """One map. ``cells`` are rows of values of ``measure``, or of ratios; nan where none is."""

    name: str
    title: str
    measure: Measure
    rows: tuple[str, ...]
    sizes: tuple[float, ...]
    cells: Cells
    ratio: bool
    caption: tuple[str, ...]

    def text(self, value: float, binary: bool = False) -> str:
        """A cell's value with its unit; empty where there is none."""
        if value != value:
            return ""
        if self.ratio:
            return digits(value, 3 if value >= 1 else 2)
        return quantity_text(value, self.measure.unit, binary)


def heat_maps(
    rows: pd.DataFrame,
    lines: Sequence[str] | None = None,
    value: str = "auto",
    statistic: str = "auto",
    ratio: Ratio | None = None,
) -> Iterator[HeatMap]:
    """A map for each benchmark with several sizes, and several ranks or a ratio.

    A map's rows are numbers of ranks, or what ``lines`` names. All other columns that differ make
    maps of their own.
    """
    sized = rows[rows["bytes"].notna() & rows["part"].isna()]
    for _, part in benchmarks(sized, (), lines):
        of_ratio = ratio.column if ratio else None
        vertical = [name for name in lines or ["ranks"] if name != of_ratio] or ["benchmark"]
        axes = ["bytes", *(lines or along(part, "ranks")), *([ratio.column] if ratio else [])]
        for group in number_points(part, axes, [], value, statistic):
            if ratio:
                above = medians(group, vertical, ratio.column, ratio.above)
                below = medians(group, vertical, ratio.column, ratio.below)
                cells = (above / below).reindex(above.index)
            else:
                cells = medians(group, vertical)
            cells = cells.sort_index(axis=1).dropna(how="all").dropna(axis=1, how="all")
            if cells.shape[1] > 1 and (cells.shape[0] > 1 or ratio):
                yield heat_map(group, axes, vertical, cells, ratio)


def medians(
    group: Group, vertical: Sequence[str], column: str | None = None, value: object = None
) -> pd.DataFrame:
    """The median over the runs of each cell, of rows with a value in a column if one is named."""
    rows = group.rows if column is None else group.rows[group.rows[column] == value]
    return pd.DataFrame(
        {
            line_name(key, vertical): members.groupby("bytes")["value"].median()
            for key, members in by(rows, list(vertical))
        }
    ).T


def heat_map(
    group: Group,
    axes: Sequence[str],
    vertical: Sequence[str],
    cells: pd.DataFrame,
    ratio: Ratio | None,
) -> HeatMap:
    """A map of a table with sizes as columns."""
    title, name, what = group.benchmark, group.name("heat"), measure(group.rows)
    notes = list(facts(group, axes, []))
    if ratio:
        versus = f"{ratio.above} / {ratio.below}"
        name = group.name(f"ratio-{ratio.column}-{ratio.above}-{ratio.below}")
        better = "faster" if what.unit != "us" else "slower"
        notes.append(f"{caption_part(ratio.column, ratio.above)} / {ratio.below}")
        notes.append(f"Above 1, {ratio.above} is {better} than {ratio.below}")
        what = Measure(f"{what.words}, {versus}", what.unit, what.statistic)
    return HeatMap(
        name,
        title,
        what,
        tuple(cells.index),
        tuple(float(size) for size in cells.columns),
        cells.to_numpy(dtype=float),
        ratio is not None,
        tuple(notes),
    )


def draw(heat: HeatMap, binary: bool = False, page: Page | None = None) -> Figure:
    """A figure of a map, sizes downwards; colour is the logarithm."""
    page = page or Page()
    height, width = len(heat.sizes), len(heat.rows)
    room = 0.8 * page.points / width
    texts = [[heat.text(value, binary) for value in row] for row in heat.cells.T]
    longest = max(text_width(text, SMALL) for row in texts for text in row)
    if longest > room - 2:
        texts = [[text.replace(" ", "\n") for text in row] for row in texts]
        words = [word for row in texts for text in row for word in text.split("\n")]
        longest = max(text_width(word, SMALL) for word in words)
    lines = max(text.count("\n") for row in texts for text in row) + 1
    headings = [wrap(name, 7.5, room - 4) for name in heat.rows]
    upright = any(text_width(word, 7.5) > room - 4 for name in heat.rows for word in name.split())
    figure = empty_figure(page, 2.2 + height * (0.22 + 0.3 * lines))
    axes = figure.add_subplot()
    norm = scale(heat)
    colors = mpl.colormaps[DIVERGING if heat.ratio else SEQUENTIAL].with_extremes(bad=paper())
    masked = np.ma.masked_invalid(heat.cells.T)
    image = axes.imshow(masked, norm=norm, cmap=colors, aspect="auto")
    if longest <= room - 2:
        write(axes, texts, np.asarray(image.to_rgba(masked)))
    axes.set_xticks(
        range(width),
        list(heat.rows) if upright else ["\n".join(lines) for lines in headings],
        rotation=90 if upright else 0,
    )
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.set_yticks(range(height), [size_text(size) for size in heat.sizes])
    axes.set_ylabel("Message size")
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, location="bottom", pad=0.02, aspect=50, shrink=0.9)
    bar.outline.set_visible(False)
    bar.ax.xaxis.set_minor_locator(NullLocator())
    if heat.ratio:
        bar.set_label(heat.measure.words)
        bar.ax.xaxis.set_major_locator(FixedLocator(ratios(norm)))
        bar.ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    else:
        factor, name = axis_unit(
            [float(norm.vmin or 0), float(norm.vmax or 1)], heat.measure.unit, binary
        )
        bar.set_label(heat.measure.label(name))
        bar.ax.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: number_text(value / factor))
        )
    return finish(figure, heat.title, [*heat.caption, *units_note(heat.measure, binary)])


def scale(heat: HeatMap) -> Normalize:
    """Colours over logarithms; those of ratios alike on both sides of 1."""
    if heat.measure.unit == "%" and not heat.ratio:
        return Normalize(0, 100)
    values = heat.cells[np.isfinite(heat.cells) & (heat.cells > 0)]
    if heat.ratio:
        most = max(1.1, float(np.exp(np.abs(np.log(values)).max(initial=0.0))))
        return LogNorm(1 / most, most)
    return LogNorm(float(values.min()), float(values.max()))


def ratios(norm: Normalize) -> list[float]:
    """Ticks of a scale of ratios, with 1 in the middle."""
    most = float(norm.vmax or 2)
    step = 2.0 ** max(1, round(log2(most) / 3)) if most >= 4 else most**0.5
    found = [1.0]
    while found[-1] * step <= most * 1.001:
        found.append(found[-1] * step)
    return [1 / value for value in reversed(found[1:])] + found


def write(axes: Axes, texts: Sequence[Sequence[str]], colors: Cells) -> None:
    """A text in each cell, black or white, whichever is read better on its colour."""
    for row, cells in enumerate(texts):
        for column, text in enumerate(cells):
            axes.text(
                column,
                row,
                text,
                ha="center",
                va="center",
                fontsize=SMALL,
                linespacing=1.0,
                color=readable_on(colors[row, column]),
            )
