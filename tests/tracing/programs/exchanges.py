"""Messages of every kind around a ring, in phases: 12 from each rank, and two to rank 0."""

from __future__ import annotations

from array import array

from mpi4py import MPI

import omb_py

MESSAGES_EACH = 12
MESSAGES_TO_ROOT = 2


def around(comm: MPI.Intracomm) -> None:
    """Twelve messages to the right of this rank, and as many from its left."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    sent, got = array("d", range(500)), array("d", [0.0] * 500)
    with omb_py.phase("requests"):
        for _ in range(3):
            requests = [comm.Irecv(got, left, 3), comm.Isend(sent, right, 3)]
            MPI.Request.Waitall(requests)
        any_source = comm.Irecv(got, MPI.ANY_SOURCE, 8)
        comm.Send(sent, right, 8)
        any_source.Wait()
        comm.Isendrecv(sent, right, 6, recvbuf=got, source=left, recvtag=6).Wait()
    with omb_py.phase("persistent"):
        persistent = [comm.Recv_init(got, left, 5), comm.Send_init(sent, right, 5)]
        for _ in range(2):
            MPI.Prequest.Startall(persistent)
            MPI.Request.Waitall(persistent)
        for request in persistent:
            request.Free()
    with omb_py.phase("both ways"):
        for _ in range(4):
            comm.Sendrecv(sent, right, 4, recvbuf=got, source=left, recvtag=4)
        assert comm.sendrecv({"rank": comm.rank}, right, source=left) == {"rank": left}
    assert got == sent


def to_root(comm: MPI.Intracomm) -> None:
    """Two messages from each other rank to rank 0, taken as they come."""
    memory = array("d", [0.0])
    for _ in range(comm.size - 1):
        if comm.rank == 0:
            comm.recv(source=MPI.ANY_SOURCE, tag=7)
            comm.Recv(memory, MPI.ANY_SOURCE, 9)
    if comm.rank:
        comm.send("an object", 0, 7)
        comm.Send(memory, 0, 9)


def together(comm: MPI.Intracomm) -> None:
    """Collective calls on all ranks and on half of them."""
    half = comm.Split(comm.rank % 2, comm.rank)
    total = array("d", [1.0])
    with omb_py.phase("sum"):
        half.Allreduce(MPI.IN_PLACE, total)
        comm.Iallreduce(MPI.IN_PLACE, total).Wait()
        assert comm.bcast("an object" if comm.rank == 1 else None, 1) == "an object"
        comm.Barrier()
    half.Free()


if __name__ == "__main__":
    world = MPI.COMM_WORLD
    around(world)
    to_root(world)
    together(world)
