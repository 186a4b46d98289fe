"""Requests: the operations that they stand for, and the calls that complete or start them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mpi4py import MPI

from omb_py.tracing.recorder.method import NO_COMMUNICATOR, Method, Observed, bind_arguments, timed
from omb_py.tracing.recorder.recorder import PythonRecorder
from omb_py.tracing.records.layout import NOBODY, UNKNOWN_BYTES, Kind

DONE = int(Kind.DONE)
ALL, ANY, SOME = "all", "any", "some"


@dataclass(slots=True)
class Operation:
    """One operation of a request, for a timeline.

    ``peer`` is a rank of MPI_COMM_WORLD. A ``wildcard`` learns its peer and tag when it is
    complete. A ``persistent`` operation is ``active`` from each start to its completion. One that
    is to be ``cancelled`` may be complete before.
    """

    name: int
    communicator: int
    began: int
    request: int
    peer: int = NOBODY
    tag: int = 0
    nbytes: int = UNKNOWN_BYTES
    sequence: int = 0
    receives: bool = False
    wildcard: bool = False
    persistent: bool = False
    active: bool = True
    collective: bool = False
    cancelled: bool = False


def start(recorder: PythonRecorder, operation: Operation, began: int) -> None:
    """A persistent operation begins anew."""
    operation.began = began
    operation.request = recorder.request()
    operation.active = True
    operation.cancelled = False
    if operation.collective:
        operation.sequence = recorder.collective(operation.communicator)
    elif not operation.wildcard:
        operation.sequence = recorder.message(
            operation.receives, operation.communicator, operation.peer, operation.tag
        )


def operations_of(request: Any) -> list[Operation]:
    """The operations that an observed request stands for; none when no timeline is kept."""
    return getattr(request, "_operations", None) or []


def needs_status(operations: list[Operation]) -> bool:
    """Whether only a status will tell what has become of operations."""
    for one in operations:  # noqa: SIM110 - any() takes a third of a microsecond longer
        if (one.wildcard or one.cancelled) and one.active:
            return True
    return False


def cancel(operations: list[Operation]) -> None:
    """The program wants operations not to take place, which may be too late."""
    for one in operations:
        one.cancelled = True


def free(recorder: PythonRecorder, operations: list[Operation]) -> None:
    """A request is given up before it is complete; a cancelled receive then gets no message."""
    for one in operations:
        if one.cancelled and one.active and one.receives:
            take_back(recorder, one)


def take_back(recorder: PythonRecorder, operation: Operation) -> None:
    """A message that was not sent or received after all has no number: the next one takes it."""
    one = operation
    if one.sequence:
        recorder.no_message(one.receives, one.communicator, one.peer, one.tag, one.sequence)
        one.sequence = 0


def complete(
    recorder: PythonRecorder, operations: list[Operation], status: Any, ended: int
) -> None:
    """The operations of a request are complete, as a status says of a wildcard."""
    for one in operations:
        if not one.active:
            continue
        if one.cancelled and status is not None and status.Is_cancelled():
            take_back(recorder, one)
            status = None
        peer, tag, nbytes, sequence = one.peer, one.tag, one.nbytes, one.sequence
        if one.wildcard and status is not None:
            peer = recorder.world_rank(one.communicator, status.source)
            tag = status.tag
            sequence = recorder.message(True, one.communicator, peer, tag)
        name, where, request = one.name, one.communicator, one.request
        recorder.event(DONE, name, where, peer, tag, 0, one.began, ended, nbytes, request, sequence)
        one.active = False


def completion_of_one(method: Method, recorder: PythonRecorder) -> Observed:
    """Wait or Test of a request, also of one for an object."""
    number, call = recorder.name(method.routine), timed(method, recorder)
    tests = method.name.lower() == "test"
    objects = method.name.islower()

    def observed(self: Any, status: Any = None) -> Any:
        operations = operations_of(self)
        if status is None and needs_status(operations):
            status = MPI.Status()
        result, began, ended = call(NO_COMMUNICATOR, NOBODY, (self, status), {})
        recorder.record(number, 0, NOBODY, UNKNOWN_BYTES, began, ended)
        done = (result[0] if objects else result) if tests else True
        if operations and done:
            complete(recorder, operations, status, ended)
        return result

    return observed


def completion_of_several(method: Method, recorder: PythonRecorder) -> Observed:
    """Waitall, Testany and their like."""
    number, call = recorder.name(method.routine), timed(method, recorder)
    names = method.parameters
    tests = method.name.lower().startswith("test")
    way = next(way for way in (ALL, ANY, SOME) if method.name.lower().endswith(way))
    objects = method.name.islower()
    told = "status" if way == ANY else "statuses"

    def observed(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if not recorder.timeline:
            result, began, ended = call(NO_COMMUNICATOR, NOBODY, args, kwargs)
            recorder.record(number, 0, NOBODY, UNKNOWN_BYTES, began, ended)
            return result
        given = bind_arguments(names, args, kwargs)
        requests = given.get("requests", ())
        if not isinstance(requests, Sequence):
            requests = given["requests"] = list(requests)
        waiting = [operations_of(request) for request in requests]
        statuses = given.get(told)
        if statuses is None and any(map(needs_status, waiting)):
            statuses = MPI.Status() if way == ANY else [MPI.Status() for _ in requests]
            given[told] = statuses
        result, began, ended = call(NO_COMMUNICATOR, NOBODY, (), given)
        recorder.record(number, 0, NOBODY, UNKNOWN_BYTES, began, ended)
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
    number, call = recorder.name(method.routine), timed(method, recorder)

    def observed(self: Any) -> None:
        free(recorder, operations_of(self))
        _, began, ended = call(NO_COMMUNICATOR, NOBODY, (self,), {})
        recorder.record(number, 0, NOBODY, UNKNOWN_BYTES, began, ended)

    return observed


def starting(method: Method, recorder: PythonRecorder) -> Observed:
    """Start of a persistent request."""
    number, call = recorder.name(method.routine), timed(method, recorder)

    def observed(self: Any) -> Any:
        result, began, ended = call(NO_COMMUNICATOR, NOBODY, (self,), {})
        _started(recorder, number, [self], began, ended)
        return result

    return observed


def starting_several(method: Method, recorder: PythonRecorder) -> Observed:
    """Startall."""
    number, call = recorder.name(method.routine), timed(method, recorder)

    def observed(cls: Any, requests: Any) -> Any:
        requests = list(requests)
        result, began, ended = call(NO_COMMUNICATOR, NOBODY, (requests,), {})
        _started(recorder, number, requests, began, ended)
        return result

    return observed


def _started(
    recorder: PythonRecorder, number: int, requests: list[Any], began: int, ended: int
) -> None:
    recorder.called(number, 0, NOBODY, UNKNOWN_BYTES, began, ended)
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
        *(first.nbytes if first else UNKNOWN_BYTES, first.request if first else 0),
        first.sequence if first and sends else 0,
    )
