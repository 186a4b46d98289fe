"""The operations of a rank: messages, waits and additions.

A program gives the operations of each rank, made as they are needed, so that the memory of a
simulation does not grow with the length of the program. Bytes may be fractions, as shares are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from omb_py.core.dataclass import dataclass


@dataclass(frozen=True)
class Send:
    """Start a message of ``nbytes`` to rank ``peer``.

    Without a ``request`` the rank goes on once the message has left, or arrived where it is not
    sent eagerly; with one, at once, and a `Wait` for the number waits for the same.
    """

    peer: int
    nbytes: float
    request: int | None = None
    tag: int = 0


@dataclass(frozen=True)
class Receive:
    """Take the next message from rank ``peer`` with this tag; ``request`` is as of `Send`."""

    peer: int
    request: int | None = None
    tag: int = 0


@dataclass(frozen=True)
class Wait:
    """Wait until all of these requests are complete. Their numbers may be used again."""

    requests: tuple[int, ...]


@dataclass(frozen=True)
class Add:
    """The addition of ``nbytes`` bytes of an arrived message to others, as in reductions."""

    nbytes: float


@dataclass(frozen=True)
class StartTiming:
    """The beginning of the timed part on this rank: earlier operations are warm-up."""


Operation: TypeAlias = Send | Receive | Wait | Add | StartTiming


@dataclass(frozen=True)
class Program:
    """The operations of each of ``ranks`` ranks, from its number.

    If ``timed``, each rank has a `StartTiming`, before which nothing counts.
    """

    ranks: int
    operations: Callable[[int], Iterator[Operation]]
    name: str = ""
    timed: bool = False
