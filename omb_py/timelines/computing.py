"""What lies between calls of MPI: computing, in the phase that the program was in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.timelines.lanes import innermost
from omb_py.timelines.model import NONE, SLICE

if TYPE_CHECKING:
    from numpy.typing import NDArray


def gaps(
    began: NDArray[Any], ended: NDArray[Any], start: int, end: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Beginnings and ends of the times between ``start`` and ``end`` that no interval covers."""
    order = np.argsort(began, kind="stable")
    begins = np.append(began[order], end)
    reached = np.maximum.accumulate(np.append(start, ended[order]))
    begins = np.minimum(begins, end)
    open_ = begins > reached
    return reached[open_], begins[open_]


def computing(
    calls: NDArray[Any], phases: NDArray[Any], places: NDArray[Any], start: int, end: int
) -> NDArray[Any]:
    """Slices of computing between calls, from ``start`` to ``end``, cut where a phase changes.

    ``calls`` and ``phases`` are events, ``places`` the phases' indices among all events: a slice
    has that of the innermost phase as ``other``.
    """
    begins, ends = gaps(calls["began"], calls["ended"], start, end)
    if not len(begins):
        return np.zeros(0, SLICE)
    times, inside = innermost(phases["began"], phases["ended"])
    cuts = times[1:]
    gap = np.searchsorted(begins, cuts, "right") - 1
    within = (gap >= 0) & (cuts > begins[gap]) & (cuts < ends[gap])
    starts = np.sort(np.concatenate([begins, cuts[within]]))
    slices = np.zeros(len(starts), SLICE)
    slices["began"] = starts
    slices["ended"] = np.minimum(
        ends[np.searchsorted(begins, starts, "right") - 1], np.append(starts[1:], ends[-1])
    )
    slices["event"] = NONE
    phase = inside[np.searchsorted(times, starts, "right") - 1]
    slices["other"] = np.append(places, NONE)[phase]
    return slices
