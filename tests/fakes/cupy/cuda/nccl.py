"""NCCL's calls with CuPy's signatures, done by MPI on copies of the device's memory."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

import numpy as np

available = "OMB_FAKE_NO_NCCL" not in os.environ
NCCL_SUM = 0
TYPES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
"""In the order of nccl.h."""

_group: list[Callable[[], Any]] | None = None


class NcclError(RuntimeError):
    pass


def get_version() -> int:
    return int(os.environ.get("OMB_FAKE_NCCL_VERSION", 23203))


def get_unique_id() -> bytes:
    return bytes(range(128))


def groupStart() -> None:  # noqa: N802 - CuPy's name
    global _group
    _group = []


def groupEnd() -> None:  # noqa: N802 - CuPy's name
    global _group
    started = [start() for start in _group or []]
    _group = None
    for finish in started:
        finish()


class NcclCommunicator:
    def __init__(self, ndev: int, identity: bytes, rank: int) -> None:
        from mpi4py import MPI

        if "OMB_FAKE_NCCL_REFUSES" in os.environ:
            raise NcclError("NCCL_ERROR_INVALID_USAGE: invalid usage")
        if identity != get_unique_id():
            raise TypeError("that is no identity")
        self._chosen = [os.environ.get(name) for name in ("NCCL_ALGO", "NCCL_PROTO")]
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._comm = (MPI.COMM_WORLD if ndev > 1 else MPI.COMM_SELF).Dup()
        assert (self._comm.size, self._comm.rank) == (ndev, rank)

    def allReduce(  # noqa: N802 - CuPy's name
        self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int
    ) -> None:
        assert (op, stream) == (NCCL_SUM, 4711)
        if self._chosen not in ([None, None], ["Tree", "LL"]):
            raise NcclError("NCCL_ERROR_INVALID_USAGE: invalid usage")
        result = self._get(sendbuf, count, datatype)
        self._comm.Allreduce(result.copy(), result)
        self._put(recvbuf, result)

    def reduce(
        self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, root: int, stream: int
    ) -> None:
        assert (op, stream) == (NCCL_SUM, 4711)
        result = self._get(sendbuf, count, datatype)
        self._comm.Reduce(result.copy(), result, root=root)
        if self._comm.rank == root:
            self._put(recvbuf, result)

    def reduceScatter(  # noqa: N802 - CuPy's name
        self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int, stream: int
    ) -> None:
        assert (op, stream) == (NCCL_SUM, 4711)
        data = self._get(sendbuf, recvcount * self._comm.size, datatype)
        result = np.empty(recvcount, data.dtype)
        self._comm.Reduce_scatter_block(data, result)
        self._put(recvbuf, result)

    def allGather(  # noqa: N802 - CuPy's name
        self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int
    ) -> None:
        data = self._get(sendbuf, count, datatype)
        result = np.empty(count * self._comm.size, data.dtype)
        self._comm.Allgather(data, result)
        self._put(recvbuf, result)

    def bcast(self, buff: int, count: int, datatype: int, root: int, stream: int) -> None:
        data = self._get(buff, count, datatype)
        self._comm.Bcast(data, root)
        self._put(buff, data)

    def send(self, sendbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        data = self._get(sendbuf, count, datatype)

        def start() -> Callable[[], Any]:
            return self._comm.Isend(data, peer).Wait

        self._run(start)

    def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        data = self._get(recvbuf, count, datatype)

        def start() -> Callable[[], Any]:
            request = self._comm.Irecv(data, peer)

            def finish() -> None:
                request.Wait()
                self._put(recvbuf, data)

            return finish

        self._run(start)

    def _run(self, start: Callable[[], Callable[[], Any]]) -> None:
        if _group is None:
            start()()
        else:
            _group.append(start)

    def _get(self, address: int, count: int, datatype: int) -> Any:
        data = np.empty(count, TYPES[datatype])
        self._copy(data.ctypes.data, address, data.nbytes)
        return data

    def _put(self, address: int, data: Any) -> None:
        self._copy(address, data.ctypes.data, data.nbytes)

    def _copy(self, target: int, source: int, nbytes: int) -> None:
        words = (ctypes.c_uint64(word) for word in (target, source, nbytes))
        assert self._driver.cuMemcpy(*words) == 0
