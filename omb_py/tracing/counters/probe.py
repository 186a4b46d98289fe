"""Looks at what the library sends during a few calls of each collective, to see its algorithm."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from omb_py.tracing.counters.messages import MESSAGES, Counts, rows
from omb_py.tracing.records.layout import NOBODY
from omb_py.tracing.records.routines import COLLECTIVES, PICKLED, base, nonblocking

if TYPE_CHECKING:
    from mpi4py import MPI

LOOKS = 3
"""Calls of a kind that are looked at."""

MAX_SIZES = 64
"""Message sizes of one routine on one communicator that are looked at, the first ones."""


@dataclass
class Kind:
    """Calls of one routine with one size on one communicator, and what was sent in some."""

    nbytes: int
    calls: int = 0
    looks: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Calls:
    """Calls of one routine on one communicator: how many in all, and each kind of them."""

    calls: int = 0
    kinds: dict[int, Kind] = field(default_factory=dict)


@dataclass
class Communicator:
    """A communicator by its ranks in MPI_COMM_WORLD; ``instance`` tells those of the same apart."""

    members: list[int]
    instance: int
    routines: dict[str, Calls] = field(default_factory=dict)


class Probe:
    """Told of blocking collective calls before and after; counts what the first of a kind send.

    All ranks of a communicator make the same calls of a routine in the same order, so that all look
    at the same ones, as long as they have the same sizes. Nothing is sent for that.
    """

    def __init__(self, take: Callable[[], Counts | None]) -> None:
        """``take`` gives what was sent since it was last called, None where that is not known."""
        self._take = take
        self._communicators: dict[int, Communicator | None] = {}
        self._gone: list[Communicator] = []
        self._looking: tuple[Kind, int, int, int] | None = None
        self._on = False

    def begin(self, world: MPI.Intracomm, handle_of: Callable[[Any], int]) -> None:
        """From now on calls are counted; before, nothing happens.

        ``handle_of`` gives the number by which MPI knows a communicator.
        """
        self._handle_of = handle_of
        self._world = world.Get_group()
        self._on = True

    def end(self) -> None:
        """From now on nothing happens."""
        self._on = False

    def before(self, routine: str, comm: MPI.Comm, nbytes: int, root: int = NOBODY) -> None:
        """A call of this routine (MPI's name) begins, with as many bytes as a record has for it.

        ``root`` is the root's rank in ``comm``, where there is one and it is known.
        """
        if not self._on:
            return
        handle = self._handle_of(comm)
        kind = self._counted(handle, routine, comm, nbytes)
        if kind is None or kind.calls > LOOKS or self._looking is not None:
            return
        communicator = self._communicators[handle]
        assert communicator is not None
        number = communicator.routines[routine].calls
        self._looking = (kind, threading.get_ident(), number, root)
        self._take()

    def _counted(self, handle: int, routine: str, comm: MPI.Comm, nbytes: int) -> Kind | None:
        """The kind of a call, which is counted; None for calls that nothing can be told of."""
        if handle not in self._communicators:
            self._communicators[handle] = self._met(comm)
        communicator = self._communicators[handle]
        if communicator is None:
            return None
        calls = communicator.routines.get(routine)
        if calls is None:
            calls = communicator.routines[routine] = Calls()
        kind = calls.kinds.get(nbytes)
        if kind is None:
            if len(calls.kinds) >= MAX_SIZES or not suits(routine):
                return None
            if self._members(comm) != communicator.members:  # another one with an old handle
                self._forget(handle)
                return self._counted(handle, routine, comm, nbytes)
            kind = calls.kinds[nbytes] = Kind(nbytes)
        calls.calls += 1
        kind.calls += 1
        return kind

    def after(self, routine: str, comm: MPI.Comm, nbytes: int) -> None:
        """The call that `before` announced has returned."""
        looking = self._looking
        if looking is None or looking[1] != threading.get_ident():
            return
        counts = self._take()
        self._looking = None
        if counts is not None:
            kind, _, number, root = looking
            sent = rows(counts.get(MESSAGES, {}))
            kind.looks.append({"number": number, "root": root, "sent": sent})

    def forget(self, comm: MPI.Comm) -> None:
        """A communicator is about to be freed: its handle may become another's."""
        if self._on:
            self._forget(self._handle_of(comm))

    def _forget(self, handle: int) -> None:
        gone = self._communicators.pop(handle, None)
        if gone is not None:
            self._gone.append(gone)

    def rows(self) -> list[dict[str, Any]]:
        """All kinds of calls, for a file."""
        return [
            {
                "routine": base(routine),
                "members": communicator.members,
                "instance": communicator.instance,
                "nbytes": kind.nbytes,
                "calls": kind.calls,
                "looks": kind.looks,
            }
            for communicator in self._all()
            for routine, calls in communicator.routines.items()
            for kind in calls.kinds.values()
        ]

    def _all(self) -> Iterator[Communicator]:
        yield from self._gone
        yield from (one for one in self._communicators.values() if one is not None)

    def _met(self, comm: MPI.Comm) -> Communicator | None:
        """A communicator that is new here; None where nothing can be told of its calls."""
        if comm.Is_inter() or comm.Get_size() < 2:
            return None
        members = self._members(comm)
        return Communicator(members, sum(one.members == members for one in self._all()))

    def _members(self, comm: MPI.Comm) -> list[int]:
        group = comm.Get_group()
        members = list(group.Translate_ranks(None, self._world))
        group.Free()
        return members


def suits(routine: str) -> bool:
    """Whether a routine is one blocking collective call that sends all its messages itself."""
    return (
        not routine.endswith(PICKLED) and not nonblocking(routine) and base(routine) in COLLECTIVES
    )
