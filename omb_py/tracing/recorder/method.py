"""What all observed methods have in common."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from omb_py.tracing.recorder.recorder import PythonRecorder
from omb_py.tracing.records.layout import NOBODY

Observed = Callable[..., Any]

PEERS = {"dest": NOBODY, "source": NOBODY, "target_rank": NOBODY, "root": 0}
"""Parameters that are the other side of a call, with what they are where they are not given."""


@dataclass(frozen=True)
class Method:
    """A method of mpi4py that is to be observed.

    ``adopt`` makes observed objects of those that it returns.
    """

    name: str
    routine: str
    parameters: tuple[str, ...]
    original: Callable[..., Any]
    adopt: Callable[[Any], Any]


class CollectiveHook(Protocol):
    """Called around every blocking collective call with buffers, on all ranks of it alike."""

    def before(self, routine: str, comm: Any, nbytes: int, root: int = -1) -> None:
        """The call is about to be made; ``root`` is a rank of the communicator, -1 for none."""

    def after(self, routine: str, comm: Any, nbytes: int) -> None:
        """It has been made."""

    def forget(self, comm: Any) -> None:
        """A communicator is about to be freed."""


def timed(method: Method, recorder: PythonRecorder) -> Callable[..., tuple[Any, Any, Any]]:
    """What calls a method, and returns its result and when the call began and ended, in ticks.

    Its arguments are the object whose communicator the call uses, if any, the peer in it, and those
    of ``method.original``. While the call lasts, it is the recorder's `CallInProgress`.
    """
    number, original = recorder.name(method.routine), method.original
    clock, now = recorder.clock, recorder.now

    def call(comm: Any, peer: Any, /, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        now.comm = comm
        now.peer = peer
        now.began = began = clock()
        now.routine = number
        try:
            result = original(*args, **kwargs)
        except BaseException:
            now.routine = 0
            raise
        ended = clock()
        now.routine = 0
        return result, began, ended

    return call


def peer_parameter(names: tuple[str, ...]) -> tuple[str, int]:
    """The parameter that is the peer of a call, and its default; an empty name where none is."""
    return next(((name, PEERS[name]) for name in PEERS if name in names), ("", NOBODY))


def bound(names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name."""
    given = dict(zip(names, args, strict=False))
    given.update(kwargs)
    return given


def number_of(comm: Any, recorder: PythonRecorder) -> int:
    """The number of a communicator's name, kept in observed ones."""
    try:
        number: int = comm._number
    except AttributeError:
        number = recorder.communicator(comm)
        with suppress(AttributeError):  # one that is not observed
            comm._number = number
    return number
