"""Sends derived datatypes through bindings and checks every byte, sent or not.

``layouts.py BINDING[,BINDING ...] LAYOUT ...``: each rank prints a line for each of both.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
from mpi4py import MPI

from omb_py.bindings import BINDINGS, Binding
from omb_py.buffers.numpy import BUFFER
from omb_py.core.calls import Call, Iteration, Message
from omb_py.core.datatypes import Layout, find_types, parse_layout
from omb_py.core.options import Options

comm = MPI.COMM_WORLD
ELEMENTS = 40


class Checked:
    """Calls of a binding with messages of a layout; ``wrong`` has those whose data was."""

    def __init__(self, binding: Binding, layout: Layout) -> None:
        self._binding = binding
        self._layout = layout
        self.wrong: list[str] = []

    def send(self) -> None:
        """To the next rank, of two."""
        outgoing, _ = self._message(7)
        incoming, received = self._message(-1)
        if comm.rank == 0:
            self._make(Call("send", (outgoing,), peer=1))
        elif comm.rank == 1:
            self._make(Call("recv", (incoming,), peer=0))
            self._check("recv", received, [7])

    def allgather(self) -> None:
        one, _ = self._message(comm.rank + 1)
        each, gathered = self._message(-1, comm.size)
        self._make(Call("allgather", (one, each)))
        self._check("allgather", gathered, [rank + 1 for rank in range(comm.size)])

    def alltoall(self, form: str) -> None:
        sent, _ = self._message(100 + comm.rank, comm.size, form)
        back, exchanged = self._message(-1, comm.size, form)
        self._make(Call(f"alltoall{form}", (sent, back)))
        self._check(f"alltoall{form}", exchanged, [100 + rank for rank in range(comm.size)])

    def _make(self, call: Call) -> None:
        """Make the call as the binding makes an iteration."""
        for step in self._binding.bound(Iteration((call,))).calls:
            step()
        self._binding.release()

    def _message(self, value: int, blocks: int = 1, form: str = "") -> tuple[Message, np.ndarray]:
        (datatype,) = find_types(["int32"])
        memory = BUFFER.allocate(4 * ELEMENTS * blocks, datatype)
        memory.array[:] = value
        counts = (ELEMENTS,) * blocks
        return Message(memory, datatype, counts, form, self._layout), memory.array  # type: ignore[arg-type]

    def _check(self, name: str, found: np.ndarray, values: list[int]) -> None:
        """Blocks have the given values in the elements that the layout sends, elsewhere -1."""
        blocks = np.full((len(values), ELEMENTS), -1, np.int32)
        for block, value in zip(blocks, values, strict=True):
            for start, length in self._layout.pieces(ELEMENTS):
                block[start : start + length] = value
        if (found != blocks.ravel()).any():
            self.wrong.append(f"{name}: {found}")


bindings, *layouts = sys.argv[1:]
for binding, layout in product(bindings.split(","), layouts):
    checked = Checked(BINDINGS.load(binding)(comm, Options()), parse_layout(layout))
    checked.send()
    checked.allgather()
    for form in ("", "v", "w"):
        checked.alltoall(form)
    print(f"{binding} {layout} on rank {comm.rank}: {checked.wrong or 'right'}", flush=True)
