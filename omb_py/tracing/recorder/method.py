"""What all observed methods have in common."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from omb_py.core.dataclass import dataclass
from omb_py.tracing.recorder.recorder import PythonRecorder
from omb_py.tracing.recorder.tallies import MISS, Cache, Tally, remember
from omb_py.tracing.records.layout import NOBODY, UNKNOWN_BYTES

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


class NoCommunicator:
    """In the place of a communicator, for calls that use none."""

    _number = 0


NO_COMMUNICATOR = NoCommunicator()


def meet(
    recorder: PythonRecorder, cache: Cache, routine: int, comm: Any, peer: int, nbytes: int
) -> Tally:
    """The tally of a call that no cache has: met first, or its bytes are not easy to tell.

    Arguments that are wrong have a tally that is not reported, for the call will fail.
    """
    try:
        communicator = number_of(comm, recorder)
        tally = recorder.tallies.tally(routine, communicator, max(peer, NOBODY), nbytes)
        return remember(cache, tally, communicator, peer, nbytes)
    except Exception:
        return Tally(routine, 0, NOBODY, nbytes)


def timed(method: Method, recorder: PythonRecorder) -> Callable[..., tuple[Any, Any, Any]]:
    """What calls a method, and returns its result and when the call began and ended, in ticks.

    It takes the object whose communicator the call uses, the peer in it, and the arguments of
    ``method.original``. While the call lasts, it is the recorder's `CallInProgress`.
    """
    number, original = recorder.name(method.routine), method.original
    clock, now, cache = recorder.clock, recorder.now, recorder.tallies.cache()

    def call(
        comm: Any, peer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Any, Any]:
        try:
            tally = cache[comm._number][peer][UNKNOWN_BYTES]
        except MISS:
            tally = meet(recorder, cache, number, comm, peer, UNKNOWN_BYTES)
        now.began = began = clock()
        now.call = tally
        try:
            result = original(*args, **kwargs)
        except BaseException:
            now.call = None
            raise
        ended = clock()
        now.call = None
        return result, began, ended

    return call


def peer_parameter(names: tuple[str, ...]) -> tuple[str, int]:
    """The parameter that is the peer of a call, and its default; an empty name where none is."""
    return next(((name, PEERS[name]) for name in PEERS if name in names), ("", NOBODY))


def bind_arguments(
    names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by name."""
    given = dict(zip(names, args))  # noqa: B905 - `strict` takes as long as the rest
    if kwargs:
        given.update(kwargs)
    return given


def number_of(comm: Any, recorder: PythonRecorder) -> int:
    """The number of a communicator's name, kept in observed ones."""
    try:
        number: int = comm._number
    except AttributeError:
        number = recorder.communicator(comm)
        if number:
            with suppress(TypeError):  # one that is not observed has no attributes
                keep_number(comm, number)
    return number


def keep_number(comm: Any, number: int) -> None:
    """Keep the number of a communicator's name in an observed object.

    It goes to the dictionary of an object that Cython made, where CPython 3.11 finds it four times
    faster than where an assignment puts it.
    """
    vars(comm)["_number"] = number
