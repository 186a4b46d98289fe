"""Messages with objects in their quicker forms: see `observe.quick`."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from omb_py.tracing.recorder.pickled import Pickled
from omb_py.tracing.recorder.quick_messages import (
    ANY_SOURCE,
    ANY_TAG,
    PROC_NULL,
    begin,
    two_messages,
)
from omb_py.tracing.recorder.recorder import PythonRecorder
from omb_py.tracing.recorder.tallies import MET_FIRST, Known, Tally, widen
from omb_py.tracing.recorder.wrapping import Method, Observed, number_of
from omb_py.tracing.records.layout import NOBODY


def object_tally(
    recorder: PythonRecorder, known: Known, number: int, comm: Any, peer: int, nbytes: int
) -> Tally:
    """The tally of a message that is met first."""
    communicator = number_of(comm, recorder)
    rank = peer if peer >= 0 else NOBODY
    tally = recorder.tallies.tally(number, communicator, rank, nbytes)
    known.setdefault(communicator, {}).setdefault(peer, {})[nbytes] = tally
    return tally


def send(method: Method, recorder: PythonRecorder, pickled: Pickled, slow: Observed) -> Observed:
    """A blocking send of an object."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock
    known, timeline, counts = recorder.tallies.known(), recorder.timeline, pickled.counts

    def observed(self: Any, obj: Any, dest: int, tag: int = 0) -> None:
        before = counts.sent
        began = clock()
        original(self, obj, dest, tag)
        ended = clock()
        nbytes = counts.sent - before
        try:
            tally = known[self._number][dest][nbytes]
        except MET_FIRST:
            tally = object_tally(recorder, known, number, self, dest, nbytes)
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if not tally[2] <= spent <= tally[3]:
            widen(tally, spent)
        if timeline:
            recorder.message_event(False, number, tally, tag, began, ended)

    return observed


def receive(method: Method, recorder: PythonRecorder, pickled: Pickled, slow: Observed) -> Observed:
    """A blocking receive of an object."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock
    known, timeline, counts = recorder.tallies.known(), recorder.timeline, pickled.counts

    def observed(
        self: Any, buf: Any = None, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Any = None
    ) -> Any:
        if status is not None:
            return slow(self, buf, source, tag, status)
        if timeline and (source == ANY_SOURCE or tag == ANY_TAG):
            status = MPI.Status()
        before = counts.received
        began = clock()
        result = original(self, buf, source, tag, status)
        ended = clock()
        nbytes = counts.received - before
        if status is not None:
            source, tag = status.source, status.tag
        try:
            tally = known[self._number][source][nbytes]
        except MET_FIRST:
            tally = object_tally(recorder, known, number, self, source, nbytes)
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if not tally[2] <= spent <= tally[3]:
            widen(tally, spent)
        if timeline:
            recorder.message_event(True, number, tally, tag, began, ended)
        return result

    return observed


def both_ways(
    method: Method, recorder: PythonRecorder, pickled: Pickled, slow: Observed
) -> Observed:
    """A sendrecv of objects between neighbours that are there."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock
    known, timeline, counts = recorder.tallies.known(), recorder.timeline, pickled.counts

    def observed(
        self: Any,
        sendobj: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Any = None,
    ) -> Any:
        if status is not None or dest == PROC_NULL or source == PROC_NULL:
            return slow(self, sendobj, dest, sendtag, recvbuf, source, recvtag, status)
        if timeline and (source == ANY_SOURCE or recvtag == ANY_TAG):
            status = MPI.Status()
        before, before_got = counts.sent, counts.received
        began = clock()
        result = original(self, sendobj, dest, sendtag, recvbuf, source, recvtag, status)
        ended = clock()
        sent, got = counts.sent - before, counts.received - before_got
        try:
            tally = known[self._number][dest][sent + got]
        except MET_FIRST:
            tally = object_tally(recorder, known, number, self, dest, sent + got)
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if not tally[2] <= spent <= tally[3]:
            widen(tally, spent)
        if timeline:
            if status is not None:
                source, recvtag = status.source, status.tag
            halves = (dest, sendtag, sent), (source, recvtag, got)
            two_messages(recorder, number, tally[5], *halves, began, ended)
        return result

    return observed


def nonblocking_send(
    method: Method, recorder: PythonRecorder, pickled: Pickled, slow: Observed
) -> Observed:
    """A send of an object that a request completes."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock
    known, timeline, counts = recorder.tallies.known(), recorder.timeline, pickled.counts
    adopt = method.adopt

    def observed(self: Any, obj: Any, dest: int, tag: int = 0) -> Any:
        before = counts.sent
        began = clock()
        request = original(self, obj, dest, tag)
        ended = clock()
        nbytes = counts.sent - before
        try:
            tally = known[self._number][dest][nbytes]
        except MET_FIRST:
            tally = object_tally(recorder, known, number, self, dest, nbytes)
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
