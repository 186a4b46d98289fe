"""Waits and tests in their quicker forms: see `observe.quick`."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from omb_py.tracing.recorder.message_sizes import UNKNOWN
from omb_py.tracing.recorder.operations import ask, complete
from omb_py.tracing.recorder.recorder import PythonRecorder
from omb_py.tracing.recorder.tallies import widen
from omb_py.tracing.recorder.wrapping import Method, Observed
from omb_py.tracing.records.layout import NOBODY, Kind

CALL = int(Kind.CALL)


def wait(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """Wait of a request."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock
    known, timeline, event = recorder.tallies.known(), recorder.timeline, recorder.event

    def observed(self: Any, status: Any = None) -> Any:
        if timeline:
            operations = getattr(self, "_operations", None)
            if operations and status is None and ask(operations):
                status = MPI.Status()
        began = clock()
        result = original(self, status)
        ended = clock()
        try:
            tally = known[0][NOBODY][UNKNOWN]
        except KeyError:
            tally = recorder.tallies.tally(number, 0, NOBODY, UNKNOWN)
            known[0] = {NOBODY: {UNKNOWN: tally}}
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if not tally[2] <= spent <= tally[3]:
            widen(tally, spent)
        if timeline:
            event(CALL, number, 0, NOBODY, 0, 0, began, ended, UNKNOWN, 0, 0)
            if operations:
                complete(recorder, operations, status, ended)
        return result

    return observed


def wait_all(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """Waitall, which a timeline may need statuses for."""
    if not recorder.timeline:
        return completion(method, recorder, slow)
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock
    tallies, event = recorder.tallies, recorder.event

    def observed(cls: Any, requests: Any, statuses: Any = None) -> Any:
        if statuses is not None:
            return slow(cls, requests, statuses)
        waiting = [getattr(request, "_operations", None) for request in requests]
        for operations in waiting:
            if operations and ask(operations):
                statuses = [MPI.Status() for _ in requests]
                break
        began = clock()
        result = original(requests, statuses)
        ended = clock()
        tallies.count(number, 0, NOBODY, UNKNOWN, 0, ended - began)
        event(CALL, number, 0, NOBODY, 0, 0, began, ended, UNKNOWN, 0, 0)
        for index, operations in enumerate(waiting):
            if operations:
                status = None if statuses is None else statuses[index]
                complete(recorder, operations, status, ended)
        return result

    return observed


def completion(method: Method, recorder: PythonRecorder, slow: Observed) -> Observed:
    """A test, or a wait for several requests, of which a profile tells no more than the time."""
    if recorder.timeline:
        return slow
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock
    known, of_class = recorder.tallies.known(), method.name.lower().endswith(("all", "any", "some"))

    def observed(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not of_class:
            args = (self, *args)
        began = clock()
        result = original(*args, **kwargs)
        ended = clock()
        try:
            tally = known[0][NOBODY][UNKNOWN]
        except KeyError:
            tally = recorder.tallies.tally(number, 0, NOBODY, UNKNOWN)
            known[0] = {NOBODY: {UNKNOWN: tally}}
        spent = ended - began
        tally[0] += 1
        tally[1] += spent
        if not tally[2] <= spent <= tally[3]:
            widen(tally, spent)
        return result

    return observed
