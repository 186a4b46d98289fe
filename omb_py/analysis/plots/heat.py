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

from omb_py.analysis.plots.charts import facts, number_points, statistics
from omb_py.analysis.plots.groups import Group, along, benchmarks, by, caption_part, line_name
from omb_py.analysis.plots.style import DIVERGING, SEQUENTIAL, caption, empty_figure, tick_text
from omb_py.analysis.select import convert
from omb_py.analysis.table import EXTRA
from omb_py.core.errors import UsageError
from omb_py.core.text.units import digits, size_text
from omb_py.results.row import KINDS

WRITTEN = 26
"""Columns of a map whose cells still have room for a number."""

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
    """One map. ``cells`` are rows of values in ``unit``, or of ratios; nan where there is none.

    ``upwards`` if the first row is at the bottom.
    """

    name: str
    title: str
    words: str
    unit: str
    rows: tuple[str, ...]
    upwards: bool
    sizes: tuple[float, ...]
    cells: Cells
    ratio: bool
    caption: tuple[str, ...]


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
    first = group.rows.iloc[0]
    words = str(first["words"])
    title, name = group.title, group.name("heat")
    notes = [*facts(group, axes, []), statistics(group.rows).capitalize()]
    if ratio:
        versus = f"{ratio.above} / {ratio.below}"
        title = f"{title}: {caption_part(ratio.column, ratio.above)} / {ratio.below}"
        name = group.name(f"ratio-{ratio.column}-{ratio.above}-{ratio.below}")
        better = "faster" if first["unit"] != "us" else "slower"
        notes.append(f"Above 1, {ratio.above} is {better} than {ratio.below}")
        words = f"{words}, {versus}"
    return HeatMap(
        name,
        title,
        words,
        str(first["unit"]),
        tuple(cells.index),
        vertical[0] in ("ranks", "window"),
        tuple(float(size) for size in cells.columns),
        cells.to_numpy(dtype=float),
        ratio is not None,
        tuple(notes),
    )


def draw(heat: HeatMap, binary: bool = False) -> Figure:
    """A figure of a map; colour is the logarithm."""
    height, width = heat.cells.shape
    figure = empty_figure(max(5.5, 2.4 + 0.43 * width), 2.1 + 0.36 * height)
    axes = figure.add_subplot()
    norm = scale(heat)
    colors = mpl.colormaps[DIVERGING if heat.ratio else SEQUENTIAL].with_extremes(bad="white")
    masked = np.ma.masked_invalid(heat.cells)
    image = axes.imshow(
        masked, norm=norm, cmap=colors, aspect="auto", origin="lower" if heat.upwards else "upper"
    )
    unit, factor = unit_of(heat, binary)
    if width <= WRITTEN:
        write(axes, heat.cells / factor, np.asarray(image.to_rgba(masked)))
    axes.set_xticks(range(width), [size_text(size) for size in heat.sizes])
    axes.tick_params(axis="x", rotation=90 if width > 12 else 0)
    axes.tick_params(length=0)
    axes.set_yticks(range(height), list(heat.rows))
    axes.set_xlabel("Message size")
    axes.set_title(heat.title, loc="left")
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, pad=0.02, aspect=12 + 4 * height)
    bar.outline.set_visible(False)
    bar.set_label(heat.words)
    bar.ax.yaxis.set_minor_locator(NullLocator())
    if heat.ratio:
        bar.ax.yaxis.set_major_locator(FixedLocator(ratios(norm)))
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    else:
        bar.ax.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: tick_text(value, heat.unit, binary))
        )
    caption(figure, [*heat.caption, f"Numbers in {unit}" if width <= WRITTEN and unit else ""])
    return figure


def scale(heat: HeatMap) -> Normalize:
    """Colours over logarithms; those of ratios alike on both sides of 1."""
    if heat.unit == "%" and not heat.ratio:
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


def unit_of(heat: HeatMap, binary: bool) -> tuple[str, float]:
    """The unit of the numbers in cells and its size; one for the whole map."""
    if heat.ratio:
        return "", 1.0
    minimum = float(np.nanmin(heat.cells))
    units = {
        "us": ((1e3, "ms"), (1, "µs"), (1e-3, "ns")),
        "MB/s": ((1e3, "GB/s"), (1, "MB/s")),
        "msg/s": ((1e6, "10⁶ messages/s"), (1e3, "10³ messages/s")),
        "%": ((1, "%"),),
    }[heat.unit]
    if binary and heat.unit == "MB/s":
        units = ((1073.741824, "GiB/s"), (1.048576, "MiB/s"))
    factor, name = next((unit for unit in units if minimum >= unit[0] / 100), units[-1])
    return name, factor


def write(axes: Axes, cells: Cells, colors: Cells) -> None:
    """A number in each cell, black or white, whichever is read better on its colour."""
    for (row, column), value in np.ndenumerate(cells):
        if np.isfinite(value):
            red, green, blue = colors[row, column][:3]
            light = 0.299 * red + 0.587 * green + 0.114 * blue
            axes.text(
                column,
                row,
                digits(value, 3 if value >= 1 else 2),
                ha="center",
                va="center",
                fontsize=7,
                color="black" if light > 0.5 else "white",
            )
