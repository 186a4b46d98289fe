"""NVIDIA's NCCL next to MPI: the same benchmarks, its calls on a stream of the device.

MPI starts the job, numbers the ranks and keeps them together between iterations; only NCCL sends
messages. Calls go through NVIDIA's nccl4py if it is installed, else through `cupy.cuda.nccl`.
Streams and events are CuPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from omb_py.bindings import Binding, BoundCall, calls_of
from omb_py.core.calls import Call, Iteration, Message, Step, parts_of_sendrecv
from omb_py.core.calls.loop import Loop, Pace, Stream, StreamLoop
from omb_py.core.dataclass import dataclass
from omb_py.core.errors import MissingError, UnsupportedError, installing_cuda
from omb_py.core.memory import Local
from omb_py.core.options import Options

if TYPE_CHECKING:
    from mpi4py import MPI

IDENTITY_BYTES = 128
INSTALLING = "pip install 'nccl4py[cu13]' (or '[cu12]', as CuPy's own)"

DTYPES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
"""Types that NCCL adds up, by NumPy's names, in the order of ``ncclDataType_t`` in nccl.h."""
INT8 = DTYPES.index("int8")
SUM = 0
"""``ncclSum`` of nccl.h."""


Bind: TypeAlias = Callable[[str, Sequence[int], int], BoundCall]
"""Makes the call that puts a function of nccl.h on a stream.

The function's name is in lower case (``all_reduce`` for ``ncclAllReduce``); then come its arguments
before the communicator, all of them integers, and the ``cudaStream_t``.
"""


@dataclass(frozen=True)
class NcclLibrary:
    """NCCL through one Python package, whose name and version are ``package``.

    ``version`` is NCCL's, as in ``NCCL_VERSION_CODE``: 23203 is 2.32.3. ``unique_id`` makes an
    ``ncclUniqueId``, and ``connect`` a communicator from the number of ranks, that identity and
    this rank's number; it is collective. Calls that fail raise ``error``.
    """

    package: str
    version: int
    error: type[Exception]
    group_start: BoundCall
    group_end: BoundCall
    unique_id: Callable[[], bytes]
    connect: Callable[[int, bytes, int], Bind]

    def __str__(self) -> str:
        version = self.version
        return f"{version // 10000}.{version % 10000 // 100}.{version % 100} ({self.package})"


def by_nccl4py() -> NcclLibrary:
    """Return NCCL through nccl4py's functions on integers, which look up no arrays.

    Raises `ImportError` if nccl4py is not installed, `MissingError` if it finds no NCCL.
    """
    from importlib.metadata import version

    from nccl.bindings import nccl

    package = f"nccl4py {version('nccl4py')}"
    if not hasattr(nccl, "Comm"):
        raise MissingError(f"binding nccl needs nccl4py 0.5 or later, this is {package}")
    try:
        number = nccl.get_version()
    except RuntimeError as error:
        raise MissingError(f"{package} finds no NCCL here: {INSTALLING}") from error

    def connect(ranks: int, identity: bytes, rank: int) -> Bind:
        comm = nccl.comm_init_rank(ranks, nccl.UniqueId.from_buffer(bytearray(identity)), rank)
        return lambda name, given, stream: partial(getattr(nccl, name), *given, comm, stream)

    group = nccl.group_start, nccl.group_end
    return NcclLibrary(
        package, number, nccl.NCCLError, *group, lambda: bytes(nccl.get_unique_id()), connect
    )


CUPY_METHODS = {
    "all_gather": "allGather",
    "all_reduce": "allReduce",
    "reduce_scatter": "reduceScatter",
}
"""CuPy's names of functions, if they are not the same."""


def by_cupy() -> NcclLibrary:
    """Return NCCL through the methods of CuPy's ``NcclCommunicator``.

    Raises `MissingError` if CuPy has no NCCL.
    """
    from cupy import __version__

    package = f"CuPy {__version__}"
    try:
        from cupy.cuda import nccl
    except ImportError as error:
        raise MissingError(f"{package} has no NCCL: {INSTALLING}") from error
    if not nccl.available:
        raise MissingError(f"{package} finds no NCCL here: {INSTALLING}")

    def unique_id() -> bytes:
        return bytes(byte & 0xFF for byte in nccl.get_unique_id())

    def connect(ranks: int, identity: bytes, rank: int) -> Bind:
        try:
            comm = nccl.NcclCommunicator(ranks, identity, rank)
        except TypeError:  # CuPy before 14
            signed = tuple(memoryview(identity).cast("b"))
            comm = nccl.NcclCommunicator(ranks, signed, rank)

        def bind(name: str, given: Sequence[int], stream: int) -> BoundCall:
            return partial(getattr(comm, CUPY_METHODS.get(name, name)), *given, stream)

        return bind

    group = nccl.groupStart, nccl.groupEnd
    return NcclLibrary(package, nccl.get_version(), nccl.NcclError, *group, unique_id, connect)


class NcclBinding(Binding):
    """``all_reduce(send, receive, count, type, operation, communicator, stream)``."""

    name = "nccl"
    passes_addresses = False
    in_place_is_alias = True

    def __init__(self, comm: MPI.Intracomm, options: Options) -> None:
        super().__init__(comm, options)
        self._cuda, self._nccl = _load()
        self._stream = self._cuda.Stream(non_blocking=True)
        self._bind = self._connect()
        self._known: dict[str, Callable[[Call], BoundCall]] = {
            "allgather": self._allgather,
            "allreduce": self._reduction("all_reduce"),
            "alltoall": self._alltoall,
            "bcast": self._bcast,
            "gather": partial(self._rooted, "send", "recv"),
            "irecv": partial(self._point_to_point, "recv"),
            "isend": partial(self._point_to_point, "send"),
            "recv": partial(self._point_to_point, "recv"),
            "reduce": self._reduction("reduce"),
            "reduce_scatter": self._reduction("reduce_scatter"),
            "reduce_scatter_block": self._reduction("reduce_scatter"),
            "scatter": partial(self._rooted, "recv", "send"),
            "send": partial(self._point_to_point, "send"),
            "sendrecv": self._sendrecv,
        }

    @staticmethod
    def check() -> str:
        _, nccl = _load()
        return f"nccl {nccl}"

    def bind(self, step: Step) -> BoundCall:
        queue = self._queue(step)
        wait = self._stream.synchronize

        def call() -> None:
            queue()
            wait()

        return call

    def loop(self, iterations: Sequence[Iteration], pace: Pace) -> Loop:
        if any(iteration.everything != iteration.steps for iteration in iterations):
            raise UnsupportedError(
                "binding nccl makes no calls before or after those of an iteration: leave out "
                "--cold, or use --binding buffer"
            )
        begun, ended = self._cuda.Event(), self._cuda.Event()
        stream = Stream(
            partial(begun.record, self._stream),
            partial(ended.record, self._stream),
            self._stream.synchronize,
            partial(self._cuda.get_elapsed_time, begun, ended),
        )
        return StreamLoop(
            stream,
            [tuple(self._queue(step) for step in iteration.steps) for iteration in iterations],
            self.comm.Barrier if pace.barrier else None,
            pace.start.wait if pace.start else None,
        )

    def describe(self) -> dict[str, str]:
        return {"nccl": str(self._nccl)}

    def _connect(self) -> Bind:
        """Connect all ranks, which get the identity of rank 0's communicator by MPI; collective."""
        from mpi4py import MPI

        identity = bytearray(IDENTITY_BYTES)
        if self.comm.rank == 0:
            identity[:] = self._nccl.unique_id()
        self.comm.Bcast([identity, IDENTITY_BYTES, MPI.BYTE], 0)
        try:
            return self._nccl.connect(self.comm.size, bytes(identity), self.comm.rank)
        except self._nccl.error as error:
            raise MissingError(
                f"NCCL cannot connect the ranks ({error}): it wants a device for each rank; from "
                "2.30 on NCCL_MULTI_RANK_GPU_ENABLE=1 lets ranks share one"
            ) from error

    def _queue(self, step: Step) -> BoundCall:
        """Return a callable that puts a step's work on the stream."""
        if isinstance(step, Local):
            return step.run
        bound = [self._bind_call(call) for call in calls_of(step)]
        if len(bound) == 1:
            return bound[0]
        return self._grouped(bound)

    def _bind_call(self, call: Call) -> BoundCall:
        if call.function not in self._known:
            raise UnsupportedError(
                f"binding nccl has no {call.function}, only {', '.join(self._known)}: use "
                "--binding buffer"
            )
        if len(call.messages) < sum(operand is not None for operand in call.operands):
            raise UnsupportedError("binding nccl has no in-place form: leave out -l")
        for message in call.messages:
            if not message.memory.on_device:
                raise UnsupportedError("NCCL moves memory on a device only: use --buffer cupy")
            if not message.layout.contiguous:
                raise UnsupportedError("binding nccl sends contiguous data: leave out -D")
        return self._known[call.function](call)

    def _bound(self, function: str, *arguments: int) -> BoundCall:
        return self._bind(function, arguments, self._stream.ptr)

    def _grouped(self, bound: Sequence[BoundCall]) -> BoundCall:
        return partial(_call_grouped, self._nccl.group_start, self._nccl.group_end, bound)

    def _reduction(self, function: str) -> Callable[[Call], BoundCall]:
        def bind(call: Call) -> BoundCall:
            described = call.messages[-1]
            if call.counts is not None and len(set(call.counts)) > 1:
                raise UnsupportedError(
                    "NCCL scatters parts of one length: choose --sizes that the ranks divide"
                )
            dtype = described.datatype.dtype
            if dtype not in DTYPES:
                raise UnsupportedError(f"NCCL cannot add {dtype}: choose another -T")
            arguments = [*map(_address, call.operands), described.elements, DTYPES.index(dtype)]
            return self._bound(function, *arguments, SUM, *self._root(call))

        return bind

    def _allgather(self, call: Call) -> BoundCall:
        send, receive = map(_address, call.operands)
        return self._bound("all_gather", send, receive, call.messages[0].memory.nbytes, INT8)

    def _bcast(self, call: Call) -> BoundCall:
        (message,) = call.messages
        nbytes = message.memory.nbytes
        return self._bound("bcast", _address(message), nbytes, INT8, *self._root(call))

    def _point_to_point(self, function: str, call: Call) -> BoundCall:
        (message,) = call.messages
        assert call.peer is not None
        return self._bound(function, _address(message), message.memory.nbytes, INT8, call.peer)

    def _alltoall(self, call: Call) -> BoundCall:
        bound = []
        for message, function in zip(call.messages, ("send", "recv"), strict=True):
            block = message.memory.nbytes // self.comm.size
            for peer in range(self.comm.size):
                place = _address(message) + peer * block
                bound.append(self._bound(function, place, block, INT8, peer))
        return self._grouped(bound)

    def _rooted(self, own: str, others: str, call: Call) -> BoundCall:
        """Return a gather or a scatter: every rank's ``own`` function, the root's for all."""
        block, whole = call.operands if own == "send" else reversed(call.operands)
        assert isinstance(block, Message)
        assert call.root is not None
        nbytes = block.memory.nbytes
        bound = [self._bound(own, _address(block), nbytes, INT8, call.root)]
        for peer in range(self.comm.size) if whole is not None else ():
            bound.append(self._bound(others, _address(whole) + peer * nbytes, nbytes, INT8, peer))
        return self._grouped(bound)

    def _sendrecv(self, call: Call) -> BoundCall:
        return self._grouped([self._bind_call(one) for one in parts_of_sendrecv(call)])

    def _root(self, call: Call) -> list[int]:
        return [] if call.root is None else [call.root]


def _call_grouped(start: BoundCall, end: BoundCall, calls: Sequence[BoundCall]) -> None:
    start()
    for call in calls:
        call()
    end()


def _address(operand: Any) -> int:
    return operand.memory.address if isinstance(operand, Message) else 0


def _load() -> tuple[Any, NcclLibrary]:
    """Return CuPy's module of streams, and NCCL.

    Raises `MissingError` when there is no NCCL, or no device.
    """
    try:
        from cupy import cuda
    except ImportError as error:
        raise MissingError(f"binding nccl needs CuPy: {installing_cuda()}") from error
    if not cuda.is_available():
        raise MissingError("binding nccl needs an NVIDIA device, and CuPy finds none")
    try:
        return cuda, by_nccl4py()
    except ImportError:
        return cuda, by_cupy()


BINDING = NcclBinding
