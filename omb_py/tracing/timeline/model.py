"""The model of a timeline: lanes of slices for each rank, and arrows between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.tracing.records.layout import Communicator
from omb_py.tracing.records.run import Alignment, RecordedRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLICE = np.dtype(
    [
        ("lane", np.int32),  # index into the rank's lanes
        ("began", np.int64),  # ns of rank 0's clock
        ("ended", np.int64),
        ("event", np.int64),  # index into the rank's events; NONE: computing
        ("other", np.int64),  # what arrived in a call, the phase of computing; else NONE
    ]
)
"""A slice of a lane. An instant is one that ends when it begins."""

ARROW = np.dtype(
    [
        ("sender", np.int32),  # index into the timeline's ranks
        ("send", np.int64),  # index into its slices
        ("receiver", np.int32),
        ("receive", np.int64),
    ]
)
"""A message whose two sides are known."""

NONE = -1

CHUNK = 20_000
"""Slices that are handled at a time."""


class LaneKind(Enum):
    """The kind of a lane's slices. Lanes are in this order."""

    CALLS = "calls"
    PHASES = "phases"
    REQUESTS = "requests"
    NAMED = "named"


@dataclass(frozen=True)
class Lane:
    """A row of slices, which contain each other or lie apart."""

    kind: LaneKind
    name: str


@dataclass(frozen=True)
class RankTimeline:
    """The part of one rank.

    ``events`` has the fields of `records.layout.EVENT`, with times of rank 0's clock, and holds the
    readable ones; ``unreadable`` counts the others, which are not shown. ``slices`` and
    ``instants`` are arrays of `SLICE`, by lane, then by their beginning, outer ones before inner
    ones. ``complete_from`` is the time from which on nothing was lost, ``ended`` the rank's last
    time. ``pending`` requests were begun, but their completion was not recorded.
    """

    alignment: Alignment
    events: NDArray[Any]
    names: list[str]
    communicators: dict[int, Communicator]
    lanes: tuple[Lane, ...]
    slices: NDArray[Any]
    instants: NDArray[Any]
    began: int
    complete_from: int
    ended: int
    unreadable: int
    pending: int

    @property
    def rank(self) -> int:
        """In MPI_COMM_WORLD."""
        return self.alignment.record.rank

    @property
    def host(self) -> str:
        """Name of the host it ran on."""
        return self.alignment.record.host


@dataclass(frozen=True)
class Messages:
    """Arrows of messages (`ARROW`), and the numbers of messages without one.

    ``sent`` and ``received`` lack their other side; that of ``unnumbered`` ones is unknown.
    ``backwards`` ended before they began, by up to ``most_backwards`` seconds, and ``beyond`` of
    them by more than the error bounds of the two clocks; an arrow cannot show that.
    """

    arrows: NDArray[Any]
    sent: int = 0
    received: int = 0
    unnumbered: int = 0
    backwards: int = 0
    most_backwards: float = 0.0
    beyond: int = 0


@dataclass(frozen=True)
class Timeline:
    """The activity of all ranks, on rank 0's clock.

    ``start`` is the time (ns) that is shown as 0, ``epoch`` the same in ns since 1970, 0 if
    unknown. ``cut`` is the choice of ranks and times in words; ``outside`` counts slices and
    instants, ``arrows_outside`` arrows that were left out thereby.
    """

    ranks: tuple[RankTimeline, ...]
    messages: Messages
    run: RecordedRun
    start: int
    epoch: int
    cut: str = ""
    outside: int = 0
    arrows_outside: int = 0


def rows(slices: NDArray[Any]) -> Iterable[tuple[int, int, int, int, int]]:
    """Return rows of slices as numbers of Python, made some at a time."""
    places = range(0, len(slices), CHUNK)
    return chain.from_iterable(slices[at : at + CHUNK].tolist() for at in places)
