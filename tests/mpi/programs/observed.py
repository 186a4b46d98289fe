"""Calls of MPI of many kinds, whose numbers and bytes are known; prints what it received."""

from __future__ import annotations

import sys
from array import array

from mpi4py import MPI


def say(*words: object) -> None:
    """Print a line that no other rank's can come into."""
    sys.stdout.write(f"{' '.join(map(str, words))}\n")


def blocking(comm: MPI.Intracomm, peer: int) -> None:
    """Three messages of 80 bytes each way, and a pickled one."""
    memory = array("d", range(10))
    for _ in range(3):
        if comm.rank == 0:
            comm.Send([memory, MPI.DOUBLE], peer, 5)
            comm.Recv(memory, peer, 6)
        else:
            comm.Recv([memory, 10, MPI.DOUBLE], peer, 5)
            comm.Send(memoryview(memory), dest=peer, tag=6)
    say(comm.rank, comm.sendrecv({"from": comm.rank}, peer, source=peer))
    status = MPI.Status()
    if comm.rank == 0:
        comm.Send(b"12345", peer)
    else:
        comm.Recv(bytearray(100), status=status)
        say("5 bytes of 100:", status.Get_count(MPI.BYTE), status.Get_source())
    comm.Send(b"nobody", MPI.PROC_NULL)


def nonblocking(comm: MPI.Intracomm, peer: int) -> None:
    """Requests of all kinds; every one is null after its completion."""
    sent, got = bytearray(range(16)), [bytearray(16) for _ in range(2)]
    requests = [comm.Irecv(got[0], MPI.ANY_SOURCE, MPI.ANY_TAG), comm.Isend(sent, peer, 1)]
    MPI.Request.Waitall(requests)
    assert not any(requests)
    assert got[0] == sent
    request = comm.irecv(source=peer, tag=2)
    comm.isend("an object", peer, 2).wait()
    say(comm.rank, request.wait())
    persistent = [comm.Send_init(sent, peer, 3), comm.Recv_init(got[1], peer, 3)]
    for _ in range(2):
        MPI.Prequest.Startall(persistent)
        MPI.Request.Waitall(persistent)
    for one in persistent:
        one.Free()
    total = array("d", [0.0])
    comm.Iallreduce(array("d", [1.0]), total).Wait()
    say(comm.rank, total[0])


def matched(comm: MPI.Intracomm, peer: int) -> None:
    """A message that is probed first."""
    assert not comm.Iprobe(peer, 17)
    assert comm.Improbe(peer, 17) is None
    assert not comm.iprobe(tag=17)
    request = comm.Isend(b"probed", peer, 9)
    memory = bytearray(6)
    comm.Mprobe(peer, 9).Recv(memory)
    request.Wait()
    say(comm.rank, memory.decode())


def collective(comm: MPI.Intracomm) -> None:
    """Collective calls on a communicator of all ranks in the opposite order, and its duplicate."""
    other = comm.Split(0, -comm.rank)
    assert other.rank == comm.size - 1 - comm.rank
    assert type(other) is MPI.Intracomm
    own, total = array("d", [1.0] * 100), array("d", [0.0] * 100)
    other.Allreduce([own, MPI.DOUBLE], total)
    other.Allreduce(MPI.IN_PLACE, total)
    other.Bcast(total, root=0)
    everybody = array("d", [0.0] * 100 * comm.size)
    other.Allgather(own, everybody)
    duplicate = other.Dup()
    other.Alltoall(everybody, array("d", everybody))
    say(comm.rank, duplicate.bcast(["from", comm.rank], root=1), total[0])
    duplicate.Barrier()
    duplicate.Free()
    other.Free()


def one_sided(comm: MPI.Intracomm, peer: int) -> None:
    """A window that both write to."""
    window = MPI.Win.Allocate(64, comm=comm)
    window.Fence()
    window.Put(bytearray([comm.rank] * 8), peer)
    window.Fence()
    say(comm.rank, window.tomemory()[:8].tobytes().hex())
    window.Free()


def file(comm: MPI.Intracomm, name: str) -> None:
    """A file that all write to."""
    there = MPI.File.Open(comm, name, MPI.MODE_CREATE | MPI.MODE_WRONLY | MPI.MODE_DELETE_ON_CLOSE)
    there.Write_at_all(comm.rank * 32, bytearray(32))
    there.Close()


def main() -> None:
    comm = MPI.COMM_WORLD
    assert type(comm) is MPI.Intracomm
    assert isinstance(comm, MPI.Comm)
    assert comm.handle == MPI.Intracomm.fromhandle(comm.handle).handle
    peer = 1 - comm.rank
    class_of_two = type("ClassOfTwo", (type("Derived", (MPI.Comm,), {}), MPI.Intracomm), {})
    assert MPI.Comm.__new__(class_of_two, comm) == comm
    blocking(comm, peer)
    nonblocking(comm, peer)
    matched(comm, peer)
    collective(comm)
    one_sided(comm, peer)
    file(comm, sys.argv[1])
    MPI.Pcontrol(0)
    comm.Barrier()
    MPI.Pcontrol(1)
    comm.Barrier()


main()
