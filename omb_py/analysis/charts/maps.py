"""Heat maps of all pairs of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from omb_py.analysis.charts.groups import Request, stem
from omb_py.analysis.charts.spec import (
    TITLE_ROOM,
    Chart,
    ChartLayout,
    Measure,
    Page,
    decades,
    inline,
    layered,
    names_axis,
    tips,
    widest,
)
from omb_py.analysis.pairs.findings import judge
from omb_py.analysis.pairs.matrix import Matrix, matrices
from omb_py.analysis.values import WORDS
from omb_py.core.text.units import is_time, size_text
from omb_py.core.text.words import count

LABELLED = 32
"""Ranks or hosts whose names stand along an axis at most; of more, a few do."""

MAX_SIDE = 340.0
"""Points that a map of pairs is wide at most."""


def colors(values: pd.Series, measure: Measure, room: float, is_cost: bool) -> alt.Color:
    """Return colours of logarithms, with a legend below; ``is_cost`` makes high values dark."""
    above = values[values > 0].astype(float)
    low, high = float(above.min()), max(float(above.max()), 1.1 * float(above.min()))
    factor, unit = measure.of([low, high])
    ticks = [tick * factor for tick in decades(low / factor, high / factor)]
    settings: dict[str, Any] = {"type": "log", "scheme": "cividis", "reverse": is_cost}
    scale = alt.Scale(domain=[low, high], nice=False, **settings)
    look: dict[str, Any] = {"orient": "bottom", "direction": "horizontal", "offset": 8}
    look |= {"titleOrient": "bottom", "titleAnchor": "middle", "gradientThickness": 8}
    look |= {"gradientLength": 0.9 * room, "values": ticks}
    look["labelExpr"] = f"format(datum.value / {factor}, '~r')"
    legend = alt.Legend(title=measure.label(unit), **look)
    return alt.Color("value:Q", scale=scale, legend=legend)


def pair_maps(rows: pd.DataFrame, request: Request) -> Iterator[Chart]:
    """Yield a map for each benchmark, size and way in which pairs were measured."""
    shown = rows[rows["bytes"].isin(request.sizes)] if request.sizes else rows
    for found in matrices(shown.astype(object).to_dict("records")):
        measure = Measure(WORDS[found.unit], found.unit, "median")
        y, x = np.nonzero(np.isfinite(found.values))
        data = pd.DataFrame({"y": y, "x": x, "value": found.values[y, x]})
        data["text"] = [measure.text(value) for value in data["value"]]
        data["sender"], data["receiver"] = ([found.name(int(at)) for at in ends] for ends in (y, x))
        ranks, hosts = count(len(found.ranks), "rank"), count(len(set(found.hosts)), "host")
        facts = [f"{count(found.pairs, 'direction')} of pairs of {ranks} on {hosts}"]
        facts += [sentence[0].upper() + sentence[1:] for sentence in judge(found).sentences()]
        title = f"{found.benchmark}: {size_text(found.bytes)} between all pairs of ranks"
        layout = partial(pair_map, data, found, measure)
        name = stem(found.benchmark, "pairs", str(found.bytes))
        yield Chart(name, title, tuple(facts), data, layout, benchmark=found.benchmark)


def pair_map(data: pd.DataFrame, found: Matrix, measure: Measure, page: Page) -> ChartLayout:
    """Draw senders downwards, ordered by host; slow is dark."""
    places = list(range(len(found.ranks)))
    hosts = list(dict.fromkeys(found.hosts))
    names = {place: str(rank) for place, rank in enumerate(found.ranks)}
    if len(hosts) > 1:
        own = [[at for at in places if found.hosts[at] == host] for host in hosts]
        middles = [members[(len(members) - 1) // 2] for members in own]
        names = dict(zip(middles, hosts, strict=True))
    names = dict(list(names.items())[:: -(-len(names) // LABELLED)])
    labels = 5 + widest(names.values())
    side = min(page.room - labels - TITLE_ROOM, MAX_SIDE)
    even = len(hosts) > 1 and found.hosts.count(hosts[0]) % 2 == 0
    between: dict[str, Any] = {"labelOffset": side / len(places) / 2 * even, "domain": False}
    scale = alt.Scale(domain=places, padding=0)
    below = names_axis(names, title="Receiver", labelAngle=-90, **between)
    beside = names_axis(names, labels, title="Sender", **between)
    x, y = alt.X("x:O", scale=scale, axis=below), alt.Y("y:O", scale=scale, axis=beside)
    color = colors(data["value"], measure, side, is_cost=is_time(found.unit))
    cells = alt.Chart(inline(data)).mark_rect().encode(x, y, color)
    layers: list[Any] = [cells.encode(tooltip=tips("sender", "receiver", "text"))]
    if 1 < len(hosts) < len(places):
        edges = [{"at": at} for at, (a, b) in enumerate(pairwise(found.hosts)) if a != b]
        rules = alt.Chart(inline(edges)).mark_rule(color=page.tint("muted"), strokeWidth=0.4)
        layers += [rules.encode(to("at:O", scale=scale, bandPosition=1)) for to in (alt.X, alt.Y)]
    view = layered(layers, width=side, height=side)
    return ChartLayout([view], labels + TITLE_ROOM)
