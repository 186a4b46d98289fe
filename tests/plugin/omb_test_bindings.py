"""Bindings from outside the package, each faulty in one way on rank ``OMB_TEST_RANK`` (1)."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from array import array
from collections.abc import Sequence
from dataclasses import replace

from mpi4py import MPI

from omb_py.benchmarks import CheckedIteration
from omb_py.bindings import BoundCall, BoundIteration, calls_of
from omb_py.bindings.buffer import BufferBinding
from omb_py.core.calls import Call, Iteration, Message, Slot, Step
from omb_py.core.calls.loop import Loop, Pace
from omb_py.core.errors import UsageError
from omb_py.core.memory import Memory
from omb_py.core.mpi.watchdog import descendants
from omb_py.core.options import Options


def here(binding: BufferBinding) -> bool:
    """Whether this rank is the faulty one."""
    return binding.comm.rank == int(os.environ.get("OMB_TEST_RANK", "1"))


class CorruptingBinding(BufferBinding):
    """Flips one bit of what arrives on rank ``OMB_TEST_RANK`` (1), in byte ``OMB_TEST_OFFSET`` (0).

    It does so when nothing more can arrive: after the steps before a check, or where
    there are none after the iteration itself.
    """

    name = "corrupting"
    _last: Step | None = None
    _memory: Memory

    def bound(self, iteration: Iteration) -> BoundIteration:
        self._last = None
        bound = super().bound(iteration)
        if not isinstance(iteration, CheckedIteration) or not iteration.outputs or not here(self):
            return bound
        memory = iteration.outputs[-1].memory
        if iteration.before_check:
            self._last, self._memory = iteration.before_check[-1], memory
            return bound
        return replace(bound, after=(*bound.after, lambda: flip(memory)))

    def bind(self, step: Step) -> BoundCall:
        call = super().bind(step)
        if step is not self._last:
            return call
        memory = self._memory

        def settled() -> None:
            call()
            flip(memory)

        return settled


def flip(memory: Memory) -> None:
    """Change one bit, where there is any."""
    data = bytearray(memory.read(0, memory.nbytes))
    if not data:
        return
    data[int(os.environ.get("OMB_TEST_OFFSET", "0"))] ^= 1
    memory.write(data if memory.adds is False else memoryview(data))


class FailingLater(BufferBinding):
    """Does ``fault`` on one rank as soon as a message of 8 bytes is bound."""

    def bind(self, step: Step) -> BoundCall:
        sizes = [
            operand.memory.nbytes
            for call in calls_of(step)
            for operand in call.operands
            if isinstance(operand, Message)
        ]
        call = super().bind(step)
        return self.fault if here(self) and 8 in sizes else call

    def fault(self) -> None:
        raise NotImplementedError


class RaisingBinding(FailingLater):
    name = "raising"

    def fault(self) -> None:
        raise RuntimeError("the network is\non fire")


class KilledBinding(FailingLater):
    name = "killed"

    def fault(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class HangingBinding(FailingLater):
    name = "hanging"

    def fault(self) -> None:
        time.sleep(60)


class RefusingBinding(BufferBinding):
    """Refuses its options, as if a file were not there, on one rank, or on ``all``."""

    name = "refusing"

    def __init__(self, comm: MPI.Intracomm, options: Options) -> None:
        super().__init__(comm, options)
        if os.environ["OMB_TEST_RANK"] == "all" or here(self):
            raise UsageError("there is no file here: make one")


class UnwatchedBinding(FailingLater):
    """Kills what its rank has started: the process that watches ``--timeout``."""

    name = "unwatched"

    def fault(self) -> None:
        for child in descendants(os.getpid()):
            os.kill(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):  # until its end of the pipe is closed
                os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)


class FillingBinding(FailingLater):
    """Fills the disk of the current folder, and ends without a word."""

    name = "filling"

    def fault(self) -> None:
        with contextlib.suppress(OSError), open("filler", "wb", buffering=0) as file:
            while file.write(bytes(1024)):
                pass
        os._exit(1)


class LateBinding(BufferBinding):
    """Starts each iteration 20 ms later than the other ranks, before its own clock is read."""

    name = "late"

    def bound(self, iteration: Iteration) -> BoundIteration:
        bound = super().bound(iteration)
        if not here(self):
            return bound
        return replace(bound, before=(*bound.before, lambda: time.sleep(0.02)))


class SlowBinding(BufferBinding):
    """Takes a millisecond longer for each call, on every rank."""

    name = "slow"

    def bind(self, step: Step) -> BoundCall:
        call = super().bind(step)

        def slowly() -> None:
            time.sleep(1e-3)
            call()

        return slowly


class SteppingLoop(Loop):
    """Runs another loop, and steps its clock back by a second in every iteration."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def run(self, first: int, seconds: array[float]) -> None:
        self._loop.run(first, seconds)
        for index, value in enumerate(seconds):
            seconds[index] = value - 1


class SteppingBinding(BufferBinding):
    name = "stepping"

    def loop(self, iterations: Sequence[Iteration], pace: Pace) -> Loop:
        return SteppingLoop(super().loop(iterations, pace))


class FlakyBinding(FailingLater):
    """Fails as long as the file that ``OMB_TEST_FLAG`` names is not there, and makes it."""

    name = "flaky"

    def bind(self, step: Step) -> BoundCall:
        call = BufferBinding.bind(self, step)
        if super().bind(step) != self.fault:
            return call

        def first_fail() -> None:
            self.fault()
            call()

        return first_fail

    def fault(self) -> None:
        flag = os.environ["OMB_TEST_FLAG"]
        if not os.path.exists(flag):
            open(flag, "x").close()
            raise RuntimeError("not this time")


class WrongBinding(BufferBinding):
    """Changes the sign and the size of the first element of what arrives."""

    name = "wrong"

    def __init__(self, comm: MPI.Intracomm, options: Options) -> None:
        super().__init__(comm, options)
        self._posted: dict[Slot, list[Message]] = {}

    def bind(self, step: Step) -> BoundCall:
        call = super().bind(step)
        written = [one.written(self.comm.rank) for one in calls_of(step)]
        arriving = [message for message in written if message and message.memory.nbytes]
        if isinstance(step, Call) and step.slot is not None:
            posted = self._posted.setdefault(step.slot, [])
            posted += arriving
            arriving = posted if step.function == "waitall" else []
        if not here(self) or not arriving:
            return call

        def wrong() -> None:
            call()
            for message in arriving:
                size = message.datatype.itemsize
                data = bytearray(message.memory.read(0, message.memory.nbytes))
                data[size - 1] ^= 0xC0
                message.memory.write(data if not message.memory.adds else memoryview(data))

        return wrong
