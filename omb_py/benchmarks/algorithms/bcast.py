"""Broadcasts made of messages between two ranks; the first of the members is the root.

Each function gives the steps of one member. `omb_py.algorithms.patterns` has the sources behind the
letters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from omb_py.algorithms.patterns import powers_below
from omb_py.algorithms.trees import binomial_by_lowest
from omb_py.benchmarks.algorithms.members import Members, part, pieces, shares, span
from omb_py.core.calls import Message, Step
from omb_py.core.errors import LeftOutError
from omb_py.core.options import SEGMENT

MOST_SEGMENTS = 1 << 16
"""Segments of a message at most, for the calls of all of them are made before the first one."""


def pipelined_chain(members: Members, message: Message, segment: int = SEGMENT) -> Iterator[Step]:
    """Send segments from member to member: each is passed on while the next one arrives [PG].

    Segments have as many whole elements as fit into ``segment`` bytes, at least one. Raises
    `LeftOutError` for more than `MOST_SEGMENTS`.
    """
    longest = max(1, segment // message.datatype.itemsize)
    if (number := -(-message.elements // longest)) > MOST_SEGMENTS:
        raise LeftOutError(
            f"{number} segments are more than {MOST_SEGMENTS}: choose a larger --segment"
        )
    segments = [part(message, piece) for piece in pieces(message.elements, longest)]
    nothing = part(message, range(0))
    arriving = segments if members.place else []
    leaving = segments if members.place < members.number - 1 else []
    later = [nothing, *leaving] if arriving else leaving
    for incoming, outgoing in zip_longest(arriving, later, fillvalue=nothing):
        yield from members.overlap(members.place + 1, outgoing, members.place - 1, incoming)


def binomial(members: Members, message: Message) -> Iterator[Step]:
    """Let each member with the message send it to one without: doubled in each round [CHPG]."""
    if members.place:
        yield from members.receive(binomial_by_lowest(members.place, members.number), message)
    for child in reversed(children(members)):
        yield from members.send(child, message)


SHORT = 12288
FEW = 8
"""Limits in bytes and in ranks: below either, whole messages are sent rather than parts [TRG]."""


def by_size(members: Members, message: Message) -> Iterator[Step]:
    """Use a binomial tree for short messages or few ranks, else a scatter and a ring [TRG]."""
    nbytes = message.elements * message.datatype.itemsize
    whole = nbytes < SHORT or members.number < FEW
    return (binomial if whole else scatter_ring)(members, message)


def scatter_ring(members: Members, message: Message) -> Iterator[Step]:
    """Send a part to each by a binomial tree, then all parts around a ring [CHPG]."""
    blocks = shares(range(message.elements), members.number)
    yield from scatter(members, message, blocks)
    yield from gather_around(members, message, blocks, members.place)


def children(members: Members) -> list[int]:
    """Return the places that a member sends to in a binomial tree whose subtrees are consecutive.

    Those of the smallest subtrees come first.
    """
    place, number = members.place, members.number
    below = (place & -place) if place else number
    return [place + step for step in powers_below(below) if place + step < number]


def scatter(members: Members, message: Message, blocks: Sequence[range]) -> Iterator[Step]:
    """Send each member its block from the first one, with those of the subtree below it."""

    def subtree(place: int) -> Message:
        return part(message, span(blocks, place, place + (place & -place)))

    if members.place:
        above = binomial_by_lowest(members.place, members.number)
        yield from members.receive(above, subtree(members.place))
    for child in reversed(children(members)):
        yield from members.send(child, subtree(child))


def gather_around(
    members: Members, message: Message, blocks: Sequence[range], mine: int
) -> Iterator[Step]:
    """Send all blocks to all members: each passes on the block it received last, first ``mine``.

    The member before has the block before.
    """
    number, (after, before) = members.number, members.around(1)
    for step in range(number - 1):
        outgoing, incoming = (blocks[(mine - step - behind) % number] for behind in (0, 1))
        yield from members.exchange(after, part(message, outgoing), before, part(message, incoming))
