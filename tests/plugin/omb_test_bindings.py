"""Bindings from outside the package, each faulty in one way on rank ``OMB_TEST_RANK``."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from omb_py.bindings import BoundCall, calls_of
from omb_py.bindings.buffer import BufferBinding
from omb_py.calls import Message, Step


def here(binding: BufferBinding) -> bool:
    """Whether this rank is the faulty one."""
    return binding.comm.rank == int(os.environ["OMB_TEST_RANK"])


class CorruptingBinding(BufferBinding):
    """Flips one byte of what arrives, at ``OMB_TEST_OFFSET`` from the start or the end."""

    name = "corrupting"

    def bind(self, step: Step) -> BoundCall:
        call = super().bind(step)
        received = [
            operand
            for made in calls_of(step)
            if not made.function.endswith("send")
            for operand in made.operands[-1:]
            if isinstance(operand, Message)
        ]
        if not received or not here(self):
            return call
        memory = received[-1].memory

        def corrupted() -> Any:
            result = call()
            data = bytearray(memory.read(0, memory.nbytes))
            data[int(os.environ["OMB_TEST_OFFSET"])] ^= 1
            memory.write(data if memory.adds is False else memoryview(data))
            return result

        return corrupted


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
