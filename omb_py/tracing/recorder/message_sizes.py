"""How many bytes a call moves: mpi4py's buffer specifications, and what it pickles.

Counted is what mpitrace counts: what a rank sends to another one. Of collectives with a block for
each rank that is one block (of a v-form the mean one), of reductions the whole vector.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from threading import local
from typing import Any, NamedTuple

from mpi4py import MPI

from omb_py.tracing.records.layout import UNKNOWN_BYTES


def spec_bytes(spec: Any) -> int:
    """The bytes of a buffer specification; `UNKNOWN_BYTES` where mpi4py alone understands it."""
    try:
        nbytes = getattr(spec, "nbytes", None)
        if nbytes is not None:
            return int(nbytes)
        if spec is None or spec is MPI.BOTTOM or isinstance(spec, type(MPI.IN_PLACE)):
            return 0
        if isinstance(spec, list | tuple):
            return _listed(spec)
        interface = getattr(spec, "__cuda_array_interface__", None)
        if interface is not None:
            return int(prod(interface["shape"])) * int(interface["typestr"][2:])
        return memoryview(spec).nbytes
    except Exception:  # whatever a program's objects do, its call has already been made
        return UNKNOWN_BYTES


def partitioned_bytes(spec: Any, partitions: int) -> int:
    """The bytes of a partitioned message: a count that a specification gives is a partition's."""
    nbytes = spec_bytes(spec)
    listed = isinstance(spec, list | tuple)
    counted = listed and len(spec) > 1 + is_datatype(spec[-1])
    return nbytes * partitions if counted and nbytes > 0 else nbytes


def together(*sizes: int) -> int:
    """The bytes of several messages, `UNKNOWN_BYTES` where those of one are."""
    return UNKNOWN_BYTES if min(sizes) < 0 else sum(sizes)


def _listed(spec: list[Any] | tuple[Any, ...]) -> int:
    """The bytes of ``[data, count or counts, displacements, datatype]``, shorter forms included."""
    data, rest = spec[0], list(spec[1:])
    datatype = rest.pop() if rest and is_datatype(rest[-1]) else None
    width = None if datatype is None else datatype_bytes(datatype)
    counts = rest[0] if rest else None
    if isinstance(counts, list | tuple) and counts and _is_array(counts[0]):
        counts = counts[0]  # (counts, displacements)
    elif isinstance(counts, tuple) and len(counts) == 2 and width is not None and len(rest) == 1:
        counts = counts[0]  # (count, displacement)
    if counts is None:
        return spec_bytes(data)
    if width is None:
        width = int(getattr(data, "itemsize", 0) or memoryview(data).itemsize)
    return (sum(map(int, counts)) if _is_array(counts) else int(counts)) * width


def _is_array(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str)


def is_datatype(value: Any) -> bool:
    """Whether this stands for an element's type in a specification."""
    return isinstance(value, MPI.Datatype | str)


def datatype_bytes(datatype: Any) -> int:
    """The bytes of one element."""
    if isinstance(datatype, str):
        code: Any = datatype
        datatype = getattr(MPI, code, None) or MPI.Datatype.fromcode(code)
    return int(datatype.Get_size())


def several_types_bytes(spec: Any) -> int:
    """The bytes of ``[data, counts, displacements, datatypes]``, as alltoallw has it."""
    try:
        counts, types = spec[1], spec[-1]
        if isinstance(counts, tuple) and len(counts) == 2 and _is_array(counts[0]):
            counts = counts[0]
        pairs = zip(counts, types, strict=True)
        return sum(int(count) * datatype_bytes(kind) for count, kind in pairs)
    except Exception:
        return UNKNOWN_BYTES


def _in_place(spec: Any) -> bool:
    return isinstance(spec, type(MPI.IN_PLACE))


def _whole(comm: Any, given: dict[str, Any]) -> int:
    sent = given.get("sendbuf")
    return spec_bytes(given.get("recvbuf") if sent is None or _in_place(sent) else sent)


def _received_block(comm: Any, given: dict[str, Any]) -> int:
    return _divided(spec_bytes(given.get("recvbuf")), comm)


def _sent_block(comm: Any, given: dict[str, Any]) -> int:
    sent = given.get("sendbuf")
    return _divided(spec_bytes(given.get("recvbuf") if _in_place(sent) else sent), comm)


def _own_block(comm: Any, given: dict[str, Any]) -> int:
    """What a rank gives to a gather: at the root in place, its share of what it receives."""
    sent = given.get("sendbuf")
    return _received_block(comm, given) if _in_place(sent) else spec_bytes(sent)


def _got_block(comm: Any, given: dict[str, Any]) -> int:
    """What a rank gets of a scatter: at the root in place, its share of what it sends."""
    got = given.get("recvbuf")
    return _divided(spec_bytes(given.get("sendbuf")), comm) if _in_place(got) else spec_bytes(got)


def _mean_of_types(comm: Any, given: dict[str, Any]) -> int:
    sent = given.get("sendbuf")
    return _divided(several_types_bytes(given.get("recvbuf") if _in_place(sent) else sent), comm)


def _of_neighbours(comm: Any, given: dict[str, Any]) -> int:
    whole = spec_bytes(given.get("sendbuf"))
    return whole // max(1, comm.outdegree) if whole > 0 else whole


def _divided(whole: int, comm: Any) -> int:
    peers = comm.Get_remote_size() if comm.Is_inter() else comm.Get_size()
    return whole // peers if whole > 0 else whole


Size = Callable[[Any, dict[str, Any]], int]

COLLECTIVES: dict[str, Size] = {
    "allgather": _received_block,
    "allgatherv": _own_block,
    "allreduce": _whole,
    "alltoall": _sent_block,
    "alltoallv": _sent_block,
    "alltoallw": _mean_of_types,
    "barrier": lambda comm, given: 0,
    "bcast": lambda comm, given: spec_bytes(given.get("buf")),
    "exscan": _whole,
    "gather": _own_block,
    "gatherv": _own_block,
    "neighbor_allgather": lambda comm, given: spec_bytes(given.get("sendbuf")),
    "neighbor_allgatherv": lambda comm, given: spec_bytes(given.get("sendbuf")),
    "neighbor_alltoall": _of_neighbours,
    "neighbor_alltoallv": _of_neighbours,
    "neighbor_alltoallw": lambda comm, given: several_types_bytes(given.get("sendbuf")),
    "reduce": _whole,
    "reduce_scatter": _whole,
    "reduce_scatter_block": lambda comm, given: (
        _received_block(comm, given)
        if _in_place(given.get("sendbuf"))
        else spec_bytes(given.get("recvbuf"))
    ),
    "scan": _whole,
    "scatter": _got_block,
    "scatterv": _got_block,
}
"""The size of a collective call's message, from the communicator and the call's arguments."""


class Moved(NamedTuple):
    """Bytes that were pickled to be sent, and received to be unpickled."""

    sent: int
    received: int


class Pickled:
    """Counts what goes through ``MPI.pickle``, for each thread."""

    def __init__(self) -> None:
        """From now on, unless the program replaces the pickle; pickles are the same as before."""
        from pickle import dumps, loads

        self.counts = counts = Counts()

        def counted_dumps(*args: Any, **kwargs: Any) -> Any:
            data = dumps(*args, **kwargs)
            counts.sent += len(data)
            return data

        def counted_loads(data: Any, *args: Any, **kwargs: Any) -> Any:
            counts.received += len(data)
            return loads(data, *args, **kwargs)

        pickle: Any = MPI.pickle
        pickle.__init__(counted_dumps, counted_loads, pickle.PROTOCOL, pickle.THRESHOLD)

    def mark(self) -> Moved:
        """What was counted until now."""
        return Moved(self.counts.sent, self.counts.received)

    def since(self, before: Moved) -> Moved:
        """What was counted since then."""
        return Moved(self.counts.sent - before.sent, self.counts.received - before.received)


class Counts(local):
    """Bytes of this thread, in all."""

    sent = 0
    received = 0
