"""What is wrong with a figure's layout, measured in pixels as it is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

MAX_LINES = 8
PIXEL = 1.0


def faults(figure: Figure) -> list[str]:
    """What a reader would stumble over; empty for a good figure."""
    figure.canvas.draw()
    return [
        *outside_the_page(figure),
        *overlapping_texts(figure),
        *hidden_by_legends(figure),
        *(fault for axes in figure.axes for fault in outside_the_axes(axes)),
        *(fault for axes in figure.axes for fault in alike(axes)),
    ]


def texts_of(figure: Figure) -> list[Text]:
    """All texts that are drawn, those of hidden and empty ones left out."""
    every = [text for text in figure.findobj(Text) if text.get_text().strip()]
    shown = {id(text) for axes in figure.axes for text in labels_of(axes)}
    ticks = {
        id(tick_label)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        for tick_label in (tick.label1, tick.label2)
    }
    hidden = {
        id(text) for axes in figure.axes if not axes.get_visible() for text in axes.findobj(Text)
    }
    return [
        text
        for text in every
        if text.get_visible()
        and id(text) not in hidden
        and (id(text) not in ticks or id(text) in shown)
    ]


def labels_of(axes: Axes) -> Iterator[Text]:
    """The labels of the ticks within the limits of visible axes."""
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():
            if axes.get_visible() and low <= tick.get_loc() <= high:
                yield from (text for text in (tick.label1, tick.label2) if text.get_visible())


def box_of(text: Text) -> Bbox:
    """The pixels of a text; an annotation's without its arrow."""
    return Text.get_window_extent(text)


def outside_the_page(figure: Figure) -> Iterator[str]:
    page = figure.bbox.padded(PIXEL)
    for text in texts_of(figure):
        box = box_of(text)
        if not (page.fully_containsx(box.x0) and page.fully_containsx(box.x1)) or not (
            page.fully_containsy(box.y0) and page.fully_containsy(box.y1)
        ):
            yield f"{text.get_text()!r} is cut off"


def overlapping_texts(figure: Figure) -> Iterator[str]:
    boxes = [(text.get_text(), box_of(text).padded(-PIXEL)) for text in texts_of(figure)]
    boxes = [(text, box) for text, box in boxes if text != "//"]
    for (one, first), (other, second) in combinations(boxes, 2):
        if first.overlaps(second):
            yield f"{one!r} overlaps {other!r}"


def hidden_by_legends(figure: Figure) -> Iterator[str]:
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes)]
    for legend in filter(None, legends):
        box = legend.get_window_extent().padded(-PIXEL)
        for axes in figure.axes:
            if axes.get_visible() and box.overlaps(axes.get_window_extent()):
                yield "a legend lies on the axes"


def outside_the_axes(axes: Axes) -> Iterator[str]:
    """Points, bands and intervals beyond the limits."""
    low, high = np.sort(np.transpose([axes.get_xlim(), axes.get_ylim()]), axis=0)
    for collection in axes.collections:
        if isinstance(collection, LineCollection | PolyCollection) and collection.get_paths():
            points = np.concatenate([path.vertices for path in collection.get_paths()])
            if np.any(points < low) or np.any(points > high):
                yield f"{type(collection).__name__} leaves the axes"
    for line in axes.get_lines():
        points = np.column_stack([line.get_xdata(), line.get_ydata()]).astype(float)
        if line.get_transform() == axes.transData and (
            np.any(points < low) or np.any(points > high)
        ):
            yield f"{line.get_label()} leaves the axes"


def alike(axes: Axes) -> Iterator[str]:
    """Lines of one panel that nobody can tell apart, or too many of them."""
    lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    colors = {to_hex(str(line.get_color())) for line in lines}
    if len(lines) > MAX_LINES:
        yield f"{len(lines)} lines in a panel"
    if len(colors) < len(lines):
        yield "two lines of a panel share a colour"
