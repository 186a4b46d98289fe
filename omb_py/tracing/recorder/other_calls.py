"""One-sided calls, files, matched messages, and what makes or frees objects: observed."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from omb_py.tracing.recorder.message_sizes import Pickled, spec_bytes
from omb_py.tracing.recorder.method import (
    NO_COMMUNICATOR,
    Method,
    Observed,
    bind_arguments,
    keep_number,
    number_of,
    timed,
)
from omb_py.tracing.recorder.recorder import PythonRecorder
from omb_py.tracing.recorder.request_calls import Operation
from omb_py.tracing.records.layout import NOBODY, UNKNOWN_BYTES, Kind
from omb_py.tracing.records.routines import PICKLED, nonblocking


def on_window(method: Method, recorder: PythonRecorder) -> Observed:
    """A call of a window; its communicator is that of the call that made the window."""
    number, call = recorder.name(method.routine), timed(method, recorder)
    names = method.parameters
    targeted = "target_rank" in names
    moves = "origin" in names
    makes = "comm" in names

    def observed(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = bind_arguments(names, args, kwargs)
        peer = given.get("target_rank", given.get("rank", NOBODY)) if targeted else NOBODY
        comm = given.get("comm", MPI.COMM_SELF) if makes else self
        result, began, ended = call(comm, peer, (self, *args), kwargs)
        result = method.adopt(result)
        if makes:
            result._number = recorder.communicator(comm)
        communicator = getattr(result if makes else self, "_number", 0)
        peer = int(peer)
        nbytes = _moved(given) if moves else UNKNOWN_BYTES
        if targeted and peer == MPI.PROC_NULL:
            peer, nbytes = NOBODY, 0
        recorder.record(number, communicator, peer, nbytes, began, ended)
        return result

    return observed


def _moved(given: dict[str, Any]) -> int:
    """The bytes of a one-sided call: the origin's, or the result's where that is what moves."""
    return max(spec_bytes(given.get("origin")), spec_bytes(given.get("result")))


def on_file(method: Method, recorder: PythonRecorder) -> Observed:
    """A call of a file: with the bytes that a read has got, else those that were requested.

    The second half of a split call has none, for its first half has told them.
    """
    number, call = recorder.name(method.routine), timed(method, recorder)
    names = method.parameters
    opens = "comm" in names
    moves = "buf" in names and not method.name.endswith("_end")
    begins = method.name.startswith("I")
    reads = moves and method.name.startswith("Read") and "status" in names

    def observed(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = bind_arguments(names, args, kwargs)
        comm = given.get("comm") if opens else self
        status: Any = given.get("status")
        if reads and status is None:
            status = kwargs["status"] = MPI.Status()
            args = args[: names.index("status")]
        result, began, ended = call(comm, NOBODY, (self, *args), kwargs)
        result = method.adopt(result)
        if opens:
            result._number = recorder.communicator(comm)
        communicator = getattr(result if opens else self, "_number", 0)
        nbytes = spec_bytes(given.get("buf")) if moves else UNKNOWN_BYTES
        if reads and nbytes:
            nbytes = max(UNKNOWN_BYTES, status.Get_elements(MPI.BYTE))
        if not begins or not recorder.timeline:
            recorder.record(number, communicator, NOBODY, nbytes, began, ended)
            return result
        request = recorder.request()
        result._operations = [Operation(number, communicator, began, request, nbytes=nbytes)]
        recorder.called(number, communicator, NOBODY, nbytes, began, ended)
        recorder.event(
            *(Kind.CALL, number, communicator, NOBODY, 0, 0, began, ended, nbytes, request, 0)
        )
        return result

    return observed


def on_message(method: Method, recorder: PythonRecorder, pickled: Pickled) -> Observed:
    """The receive of a message that a probe has matched."""
    number, call = recorder.name(method.routine), timed(method, recorder)
    names = method.parameters
    begins = nonblocking(method.routine)
    objects = method.routine.endswith(PICKLED)

    def observed(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = bind_arguments(names, args, kwargs)
        communicator = getattr(self, "_number", 0)
        status: Any = given.get("status")
        if status is None and not begins:
            status = kwargs["status"] = MPI.Status()
            args = args[: names.index("status")]
        before = pickled.mark()
        result, began, ended = call(self, NOBODY, (self, *args), kwargs)
        peer, tag, nbytes = NOBODY, 0, UNKNOWN_BYTES
        if not begins:
            peer, tag = status.source, status.tag
            nbytes = pickled.since(before).received if objects else status.Get_count(MPI.BYTE)
            peer, nbytes = (NOBODY, 0) if peer == MPI.PROC_NULL else (peer, nbytes)
        elif not objects:
            nbytes = spec_bytes(given.get("buf"))
        recorder.called(number, communicator, peer, nbytes, began, ended)
        result = method.adopt(result) if begins else result
        if recorder.timeline:
            request = sequence = 0
            world = recorder.world_rank(communicator, peer)
            if begins:
                request = recorder.request()
                result._operations = [
                    Operation(
                        *(number, communicator, began, request),
                        nbytes=nbytes,
                        receives=True,
                        wildcard=True,
                    )
                ]
            else:
                sequence = recorder.message(True, communicator, world, tag)
            recorder.event(
                *(Kind.CALL, number, communicator, world, tag, 0, began, ended),
                *(nbytes, request, sequence),
            )
        return result

    return observed


def matching_probe(method: Method, recorder: PythonRecorder, of_class: bool) -> Observed:
    """A probe that matches a message, which remembers its communicator."""
    number, call = recorder.name(method.routine), timed(method, recorder)
    names = method.parameters

    def observed(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = bind_arguments(names, args, kwargs)
        comm = given.get("comm") if of_class else self
        peer = given.get("source", NOBODY)
        result, began, ended = call(comm, peer, (self, *args), kwargs)
        communicator = number_of(comm, recorder)
        message = method.adopt(result)
        if isinstance(message, MPI.Message) and message != MPI.MESSAGE_NO_PROC:
            matched: Any = message
            matched._number = communicator
        recorder.record(number, communicator, NOBODY, UNKNOWN_BYTES, began, ended)
        return message

    return observed


def managing(method: Method, recorder: PythonRecorder) -> Observed:
    """A call that makes, frees or agrees: only its time is recorded."""
    number, call = recorder.name(method.routine), timed(method, recorder)
    frees = method.name in ("Free", "Disconnect")
    later = method.name.startswith("I") and method.name != "Iagree"
    makes = method.name not in ("Get_parent", "Agree", "Iagree")

    def observed(self: Any, *args: Any, **kwargs: Any) -> Any:
        communicator = 0
        comm: Any = NO_COMMUNICATOR
        if isinstance(self, MPI.Comm):
            comm = self
            communicator = number_of(self, recorder)
            if frees:
                recorder.forget(self)
        result, began, ended = call(comm, NOBODY, (self, *args), kwargs)
        recorder.record(number, communicator, NOBODY, UNKNOWN_BYTES, began, ended)
        made = method.adopt(result)
        for one in made if isinstance(made, tuple) else (made,):
            if makes and isinstance(one, MPI.Comm) and one != MPI.COMM_NULL:
                alike = communicator if later else None
                keep_number(one, recorder.new_communicator(one, alike))
        return made

    return observed
