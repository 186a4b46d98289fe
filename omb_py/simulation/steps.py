"""The plan of a benchmark on a rank, as operations: its calls of two ranks and additions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

from omb_py.core.calls import Call, Message, Slot, Step, Window
from omb_py.core.errors import UnsupportedError
from omb_py.simulation.program import Add, Operation, Receive, Send, Wait

MODES = ("", "s", "b", "r")
"""Prefixes of the word send for a mode. All are simulated as the standard one."""

SENDS = frozenset(f"{mode}send" for mode in MODES)
BEGUN_SENDS = frozenset(f"i{name}" for name in SENDS)


def operations(steps: Iterable[Step], rank: int) -> Iterator[Operation]:
    """Return the operations of a rank for some steps, made as they are needed.

    A rank's message to itself is a copy, which costs nothing. Raises `UnsupportedError` for calls
    that are no messages between two ranks.
    """
    return _Steps(rank).operations(steps)


def nbytes_of(message: Message) -> int:
    """Return the bytes of a message that travel."""
    return message.layout.transmitted(message.elements) * message.datatype.itemsize


class _Steps:
    """The requests of a rank, from the calls that begin them to those that wait for them."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._numbers = count()
        self._begun: dict[Slot, dict[int, int]] = {}

    def operations(self, steps: Iterable[Step]) -> Iterator[Operation]:
        for step in steps:
            if isinstance(step, Window):
                yield from self._window(step)
            elif isinstance(step, Call):
                yield from self._call(step)
            else:
                raise UnsupportedError(f"{step.name} is not simulated, only messages of two ranks")

    def _window(self, window: Window) -> Iterator[Operation]:
        groups = []
        for calls in window.groups:
            started = [self._started(call, next(self._numbers)) for call in calls]
            yield from started
            groups.append(tuple(one.request for one in started if one.request is not None))
        for group in reversed(groups):
            yield Wait(group)

    def _call(self, call: Call) -> Iterator[Operation]:
        name = call.function
        if name in SENDS or name == "recv":
            if call.peer != self._rank:
                yield self._started(call, None)
        elif name in BEGUN_SENDS or name == "irecv":
            assert call.slot is not None
            if call.peer != self._rank:
                number = next(self._numbers)
                self._begun.setdefault(call.slot, {})[call.index] = number
                yield self._started(call, number)
        elif name == "sendrecv":
            yield from self._exchange(call)
        elif name in ("wait", "waitall"):
            assert call.slot is not None
            begun = self._begun.get(call.slot, {})
            indices = list(begun) if name == "waitall" else [call.index]
            requests = tuple(begun.pop(index) for index in indices if index in begun)
            if requests:
                yield Wait(requests)
        elif name == "reduce_local":
            yield Add(nbytes_of(call.messages[-1]))
        else:
            raise UnsupportedError(
                f"MPI_{name.capitalize()} is not simulated, only messages of two ranks"
            )

    def _exchange(self, call: Call) -> Iterator[Operation]:
        to, sent_tag, source, received_tag = call.values
        if to == source == self._rank:
            return
        receive, send = next(self._numbers), next(self._numbers)
        yield Receive(source, receive, received_tag)
        yield Send(to, nbytes_of(call.messages[0]), send, sent_tag)
        yield Wait((receive, send))

    def _started(self, call: Call, request: int | None) -> Send | Receive:
        assert call.peer is not None
        if call.function.endswith("send"):
            return Send(call.peer, nbytes_of(call.messages[0]), request, call.tag)
        return Receive(call.peer, request, call.tag)
