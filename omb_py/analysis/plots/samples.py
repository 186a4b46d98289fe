"""Figures of single iterations: by time, as distributions, and how the median moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from omb_py.analysis.plots.axes import Measure, number_text, value_axis
from omb_py.analysis.plots.charts import INTERVAL
from omb_py.analysis.plots.groups import MAX_PANELS, plain
from omb_py.analysis.plots.lines import columns_of, handles, height_of
from omb_py.analysis.plots.style import MAX_LINES, Page, color, empty_figure, finish, line_style
from omb_py.analysis.points import caption_part
from omb_py.analysis.samples.series import Numbers, Series, by_size, measurements
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.statistics import autocorrelation_time, median_interval
from omb_py.core.text.units import size_text, value_text

SAMPLE_KINDS = ("samples", "ecdf", "violin", "drift")

TIMES = Measure("Sample", "us")

MOST_SAMPLES = 2000
"""Samples of one rank and size that are drawn as points; of more, evenly some and the extremes."""

WINDOWS = 40
"""Windows of a running median, each of which overlaps half of the next."""

IN_WINDOW = 20
"""Samples that a window has at least."""

TAIL = 99.0
"""Percentile at which the drawing of a distribution ends, where the tail is much longer."""

QUANTILES = (0.0, 5.0, 25.0, 50.0, 75.0, 95.0, 100.0)

TITLES = {
    "samples": "every iteration",
    "ecdf": "distribution of samples",
    "violin": "distribution of samples",
    "drift": "running median",
}


@dataclass(frozen=True)
class SamplePanel:
    """The series of axes; all of one message size where ``title`` names one."""

    title: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class SamplePlot:
    """One figure of series; ``kind`` is one of `SAMPLE_KINDS`.

    In a distribution each panel is a message size with the samples of all ranks.
    """

    name: str
    title: str
    kind: str
    panels: tuple[SamplePanel, ...]
    caption: tuple[str, ...]


def sample_plots(
    series: Sequence[Series], kind: str, sizes: Sequence[int] = ()
) -> dict[str, SamplePlot]:
    """A figure for each measurement, by name; of these message sizes, or of all.

    Raises `UsageError` for a message size that no series has, `OmbError` where there is none.
    """
    if missing := [size for size in sizes if size not in {one.size for one in series}]:
        raise UsageError(f"no sample has a message size of {missing[0]} bytes")
    found: dict[str, SamplePlot] = {}
    for members in measurements(series):
        chosen = {
            size: group for size, group in by_size(members).items() if not sizes or size in sizes
        }
        panels = [
            SamplePanel("" if size is None else size_text(size), tuple(group))
            for size, group in chosen.items()
        ]
        most = MAX_LINES if kind == "ecdf" else MAX_PANELS
        for first in range(0, len(panels), most):
            stem = f"{plain(str(members[0].shared['benchmark']))}-{kind}"
            name = next(
                name
                for name in (stem, *(f"{stem}-{number}" for number in range(2, len(found) + 3)))
                if name not in found
            )
            found[name] = plot_of(name, kind, tuple(panels[first : first + most]))
    if not found:
        raise OmbError("there is no sample to draw")
    return found


def plot_of(name: str, kind: str, panels: tuple[SamplePanel, ...]) -> SamplePlot:
    """A figure with what is to be known of it."""
    every = [one for panel in panels for one in panel.series]
    shared = every[0].shared
    facts = [
        caption_part(column, shared[column])
        for column in ("binding", "buffer", "mpi_type", "ranks", "window", "variant")
        if shared[column] is not None
    ]
    counts = {len(one.samples) for one in every}
    thinned = max(one.every for one in every)
    caption = [
        " · ".join(facts),
        f"{min(counts)} samples" + (f" to {max(counts)}" if len(counts) > 1 else "") + " a rank",
    ]
    if thinned > 1:
        caption.append(f"One of up to {thinned} iterations was kept")
    if kind == "samples" and max(counts) > MOST_SAMPLES:
        caption.append(f"Some {MOST_SAMPLES} of a rank are drawn, the extremes with them")
    if kind in ("ecdf", "violin"):
        longest = max(float(one.samples.max()) for one in every)
        caption.append(
            f"Samples up to the {TAIL:g}th percentile; the slowest took {value_text(longest, 'us')}"
        )
    if kind == "drift":
        caption.append(f"Medians of windows that overlap by half; bands: {INTERVAL}")
    if kind in ("samples", "drift"):
        error = max(one.start_error for one in every)
        caption.append(f"Starts are right to {1e3 * error:.2g} ms or better")
    return SamplePlot(name, str(shared["benchmark"]), kind, panels, tuple(caption))


def some(series: Series) -> tuple[Numbers, Numbers]:
    """Starts and samples to draw: all, or evenly some, with the extremes of those between."""
    step = ceil(2 * len(series.samples) / MOST_SAMPLES)
    if step <= 2:
        return series.starts, series.samples
    chosen = []
    for first in range(0, len(series.samples), step):
        part = series.samples[first : first + step]
        chosen += sorted({first + int(part.argmin()), first + int(part.argmax())})
    return series.starts[chosen], series.samples[chosen]


def running_median(series: Series) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Times, medians and the two ends of their intervals, of windows that overlap by half."""
    count = len(series.samples)
    length = min(count, max(IN_WINDOW, 2 * count // WINDOWS))
    rows = []
    for first in range(0, count - length + 1, max(1, length // 2)):
        part = series.samples[first : first + length]
        time = autocorrelation_time(part.tolist())
        low, high = median_interval(np.sort(part).tolist(), time) or (part.min(), part.max())
        middle = series.starts[first : first + length].mean()
        rows.append((middle, np.median(part), low, high))
    return tuple(np.array(column) for column in zip(*rows, strict=True))  # type: ignore[return-value]


def cumulated(panel: SamplePanel) -> tuple[Numbers, Numbers]:
    """The samples of all ranks in order, and the percentage of them that are not above each.

    Without the slowest ones, beyond the percentile `TAIL`.
    """
    values, counts = np.unique(pooled(panel), return_counts=True)
    shares = 100 * np.cumsum(counts) / counts.sum()
    shown = int(np.searchsorted(shares, TAIL)) + 1
    return values[:shown], shares[:shown]


def pooled(panel: SamplePanel) -> Numbers:
    """The samples of all ranks."""
    return np.concatenate([one.samples for one in panel.series])


def draw(plot: SamplePlot, page: Page | None = None) -> Figure:
    """A figure of samples."""
    page = page or Page()
    title = f"{plot.title}: {TITLES[plot.kind]}"
    if plot.kind in ("ecdf", "violin"):
        figure = empty_figure(page, height_of(page.width, 1))
        axes = figure.add_subplot()
        (draw_ecdf if plot.kind == "ecdf" else draw_violins)(axes, plot.panels)
        axes.grid(True, which="major")
        named = handles([axes]) if len(plot.panels) > 1 else ()
        return finish(figure, title, plot.caption, named)
    columns = columns_of(len(plot.panels), page.width)
    rows = ceil(len(plot.panels) / columns)
    figure = empty_figure(page, rows * height_of(page.width / columns, rows))
    grid = figure.subplots(rows, columns, squeeze=False).flatten().tolist()
    for axes, panel in zip(grid, plot.panels, strict=False):
        (draw_points if plot.kind == "samples" else draw_medians)(axes, panel)
        axes.grid(True, which="major")
        axes.set_title(panel.title, loc="left")
        axes.set_xlabel("Start (s)")
    for axes in grid[len(plot.panels) :]:
        axes.set_visible(False)
    named = handles(grid[: len(plot.panels)])
    return finish(figure, title, plot.caption, named if len(named) > 1 else ())


def drawn(panel: SamplePanel) -> Iterator[tuple[Series, str, str]]:
    """The series of a panel with their colours and names; beyond `MAX_LINES` all alike."""
    many = len(panel.series) > MAX_LINES
    for number, one in enumerate(panel.series):
        yield one, color(0 if many else number), f"_{number}" if many else f"rank {one.rank}"


def draw_points(axes: Axes, panel: SamplePanel) -> None:
    """Samples over their starts."""
    for series, tint, name in drawn(panel):
        starts, samples = some(series)
        axes.plot(
            starts, samples, ".", color=tint, markersize=2, label=name, alpha=0.6, rasterized=True
        )
    value_axis(axes.yaxis, [float(value) for value in pooled(panel)], TIMES)


def draw_medians(axes: Axes, panel: SamplePanel) -> None:
    """Running medians with their intervals, on an axis that is as long as they need."""
    for series, tint, name in drawn(panel):
        times, medians, low, high = running_median(series)
        axes.plot(times, medians, color=tint, label=name)
        axes.fill_between(times, low, high, color=tint, alpha=0.2, linewidth=0)
    axes.yaxis.set_major_formatter(lambda value, _: number_text(value))
    axes.set_ylabel(TIMES.label("µs"))


def draw_ecdf(axes: Axes, panels: Sequence[SamplePanel]) -> None:
    """The share of samples that are not above a time, a line for each message size."""
    numbers: list[float] = []
    for number, panel in enumerate(panels):
        values, shares = cumulated(panel)
        style = line_style(number)
        axes.step(
            values,
            shares,
            where="post",
            color=style.color,
            linestyle=style.dash,
            label=panel.title or "_",
        )
        numbers += [float(values[0]), float(values[-1])]
    value_axis(axes.xaxis, numbers, TIMES)
    axes.set_ylim(0, 102)
    axes.set_ylabel("Samples not above (%)")


def draw_violins(axes: Axes, panels: Sequence[SamplePanel]) -> None:
    """Densities of the logarithms of samples, a violin for each message size, with quartiles."""
    numbers: list[float] = []
    for number, panel in enumerate(panels):
        values = pooled(panel)
        above = values[(values > 0) & (values <= np.percentile(values, TAIL))]
        if len(above) == 0:
            continue
        low, quarter, middle, other, high = np.percentile(above, [0, 25, 50, 75, 100])
        if high > low:
            edges = np.geomspace(low, high, 61)
            density, _ = np.histogram(above, edges)
            wide = 0.42 * density / density.max()
            centres = np.sqrt(edges[:-1] * edges[1:])
            axes.fill_betweenx(
                centres, number - wide, number + wide, color=color(1), alpha=0.5, linewidth=0
            )
        axes.vlines(number, quarter, other, color=color(0), linewidth=2.5)
        axes.plot(number, middle, "o", color=color(0), markersize=3.5)
        numbers += [float(low), float(high)]
    value_axis(axes.yaxis, numbers, TIMES)
    axes.set_xticks(range(len(panels)), [panel.title for panel in panels])
    axes.set_xlabel("Message size" if panels[0].title else "")
