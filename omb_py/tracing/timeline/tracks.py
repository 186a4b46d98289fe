"""Where lanes are in a file: numbers of processes and threads, and the order of ranks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np

from omb_py.tracing.timeline.model import RankTimeline, Timeline

# What keeps ranks in order in a viewer that sorts processes by how much they have to show.
#
# Perfetto's page sorts processes by their number of slices and marks first, and only then by name
# (its version 52 does; later ones heed the numbers that files give, too). So ranks get marks that
# mean nothing until none has less than one after it.

FILLER = "filler"
"""Name of the marks, which lie at the very beginning, 1 ns apart."""

FILLERS = "(keeps ranks in order)"
"""Name of their lane."""

MOST, SHARE = 1000, 0.25
"""There are no more of them than so many, or than this share of all slices."""


def needed(timeline: Timeline) -> list[int]:
    """How many fillers each rank would need."""
    shown = [len(rank.slices) + len(rank.instants) for rank in timeline.ranks]
    receivers = timeline.messages.arrows["receiver"]
    arrivals = np.bincount(receivers, minlength=len(shown)).tolist()
    counts = [slices + marks for slices, marks in zip(shown, arrivals, strict=True)]
    counts[0] += 1  # what is said about the timeline
    most, found = 0, []
    for slices in reversed(counts):
        most = max(most, slices)
        found.append(most - slices)
    return found[::-1]


def fillers(timeline: Timeline) -> list[int]:
    """How many fillers each rank gets: none at all where that would be too many."""
    found = needed(timeline)
    shown = sum(len(rank.slices) for rank in timeline.ranks)
    return found if sum(found) <= max(MOST, SHARE * shown) else [0] * len(found)


ABOUT = "about this timeline"
"""Name of the mark at the beginning, and of its lane, that has what there is to say about it."""


@dataclass(frozen=True)
class Place:
    """A lane's numbers of process and thread, and its name."""

    process: int
    thread: int
    name: str


@dataclass(frozen=True)
class Places:
    """The name of each rank's process, and the place of each lane in which anything lies.

    ``fillers`` has the lanes of marks that keep ranks in order, and how many lie in each.

    Viewers sort processes by their names, threads by their numbers, except that a thread with the
    number of its process is the main one and stands first. ``about`` is a lane of the first rank.
    """

    processes: tuple[str, ...]
    lanes: tuple[dict[int, Place], ...]
    about: Place
    fillers: tuple[tuple[Place, int], ...]


def places_of(timeline: Timeline) -> Places:
    """The places of a timeline's lanes.

    Numbers of processes begin at 1, as trace processors take 0 for the kernel's idle thread, and no
    thread has the number of another one, as they take such for the same.
    """
    thread = max([timeline.size, *(rank.rank + 1 for rank in timeline.ranks)])
    lanes: list[dict[int, Place]] = []
    for rank in timeline.ranks:
        process, found = rank.rank + 1, {}
        for lane in used_lanes(rank):
            thread += 1
            number = process if lane == 0 else thread
            found[lane] = Place(process, number, rank.lanes[lane].name)
        lanes.append(found)
    numbered = zip(timeline.ranks, fillers(timeline), count(thread + 2), strict=False)
    return Places(
        tuple(process_name(rank, timeline.size) for rank in timeline.ranks),
        tuple(lanes),
        Place(timeline.ranks[0].rank + 1, thread + 1, ABOUT),
        tuple(
            (Place(rank.rank + 1, number, FILLERS), most) for rank, most, number in numbered if most
        ),
    )


def process_name(rank: RankTimeline, size: int) -> str:
    """The name of a rank, such that names sorted as text are in the order of ranks."""
    digits = max(4, len(str(size - 1)), len(str(rank.rank)))
    return f"rank {rank.rank:0{digits}d} @{rank.host}"


def used_lanes(rank: RankTimeline) -> list[int]:
    """The lanes in which anything lies."""
    used = {*rank.slices["lane"].tolist(), *rank.instants["lane"].tolist()}
    return sorted(used)
