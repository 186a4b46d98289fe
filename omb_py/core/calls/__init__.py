"""Descriptions of MPI calls: benchmarks write them and bindings execute them.

This package imports neither MPI nor an array library. Names of functions are MPI's, without the
prefix and in lower case: ``send``, ``allgatherv``, ``reduce_scatter_block``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import accumulate
from typing import Any, Literal, TypeAlias

from omb_py.core.dataclass import dataclass, replace
from omb_py.core.datatypes import CONTIGUOUS, Datatype, Layout
from omb_py.core.errors import BenchmarkError
from omb_py.core.memory import Local, Memory


class InPlace(Enum):
    """The type of `IN_PLACE`, an operand for which MPI gets ``MPI_IN_PLACE``."""

    IN_PLACE = "in place"


IN_PLACE = InPlace.IN_PLACE

Form: TypeAlias = Literal["", "v", "w"]
"""Description of several blocks: one count for all, counts and displacements, or types too."""


@dataclass(frozen=True)
class Message:
    """One side of a call: blocks of elements, back to back in memory.

    ``counts`` has the elements of each block; a message to or from one rank has one block.
    """

    memory: Memory
    datatype: Datatype
    counts: tuple[int, ...]
    form: Form = ""
    layout: Layout = CONTIGUOUS

    @property
    def displacements(self) -> tuple[int, ...]:
        """The index of each block's first element, in elements from the start of the memory."""
        return tuple(accumulate(self.counts, initial=0))[:-1]

    @property
    def elements(self) -> int:
        return sum(self.counts)

    def blocks(self) -> tuple[Memory, ...]:
        size = self.datatype.itemsize
        return tuple(
            self.memory.slice(start * size, count * size)
            for start, count in zip(self.displacements, self.counts, strict=True)
        )


Operand: TypeAlias = Message | InPlace | None
"""A message, MPI_IN_PLACE, or None if a rank has no part on that side."""


@dataclass(frozen=True, eq=False)
class Slot:
    """Places where calls leave MPI objects (requests, a message, a communicator) for later
    calls."""

    count: int = 1


MOVES_OUT = frozenset({"put", "rput", "accumulate", "file_write_at", "file_write_at_all", "pack"})
"""Functions not named after send that only read the memory they are given."""


WITH_PEER = frozenset(
    "accumulate bsend get get_accumulate mprobe probe put recv rget rput rsend send ssend".split()
)
WITH_ROOT = frozenset("bcast gather gatherv reduce scatter scatterv".split())
"""Functions, with their non-blocking and persistent forms, that take a peer's rank, or a root's."""


@dataclass(frozen=True)
class Call:
    """One MPI call: its operands in MPI's order, then what else its function takes.

    ``on`` is the MPI object whose function it is, by default the binding's communicator. ``counts``
    are the elements that each rank receives (only in ``reduce_scatter``); ``op`` is an operation's
    MPI name in lower case; ``at`` is a displacement in bytes, in the target's window or in a file.
    ``values`` are further arguments in MPI's order, whole numbers or MPI objects; text is the name
    of one of MPI's constants. An object that the call makes goes to ``slot``, at ``index``; a call
    such as ``wait`` takes it from there.

    Raises `BenchmarkError` if MPI's function takes a peer or a root that is not given.
    """

    function: str
    operands: tuple[Operand, ...] = ()
    peer: int | None = None
    tag: int = 0
    op: str | None = None
    root: int | None = None
    counts: tuple[int, ...] | None = None
    on: Any = None
    at: int | None = None
    values: tuple[Any, ...] = ()
    slot: Slot | None = None
    index: int = 0

    def __post_init__(self) -> None:
        if self.values:
            return
        plain = self.function.removesuffix("_init")
        for given, name, functions in (
            (self.peer, "peer", WITH_PEER),
            (self.root, "root", WITH_ROOT),
        ):
            if given is None and (plain in functions or plain.removeprefix("i") in functions):
                raise BenchmarkError(
                    f"{self.function} needs a {name}: Call({self.function!r}, ..., {name}=RANK)"
                )

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(operand for operand in self.operands if isinstance(operand, Message))

    @property
    def further(self) -> tuple[Any, ...]:
        """The arguments after the operands, in MPI's order."""
        if self.values:
            return self.values
        return (self.root,) if self.peer is None else (self.peer, self.tag)

    def written(self, rank: int) -> Message | None:
        """Return the message in which data arrives at ``rank``; None when none does."""
        last = self.operands[-1] if self.operands else None
        name = self.function.removesuffix("_init")
        sends = name.endswith("send") or (len(self.operands) == 1 and self.root == rank)
        moves_out = sends or name in MOVES_OUT
        return last if isinstance(last, Message) and not moves_out else None


def parts_of_sendrecv(call: Call) -> tuple[Call, Call]:
    """Return the receive and the send that a ``sendrecv`` starts together."""
    (outgoing, incoming), (to, sent, source, received) = call.messages, call.values
    return Call("irecv", (incoming,), source, received), Call("isend", (outgoing,), to, sent)


@dataclass(frozen=True)
class Window:
    """Non-blocking calls, started in the order given, then waited for.

    Each group is completed by one ``Waitall``, the last group first.
    """

    groups: tuple[tuple[Call, ...], ...]


Step: TypeAlias = Call | Window | Local


def addressed(step: Step, ranks: Sequence[int]) -> Step:
    """Return the step with rank ``ranks[peer]`` in the place of each peer."""
    if isinstance(step, Window):
        return Window(tuple(tuple(to_rank(call, ranks) for call in group) for group in step.groups))
    return to_rank(step, ranks) if isinstance(step, Call) else step


def to_rank(call: Call, ranks: Sequence[int]) -> Call:
    """Return the call with rank ``ranks[peer]`` as its peer, if it has one."""
    return call if call.peer is None else replace(call, peer=ranks[call.peer])


@dataclass(frozen=True)
class Iteration:
    """One iteration of one rank, and what belongs to it outside the timed part.

    ``setup`` is done once, before the first iteration, ``teardown`` after the last; ``before`` and
    ``after`` in every iteration.
    """

    steps: tuple[Step, ...] = ()
    before: tuple[Step, ...] = ()
    after: tuple[Step, ...] = ()
    setup: tuple[Step, ...] = ()
    teardown: tuple[Step, ...] = ()

    @property
    def everything(self) -> tuple[Step, ...]:
        """All steps, in the order in which they are made."""
        return (*self.setup, *self.before, *self.steps, *self.after, *self.teardown)
