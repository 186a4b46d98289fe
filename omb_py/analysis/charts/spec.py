"""Parts that all charts share: page, styles, axes, title and caption, and files.

A chart is a Vega-Lite specification, in which a pixel is a point (1/72 inch) of the printed page.
Colours are near Okabe and Ito's (*Color Universal Design*, 2008), which colour-blind readers can
distinguish; markers and dashes distinguish lines in grey as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from math import ceil, floor, isfinite, log2, log10
from typing import Any, Literal

import altair as alt
import pandas as pd
import vl_convert
from altair.utils.schemapi import debug_mode

from omb_py.analysis.points import BINDINGS
from omb_py.core.errors import UsageError
from omb_py.core.text.units import STEPS, digits, size_text, unit_of, value_text
from omb_py.core.text.words import printable

FORMATS = ("png", "svg", "pdf")

Mark = Literal["line", "point", "square"]
"""Marks next to the names of a legend."""

STYLE = json.loads((resources.files("omb_py.analysis.charts") / "style.json").read_text("utf-8"))
"""Vega's ``config``, ``colors`` of each theme, and by number of a line's style the paths of
``markers`` and the ``dashes``. The last dashes are those of reference lines, the style -1."""

MAX_LINES = 8
"""Lines of one panel: as many as there are colours."""

MAX_PANELS = 12
"""Panels of one figure; more of them are figures of their own."""

TITLE, TEXT, LABEL, SMALL = 9.0, 8.0, 7.5, 7.0
"""Sizes of text in points, at every width: a narrow figure has less in it, not smaller text."""

MARGIN, GAP, HANDLE, SQUARE = 5.0, 14.0, 21.0, 8.0
"""Points along the edges, between panels, and of a line or a square in a legend."""

TITLE_ROOM = 4 + ceil(1.2 * TEXT)
"""Points that the title of an axis takes."""


@dataclass(frozen=True)
class Page:
    """The page of a chart: ``width`` in centimetres, and ``theme``, light or dark."""

    width: float = 17.5
    theme: str = "light"

    def __post_init__(self) -> None:
        if not 6 <= self.width <= 100:
            raise UsageError(f"a figure is 6 to 100 cm wide, not {self.width:g} cm")
        if self.theme not in STYLE["colors"]:
            known = ", ".join(STYLE["colors"])
            raise UsageError(f"there is no theme {self.theme!r}: choose from {known}")

    @classmethod
    def parsed(cls, width: str | float, theme: str = "light") -> Page:
        """Return a page from ``8.5cm``, ``3.5in`` or a number of centimetres.

        Raises `UsageError` for an invalid width or theme.
        """
        match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*)\s*(cm|mm|in|)\s*", str(width))
        if match is None:
            raise UsageError(f"{width!r} is no width: write it as 8.5cm or 17.5cm")
        return cls(float(match[1]) * {"mm": 0.1, "in": 2.54}.get(match[2], 1.0), theme)

    @property
    def room(self) -> float:
        """Width between the margins in points."""
        return float(int(self.width * 72 / 2.54) - 2 * MARGIN)

    @property
    def is_wide(self) -> bool:
        """Return whether a few panels stand next to each other."""
        return self.width >= 12

    def columns(self, panels: int) -> int:
        """Return how many of the figure's panels stand next to each other."""
        if not self.is_wide:
            return 1 if panels <= 3 else 2
        return 2 if panels in (2, 4) else min(3, panels)

    def panel(self, columns: int, left: float, gap: float) -> float:
        """Return the points of each panel with ``gap`` between panels, and room for labels at the
        end."""
        return (self.room - left - gap * (columns - 1)) / columns - 8

    def color(self, style: int) -> str:
        """Return the colour of a style; -1 is that of reference lines."""
        return self.tint(f"line{style % MAX_LINES}" if style >= 0 else "muted")

    def tint(self, name: str) -> str:
        """Return a colour of the theme: ``paper``, ``ink``, ``muted`` or ``grid``."""
        return str(STYLE["colors"][self.theme][name])


@dataclass(frozen=True)
class ChartLayout:
    """Views next to each other in ``columns``, whose axes take ``left`` points, below a legend.

    ``legend`` has names with the numbers of their styles, None for no legend; ``mark`` is the mark
    next to a name: a line with its marker, the marker alone, or a square.
    """

    views: Sequence[Any]
    left: float = 0.0
    columns: int = 1
    legend: Mapping[str, int] | None = None
    mark: Mark = "line"


@dataclass(frozen=True)
class Chart:
    """A figure: the stem of its file's name, its title, and its layout on a page.

    ``caption`` has a sentence for each fact that a reader needs to interpret the figure. ``data``
    has a row for each point. ``along`` is the axis of the lines and the measure, None for a chart
    of another kind. ``benchmark`` is empty for a chart of several.
    """

    name: str
    title: str
    caption: tuple[str, ...]
    data: pd.DataFrame
    layout: Callable[[Page], ChartLayout]
    along: tuple[str, Any] | None = None
    benchmark: str = ""

    @property
    def words(self) -> str:
        """The caption's facts as sentences of one text."""
        return " ".join(f"{fact}." for fact in self.caption if fact)

    def specification(self, page: Page | None = None, captioned: bool = False) -> dict[str, Any]:
        """Return the chart as Vega-Lite: title, legend, panels and, if ``captioned``, the
        caption."""
        page = page or Page()
        with debug_mode(False):  # Altair would check each part against its schema
            drawn = self.layout(page)
            shown = drawn.legend and legend_view(drawn.legend, page, drawn.left, mark=drawn.mark)
        parts = [shown] if shown else []
        parts.append(together("concat", drawn.views, columns=drawn.columns, spacing=GAP))
        if captioned and self.caption:
            lines = wrap(self.words, SMALL, page.room)
            look = {"size": SMALL, "lineHeight": 1.3 * SMALL, "color": page.tint("muted")}
            mark = {"type": "text", "text": lines, "align": "left", "baseline": "top", **look}
            place = {"x": {"value": -drawn.left}, "y": {"value": 0}}
            size = {"width": page.room - drawn.left, "height": 9.2 * len(lines)}
            parts.append({"data": {"values": [{}]}, "mark": mark, "encoding": place, **size})
        found = together("vconcat", parts, spacing=7, **heading(self.title, page.room, TITLE))
        config = re.sub(r"\$(\w+)", lambda name: page.tint(name[1]), json.dumps(STYLE["config"]))
        return {"$schema": alt.SCHEMA_URL, "config": json.loads(config), **drawable(found)}

    def image(self, form: str, page: Page | None = None) -> bytes:
        """Return the content of a file of one of `FORMATS`.

        The same data makes the same bytes, but for the order of the parts of a PDF file.
        """
        found = self.specification(page, captioned=True)
        if form == "png":
            return bytes(vl_convert.vegalite_to_png(found, ppi=300))
        if form == "pdf":
            return bytes(vl_convert.vegalite_to_pdf(found))
        text = vl_convert.vegalite_to_svg(found)
        text = re.sub(r'( width="[\d.]+)(" height="[\d.]+)"', r'\1pt\2pt"', text, count=1)
        numbers: dict[str, int] = {}  # Vega counts on from one chart to the next
        names = re.compile(r"\b(clip|gradient_)(\d+)")
        return names.sub(
            lambda name: f"{name[1]}{numbers.setdefault(name[0], len(numbers))}", text
        ).encode()


def layered(layers: Iterable[Any], **settings: Any) -> dict[str, Any]:
    """Return layers of one view, with its size and title as ``settings``.

    Altair itself copies all that is in views whenever they are put together.
    """
    return joined("layer", layers, settings)


def together(
    kind: Literal["concat", "vconcat"], views: Iterable[Any], **settings: Any
) -> dict[str, Any]:
    """Join views of Altair or Vega-Lite, each with styles of its own, as one of Vega-Lite."""
    channels = ("color", "fill", "stroke", "shape", "strokeDash")
    resolve = {"scale": dict.fromkeys(channels, "independent")}
    return joined(kind, views, {"resolve": resolve, **settings})


def joined(kind: str, views: Iterable[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Join views and ``settings`` to a view of one ``kind``, with the data of all."""
    datasets: dict[str, Any] = {}
    parts = []
    for view in views:
        part = dict(view if isinstance(view, dict) else view.to_dict(validate=False))
        datasets |= part.pop("datasets", {})
        parts.append({name: own for name, own in part.items() if name not in ("$schema", "config")})
    return {kind: parts, **settings, "datasets": datasets}


def inline(rows: pd.DataFrame | Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Return rows as the data of a chart; missing values become null.

    They are a tuple, which Altair passes on: of a list it makes a copy at each call.
    """
    if isinstance(rows, pd.DataFrame):
        rows = rows.astype(object).where(rows.notna(), None).to_dict("records")
    return alt.InlineData(values=tuple(rows))


def heading(text: str, room: float, size: float = TEXT) -> dict[str, Any]:
    """Return a title above a view of ``room`` points, as its settings; none for an empty text."""
    frame = "bounds" if size == TITLE else "group"
    title = {"text": wrap(text, size, room), "fontSize": size, "frame": frame}
    return {"title": title} if text else {}


def style_numbers(names: Iterable[str]) -> dict[str, int]:
    """Return numbers of styles for lines of one panel; a binding's is the same in every figure."""
    names = list(names)
    found = {name: BINDINGS.index(name) for name in names if name in BINDINGS}
    free = (number for number in range(len(names) + len(BINDINGS)) if number not in found.values())
    return {name: found[name] if name in found else next(free) for name in names}


def styled(rows: pd.DataFrame, page: Page) -> pd.DataFrame:
    """Return rows with the ``color``, ``dash`` and ``shape`` of their ``style``."""
    styles = [int(style) for style in rows["style"]]
    return rows.assign(
        color=[page.color(style) for style in styles],
        dash=[STYLE["dashes"][style % MAX_LINES if style >= 0 else -1] for style in styles],
        shape=[STYLE["markers"][style % MAX_LINES] if style >= 0 else "" for style in styles],
    )


def own(channel: Any, name: str) -> Any:
    """Return a channel whose values the rows have as they are."""
    return channel(f"{name}:N", scale=None, legend=None)


def tips(*names: str) -> list[Any]:
    """Return columns whose values the page shows next to the mouse.

    They are channels, because Altair takes long to make one from a text.
    """
    return [alt.Tooltip(f"{name}:N") for name in names]


def legend_view(
    legend: Mapping[str, int],
    page: Page,
    left: float = 0.0,
    room: float | None = None,
    mark: Mark = "line",
) -> Any:
    """Return a legend in ``room`` points as a view of its own, so that it can hide nothing.

    It begins ``left`` of the axes. One of Vega itself shows either dashes or markers, and breaks
    no line.
    """
    room = room or page.room
    side = HANDLE if mark == "line" else SQUARE
    names = [wrap(name, LABEL, room - side - 4) for name in legend]
    entry = widest(line for lines in names for line in lines) + side + 12
    columns = ceil(len(names) / ceil(len(names) / max(1, int((room + 8) / entry))))
    entries: list[dict[str, Any]] = []
    tall = 0
    for first in range(0, len(names), columns):
        row = names[first : first + columns]
        entries += [
            {"x": place * entry - left + 2, "y": 4 + 10.5 * tall, "text": lines}
            for place, lines in enumerate(row)
        ]
        tall += max(map(len, row))
    data = styled(pd.DataFrame(entries).assign(style=list(legend.values())), page)
    data = data.assign(end=data["x"] + side - 2, middle=data["x"] + side / 2 - 1)
    if mark == "point":
        data["shape"] = data["shape"].replace("", "circle")
    base = alt.Chart(inline(data)).encode(alt.Y("y:Q", scale=None, axis=None))
    x = partial(alt.X, scale=None, axis=None)
    text = base.mark_text(align="left", baseline="middle", dx=4, fontSize=LABEL, lineHeight=10.5)
    lines = base.mark_rule(strokeWidth=1.1).encode(x("x:Q"), alt.X2("end:Q"))
    points = base.transform_filter("datum.shape").mark_point(
        filled=True, size=SQUARE**2 if mark == "square" else 18, opacity=1
    )
    square = mark == "square"
    shape = alt.ShapeValue(STYLE["markers"][1]) if square else own(alt.Shape, "shape")
    layers = [
        lines.encode(own(alt.Color, "color"), own(alt.StrokeDash, "dash")),
        points.encode(x("middle:Q"), own(alt.Color, "color"), shape),
        text.encode(x("end:Q"), alt.Text("text:N"), alt.ColorValue(page.tint("ink"))),
    ]
    size = {"width": 1, "height": 10.5 * tall}
    return layered(layers if mark == "line" else layers[1:], **size)


NARROW, BROAD = frozenset("fijlrtI.,:;'|()[]!/· "), frozenset("mwMW%@")


def text_width(text: str, size: float) -> float:
    """Return about how many points a text is wide."""
    widths = (
        0.29 if c in NARROW else 0.9 if c in BROAD else 0.69 if c.isupper() else 0.55 for c in text
    )
    return size * sum(widths)


def widest(texts: Iterable[str], size: float = LABEL) -> int:
    """Return about how many points the widest of some texts is, a whole number."""
    return ceil(max((text_width(text, size) for text in texts), default=0.0))


def wrap(text: str, size: float, room: float) -> list[str]:
    """Return the lines of a text in ``room`` points; at least one."""
    lines = [""]
    for word in text.split(" "):
        while text_width(word, size) > room and len(word) > 1:  # in parts, longer than a line
            fits = max(1, int(len(word) * room / text_width(word, size)) - 1)
            lines.append(word[:fits])
            word = word[fits:]
        more = f"{lines[-1]} {word}".strip(" ")
        if text_width(more, size) <= room:
            lines[-1] = more
        else:
            lines.append(word)
    return [line for line in lines if line] or [""]


@dataclass(frozen=True)
class Measure:
    """The quantity of an axis: its words, its unit in results, its statistic ("" for none).

    ``unit`` is one of `STEPS`, ``%`` or none.
    """

    words: str
    unit: str
    statistic: str = ""

    def label(self, name: str) -> str:
        """Return the axis's label, with the unit by the ``name`` that its numbers have.

        >>> Measure("Latency", "us", "median").label("µs")
        'Latency (µs), median'
        """
        return ", ".join(
            filter(None, (f"{self.words} ({name})" * bool(name) or self.words, self.statistic))
        )

    def of(self, numbers: Sequence[float]) -> tuple[float, str]:
        """Return the unit of an axis's numbers, in the unit of results, and its name.

        >>> Measure("Latency", "us").of([900.0, 90000.0])
        (1000.0, 'ms')
        """
        if self.unit not in STEPS:
            return 1.0, self.unit
        above = [number for number in numbers if number > 0] or [1.0]
        return unit_of((min(above) * max(above)) ** 0.5, STEPS[self.unit])

    def text(self, value: float) -> str:
        """Return a value with its unit, as a cell or the end of a bar has it.

        >>> Measure("", "us").text(11858), Measure("", "%").text(12.3)
        ('11.9 ms', '12 %')
        """
        if self.unit in STEPS:
            return value_text(value, self.unit)
        return f"{value:.0f} %" if self.unit else digits(value)


def lookup(labels: Mapping[Any, str]) -> str:
    """Return an expression for the labels of ticks."""
    texts = drawable({f"{place:.15g}": text for place, text in labels.items()})
    return f"{json.dumps(texts)}[datum.value]"


def drawable(part: Any) -> Any:
    """Return a part of a specification with its texts printable: no image can have others."""
    if isinstance(part, dict):
        return {name: drawable(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [drawable(value) for value in part]
    return printable(part) if isinstance(part, str) else part


def extent(points: float) -> dict[str, Any]:
    """Return the settings of an axis whose labels and ticks are ``points`` wide."""
    return {"minExtent": points, "maxExtent": points}


def names_axis(names: Mapping[int, str], points: float | None = None, **settings: Any) -> alt.Axis:
    """Return an axis of names for numbers of places, which may have several lines.

    Its labels are as wide as ``points``; ``settings`` are more settings of Vega's axis.
    """
    known: dict[str, Any] = {"title": None, "ticks": False, "grid": False, "values": list(names)}
    known["labelExpr"] = f"split({lookup(names)}, '\\n')"
    tall = {at: -4.5 * name.count("\n") for at, name in names.items() if "\n" in name}
    if points is not None:
        known |= extent(points)
    if points is not None and tall:
        centred = [{"test": f"datum.value == {at}", "value": value} for at, value in tall.items()]
        known["labelOffset"] = {"condition": centred, "value": 0}
    return alt.Axis(**known | settings)


@dataclass(frozen=True)
class ValueAxis:
    """An axis of values: ``ticks`` with their labels, and Vega's scale."""

    title: str
    ticks: Mapping[float, str]
    scale: alt.Scale
    low: float
    high: float
    logarithmic: bool

    @property
    def left(self) -> float:
        """Points to the left of the axis for labels, ticks and title."""
        return 7 + widest(self.ticks.values()) + TITLE_ROOM

    def axis(self, left: float | None = None, **settings: Any) -> alt.Axis:
        """Return ticks and title in ``left`` points; ``settings`` of Vega's axis."""
        known: dict[str, Any] = {"title": self.title, "values": list(self.ticks)}
        known["labelExpr"] = lookup(self.ticks)
        return alt.Axis(**known | ({} if left is None else extent(left - TITLE_ROOM)) | settings)


def value_axis(
    numbers: Sequence[float], measure: Measure, vertical: bool = True, behind: float = 0.0
) -> ValueAxis:
    """Return an axis for numbers: logarithmic, on both sides of 0 if some are below, or linear from
    0 if they are close together. ``behind`` is the share of it to leave free after the highest.
    """
    known = [float(number) for number in numbers if isfinite(number)]
    factor, name = measure.of([abs(number) for number in known])
    above = [abs(number) for number in known if number] or [1.0]
    least, most = min(above), max(above)
    more = 1 / (1 - min(0.6, behind))
    signed = min(known, default=0) < 0
    logarithmic = not signed and measure.unit != "%" and most / least >= 4
    if signed:
        low, high = -most, most
        powers = decades(least / factor, high / factor)
        scaled = [*(-power for power in powers), 0.0, *powers]
        scale = alt.Scale(type="symlog", constant=least, domain=[low, high], nice=False)
    elif logarithmic:
        room = (most / least) ** 0.04
        low, high = least / room, most * room
        scaled = decades(low / factor, high / factor, 300 if vertical else 10)
        scale = alt.Scale(type="log", domain=[low, low * (high / low) ** more], nice=False)
    else:
        low, high = 0.0, max(105.0 if measure.unit == "%" else 0.0, 1.08 * most)
        scaled = even(high / factor)
        scale = alt.Scale(type="linear", domain=[low, high * more], nice=False)
    ticks = {float(f"{tick * factor:.15g}"): f"{tick:.6g}" for tick in scaled}
    return ValueAxis(measure.label(name), ticks, scale, low, high, logarithmic)


def decades(low: float, high: float, most: float = 300) -> list[float]:
    """Return ticks of a logarithmic axis: powers of ten, with 2 and 5 between if it is short."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    for steps in ([1], [1, 2, 5], range(1, 10)):
        ticks = (float(f"{n}e{power}") for power in powers for n in steps)
        found = [tick for tick in ticks if low <= tick <= high]
        if len(found) > 1 and (len(steps) > 1 or high / low > most):
            break
    return found


def even(high: float) -> list[float]:
    """Return ticks of an axis from 0, round numbers."""
    power = 10.0 ** floor(log10(high / 4))
    step = next(power * n for n in (1, 2, 5, 10) if high / (power * n) <= 6)
    return [float(f"{step * n:.12g}") for n in range(int(high / step) + 1)]


def ticks_along(x: str, values: Iterable[float], most: float) -> dict[float, str]:
    """Return about ``most`` of the sizes or numbers of ranks with labels, in even steps.

    Of ranks powers of two where not all fit; 0 bytes always.

    >>> list(ticks_along("bytes", [0, 1, 2, 4, 8, 16, 32], 4).values())
    ['0 B', '4 B', '16 B']
    """
    ordered = sorted(set(values))
    step = ceil(len(ordered) / max(2, int(most)))
    if x == "ranks" and step > 1:
        ordered = [one for one in ordered if log2(one) % 1 == 0] or ordered
        step = ceil(len(ordered) / max(2, int(most)))
    chosen = ordered[::step]
    if ordered[0] == 0 and step > 1:  # the size next to 0 would be too near
        chosen = [0, *ordered[step + 1 :: step]]
    return {at: size_text(at) if x == "bytes" else f"{at:g}" for at in chosen}


def along_axis(x: str, values: Sequence[float], room: float, **settings: Any) -> alt.X:
    """Return X of ``room`` points: sizes in order, equally far apart; ranks by powers."""
    ticks = ticks_along(x, values, room / (32 if x == "bytes" else 24))
    known: dict[str, Any] = {"values": list(ticks), "labelExpr": lookup(ticks)}
    known["title"] = "Message size" if x == "bytes" else "Ranks"
    axis = alt.Axis(**known | settings)
    if x == "bytes":
        scale = alt.Scale(type="point", domain=sorted(set(values)), padding=0.4)
        return alt.X("x:O", axis=axis, scale=scale)
    low, high = min(values), max(values)
    edge = max(1.04, (high / low) ** 0.04)
    scale = alt.Scale(type="log", base=2, domain=[low / edge, high * edge], nice=False)
    return alt.X("x:Q", axis=axis, scale=scale)
