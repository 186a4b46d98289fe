"""mpi4py's upper-case methods given addresses: arrays are looked up once, not in every call."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from omb_py.bindings.buffer import BufferBinding
from omb_py.core.calls import Message


class PreboundBinding(BufferBinding):
    """Calls such as ``comm.Send([MPI.buffer, count, MPI.BYTE], peer, tag)``."""

    name = "prebound"

    def describe_message(self, message: Message, sent: bool = False) -> Any:
        _, *rest = super().describe_message(message)
        return [MPI.buffer.frombuffer(message.memory.array), *rest]


BINDING = PreboundBinding
