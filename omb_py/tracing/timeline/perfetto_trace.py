"""Timelines as Perfetto's own kind of file (TrackEvent, protobuf). Needs the extra ``perfetto``.

As in JSON there is a process for each rank and a thread for each lane; here a slice is a beginning
and an end. An arrow leaves at the beginning of the slice that sends, and ends in a mark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np

from omb_py.core.errors import needing
from omb_py.tracing.timeline import diagnostics
from omb_py.tracing.timeline.description import ARRIVAL, Describer, Description
from omb_py.tracing.timeline.model import RankTimeline, Timeline, rows
from omb_py.tracing.timeline.protobuf_writer import Packets
from omb_py.tracing.timeline.tracks import ABOUT, FILLER, Place, places_of

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
