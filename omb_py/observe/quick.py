"""Quicker forms of the methods that programs call most, with little around the call itself.

They do what the general forms do where neither sites nor a probe are asked for; calls that need
more (a status to be filled in, a source that is not known) are given to the general form. What
they have in common is written out in each, because a function call costs a tenth of a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from omb_py.observe.collective_calls import bytes_of
from omb_py.observe.message_sizes import COLLECTIVES, UNKNOWN, spec_bytes
from omb_py.observe.operations import Operation, complete
from omb_py.observe.recorder import PythonRecorder
from omb_py.observe.wrapping import Method, Observed, number_of
from omb_py.records.layout import NOBODY, Kind

CALL = int(Kind.CALL)
ANY_SOURCE, ANY_TAG, PROC_NULL = MPI.ANY_SOURCE, MPI.ANY_TAG, MPI.PROC_NULL

Form = Callable[[Method, PythonRecorder, Observed], Observed]


def message_tally(
    recorder: PythonRecorder, number: int, comm: Any, peer: int, buf: Any
) -> tuple[list[int], int]:
    """The tally of a message that is met first, and its bytes; remembers what was found out."""
    nbytes = 0 if peer == PROC_NULL else spec_bytes(buf)
    peer = peer if peer >= 0 else NOBODY
    return recorder.tally((number, number_of(comm, recorder), peer, nbytes, 0)), nbytes


def send(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """A blocking send."""
    number, original, clock = recorder.name(method.routine), method.original, method.clock
    tallies, timeline, message = recorder.tallies, recorder.timeline, recorder.message_event

    def observed(self: Any, buf: Any, dest: int, tag: int = 0) -> None:
        began = clock()
        original(self, buf, dest, tag)
        ended = clock()
        try:
            nbytes = buf.nbytes
            tally = tallies[number, self._number, dest, nbytes, 0]
        except (KeyError, AttributeError, TypeError):
            tally, nbytes = message_tally(recorder, number, self, dest, buf)
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if spent < tally[2]:
            tally[2] = spent
        if spent > tally[3]:
            tally[3] = spent
        if timeline:
            message(False, number, number_of(self, recorder), dest, tag, began, ended, nbytes)

    return observed


def receive(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """A blocking receive."""
    number, original, clock = recorder.name(method.routine), method.original, method.clock
    tallies, timeline, message = recorder.tallies, recorder.timeline, recorder.message_event

    def observed(
        self: Any, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Any = None
    ) -> None:
        if status is not None or (timeline and (source == ANY_SOURCE or tag == ANY_TAG)):
            slow(self, buf, source, tag, status)
            return
        began = clock()
        original(self, buf, source, tag)
        ended = clock()
        try:
            nbytes = buf.nbytes
            tally = tallies[number, self._number, source, nbytes, 0]
        except (KeyError, AttributeError, TypeError):
            tally, nbytes = message_tally(recorder, number, self, source, buf)
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if spent < tally[2]:
            tally[2] = spent
        if spent > tally[3]:
            tally[3] = spent
        if timeline:
            message(True, number, number_of(self, recorder), source, tag, began, ended, nbytes)

    return observed


def nonblocking_send(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """A send that a request completes."""
    number, original, clock = recorder.name(method.routine), method.original, method.clock
    tallies, timeline, adopt = recorder.tallies, recorder.timeline, method.adopt

    def observed(self: Any, buf: Any, dest: int, tag: int = 0) -> Any:
        began = clock()
        request = original(self, buf, dest, tag)
        ended = clock()
        try:
            nbytes = buf.nbytes
            tally = tallies[number, self._number, dest, nbytes, 0]
        except (KeyError, AttributeError, TypeError):
            tally, nbytes = message_tally(recorder, number, self, dest, buf)
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if spent < tally[2]:
            tally[2] = spent
        if spent > tally[3]:
            tally[3] = spent
        request = adopt(request)
        if timeline:
            comm = number_of(self, recorder)
            begin(recorder, number, comm, dest, tag, nbytes, began, ended, False, request)
        return request

    return observed


def nonblocking_receive(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """A receive that a request completes."""
    number, original, clock = recorder.name(method.routine), method.original, method.clock
    tallies, timeline, adopt = recorder.tallies, recorder.timeline, method.adopt

    def observed(self: Any, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Any:
        if timeline and (source == ANY_SOURCE or tag == ANY_TAG):
            return slow(self, buf, source, tag)
        began = clock()
        request = original(self, buf, source, tag)
        ended = clock()
        try:
            nbytes = buf.nbytes
            tally = tallies[number, self._number, source, nbytes, 0]
        except (KeyError, AttributeError, TypeError):
            tally, nbytes = message_tally(recorder, number, self, source, buf)
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if spent < tally[2]:
            tally[2] = spent
        if spent > tally[3]:
            tally[3] = spent
        request = adopt(request)
        if timeline:
            comm = number_of(self, recorder)
            begin(recorder, number, comm, source, tag, nbytes, began, ended, True, request)
        return request

    return observed


def begin(
    recorder: PythonRecorder,
    number: int,
    communicator: int,
    peer: int,
    tag: int,
    nbytes: int,
    began: int,
    ended: int,
    receives: bool,
    request: Any,
) -> None:
    """Keep the event of a non-blocking message, and what its request stands for."""
    world = recorder.world_rank(communicator, peer)
    sequence = recorder.message(receives, communicator, world, tag)
    one = recorder.request()
    request._operations = [
        Operation(number, communicator, began, one, world, tag, nbytes, sequence, receives)
    ]
    told = 0 if receives else sequence
    recorder.event(CALL, number, communicator, world, tag, 0, began, ended, nbytes, one, told)


def wait(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """Wait of a request, or Waitall where it is given nothing but requests."""
    number, original, clock = recorder.name(method.routine), method.original, method.clock
    key, count, timeline = (number, 0, NOBODY, UNKNOWN, 0), recorder.count, recorder.timeline

    def observed(self: Any, status: Any = None) -> Any:
        if timeline:
            operations = getattr(self, "_operations", None)
            if operations and operations[0].wildcard:
                return slow(self, status)
        began = clock()
        result = original(self, status)
        ended = clock()
        count(key, ended - began)
        if timeline:
            recorder.event(CALL, number, 0, NOBODY, 0, 0, began, ended, UNKNOWN, 0, 0)
            if operations:
                complete(recorder, operations, status, ended)
        return result

    return observed


def barrier(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """A barrier."""
    number, original, clock = recorder.name(method.routine), method.original, method.clock
    tallies, timeline, event = recorder.tallies, recorder.timeline, recorder.collective_event

    def observed(self: Any) -> None:
        began = clock()
        original(self)
        ended = clock()
        try:
            tally = tallies[number, self._number, NOBODY, 0, 0]
        except (KeyError, AttributeError):
            tally = recorder.tally((number, number_of(self, recorder), NOBODY, 0, 0))
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if spent < tally[2]:
            tally[2] = spent
        if spent > tally[3]:
            tally[3] = spent
        if timeline:
            event(number, number_of(self, recorder), NOBODY, began, ended, 0)

    return observed


def bcast(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """A broadcast."""
    number, original, clock = recorder.name(method.routine), method.original, method.clock
    tallies, timeline, event = recorder.tallies, recorder.timeline, recorder.collective_event

    def observed(self: Any, buf: Any, root: int = 0) -> None:
        began = clock()
        original(self, buf, root)
        ended = clock()
        try:
            nbytes = buf.nbytes
            tally = tallies[number, self._number, root, nbytes, 0]
        except (KeyError, AttributeError, TypeError):
            nbytes = bytes_of(COLLECTIVES["bcast"], self, {"buf": buf})
            peer = root if root >= 0 else NOBODY
            tally = recorder.tally((number, number_of(self, recorder), peer, nbytes, 0))
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if spent < tally[2]:
            tally[2] = spent
        if spent > tally[3]:
            tally[3] = spent
        if timeline:
            event(number, number_of(self, recorder), root, began, ended, nbytes)

    return observed


def reduction(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """An allreduce, scan or exscan."""
    number, original, clock = recorder.name(method.routine), method.original, method.clock
    tallies, timeline, event = recorder.tallies, recorder.timeline, recorder.collective_event

    def observed(self: Any, sendbuf: Any, recvbuf: Any, op: Any = MPI.SUM) -> None:
        began = clock()
        original(self, sendbuf, recvbuf, op)
        ended = clock()
        try:
            nbytes = sendbuf.nbytes
            tally = tallies[number, self._number, NOBODY, nbytes, 0]
        except (KeyError, AttributeError, TypeError):
            given = {"sendbuf": sendbuf, "recvbuf": recvbuf}
            nbytes = bytes_of(COLLECTIVES["allreduce"], self, given)
            tally = recorder.tally((number, number_of(self, recorder), NOBODY, nbytes, 0))
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if spent < tally[2]:
            tally[2] = spent
        if spent > tally[3]:
            tally[3] = spent
        if timeline:
            event(number, number_of(self, recorder), NOBODY, began, ended, nbytes)

    return observed


FORMS: dict[str, Form] = {
    **dict.fromkeys(("Send", "Ssend", "Bsend", "Rsend"), send),
    **dict.fromkeys(("Isend", "Issend", "Ibsend", "Irsend"), nonblocking_send),
    "Recv": receive,
    "Irecv": nonblocking_receive,
    "Wait": wait,
    "Barrier": barrier,
    "Bcast": bcast,
    **dict.fromkeys(("Allreduce", "Scan", "Exscan"), reduction),
}
"""Methods of communicators and requests that have a quicker form."""
