"""Sends, receives and probes, observed."""

from __future__ import annotations

from typing import Any, NamedTuple

from mpi4py import MPI

from omb_py.tracing.recorder.message_sizes import Pickled, partitioned_bytes, spec_bytes, together
from omb_py.tracing.recorder.method import (
    Method,
    Observed,
    bind_arguments,
    number_of,
    peer_parameter,
    timed,
)
from omb_py.tracing.recorder.recorder import PythonRecorder
from omb_py.tracing.recorder.request_calls import Operation
from omb_py.tracing.records.layout import NOBODY, UNKNOWN_BYTES, Kind
from omb_py.tracing.records.routines import PICKLED, Role, nonblocking, role, started

CALL, ARRIVED = int(Kind.CALL), int(Kind.ARRIVED)


class Half(NamedTuple):
    """One direction of a call: the peer in the communicator, tag, bytes."""

    peer: int
    tag: int
    nbytes: int
    wildcard: bool = False


def point_to_point(method: Method, recorder: PythonRecorder, pickled: Pickled) -> Observed:
    """A method that sends, receives, both or probes, with everything that is recorded of it."""
    number, call = recorder.name(method.routine), timed(method, recorder)
    names, (whom, nobody) = method.parameters, peer_parameter(method.parameters)
    roles = role(method.routine)
    begins = nonblocking(method.routine) and roles is not Role.PROBE
    persistent = method.routine.endswith("_init")
    objects = method.routine.endswith(PICKLED)
    sends = roles in (Role.SEND, Role.SENDRECV)
    receives = roles in (Role.RECEIVE, Role.SENDRECV)
    partitioned = "partitions" in names
    starts = recorder.name(started(method.routine)) if persistent else 0

    def posted(given: dict[str, Any], name: str) -> int:
        spec = given.get(name, given.get("buf"))
        return partitioned_bytes(spec, given["partitions"]) if partitioned else spec_bytes(spec)

    def observed(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = bind_arguments(names, args, kwargs)
        status = asked = given.get("status")
        watched = receives and not begins and recorder.timeline and status is None
        if watched and _wildcard(given):
            status = kwargs["status"] = MPI.Status()
            args = args[: names.index("status")]
        before = pickled.mark() if objects else None
        peer = given.get(whom, nobody)
        result, began, ended = call(self, peer, (self, *args), kwargs)
        communicator = number_of(self, recorder)
        moved = pickled.since(before) if before is not None else None
        sent = got = None
        if sends:
            nbytes = moved.sent if moved else posted(given, "sendbuf")
            sent = _sent(given, nbytes)
        if receives:
            nbytes = moved.received if moved else posted(given, "recvbuf")
            if asked is not None and not objects:
                nbytes = asked.Get_count(MPI.BYTE)
            got = _got(given, status, nbytes)
        if roles is Role.PROBE:
            recorder.called(number, communicator, NOBODY, UNKNOWN_BYTES, began, ended)
        else:
            peer, nbytes = _both(sent, got)
            recorder.called(number, communicator, peer, nbytes, began, ended)
        if not begins:
            if recorder.timeline:
                halves = (sent and sent[:3], got and got[:3])
                record_messages(recorder, number, communicator, *halves, began, ended)
            return method.adopt(result)
        request = method.adopt(result)
        if persistent:
            request._starts = starts, communicator, peer, nbytes
        if recorder.timeline:
            place = recorder, number, communicator
            operations = [
                _operation(*place, half, receiving, began, persistent)
                for half, receiving in ((sent, False), (got, True))
                if half is not None
            ]
            request._operations = operations
            first = operations[0]
            recorder.event(
                *(Kind.CALL, number, communicator, first.peer, first.tag, 0, began, ended),
                *(first.nbytes, 0 if persistent else first.request),
                0 if first.receives else first.sequence,
            )
        return request

    return observed


def _wildcard(given: dict[str, Any]) -> bool:
    source, tag = given.get("source", MPI.ANY_SOURCE), given.get("tag", given.get("recvtag"))
    tag = MPI.ANY_TAG if tag is None else tag
    return bool(source == MPI.ANY_SOURCE or tag == MPI.ANY_TAG)


def _sent(given: dict[str, Any], nbytes: int) -> Half:
    dest = int(given.get("dest", NOBODY))
    tag = int(given.get("tag", given.get("sendtag", 0)))
    if dest == MPI.PROC_NULL:
        return Half(NOBODY, tag, 0)
    return Half(dest, tag, nbytes)


def _got(given: dict[str, Any], status: Any, nbytes: int) -> Half:
    source = int(given.get("source", MPI.ANY_SOURCE))
    tag = given.get("tag", given.get("recvtag", MPI.ANY_TAG))
    if source == MPI.PROC_NULL:
        return Half(NOBODY, int(tag), 0)
    if status is not None:
        return Half(status.source, status.tag, nbytes, _wildcard(given))
    wildcard = _wildcard(given)
    return Half(NOBODY if source == MPI.ANY_SOURCE else source, int(tag), nbytes, wildcard)


def _both(sent: Half | None, got: Half | None) -> tuple[int, int]:
    """The peer and the bytes that a profile counts: sent and received together."""
    halves = [half for half in (sent, got) if half is not None]
    return halves[0].peer, together(*(half.nbytes for half in halves))


def record_messages(
    recorder: PythonRecorder,
    number: int,
    communicator: int,
    sent: tuple[int, int, int] | None,
    received: tuple[int, int, int] | None,
    began: int,
    ended: int,
) -> None:
    """The events of a blocking call that sends, receives, both or probes: peer, tag and bytes."""
    kind = CALL
    if sent is None and received is None:
        recorder.event(kind, number, communicator, NOBODY, 0, 0, began, ended, UNKNOWN_BYTES, 0, 0)
    for half, receives in ((sent, False), (received, True)):
        if half is not None:
            peer, tag, nbytes = half
            world = recorder.world_rank(communicator, peer)
            sequence = recorder.message(receives, communicator, world, tag)
            recorder.event(
                kind, number, communicator, world, tag, 0, began, ended, nbytes, 0, sequence
            )
            kind = ARRIVED


def _operation(
    recorder: PythonRecorder,
    number: int,
    communicator: int,
    half: Half,
    receiving: bool,
    began: int,
    persistent: bool,
) -> Operation:
    peer = recorder.world_rank(communicator, half.peer)
    counted = not (half.wildcard and receiving) and not persistent
    return Operation(
        number,
        communicator,
        began,
        recorder.request(),
        peer=peer,
        tag=half.tag,
        nbytes=half.nbytes,
        sequence=recorder.message(receiving, communicator, peer, half.tag) if counted else 0,
        receives=receiving,
        wildcard=half.wildcard and receiving,
        persistent=persistent,
        active=not persistent,
    )
