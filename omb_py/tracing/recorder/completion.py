"""Waits and tests of requests, starts of persistent ones, matched messages: observed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mpi4py import MPI

from omb_py.tracing.recorder.message_sizes import UNKNOWN
from omb_py.tracing.recorder.operations import ask, cancel, complete, free, operations_of, start
from omb_py.tracing.recorder.recorder import PythonRecorder
from omb_py.tracing.recorder.wrapping import Method, Observed, bound
from omb_py.tracing.records.layout import NOBODY, Kind

ALL, ANY, SOME = "all", "any", "some"


def completion_of_one(method: Method, recorder: PythonRecorder) -> Observed:
    """Wait or Test of a request, also of one for an object."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock
    tests = method.name.lower() == "test"
    objects = method.name.islower()

    def observed(self: Any, status: Any = None) -> Any:
        operations = operations_of(self)
        if status is None and ask(operations):
            status = MPI.Status()
        began = clock()
        result = original(self, status)
        ended = clock()
        _count(recorder, number, began, ended)
        done = (result[0] if objects else result) if tests else True
        if operations and done:
            complete(recorder, operations, status, ended)
        return result

    return observed


def completion_of_several(method: Method, recorder: PythonRecorder) -> Observed:
    """Waitall, Testany and their like."""
    number, clock = recorder.name(method.routine), recorder.clock
    original, names = method.original, method.parameters
    tests = method.name.lower().startswith("test")
    way = next(way for way in (ALL, ANY, SOME) if method.name.lower().endswith(way))
    objects = method.name.islower()
    told = "status" if way == ANY else "statuses"

    def observed(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not recorder.timeline:
            began = clock()
            result = original(*args, **kwargs)
            _count(recorder, number, began, clock())
            return result
        given = bound(names, args, kwargs)
        requests = given.get("requests", ())
        if not isinstance(requests, Sequence):
            requests = given["requests"] = list(requests)
        waiting = [operations_of(request) for request in requests]
        statuses = given.get(told)
        if statuses is None and any(map(ask, waiting)):
            statuses = MPI.Status() if way == ANY else [MPI.Status() for _ in requests]
            given[told] = statuses
        began = clock()
        result = original(**given)
        ended = clock()
        _count(recorder, number, began, ended)
        if any(waiting):
            found = _completed(result, way, tests, objects, len(requests))
            for place, index in enumerate(found):
                status = statuses
                if way != ANY and statuses is not None:
                    at = index if way == ALL else place
                    status = statuses[at] if at < len(statuses) else None
                if waiting[index]:
                    complete(recorder, waiting[index], status, ended)
        return result

    return observed


def _completed(result: Any, way: str, tests: bool, objects: bool, requests: int) -> Iterable[int]:
    """Which requests a call has completed, by what it returned."""
    if way == ALL:
        done = (result[0] if objects else result) if tests else True
        return range(requests) if done else ()
    if way == ANY:
        index, done = result[:2] if tests or objects else (result, True)
        done = done if tests else True
        return (index,) if done and 0 <= index < requests else ()
    return (result[0] if objects else result) or ()


def cancelling(original: Any) -> Observed:
    """Cancel of a request, which is not counted, but changes what its completion means."""

    def observed(self: Any) -> None:
        cancel(operations_of(self))
        original(self)

    return observed


def freeing(method: Method, recorder: PythonRecorder) -> Observed:
    """Free of a request."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock

    def observed(self: Any) -> None:
        free(recorder, operations_of(self))
        began = clock()
        original(self)
        _count(recorder, number, began, clock())

    return observed


def starting(method: Method, recorder: PythonRecorder) -> Observed:
    """Start of a persistent request."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock

    def observed(self: Any) -> Any:
        began = clock()
        result = original(self)
        ended = clock()
        _started(recorder, number, [self], began, ended)
        return result

    return observed


def starting_several(method: Method, recorder: PythonRecorder) -> Observed:
    """Startall."""
    number, original, clock = recorder.name(method.routine), method.original, recorder.clock

    def observed(cls: Any, requests: Any) -> Any:
        requests = list(requests)
        began = clock()
        result = original(requests)
        ended = clock()
        _started(recorder, number, requests, began, ended)
        return result

    return observed


def _started(
    recorder: PythonRecorder, number: int, requests: list[Any], began: int, ended: int
) -> None:
    recorder.called(number, 0, NOBODY, UNKNOWN, began, ended)
    for request in requests:
        starts = getattr(request, "_starts", None)
        if starts is not None:
            what, communicator, peer, nbytes = starts
            recorder.called(what, communicator, peer, nbytes, 0, 0)
    if not recorder.timeline:
        return
    operations = [one for request in requests for one in operations_of(request)]
    for one in operations:
        start(recorder, one, began)
    first = operations[0] if len(operations) == 1 else None
    sends = first is not None and not first.receives
    recorder.event(
        *(Kind.CALL, number, first.communicator if first else 0),
        *(first.peer if first else NOBODY, first.tag if first else 0, 0, began, ended),
        *(first.nbytes if first else UNKNOWN, first.request if first else 0),
        first.sequence if first and sends else 0,
    )


def _count(recorder: PythonRecorder, number: int, began: int, ended: int) -> None:
    recorder.called(number, 0, NOBODY, UNKNOWN, began, ended)
    if recorder.timeline:
        recorder.event(Kind.CALL, number, 0, NOBODY, 0, 0, began, ended, UNKNOWN, 0, 0)
