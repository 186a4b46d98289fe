"""A rank's events on rank 0's clock, without those that mean nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.tracing.records import Record
from omb_py.tracing.records.layout import Kind

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
