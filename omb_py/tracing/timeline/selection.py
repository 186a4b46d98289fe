"""A part of a timeline: some ranks, or some time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.core.errors import UsageError
from omb_py.core.text.ranks import some_ranks
from omb_py.tracing.records.layout import NS_PER_SECOND
from omb_py.tracing.timeline.model import NONE, RankTimeline, Timeline

if TYPE_CHECKING:
    from numpy.typing import NDArray


def select(
    timeline: Timeline,
    ranks: Sequence[int] | None = None,
    begin: float | None = None,
    end: float | None = None,
) -> Timeline:
    """The timeline with these ranks only, and what touches the time between two seconds.

    Slices stay whole. What was left out is counted. Raises `UsageError` when nothing remains.
    """
    if ranks is None and begin is None and end is None:
        return timeline
    there = [rank.rank for rank in timeline.ranks]
    wanted = there if ranks is None else [rank for rank in there if rank in set(ranks)]
    absent = sorted(set(ranks or ()) - set(there))
    if absent:
        raise UsageError(
            f"there is no record of {some_ranks(absent)}: there are those of {some_ranks(there)}"
        )
    kept, maps, outside = [], [], 0
    for rank in timeline.ranks:
        part, places, left = cut(timeline, rank, rank.rank in wanted, begin, end)
        outside += left
        maps.append(places)
        if rank.rank in wanted:
            kept.append(part)
    if not sum(len(rank.slices) + len(rank.instants) for rank in kept):
        raise UsageError("nothing was recorded there: choose a longer time, or other ranks")
    arrows = timeline.messages.arrows.copy()
    for who, what in (("sender", "send"), ("receiver", "receive")):
        for index, places in enumerate(maps):
            mine = arrows[who] == index
            arrows[what][mine] = places[arrows[what][mine]]
    shown = (arrows["send"] != NONE) & (arrows["receive"] != NONE)
    arrows = arrows[shown]
    new = np.array([wanted.index(rank) if rank in wanted else NONE for rank in there])
    for who in ("sender", "receiver"):
        arrows[who] = new[arrows[who]]
    return replace(
        timeline,
        ranks=tuple(kept),
        messages=replace(timeline.messages, arrows=arrows),
        cut=in_words(None if ranks is None else wanted, begin, end),
        outside=outside,
        arrows_outside=int((~shown).sum()),
    )


def cut(
    timeline: Timeline, rank: RankTimeline, wanted: bool, begin: float | None, end: float | None
) -> tuple[RankTimeline, NDArray[Any], int]:
    """A rank's part, the new index of each of its slices (or NONE), how many were left out."""
    parts, places, left = {}, np.zeros(0, np.int64), 0
    for name in ("instants", "slices"):
        slices = getattr(rank, name)
        keep = np.full(len(slices), wanted)
        if begin is not None:
            keep &= slices["ended"] >= timeline.start + begin * NS_PER_SECOND
        if end is not None:
            keep &= slices["began"] <= timeline.start + end * NS_PER_SECOND
        parts[name] = slices[keep]
        places = np.where(keep, np.cumsum(keep) - 1, NONE)
        left += int((~keep).sum())
    return replace(rank, **parts), places, left


def in_words(ranks: Sequence[int] | None, begin: float | None, end: float | None) -> str:
    """What was chosen."""
    words = [] if ranks is None else [some_ranks(ranks)]
    if begin is not None:
        words.append(f"from {begin:g} s")
    if end is not None:
        words.append(f"to {end:g} s")
    return " ".join(words)
