"""What all charts share: the page, styles, what stands around the axes, and how files are made.

A chart is a Vega-Lite specification, in which a pixel is a point (1/72 inch) of the printed page.
Colours are near Okabe and Ito's (*Color Universal Design*, 2008), which stay apart for the
colour-blind; markers and dashes tell lines apart in grey as well.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from math import ceil, cos, pi, sin
from typing import Any, Literal

import altair as alt
import pandas as pd
import vl_convert
from altair.utils.schemapi import debug_mode

from omb_py.analysis.points import BINDINGS
from omb_py.core.errors import UsageError

FORMATS = ("png", "svg", "pdf")
THEMES = ("light", "dark")
PALETTES = {
    "light": "#000000 #0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #8C8C8C".split(),
    "dark": "#F2F2F2 #3F9BDC #FF7F3F #22C094 #E89BC6 #F5B731 #A5D8F7 #8C8C8C".split(),
}
TINTS = {
    "light": {"paper": "#FFFFFF", "ink": "#000000", "muted": "#595959", "grid": "#DDDDDD"},
    "dark": {"paper": "#16181D", "ink": "#F2F2F2", "muted": "#B4B8C0", "grid": "#3A3F47"},
}
MAX_LINES = 8
"""Lines of one panel: as many as there are colours."""

SHAPES = (
    *((24, 0, 1.0), (4, 45, 1.25), (3, 0, 1.25), (4, 0, 1.25)),
    *((3, 180, 1.25), (4, 45, 0.45), (4, 0, 0.45), (3, 270, 1.25)),
)
"""Markers: corners, by how many degrees they are turned, and the radius, below 1 that of a star
between its corners."""

DASHES = ([1.0, 0.0], [5.0, 1.5], [1.5, 1.0], [6.0, 1.5, 1.5, 1.5])
DOTTED = [1.0, 1.5]

TITLE, TEXT, LABEL, SMALL = 9.0, 8.0, 7.5, 7.0
"""Sizes of text in points, at every width: a narrow figure has less in it, not smaller text."""

MARGIN, GAP, HANDLE = 5.0, 14.0, 21.0
"""Points along the edges, between panels, and of a line in a legend."""


@dataclass(frozen=True)
class Page:
    """What a chart is made for: ``width`` in centimetres, and whether the page is dark."""

    width: float = 17.5
    theme: Literal["light", "dark"] = "light"

    def __post_init__(self) -> None:
        if not 6 <= self.width <= 100:
            raise UsageError(f"a figure is 6 to 100 cm wide, not {self.width:g} cm")
        if self.theme not in THEMES:
            raise UsageError(f"there is no theme {self.theme!r}: choose from {', '.join(THEMES)}")

    @classmethod
    def parsed(cls, width: str | float, theme: str = "light") -> Page:
        """A page from ``8.5cm``, ``3.5in`` or a number of centimetres.

        Raises `UsageError` for what is no width or theme.
        """
        match = re.fullmatch(r"\s*([0-9]+\.?[0-9]*)\s*(cm|mm|in|)\s*", str(width))
        if match is None:
            raise UsageError(f"{width!r} is no width: write it as 8.5cm or 17.5cm")
        scale = {"mm": 0.1, "in": 2.54}.get(match[2], 1.0)
        return cls(float(match[1]) * scale, theme)  # type: ignore[arg-type]

    @property
    def room(self) -> float:
        """Points between the margins."""
        return float(int(self.width * 72 / 2.54) - 2 * MARGIN)

    @property
    def is_wide(self) -> bool:
        """Whether panels stand beside each other if they are few."""
        return self.width >= 12

    def columns(self, panels: int) -> int:
        """Panels beside each other."""
        if not self.is_wide:
            return 1 if panels <= 3 else 2
        return 2 if panels in (2, 4) else min(3, panels)

    def color(self, style: int) -> str:
        """The colour of a style; -1 is that of what others are held against."""
        return PALETTES[self.theme][style % MAX_LINES] if style >= 0 else self.tint("muted")

    def tint(self, name: str) -> str:
        """The colour of the ``paper``, the ``ink``, what is ``muted`` or the ``grid``."""
        return TINTS[self.theme][name]


@dataclass(frozen=True)
class Legend:
    """Names and the numbers of their styles."""

    styles: Mapping[str, int]
    mark: Literal["line", "dash", "square"] = "line"


@dataclass(frozen=True)
class Layout:
    """Views beside each other in ``columns``, whose axes take ``left`` points, below a legend."""

    views: Sequence[Any]
    columns: int = 1
    left: float = 0.0
    legend: Legend | None = None


@dataclass(frozen=True)
class Chart:
    """One figure: the stem of its file's name, its title, and how it is laid out on a page.

    ``caption`` has a sentence for each thing that one must know to believe the figure. ``data`` is
    what is drawn, a row for each point. ``along`` is what lines go along and what is measured,
    None for a chart of another kind.
    """

    name: str
    title: str
    caption: tuple[str, ...]
    data: pd.DataFrame
    layout: Callable[[Page], Layout]
    along: tuple[str, Any] | None = None

    @property
    def words(self) -> str:
        """The caption as one text."""
        return " ".join(f"{fact}." for fact in self.caption if fact)

    def altair(self, page: Page | None = None) -> alt.VConcatChart:
        """The chart for a page, as Altair has it."""
        found = self.specification(page, captioned=True)
        return alt.VConcatChart.from_dict(found, validate=False)

    def specification(self, page: Page | None = None, captioned: bool = False) -> dict[str, Any]:
        """The chart as Vega-Lite: title, legend, panels and, if ``captioned``, what is below."""
        page = page or Page()
        with debug_mode(False):  # Altair would check each part against its schema
            drawn = self.layout(page)
        parts = [legend_view(drawn.legend, page, page.room, drawn.left)] if drawn.legend else []
        parts.append(together("concat", drawn.views, columns=drawn.columns, spacing=GAP))
        if captioned:
            lines = wrap(self.words, SMALL, page.room)
            below = words(lines, SMALL, page.tint("muted"), "top", x=-drawn.left)
            parts.append(below.properties(width=page.room - drawn.left, height=9.2 * len(lines)))
        found = together(
            "vconcat", parts, spacing=7, title={"text": wrap(self.title, TITLE, page.room)}
        )
        return {"$schema": alt.SCHEMA_URL, "config": config(page), **found}

    def image(self, form: str, page: Page | None = None) -> bytes:
        """The content of a file of one of `FORMATS`.

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

    def address(self, page: Page | None = None) -> str:
        """The chart as an image that is in its own address, for a page without other files."""
        return f"data:image/png;base64,{base64.b64encode(self.image('png', page)).decode()}"


def together(kind: Literal["concat", "vconcat"], views: Iterable[Any], **settings: Any) -> Any:
    """Views of Altair or Vega-Lite, each with styles of its own, as one of Vega-Lite.

    Altair itself copies all that is in views whenever they are put together.
    """
    datasets: dict[str, Any] = {}
    parts = []
    for view in views:
        part = dict(view if isinstance(view, dict) else view.to_dict(validate=False))
        datasets |= part.pop("datasets", {})
        parts.append({name: own for name, own in part.items() if name not in ("$schema", "config")})
    channels = ("color", "fill", "stroke", "shape", "strokeDash")
    resolve = {"scale": dict.fromkeys(channels, "independent")}
    return {kind: parts, "resolve": resolve, **settings, "datasets": datasets}


def config(page: Page) -> dict[str, Any]:
    """The settings of all charts, for a page."""
    text = (resources.files("omb_py.analysis.charts") / "style.json").read_text("utf-8")
    return dict(json.loads(re.sub(r"\$(\w+)", lambda name: page.tint(name[1]), text)))


def inline(rows: pd.DataFrame | Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Rows as the data of a chart; missing values become null.

    They are a tuple, which Altair passes on: of a list it makes a copy at each call.
    """
    if isinstance(rows, pd.DataFrame):
        rows = rows.astype(object).where(rows.notna(), None).to_dict("records")
    return alt.InlineData(values=tuple(rows))


def words(
    lines: Sequence[str], size: float, color: str, baseline: Any, x: float = 0, y: float = 0
) -> Any:
    """Lines of text at a place of a view."""
    base = alt.Chart(inline([{}])).encode(x=alt.value(x), y=alt.value(y))
    style: dict[str, Any] = {
        "fontSize": size,
        "lineHeight": 1.3 * size,
        "color": color,
        "align": "left",
    }
    return base.mark_text(text=list(lines), baseline=baseline, **style)


def heading(text: str, room: float, page: Page) -> Any:
    """A title above axes of ``room`` points, as a layer."""
    lines = wrap(text, TEXT, room)
    y = -5 - 1.3 * TEXT * (len(lines) - 1)
    return words(lines, TEXT, page.tint("ink"), "bottom", y=y)


def style_numbers(names: Iterable[str]) -> dict[str, int]:
    """Numbers of styles for lines of one panel; a binding's is the same in every figure."""
    names = list(names)
    found = {name: BINDINGS.index(name) for name in names if name in BINDINGS}
    free = (number for number in range(len(names) + len(BINDINGS)) if number not in found.values())
    return {name: found[name] if name in found else next(free) for name in names}


def outline(style: int, scale: float = 1.0) -> str:
    """The marker of a style as a path."""
    corners, turn, radius = SHAPES[style % len(SHAPES)]
    radii = [radius] if radius >= 1 else [1.35, radius]
    points = []
    for number in range(corners * len(radii)):
        angle = turn * pi / 180 + 2 * pi * number / corners / len(radii)
        far = scale * radii[number % len(radii)]
        points.append(f"{far * sin(angle):.3g},{-far * cos(angle):.3g}")
    return f"M{'L'.join(points)}Z"


def dashes_of(style: int) -> list[float]:
    """The dashes of a style."""
    return DOTTED if style < 0 else DASHES[style % len(DASHES)]


def handle(style: int, marked: bool) -> str:
    """A piece of a line, and its marker if it has one, as a path that is 2 wide."""
    dashes, path, at, number = dashes_of(style), "", -1.0, 0
    while at < 1:
        end = at + dashes[number % len(dashes)] * 2 / HANDLE if dashes[1] else 1.0
        if number % 2 == 0:
            path += f"M{at:.3g},0L{min(1.0, end):.3g},0"
        at, number = end, number + 1
    return path + outline(style, 0.16) if marked and style >= 0 else path


def shades(styles: Mapping[str, int], page: Page) -> alt.Scale:
    """The scale of colours of lines."""
    return alt.Scale(domain=list(styles), range=[page.color(at) for at in styles.values()])


def legend_view(legend: Legend, page: Page, room: float, left: float) -> Any:
    """A legend in ``room`` points as a view of its own, so that it can hide nothing."""
    square = legend.mark == "square"
    side = 8.0 if square else HANDLE
    names = [wrap(name, LABEL, room - side - 4) for name in legend.styles]
    entry = max(text_width(line, LABEL) for lines in names for line in lines)
    most = max(1, int((room + 10) / (entry + side + 17)))
    columns = ceil(len(names) / ceil(len(names) / most))
    rows = [names[at : at + columns] for at in range(0, len(names), columns)]
    height = sum(max(map(len, row)) for row in rows)
    styles = dict(zip(map("\n".join, names), legend.styles.values(), strict=True))
    look: dict[str, Any] = {
        "orient": "none",
        "legendX": -left,
        "legendY": 0,
        "direction": "vertical",
    }
    look |= {"columns": columns, "symbolSize": side**2, "labelExpr": "split(datum.label, '\\n')"}
    look |= {"clipHeight": 9.5} if height == len(rows) else {}
    shown = alt.Legend(title=None, **look)
    paths = [outline(1) if square else handle(at, legend.mark == "line") for at in styles.values()]
    shapes = alt.Scale(domain=list(styles), range=paths)
    base = alt.Chart(inline([{"line": name} for name in styles]), width=1, height=10.5 * height - 2)
    return base.mark_point(filled=True, opacity=0).encode(
        x=alt.value(0),
        y=alt.value(0),
        fill=alt.Fill("line:N", scale=shades(styles, page), legend=shown),
        stroke=alt.Stroke("line:N", scale=shades(styles, page), legend=shown),
        shape=alt.Shape("line:N", scale=shapes, legend=shown),
    )


NARROW, BROAD = frozenset("fijlrtI.,:;'|()[]!/· "), frozenset("mwMW%@")


def text_width(text: str, size: float) -> float:
    """About how many points a text is wide."""
    widths = (
        0.29 if c in NARROW else 0.9 if c in BROAD else 0.69 if c.isupper() else 0.55 for c in text
    )
    return size * sum(widths)


def widest(texts: Iterable[str], size: float = LABEL) -> int:
    """About how many points the widest of some texts is, a whole number."""
    return ceil(max((text_width(text, size) for text in texts), default=0.0))


def wrap(text: str, size: float, room: float) -> list[str]:
    """The lines of a text in ``room`` points; at least one."""
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
