"""The ranks that solve one problem together, and what they have for it: arrays and bound calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from math import prod
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from omb_py.apps.runtime.phases import Phase, Phases, Timed
from omb_py.benchmarks import CheckedIteration, Content
from omb_py.bindings import BINDINGS, Binding, BoundCall, calls_of
from omb_py.buffers import Buffer
from omb_py.core.calls import IN_PLACE, Call, Form, Iteration, Message, Operand, Step, Window
from omb_py.core.datatypes import Datatype, find_types
from omb_py.core.errors import OutOfMemoryError
from omb_py.core.memory import Memory
from omb_py.core.mpi.launcher import unrecorded
from omb_py.core.options import Options
from omb_py.core.waiting import poll
from omb_py.measure import devices

if TYPE_CHECKING:
    from mpi4py import MPI

Result = TypeVar("Result")

POINT_TO_POINT = ("send", "recv", "start", "wait", "test", "probe", "local")
"""Ends of the names of functions that not all ranks call together."""


@dataclass(frozen=True, eq=False)
class Array:
    """Memory of the buffer library, and the same bytes as an array to compute with.

    ``data`` is NumPy's or CuPy's, in C order.
    """

    memory: Memory
    data: Any
    datatype: Datatype

    def message(self, counts: Sequence[int] | None = None, form: Form = "") -> Message:
        """Return this array as one side of a call: a block, or blocks of so many elements."""
        counts = (self.data.size,) if counts is None else tuple(counts)
        return Message(self.memory, self.datatype, counts, form)

    def rows(self, start: int, stop: int) -> Array:
        """Return a stretch of the first axis, not copied."""
        row = prod(self.data.shape[1:]) * self.datatype.itemsize
        part = self.memory.slice(start * row, (stop - start) * row)
        return Array(part, self.data[start:stop], self.datatype)

    def shaped(self, *shape: int) -> Array:
        """Return these elements in another shape, not copied."""
        return Array(self.memory, self.data.reshape(shape), self.datatype)


class Team:
    """Ranks of a communicator with a buffer library and a binding.

    ``xp`` is the module to compute with: NumPy, or CuPy for memory on a device. ``computing`` is a
    context whose time counts as computing. Bound calls time themselves. ``connecting`` are the
    seconds that making the communicators of this team and of its parts took.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        buffer: Buffer,
        options: Options,
        split_wait: bool = True,
        phases: Phases | None = None,
    ) -> None:
        """Make the team; collective over ``comm``.

        ``split_wait`` puts a barrier before each collective call, so that waiting for others is
        timed separately from communicating.
        """
        self.comm = comm
        self.rank: int = comm.rank
        self.ranks: int = comm.size
        self.buffer = buffer
        self.options = options
        self.xp = buffer.array_module()
        self.phases = Phases() if phases is None else phases
        self._split_wait = split_wait and self.ranks > 1
        connect = BINDINGS.load(options.binding)
        began = perf_counter()
        self.binding: Binding = connect(comm, options)
        self.connecting = perf_counter() - began
        self._wait_for_device = buffer.wait()
        self.computing: AbstractContextManager[None] = Timed(
            self.phases.seconds, Phase.COMPUTE, self._wait_for_device
        )
        self._staging: Any = None
        self._teams: list[Team] = []

    def part(self, name: str) -> AbstractContextManager[None]:
        """Return a context whose time counts as that of a part of the solution, too."""
        return Timed(self.phases.parts, name)

    def array(self, shape: int | tuple[int, ...], dtype: str | Datatype = "float32") -> Array:
        """Return a new array of the buffer library; its elements are not set.

        Raises `OutOfMemoryError` when there is not enough memory.
        """
        shape = (shape,) if isinstance(shape, int) else shape
        datatype = dtype if isinstance(dtype, Datatype) else find_types((dtype,))[0]
        try:
            memory = self.buffer.allocate(prod(shape) * datatype.itemsize, datatype)
        except OutOfMemoryError as error:
            text = str(error).removesuffix(": lower -m")
            raise OutOfMemoryError(f"{text}: choose a smaller problem") from error
        return Array(memory, memory.ndarray(datatype.dtype).reshape(shape), datatype)

    def filled(self, values: Any) -> Array:
        """Return a new array that holds the values of a NumPy array, in its shape and type."""
        array = self.array(values.shape, values.dtype.name)
        array.data[...] = self.xp.asarray(values)
        return array

    def new_message(self, datatype: Datatype, elements: int) -> Message:
        """Return a message of so many elements in new memory."""
        return self.array(elements, datatype).message()

    def in_place(self, message: Message) -> tuple[Operand, Operand]:
        """Return the operands of a call whose result replaces the data that it sends.

        Objects need no special operand: the received object is another one, written to memory
        afterwards.
        """
        return (IN_PLACE if self.binding.passes_addresses else message), message

    def on_host(self, data: Any) -> Any:
        """Return an array to compute with as a NumPy array."""
        return data.get() if hasattr(data, "get") else data

    def bind(self, *steps: Step, phase: Phase | None = None) -> BoundCall:
        """Return a callable that makes these calls, none or in order, and counts their time.

        The time counts as communicating, or as waiting for calls that only wait, unless ``phase``
        is given. Raises `UnsupportedError` when this binding, buffer and MPI library cannot do it.
        """
        steps = self._arranged(steps)
        made = [call for step in steps for call in self._made(step, phase)]
        if len(made) == 1:
            return made[0]

        def make() -> None:
            for call in made:
                call()

        return make

    def own_steps(
        self,
        call: Call,
        algorithm: str,
        new: Callable[[int], Message],
        nodes: tuple[int, ...] = (),
    ) -> tuple[Step, ...]:
        """Return an algorithm's steps instead of a collective call.

        The algorithm is one of `omb_py.benchmarks.algorithms`. ``new`` makes a message of so many
        elements, which the algorithm needs for itself. ``nodes`` has a number for the node of each
        rank, for algorithms that have to know it.
        """
        from omb_py.benchmarks.algorithms import algorithms, steps_of
        from omb_py.benchmarks.algorithms.members import Members

        everyone = Members(tuple(range(self.ranks)), self.rank, nodes)
        return tuple(steps_of(algorithms(call.function)[algorithm], call, everyone, new))

    def split(self, color: int, key: int = 0) -> Team:
        """Return the team of the ranks that give the same ``color``; collective.

        Its time counts to this team's phases.
        """
        began = perf_counter()
        comm: Any = self.comm.Split(color, key)
        team = Team(comm, self.buffer, self.options, self._split_wait, self.phases)
        self.connecting += perf_counter() - began
        self._teams.append(team)
        return team

    def release(self) -> None:
        """Give back the resources of bound calls, none of which runs again. Collective."""
        self.binding.release()
        for team in self._teams:
            team.release()

    def close(self) -> None:
        """Close the connections of this team and of its parts. Collective."""
        for team in self._teams:
            team.close()
            team.comm.Free()
        self._teams.clear()
        self.binding.close()

    def _arranged(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Return the steps, with additional ones for memory on a device.

        If ranks can only send to each other, a collective is made of such messages.
        """
        if self.binding.point_to_point:
            steps = [one for step in steps for one in self._point_to_point(step)]
        calls = [call for step in steps for call in calls_of(step)]
        messages = [message for call in calls for message in call.messages]
        if not any(message.memory.on_device for message in messages):
            if self._staging is None:
                return tuple(steps)
            # A wait has no message of its own, but brings those of the calls of its slot.
            return tuple(self._staging.iteration(CheckedIteration(tuple(steps))).steps)
        if self.options.staging:
            from omb_py.measure.staging import Staging

            self._staging = self._staging or Staging(self.rank)
            sent = (message for call in calls for message in self._sent(call))
            inputs = tuple(Content.of(self.rank, message.memory) for message in sent)
            steps = self._staging.iteration(CheckedIteration(tuple(steps), inputs=inputs)).steps
        devices.check(self.binding, [Iteration(tuple(steps))], self.options)
        assert self._wait_for_device is not None
        return (self._wait_for_device, *steps)

    def _point_to_point(self, step: Step) -> tuple[Step, ...]:
        from omb_py.benchmarks.algorithms import TABLE

        if not isinstance(step, Call) or step.function not in TABLE or not step.messages:
            return (step,)
        datatype = step.messages[-1].datatype
        new = partial(self.new_message, datatype)
        return self.own_steps(step, TABLE[step.function].default, new)

    def _sent(self, call: Call) -> list[Message]:
        """Return the messages whose memory a call may read: all but one it overwrites whole."""
        written = call.written(self.rank)
        if written is None or IN_PLACE in call.operands:
            return list(call.messages)
        whole = written.elements * written.datatype.itemsize == written.memory.nbytes
        return [message for message in call.messages if message is not written or not whole]

    def _made(self, step: Step, phase: Phase | None) -> Iterator[BoundCall]:
        """Yield one step, bound, timed and counted, after the barrier that splits off waiting."""
        bound, phases = self._bound(step), self.phases
        if self._split_wait and _collective(step):
            yield phases.timed(unrecorded()(self.binding.barrier), Phase.WAIT)
        calls = [*calls_of(step), *[Call("waitall")] * isinstance(step, Window)]
        tallies = [phases.tally(call, self.ranks) for call in calls]
        waits = isinstance(step, Call) and step.function in ("wait", "waitall")
        phase = phase or (Phase.WAIT if waits else Phase.COMMUNICATE)
        yield phases.timed(bound, phase, tallies)

    def _bound(self, step: Step) -> BoundCall:
        """Return one step, bound; what it receives is in memory when it returns."""
        binding, bound = self.binding, self.binding.bind(step)
        if binding.passes_addresses:
            return bound
        if any(map(_copied, calls_of(step))):
            return lambda: binding.deliver(step, binding.bind(step)())
        return lambda: binding.deliver(step, bound())


def _copied(call: Call) -> bool:
    """Return whether an object sent in a call is a copy made when the call was bound."""
    memories = [message.memory for message in call.messages]
    return any(memory.payload() is not memory.array for memory in memories)


def _collective(step: Step) -> bool:
    """Return whether all ranks make a step together and wait for each other in it."""
    if not isinstance(step, Call) or not step.operands or step.slot is not None:
        return False
    return not step.function.endswith(POINT_TO_POINT) and step.peer is None


SLEEP_SECONDS = 0.002
"""Between two looks whether rank 0 is done: few enough not to disturb it."""


def alone(action: Callable[[], Result], comm: MPI.Intracomm) -> Result | None:
    """Return ``action``'s result on rank 0; the others sleep until it is done. Collective."""
    try:
        return action() if comm.rank == 0 else None
    finally:
        with unrecorded():
            poll(comm.Ibarrier().Test, SLEEP_SECONDS)
