"""Sends derived datatypes through a binding and checks every byte, sent or not."""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

from omb_py.bindings import BINDINGS
from omb_py.buffers.numpy import BUFFER
from omb_py.calls import Call, Message, Round
from omb_py.datatypes import find_types
from omb_py.layout import parse_layout
from omb_py.options import Options

comm = MPI.COMM_WORLD
binding = BINDINGS.load(sys.argv[2])(comm, Options())
layout = parse_layout(sys.argv[1])
ELEMENTS = 40


def make(call: Call) -> None:
    """Make the call as the binding makes an iteration."""
    for step in binding.bound(Round((call,))).calls:
        step()
    binding.release()


def message(value: int, blocks: int = 1, form: str = "") -> tuple[Message, np.ndarray]:
    (datatype,) = find_types(["int32"])
    memory = BUFFER.allocate(4 * ELEMENTS * blocks, datatype)
    memory.array[:] = value
    counts = (ELEMENTS,) * blocks
    return Message(memory, datatype, counts, form, layout), memory.array  # type: ignore[arg-type]


def with_sent(values: list[int]) -> np.ndarray:
    """Blocks of -1 in which the elements that the layout sends are the given values."""
    blocks = np.full((len(values), ELEMENTS), -1, np.int32)
    for block, value in zip(blocks, values, strict=True):
        for start, length in layout.pieces(ELEMENTS):
            block[start : start + length] = value
    return blocks.ravel()


ranks = list(range(comm.size))

outgoing, _ = message(7)
incoming, received = message(-1)
if comm.rank == 0:
    make(Call("send", (outgoing,), peer=1))
elif comm.rank == 1:
    make(Call("recv", (incoming,), peer=0))
    assert (received == with_sent([7])).all(), received

one, _ = message(comm.rank + 1)
each, gathered = message(-1, comm.size)
make(Call("allgather", (one, each)))
assert (gathered == with_sent([rank + 1 for rank in ranks])).all(), gathered

for function, form in (("alltoall", ""), ("alltoallv", "v"), ("alltoallw", "w")):
    sent, _ = message(100 + comm.rank, comm.size, form)
    back, exchanged = message(-1, comm.size, form)
    make(Call(function, (sent, back)))
    assert (exchanged == with_sent([100 + rank for rank in ranks])).all(), (function, exchanged)

print(f"rank {comm.rank} has what it should")
