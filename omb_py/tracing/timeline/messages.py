"""Arrows: messages whose two sides are known, and how many have none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.tracing.records.messages import partners, sides_of, unique
from omb_py.tracing.records.reading import NS
from omb_py.tracing.timeline.model import ARROW, NONE, Messages, RankTimeline

if TYPE_CHECKING:
    from numpy.typing import NDArray


def match(ranks: Sequence[RankTimeline], slices: Sequence[NDArray[Any]]) -> Messages:
    """The messages between ranks; ``slices`` has the slice of each event of each rank, or NONE.

    A message leaves with the call that sends, and has arrived at the end of what received it.
    """
    keys: dict[str, int] = {}
    sides = [
        sides_of(index, rank.rank, rank.events, rank.names, rank.communicators, keys)
        for index, rank in enumerate(ranks)
    ]
    sends = unique(np.concatenate([one.sends for one in sides]))
    receives = unique(np.concatenate([one.receives for one in sides]))
    second = partners(sends, receives)
    first = np.flatnonzero(second >= 0)
    unnumbered = sum(one.unnumbered for one in sides)
    return outcome(ranks, slices, sends, receives, first, second[first], unnumbered)


def outcome(
    ranks: Sequence[RankTimeline],
    slices: Sequence[NDArray[Any]],
    sends: NDArray[Any],
    receives: NDArray[Any],
    first: NDArray[Any],
    second: NDArray[Any],
    unnumbered: int,
) -> Messages:
    """The arrows of pairs, and the numbers of what has none."""
    arrows = np.zeros(len(first), ARROW)
    left, arrived = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
    bound = np.zeros(len(first))
    sides = (("sender", "send", sends[first]), ("receiver", "receive", receives[second]))
    for index, rank in enumerate(ranks):
        error = rank.alignment.error
        for name, slice_name, side in sides:
            mine = side["rank"] == index
            events = side["event"][mine]
            arrows[name][mine] = index
            arrows[slice_name][mine] = slices[index][events]
            bound[mine] += np.inf if error is None else error
            if name == "sender":
                left[mine] = rank.events["began"][events]
            else:
                arrived[mine] = rank.events["ended"][events]
    late = left >= arrived
    behind = (left - arrived)[late] * NS
    drawn = ~late & (arrows["send"] != NONE) & (arrows["receive"] != NONE)
    return Messages(
        arrows[drawn][np.argsort(left[drawn], kind="stable")],
        sent=len(sends) - len(first),
        received=len(receives) - len(second),
        unnumbered=unnumbered,
        backwards=int(late.sum()),
        most_backwards=float(behind.max()) if len(behind) else 0.0,
        beyond=int((behind > bound[late]).sum()),
    )
