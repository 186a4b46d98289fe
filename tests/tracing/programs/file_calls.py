"""Calls every routine of MPI's files on 2 ranks, and says which: ``expected-RANK.json``.

Each rank's blocks are `BLOCK` bytes; `expect` stands behind the calls that it tells of: the
routine, how often, the bytes of each.
"""

import json

from mpi4py import MPI

UNKNOWN, BLOCK = -1, 4096
world = MPI.COMM_WORLD
me, ranks = world.rank, world.size
data, space = bytearray([me + 1] * BLOCK), bytearray(BLOCK)
expected: dict[str, list[int]] = {}


def expect(routine: str, nbytes: int = UNKNOWN, times: int = 1) -> None:
    found = expected.setdefault(f"MPI_File_{routine}", [0, 0])
    found[0] += times
    found[1] += times * max(0, nbytes)


def at(number: int) -> int:
    """Where this rank's block stands among the blocks of all ranks."""
    return (number * ranks + me) * BLOCK


file = MPI.File.Open(world, "data", MPI.MODE_CREATE | MPI.MODE_RDWR)
expect("open")
file.Preallocate(2 * ranks * BLOCK)
expect("preallocate")
file.Set_size(2 * ranks * BLOCK)
expect("set_size")
file.Set_atomicity(False)
expect("set_atomicity")
for way in ("write", "read"):
    buffer = data if way == "write" else space
    name = way.capitalize()
    for where in ("_at", "_at_all"):
        getattr(file, f"{name}{where}")(at(0), buffer)
        expect(f"{way}{where}", BLOCK)
        getattr(file, f"I{way}{where}")(at(1), buffer).Wait()
        expect(f"i{way}{where}", BLOCK)
    getattr(file, f"{name}_at_all_begin")(at(0), buffer)
    getattr(file, f"{name}_at_all_end")(buffer)
    expect(f"{way}_at_all_begin", BLOCK)
    expect(f"{way}_at_all_end")
    file.Set_view(me * BLOCK, MPI.BYTE, MPI.BYTE, "native")
    expect("set_view")
    for where in ("", "_all"):
        file.Seek(0)
        expect("seek")
        getattr(file, f"{name}{where}")(buffer)
        expect(f"{way}{where}", BLOCK)
        file.Seek(0)
        expect("seek")
        getattr(file, f"I{way}{where}")(buffer).Wait()
        expect(f"i{way}{where}", BLOCK)
    file.Seek(0)
    expect("seek")
    getattr(file, f"{name}_all_begin")(buffer)
    getattr(file, f"{name}_all_end")(buffer)
    expect(f"{way}_all_begin", BLOCK)
    expect(f"{way}_all_end")
    file.Set_view(0, MPI.BYTE, MPI.BYTE, "native")
    expect("set_view")
    for where in ("_shared", "_ordered"):
        file.Seek_shared(0)
        expect("seek_shared")
        getattr(file, f"{name}{where}")(buffer)
        expect(f"{way}{where}", BLOCK)
        world.Barrier()
    file.Seek_shared(0)
    expect("seek_shared")
    getattr(file, f"I{way}_shared")(buffer).Wait()
    expect(f"i{way}_shared", BLOCK)
    world.Barrier()
    file.Seek_shared(0)
    expect("seek_shared")
    getattr(file, f"{name}_ordered_begin")(buffer)
    getattr(file, f"{name}_ordered_end")(buffer)
    expect(f"{way}_ordered_begin", BLOCK)
    expect(f"{way}_ordered_end")
    file.Sync()
    expect("sync")
    world.Barrier()
size = file.Get_size()
expect("get_size")
status = MPI.Status()
file.Read_at(size - 100, space)  # only so many are left
expect("read_at", 100)
file.Read_at(size - 100, space, status)
expect("read_at", 100)
assert status.Get_count(MPI.BYTE) == 100
file.Read_at(size, space)
expect("read_at", 0)
file.Write_at(at(0), [data, MPI.BYTE], status=status)
expect("write_at", BLOCK)
assert status.Get_count(MPI.BYTE) == BLOCK
file.Close()
expect("close")
world.Barrier()
if me == 0:
    MPI.File.Delete("data")
    expect("delete")
with open(f"expected-{me}.json", "w") as told:
    json.dump(expected, told)
