"""Counts each rank's messages for every algorithm of this library's table, in one job.

``traffic.py OUTPUT SIZES``: on rank 0 writes JSON to OUTPUT, an object for each call: function,
word, ranks, bytes, and ``sent``, messages and bytes from each rank to each other one, with
``order``, the target and the bytes of each message of each rank, if UCX sends them; or
``refused``, where the library says that it cannot. ``default`` is the library's own choice, and
functions may be named after the sizes, to leave out all others, and ``in-place``.

Open MPI counts by itself (component monitoring). For MPICH, and for the order, UCX's calls are
counted by a library that stands before it (``LD_PRELOAD``, tests/mpi/counting), with no messages of
MPICH through shared memory.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from array import array
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from omb_py.algorithms import DEFAULT, Algorithm, AlgorithmLibrary, library
from omb_py.algorithms.patterns import CollectiveShape
from omb_py.benchmarks import Case, find_benchmark
from omb_py.bindings.buffer import BufferBinding
from omb_py.buffers import BUFFERS
from omb_py.core import mpi
from omb_py.core.datatypes import find_types
from omb_py.core.errors import OmbError
from omb_py.core.mpi.tool_interface import ControlVariable, call, opened
from omb_py.core.options import Options

PERFORMANCE_CLASSES = range(16)
"""MPI numbers the classes of performance variables, and no two libraries alike."""
CALLS = ctypes.c_uint64 * 64
DEFAULTS = ("_TREE_TYPE", "_KVAL", "_CHUNK_SIZE", "_MSG_SIZE")
"""Ends of variables that say what is MPICH's default anyway."""
IN_PLACE = "in-place" in sys.argv
REFUSES = "User set collective algorithm"

MPI = mpi.load()
opened()
mpi.initialize("single")
world = MPI.COMM_WORLD


class Counter:
    """Numbers that the library counts (a performance variable), one for each rank."""

    def __init__(self, name: str) -> None:
        self._call = call
        index, count = ctypes.c_int(), ctypes.c_int()
        for number in PERFORMANCE_CLASSES:
            try:
                call("pvar_get_index", name.encode(), number, ctypes.byref(index))
                break
            except OmbError:
                continue
        else:
            raise OmbError(f"this MPI library has no counter {name}")
        self._session, self._handle = ctypes.c_void_p(), ctypes.c_void_p()
        call("pvar_session_create", ctypes.byref(self._session))
        # a pointer to the handle, as MPI_T wants the object that a variable is bound to
        place = ctypes.c_void_p(MPI._addressof(world))
        call(
            "pvar_handle_alloc",
            self._session,
            index,
            place,
            ctypes.byref(self._handle),
            ctypes.byref(count),
        )
        self._values = (ctypes.c_size_t * count.value)()
        call("pvar_start", self._session, self._handle)

    def read(self) -> list[int]:
        """Return the counts so far, rank by rank."""
        self._call("pvar_read", self._session, self._handle, self._values)
        return list(self._values)


class Monitoring:
    """Open MPI's own counters."""

    def __init__(self) -> None:
        names = ("pml_monitoring_messages_count", "pml_monitoring_messages_size")
        self._counters = [Counter(name) for name in names]

    def read(self) -> list[tuple[int, int]]:
        """Messages and bytes sent to each rank so far."""
        return list(zip(*(counter.read() for counter in self._counters), strict=True))

    def order(self) -> list[tuple[int, int]]:
        """It does not know the order of messages."""
        return []


class Shim:
    """What the library before UCX counted; it knows endpoints, not ranks."""

    def __init__(self) -> None:
        preloaded = ctypes.CDLL(None)
        self._traffic, self._message = preloaded.omb_py_traffic, preloaded.omb_py_message
        self._number = preloaded.omb_py_number
        self._number.restype = ctypes.c_uint64
        self._known = 0
        self._place: dict[int, int] = {}
        data = bytearray(1)
        for step in range(1, world.size):
            target, source = (world.rank + step) % world.size, (world.rank - step) % world.size
            before = self._all()
            world.Sendrecv([data, MPI.BYTE], target, 1, [bytearray(1), MPI.BYTE], source, 1)
            after = self._all()
            changed = [place for place in range(len(after)) if after[place] != before[place]]
            assert len(changed) == 1
            self._place[target] = changed[0]
            world.Barrier()

    def _all(self) -> list[tuple[int, int]]:
        messages, nbytes = CALLS(), CALLS()
        self._traffic(messages, nbytes)
        return list(zip(messages, nbytes, strict=True))

    def read(self) -> list[tuple[int, int]]:
        """Messages and bytes sent to each rank so far."""
        found, self._known = self._all(), self._number()
        return [found[self._place[r]] if r in self._place else (0, 0) for r in range(world.size)]

    def order(self) -> list[tuple[int, int]]:
        """The target and the bytes of each message since the last reading."""
        targets = {place: rank for rank, place in self._place.items()}
        place, length = ctypes.c_uint64(), ctypes.c_uint64()
        found = []
        for number in range(self._known, self._number()):
            self._message(ctypes.c_uint64(number), ctypes.byref(place), ctypes.byref(length))
            found.append((targets.get(place.value, world.rank), length.value))
        return found


def numbers(name: str) -> dict[str, int]:
    """The words that a control variable of MPICH takes, with their numbers."""
    index, length = ctypes.c_int(), ctypes.c_int(1 << 14)
    call("cvar_get_index", name.encode(), ctypes.byref(index))
    text = ctypes.create_string_buffer(length.value)
    ignored = [ctypes.byref(ctypes.c_int()) for _ in range(4)]
    handle = ctypes.c_void_p()
    call(
        "cvar_get_info",
        index,
        None,
        ignored[0],
        ignored[1],
        ctypes.byref(handle),
        None,
        text,
        ctypes.byref(length),
        ignored[2],
        ignored[3],
    )
    words = re.findall(r"^(\w+)\s+- ", text.value.decode(), re.MULTILINE)
    return {word: number for number, word in enumerate(words)}


def write(variables: dict[str, str]) -> bool:
    """Set variables of the library that runs, which knows them from the environment.

    False where one cannot be set (Open MPI's of allgatherv) and has another value.
    """
    for variable, text in variables.items():
        name = variable.removeprefix("OMPI_MCA_")
        if "hcoll" in name or "ucc" in name or name.endswith(DEFAULTS):
            continue
        value = int(text) if text.isdigit() else numbers(name)[text]
        control = ControlVariable(name)
        if control.read() != value:
            try:
                control.write(value)
            except OmbError:
                return False
    return True


def unset(variables: dict[str, str]) -> None:
    """Leave the choice to the library again."""
    for variable in variables:
        if "_algorithm" in variable.lower():
            with suppress(OmbError):
                ControlVariable(variable.removeprefix("OMPI_MCA_")).write(0)


def measured(function: str, size: int, comm: Any, counter: Any) -> dict[str, Any]:
    """What each rank sent in one call of ``size`` bytes, on rank 0; or that it was refused."""
    benchmark = find_benchmark(function)
    datatype = find_types(("mpi_int" if benchmark.reduces else "mpi_char",))[0]
    if size % datatype.itemsize or size // datatype.itemsize < benchmark.smallest_elements(
        world.size
    ):
        return {}
    options = Options(in_place=IN_PLACE and "in_place" in benchmark.options)
    buffer = BUFFERS.load("numpy").prepare(0, ())
    resources: Any = None
    case = Case(world.rank, world.size, size, datatype, 1, buffer, options, resources)
    (iteration,) = benchmark.plan(case).iterations
    bound = BufferBinding(comm, options).bound(iteration)
    world.Barrier()
    before = counter.read()
    try:
        for call in bound.calls:
            call()
    except MPI.Exception as error:
        if REFUSES not in str(error):
            raise
        return {"refused": True, "bytes": size, "itemsize": datatype.itemsize}
    order = counter.order()
    after = counter.read()
    sent = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, after, strict=True)]
    flat = array("q", [number for pair in sent for number in pair])
    everybody = array("q", bytes(8 * len(flat) * world.size))
    world.Barrier()
    world.Allgather(flat, everybody)
    width = len(flat)
    rows = [everybody[rank * width : (rank + 1) * width].tolist() for rank in range(world.size)]
    return {
        "bytes": size,
        "itemsize": datatype.itemsize,
        "order": world.gather(order),
        "sent": [[row[2 * r : 2 * r + 2] for r in range(world.size)] for row in rows],
    }


def shape_of(function: str, size: int) -> CollectiveShape:
    """The call as requirements know it."""
    itemsize = 4 if find_benchmark(function).reduces else 1
    return CollectiveShape(world.size, size, itemsize, in_place=IN_PLACE)


def choices(found: AlgorithmLibrary, function: str) -> Iterator[tuple[str, Algorithm | None]]:
    """The words to try for a function."""
    yield DEFAULT, None
    for algorithm in found.table[function]:
        yield algorithm.word, algorithm


def main() -> None:
    output, sizes = sys.argv[1], [int(size) for size in sys.argv[2].split(",")]
    only = [word for word in sys.argv[3:] if word != "in-place"]
    found = library(MPI.get_vendor()[0])
    is_mpich = bool(found.refusing)
    counter = Shim() if hasattr(ctypes.CDLL(None), "omb_py_traffic") else Monitoring()
    fallback = ControlVariable("MPIR_CVAR_COLLECTIVE_FALLBACK") if is_mpich else None
    results = []
    for function in found.table:
        if only and function not in only:
            continue
        for word, algorithm in choices(found, function):
            variables = {} if algorithm is None else found.variables(function, algorithm)
            if not write(variables):
                continue
            print(f"algorithm {function} {word}", flush=True)
            comm = world if is_mpich else world.Dup()
            for size in sizes if function != "barrier" else [0]:
                if algorithm is not None and algorithm.refusal(shape_of(function, size)):
                    row = {"function": function, "word": word, "ranks": world.size, "bytes": size}
                    results.append(row | {"refused": True})
                    continue
                if fallback is not None:
                    fallback.write(0)
                result = measured(function, size, comm, counter)
                if fallback is not None:
                    fallback.write(2)
                if result:
                    results.append(
                        {"function": function, "word": word, "ranks": world.size} | result
                    )
            unset(variables)
            if not is_mpich:
                comm.Free()
    if world.rank == 0:
        with open(output, "w") as file:
            json.dump(results, file)
    world.Barrier()


main()
MPI.Finalize()
