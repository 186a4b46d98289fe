"""What keeps ranks in order in a viewer that sorts processes by how much they have to show.

Perfetto's page sorts processes by their number of slices and marks first, and only then by name
(its version 52 does; later ones heed the numbers that files give, too). So ranks get marks that
mean nothing until none has less than one after it.
"""

from __future__ import annotations

import numpy as np

from omb_py.timelines.model import Timeline

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
    for count in reversed(counts):
        most = max(most, count)
        found.append(most - count)
    return found[::-1]


def fillers(timeline: Timeline) -> list[int]:
    """How many fillers each rank gets: none at all where that would be too many."""
    found = needed(timeline)
    shown = sum(len(rank.slices) for rank in timeline.ranks)
    return found if sum(found) <= max(MOST, SHARE * shown) else [0] * len(found)
