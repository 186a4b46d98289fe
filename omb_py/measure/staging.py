"""Additional steps of a rank when its messages are on a device.

Staging copies outgoing data to page-locked host memory and incoming data from there. The copies are
inside the timed part, as in programs whose MPI library does not support devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omb_py.benchmarks import CheckedIteration, Content, Plan
from omb_py.bindings import calls_of
from omb_py.core.calls import Call, Message, Slot, Step, Window
from omb_py.core.dataclass import replace
from omb_py.core.memory import Local, Memory, StagedMemory


def staged(plan: Plan, rank: int) -> Plan:
    """Return the plan with device messages copied through the host; others stay as they are."""
    through = Staging(rank)
    iterations = tuple(through.iteration(iteration) for iteration in plan.iterations)
    return replace(plan, iterations=iterations)


class Staging:
    """Makes the host memory of each message once."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._twins: dict[int, StagedMemory | None] = {}
        self._calls: dict[int, Call] = {}
        self._of_slot: dict[Slot, list[Call]] = {}
        # An object that is gone leaves its id to another one.
        self._kept: list[Memory | Call] = []

    def iteration(self, iteration: CheckedIteration) -> CheckedIteration:
        def through(part: Sequence[Step], only_made: bool = False) -> tuple[Step, ...]:
            return tuple(
                done for step in part for done in self._step(step, iteration.inputs, only_made)
            )

        return replace(
            iteration,
            setup=through(iteration.setup, only_made=True),
            before=through(iteration.before),
            steps=through(iteration.steps),
            after=through(iteration.after),
            teardown=through(iteration.teardown),
            before_check=through(iteration.before_check),
        )

    def _step(self, step: Step, inputs: Sequence[Content], only_made: bool) -> Iterator[Step]:
        """Yield a step on host memory, with copies of its input before and of its output after.

        If other calls start or complete a call, the copies are next to those.
        """
        made, ended = self._calls_at(step)
        for call in made if not only_made else ():
            yield from self._downloads(call, inputs)
        if isinstance(step, Call):
            yield self._on_host(step)
        elif isinstance(step, Window):
            yield Window(tuple(tuple(map(self._on_host, group)) for group in step.groups))
        else:
            yield step
        for call in ended:
            arrived = call.written(self._rank)
            twin = self._twin(arrived.memory) if arrived and arrived.memory.nbytes else None
            if twin is not None:
                yield twin.upload()

    def _calls_at(self, step: Step) -> tuple[Sequence[Call], Sequence[Call]]:
        """Return the calls whose data leaves in a step, and those whose data has come after it."""
        calls = calls_of(step)
        if not isinstance(step, Call) or step.slot is None:
            return calls, calls
        of_slot = self._of_slot.setdefault(step.slot, [])
        if step.function in ("start", "startall"):
            return of_slot, ()
        if step.function in ("wait", "waitall"):
            return (), of_slot
        if not step.operands or step.function == "mrecv":
            return calls, calls
        of_slot.append(step)
        return calls, ()

    def _downloads(self, call: Call, inputs: Sequence[Content]) -> Iterator[Local]:
        """Yield copies of a call's data, neighbouring blocks by one."""
        for message in call.messages:
            twin = self._twin(message.memory)
            if twin is None:
                continue
            base = message.memory.address
            parts = sorted(_within(message.memory, inputs))
            while parts:
                start, end = parts.pop(0)
                while parts and parts[0][0] == end:
                    end = parts.pop(0)[1]
                if end > start:
                    yield twin.download(start - base, end - start)

    def _on_host(self, call: Call) -> Call:
        if id(call) not in self._calls:
            self._kept.append(call)
            operands = (
                replace(operand, memory=self._twin(operand.memory) or operand.memory)
                if isinstance(operand, Message)
                else operand
                for operand in call.operands
            )
            self._calls[id(call)] = replace(call, operands=tuple(operands))
        return self._calls[id(call)]

    def _twin(self, memory: Memory) -> StagedMemory | None:
        if id(memory) not in self._twins:
            self._kept.append(memory)
            self._twins[id(memory)] = memory.staged()
        return self._twins[id(memory)]


def _within(memory: Memory, contents: Sequence[Content]) -> Iterator[tuple[int, int]]:
    """Yield where the parts of ``contents`` that lie in ``memory`` start and end."""
    end = memory.address + memory.nbytes
    for content in contents:
        start = content.memory.address
        if memory.address <= start and start + content.memory.nbytes <= end:
            yield start, start + content.memory.nbytes
