"""Gathers, scatters, exchanges, reductions to one rank or to parts, and barriers, of messages
between two ranks.

Each function gives the steps of one member. Members are all ranks in order. A rank's own block is
a message to itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from omb_py.algorithms.patterns import powers_below
from omb_py.benchmarks.algorithms.allreduce import up
from omb_py.benchmarks.algorithms.bcast import gather_around
from omb_py.benchmarks.algorithms.members import Members, Sum, part
from omb_py.core.calls import Message, Step
from omb_py.core.dataclass import dataclass, replace


@dataclass(frozen=True)
class Exchange:
    """The messages of a rank in a collective call: None for a side on which it has no part.

    In place, ``given`` is None if its data is in ``got``. ``further`` is memory that the algorithm
    needs.
    """

    given: Message | None
    got: Message | None
    root: int | None
    further: Message


def blocks_of(message: Message) -> tuple[Message, ...]:
    """Return each block of a message as a message of its own."""
    starts = zip(message.displacements, message.counts, strict=True)
    whole = replace(message, form="")
    return tuple(part(whole, range(start, start + count)) for start, count in starts)


def ring_allgather(members: Members, data: Exchange) -> Iterator[Step]:
    """Pass on the block that was received last [CHPG]."""
    assert data.got is not None
    blocks = blocks_of(data.got)
    if data.given is not None:
        yield from members.exchange(members.place, data.given, members.place, blocks[members.place])
    starts = zip(data.got.displacements, data.got.counts, strict=True)
    ranges = [range(start, start + count) for start, count in starts]
    yield from gather_around(members, replace(data.got, form=""), ranges, members.place)


def pairwise(members: Members, data: Exchange) -> Iterator[Step]:
    """In round i, send to the rank i after this one and receive from the rank i before it [TRG]."""
    assert data.given is not None
    assert data.got is not None
    leaving, arriving = blocks_of(data.given), blocks_of(data.got)
    for distance in range(members.number):
        after, before = members.around(distance)
        yield from members.exchange(after, leaving[after], before, arriving[before])


def linear_gather(members: Members, data: Exchange) -> Iterator[Step]:
    """Let the root receive from each rank in turn."""
    assert data.root is not None
    if members.place != data.root:
        assert data.given is not None
        yield from members.send(data.root, data.given)
        return
    assert data.got is not None
    for place, block in enumerate(blocks_of(data.got)):
        if place != data.root:
            yield from members.receive(place, block)
        elif data.given is not None:
            yield from members.exchange(place, data.given, place, block)


def linear_scatter(members: Members, data: Exchange) -> Iterator[Step]:
    """Let the root send to each rank in turn."""
    assert data.root is not None
    if members.place != data.root:
        assert data.got is not None
        yield from members.receive(data.root, data.got)
        return
    assert data.given is not None
    for place, block in enumerate(blocks_of(data.given)):
        if place != data.root:
            yield from members.send(place, block)
        elif data.got is not None:
            yield from members.exchange(place, block, place, data.got)


def binomial_reduce(members: Members, data: Exchange) -> Iterator[Step]:
    """Send a sum up a binomial tree to the root [CHPG]."""
    assert data.root is not None
    vector = data.got or data.given
    assert vector is not None
    elements = range(vector.elements)
    arrival = part(data.further, elements)
    result = data.got
    if result is None:  # of the rank's children
        result = part(data.further, range(len(elements), 2 * len(elements)))
    number = members.number
    around = members.chosen([(data.root + place) % number for place in range(number)])
    if number == 1 and data.given is not None:
        yield from members.exchange(0, data.given, 0, result)
    yield from up(around, Sum(elements, data.given, result, arrival))


def pairwise_reduce_scatter(members: Members, data: Exchange) -> Iterator[Step]:
    """Send every other rank its part, and add the parts that arrive [TRG]."""
    assert data.given is not None
    assert data.got is not None
    blocks, place, number = blocks_of(data.given), members.place, members.number
    mine = blocks[place]
    elements = range(mine.elements)
    total = Sum(elements, mine, replace(data.got, form=""), data.further)
    if number == 1:
        yield from members.exchange(place, mine, place, total.total)
    for distance in range(1, number):
        after, before = members.around(distance)
        yield from members.exchange(after, blocks[after], before, total.arrival)
        yield from total.addition()
        total = total.grown


def dissemination(members: Members, data: Exchange) -> Iterator[Step]:
    """In rounds 1, 2, 4 …, signal the rank so far after this one (Hensgen, Finkel, Manber 1988)."""
    leaving, arriving = (part(data.further, range(i, i + 1)) for i in range(2))
    for distance in powers_below(members.number):
        after, before = members.around(distance)
        yield from members.exchange(after, leaving, before, arriving)
