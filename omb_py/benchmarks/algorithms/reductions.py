"""A rank's part of a sum, and its additions: MPI's on the host, a kernel's on a device."""

from __future__ import annotations

from collections.abc import Iterator

from omb_py.benchmarks.algorithms.members import Members, part
from omb_py.core.calls import Call, Message, Step
from omb_py.core.dataclass import dataclass, replace


@dataclass(frozen=True)
class Sum:
    """Elements of a vector that is being added up on this rank.

    ``given`` is the rank's contribution, None if that is in ``result``. Data is copied only when
    needed: before the first addition (``begun``), a contribution arrives in ``result`` itself and
    ``given`` is added to it; later ones arrive in ``scratch``, from element ``slot`` on.
    """

    elements: range
    given: Message | None
    result: Message
    scratch: Message
    slot: int = 0
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
            return part(self.scratch, range(self.slot, self.slot + len(self.elements)))
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
