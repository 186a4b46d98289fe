"""Collective calls, observed."""

from __future__ import annotations

from typing import Any

from omb_py.tracing.recorder.message_sizes import COLLECTIVES, Pickled
from omb_py.tracing.recorder.method import (
    Method,
    Observed,
    bind_arguments,
    number_of,
    timed,
)
from omb_py.tracing.recorder.recorder import PythonRecorder
from omb_py.tracing.recorder.request_calls import Operation
from omb_py.tracing.records.layout import NOBODY, UNKNOWN_BYTES, Kind
from omb_py.tracing.records.routines import PICKLED, base, nonblocking, started


def collective(method: Method, recorder: PythonRecorder, pickled: Pickled) -> Observed:
    """A collective method, with everything that is recorded of it."""
    number, call = recorder.name(method.routine), timed(method, recorder)
    names = method.parameters
    begins = nonblocking(method.routine)
    persistent = method.routine.endswith("_init")
    starts = recorder.name(started(method.routine)) if persistent else 0
    objects = method.routine.endswith(PICKLED)
    rooted = "root" in names
    size = COLLECTIVES[base(method.routine)]

    def observed(self: Any, *args: Any, **kwargs: Any) -> Any:
        communicator = number_of(self, recorder)
        before = pickled.mark() if objects else None
        given = bind_arguments(names, args, kwargs)
        root = given.get("root", 0) if rooted else NOBODY
        result, began, ended = call(self, root, (self, *args), kwargs)
        peer = max(NOBODY, int(root)) if rooted else NOBODY
        if before is not None:
            moved = pickled.since(before)
            nbytes = moved.sent or moved.received
        else:
            nbytes = bytes_of(size, self, given)
        recorder.called(number, communicator, peer, nbytes, began, ended)
        if begins:
            result = method.adopt(result)
        if persistent:
            result._starts = starts, communicator, peer, nbytes
        if recorder.timeline:
            peer = recorder.world_rank(communicator, peer)
            sequence = 0 if persistent else recorder.collective(communicator)
            request = 0
            if begins:
                operation = Operation(
                    number,
                    communicator,
                    began,
                    0 if persistent else recorder.request(),
                    peer=peer,
                    nbytes=nbytes,
                    sequence=sequence,
                    persistent=persistent,
                    active=not persistent,
                    collective=True,
                )
                request = operation.request
                result._operations = [operation]
            recorder.event(
                *(Kind.CALL, number, communicator, peer, 0, 0, began, ended),
                *(nbytes, request, sequence),
            )
        return result

    return observed


def bytes_of(size: Any, comm: Any, given: dict[str, Any]) -> int:
    try:
        return int(size(comm, given))
    except Exception:  # whatever a program's arguments are, its call has already been made
        return UNKNOWN_BYTES
