"""Messages in records: which events send and receive them, and which belong together.

A message is known by its communicator, source, destination, tag and number among those. MPI
delivers in order: of the receives that got messages of one source and tag, the one that began first
got the first, whatever source and tag they named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.tracing.records.layout import MIXED, ORDER_STEP, Communicator, EventKind
from omb_py.tracing.records.routines import Role, nonblocking, role

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from omb_py.tracing.records.reading import RankRecord

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

UNKNOWN_COMMUNICATOR = -1


@dataclass(frozen=True)
class Sides:
    """The sides of messages that a rank recorded, as arrays of `SIDE`, calls before completions.

    ``unnumbered`` sides are left out, since their message is unknown, as are ``mixed`` ones, which
    overlap with receives of any source or tag whose messages were not recorded.
    """

    sends: NDArray[Any]
    receives: NDArray[Any]
    unnumbered: int
    mixed: int = 0


def sides_of(index: int, record: RankRecord, events: NDArray[Any], keys: dict[str, int]) -> Sides:
    """Return the sides of messages in the events of a rank, which is the one with this ``index``.

    ``events`` are those of the ``record`` that can be read. ``keys`` numbers the keys of
    communicators; it is the same for all ranks, and grows.
    """
    rank, names, communicators = record.rank, record.names, record.communicators
    begins = _of_names(names, events["name"], nonblocking)
    sends, receives = _masks(names, events, begins)
    sent = _numbered(index, rank, np.flatnonzero(sends), True, events, communicators, keys)
    waiting = _waiting(events)
    posted = np.flatnonzero(receives | (waiting & (events["peer"] >= 0)))
    received = _numbered(index, rank, posted, False, events, communicators, keys)
    doubtful = _put_in_order(received, events, waiting, record.lost_events > 0)
    done = ~waiting[received["event"]]
    # a send that another call completes has its number in the call that begins it, if in any
    unnumbered = int((sends & ~begins).sum() - (~begins[sent["event"]]).sum())
    unnumbered += int(receives.sum() - done.sum())
    return Sides(sent, received[done & ~doubtful], unnumbered, int((done & doubtful).sum()))


def _waiting(events: NDArray[Any]) -> NDArray[Any]:
    """Return a mask of calls that began receives whose completion was not recorded."""
    order, done = events["order"], events["kind"] == EventKind.DONE
    began = (events["kind"] == EventKind.CALL) & (order > 0) & (events["request"] > 0)
    mask: NDArray[Any] = began & ~np.isin(order // ORDER_STEP, order[done] // ORDER_STEP)
    return mask


def _put_in_order(
    sides: NDArray[Any], events: NDArray[Any], waiting: NDArray[Any], lossy: bool
) -> NDArray[Any]:
    """Let receives of messages of one kind have their numbers in the order of their beginnings.

    Return a mask of those whose number is unknown: of a ``lossy`` record `MIXED` ones, else those
    behind a ``waiting`` receive that may have got such a message, too.
    """
    order = events["order"][sides["event"]]
    doubtful: NDArray[Any] = (order & MIXED) > 0
    if lossy:
        return doubtful
    place = order // ORDER_STEP
    kind = [sides[name] for name in ("tag", "source", "communicator")]
    by_number = np.lexsort([sides["sequence"], *kind])
    sides["sequence"][np.lexsort([sides["sequence"], place, *kind])] = sides["sequence"][by_number]
    doubtful = np.zeros(len(sides), bool)
    first: dict[tuple[int, ...], int] = {}
    open_ = events[waiting & ((events["peer"] < 0) | (events["tag"] < 0))]
    for *key, at in open_[["communicator", "peer", "tag", "order"]].tolist():
        first[tuple(key)] = min(first.get(tuple(key), at), at)
    for (communicator, peer, tag), at in first.items():
        behind = (order > at) & (events["communicator"][sides["event"]] == communicator)
        behind &= (sides["source"] == peer) | (peer < 0)
        doubtful |= behind & ((sides["tag"] == tag) | (tag < 0))
    return doubtful


def partners(sides: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    """For each of ``sides`` the index of the first of ``others`` of the same message, else -1."""
    both = np.concatenate([others, sides])
    order = np.lexsort([both[name] for name in reversed(KEY)])
    new = ~same_as_before(both[order])
    found = np.empty(len(both), np.int64)
    found[order] = order[np.flatnonzero(new)][np.cumsum(new) - 1]
    mine = found[len(others) :]
    partner: NDArray[Any] = np.where(mine < len(others), mine, -1)
    return partner


def unique(sides: NDArray[Any]) -> NDArray[Any]:
    """Sides by message, the first of those that are the same: a call before its completion."""
    ordered = sides[np.lexsort([sides[name] for name in reversed(KEY)])]
    kept: NDArray[Any] = ordered[~same_as_before(ordered)]
    return kept


def _masks(
    names: list[str], events: NDArray[Any], begins: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return masks of the events that send, and of those that receive a message."""
    kinds, numbers = events["kind"], events["name"]
    call, done = kinds == EventKind.CALL, kinds == EventKind.DONE
    send, receive, both = (
        _of_names(names, numbers, lambda name, wanted=wanted: role(name) is wanted)
        for wanted in (Role.SEND, Role.RECEIVE, Role.SENDRECV)
    )
    first = done & both
    first[first] = _sends_first(events[first], events[call & both])
    sends = ((call | done) & send) | (call & both) | first
    receives = (call & receive & ~begins) | (kinds == EventKind.ARRIVED)
    receives |= done & (receive | (both & ~first))
    known = events["peer"] >= 0
    return sends & known, receives & known


def _of_names(names: list[str], numbers: NDArray[Any], wanted: Any) -> NDArray[Any]:
    """Return a mask of the numbers of names whose routines are ``wanted``."""
    used, places = np.unique(numbers, return_inverse=True)
    chosen = [0 <= number < len(names) and bool(wanted(names[number])) for number in used.tolist()]
    return np.array(chosen, bool)[places] if len(used) else np.zeros(0, bool)


def _sends_first(done: NDArray[Any], calls: NDArray[Any]) -> NDArray[Any]:
    """Return a mask of sends among completions, for calls that both send and receive.

    A send's request is that of the call; if the call was lost, the first request is the send's.
    """
    found = np.isin(done["request"], calls["request"])
    order = np.lexsort((done["request"], done["name"], done["began"]))
    ordered = done[order]
    same = (ordered["name"][1:] == ordered["name"][:-1]) & (
        ordered["began"][1:] == ordered["began"][:-1]
    )
    earlier = np.zeros(len(done), bool)
    earlier[order[:-1][same]] = True
    known = np.isin(done["began"], calls["began"])
    first: NDArray[Any] = np.where(known, found, earlier)
    return first


def _numbered(
    index: int,
    rank: int,
    places: NDArray[Any],
    outgoing: bool,
    events: NDArray[Any],
    communicators: Mapping[int, Communicator],
    keys: dict[str, int],
) -> NDArray[Any]:
    """Sides of messages at these places among the events, if they have a number."""
    places = places[np.argsort(events["kind"][places], kind="stable")]
    events = events[places]
    found = np.zeros(len(places), SIDE)
    used, inverse = np.unique(events["communicator"], return_inverse=True)
    numbers = [
        keys.setdefault(communicators[number].key, len(keys))
        if number in communicators
        else UNKNOWN_COMMUNICATOR
        for number in used.tolist()
    ]
    found["communicator"] = np.array(numbers, np.int64)[inverse] if len(used) else 0
    found["source" if outgoing else "destination"] = rank
    found["destination" if outgoing else "source"] = events["peer"]
    found["tag"] = events["tag"]
    found["sequence"] = events["sequence"]
    found["rank"] = index
    found["event"] = places
    known = (found["sequence"] > 0) & (found["communicator"] != UNKNOWN_COMMUNICATOR)
    numbered: NDArray[Any] = found[known]
    return numbered


def same_as_before(sides: NDArray[Any], fields: Sequence[str] = KEY) -> NDArray[Any]:
    """Return a mask of ordered sides whose fields are those of the side before."""
    same = np.ones(len(sides), bool)
    same[:1] = False
    for name in fields:
        same[1:] &= sides[name][1:] == sides[name][:-1]
    return same
