"""Heat maps of pairs of ranks, ordered by host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from omb_py.analysis.pairs.findings import judge
from omb_py.analysis.pairs.matrix import Matrix, matrices
from omb_py.analysis.plots.axes import Measure, axis_unit
from omb_py.analysis.plots.groups import plain
from omb_py.analysis.plots.style import SEQUENTIAL, Page, empty_figure, finish, muted, paper
from omb_py.core.text.units import digits, size_text
from omb_py.core.text.words import count

LABELLED = 32
"""Ranks or hosts whose names stand along an axis at most; of more, a few do."""


@dataclass(frozen=True)
class PairMap:
    """The map of one matrix; ``caption`` says what is slow."""

    name: str
    title: str
    measure: Measure
    matrix: Matrix
    caption: tuple[str, ...]


def pair_maps(rows: pd.DataFrame) -> Iterator[PairMap]:
    """A map for each benchmark, size and way in which pairs were measured."""
    for found in matrices(rows.astype(object).to_dict("records")):
        latency = found.unit == "us"
        yield PairMap(
            f"{plain(found.benchmark)}-pairs-{found.bytes}",
            f"{found.benchmark}: {size_text(found.bytes)} between all pairs of ranks",
            Measure("Latency" if latency else "Bandwidth", found.unit, "median"),
            found,
            (
                f"{count(found.pairs, 'direction')} of pairs of {count(len(found.ranks), 'rank')} "
                f"on {count(len(set(found.hosts)), 'host')}",
                *(sentence[0].upper() + sentence[1:] for sentence in judge(found).sentences()),
            ),
        )


def draw(picture: PairMap, binary: bool = False, page: Page | None = None) -> Figure:
    """A figure of a map, senders downwards; slow is dark, on a logarithmic scale."""
    page = page or Page()
    found = picture.matrix
    figure = empty_figure(page, 0.8 * page.width)
    axes = figure.add_subplot()
    values = found.values
    low = float(np.nanmin(values))
    high = max(float(np.nanmax(values)), low * 1.1)
    norm = LogNorm(low, high)
    name = SEQUENTIAL if found.unit == "MB/s" else f"{SEQUENTIAL}_r"
    colors = mpl.colormaps[name].with_extremes(bad=paper())
    image = axes.imshow(np.ma.masked_invalid(values), norm=norm, cmap=colors, aspect="equal")
    places, names = ticks(found)
    axes.set_xticks(places, names, rotation=90)
    axes.set_yticks(places, names)
    axes.tick_params(length=0)
    axes.set_xlabel("Receiver")
    axes.set_ylabel("Sender")
    axes.spines[:].set_visible(False)
    for edge in borders(found):
        axes.axhline(edge, color=muted(), linewidth=0.4)
        axes.axvline(edge, color=muted(), linewidth=0.4)
    bar = figure.colorbar(image, ax=axes, pad=0.02, shrink=0.9)
    bar.outline.set_visible(False)
    factor, unit = axis_unit([low, high], found.unit, binary)
    bar.set_label(picture.measure.label(unit))
    levels = [float(level) for level in np.geomspace(low, high, 5)]
    bar.set_ticks(levels, labels=[digits(level / factor) for level in levels])
    bar.ax.yaxis.set_minor_locator(NullLocator())
    return finish(figure, picture.title, picture.caption)


def borders(found: Matrix) -> list[float]:
    """Where one host ends and the next begins, where hosts have several ranks."""
    if len(set(found.hosts)) == len(found.hosts):
        return []
    steps = enumerate(pairwise(found.hosts))
    return [place + 0.5 for place, (before, host) in steps if host != before]


def ticks(found: Matrix) -> tuple[list[float], list[str]]:
    """Places along an axis and their names: of hosts where there are several, else of ranks."""
    hosts = list(dict.fromkeys(found.hosts))
    if len(hosts) > 1:
        own = [[i for i, name in enumerate(found.hosts) if name == host] for host in hosts]
        named = [
            (sum(members) / len(members), host) for members, host in zip(own, hosts, strict=True)
        ]
    else:
        named = [(float(place), str(rank)) for place, rank in enumerate(found.ranks)]
    step = -(-len(named) // LABELLED)
    return [place for place, _ in named[::step]], [name for _, name in named[::step]]
