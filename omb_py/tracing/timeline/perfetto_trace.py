"""Timelines as Perfetto's own kind of file (TrackEvent, protobuf). Needs the extra ``perfetto``.

As in JSON there is a process for each rank and a thread for each lane; here a slice is a beginning
and an end. An arrow leaves at the beginning of the slice that sends, and ends in a mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from omb_py.core.errors import needing
from omb_py.tracing.timeline import diagnostics
from omb_py.tracing.timeline.description import ARRIVAL, Arguments, Describer, Description
from omb_py.tracing.timeline.model import RankTimeline, Timeline, rows
from omb_py.tracing.timeline.tracks import ABOUT, FILLER, Place, places_of

SEQUENCE = 1
"""Number of the one who writes: there is one."""

PROCESSES = 1 << 40
"""Tracks of processes have larger numbers than this, those of threads smaller ones."""

CLEARED, NEEDED = 1, 2
"""Flags of packets: names are numbered anew, and numbers of names are used."""


class Packets:
    """Writes packets to a file; times are ns from the timeline's beginning.

    ``messages`` is the module of the perfetto package that has protobuf's classes.
    """

    def __init__(self, file: IO[bytes], messages: Any) -> None:
        self._file = file
        self._messages = messages
        self._new = messages.InternedData()
        self._numbers: dict[tuple[str, str], int] = {}
        self._templates: dict[int, bytes] = {}
        self._kept: list[Description] = []
        self._flags = CLEARED | NEEDED

    def process(self, number: int, name: str) -> None:
        """A process."""
        packet = self._packet(0)
        told = packet.track_descriptor
        told.uuid, told.process.pid, told.process.process_name = PROCESSES + number, number, name
        told.process.legacy_sort_index = number
        self._write(packet)

    def thread(self, place: Place) -> None:
        """A thread, whose track has its number."""
        packet = self._packet(0)
        told = packet.track_descriptor
        told.uuid, told.parent_uuid = place.thread, PROCESSES + place.process
        told.thread.pid, told.thread.tid = place.process, place.thread
        told.thread.thread_name = place.name
        told.thread.legacy_sort_index = place.thread
        self._write(packet)

    def begin(
        self, track: int, at: int, description: Description, own: Arguments, arrow: int
    ) -> None:
        """A slice begins; an ``arrow`` that is not 0 leaves from it."""
        packet = self._event(track, at, self._messages.TrackEvent.TYPE_SLICE_BEGIN)
        self._describe(packet.track_event, description, own)
        if arrow:
            packet.track_event.flow_ids.append(arrow)
        self._write(packet)

    def end(self, track: int, at: int) -> None:
        """The slice of a track that began last ends."""
        self._write(self._event(track, at, self._messages.TrackEvent.TYPE_SLICE_END))

    def instant(
        self, track: int, at: int, description: Description, own: Arguments, arrow: int = 0
    ) -> None:
        """A mark; an ``arrow`` that is not 0 ends in it."""
        packet = self._event(track, at, self._messages.TrackEvent.TYPE_INSTANT)
        self._describe(packet.track_event, description, own)
        if arrow:
            packet.track_event.terminating_flow_ids.append(arrow)
        self._write(packet)

    def about(self, track: int, name: str, values: Mapping[str, Any]) -> None:
        """A mark at the beginning, with values that may contain others."""
        packet = self._event(track, 0, self._messages.TrackEvent.TYPE_INSTANT)
        packet.track_event.name = name
        for key, value in values.items():
            annotation = packet.track_event.debug_annotations.add(name=key)
            _fill(annotation, value)
        self._write(packet)

    def _packet(self, at: int) -> Any:
        return self._messages.TracePacket(
            timestamp=at, trusted_packet_sequence_id=SEQUENCE, sequence_flags=self._flags
        )

    def _event(self, track: int, at: int, kind: int) -> Any:
        packet = self._packet(at)
        packet.track_event.type = kind
        packet.track_event.track_uuid = track
        return packet

    def _describe(self, event: Any, description: Description, own: Arguments) -> None:
        template = self._templates.get(id(description))
        if template is None:
            template = self._templates[id(description)] = self._template(description)
            self._kept.append(description)
        event.MergeFromString(template)
        for key, value in own.items():
            self._annotate(event, key, value)

    def _template(self, description: Description) -> bytes:
        """What is alike in all events of a description."""
        event = self._messages.TrackEvent()
        event.name_iid = self._number("event_names", description.name)
        event.category_iids.append(self._number("event_categories", description.category))
        for key, value in description.arguments.items():
            self._annotate(event, key, value)
        told: bytes = event.SerializeToString()
        return told

    def _annotate(self, event: Any, key: str, value: Any) -> None:
        number = self._number("debug_annotation_names", key)
        _fill(event.debug_annotations.add(name_iid=number), value)

    def _number(self, table: str, text: str) -> int:
        """The number of a text, which the next packet tells if it is new."""
        number = self._numbers.get((table, text))
        if number is None:
            number = self._numbers[table, text] = len(self._numbers) + 1
            getattr(self._new, table).add(iid=number, name=text)
        return number

    def _write(self, packet: Any) -> None:
        if self._new.ByteSize():
            packet.interned_data.CopyFrom(self._new)
            self._new.Clear()
        self._flags = NEEDED
        content = packet.SerializeToString()
        self._file.write(b"\x0a" + _varint(len(content)) + content)


def _fill(annotation: Any, value: Any) -> None:
    """Give an annotation its value, of JSON's kinds."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            _fill(annotation.dict_entries.add(name=key), one)
    elif isinstance(value, list):
        for one in value:
            _fill(annotation.array_values.add(), one)
    elif isinstance(value, bool):
        annotation.bool_value = value
    elif isinstance(value, int):
        annotation.int_value = value
    elif isinstance(value, float):
        annotation.double_value = value
    else:
        annotation.string_value = "" if value is None else str(value)


def _varint(number: int) -> bytes:
    """A number as protobuf writes lengths: 7 bits in a byte, the lowest first."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


ARRIVED = Description(ARRIVAL, ARRIVAL, {})

FILLING = Description(FILLER, FILLER, {})


def write(timeline: Timeline, file: IO[bytes]) -> None:
    """Write a timeline, piece by piece.

    Raises `MissingPackageError` where the extra is not installed.
    """
    with needing("perfetto"):
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

    packets = Packets(file, messages)
    places = places_of(timeline)
    for rank, lanes, name, arrows in zip(
        timeline.ranks, places.lanes, places.processes, arrows_of(timeline), strict=True
    ):
        packets.process(rank.rank + 1, name)
        for place in lanes.values():
            packets.thread(place)
        of_rank(packets, rank, lanes, timeline.start, arrows)
    packets.thread(places.about)
    packets.about(places.about.thread, ABOUT, diagnostics.about(timeline))
    for place, number in places.fillers:
        packets.thread(place)
        for at in range(number):
            packets.instant(place.thread, at, FILLING, {})


@dataclass(frozen=True)
class Arrows:
    """The arrows of a rank: for each slice the number of the one that leaves and of that arrives.

    0 is none. ``sources`` has the rank that each arrow comes from.
    """

    leaving: list[int]
    arriving: list[int]
    sources: list[int]


def arrows_of(timeline: Timeline) -> Iterator[Arrows]:
    """The arrows of each rank."""
    arrows = timeline.messages.arrows
    sources = np.array([0, *(rank.rank for rank in timeline.ranks)])[arrows["sender"] + 1]
    told_of = [0, *sources.tolist()]
    for index, rank in enumerate(timeline.ranks):
        found = []
        for who, what in (("sender", "send"), ("receiver", "receive")):
            mine = np.flatnonzero(arrows[who] == index)
            numbers = np.zeros(len(rank.slices), np.int64)
            numbers[arrows[what][mine]] = mine + 1
            found.append(numbers.tolist())
        yield Arrows(found[0], found[1], told_of)


def of_rank(
    packets: Packets, rank: RankTimeline, places: dict[int, Place], start: int, arrows: Arrows
) -> None:
    """The slices and instants of a rank, with the arrows that leave and arrive."""
    describer = Describer(rank)
    inside: list[tuple[int, int, int]] = []

    def close() -> None:
        track, at, arrow = inside.pop()
        if arrow:
            packets.instant(track, at - 1, ARRIVED, {"source": arrows.sources[arrow]}, arrow)
        packets.end(track, at)

    for place, (lane, began, ended, event, other) in enumerate(rows(rank.slices)):
        track, at = places[lane].thread, began - start
        while inside and (inside[-1][0] != track or inside[-1][1] <= at):
            close()
        packets.begin(track, at, *describer.of(event, other), arrows.leaving[place])
        inside.append((track, ended - start, arrows.arriving[place]))
    while inside:
        close()
    for lane, began, _, event, other in rows(rank.instants):
        packets.instant(places[lane].thread, began - start, *describer.of(event, other))
