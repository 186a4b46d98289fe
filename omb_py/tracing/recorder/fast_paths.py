"""Fast paths of the methods that programs call most: little is done around the call itself.

They record what the general paths record where no sites are asked for,
and leave calls that need more (a status to be filled in) to those. A call of a function in Python
costs a tenth of a microsecond, so that a path is one function that calls none: `TEMPLATE`, filled
in from a row of `PATHS` and compiled once for all methods of its shape.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from functools import cache
from textwrap import indent
from typing import Any

from mpi4py import MPI

from omb_py.core.dataclass import dataclass, replace
from omb_py.tracing.recorder.collective_calls import bytes_of
from omb_py.tracing.recorder.message_sizes import COLLECTIVES, Pickled, spec_bytes, together
from omb_py.tracing.recorder.method import NO_COMMUNICATOR, Method, Observed, meet
from omb_py.tracing.recorder.point_to_point import record_messages
from omb_py.tracing.recorder.recorder import PythonRecorder
from omb_py.tracing.recorder.request_calls import Operation, complete, needs_status
from omb_py.tracing.recorder.tallies import MISS, Cache, Tally, remember
from omb_py.tracing.records.layout import NOBODY, UNKNOWN_BYTES, Kind

CALL = int(Kind.CALL)
PROC_NULL = MPI.PROC_NULL

TEMPLATE = """\
def make(method, recorder, pickled, general):
    number, original, adopt = recorder.name(method.routine), method.original, method.adopt
    clock, now, tallies = recorder.clock, recorder.now, recorder.tallies.cache()
    counts = pickled.counts
    def observed({parameters}):
        {before}
        now.began = began = clock()
        now.call = tally
        try:
            result = original({arguments})
        except BaseException:
            now.call = None
            raise
        {stop}
        now.call = None
        {after}
        tally.calls += 1
        tally.ticks += ticks
        if ticks < tally.min or ticks > tally.max:
            tally.update_range(ticks)
        {record}
        return result
    return observed
"""
FIND = """\
try:
    {find}
except MISS:
    tally = {meet}(recorder, tallies, number, {comm}, {peer}, {measured})"""
STOP = "ticks = clock() - began"
STOP_WITH_TIMELINE = "ended = clock()\nticks = ended - began"
"""The text of a path, and of finding the tally of a call in it: before the call, so that others see
what the rank is doing, and once more where only the call says its bytes or peer."""


@dataclass(frozen=True)
class Lines:
    """Lines of Python before and after the call of mpi4py's method, and at the end."""

    before: str = ""
    after: str = ""
    record: str = ""


@dataclass(frozen=True)
class FastPath:
    """What is particular to a shape of call, as text in Python.

    ``parameters`` are the method's, from ``self`` or (of a class method) ``cls`` on. The call is
    one of ``comm`` with ``peer``, of ``nbytes`` where these are easy to tell, else of ``measured``
    bytes. ``lines`` are added to it, and ``timeline`` where one is kept; None leaves those calls to
    the general path, as ``general`` does where it is true.
    """

    name: str
    parameters: str
    peer: str
    nbytes: str
    measured: str
    timeline: Lines | None
    lines: Lines = Lines()
    comm: str = "self"
    general: str = ""

    def source(self, timeline: bool) -> str:
        """The text of the path, with a timeline or without."""
        names = [one.partition("=")[0].strip() for one in self.parameters.split(", ")]
        lines, more = self.lines, (self.timeline if timeline else None) or Lines()
        known = f"tallies[{'self._number' if self.comm == 'self' else 0}][{self.peer}]"
        now = again = self._find(f"tally = {known}[{self.nbytes}]")
        if lines.after:
            pending = f"known = {known}\n    tally = known[UNKNOWN_BYTES]"
            now = f"known = NOTHING\n{self._find(pending, 'UNKNOWN_BYTES')}"
        if lines.after and not more.after:
            again = self._find(f"tally = known[{self.nbytes}]")
        taken = f"if {self.general}:\n    return general({', '.join(names)})"
        parts = {
            "before": [taken if self.general else "", lines.before, more.before, now],
            "stop": [STOP_WITH_TIMELINE if timeline else STOP],
            "after": [lines.after, more.after, again if lines.after or more.after else ""],
            "record": [lines.record, more.record],
        }
        text = TEMPLATE.format(
            parameters=self.parameters,
            arguments=", ".join(names[1:] if names[0] == "cls" else names),
            **{name: indent("\n".join(part), 8 * " ").lstrip() for name, part in parts.items()},
        )
        return "\n".join(line for line in text.split("\n") if line.strip())

    def _find(self, find: str, measured: str = "") -> str:
        """Lines that find a tally, or else meet it."""
        message = self.peer in ("dest", "source")
        return FIND.format(
            find=find,
            meet="meet_message" if message else "meet",
            comm=self.comm,
            peer=self.peer,
            measured=measured or self.measured,
        )


def meet_message(
    recorder: PythonRecorder, cache: Cache, routine: int, comm: Any, peer: int, nbytes: int
) -> Tally:
    """`meet` for a message, of which nothing goes to or comes from PROC_NULL."""
    if peer == PROC_NULL:
        tally = meet(recorder, {}, routine, comm, peer, 0)
        return remember(cache, tally, tally.communicator, peer, nbytes)
    return meet(recorder, cache, routine, comm, peer, nbytes)


def record_begun(
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
    """The event of a non-blocking message, and what its request stands for."""
    nbytes, communicator, world = tally.nbytes, tally.communicator, tally.peer
    sequence = 0 if wildcard else recorder.message(receives, communicator, world, tag)
    one = recorder.request()
    request._operations = [
        Operation(
            number, communicator, began, one, world, tag, nbytes, sequence, receives, wildcard
        )
    ]
    in_call = 0 if receives else sequence
    recorder.event(CALL, number, communicator, world, tag, 0, began, ended, nbytes, one, in_call)


TO, FROM = "dest, tag=0", "source=ANY_SOURCE, tag=ANY_TAG"
BOTH = "dest, sendtag=0, recvbuf=None, source=ANY_SOURCE, recvtag=ANY_TAG, status=None"
NO_NEIGHBOUR = "status is not None or dest == PROC_NULL or source == PROC_NULL"
BUFFER, PICKLE, NO_BYTES = (
    ("buf.nbytes", "spec_bytes(buf)"),
    ("nbytes",) * 2,
    ("UNKNOWN_BYTES",) * 2,
)
WILDCARD = "if source == ANY_SOURCE or {tag} == ANY_TAG:\n    status = MPI.Status()"
LEARN = "if status is not None:\n    source, {tag} = status.source, status.tag\n"
ADOPT = "result = adopt(result)"
WAITED = "recorder.event(CALL, number, 0, NOBODY, 0, 0, began, ended, UNKNOWN_BYTES, 0, 0)\n"
BEGUN = "record_begun(recorder, number, tally, tag, began, ended, {receives}, {wildcard}, result)"
BOTH_MESSAGES = """\
there, back = (dest, sendtag, {sent}), (source, recvtag, {received})
record_messages(recorder, number, tally.communicator, there, back, began, ended)"""

SENDING = Lines(record="recorder.message_event(False, number, tally, tag, began, ended)")
RECEIVING = Lines(
    WILDCARD.format(tag="tag"),
    LEARN.format(tag="tag").strip(),
    "recorder.message_event(True, number, tally, tag, began, ended)",
)
BEGINNING_SEND = Lines(record=BEGUN.format(receives=False, wildcard=False))
BEGINNING_RECEIVE = Lines(
    record="wildcard = source == ANY_SOURCE or (tag == ANY_TAG and source != PROC_NULL)\n"
    + BEGUN.format(receives=True, wildcard="wildcard")
)
EXCHANGING, EXCHANGING_OBJECTS = (
    Lines(
        WILDCARD.format(tag="recvtag"),
        record=LEARN.format(tag="recvtag") + BOTH_MESSAGES.format(sent=sent, received=received),
    )
    for sent, received in (("spec_bytes(sendbuf)", "spec_bytes(recvbuf)"), ("sent", "received"))
)
WAITING = Lines(
    """\
operations = getattr(self, "_operations", None)
if operations and status is None and needs_status(operations):
    status = MPI.Status()""",
    record=f"{WAITED}if operations:\n    complete(recorder, operations, status, ended)",
)
WAITING_FOR_ALL = Lines(
    """\
if statuses is not None:
    return general(cls, requests, statuses)
waiting = [getattr(request, "_operations", None) for request in requests]
for operations in waiting:
    if operations and needs_status(operations):
        statuses = [MPI.Status() for _ in requests]
        break""",
    record=f"""\
{WAITED}for index, operations in enumerate(waiting):
    if operations:
        status = None if statuses is None else statuses[index]
        complete(recorder, operations, status, ended)""",
)
COLLECTIVE = Lines(record="recorder.collective_event(number, tally, began, ended)")
PICKLED_SEND = Lines("before = counts.sent", "nbytes = counts.sent - before")
PICKLED_RECEIVE = Lines("before = counts.received", "nbytes = counts.received - before")
PICKLED_BOTH = Lines(
    "sent_before, received_before = counts.sent, counts.received",
    "sent, received = counts.sent - sent_before, counts.received - received_before",
)

SEND = FastPath("send", f"self, buf, {TO}", "dest", *BUFFER, SENDING)
RECEIVE = FastPath("receive", f"self, buf, {FROM}, status=None", "source", *BUFFER, RECEIVING)
RECEIVE = replace(RECEIVE, general="status is not None")
SENDRECV = FastPath(
    *("sendrecv", f"self, sendbuf, {BOTH}", "dest", "sendbuf.nbytes + recvbuf.nbytes"),
    "together(spec_bytes(sendbuf), spec_bytes(recvbuf))",
    EXCHANGING,
    general=NO_NEIGHBOUR,
)
ISEND = replace(SEND, name="isend", timeline=BEGINNING_SEND, lines=Lines(record=ADOPT))
IRECV = FastPath("irecv", f"self, buf, {FROM}", "source", *BUFFER, BEGINNING_RECEIVE, ISEND.lines)
WAIT = FastPath("wait", "self, status=None", "NOBODY", *NO_BYTES, WAITING, comm="NO_COMMUNICATOR")
WAITALL = replace(
    WAIT, name="waitall", parameters="cls, requests, statuses=None", timeline=WAITING_FOR_ALL
)
TEST = replace(WAIT, name="test", timeline=None)
COMPLETION = replace(WAITALL, name="completion", parameters="cls, *args, **kwargs", timeline=None)
BARRIER = FastPath("barrier", "self", "NOBODY", "0", "0", COLLECTIVE)
BCAST = FastPath("bcast", "self, buf, root=0", "root", *BUFFER, COLLECTIVE)
REDUCTION = FastPath(
    *("reduction", "self, sendbuf, recvbuf, op=MPI.SUM", "NOBODY", "sendbuf.nbytes"),
    'bytes_of(COLLECTIVES["allreduce"], self, {"sendbuf": sendbuf, "recvbuf": recvbuf})',
    COLLECTIVE,
)
SEND_OBJECT = FastPath("send object", f"self, obj, {TO}", "dest", *PICKLE, SENDING, PICKLED_SEND)
ISEND_OBJECT = replace(
    SEND_OBJECT,
    name="isend object",
    timeline=BEGINNING_SEND,
    lines=replace(PICKLED_SEND, record=ADOPT),
)
RECEIVE_OBJECT = FastPath(
    *("receive object", f"self, buf=None, {FROM}, status=None", "source", *PICKLE, RECEIVING),
    PICKLED_RECEIVE,
    general=RECEIVE.general,
)
SENDRECV_OBJECTS = FastPath(
    *("sendrecv objects", f"self, sendobj, {BOTH}", "dest", *("sent + received",) * 2),
    EXCHANGING_OBJECTS,
    PICKLED_BOTH,
    general=NO_NEIGHBOUR,
)

FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(bytes_of, complete, meet, meet_message, needs_status, record_begun, record_messages),
    *(spec_bytes, together),
)
NAMES = {
    **{function.__name__: function for function in FUNCTIONS},
    "ANY_SOURCE": MPI.ANY_SOURCE,
    "ANY_TAG": MPI.ANY_TAG,
    "PROC_NULL": PROC_NULL,
    "CALL": CALL,
    "COLLECTIVES": COLLECTIVES,
    "MPI": MPI,
    "MISS": MISS,
    "NOBODY": NOBODY,
    "NOTHING": {},
    "NO_COMMUNICATOR": NO_COMMUNICATOR,
    "UNKNOWN_BYTES": UNKNOWN_BYTES,
}
"""What the text of paths refers to."""

PATHS: dict[str, FastPath] = {
    **dict.fromkeys(("Send", "Ssend", "Bsend", "Rsend"), SEND),
    **dict.fromkeys(("Isend", "Issend", "Ibsend", "Irsend"), ISEND),
    "Recv": RECEIVE,
    "Sendrecv": SENDRECV,
    "Irecv": IRECV,
    **dict.fromkeys(("Wait", "wait"), WAIT),
    **dict.fromkeys(("Test", "test"), TEST),
    **dict.fromkeys(("Waitall", "waitall"), WAITALL),
    **dict.fromkeys(("Waitany", "Waitsome", "Testall", "Testany", "Testsome"), COMPLETION),
    **dict.fromkeys(("waitany", "waitsome", "testall", "testany", "testsome"), COMPLETION),
    "Barrier": BARRIER,
    "Bcast": BCAST,
    **dict.fromkeys(("Allreduce", "Scan", "Exscan"), REDUCTION),
    **dict.fromkeys(("send", "ssend", "bsend"), SEND_OBJECT),
    **dict.fromkeys(("isend", "issend", "ibsend"), ISEND_OBJECT),
    "recv": RECEIVE_OBJECT,
    "sendrecv": SENDRECV_OBJECTS,
}
"""By the names of methods of communicators and requests, which differ in all of these."""


@cache
def compile_path(path: FastPath, timeline: bool) -> Callable[..., Observed]:
    """What makes a path of a method, with a timeline or without; tracebacks show its text."""
    text = path.source(timeline)
    name = f"<omb_py fast path: {path.name}{' with a timeline' if timeline else ''}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    namespace: dict[str, Any] = dict(NAMES)
    exec(compile(text, name, "exec"), namespace)
    make: Callable[..., Observed] = namespace["make"]
    return make


def fast_path(
    method: Method, recorder: PythonRecorder, pickled: Pickled, general: Observed
) -> Observed:
    """The fast path of a communicator's or a request's method, else the general one."""
    path = PATHS.get(method.name)
    if path is None or (recorder.timeline and path.timeline is None):
        return general
    return compile_path(path, recorder.timeline)(method, recorder, pickled, general)
