"""A rank's events on rank 0's clock, without those that mean nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.tracing.records import Record
from omb_py.tracing.records.layout import Communicator, Kind, communicator_of
from omb_py.tracing.records.routines import Role, nonblocking, role

if TYPE_CHECKING:
    from numpy.typing import NDArray

LATEST = 1 << 61
"""ns; a time that is later is damage (it is 73 years of a monotonic clock)."""

MESSAGES = (Kind.CALL, Kind.DONE, Kind.ARRIVED)


def readable(record: Record) -> tuple[NDArray[Any], int]:
    """The events on the common clock, and how many make no sense: half written, or damaged.

    Those of MPI last for 1 ns at least, so that an arrow can begin and end inside of them.
    """
    events = record.events
    kinds, began, ended = events["kind"], events["began"], events["ended"]
    good = (kinds >= Kind.CALL) & (kinds <= Kind.INSTANT) & (began >= 0)
    good &= (ended >= began) & (ended < LATEST)
    kept = events[good]
    kept["began"] = record.common(kept["began"])
    kept["ended"] = np.maximum(record.common(kept["ended"]), kept["began"])
    of_mpi = np.isin(kept["kind"], MESSAGES)
    kept["ended"] = np.where(of_mpi, np.maximum(kept["ended"], kept["began"] + 1), kept["ended"])
    return kept, int(len(events) - len(kept))


def communicators(record: Record) -> dict[int, Communicator]:
    """Communicators by the number of their name, without those whose line is damaged."""
    found = {}
    for number, line in enumerate(record.names):
        try:
            communicator = communicator_of(line)
        except (ValueError, TypeError):
            continue
        if communicator is not None:
            found[number] = communicator
    return found


def roles(names: list[str], numbers: NDArray[Any]) -> dict[Role, NDArray[Any]]:
    """For each role, which of the names' numbers are those of routines that have it."""
    found = {each: np.zeros(len(numbers), bool) for each in Role}
    used, places = np.unique(numbers, return_inverse=True)
    for index, number in enumerate(used.tolist()):
        if 0 <= number < len(names):
            found[role(names[number])] |= places == index
    return found


def begins_only(names: list[str], numbers: NDArray[Any]) -> NDArray[Any]:
    """Which of the names' numbers are those of routines that another one completes."""
    used, places = np.unique(numbers, return_inverse=True)
    known = [0 <= number < len(names) and nonblocking(names[number]) for number in used.tolist()]
    return np.array(known, bool)[places] if len(used) else np.zeros(0, bool)
