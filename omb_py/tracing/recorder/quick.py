"""Quicker forms of the methods that programs call most, with little around the call itself.

They do what the general forms do where neither sites nor a probe are asked for; calls that need
more (a status to be filled in) are given to the general form. What they have in common is written
out in each, because a function call costs a tenth of a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable

from omb_py.tracing.recorder import (
    quick_collectives,
    quick_completion,
    quick_messages,
    quick_objects,
)
from omb_py.tracing.recorder.pickled import Pickled
from omb_py.tracing.recorder.recorder import PythonRecorder
from omb_py.tracing.recorder.wrapping import Method, Observed

COMPLETIONS = (
    *("Test", "Waitany", "Waitsome", "Testall", "Testany", "Testsome"),
    *("test", "waitany", "waitsome", "testall", "testany", "testsome"),
)

FORMS: dict[str, Callable[[Method, PythonRecorder, Observed], Observed]] = {
    **dict.fromkeys(("Send", "Ssend", "Bsend", "Rsend"), quick_messages.send),
    **dict.fromkeys(("Isend", "Issend", "Ibsend", "Irsend"), quick_messages.nonblocking_send),
    "Recv": quick_messages.receive,
    "Sendrecv": quick_messages.both_ways,
    "Irecv": quick_messages.nonblocking_receive,
    **dict.fromkeys(("Wait", "wait"), quick_completion.wait),
    **dict.fromkeys(COMPLETIONS, quick_completion.completion),
    **dict.fromkeys(("Waitall", "waitall"), quick_completion.wait_all),
    "Barrier": quick_collectives.barrier,
    "Bcast": quick_collectives.bcast,
    **dict.fromkeys(("Allreduce", "Scan", "Exscan"), quick_collectives.reduction),
}
"""Of calls with buffers, and of waits."""

OBJECT_FORMS: dict[str, Callable[[Method, PythonRecorder, Pickled, Observed], Observed]] = {
    **dict.fromkeys(("send", "ssend", "bsend"), quick_objects.send),
    **dict.fromkeys(("isend", "issend", "ibsend"), quick_objects.nonblocking_send),
    "recv": quick_objects.receive,
    "sendrecv": quick_objects.both_ways,
}


def quicker(
    method: Method, recorder: PythonRecorder, pickled: Pickled, general: Observed
) -> Observed:
    """The quicker form of a communicator's or a request's method, else the general one."""
    if method.name in FORMS:
        return FORMS[method.name](method, recorder, general)
    if method.name in OBJECT_FORMS:
        return OBJECT_FORMS[method.name](method, recorder, pickled, general)
    return general
