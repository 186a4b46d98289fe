"""Asserts how many bytes mpi4py's buffer specifications hold; runs on one rank."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from mpi4py import MPI

from omb_py.tracing.recorder.message_sizes import COLLECTIVES, several_types_bytes, spec_bytes
from omb_py.tracing.records.layout import UNKNOWN_BYTES

ten = array("d", range(10))
numbers = np.zeros(10)
EXPECTED = [
    (None, 0),
    (b"12345", 5),
    (bytearray(7), 7),
    (ten, 80),
    (memoryview(ten), 80),
    (numbers, 80),
    (numbers[:3], 24),
    ([ten, MPI.DOUBLE], 80),
    ([ten, "d"], 80),
    ((ten, 3, MPI.DOUBLE), 24),
    ([ten, 3, "DOUBLE"], 24),
    ([ten, 4], 32),
    ([numbers, (3, 1), MPI.DOUBLE], 24),
    ([ten, [1, 2, 3], MPI.DOUBLE], 48),
    ([ten, ([1, 2], [0, 5]), MPI.DOUBLE], 24),
    ([ten, (np.array([1, 2]), None), MPI.DOUBLE], 24),
    ([ten, [1, 2], [0, 5], MPI.DOUBLE], 24),
    ([numbers, MPI.DOUBLE.Create_contiguous(5)], 80),
    (MPI.IN_PLACE, 0),
    (MPI.BOTTOM, 0),
    (object(), UNKNOWN_BYTES),
    ([object(), object(), object()], UNKNOWN_BYTES),
]
for spec, nbytes in EXPECTED:
    assert spec_bytes(spec) == nbytes, (spec, spec_bytes(spec), nbytes)

types = [MPI.DOUBLE, MPI.BYTE]
assert several_types_bytes([ten, [2, 3], [0, 16], types]) == 19
assert several_types_bytes([ten, ([2, 3], [0, 16]), types]) == 19
assert several_types_bytes("nonsense") == UNKNOWN_BYTES


class Four:
    """A communicator of four ranks, as far as sizes ask for it."""

    outdegree = 2

    def Get_size(self) -> int:  # noqa: N802
        return 4

    def Is_inter(self) -> bool:  # noqa: N802
        return False


eight, forty = np.zeros(8), np.zeros(40)
EXCHANGES: list[tuple[str, dict[str, Any], int]] = [
    ("allgather", {"sendbuf": ten, "recvbuf": forty}, 80),
    ("allgather", {"sendbuf": MPI.IN_PLACE, "recvbuf": forty}, 80),
    ("allreduce", {"sendbuf": MPI.IN_PLACE, "recvbuf": ten}, 80),
    ("alltoall", {"sendbuf": forty, "recvbuf": forty}, 80),
    ("alltoallv", {"sendbuf": [forty, [1, 2, 3, 4], MPI.DOUBLE], "recvbuf": forty}, 20),
    ("bcast", {"buf": ten, "root": 0}, 80),
    ("gather", {"sendbuf": ten, "recvbuf": None}, 80),
    ("gather", {"sendbuf": MPI.IN_PLACE, "recvbuf": forty}, 80),
    ("reduce_scatter", {"sendbuf": eight, "recvbuf": eight, "recvcounts": [2] * 4}, 64),
    ("reduce_scatter_block", {"sendbuf": eight, "recvbuf": np.zeros(2)}, 16),
    ("scatter", {"sendbuf": forty, "recvbuf": MPI.IN_PLACE}, 80),
    ("scatter", {"sendbuf": None, "recvbuf": ten}, 80),
    ("neighbor_alltoall", {"sendbuf": eight, "recvbuf": eight}, 32),
    ("barrier", {}, 0),
]
for name, given, nbytes in EXCHANGES:
    found = COLLECTIVES[name](Four(), given)
    assert found == nbytes, (name, found, nbytes)
print("all as expected")
