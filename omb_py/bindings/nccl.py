"""NVIDIA's NCCL beside MPI: the same benchmarks, its calls on a stream of the device.

MPI starts the job, tells ranks apart and keeps them together between iterations; the messages are
NCCL's alone. Calls go through CuPy's wrapper, `cupy.cuda.nccl`.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from omb_py.bindings import Binding, BoundCall, calls_of
from omb_py.core.calls import Call, Iteration, Message, Step
from omb_py.core.calls.loop import Calls, Loop, Pace, PythonLoop
from omb_py.core.errors import MissingError, UnsupportedError, installing_cuda
from omb_py.core.memory import Local
from omb_py.core.options import Options

if TYPE_CHECKING:
    from mpi4py import MPI

IDENTITY_BYTES = 128
MILLISECOND = 1e-3

DTYPES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
"""What NCCL adds up, by NumPy's names; NCCL's are the same in capitals."""


class NcclBinding(Binding):
    """``communicator.allReduce(send, receive, count, type, operation, stream)``."""

    name = "nccl"
    passes_addresses = False

    def __init__(self, comm: MPI.Intracomm, options: Options) -> None:
        super().__init__(comm, options)
        self._cuda, self._nccl = _load()
        self._stream = self._cuda.Stream(non_blocking=True)
        self._communicator = self._connect()
        self._known: dict[str, Callable[[Call], BoundCall]] = {
            "allgather": self._allgather,
            "allreduce": self._reduction("allReduce"),
            "alltoall": self._alltoall,
            "bcast": self._bcast,
            "irecv": partial(self._point_to_point, "recv"),
            "isend": partial(self._point_to_point, "send"),
            "recv": partial(self._point_to_point, "recv"),
            "reduce": self._reduction("reduce"),
            "reduce_scatter": self._reduction("reduceScatter"),
            "reduce_scatter_block": self._reduction("reduceScatter"),
            "send": partial(self._point_to_point, "send"),
        }

    @staticmethod
    def check() -> None:
        _load()

    def bind(self, step: Step) -> BoundCall:
        queue = self._queue(step)
        wait = self._stream.synchronize

        def call() -> None:
            queue()
            wait()

        return call

    def loop(self, rounds: Sequence[Iteration], pace: Pace) -> Loop:
        if any(round_.everything != round_.steps for round_ in rounds):
            raise UnsupportedError(
                "binding nccl makes no calls before or after those of an iteration: leave out "
                "--cold, or use --binding buffer"
            )
        return NcclLoop(
            self._cuda,
            self._stream,
            [tuple(self._queue(step) for step in round_.steps) for round_ in rounds],
            self.comm.Barrier if pace.barrier else None,
            pace.start.wait if pace.start else None,
        )

    def describe(self) -> dict[str, str]:
        version = self._nccl.get_version()
        return {"nccl": f"{version // 10000}.{version % 10000 // 100}.{version % 100}"}

    def _connect(self) -> Any:
        from mpi4py import MPI

        identity = bytearray(IDENTITY_BYTES)
        if self.comm.rank == 0:
            identity[:] = bytes(byte & 0xFF for byte in self._nccl.get_unique_id())
        self.comm.Bcast([identity, IDENTITY_BYTES, MPI.BYTE], 0)
        make = self._nccl.NcclCommunicator
        try:
            try:
                return make(self.comm.size, bytes(identity), self.comm.rank)
            except TypeError:  # CuPy before 14
                signed = tuple(memoryview(identity).cast("b"))
                return make(self.comm.size, signed, self.comm.rank)
        except self._nccl.NcclError as error:
            raise MissingError(
                f"NCCL cannot connect the ranks ({error}): it wants a device for each rank; from "
                "2.30 on NCCL_MULTI_RANK_GPU_ENABLE=1 lets ranks share one"
            ) from error

    def _queue(self, step: Step) -> BoundCall:
        """A callable that puts a step's work on the stream."""
        if isinstance(step, Local):
            return step.run
        bound = [self._bind_call(call) for call in calls_of(step)]
        if len(bound) == 1:
            return bound[0]
        return partial(_grouped, self._nccl.groupStart, self._nccl.groupEnd, bound)

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

    def _reduction(self, method: str) -> Callable[[Call], BoundCall]:
        def bind(call: Call) -> BoundCall:
            described = call.messages[-1]
            if call.counts is not None and len(set(call.counts)) > 1:
                raise UnsupportedError(
                    "NCCL scatters parts of one length: choose --sizes that the ranks divide"
                )
            dtype = described.datatype.dtype
            if dtype not in DTYPES:
                raise UnsupportedError(f"NCCL cannot add {dtype}: choose another -T")
            kind = getattr(self._nccl, f"NCCL_{dtype.upper()}")
            arguments = [*map(_address, call.operands), described.elements, kind]
            arguments += [self._nccl.NCCL_SUM, *self._root(call), self._stream.ptr]
            return partial(getattr(self._communicator, method), *arguments)

        return bind

    def _allgather(self, call: Call) -> BoundCall:
        send, receive = map(_address, call.operands)
        data = self._bytes(call.messages[0])
        return partial(self._communicator.allGather, send, receive, *data, self._stream.ptr)

    def _bcast(self, call: Call) -> BoundCall:
        (message,) = call.messages
        data = self._bytes(message)
        arguments = (_address(message), *data, *self._root(call), self._stream.ptr)
        return partial(self._communicator.bcast, *arguments)

    def _point_to_point(self, method: str, call: Call) -> BoundCall:
        (message,) = call.messages
        arguments = (_address(message), *self._bytes(message), call.peer, self._stream.ptr)
        return partial(getattr(self._communicator, method), *arguments)

    def _alltoall(self, call: Call) -> BoundCall:
        bound = []
        for message, method in zip(call.messages, ("send", "recv"), strict=True):
            length, kind = self._bytes(message)
            block = length // self.comm.size
            make = getattr(self._communicator, method)
            for peer in range(self.comm.size):
                place = _address(message) + peer * block
                bound.append(partial(make, place, block, kind, peer, self._stream.ptr))
        return partial(_grouped, self._nccl.groupStart, self._nccl.groupEnd, bound)

    def _bytes(self, message: Message) -> tuple[int, int]:
        """How NCCL is told of data that it only moves: a count of bytes, and their type."""
        return message.memory.nbytes, self._nccl.NCCL_INT8

    def _root(self, call: Call) -> list[int]:
        return [] if call.root is None else [call.root]


class NcclLoop(PythonLoop):
    """Puts the work of each iteration on the stream and waits for it.

    The host's clock spans both; an event before and one after the work give the device's time.
    """

    def __init__(
        self,
        cuda: Any,
        stream: Any,
        exchanges: Sequence[Calls],
        barrier: BoundCall | None,
        start: BoundCall | None,
    ) -> None:
        super().__init__(exchanges, barrier, start)
        self._time = self._time_on_stream
        self._elapsed = cuda.get_elapsed_time
        self._events = cuda.Event(), cuda.Event()
        self._stream = stream
        self.device_seconds = array("d")
        self.queued_seconds = array("d")

    def _time_on_stream(self, sequence: Iterable[Calls], seconds: array[float]) -> None:
        stream, (begun, ended) = self._stream, self._events
        wait = stream.synchronize
        for index, calls in enumerate(sequence):
            begun.record(stream)
            begin = perf_counter()
            for call in calls:
                call()
            ended.record(stream)
            queued = perf_counter()
            wait()
            seconds[index] = perf_counter() - begin
            self.queued_seconds.append(queued - begin)
            self.device_seconds.append(self._elapsed(begun, ended) * MILLISECOND)


def _grouped(start: BoundCall, end: BoundCall, calls: Sequence[BoundCall]) -> None:
    start()
    for call in calls:
        call()
    end()


def _address(operand: Any) -> int:
    return operand.memory.address if isinstance(operand, Message) else 0


def _load() -> tuple[Any, Any]:
    """CuPy's modules for streams and for NCCL.

    Raises `MissingError` when there is no NCCL, or no device.
    """
    try:
        from cupy import cuda
        from cupy.cuda import nccl
    except ImportError as error:
        raise MissingError(f"binding nccl needs CuPy: {installing_cuda()}") from error
    if not nccl.available:
        raise MissingError(
            "CuPy finds no NCCL here: pip install nvidia-nccl-cu13 (or -cu12, as CuPy's own)"
        )
    if not cuda.is_available():
        raise MissingError("binding nccl needs an NVIDIA device, and CuPy finds none")
    return cuda, nccl


BINDING = NcclBinding
