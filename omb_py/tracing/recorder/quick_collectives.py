"""Collective calls in their quicker forms: see `observe.quick`."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from omb_py.tracing.recorder.collective_calls import bytes_of
from omb_py.tracing.recorder.message_sizes import COLLECTIVES
from omb_py.tracing.recorder.recorder import PythonRecorder
from omb_py.tracing.recorder.tallies import MET_FIRST, Tally, keep, widen
from omb_py.tracing.recorder.wrapping import Method, Observed, number_of
from omb_py.tracing.records.layout import NOBODY


def collective_tally(
    recorder: PythonRecorder, number: int, comm: Any, root: int, method: str, given: dict[str, Any]
) -> Tally:
    """The same of a collective call."""
    nbytes = bytes_of(COLLECTIVES[method], comm, given)
    root = root if root >= 0 else NOBODY
    return recorder.tallies.tally(number, number_of(comm, recorder), root, nbytes)


def barrier(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """A barrier."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock
    known, timeline, event = recorder.tallies.known(), recorder.timeline, recorder.collective_event

    def observed(self: Any) -> None:
        began = clock()
        original(self)
        ended = clock()
        try:
            tally = known[self._number][NOBODY][0]
        except MET_FIRST:
            tally = collective_tally(recorder, number, self, NOBODY, "barrier", {})
            known[number_of(self, recorder)] = {NOBODY: {0: tally}}
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if not tally[2] <= spent <= tally[3]:
            widen(tally, spent)
        if timeline:
            event(number, tally, began, ended)

    return observed


def bcast(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """A broadcast."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock
    known, timeline, event = recorder.tallies.known(), recorder.timeline, recorder.collective_event

    def observed(self: Any, buf: Any, root: int = 0) -> None:
        began = clock()
        original(self, buf, root)
        ended = clock()
        try:
            tally = known[self._number][root][buf.nbytes]
        except MET_FIRST:
            tally = collective_tally(recorder, number, self, root, "bcast", {"buf": buf})
            keep(known, tally, number_of(self, recorder), root, buf)
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if not tally[2] <= spent <= tally[3]:
            widen(tally, spent)
        if timeline:
            event(number, tally, began, ended)

    return observed


def reduction(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """An allreduce, scan or exscan."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock
    known, timeline, event = recorder.tallies.known(), recorder.timeline, recorder.collective_event

    def observed(self: Any, sendbuf: Any, recvbuf: Any, op: Any = MPI.SUM) -> None:
        began = clock()
        original(self, sendbuf, recvbuf, op)
        ended = clock()
        try:
            tally = known[self._number][NOBODY][sendbuf.nbytes]
        except MET_FIRST:
            given = {"sendbuf": sendbuf, "recvbuf": recvbuf}
            tally = collective_tally(recorder, number, self, NOBODY, "allreduce", given)
            keep(known, tally, number_of(self, recorder), NOBODY, sendbuf)
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if not tally[2] <= spent <= tally[3]:
            widen(tally, spent)
        if timeline:
            event(number, tally, began, ended)

    return observed
