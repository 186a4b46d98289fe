"""mpi4py's upper-case methods given addresses: arrays are looked up once, not in every call."""

from __future__ import annotations

from typing import Any

from mpi4py import MPI

from omb_py.bindings.buffer import BufferBinding
from omb_py.calls import Message, Operand


class PreboundBinding(BufferBinding):
    """``comm.Send([MPI.buffer, count, MPI.BYTE], peer, tag)``."""

    name = "prebound"

    def specification(self, operand: Operand) -> Any:
        specification = super().specification(operand)
        if isinstance(operand, Message):
            specification[0] = MPI.buffer.frombuffer(operand.memory.array)
        return specification


BINDING = PreboundBinding
