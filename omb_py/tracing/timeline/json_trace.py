"""Timelines as trace events in JSON, for Perfetto and chrome://tracing, with nothing to install.

The format is Google's "Trace Event Format": a process for each rank, a thread for each lane, a
complete event (X) for each slice, an instant (i), and a pair of flow events (s, f) for each arrow.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from omb_py.tracing.timeline import diagnostics
from omb_py.tracing.timeline.description import ARRIVAL, COMPUTE, Arguments, Describer, Description
from omb_py.tracing.timeline.model import CHUNK, SLICE, RankTimeline, Timeline, rows
from omb_py.tracing.timeline.tracks import ABOUT, Places, TrackPlace, places_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOW = "message"

GREY = '"cname":"grey",'
"""Colour of computing in chrome://tracing."""


def write(timeline: Timeline, file: IO[str]) -> None:
    """Write a timeline, piece by piece."""
    file.write('{"displayTimeUnit":"ns","otherData":')
    file.write(as_json(diagnostics.about(timeline)))
    file.write(',\n"traceEvents":[\n')
    lines = events(timeline)
    file.write(next(lines, ""))
    while chunk := list(islice(lines, CHUNK)):
        file.write(",\n")
        file.write(",\n".join(chunk))
    file.write("\n]}\n")


def events(timeline: Timeline) -> Iterator[str]:
    """All events, each as JSON. Arrows come last, after the slices that they bind to."""
    places = places_of(timeline)
    for rank, lanes, name in zip(timeline.ranks, places.lanes, places.processes, strict=True):
        process = rank.rank + 1
        yield metadata(process, process, "process_name", {"name": name})
        yield metadata(process, process, "process_sort_index", {"sort_index": rank.rank})
        yield from names(lanes.values())
        yield from of_rank(rank, lanes, timeline.start)
    yield from names([places.about])
    about = {"s": "t", "ts": 0, "name": ABOUT, "cat": ABOUT, "args": diagnostics.about(timeline)}
    yield head(places.about, "i") + as_json(about)[1:]
    yield from arrows(timeline, places)


def names(places: Iterable[TrackPlace]) -> Iterator[str]:
    """The names of lanes, and their order."""
    for place in places:
        yield metadata(place.process, place.thread, "thread_name", {"name": place.name})
        yield metadata(
            place.process, place.thread, "thread_sort_index", {"sort_index": place.thread}
        )


def metadata(process: int, thread: int, name: str, arguments: Arguments) -> str:
    """An event that says something about a process or a thread."""
    return as_json({"ph": "M", "pid": process, "tid": thread, "name": name, "args": arguments})


def head(place: TrackPlace, phase: str) -> str:
    """How an event of a lane begins."""
    return f'{{"ph":"{phase}","pid":{place.process},"tid":{place.thread},'


def of_rank(rank: RankTimeline, places: dict[int, TrackPlace], start: int) -> Iterator[str]:
    """The slices and instants of a rank."""
    describer = Describer(rank)
    texts: dict[int, str] = {}
    heads = {lane: head(place, "X") for lane, place in places.items()}
    for lane, began, ended, event, other in rows(rank.slices):
        description, own = describer.of(event, other)
        text = texts.get(id(description))
        if text is None:
            text = texts[id(description)] = told_of(description)
        at, length = began - start, ended - began
        yield (
            f'{heads[lane]}"ts":{at // 1000}.{at % 1000:03d},'
            f'"dur":{length // 1000}.{length % 1000:03d},{text}{rest(description, own)}'
        )
    for lane, began, _, event, other in rows(rank.instants):
        description, own = describer.of(event, other)
        yield (
            f'{head(places[lane], "i")}"s":"t","ts":{microseconds(began - start)},'
            f"{told_of(description)}{rest(description, own)}"
        )


def arrows(timeline: Timeline, places: Places) -> Iterator[str]:
    """The marks of arrivals, and two events for each arrow, which bind to what is at their time.

    An arrow leaves 1 ns after the send began: at a slice's very ends chrome://tracing can take its
    neighbour.
    """
    every = timeline.messages.arrows
    for first in range(0, len(every), CHUNK):
        part = every[first : first + CHUNK]
        sends = ends(timeline, part["sender"], part["send"])
        receives = ends(timeline, part["receiver"], part["receive"])
        for number, (send, receive) in enumerate(zip(sends, receives, strict=True), first + 1):
            sender, out, began, ended = send
            receiver, into, _, arrived = receive
            source, target = places.lanes[sender][out], places.lanes[receiver][into]
            at = arrived - 1
            said = as_json({"source": timeline.ranks[sender].rank})
            mark = f'"s":"t","name":"{ARRIVAL}","cat":"{ARRIVAL}","args":{said}'
            yield f'{head(target, "i")}"ts":{microseconds(at)},{mark}}}'
            yield flow(head(source, "s"), number, min(began + 1, ended - 1, at), "")
            yield flow(head(target, "f"), number, at, ',"bp":"e"')


def ends(
    timeline: Timeline, ranks: NDArray[Any], slices: NDArray[Any]
) -> Iterator[tuple[int, int, int, int]]:
    """The rank, lane, beginning and end of slices, given by ranks' and by slices' indices."""
    found = np.zeros(len(ranks), SLICE)
    for index in np.unique(ranks).tolist():
        mine = ranks == index
        found[mine] = timeline.ranks[index].slices[slices[mine]]
    times = (found[name] - timeline.start for name in ("began", "ended"))
    columns = (ranks, found["lane"], *times)
    return zip(*(column.tolist() for column in columns), strict=True)


def flow(beginning: str, number: int, at: int, binding: str) -> str:
    """One end of an arrow."""
    said = f'"name":"{FLOW}","cat":"{FLOW}","id":{number}{binding}'
    return f'{beginning}"ts":{microseconds(at)},{said}}}'


def told_of(description: Description) -> str:
    """Name, category and arguments of slices that are alike, without the end."""
    colour = GREY if description.category == COMPUTE else ""
    arguments = as_json(description.arguments).removesuffix("}")
    return (
        f'{colour}"name":{as_json(description.name)},'
        f'"cat":{as_json(description.category)},"args":{arguments}'
    )


def rest(description: Description, own: Arguments) -> str:
    """The arguments of one slice alone, and the end."""
    if not own:
        return "}}"
    comma = "," if description.arguments else ""
    return f"{comma}{as_json(own)[1:]}}}"


def as_json(value: object) -> str:
    """A value as JSON. Letters stand for themselves, as Perfetto takes escapes in names as such."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def microseconds(nanoseconds: int) -> str:
    """ns as microseconds, in full.

    >>> microseconds(1234567)
    '1234.567'
    """
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"
