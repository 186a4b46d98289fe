"""Timelines as trace events in JSON, for Perfetto and chrome://tracing, with nothing to install.

The format is Google's "Trace Event Format": a process for each rank, a thread for each lane, a
complete event (X) for each slice, an instant (i) and a pair of flow events (s, f) for each arrow.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np

from omb_py.core import VERSION
from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.tracing.records.layout import EventKind
from omb_py.tracing.records.reading import NS
from omb_py.tracing.records.routines import Role, role
from omb_py.tracing.timeline.assembly import (
    CHUNK,
    NONE,
    SLICE,
    UNNAMED,
    RankTimeline,
    Timeline,
    notes,
    rows,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


COMPUTE = "compute"

ARRIVAL = "arrival"
"""Name of the marks at which arrows end, 1 ns before the end of the slice that received it.

Perfetto turns an arrow around that ends in a slice which began before the send, as a receive that
waits does: from the slice that began first to the other one, wherever the arrow's ends are.
"""

CATEGORIES = {Role.SEND: "send", Role.RECEIVE: "receive", Role.SENDRECV: "send and receive"}

PEERED = (Role.SEND, Role.RECEIVE, Role.SENDRECV)

FIELDS = ("kind", "name", "communicator", "peer", "tag", "nbytes")
"""Fields that many slices share."""

Value = int | float | str | bool
Arguments = dict[str, Value]


@dataclass(frozen=True)
class Description:
    """The description of slices that are alike."""

    name: str
    category: str
    arguments: Arguments
    collective: str = ""


class Describer:
    """A source of descriptions of a rank's slices."""

    def __init__(self, rank: RankTimeline) -> None:
        self._record = rank.record
        self._communicators = rank.record.communicators
        self._known: dict[tuple[int, ...], Description] = {}
        columns = (rank.events[name].tolist() for name in FIELDS)
        self._common = list(zip(*columns, strict=True))
        self._request = rank.events["request"].tolist()
        self._sequence = rank.events["sequence"].tolist()
        self._compute: dict[int, Description] = {}

    def of(self, event: int, other: int) -> tuple[Description, Arguments]:
        """Return a slice's description, shared by all alike, and its own arguments."""
        if event == NONE:
            return self._computing(other), {}
        common = self._common[event]
        description = self._known.get(common)
        if description is None:
            description = self._known[common] = self._described(*common)
        own: Arguments = {}
        sequence, request = self._sequence[event], self._request[event]
        if sequence > 0:
            own["sequence"] = sequence
            if description.collective:
                own["collective"] = f"{description.collective} #{sequence}"
        if request > 0:
            own["request"] = request
        if other != NONE:
            own |= self._arrived(other)
        return description, own

    def _computing(self, phase: int) -> Description:
        found = self._compute.get(phase)
        if found is None:
            said: Arguments = {} if phase == NONE else {"phase": self._name(self._common[phase][1])}
            found = self._compute[phase] = Description(COMPUTE, COMPUTE, said)
        return found

    def _described(
        self, kind: int, name: int, communicator: int, peer: int, tag: int, nbytes: int
    ) -> Description:
        text = self._name(name)
        if kind == EventKind.PHASE:
            return Description(text, "phases", {})
        what = role(text)
        said: Arguments = {}
        if nbytes >= 0:
            said["bytes"] = nbytes
        if peer >= 0:
            said["root" if what is Role.COLLECTIVE else "peer"] = peer
        if what in PEERED and tag >= 0:
            said["tag"] = tag
        known = self._communicators.get(communicator)
        if known is not None:
            said |= {"communicator": known.label, "communicator_size": known.size}
        collective = known.key if known is not None and what is Role.COLLECTIVE else ""
        category = "request" if kind == EventKind.DONE else CATEGORIES.get(what, what.value)
        return Description(text, category, said, collective)

    def _arrived(self, event: int) -> Arguments:
        """Return the data that a call received and that also sent some."""
        _, _, _, peer, tag, nbytes = self._common[event]
        said: Arguments = {"source": peer, "received_tag": tag}
        if nbytes >= 0:
            said["received_bytes"] = nbytes
        if self._sequence[event] > 0:
            said["received_sequence"] = self._sequence[event]
        return said

    def _name(self, number: int) -> str:
        return self._record.name(number) or UNNAMED


@dataclass(frozen=True)
class TrackPlace:
    """A lane's numbers of process and thread, and its name."""

    process: int
    thread: int
    name: str


Places: TypeAlias = Sequence[dict[int, TrackPlace]]
"""For each rank the place of each lane in which anything lies."""


def places_of(timeline: Timeline) -> Places:
    """Return the places of a timeline's lanes.

    Numbers of processes begin at 1, as trace processors take 0 for the kernel's idle thread, and no
    thread has the number of another one, as they treat those as the same. Viewers sort threads by
    their numbers, except that a thread with the number of its process is the main one and stands
    first.
    """
    thread = max([timeline.run.size, *(rank.rank + 1 for rank in timeline.ranks)])
    lanes: list[dict[int, TrackPlace]] = []
    for rank in timeline.ranks:
        process, found = rank.rank + 1, {}
        for lane in np.unique(rank.slices["lane"]).tolist():
            thread += 1
            number = process if lane == 0 else thread
            found[lane] = TrackPlace(process, number, rank.lanes[lane])
        lanes.append(found)
    return lanes


def process_name(rank: RankTimeline, size: int) -> str:
    """Return the name of a rank. Viewers sort names as text: that is the order of ranks."""
    digits = max(4, len(str(size - 1)), len(str(rank.rank)))
    return f"rank {rank.rank:0{digits}d} @{rank.record.host}"


FLOW = "message"

GREY = '"cname":"grey",'
"""Colour of computing in chrome://tracing."""


def write_events(timeline: Timeline, file: IO[str]) -> None:
    """Write a timeline, piece by piece."""
    file.write('{"displayTimeUnit":"ns","otherData":')
    file.write(as_json(about(timeline)))
    file.write(',\n"traceEvents":[\n')
    lines = events(timeline)
    file.write(next(lines, ""))
    while chunk := list(islice(lines, CHUNK)):
        file.write(",\n")
        file.write(",\n".join(chunk))
    file.write("\n]}\n")


def about(timeline: Timeline) -> dict[str, Any]:
    """Return metadata for programs: the run, and `notes`."""
    at = moment(timeline.epoch)
    return {
        "tool": f"omb-py {VERSION}",
        "run": plain(timeline.run.about),
        "ranks": timeline.run.size,
        "zero": at,
        "zero_epoch_ns": timeline.epoch or None,
        "notes": notes(timeline),
    }


def moment(epoch: int) -> str | None:
    """Return a time (ns since 1970) as ISO 8601, None if it is invalid."""
    try:
        return datetime.fromtimestamp(epoch * NS, UTC).isoformat() if epoch else None
    except (ValueError, OverflowError, OSError):
        return None


def plain(value: Any) -> Any:
    """Return a value of JSON, in which numbers that not every reader takes are texts, and all
    UTF-8."""
    if isinstance(value, dict):
        return {plain(key): plain(one) for key, one in value.items()}
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    return str(value) if isinstance(value, int) and abs(value) >> 53 else value


def events(timeline: Timeline) -> Iterator[str]:
    """Yield all events, each as JSON. Arrows come last, after the slices that they bind to."""
    places = places_of(timeline)
    for rank, lanes in zip(timeline.ranks, places, strict=True):
        process, name = rank.rank + 1, process_name(rank, timeline.run.size)
        yield metadata(process, process, "process_name", {"name": name})
        yield metadata(process, process, "process_sort_index", {"sort_index": rank.rank})
        yield from names(lanes.values())
        yield from of_rank(rank, lanes, timeline.start)
    yield from arrows(timeline, places)


def names(places: Iterable[TrackPlace]) -> Iterator[str]:
    """Yield the names of lanes, and their order."""
    for place in places:
        yield metadata(place.process, place.thread, "thread_name", {"name": place.name})
        yield metadata(
            place.process, place.thread, "thread_sort_index", {"sort_index": place.thread}
        )


def metadata(process: int, thread: int, name: str, arguments: Arguments) -> str:
    """Return an event with metadata of a process or a thread."""
    return as_json({"ph": "M", "pid": process, "tid": thread, "name": name, "args": arguments})


def head(place: TrackPlace, phase: str) -> str:
    """Return the beginning of an event of a lane."""
    return f'{{"ph":"{phase}","pid":{place.process},"tid":{place.thread},'


def of_rank(rank: RankTimeline, places: dict[int, TrackPlace], start: int) -> Iterator[str]:
    """Yield the slices of a rank."""
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


def arrows(timeline: Timeline, places: Places) -> Iterator[str]:
    """Yield the marks of arrivals, and two events for each arrow, which bind to slices at their
    time.

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
            source, target = places[sender][out], places[receiver][into]
            at = arrived - 1
            said = as_json({"source": timeline.ranks[sender].rank})
            mark = f'"s":"t","name":"{ARRIVAL}","cat":"{ARRIVAL}","args":{said}'
            yield f'{head(target, "i")}"ts":{microseconds(at)},{mark}}}'
            yield flow(head(source, "s"), number, min(began + 1, ended - 1, at), "")
            yield flow(head(target, "f"), number, at, ',"bp":"e"')


def ends(
    timeline: Timeline, ranks: NDArray[Any], slices: NDArray[Any]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the rank, lane, beginning and end of slices, given by ranks' and by slices' indices."""
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
    """Return the arguments of only this slice, and the end."""
    if not own:
        return "}}"
    comma = "," if description.arguments else ""
    return f"{comma}{as_json(own)[1:]}}}"


def as_json(value: object) -> str:
    """Return a value as JSON. Letters are not escaped, as Perfetto shows escapes in names
    verbatim."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def microseconds(nanoseconds: int) -> str:
    """ns as microseconds, in full.

    >>> microseconds(1234567)
    '1234.567'
    """
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


PLAIN, PACKED = ".json", ".json.gz"
"""Suffixes of timelines."""


def check(path: Path, force: bool) -> None:
    """Raise `UsageError` for a name without a known suffix, or an existing file without
    ``force``."""
    if not path.name.endswith((PLAIN, PACKED)):
        raise UsageError(f"{path}: a timeline is written as .json or .json.gz; end its name so")
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file in it")
    files.refuse_existing([path], force)


def write(timeline: Timeline, path: Path, force: bool = False) -> int:
    """Write a timeline to a file, of the kind that its name ends in; its bytes.

    The file is there when all of it is. Raises `UsageError` as `check` does, `OmbError` when it
    cannot be written.
    """
    check(path, force)
    with files.failing("write", path):
        files.make_folder(path.parent)
        with files.replacing(path) as file:
            _write(timeline, file, path.name)
        return path.stat().st_size


def _write(timeline: Timeline, file: IO[bytes], name: str) -> None:
    if name.endswith(PACKED):
        with (
            gzip.GzipFile("", "wb", compresslevel=4, fileobj=file, mtime=0) as packed,
            io.TextIOWrapper(packed, encoding="utf-8") as text,
        ):
            write_events(timeline, text)
    else:
        with io.TextIOWrapper(file, encoding="utf-8") as text:
            write_events(timeline, text)
