"""Heat maps: values over message sizes and ranks, ratios of two, and all pairs of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import ceil, exp, log2
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from omb_py.analysis.charts.axes import Measure, lookup, names_axis, value_axis
from omb_py.analysis.charts.groups import Choice, benchmarks, groups, plain
from omb_py.analysis.charts.spec import (
    LABEL,
    SMALL,
    TEXT,
    Chart,
    Layout,
    Page,
    inline,
    widest,
    wrap,
)
from omb_py.analysis.pairs.findings import judge
from omb_py.analysis.pairs.matrix import Matrix, matrices
from omb_py.analysis.points import along, by, caption_part, line_name, points_of
from omb_py.analysis.select import convert
from omb_py.core.errors import UsageError
from omb_py.core.text.units import size_text
from omb_py.core.text.words import count
from omb_py.results.columns import KINDS, LOADED

LABELLED = 32
"""Ranks or hosts whose names stand along an axis at most; of more, a few do."""

MAX_SIDE = 340.0
"""Points that a map of pairs is wide at most."""


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
        if column not in (*KINDS, *LOADED) or column in ("bytes", "benchmark"):
            raise UsageError(f"there is no column {column!r} to take a ratio of")
        return cls(column, convert(column, above), convert(column, below))


def heat_maps(rows: pd.DataFrame, choice: Choice, ratio: Ratio | None = None) -> Iterator[Chart]:
    """A map for each benchmark with several sizes, and several ranks or a ratio.

    A map's columns are numbers of ranks, or what the lines chosen name. All other columns that
    differ make maps of their own.
    """
    sized = rows[rows["bytes"].notna() & rows["part"].isna()]
    own = [ratio.column] if ratio else []
    for _, part in benchmarks(sized, (), choice.lines):
        across = [name for name in choice.lines or ["ranks"] if name not in own] or ["benchmark"]
        axes = ["bytes", *(choice.lines or along(part, "ranks")), *own]
        for group in groups(part, axes, replace(choice, lines=())):
            measure, name, notes = group.measure, group.name("heat"), group.facts(axes, [])
            cells = medians(group.rows, across)
            if ratio:
                said = group.rows[ratio.column]
                above, below = ratio.above, ratio.below
                cells = medians(group.rows[said == above], across) / medians(
                    group.rows[said == below], across
                )
                name = group.name(f"ratio-{ratio.column}-{above}-{below}")
                worse = "slower" if measure.unit == "us" else "faster"
                notes += [f"{caption_part(ratio.column, above)} / {below}"]
                notes += [f"Above 1, {above} is {worse} than {below}"]
                measure = Measure(f"{measure.words}, {above} / {below}", "")
            data = pd.DataFrame({"value": cells.dropna()}).reset_index()
            if data["size"].nunique() > 1 and (data["line"].nunique() > 1 or ratio):
                known = set(data["line"])
                order = (line_name(key, across) for key, _ in by(group.rows, across))
                names = dict(enumerate(name for name in order if name in known))
                sizes = dict(enumerate(sorted(data["size"].unique())))
                data["x"] = data["line"].map({name: at for at, name in names.items()})
                data["y"] = data["size"].map({size: at for at, size in sizes.items()})
                data["text"] = [measure.text(value) for value in data["value"]]
                down = {at: size_text(size) for at, size in sizes.items()}
                layout = partial(heat, data, measure, names, down)
                yield Chart(name, group.benchmark, tuple(notes), data, layout)


def medians(rows: pd.DataFrame, across: Sequence[str]) -> pd.Series:
    """The median over the runs of each cell, by ``line`` and ``size``."""
    points = points_of(rows, [*across, "bytes"])
    keys = zip(*(points[name] for name in across), strict=True)
    names = pd.Series([line_name(key, across) for key in keys], name="line", dtype=object)
    return points["value"].groupby([names, points["bytes"].rename("size")]).first()


def heat(
    data: pd.DataFrame,
    measure: Measure,
    across: Mapping[int, str],
    down: Mapping[int, str],
    page: Page,
) -> Layout:
    """Cells with their numbers where these fit, sizes downwards."""
    labels = 5 + widest(down.values())
    left = labels + 4 + ceil(1.2 * TEXT)
    width = page.room - left
    step = width / len(across)
    fits = widest(data["text"], SMALL) <= step - 2
    texts = [text if fits else text.replace(" ", "\n") for text in data["text"]]
    tall = 1 + max(text.count("\n") for text in texts)
    upright = widest(word for name in across.values() for word in name.split()) > step - 4
    heads = {
        at: name if upright else "\n".join(wrap(name, LABEL, step - 4))
        for at, name in across.items()
    }
    padding = 3 + 9 * max(text.count("\n") for text in heads.values())
    top = names_axis(
        heads, domain=False, orient="top", labelAngle=-90 if upright else 0, labelPadding=padding
    )
    x = alt.X("x:O", axis=top)
    y = alt.Y("y:O", axis=names_axis(down, labels, domain=False, title="Message size"))
    color, dark = colors(data["value"], measure, width)
    base = alt.Chart(inline(data.assign(text=texts, dark=dark))).encode(x, y)
    layers: list[Any] = [base.mark_rect().encode(color=color, tooltip=["line:N", "text:N"])]
    if widest(" ".join(texts).split(), SMALL) <= step - 2 or fits:
        ink = alt.condition("datum.dark", alt.value("white"), alt.value("black"))
        style: dict[str, Any] = {
            "fontSize": SMALL,
            "lineBreak": "\n",
            "lineHeight": 8,
            "dy": -4 * (tall - 1),
        }
        layers.append(base.mark_text(baseline="middle", **style).encode(text="text:N", color=ink))
    size = {"width": width, "height": len(down) * (6 + 9 * tall)}
    return Layout([alt.layer(*layers).properties(**size)], left=left)


def colors(
    values: pd.Series, measure: Measure, room: float, is_cost: bool = False
) -> tuple[alt.Color, pd.Series]:
    """Colours of logarithms with a legend below, and for which values they are dark.

    ``is_cost`` makes high values dark. Colours of ratios are alike on both sides of 1.
    """
    above = values[values > 0].astype(float)
    low, high = float(above.min()), max(float(above.max()), 1.1 * float(above.min()))
    title = measure.words
    scheme: Any = "cividis" if measure.unit else "purpleorange"
    kind: Any = "linear" if measure.unit == "%" else "log"
    if not measure.unit:
        high = max(1.1, exp(float(np.abs(np.log(above)).max())))
        low = 1 / high
        step = 2.0 ** max(1, round(log2(high) / 3)) if high >= 4 else high**0.5
        powers = (step**n for n in range(-3, 4) if low * 0.999 <= step**n <= high * 1.001)
        ticks = {tick: f"{tick:.3g}" for tick in powers}
    elif measure.unit == "%":
        low, high, title = 0.0, 100.0, measure.label("%")
        ticks = {float(n): str(n) for n in range(0, 101, 20)}
    else:
        axis = value_axis([low, high], measure)
        title, ticks = axis.title, {at: it for at, it in axis.ticks.items() if low <= at <= high}
    part = values / 100 if kind == "linear" else np.log(values / low) / np.log(high / low)
    dark = (part > 0.5 if is_cost else part < 0.5) if measure.unit else (part - 0.53).abs() > 0.31
    scale = alt.Scale(type=kind, domain=[low, high], scheme=scheme, reverse=is_cost, nice=False)
    look: dict[str, Any] = {
        "orient": "bottom",
        "direction": "horizontal",
        "offset": 8,
        "titleOrient": "bottom",
    }
    look |= {"gradientLength": 0.9 * room, "gradientThickness": 8, "titleAnchor": "middle"}
    look |= {"values": list(ticks), "labelExpr": lookup(ticks), "tickCount": len(ticks)}
    legend = alt.Legend(title=title, **look)
    return alt.Color("value:Q", scale=scale, legend=legend), dark


def pair_maps(rows: pd.DataFrame, binary: bool = False) -> Iterator[Chart]:
    """A map for each benchmark, size and way in which pairs were measured."""
    for found in matrices(rows.astype(object).to_dict("records")):
        words = "Latency" if found.unit == "us" else "Bandwidth"
        measure = Measure(words, found.unit, "median", binary)
        y, x = np.nonzero(np.isfinite(found.values))
        data = pd.DataFrame({"y": y, "x": x, "value": found.values[y, x]})
        data["text"] = [measure.text(value) for value in data["value"]]
        data["sender"], data["receiver"] = ([found.name(int(at)) for at in ends] for ends in (y, x))
        ranks, hosts = count(len(found.ranks), "rank"), count(len(set(found.hosts)), "host")
        yield Chart(
            f"{plain(found.benchmark)}-pairs-{found.bytes}",
            f"{found.benchmark}: {size_text(found.bytes)} between all pairs of ranks",
            (
                f"{count(found.pairs, 'direction')} of pairs of {ranks} on {hosts}",
                *(sentence[0].upper() + sentence[1:] for sentence in judge(found).sentences()),
            ),
            data,
            partial(pair_map, data, found, measure),
        )


def pair_map(data: pd.DataFrame, found: Matrix, measure: Measure, page: Page) -> Layout:
    """Senders downwards, ordered by host; slow is dark."""
    places = list(range(len(found.ranks)))
    hosts = list(dict.fromkeys(found.hosts))
    names = {place: str(rank) for place, rank in enumerate(found.ranks)}
    if len(hosts) > 1:
        own = [[at for at in places if found.hosts[at] == host] for host in hosts]
        middles = [members[(len(members) - 1) // 2] for members in own]
        names = dict(zip(middles, hosts, strict=True))
    names = dict(list(names.items())[:: -(-len(names) // LABELLED)])
    labels = 5 + widest(names.values())
    left = labels + 4 + ceil(1.2 * TEXT)
    side = min(page.room - left, MAX_SIDE)
    even = len(hosts) > 1 and found.hosts.count(hosts[0]) % 2 == 0
    between = side / len(places) / 2 * even
    scale = alt.Scale(domain=places, padding=0)
    below = names_axis(names, domain=False, title="Receiver", labelAngle=-90, labelOffset=between)
    beside = names_axis(names, labels, domain=False, title="Sender", labelOffset=between)
    x, y = alt.X("x:O", scale=scale, axis=below), alt.Y("y:O", scale=scale, axis=beside)
    color, _ = colors(data["value"], measure, side, is_cost=found.unit == "us")
    cells = alt.Chart(inline(data)).mark_rect().encode(x, y, color=color)
    layers: list[Any] = [cells.encode(tooltip=["sender:N", "receiver:N", "text:N"])]
    if 1 < len(hosts) < len(places):
        edges = [at for at, (one, other) in enumerate(pairwise(found.hosts)) if one != other]
        rules = alt.Chart(inline([{"edge": at} for at in edges])).mark_rule(
            color=page.tint("muted"), strokeWidth=0.4
        )
        layers.append(rules.encode(alt.X("edge:O", scale=scale, bandPosition=1)))
        layers.append(rules.encode(alt.Y("edge:O", scale=scale, bandPosition=1)))
    return Layout([alt.layer(*layers).properties(width=side, height=side)], left=left)
