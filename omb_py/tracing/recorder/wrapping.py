"""What all observed methods have in common."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from omb_py.tracing.recorder.recorder import PythonRecorder

Observed = Callable[..., Any]


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
