"""Makes calls of most routines of MPI on 2 ranks, and says which: ``expected-RANK.json``.

`expect` stands behind the calls that it tells of: the routine, how often, the bytes of each.
"""

import json

import numpy as np
from mpi4py import MPI

UNKNOWN = -1
world = MPI.COMM_WORLD
me, other = world.rank, 1 - world.rank
cell, three, six, large = (np.zeros(n) for n in (1, 3, 6, 1000))
integer, integers = np.zeros(1, "i"), np.zeros(1, "i")
nowhere = MPI.PROC_NULL
expected: dict[str, list[int]] = {}


def expect(routine: str, nbytes: int = UNKNOWN, times: int = 1) -> None:
    found = expected.setdefault(f"MPI_{routine}", [0, 0])
    found[0] += times
    found[1] += times * max(0, nbytes)


def every_message() -> None:
    for name in ("Send", "Ssend", "Rsend", "Bsend"):
        getattr(world, name)(large, nowhere)
        expect(name, 0)
    for _ in range(10):
        if me == 0:
            world.Send(three, other, 7)
            world.Recv(large, other, 8)
        else:
            world.Recv(three, other, 7)
            world.Send(large, other, 8)
        expect("Send", (24, 8000)[me])
        expect("Recv", (8000, 24)[me])
    status = MPI.Status()
    if me == 0:
        world.Send(three[:2], other, 5)
        expect("Send", 16)
    else:
        world.Probe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        assert world.Iprobe(other, 5)
        expect("Probe")
        expect("Iprobe")
        world.Recv(large, MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        expect("Recv", 16)  # what came, since there is a status
    for name in ("Isend", "Issend"):
        requests = [getattr(world, name)(three, other, 3), world.Irecv(large, other, 3)]
        MPI.Request.Waitall(requests)
        expect(name, 24)
        expect("Irecv", 8000)
        expect("Waitall")
    requests = [world.Irecv(three, MPI.ANY_SOURCE, MPI.ANY_TAG), world.Isend(three, other, 4)]
    assert {MPI.Request.Waitany(requests), MPI.Request.Waitany(requests)} == {0, 1}
    expect("Irecv", 24)
    expect("Isend", 24)
    expect("Waitany", times=2)
    request = world.Isend(three, nowhere)
    assert request.Test()
    expect("Isend", 0)
    expect("Test")
    world.Sendrecv(three, other, 1, six, other, 1)
    expect("Sendrecv", 24 + 48)
    world.Sendrecv_replace(large, other, 1, other, 1)
    expect("Sendrecv_replace", 8000 + 8000)
    if me == 0:
        world.send({"a": 1}, other, 2)
        expect("Send", len(MPI.pickle.dumps({"a": 1})))
    else:
        assert world.recv(source=other, tag=2) == {"a": 1}
        expect("Mprobe")
        expect("Mrecv", len(MPI.pickle.dumps({"a": 1})))
    assert world.Improbe(other, 17) is None
    request = world.Isend(three, other, 11)
    world.Mprobe(other, 11).Recv(three)
    request.Wait()
    expect("Improbe")
    expect("Isend", 24)
    expect("Mprobe")
    expect("Mrecv", 24)
    expect("Wait")
    persistent = [world.Send_init(three, other, 9), world.Recv_init(six, other, 9)]
    expect("Send_init", 24)
    expect("Recv_init", 48)
    for _ in range(4):
        MPI.Prequest.Startall(persistent)
        MPI.Request.Waitall(persistent)
        expect("Startall")
        expect("Send (started)", 24)
        expect("Recv (started)", 48)
        expect("Waitall")
    for _ in range(2):
        persistent[me].Start()
        persistent[me].Wait()
        expect("Start")
        expect(*(("Send (started)", 24), ("Recv (started)", 48))[me])
        expect("Wait")
    for request in persistent:
        request.Free()
        expect("Request_free")


def every_collective() -> None:
    reduced = np.zeros(3)
    matrix = [np.zeros(2), [1, 1], [0, 8], [MPI.DOUBLE, MPI.DOUBLE]]
    received = [np.zeros(2), [1, 1], [0, 8], [MPI.DOUBLE, MPI.DOUBLE]]
    uneven = [six, [2, 4], MPI.DOUBLE], [np.zeros(8), [2 + 2 * me] * 2, MPI.DOUBLE]
    parts = [np.zeros(6), [2, 4], MPI.DOUBLE]
    for name, nbytes, arguments in (
        ("allgather", 24, (three, six)),
        ("allgatherv", (16, 32)[me], (six[: 2 + 2 * me], parts)),
        ("allreduce", 24, (three, reduced)),
        ("alltoall", 24, (six, np.zeros(6))),
        ("alltoallv", 24, uneven),
        ("alltoallw", 8, (matrix, received)),
        ("barrier", 0, ()),
        ("bcast", 8000, (large, 1)),
        ("exscan", 24, (three, reduced)),
        ("gather", 24, (three, six, 1)),
        ("gatherv", (16, 32)[me], (six[: 2 + 2 * me], parts, 1)),
        ("reduce", 24, (three, reduced, MPI.SUM, 1)),
        ("reduce_scatter", 48, (six, np.zeros(3), [3, 3])),
        ("reduce_scatter_block", 24, (six, reduced)),
        ("scan", 24, (three, reduced)),
        ("scatter", 24, (six, three, 1)),
        ("scatterv", (16, 32)[me], (parts, np.zeros(2 + 2 * me), 1)),
    ):
        getattr(world, name.capitalize())(*arguments)
        expect(name.capitalize(), nbytes)
        getattr(world, f"I{name}")(*arguments).Wait()
        expect(f"I{name}", nbytes)
        expect("Wait")
    world.Allreduce(MPI.IN_PLACE, three)
    expect("Allreduce", 24)
    world.Alltoall(MPI.IN_PLACE, six)
    expect("Alltoall", 24)
    world.Gather(MPI.IN_PLACE if me == 0 else three, six)
    expect("Gather", 24)
    request = world.Allreduce_init(three, reduced)
    expect("Allreduce_init", 24)
    request.Start()
    request.Wait()
    request.Free()
    expect("Start")
    expect("Allreduce (started)", 24)
    expect("Wait")
    expect("Request_free")
    line = world.Create_cart([2], [True])
    expect("Cart_create")
    line.Neighbor_alltoall(six, np.zeros(6))
    expect("Neighbor_alltoall", 24)
    line.Neighbor_allgather(three, np.zeros(6))
    expect("Neighbor_allgather", 24)
    line.Free()
    expect("Comm_free")


def every_communicator() -> None:
    copy = world.Dup()
    expect("Comm_dup")
    later, request = world.Idup()
    request.Wait()
    expect("Comm_idup")
    expect("Wait")
    half, backwards = world.Split(me, 0), world.Split(0, -me)
    expect("Comm_split", times=2)
    assert isinstance(half, MPI.Intracomm)
    between = half.Create_intercomm(0, world, other)
    expect("Intercomm_create")
    backwards.Bcast(cell, 1)  # rank 0 of the world
    expect("Bcast", 8)
    between.Allreduce(cell, np.zeros(1))
    later.Allreduce(three, np.zeros(3))
    expect("Allreduce", 8)
    expect("Allreduce", 24)
    merged = between.Merge(me == 0)
    expect("Intercomm_merge")
    merged.Barrier()
    expect("Barrier", 0)
    for communicator in (copy, later, half, backwards, between, merged):
        communicator.Free()
        expect("Comm_free")


def every_one_sided_call() -> None:
    window = MPI.Win.Allocate(80, 8, comm=world)
    expect("Win_allocate")
    window.Fence()
    for name in ("Put", "Get", "Accumulate"):
        getattr(window, name)(three, other)
        expect(name, 24)
    window.Fence()
    expect("Win_fence", times=2)
    window.Lock(other)
    expect("Win_lock")
    for name in ("Rput", "Rget", "Raccumulate"):
        getattr(window, name)(three, other).Wait()
        expect(name, 24)
        expect("Wait")
    window.Get_accumulate(three, np.zeros(3), other)
    expect("Get_accumulate", 24)
    window.Fetch_and_op(integer, integers, other)
    expect("Fetch_and_op", 4)
    window.Compare_and_swap(integer, integer, integers, other)
    expect("Compare_and_swap", 4)
    window.Flush(other)
    expect("Win_flush")
    window.Unlock(other)
    expect("Win_unlock")
    window.Free()
    expect("Win_free")


def every_access_to_a_file() -> None:
    block, ranks = 4096, world.size
    data, space = bytearray([me + 1] * block), bytearray(block)

    def at(number: int) -> int:
        """Where this rank's block stands among the blocks of all ranks."""
        return (number * ranks + me) * block

    def wait(request: MPI.Request) -> None:
        request.Wait()
        expect("Wait")

    def meet() -> None:
        world.Barrier()
        expect("Barrier", 0)

    def seek(shared: str = "") -> None:
        getattr(file, f"Seek{shared}")(0)
        expect(f"File_seek{shared}")

    def view(offset: int) -> None:
        file.Set_view(offset, MPI.BYTE, MPI.BYTE, "native")
        expect("File_set_view")

    file = MPI.File.Open(world, "data", MPI.MODE_CREATE | MPI.MODE_RDWR)
    expect("File_open")
    file.Preallocate(2 * ranks * block)
    expect("File_preallocate")
    file.Set_size(2 * ranks * block)
    expect("File_set_size")
    file.Set_atomicity(False)
    expect("File_set_atomicity")
    for way, buffer in (("write", data), ("read", space)):
        name = way.capitalize()
        for where in ("_at", "_at_all"):
            getattr(file, f"{name}{where}")(at(0), buffer)
            expect(f"File_{way}{where}", block)
            wait(getattr(file, f"I{way}{where}")(at(1), buffer))
            expect(f"File_i{way}{where}", block)
        getattr(file, f"{name}_at_all_begin")(at(0), buffer)
        getattr(file, f"{name}_at_all_end")(buffer)
        expect(f"File_{way}_at_all_begin", block)
        expect(f"File_{way}_at_all_end")
        view(me * block)
        for where in ("", "_all"):
            seek()
            getattr(file, f"{name}{where}")(buffer)
            expect(f"File_{way}{where}", block)
            seek()
            wait(getattr(file, f"I{way}{where}")(buffer))
            expect(f"File_i{way}{where}", block)
        seek()
        getattr(file, f"{name}_all_begin")(buffer)
        getattr(file, f"{name}_all_end")(buffer)
        expect(f"File_{way}_all_begin", block)
        expect(f"File_{way}_all_end")
        view(0)
        for where in ("_shared", "_ordered"):
            seek("_shared")
            getattr(file, f"{name}{where}")(buffer)
            expect(f"File_{way}{where}", block)
            meet()
        seek("_shared")
        wait(getattr(file, f"I{way}_shared")(buffer))
        expect(f"File_i{way}_shared", block)
        meet()
        seek("_shared")
        getattr(file, f"{name}_ordered_begin")(buffer)
        getattr(file, f"{name}_ordered_end")(buffer)
        expect(f"File_{way}_ordered_begin", block)
        expect(f"File_{way}_ordered_end")
        file.Sync()
        expect("File_sync")
        meet()
    size = file.Get_size()
    expect("File_get_size")
    status = MPI.Status()
    file.Read_at(size - 100, space)  # only so many are left
    expect("File_read_at", 100)
    file.Read_at(size - 100, space, status)
    expect("File_read_at", 100)
    assert status.Get_count(MPI.BYTE) == 100
    file.Read_at(size, space)
    expect("File_read_at", 0)
    file.Write_at(at(0), [data, MPI.BYTE], status=status)
    expect("File_write_at", block)
    assert status.Get_count(MPI.BYTE) == block
    file.Close()
    expect("File_close")
    meet()
    if me == 0:
        MPI.File.Delete("data")
        expect("File_delete")


every_message()
every_collective()
every_communicator()
every_one_sided_call()
every_access_to_a_file()
with open(f"expected-{me}.json", "w") as told:
    json.dump(expected, told)
