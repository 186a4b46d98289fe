"""What a benchmark says and a binding understands: MPI calls, described but not yet made.

Nothing here knows MPI or an array library. Names of functions are MPI's, without the prefix and
in lower case: ``send``, ``allgatherv``, ``reduce_scatter_block``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from typing import Literal, TypeAlias

from omb_py.buffers import Local, Memory
from omb_py.datatypes import Datatype
from omb_py.layout import CONTIGUOUS, Layout


class InPlace(Enum):
    """MPI_IN_PLACE as an operand."""

    IN_PLACE = "in place"


IN_PLACE = InPlace.IN_PLACE

Form: TypeAlias = Literal["", "v", "w"]
"""How MPI is told of several blocks: one count for all, counts and displacements, or types too."""


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
        """First element of each block."""
        return tuple(accumulate(self.counts[:-1], initial=0))

    @property
    def elements(self) -> int:
        """Elements of all blocks together."""
        return sum(self.counts)

    def blocks(self) -> tuple[Memory, ...]:
        """The memory of each block."""
        size = self.datatype.itemsize
        return tuple(
            self.memory.slice(start * size, count * size)
            for start, count in zip(self.displacements, self.counts, strict=True)
        )


Operand: TypeAlias = Message | InPlace | None
"""A message, MPI_IN_PLACE, or None where a rank has no part on that side."""


@dataclass(frozen=True)
class Call:
    """One MPI call: its operands in MPI's order, then what else its function takes.

    ``counts`` are the elements that each rank receives (``reduce_scatter`` alone); ``op`` is an
    operation's MPI name in lower case.
    """

    function: str
    operands: tuple[Operand, ...] = ()
    peer: int | None = None
    tag: int = 0
    op: str | None = None
    root: int | None = None
    counts: tuple[int, ...] | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The operands that are messages."""
        return tuple(operand for operand in self.operands if isinstance(operand, Message))

    def written(self, rank: int) -> Message | None:
        """The message in which data arrives at ``rank``; None when none does."""
        last = self.operands[-1] if self.operands else None
        sends = self.function.endswith("send") or (len(self.operands) == 1 and self.root == rank)
        return last if isinstance(last, Message) and not sends else None


@dataclass(frozen=True)
class Window:
    """Non-blocking calls, started in the order given, then waited for.

    Each group is completed by one ``Waitall``, the last group first.
    """

    groups: tuple[tuple[Call, ...], ...]


Step: TypeAlias = Call | Window | Local
