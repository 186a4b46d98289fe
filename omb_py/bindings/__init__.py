"""HOW MPI is called: one module per way.

A member is a module of this folder that defines ``BINDING``, a subclass of `Binding`, or an entry
point of group ``omb_py.bindings`` that names one. Modules whose names begin with an underscore
serve the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from omb_py.buffers import Local
from omb_py.calls import Call, Step, Window
from omb_py.errors import UnsupportedError
from omb_py.loop import Loop, Pace, PythonLoop
from omb_py.options import Options
from omb_py.registry import Registry

if TYPE_CHECKING:
    from mpi4py import MPI

BoundCall: TypeAlias = Callable[[], Any]
"""A call with everything looked up beforehand: run it, and the message moves."""


class Binding(ABC):
    """A way of calling MPI, on one communicator."""

    name: str
    passes_addresses = True
    """Whether MPI gets the address of an array, rather than of an object made from it."""

    def __init__(self, comm: MPI.Intracomm, options: Options) -> None:
        """Made on all ranks together, so that it may communicate."""
        self.comm = comm
        self.options = options

    @staticmethod  # noqa: B027 - most need nothing
    def check() -> None:
        """Raise `UnsupportedError` when something that this way of calling needs is not here."""

    @abstractmethod
    def bind(self, step: Step) -> BoundCall:
        """A bound call that does what ``step`` describes.

        Raises `UnsupportedError` when this way of calling has no such function.
        """

    def loop(self, exchanges: Sequence[Sequence[Step]], pace: Pace) -> Loop:
        """The loop that runs these steps, one sequence of them for each kind of iteration.

        Raises `UnsupportedError` as `bind` does.
        """
        return PythonLoop(
            [tuple(self.bind(step) for step in steps) for steps in exchanges],
            self.comm.Barrier if pace.barrier else None,
            pace.start.wait if pace.start else None,
        )

    def functions(self, step: Step) -> tuple[str, ...]:
        """MPI's names of the functions that a step calls, in lower case."""
        return tuple(call.function for call in calls_of(step))

    def deliver(self, step: Step, result: Any) -> None:  # noqa: B027 - most write to memory
        """Put what a bound call returned into the memory that ``step`` receives in.

        A binding whose calls write there themselves has nothing to do.
        """

    def release(self) -> None:  # noqa: B027 - most hold nothing
        """Give back what bound calls hold; none of them is run again."""

    def describe(self) -> dict[str, str]:
        """What a reader of the results needs to know of this way of calling."""
        return {}


class MethodBinding(Binding):
    """Calls methods of mpi4py's communicator, one after the other."""

    def bind(self, step: Step) -> BoundCall:
        if isinstance(step, Local):
            return step.run
        if isinstance(step, Call):
            return self.bind_call(step)
        return partial(_run_window, [self.start(group) for group in step.groups], self.wait_all)

    def start(self, calls: Sequence[Call]) -> Callable[[], list[Any]]:
        """A callable that starts non-blocking calls and returns their requests."""
        bound = [self.bind_call(call) for call in calls]
        return lambda: [start() for start in bound]

    @abstractmethod
    def bind_call(self, call: Call) -> BoundCall:
        """A bound call for one MPI function; a non-blocking one returns its request."""

    @abstractmethod
    def wait_all(self, requests: Sequence[Any]) -> Any:
        """Complete requests, and return what arrived if the binding returns objects."""

    def method(self, name: str) -> Any:
        """The communicator's method ``name``; raises `UnsupportedError` when it has none."""
        try:
            return getattr(self.comm, name)
        except AttributeError:
            raise UnsupportedError(
                f"binding {self.name} cannot do it: mpi4py has no {name}"
            ) from None


def _run_window(
    groups: list[Callable[[], list[Any]]], wait_all: Callable[[Sequence[Any]], Any]
) -> list[Any]:
    posted = [start() for start in groups]
    posted.reverse()
    return [wait_all(requests) for requests in posted]


def calls_of(step: Step) -> tuple[Call, ...]:
    """The calls of a step, a window's in the order in which their results come."""
    if isinstance(step, Window):
        return tuple(call for group in reversed(step.groups) for call in group)
    return (step,) if isinstance(step, Call) else ()


BINDINGS = Registry(
    kind="binding", package="omb_py.bindings", attribute="BINDING", group="omb_py.bindings"
)
