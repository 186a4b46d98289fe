"""Building blocks of own algorithms: ordered ranks, parts of messages, calls between two, sums.

Additions are MPI's on the host, a kernel's on a device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from omb_py.core.calls import Call, Message, Step, Window
from omb_py.core.dataclass import dataclass, replace

TAG = 1
"""One for all messages: those between two ranks stay in order."""


@dataclass(frozen=True)
class Members:
    """Ranks that do something together, in an order, and the place of this one among them.

    ``ranks`` are numbers in the communicator, ``nodes`` the node of each if that is known. What has
    no elements is not sent; all members know the lengths of all messages.
    """

    ranks: tuple[int, ...]
    place: int
    nodes: tuple[int, ...] = ()

    @property
    def number(self) -> int:
        return len(self.ranks)

    def around(self, distance: int) -> tuple[int, int]:
        """Return the places ``distance`` after this one and ``distance`` before it, in a ring."""
        return (self.place + distance) % self.number, (self.place - distance) % self.number

    def chosen(self, places: Sequence[int]) -> Members:
        """Return the members at some places, which must include this one's."""
        return replace(
            self,
            ranks=tuple(self.ranks[place] for place in places),
            place=places.index(self.place),
            nodes=tuple(self.nodes[place] for place in places) if self.nodes else (),
        )

    def send(self, to: int, message: Message) -> Iterator[Step]:
        """Send a message to the member at a place."""
        if message.elements:
            yield Call("send", (message,), self.ranks[to], TAG)

    def receive(self, source: int, message: Message) -> Iterator[Step]:
        """Receive a message from the member at a place."""
        if message.elements:
            yield Call("recv", (message,), self.ranks[source], TAG)

    def exchange(
        self, to: int, outgoing: Message, source: int, incoming: Message
    ) -> Iterator[Step]:
        """Send and receive at the same time; a place counts only if there is a message."""
        if outgoing.elements and incoming.elements:
            values = (self.ranks[to], TAG, self.ranks[source], TAG)
            yield Call("sendrecv", (outgoing, incoming), values=values)
        else:
            yield from self.send(to, outgoing)
            yield from self.receive(source, incoming)

    def overlap(self, to: int, outgoing: Message, source: int, incoming: Message) -> Iterator[Step]:
        """Send and receive as `exchange`, by isend and irecv, which have persistent forms."""
        if outgoing.elements and incoming.elements:
            receive = Call("irecv", (incoming,), self.ranks[source], TAG)
            yield Window(((receive, Call("isend", (outgoing,), self.ranks[to], TAG)),))
        else:
            yield from self.exchange(to, outgoing, source, incoming)


def part(message: Message, elements: range) -> Message:
    """Return some elements of a message of one block, at their place."""
    size = message.datatype.itemsize
    memory = message.memory.slice(elements.start * size, len(elements) * size)
    return replace(message, memory=memory, counts=(len(elements),))


@lru_cache(maxsize=8)  # of all ranks of a simulation
def shares(elements: range, number: int) -> tuple[range, ...]:
    """Divide elements into a ``number`` of parts in a row; the first ones may be longer."""
    minimum, longer = divmod(len(elements), number)
    starts = [elements.start + minimum * i + min(i, longer) for i in range(number + 1)]
    return tuple(map(range, starts, starts[1:]))


def pieces(elements: int, longest: int) -> list[range]:
    """Divide so many elements into pieces of ``longest``; the last one may be shorter."""
    every = range(elements)
    return [every[start : start + longest] for start in every[::longest]]


def span(blocks: Sequence[range], first: int, end: int) -> range:
    """Return the elements of neighbouring blocks from ``first`` to before ``end``."""
    if first >= end:
        return range(0)
    return range(blocks[first].start, blocks[min(end, len(blocks)) - 1].stop)


@dataclass(frozen=True)
class Sum:
    """Elements of a vector that is being added up on this rank.

    ``given`` is the rank's contribution, None if that is in ``result``. Data is copied only when
    needed: before the first addition (``begun``), a contribution arrives in ``result`` itself and
    ``given`` is added to it; later ones arrive in ``scratch``.
    """

    elements: range
    given: Message | None
    result: Message
    scratch: Message
    begun: bool = False

    @property
    def grown(self) -> Sum:
        return replace(self, begun=True)

    @property
    def total(self) -> Message:
        """The part of the result that these elements are added up in."""
        return part(self.result, self.elements)

    @property
    def current(self) -> Message:
        return self.total if self.begun or self.given is None else part(self.given, self.elements)

    @property
    def arrival(self) -> Message:
        """The memory that receives another rank's elements: scratch once the result is in use."""
        if self.begun or self.given is None:
            return part(self.scratch, range(len(self.elements)))
        return self.total

    def within(self, elements: range) -> Sum:
        return replace(self, elements=elements)

    def addition(self) -> Iterator[Step]:
        """Add what has arrived, after which the sum has `grown`."""
        if self.begun or self.given is None:
            yield from added(self.total, self.arrival)
        else:
            yield from added(self.total, self.current)

    def contribution(self, members: Members, source: int) -> Iterator[Step]:
        """Receive what a member contributes, and add it."""
        yield from members.receive(source, self.arrival)
        yield from self.addition()

    def exchange(self, members: Members, partner: int) -> Iterator[Step]:
        """Give a member the sum so far for its own, and add that."""
        yield from members.exchange(partner, self.current, partner, self.arrival)
        yield from self.addition()


def added(total: Message, other: Message) -> Iterator[Step]:
    """Add the elements of ``other`` to those of ``total``; a device does so by itself.

    Raises `UnsupportedError` if the device lacks the element type.
    """
    if total.elements == 0:
        return
    on_device = total.memory.add(other.memory)
    if on_device is None:
        yield Call("reduce_local", (other, total), op="sum")
    else:
        yield from on_device
