"""Where lanes are in a file: numbers of processes and threads, and the order of ranks."""

from __future__ import annotations

from dataclasses import dataclass

from omb_py.tracing.timeline.model import RankTimeline, Timeline

ABOUT = "about this timeline"
"""Name of the mark at the beginning, and of its lane, that has what there is to say about it."""


@dataclass(frozen=True)
class TrackPlace:
    """A lane's numbers of process and thread, and its name."""

    process: int
    thread: int
    name: str


@dataclass(frozen=True)
class Places:
    """The name of each rank's process, and the place of each lane in which anything lies.

    Viewers sort processes by their names, threads by their numbers, except that a thread with the
    number of its process is the main one and stands first. ``about`` is a lane of the first rank.
    """

    processes: tuple[str, ...]
    lanes: tuple[dict[int, TrackPlace], ...]
    about: TrackPlace


def places_of(timeline: Timeline) -> Places:
    """The places of a timeline's lanes.

    Numbers of processes begin at 1, as trace processors take 0 for the kernel's idle thread, and no
    thread has the number of another one, as they take such for the same.
    """
    thread = max([timeline.run.size, *(rank.rank + 1 for rank in timeline.ranks)])
    lanes: list[dict[int, TrackPlace]] = []
    for rank in timeline.ranks:
        process, found = rank.rank + 1, {}
        for lane in used_lanes(rank):
            thread += 1
            number = process if lane == 0 else thread
            found[lane] = TrackPlace(process, number, rank.lanes[lane].name)
        lanes.append(found)
    return Places(
        tuple(process_name(rank, timeline.run.size) for rank in timeline.ranks),
        tuple(lanes),
        TrackPlace(timeline.ranks[0].rank + 1, thread + 1, ABOUT),
    )


def process_name(rank: RankTimeline, size: int) -> str:
    """The name of a rank, such that names sorted as text are in the order of ranks."""
    digits = max(4, len(str(size - 1)), len(str(rank.rank)))
    return f"rank {rank.rank:0{digits}d} @{rank.host}"


def used_lanes(rank: RankTimeline) -> list[int]:
    """The lanes in which anything lies."""
    used = {*rank.slices["lane"].tolist(), *rank.instants["lane"].tolist()}
    return sorted(used)
