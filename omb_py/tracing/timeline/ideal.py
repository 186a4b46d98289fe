"""A recorded run on an ideal network: computation as it was, messages that take no time.

This is the simulation behind POP's serialisation and transfer efficiency (Dimemas with zero latency
and infinite bandwidth). A receive waits for the beginning of its send, MPI_Ssend for that of its
receive, a completion for what it completes, a collective call for the ranks that
`routines.dependence` names; all else ends at once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import TypeAlias

from omb_py.core.errors import UsageError
from omb_py.tracing.records.layout import EventKind
from omb_py.tracing.records.reading import NS
from omb_py.tracing.records.routines import Dependence, Role, base, dependence, nonblocking, role
from omb_py.tracing.timeline.assembly import RankTimeline, Timeline

DONE_ENDS, CALL_ENDS, CALL_BEGINS, DONE_BEGINS = range(4)
"""What happens at a moment, in the order of those at the same time."""

Waits: TypeAlias = Callable[[int, int, int], bool]
WAITS: dict[Dependence | None, Waits] = {
    Dependence.ALL: lambda other, rank, root: True,
    Dependence.ROOT: lambda other, rank, root: other == root,
    Dependence.AT_ROOT: lambda other, rank, root: rank == root,
    Dependence.LOWER: lambda other, rank, root: other < rank,
}
"""Whether a rank waits for another one in a collective call, which may have a root."""


def elapsed(timeline: Timeline) -> tuple[float, int]:
    """Return a run's seconds, and how many waits are left out, as a record names no other side.

    One pass over the events is enough: in the recorded order each wait ends after the beginning of
    what it waits for. Raises `UsageError` if parts of the records are missing.
    """
    ranks, records = timeline.ranks, [rank.record for rank in timeline.ranks]
    if most := max((one.header["events_written"] for one in records if one.lost_events), default=0):
        raise UsageError(f"they need all events (--events {most})")
    whole = len(ranks) == timeline.run.size and timeline.run.on_one_clock
    if not whole or not all(one.complete for one in records):
        raise UsageError("they need all ranks, each rank's end, and one clock")
    awaited, messages = messages_awaited(timeline), timeline.messages
    unknown = messages.received + messages.unnumbered + messages.backwards
    unknown += messages.mixed + messages.unequal
    rows = [one.events[["name", "communicator", "peer", "sequence"]].tolist() for one in ranks]
    communicators = [one.communicators for one in records]
    clocks = [rank.began for rank in ranks]
    left, inside, start = list(clocks), [0] * len(ranks), min(clocks)
    begun: dict[tuple[int, int], int] = {}
    counted: Counter[tuple[int, int, str]] = Counter()
    together: dict[tuple[int, int], tuple[dict[int, int], Waits, int]] = {}
    members: dict[tuple[str, str, int], dict[int, int]] = defaultdict(dict)
    for at, what, rank, event in moments(ranks):
        place, is_call = (rank, event), what in (CALL_BEGINS, CALL_ENDS)
        if what in (DONE_ENDS, CALL_ENDS):
            known = [begun[awaited[place]]] if awaited.get(place) in begun else []
            if place in together:
                those, waits, root = together.pop(place)
                own = records[rank].rank
                known += [when for other, when in those.items() if waits(other, own, root)]
            clocks[rank] = max([clocks[rank], *known])
            inside[rank] -= is_call
            left[rank] = at if is_call else left[rank]
            continue
        if is_call and not inside[rank]:
            clocks[rank] += at - left[rank]
        inside[rank] += is_call
        begun[place] = clocks[rank]
        number, communicator, root, sequence = rows[rank][event]
        name = records[rank].name(number)
        whom = dependence(name)
        if whom is None or (is_call and nonblocking(name)):
            continue
        if role(name) is not Role.COLLECTIVE:
            counted[rank, communicator, base(name)] += 1
            sequence = counted[rank, communicator, base(name)]
        if whom in WAITS and communicator in communicators[rank] and sequence:
            those = members[communicators[rank][communicator].key, base(name), sequence]
            those[records[rank].rank] = clocks[rank]
            together[place] = those, WAITS[whom], root
        else:
            unknown += 1
    ends = [int(one.common(one.ended)) for one in records]
    last = max(map(sum, zip(clocks, ends, (-one for one in left), strict=True)))
    return (last - start) * NS, unknown


def moments(ranks: Sequence[RankTimeline]) -> list[tuple[int, int, int, int]]:
    """Return beginnings and ends of all calls and operations: time, what, rank and event."""
    return sorted(
        (at, what, rank, event)
        for rank, one in enumerate(ranks)
        for event, kind in enumerate(one.events["kind"].tolist())
        if kind in (EventKind.CALL, EventKind.DONE)
        for at, what in (
            (int(one.events["began"][event]), CALL_BEGINS + (kind == EventKind.DONE)),
            (int(one.events["ended"][event]), CALL_ENDS - (kind == EventKind.DONE)),
        )
    )


def messages_awaited(timeline: Timeline) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the event for whose beginning each event that receives waits, or sends with Ssend."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    events = [rank.slices["event"].tolist() for rank in timeline.ranks]
    for sender, send, receiver, receive in timeline.messages.arrows.tolist():
        sent, received = (sender, events[sender][send]), (receiver, events[receiver][receive])
        found[received] = sent
        name = timeline.ranks[sender].events["name"][sent[1]]
        if timeline.ranks[sender].record.name(name) == "MPI_Ssend":
            found[sent] = received
    return found
