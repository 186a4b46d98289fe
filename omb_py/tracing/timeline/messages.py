"""Messages: which send belongs to which receive, and what has no other side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.tracing.records import NS
from omb_py.tracing.records.layout import Kind
from omb_py.tracing.records.routines import Role
from omb_py.tracing.timeline.events import begins_only, roles
from omb_py.tracing.timeline.model import ARROW, NONE, Messages, RankTimeline

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIDE = np.dtype(
    [
        ("communicator", np.int64),
        ("source", np.int64),
        ("destination", np.int64),
        ("tag", np.int64),
        ("sequence", np.int64),
        ("rank", np.int64),  # index into the ranks
        ("event", np.int64),  # index into its events
    ]
)
"""One side of a message: the first fields are equal on both."""

KEY = ("communicator", "source", "destination", "tag", "sequence")


def match(ranks: Sequence[RankTimeline], slices: Sequence[NDArray[Any]]) -> Messages:
    """The messages between ranks; ``slices`` has the slice of each event of each rank, or NONE.

    A message is known by its communicator, source, destination, tag and number among those. It
    leaves with the call that sends, and has arrived at the end of what received it.
    """
    keys: dict[str, int] = {}
    sent: list[NDArray[Any]] = []
    received: list[NDArray[Any]] = []
    unnumbered = 0
    for index, rank in enumerate(ranks):
        sends, receives = sides(rank)
        for mask, into, outgoing in ((sends, sent, True), (receives, received, False)):
            side = one_side(rank, index, np.flatnonzero(mask), outgoing, keys)
            known = side["sequence"] > 0
            into.append(side[known])
            if not outgoing or not len(side):
                unnumbered += int((~known).sum())
                continue
            begun = begins_only(rank.names, rank.events["name"][side["event"]])
            unnumbered += int((~known & ~begun).sum())
    every_send, every_receive = unique(np.concatenate(sent)), unique(np.concatenate(received))
    first, second = pairs(every_send, every_receive)
    return outcome(ranks, slices, every_send, every_receive, first, second, unnumbered)


def sides(rank: RankTimeline) -> tuple[NDArray[Any], NDArray[Any]]:
    """Which events of a rank are the sending, and which the receiving side of a message."""
    events = rank.events
    kinds, names = events["kind"], events["name"]
    role = roles(rank.names, names)
    call, done = kinds == Kind.CALL, kinds == Kind.DONE
    both = role[Role.SENDRECV]
    first = done & both
    first[first] = earliest(events[first])
    sends = ((call | done) & role[Role.SEND]) | (call & both) | first
    receives = (call & role[Role.RECEIVE] & ~begins_only(rank.names, names)) | (
        kinds == Kind.ARRIVED
    )
    receives |= done & (role[Role.RECEIVE] | (both & ~first))
    known = events["peer"] >= 0
    return sends & known, receives & known


def earliest(done: NDArray[Any]) -> NDArray[Any]:
    """Which completions are of the first of the two requests that one call began: the send's."""
    order = np.lexsort((done["request"], done["name"], done["began"]))
    ordered = done[order]
    same = (ordered["name"][1:] == ordered["name"][:-1]) & (
        ordered["began"][1:] == ordered["began"][:-1]
    )
    found = np.zeros(len(done), bool)
    found[order[:-1][same]] = True
    return found


def one_side(
    rank: RankTimeline,
    index: int,
    places: NDArray[Any],
    outgoing: bool,
    keys: dict[str, int],
) -> NDArray[Any]:
    """One side of messages: the events at these places, calls before completions."""
    places = places[np.argsort(rank.events["kind"][places], kind="stable")]
    events = rank.events[places]
    found = np.zeros(len(places), SIDE)
    used, inverse = np.unique(events["communicator"], return_inverse=True)
    numbers = [
        keys.setdefault(rank.communicators[number].key, len(keys))
        if number in rank.communicators
        else NONE
        for number in used.tolist()
    ]
    found["communicator"] = np.array(numbers, np.int64)[inverse] if len(used) else 0
    found["source" if outgoing else "destination"] = rank.rank
    found["destination" if outgoing else "source"] = events["peer"]
    found["tag"] = events["tag"]
    found["sequence"] = np.where(found["communicator"] == NONE, 0, events["sequence"])
    found["rank"] = index
    found["event"] = places
    return found


def same_as_next(sides: NDArray[Any]) -> NDArray[Any]:
    """Which of ordered sides are of the same message as the one after them."""
    same = np.ones(max(0, len(sides) - 1), bool)
    for name in KEY:
        same &= sides[name][1:] == sides[name][:-1]
    return same


def unique(sides: NDArray[Any]) -> NDArray[Any]:
    """Sides by message, the first of those that are the same: a call before its completion."""
    ordered = sides[np.lexsort([sides[name] for name in reversed(KEY)])]
    kept = np.ones(len(ordered), bool)
    kept[1:] = ~same_as_next(ordered)
    return ordered[kept]


def pairs(sends: NDArray[Any], receives: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Places of sends and of receives that belong together."""
    both = np.concatenate([sends, receives])
    order = np.lexsort([both[name] for name in reversed(KEY)])
    together = same_as_next(both[order])
    return order[:-1][together], order[1:][together] - len(sends)


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
