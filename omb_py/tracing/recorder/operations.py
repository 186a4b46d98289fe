"""Operations that a call begins and another completes: what a request stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omb_py.tracing.recorder.message_sizes import UNKNOWN
from omb_py.tracing.recorder.recorder import PythonRecorder
from omb_py.tracing.records.layout import NOBODY, Kind

DONE = int(Kind.DONE)


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
    nbytes: int = UNKNOWN
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


def ask(operations: list[Operation]) -> bool:
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
