"""The style of figures: colours, markers, the text around axes, and how they become files.

Colours are near Okabe and Ito's (*Color Universal Design*, 2008), which stay apart for the
colour-blind; markers and dashes tell lines apart in grey as well.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any, Literal

import matplotlib as mpl
import matplotlib.style
from cycler import cycler
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from omb_py.analysis.points import BINDINGS
from omb_py.core.errors import UsageError

PALETTES = {
    "light": (
        *("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C"),
    ),
    "dark": (
        *("#F2F2F2", "#3F9BDC", "#FF7F3F", "#22C094", "#E89BC6", "#F5B731", "#A5D8F7", "#8C8C8C"),
    ),
}
MARKERS = ("o", "s", "^", "D", "v", "X", "P", "<")
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (6, 1.5, 1.5, 1.5)))
HATCHES = ("", "////", "\\\\\\\\", "----", "||||", "xxx", "+++", "..")

MAX_LINES = 8
"""Lines of one panel: as many as there are colours."""

SEQUENTIAL = "cividis"
DIVERGING = "PuOr_r"

FORMATS = ("png", "svg", "pdf")
THEMES = ("light", "dark")

POINTS = 72 / 2.54
"""Points of a centimetre."""

TITLE, TEXT, SMALL = 9.0, 8.0, 7.0
"""Sizes of text in points, at every width: a narrow figure has less in it, not smaller text."""

MARGIN = 5.0
"""Points left free along the edges of a figure."""

SETTINGS: dict[str, Any] = {
    "font.size": TEXT,
    "font.family": ["DejaVu Sans"],
    "axes.titlesize": TEXT,
    "axes.labelsize": TEXT,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.title_fontsize": TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,  # TrueType: text stays text
    "svg.fonttype": "path",  # outlines: looks alike whatever fonts the reader has
    "svg.hashsalt": "omb-py",
}

COLORS_OF_THEME = {
    "light": {"paper": "#FFFFFF", "ink": "#000000", "muted": "#595959", "grid": "#DDDDDD"},
    "dark": {"paper": "#16181D", "ink": "#F2F2F2", "muted": "#B4B8C0", "grid": "#3A3F47"},
}

METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": "omb-py"},
    "pdf": {"CreationDate": None, "Creator": "omb-py", "Producer": None},
}
"""Nothing that changes from day to day, so that the same data makes the same file."""


@dataclass(frozen=True)
class Page:
    """What a figure is made for: ``width`` in centimetres, and whether the page is dark."""

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
        match = re.fullmatch(r"\s*([0-9.]+)\s*(cm|mm|in)?\s*", str(width))
        try:
            number = float(match[1]) if match else 0.0
        except ValueError:
            number = 0.0
        if match is None or not number:
            raise UsageError(f"{width!r} is no width: write it as 8.5cm or 17.5cm")
        scale = {"cm": 1.0, "mm": 0.1, "in": 2.54, None: 1.0}[match[2]]
        return cls(number * scale, theme)  # type: ignore[arg-type]

    @property
    def points(self) -> float:
        """The width in points."""
        return self.width * POINTS


@dataclass(frozen=True)
class LineStyle:
    """How a line is drawn."""

    color: str
    marker: str
    dash: Any


def color(index: int) -> str:
    """Colour ``index`` of the page's theme, within `apply_style`."""
    colors = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
    return str(colors[index % len(colors)])


def line_style(index: int) -> LineStyle:
    """The style of line ``index``, within `apply_style`; no two of `MAX_LINES` share a colour."""
    return LineStyle(color(index), MARKERS[index % len(MARKERS)], DASHES[index % len(DASHES)])


def style_numbers(names: Sequence[str]) -> dict[str, int]:
    """Numbers of styles for lines of one panel; a binding's is the same in every figure."""
    found = {name: BINDINGS.index(name) for name in names if name in BINDINGS}
    free = (number for number in range(len(names) + len(BINDINGS)) if number not in found.values())
    return {name: found[name] if name in found else next(free) for name in names}


def muted() -> str:
    """The colour of what is beside the matter, within `apply_style`."""
    return str(mpl.rcParams["axes.edgecolor"])


def paper() -> str:
    """The colour of the page, within `apply_style`."""
    return str(mpl.rcParams["figure.facecolor"])


def readable_on(background: Sequence[float]) -> str:
    """Black or white, whichever is read better on a colour (red, green, blue from 0 to 1)."""
    red, green, blue = background[:3]
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


@contextmanager
def apply_style(page: Page | None = None) -> Iterator[None]:
    """Within it figures are made and written with these settings, whatever the user's are."""
    theme = (page or Page()).theme
    tints = COLORS_OF_THEME[theme]
    colors = {
        "axes.prop_cycle": cycler(color=PALETTES[theme]),
        **dict.fromkeys(("figure.facecolor", "axes.facecolor"), tints["paper"]),
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), tints["ink"]),
        **dict.fromkeys(("xtick.color", "ytick.color", "axes.edgecolor"), tints["muted"]),
        **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), tints["ink"]),
        "hatch.color": tints["paper"],
        "grid.color": tints["grid"],
    }
    with mpl.style.context(["default", SETTINGS, colors]):
        yield


def empty_figure(page: Page, height: float) -> Figure:
    """A figure whose axes have ``height`` centimetres; `finish` adds what stands around them."""
    figure = Figure(figsize=(page.width / 2.54, height / 2.54), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def finish(
    figure: Figure, title: str, facts: Sequence[str], handles: Sequence[Artist] = ()
) -> Figure:
    """The figure with its title and a legend of ``handles`` above the axes, its caption below.

    A caption is what one must know to believe a figure, a sentence for each of ``facts``. The
    figure becomes higher by what these need.
    """
    width, body = (72 * inches for inches in figure.get_size_inches())
    room = width - 2 * MARGIN
    heading = wrap(title, TITLE, room)
    above = MARGIN + 1.3 * TITLE * len(heading)
    lines = wrap(" ".join(f"{fact}." for fact in facts if fact), SMALL, room)
    below = 1.35 * SMALL * len(lines) + MARGIN
    legend = None
    if handles:
        legend = figure.legend(bbox_to_anchor=(0.0, 0.0), **legend_layout(handles, room))
        legend.set_in_layout(False)
        renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
        above += legend.get_window_extent(renderer).height * 72 / figure.dpi + 3
    height = above + body + below
    figure.set_size_inches(width / 72, height / 72)
    left = MARGIN / width
    figure.text(left, 1 - MARGIN / height, "\n".join(heading), fontsize=TITLE, va="top")
    figure.text(
        left, MARGIN / height, "\n".join(lines), fontsize=SMALL, linespacing=1.3, color=muted()
    )
    if legend is not None:
        legend.set_bbox_to_anchor((left, 1 - (above - 3) / height))
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.set(rect=(left, below / height, 1 - 2 * left, body / height), w_pad=0.02, h_pad=0.03)  # type: ignore[call-arg]
    figure.draw_without_rendering()  # ticks are made now, in this style
    return figure


LEGEND_TEXT, HANDLE, GAP = 7.5, 24.0, 11.0
"""Points of a legend's text, of a line in it with the space behind it, and between columns."""


def legend_layout(handles: Sequence[Artist], room: float) -> dict[str, Any]:
    """Arguments of a legend in ``room`` points, whose columns are as even as they can be."""
    names = [legend_name(str(handle.get_label()), room) for handle in handles]
    return {
        "handles": list(handles),
        "labels": ["\n".join(lines) for lines in names],
        "ncols": legend_columns(names, room),
        "loc": "lower left",
        "borderpad": 0.0,
        "borderaxespad": 0.0,
        "handlelength": 2.4,
        "labelspacing": 0.3,
        "columnspacing": GAP / LEGEND_TEXT,
        "alignment": "left",
    }


def legend_name(name: str, room: float) -> list[str]:
    """The lines of a name in a legend."""
    return wrap(name, LEGEND_TEXT, room - HANDLE)


def legend_columns(names: Sequence[Sequence[str]], room: float) -> int:
    """Columns of a legend in ``room`` points."""
    entry = max(text_width(line, LEGEND_TEXT) for lines in names for line in lines) + HANDLE
    most = max(1, int((room + GAP) / (entry + GAP)))
    return ceil(len(names) / ceil(len(names) / most))


def legend_above(
    axes: Axes, handles: Sequence[Artist], room: float, title: str | None = None
) -> None:
    """A legend on top of axes that have ``room`` points, under its title."""
    axes.legend(bbox_to_anchor=(0.0, 1.02), title=title, **legend_layout(handles, room))


@lru_cache(4096)
def text_width(text: str, size: float) -> float:
    """Points that a text is wide."""
    if not text.strip():
        return 0.32 * size * len(text)
    font = FontProperties(family="DejaVu Sans")
    return float(TextPath((0, 0), text, size=size, prop=font, usetex=False).get_extents().x1)


def wrap(text: str, size: float, room: float) -> list[str]:
    """The lines of a text in ``room`` points."""
    lines: list[str] = []
    words = [part for word in text.split(" ") for part in parts_of(word, size, room)]
    width = room + 1
    for word in filter(None, words):  # a no-break space breaks no line
        more = text_width(f"x{word}", size) - text_width("x", size) + 0.34 * size
        if width + more > room:
            lines.append(word)
            width = more
        else:
            lines[-1] += f" {word}"
            width += more
    return lines


def parts_of(word: str, size: float, room: float) -> Iterator[str]:
    """A word, in parts if it is longer than a line of ``room`` points."""
    while text_width(word, size) + 0.34 * size > room and len(word) > 1:
        fits = max(1, int(len(word) * room / (text_width(word, size) + size)) - 1)
        yield word[:fits]
        word = word[fits:]
    yield word


def address(figure: Figure) -> str:
    """The figure as an image that is in its own address, for a page without other files."""
    return f"data:image/png;base64,{base64.b64encode(image(figure, 'png')).decode()}"


def image(figure: Figure, form: str) -> bytes:
    """A figure as the content of a file of one of `FORMATS`; the same figure, the same bytes."""
    stream = io.BytesIO()
    with apply_style():
        figure.savefig(stream, format=form, metadata=METADATA[form])
    return stream.getvalue()
