"""HOW MPI is called: one module per binding.

A member is a module of this folder that defines ``BINDING``, a subclass of `Binding`, or an entry
point of group ``omb_py.bindings`` that names one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from omb_py.buffers import on_device
from omb_py.core.calls import Call, Iteration, Slot, Step, Window
from omb_py.core.calls.loop import Calls, Loop, Pace, PythonLoop, StartedLoop
from omb_py.core.dataclass import dataclass
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import OmbError, UnsupportedError
from omb_py.core.job.by_mpi import job_of
from omb_py.core.memory import Local
from omb_py.core.options import Options
from omb_py.core.registry import Registry

if TYPE_CHECKING:
    from mpi4py import MPI

BoundCall: TypeAlias = Callable[[], Any]
"""A call with everything looked up beforehand: run it, and the message moves."""

Start: TypeAlias = Callable[[], Sequence[Any] | None]
"""A callable that starts a step's work and returns what is to be waited for."""


@dataclass(frozen=True)
class BoundIteration:
    """An `Iteration` of bound calls, set up."""

    calls: Calls
    before: Calls = ()
    after: Calls = ()


class Binding(ABC):
    """A way to call MPI on one communicator: it makes bound calls of a benchmark's descriptions."""

    name: str
    passes_addresses = True
    """True if MPI gets the address of an array, rather than of an object made from it."""
    serves_threads = True
    """True if a thread can call while another waits for a message."""
    in_place_is_alias = False
    """True if a call is in place, as in NCCL, where both its operands are the same memory."""

    needs_mpi = True
    """True if the binding sends by MPI, so that ranks cannot start without it."""

    point_to_point = False
    """True if it has messages between two ranks only, so that collectives are made of them."""

    cannot_add: frozenset[str] = frozenset()
    """NumPy's names of element types that its reductions lack."""

    own_sums: frozenset[str] = frozenset()
    """Codes of elements that MPI libraries may lack, and that own algorithms add by NumPy."""

    own_options: tuple[str, ...] = ()
    """Fields of `Options` that only this binding, and others that name them, use."""

    def __init__(self, comm: Any, options: Options) -> None:
        """Make the binding on all ranks together, so that it may communicate.

        ``comm`` is mpi4py's communicator of them, or the `Job` if it was started without MPI.
        """
        self.comm: MPI.Intracomm = comm
        self.options = options
        self.slots: dict[Slot, Any] = {}
        """Objects that calls have left in slots; see `held`."""
        self._teardown: list[BoundCall] = []

    @property
    def barrier(self) -> BoundCall:
        """The call by which ranks wait for each other between iterations, outside measured time."""
        return job_of(self.comm).barrier if not self.needs_mpi else self.comm.Barrier

    @staticmethod
    def check() -> str | None:
        """Return the versions of the packages that this binding needs, if it needs any.

        Raises `MissingError` or `UnsupportedError` when something that it needs is not here.
        """
        return None

    @abstractmethod
    def bind(self, step: Step) -> BoundCall:
        """Return a bound call that does what ``step`` describes.

        Raises `UnsupportedError` if this binding lacks the function.
        """

    def arranged(self, iteration: Iteration) -> Iteration:
        """Return the iteration as this binding makes it; most leave it as it is."""
        return iteration

    def set_up(self, iteration: Iteration) -> None:
        """Make the setup of an iteration, before the first one; `release` makes its teardown.

        Raises `UnsupportedError` if the MPI library lacks a function.
        """
        for step in iteration.setup:
            try:
                self.bind(step)()
            except NotImplementedError:
                name = calls_of(step)[0].function
                raise UnsupportedError(
                    f"this MPI library lacks MPI_{name.capitalize()} of MPI 4: use one that has it"
                ) from None
        self._teardown += [self.bind(step) for step in iteration.teardown]

    def bound(self, iteration: Iteration) -> BoundIteration:
        """Return one iteration as bound calls, set up; raises `UnsupportedError` as `bind` does."""
        iteration = self.arranged(iteration)
        self.set_up(iteration)
        parts = (iteration.steps, iteration.before, iteration.after)
        return BoundIteration(*(tuple(self.bind(step) for step in steps) for steps in parts))

    def loop(self, iterations: Sequence[Iteration], pace: Pace) -> Loop:
        """Return the loop that runs these iterations in turn.

        Raises `UnsupportedError` as `bind` does.
        """
        bound = [self.bound(iteration) for iteration in iterations]
        return PythonLoop(
            [iteration.calls for iteration in bound],
            self.barrier if pace.barrier else None,
            pace.start.wait if pace.start else None,
            [(iteration.before, iteration.after) for iteration in bound],
        )

    def functions(self, iteration: Iteration) -> tuple[str, ...]:
        """Return MPI's names of the functions that an iteration calls, in lower case."""
        steps = self.arranged(iteration).everything
        return tuple(call.function for step in steps for call in calls_of(step))

    def deliver(self, step: Step, result: Any) -> None:  # noqa: B027 - most write to memory
        """Copy the result of a bound call into the memory that ``step`` receives in.

        In a binding whose calls write there themselves this does nothing.
        """

    def local_step(self, call: Call, rank: int) -> BoundCall | None:
        """Return a call made without MPI, None for all other calls: an addition, a copy to itself,
        or a barrier of the job."""
        if call.function == "reduce_local":
            other, total = call.messages
            import numpy as np

            dtype = total.datatype.dtype
            addend, result = other.memory.ndarray(dtype), total.memory.ndarray(dtype)
            return partial(np.add, result, addend, result)
        if call.function == "sendrecv" and call.values[0] == call.values[2] == rank:
            outgoing, incoming = (message.memory.view() for message in call.messages)
            return partial(incoming.__setitem__, slice(None), outgoing)
        return self.barrier if call.function == "barrier" else None

    def check_sum(self, datatype: Datatype, algorithms: Sequence[str] = ()) -> None:
        """Raise `UnsupportedError` for elements that reductions of this binding cannot add.

        ``algorithms`` are own ones of the benchmark that can add them by NumPy.
        """
        if datatype.moved_as or datatype.dtype in self.cannot_add:
            raise UnsupportedError(
                f"binding {self.name} cannot add {datatype.name}: choose another -T"
            )

    def held(self, call: Call) -> list[Any]:
        """Return the objects in a call's slot, None for an empty slot."""
        assert call.slot is not None
        objects: list[Any] = self.slots.setdefault(call.slot, [None] * call.slot.count)
        return objects

    def kept(self, call: Call, bound: BoundCall) -> BoundCall:
        """Return the bound call of ``call``, whose result goes to its slot if it has one."""
        return bound if call.slot is None else partial(_keep, bound, self.held(call), call.index)

    def lacks(self, function: str) -> str:
        """Return the sentence for a function that a binding of messages between two ranks lacks."""
        return (
            f"binding {self.name} has no {function}, only send, recv, isend, irecv, sendrecv and "
            "their waits: use --binding buffer"
        )

    def release(self) -> None:
        """Give back the resources of bound calls, none of which runs again."""
        for call in self._teardown:
            call()
        self._teardown.clear()
        self.slots.clear()

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Close the resources opened at the start; no call follows. Collective."""

    def describe(self) -> dict[str, str]:
        """Return the metadata of results about this binding, by key."""
        return {}


class MethodBinding(Binding):
    """Calls methods of mpi4py's communicator, one after the other.

    ``instead`` is the binding to use for a function without a method of mpi4py.
    """

    instead = "buffer"

    def bind(self, step: Step) -> BoundCall:
        if isinstance(step, Local):
            return step.run
        if isinstance(step, Call):
            return self.bind_call(step)
        return partial(_run_window, [self.start(group) for group in step.groups], self.wait_all)

    def start(self, calls: Sequence[Call]) -> Callable[[], list[Any]]:
        """Return a callable that starts non-blocking calls and returns their requests."""
        bound = [self.bind_call(call) for call in calls]
        return lambda: [start() for start in bound]

    @abstractmethod
    def bind_call(self, call: Call) -> BoundCall:
        """Return a bound call for one MPI function; a non-blocking one returns its request."""

    @abstractmethod
    def wait_all(self, requests: Sequence[Any]) -> Any:
        """Complete requests, and return what arrived if the binding returns objects."""

    def method(self, name: str, on: Any = None) -> Any:
        """Return the method ``name`` of an MPI object, by default the communicator.

        Raises `UnsupportedError` when it has none.
        """
        try:
            return getattr(self.comm if on is None else on, name)
        except AttributeError:
            raise UnsupportedError(
                f"binding {self.name} has no {name.lower()}, which mpi4py lacks: use --binding "
                f"{self.instead}"
            ) from None


class StartedBinding(Binding):
    """Starts the work of each step and waits for it: the loop keeps both times.

    ``wait_for_device`` waits for a device; None if the work is not on one.
    """

    serves_threads = False
    wait_for_device: BoundCall | None = None
    loop_of: Callable[..., Loop] = StartedLoop
    """Makes the loop of what starts the steps, with the other arguments of `StartedLoop`."""

    @abstractmethod
    def started(self, step: Step) -> tuple[Sequence[BoundCall], Start]:
        """Return what comes before a step outside of the time, and what starts the step."""

    def bind(self, step: Step) -> BoundCall:
        copies, start = self.started(step)
        return partial(complete, copies, start, self.wait_for_device)

    def bound(self, iteration: Iteration) -> BoundIteration:
        starts, before, after = self._parts_of(iteration)
        calls = tuple(partial(complete, (), start, self.wait_for_device) for start in starts)
        return BoundIteration(calls, before, after)

    def loop(self, iterations: Sequence[Iteration], pace: Pace) -> Loop:
        parts = [self._parts_of(iteration) for iteration in iterations]
        return self.loop_of(
            [starts for starts, _, _ in parts],
            self.barrier if pace.barrier else None,
            pace.start.wait if pace.start else None,
            [(before, after) for _, before, after in parts],
        )

    def _parts_of(self, iteration: Iteration) -> tuple[tuple[Start, ...], Calls, Calls]:
        """Return what starts an iteration's steps, and the calls before and after them; set up."""
        self.set_up(iteration)
        started = [self.started(step) for step in iteration.steps]
        before = [self.bind(step) for step in iteration.before]
        before += [copy for copies, _ in started for copy in copies]
        starts = tuple(start for _, start in started)
        return starts, tuple(before), tuple(map(self.bind, iteration.after))


def complete(
    copies: Sequence[BoundCall], start: Start, wait_for_device: BoundCall | None
) -> Sequence[Any]:
    """Make one step, outside of a timing loop, and return the works that it waited for.

    ``copies`` bring the data where the step takes it from, ``start`` starts the step's works, each
    with a method ``wait``, and ``wait_for_device`` waits for a device; None if there is none.
    """
    for copy in copies:
        copy()
    works = start() or ()
    for work in works:
        work.wait()
    if wait_for_device is not None:
        wait_for_device()
    return works


def _keep(bound: BoundCall, objects: list[Any], index: int) -> None:
    objects[index] = bound()


def waited_for(call: Call) -> slice:
    """Return the index of the objects of its slot that a ``wait`` or ``waitall`` takes."""
    return slice(None) if call.function == "waitall" else slice(call.index, call.index + 1)


def _run_window(
    groups: list[Callable[[], list[Any]]], wait_all: Callable[[Sequence[Any]], Any]
) -> list[Any]:
    posted = [start() for start in groups]
    posted.reverse()
    return [wait_all(requests) for requests in posted]


def calls_of(step: Step) -> tuple[Call, ...]:
    """Return the calls of a step, a window's in the order in which their results come."""
    if isinstance(step, Window):
        return tuple(call for group in reversed(step.groups) for call in group)
    return (step,) if isinstance(step, Call) else ()


def torch_backend(options: Options) -> str:
    """Return the backend of binding torch, which need not be loaded."""
    on_devices = not options.staging and on_device(options.buffer)
    return options.backend or ("nccl" if on_devices else "gloo")


BINDINGS = Registry(
    kind="binding", package="omb_py.bindings", attribute="BINDING", group="omb_py.bindings"
)

BEFORE_MPI = "ucxx"
"""The binding with a UCX of its own. An MPI library that was loaded before with an older one leaves
it without functions that it needs; the other order suits both."""


def load_before_mpi(names: Sequence[str]) -> None:
    """Load what has to be before MPI; what fails here fails again where it is used."""
    if BEFORE_MPI in names:
        with suppress(OmbError):
            BINDINGS.load(BEFORE_MPI)
