"""Sends and receives in their quicker forms: see `observe.quick`."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from omb_py.tracing.recorder.message_sizes import spec_bytes, together
from omb_py.tracing.recorder.operations import Operation
from omb_py.tracing.recorder.recorder import PythonRecorder
from omb_py.tracing.recorder.tallies import MET_FIRST, Known, Tally, keep, widen
from omb_py.tracing.recorder.wrapping import Method, Observed, number_of
from omb_py.tracing.records.layout import NOBODY, Kind

CALL, ARRIVED = int(Kind.CALL), int(Kind.ARRIVED)
ANY_SOURCE, ANY_TAG, PROC_NULL = MPI.ANY_SOURCE, MPI.ANY_TAG, MPI.PROC_NULL


def message_tally(
    recorder: PythonRecorder, known: Known, number: int, comm: Any, peer: int, buf: Any
) -> Tally:
    """The tally of a message that is met first, or whose bytes are not easy to tell."""
    nbytes = 0 if peer == PROC_NULL else spec_bytes(buf)
    communicator = number_of(comm, recorder)
    rank = peer if peer >= 0 else NOBODY
    tally = recorder.tallies.tally(number, communicator, rank, nbytes)
    return keep(known, tally, communicator, peer, buf)


def send(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """A blocking send."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock
    known, timeline, message = recorder.tallies.known(), recorder.timeline, recorder.message_event

    def observed(self: Any, buf: Any, dest: int, tag: int = 0) -> None:
        began = clock()
        original(self, buf, dest, tag)
        ended = clock()
        try:
            tally = known[self._number][dest][buf.nbytes]
        except MET_FIRST:
            tally = message_tally(recorder, known, number, self, dest, buf)
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if not tally[2] <= spent <= tally[3]:
            widen(tally, spent)
        if timeline:
            message(False, number, tally, tag, began, ended)

    return observed


def receive(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """A blocking receive."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock
    known, timeline, message = recorder.tallies.known(), recorder.timeline, recorder.message_event

    def observed(
        self: Any, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Any = None
    ) -> None:
        if status is not None:
            slow(self, buf, source, tag, status)
            return
        if timeline and (source == ANY_SOURCE or tag == ANY_TAG):
            status = MPI.Status()
        began = clock()
        original(self, buf, source, tag, status)
        ended = clock()
        if status is not None:
            source, tag = status.source, status.tag
        try:
            tally = known[self._number][source][buf.nbytes]
        except MET_FIRST:
            tally = message_tally(recorder, known, number, self, source, buf)
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if not tally[2] <= spent <= tally[3]:
            widen(tally, spent)
        if timeline:
            message(True, number, tally, tag, began, ended)

    return observed


def both_ways(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """A Sendrecv between neighbours that are there."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock
    known, timeline = recorder.tallies.known(), recorder.timeline

    def observed(
        self: Any,
        sendbuf: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Any = None,
    ) -> None:
        if status is not None or dest == PROC_NULL or source == PROC_NULL:
            slow(self, sendbuf, dest, sendtag, recvbuf, source, recvtag, status)
            return
        if timeline and (source == ANY_SOURCE or recvtag == ANY_TAG):
            status = MPI.Status()
        began = clock()
        original(self, sendbuf, dest, sendtag, recvbuf, source, recvtag, status)
        ended = clock()
        try:
            tally = known[self._number][dest][sendbuf.nbytes + recvbuf.nbytes]
        except MET_FIRST:
            communicator = number_of(self, recorder)
            nbytes = together(spec_bytes(sendbuf), spec_bytes(recvbuf))
            tally = recorder.tallies.tally(number, communicator, dest, nbytes)
            known.setdefault(communicator, {}).setdefault(dest, {})[nbytes] = tally
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if not tally[2] <= spent <= tally[3]:
            widen(tally, spent)
        if timeline:
            if status is not None:
                source, recvtag = status.source, status.tag
            sent, got = (dest, sendtag, spec_bytes(sendbuf)), (source, recvtag, spec_bytes(recvbuf))
            two_messages(recorder, number, tally[5], sent, got, began, ended)

    return observed


def two_messages(
    recorder: PythonRecorder,
    number: int,
    communicator: int,
    sent: tuple[int, int, int],
    got: tuple[int, int, int],
    began: int,
    ended: int,
) -> None:
    """The events of a call that sends and receives: peer in the communicator, tag, bytes."""
    for kind, (peer, tag, nbytes) in ((CALL, sent), (ARRIVED, got)):
        world = recorder.world_rank(communicator, peer)
        sequence = recorder.message(kind == ARRIVED, communicator, world, tag)
        recorder.event(kind, number, communicator, world, tag, 0, began, ended, nbytes, 0, sequence)


def nonblocking_send(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """A send that a request completes."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock
    known, timeline, adopt = recorder.tallies.known(), recorder.timeline, method.adopt

    def observed(self: Any, buf: Any, dest: int, tag: int = 0) -> Any:
        began = clock()
        request = original(self, buf, dest, tag)
        ended = clock()
        try:
            tally = known[self._number][dest][buf.nbytes]
        except MET_FIRST:
            tally = message_tally(recorder, known, number, self, dest, buf)
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if not tally[2] <= spent <= tally[3]:
            widen(tally, spent)
        request = adopt(request)
        if timeline:
            begin(recorder, number, tally, tag, began, ended, False, False, request)
        return request

    return observed


def nonblocking_receive(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """A receive that a request completes."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock
    known, timeline, adopt = recorder.tallies.known(), recorder.timeline, method.adopt

    def observed(self: Any, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Any:
        began = clock()
        request = original(self, buf, source, tag)
        ended = clock()
        try:
            tally = known[self._number][source][buf.nbytes]
        except MET_FIRST:
            tally = message_tally(recorder, known, number, self, source, buf)
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if not tally[2] <= spent <= tally[3]:
            widen(tally, spent)
        request = adopt(request)
        if timeline:
            wildcard = source == ANY_SOURCE or (tag == ANY_TAG and source != PROC_NULL)
            begin(recorder, number, tally, tag, began, ended, True, wildcard, request)
        return request

    return observed


def begin(
    recorder: PythonRecorder,
    number: int,
    tally: Tally,
    tag: int,
    began: int,
    ended: int,
    receives: bool,
    wildcard: bool,
    request: Any,
) -> None:
    """Keep the event of a non-blocking message, and what its request stands for."""
    nbytes, communicator, world = tally[4:]
    sequence = 0 if wildcard else recorder.message(receives, communicator, world, tag)
    one = recorder.request()
    request._operations = [
        Operation(
            number, communicator, began, one, world, tag, nbytes, sequence, receives, wildcard
        )
    ]
    told = 0 if receives else sequence
    recorder.event(CALL, number, communicator, world, tag, 0, began, ended, nbytes, one, told)
