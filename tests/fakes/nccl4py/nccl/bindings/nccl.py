"""A stand-in for nccl4py 0.6, on the stand-in for CuPy's NCCL: names and parameters are the real
ones, which `tests/bindings/test_nccl4py.py` compares with an installed nccl4py.
"""

from __future__ import annotations

import os
from typing import Any

from cupy.cuda import nccl as cupy_nccl
from cupy.cuda.nccl import NcclError as NCCLError

__all__ = ["NCCLError"]


class UniqueId:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def __bytes__(self) -> bytes:
        return self._data

    @staticmethod
    def from_buffer(buffer: Any) -> UniqueId:
        assert not memoryview(buffer).readonly
        return UniqueId(bytes(buffer))


class Comm:
    def __init__(self, handle: Any = 0) -> None:
        self.made = handle


def get_version() -> int:
    if "OMB_FAKE_NCCL4PY_ALONE" in os.environ:
        raise RuntimeError('Failure finding "libnccl.so.2"')
    return int(cupy_nccl.get_version())


def get_unique_id() -> UniqueId:
    return UniqueId(cupy_nccl.get_unique_id())


def comm_init_rank(nranks: int, comm_id: UniqueId, rank: int) -> Comm:
    return Comm(cupy_nccl.NcclCommunicator(nranks, bytes(comm_id), rank))


def group_start() -> None:
    cupy_nccl.groupStart()


def group_end() -> None:
    cupy_nccl.groupEnd()


def send(sendbuff: int, count: int, datatype: int, peer: int, comm: Comm, stream: int) -> None:
    comm.made.send(sendbuff, count, datatype, peer, stream)


def recv(recvbuff: int, count: int, datatype: int, peer: int, comm: Comm, stream: int) -> None:
    comm.made.recv(recvbuff, count, datatype, peer, stream)


def bcast(buff: int, count: int, datatype: int, root: int, comm: Comm, stream: int) -> None:
    comm.made.bcast(buff, count, datatype, root, stream)


def all_gather(
    sendbuff: int, recvbuff: int, sendcount: int, datatype: int, comm: Comm, stream: int
) -> None:
    comm.made.allGather(sendbuff, recvbuff, sendcount, datatype, stream)


def all_reduce(
    sendbuff: int, recvbuff: int, count: int, datatype: int, op: int, comm: Comm, stream: int
) -> None:
    comm.made.allReduce(sendbuff, recvbuff, count, datatype, op, stream)


def reduce_scatter(
    sendbuff: int, recvbuff: int, recvcount: int, datatype: int, op: int, comm: Comm, stream: int
) -> None:
    comm.made.reduceScatter(sendbuff, recvbuff, recvcount, datatype, op, stream)


def reduce(
    sendbuff: int,
    recvbuff: int,
    count: int,
    datatype: int,
    op: int,
    root: int,
    comm: Comm,
    stream: int,
) -> None:
    comm.made.reduce(sendbuff, recvbuff, count, datatype, op, root, stream)
