"""Common calls, given their arguments in all ways that mpi4py takes; one rank, to itself.

Of calls with ``buffers``, or with ``objects``.
"""

import sys
from typing import Any

import numpy as np
from mpi4py import MPI

NOBODY, ANY = MPI.PROC_NULL, MPI.ANY_SOURCE
comm = MPI.COMM_WORLD
me = comm.Get_rank()
sent, got = np.arange(10, dtype="d"), np.zeros(10)
BUFFERS = (
    (sent, got),
    (b"abcdef", bytearray(6)),
    ([sent, 4, MPI.DOUBLE], [got, 4, MPI.DOUBLE]),
    ([sent, MPI.DOUBLE], [got, MPI.DOUBLE]),
    (sent[:3], got),
    (memoryview(b"xyz"), memoryview(bytearray(3))),
)


def from_anywhere(tag: int) -> tuple[dict[str, Any], ...]:
    """Ways to say from whom to receive."""
    return {"source": me}, {"source": ANY, "tag": tag}, {}


def with_buffers() -> None:
    for outgoing, incoming in BUFFERS:
        for where in from_anywhere(0):
            request = comm.Isend(outgoing, me)
            comm.Recv(incoming, **where)
            request.Wait()
            request = comm.Irecv(incoming, **where)
            comm.Send(outgoing, dest=me, tag=0)
            request.Wait(MPI.Status())
        comm.Recv(incoming, NOBODY)
        comm.Recv(incoming, NOBODY, 7, MPI.Status())
        comm.Send(outgoing, NOBODY)
        comm.Isend(outgoing, NOBODY).Wait()
        comm.Irecv(incoming, source=NOBODY).Wait()
        comm.Sendrecv(outgoing, me, 1, incoming, me, 1)
        comm.Sendrecv(outgoing, me, recvbuf=incoming)
        comm.Sendrecv(outgoing, NOBODY, 1, incoming, NOBODY, 1)
        comm.Sendrecv(outgoing, me, 1, incoming, me, 1, MPI.Status())
        comm.Bcast(outgoing if me == 0 else incoming, 0)
        comm.Bcast(incoming)
    persistent()
    partitioned()
    for given, result in ((sent, got), (MPI.IN_PLACE, got), ([sent, MPI.DOUBLE], got)):
        comm.Allreduce(given, result)
        comm.Allreduce(given, result, op=MPI.MAX)
        comm.Scan(given, result)
    comm.Barrier()


def persistent() -> None:
    requests: list[Any] = [comm.Recv_init(got, me, 3), comm.Send_init(sent, me, 3)]
    requests += [comm.Recv_init(got, NOBODY), comm.Ssend_init([sent, 3, MPI.DOUBLE], NOBODY)]
    requests += [comm.Recv_init(got, ANY, 4), comm.Send_init([sent, MPI.DOUBLE], me, 4)]
    requests.append(comm.Bcast_init(sent, 0))
    for _ in range(3):
        MPI.Prequest.Startall(requests)
        MPI.Prequest.Waitall(requests)
    for request in requests:
        request.Start()
    MPI.Prequest.Waitall(requests)
    for request in requests:
        request.Free()


def partitioned() -> None:
    for outgoing, incoming in ((sent, got), ([sent, 2, MPI.DOUBLE], [got, 2, MPI.DOUBLE])):
        requests = [comm.Psend_init(outgoing, 5, me, 8), comm.Precv_init(incoming, 5, me, 8)]
        MPI.Prequest.Startall(requests)
        requests[0].Pready_range(0, 4)
        MPI.Prequest.Waitall(requests)
        for request in requests:
            request.Free()


def with_objects() -> None:
    for value in (None, 4711, "text" * 50, sent):
        for where in from_anywhere(5):
            request = comm.isend(value, me, 5)
            received = comm.recv(**where)
            same(received, value)
            request.wait()
        comm.recv(None, NOBODY)
        same(comm.sendrecv(value, me, 3, source=me), value)
        same(comm.sendrecv(value, me, 3, None, me, 3, MPI.Status()), value)
        same(comm.sendrecv(value, NOBODY, 3, None, NOBODY, 3), None)
        comm.send(value, NOBODY)
        request = comm.irecv(source=me, tag=6)
        comm.send(value, tag=6, dest=me)
        same(request.wait(), value)
        status = MPI.Status()
        request = comm.isend(value, dest=me, tag=9)
        comm.recv(status=status)
        assert (status.source, status.tag) == (me, 9)
        request.wait(status=MPI.Status())
    comm.barrier()


def same(received: Any, value: Any) -> None:
    assert received is value is None or np.array_equal(received, value)


{"buffers": with_buffers, "objects": with_objects}[sys.argv[1]]()
