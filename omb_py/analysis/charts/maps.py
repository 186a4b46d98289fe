"""Heat maps: values over message sizes and ranks, and all pairs of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from omb_py.analysis.charts.groups import Request, benchmarks, groups, stem
from omb_py.analysis.charts.spec import (
    LABEL,
    SMALL,
    TITLE_ROOM,
    Chart,
    ChartLayout,
    Measure,
    Page,
    decades,
    even,
    inline,
    layered,
    names_axis,
    tips,
    widest,
    wrap,
)
from omb_py.analysis.pairs.findings import judge
from omb_py.analysis.pairs.matrix import Matrix, matrices
from omb_py.analysis.points import along
from omb_py.core.text.units import size_text
from omb_py.core.text.words import count

LABELLED = 32
"""Ranks or hosts whose names stand along an axis at most; of more, a few do."""

MAX_SIDE = 340.0
"""Points that a map of pairs is wide at most."""


def heat_maps(rows: pd.DataFrame, request: Request) -> Iterator[Chart]:
    """Yield a map for each benchmark with several sizes and several numbers of ranks.

    A map's columns are numbers of ranks, or the values of the chosen lines. All other columns that
    differ make separate maps.
    """
    sized, lines = rows[rows["bytes"].notna() & rows["part"].isna()], request.lines
    for _, part in benchmarks(sized, (), lines):
        axes = ["bytes", *(lines or along(part, "ranks"))]
        for group in groups(part, axes, replace(request, lines=())):
            data = group.points(list(lines or ["ranks"]), ["bytes"])
            data = data.rename(columns={"bytes": "size"})[["line", "size", "value", "text"]]
            if data["size"].nunique() > 1 and data["line"].nunique() > 1:
                facts, layout = group.facts(axes, []), partial(heat, data, group.measure)
                yield Chart(group.name("heat"), group.benchmark, tuple(facts), data, layout)


def heat(data: pd.DataFrame, measure: Measure, page: Page) -> ChartLayout:
    """Draw cells with their numbers if these fit, sizes downwards."""
    names, sizes = data["line"].unique().tolist(), sorted(data["size"].unique())
    down = {at: size_text(size) for at, size in enumerate(sizes)}
    labels = 5 + widest(down.values())
    width = page.room - labels - TITLE_ROOM
    step = width / len(names)
    upright = widest(word for name in names for word in name.split()) > step - 4
    heads = names if upright else ["\n".join(wrap(name, LABEL, step - 4)) for name in names]
    top: dict[str, Any] = {"labelPadding": 3 + 9 * max(name.count("\n") for name in heads)}
    top |= {"orient": "top", "labelAngle": -90 if upright else 0}
    texts = data["text"]
    if widest(texts, SMALL) > step - 2:
        texts = texts.str.replace(" ", "\n")
    tall = 1 + int(texts.str.count("\n").max())
    color, dark = colors(data["value"], measure, width)
    x = alt.X("x:O", axis=names_axis(dict(enumerate(heads)), domain=False, **top))
    y = alt.Y("y:O", axis=names_axis(down, labels, domain=False, title="Message size"))
    places = {"x": data["line"].map(names.index), "y": data["size"].map(sizes.index)}
    base = alt.Chart(inline(data.assign(text=texts, dark=dark, **places))).encode(x, y)
    layers: list[Any] = [base.mark_rect().encode(color, tooltip=tips("line", "text"))]
    if widest(" ".join(texts).split(), SMALL) <= step - 2:
        ink = alt.condition("datum.dark", alt.value("white"), alt.value("black"))
        look: dict[str, Any] = {"lineBreak": "\n", "lineHeight": 8, "dy": -4 * (tall - 1)}
        mark = base.mark_text(baseline="middle", fontSize=SMALL, **look)
        layers.append(mark.encode(alt.Text("text:N"), color=ink))
    view = layered(layers, width=width, height=len(down) * (6 + 9 * tall))
    return ChartLayout([view], labels + TITLE_ROOM)


def colors(
    values: pd.Series, measure: Measure, room: float, is_cost: bool = False
) -> tuple[alt.Color, pd.Series]:
    """Return colours of logarithms or percentages, with a legend below, and which values are dark.

    ``is_cost`` makes high values dark.
    """
    above = values[values > 0].astype(float)
    low, high = float(above.min()), max(float(above.max()), 1.1 * float(above.min()))
    factor, unit = measure.of([low, high])
    if measure.unit == "%":
        kind, low, high, part = "linear", 0.0, 100.0, values / 100
        ticks = even(high)
    else:
        kind, part = "log", np.log(values / low) / np.log(high / low)
        ticks = [tick * factor for tick in decades(low / factor, high / factor)]
    settings: dict[str, Any] = {"type": kind, "scheme": "cividis", "reverse": is_cost}
    scale = alt.Scale(domain=[low, high], nice=False, **settings)
    look: dict[str, Any] = {"orient": "bottom", "direction": "horizontal", "offset": 8}
    look |= {"titleOrient": "bottom", "titleAnchor": "middle", "gradientThickness": 8}
    look |= {"gradientLength": 0.9 * room, "values": ticks}
    look["labelExpr"] = f"format(datum.value / {factor}, '~r')"
    legend = alt.Legend(title=measure.label(unit), **look)
    return alt.Color("value:Q", scale=scale, legend=legend), (part > 0.5) == is_cost


def pair_maps(rows: pd.DataFrame, request: Request) -> Iterator[Chart]:
    """Yield a map for each benchmark, size and way in which pairs were measured."""
    shown = rows[rows["bytes"].isin(request.sizes)] if request.sizes else rows
    for found in matrices(shown.astype(object).to_dict("records")):
        words = "Latency" if found.unit == "us" else "Bandwidth"
        measure = Measure(words, found.unit, "median")
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
        yield Chart(name, title, tuple(facts), data, layout)


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
    color, _ = colors(data["value"], measure, side, is_cost=found.unit == "us")
    cells = alt.Chart(inline(data)).mark_rect().encode(x, y, color)
    layers: list[Any] = [cells.encode(tooltip=tips("sender", "receiver", "text"))]
    if 1 < len(hosts) < len(places):
        edges = [{"at": at} for at, (a, b) in enumerate(pairwise(found.hosts)) if a != b]
        rules = alt.Chart(inline(edges)).mark_rule(color=page.tint("muted"), strokeWidth=0.4)
        layers += [rules.encode(to("at:O", scale=scale, bandPosition=1)) for to in (alt.X, alt.Y)]
    view = layered(layers, width=side, height=side)
    return ChartLayout([view], labels + TITLE_ROOM)
