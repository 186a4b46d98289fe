"""Ways to send bytes from one rank to another without MPI, and the one binding for all of them.

A transport connects, sends, receives, waits and closes. A benchmark's messages between two ranks
become these calls; collectives are made of them by `omb_py.benchmarks.algorithms`.
"""

from __future__ import annotations

import hmac
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from omb_py.bindings import Binding, BoundCall
from omb_py.core.calls import Call, Message, Step, Window
from omb_py.core.errors import UnsupportedError
from omb_py.core.job import Job
from omb_py.core.job.by_mpi import job_of
from omb_py.core.memory import Local, Memory
from omb_py.core.options import Options

KEY_BYTES = 32
"""Bytes of the secret by which the ranks of a job know each other."""


def mark(key: bytes, nonce: bytes, sender: int, receiver: int) -> bytes:
    """Return a proof, from one rank to another, that only a rank with the job's key can make."""
    return hmac.digest(key, b"%s %d %d" % (nonce, sender, receiver), "sha256")


class Connections(ABC):
    """Connections of this rank to all others.

    Messages from one rank to another arrive in the order in which they were sent; both sides know
    their lengths. ``serialization`` is the form of a message between the two processes.
    """

    serialization: str

    def of_message(self, message: Message, binding: str) -> Any:
        """Return a message's form in a transport; raise `UnsupportedError` for gaps."""
        if not message.layout.contiguous:
            raise UnsupportedError(f"binding {binding} sends contiguous data: leave out -D")
        return self.prepared(message.memory, binding)

    def prepared(self, memory: Memory, binding: str) -> Any:
        """Return the ``data`` of sends and receives: a view of the bytes.

        Raises `UnsupportedError` if they cannot be reached.
        """
        if memory.on_device:
            raise UnsupportedError(
                f"binding {binding} sends memory of the host: add --staging, or use --buffer numpy"
            )
        return memory.view()

    def close(self) -> None:  # noqa: B027 - some have nothing to close
        """Close the connections; no other rank sends any more."""

    def describe(self) -> dict[str, str]:
        """Return further facts for a reader of the results."""
        return {}


class Transport(Connections):
    """Connections whose sends and receives block, or are started and waited for."""

    @abstractmethod
    def sends(self, peer: int, messages: Sequence[Any]) -> BoundCall:
        """Return a call that sends what `prepared` gave, in order, until it may be changed."""

    @abstractmethod
    def receives(self, peer: int, messages: Sequence[Any]) -> BoundCall:
        """Return a call that receives the next messages, which have the lengths of these."""

    @abstractmethod
    def start_send(self, peer: int, data: Any) -> Any:
        """Begin to send what `prepared` gave; return what `wait` takes."""

    @abstractmethod
    def start_receive(self, peer: int, data: Any) -> Any:
        """Begin to receive into what `prepared` gave; return what `wait` takes."""

    @abstractmethod
    def wait(self, started: Sequence[Any]) -> None:
        """Return when all of these sends and receives are done."""

    def exchange(self, to: int, outgoing: Any, source: int, incoming: Any) -> BoundCall:
        """Return a call that sends and receives at once."""
        receive = partial(self.start_receive, source, incoming)
        send = partial(self.start_send, to, outgoing)
        return partial(_start_and_wait, [receive, send], self.wait)


class TransportBinding(Binding):
    """Messages between two ranks by a `Transport`, which `connect` makes."""

    needs_mpi = False
    point_to_point = True
    serves_threads = False
    own_options: tuple[str, ...] = ("interface",)
    connect: Callable[[Job, Options], Transport]

    def __init__(self, comm: Any, options: Options) -> None:
        super().__init__(comm, options)
        job = job_of(comm)
        self.rank = job.rank
        self.transport = type(self).connect(job, options)

    def bind(self, step: Step) -> BoundCall:
        if isinstance(step, Local):
            return step.run
        if isinstance(step, Window):
            calls = [call for group in step.groups for call in group]
            if len({(call.function, call.peer) for call in calls}) == 1:
                return self._in_order(calls)  # nothing else can be under way meanwhile
            return partial(_start_and_wait, list(map(self._start, calls)), self.transport.wait)
        function = step.function
        if function in ("send", "recv") and step.slot is None:
            return self._in_order([step])
        if function in ("isend", "irecv") and step.slot is not None:
            return self.kept(step, self._start(step))
        if function in ("wait", "waitall") and step.slot is not None:
            held, every = self.held(step), function == "waitall"
            return partial(_wait, self.transport.wait, held, step.index, every)
        local = self.local_step(step, self.rank)
        if local is not None:
            return local
        if function == "sendrecv":
            return self._exchange(step)
        raise UnsupportedError(self.lacks(function))

    def describe(self) -> dict[str, str]:
        return {"serialization": self.transport.serialization} | self.transport.describe()

    def close(self) -> None:
        self.transport.close()

    def _start(self, call: Call) -> BoundCall:
        """Return a callable that starts a send or receive."""
        starts = {"isend": self.transport.start_send, "irecv": self.transport.start_receive}
        if call.function not in starts:
            raise UnsupportedError(self.lacks(call.function))
        return partial(starts[call.function], _peer(call), self._view(*call.messages))

    def _in_order(self, calls: Sequence[Call]) -> BoundCall:
        """Return a call that makes all of these sends to one rank, or receives from one."""
        function = calls[0].function
        if function not in ("send", "isend", "recv", "irecv"):
            raise UnsupportedError(self.lacks(function))
        messages = [self._view(*call.messages) for call in calls]
        move = self.transport.sends if function.endswith("send") else self.transport.receives
        return move(_peer(calls[0]), messages)

    def _exchange(self, call: Call) -> BoundCall:
        to, _, source, _ = call.values
        outgoing, incoming = map(self._view, call.messages)
        return self.transport.exchange(to, outgoing, source, incoming)

    def _view(self, message: Message) -> Any:
        return self.transport.of_message(message, self.name)


def _peer(call: Call) -> int:
    assert call.peer is not None
    return call.peer


def _start_and_wait(starts: Sequence[BoundCall], wait: Callable[[Sequence[Any]], None]) -> None:
    wait([start() for start in starts])


def _wait(wait: Callable[[Sequence[Any]], None], held: list[Any], index: int, every: bool) -> None:
    wait(held if every else held[index : index + 1])
