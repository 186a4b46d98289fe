"""JAX's collectives between processes: psum, all_gather, all_to_all, psum_scatter and ppermute.

A step is a compiled program over a mesh of one device for each rank, by XLA's collectives: gloo or
MPI between processors, NCCL between GPUs. A program returns before it has ended: the loop keeps
both times. Arrays of JAX do not change, so messages are copied to the device before an iteration
and from it after a checked one, outside the time.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from socket import socket
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from omb_py.bindings import BoundCall, Start, StartedBinding
from omb_py.buffers import LONG_DOUBLES
from omb_py.buffers.jax import choose_processor
from omb_py.core.calls import Call, Message, Step
from omb_py.core.errors import MissingError, UnsupportedError
from omb_py.core.job import Job
from omb_py.core.job.address import address_of
from omb_py.core.job.by_mpi import job_of
from omb_py.core.memory import Local
from omb_py.core.options import Options

AXIS = "ranks"
BACKENDS = ("gloo", "mpi")
"""XLA's collectives between processors (`jax_cpu_collectives_implementation`)."""

TRAMPOLINE = "MPITRAMPOLINE_LIB"
"""The variable by which XLA finds an MPI library; without it the process is killed."""

SECONDS_TO_CONNECT = 60

Program: TypeAlias = Callable[[Any], Any]
"""What a rank makes of the array that it gives."""

PROGRAMS: dict[str, Program] = {
    "allreduce": lambda part: jax.lax.psum(part, AXIS),
    "allgather": lambda part: jax.lax.all_gather(part, AXIS, tiled=True),
    "alltoall": lambda part: jax.lax.all_to_all(part, AXIS, 0, 0, tiled=True),
    "reduce_scatter_block": lambda part: jax.lax.psum_scatter(part, AXIS, tiled=True),
}
"""What each rank does with its part, by MPI's name of the collective."""


class Work:
    """A program, the array that it is given, and the array that its last start makes."""

    def __init__(self, program: Program, given: Callable[[], Any]) -> None:
        """``given`` makes the array of what the memory of a message holds."""
        self._program = program
        self._given = given
        self._sent: Any = None
        self.received: Any = None

    def copy(self) -> None:
        """Take what the program shall be given, outside the time."""
        self._sent = self._given()

    def start(self) -> list[Work]:
        """Start it, and return what is to be waited for."""
        self.received = self._program(self._sent)
        return [self]

    def wait(self) -> None:
        """Wait for the end of the last start."""
        self.received.block_until_ready()


class CompiledBinding(StartedBinding):
    """Makes each step by a compiled program of JAX."""

    passes_addresses = False
    cannot_add = LONG_DOUBLES

    def __init__(self, comm: Any, options: Options) -> None:
        super().__init__(comm, options)
        job = job_of(comm)
        self._rank, self._size = job.rank, job.ranks
        self._program = cache(self.compiled)

    @abstractmethod
    def chosen(self, call: Call) -> tuple[Message, tuple[Any, ...]]:
        """Return the message whose memory a call reads, and what its program depends on.

        Raises `UnsupportedError` if there is no such program.
        """

    @abstractmethod
    def compiled(self, *key: Any) -> Program:
        """Return the program of what `chosen` returns, which compiles it when it is first run."""

    @abstractmethod
    def placed(self, elements: Any) -> Any:
        """Return an array of JAX with the elements of one of NumPy's."""

    def started(self, step: Step) -> tuple[Sequence[BoundCall], Start]:
        if isinstance(step, Local):
            return (), step.run
        work = self._work(step)
        return (work.copy,), work.start

    def deliver(self, step: Step, result: Any) -> None:
        message = step.written(self._rank) if isinstance(step, Call) else None
        if message is not None:
            (work,) = result
            arrived = np.asarray(work.received.addressable_shards[0].data)
            message.memory.write(arrived.view(np.uint8))

    def describe(self) -> dict[str, str]:
        return {"jax": jax.__version__}

    def _work(self, step: Step) -> Work:
        """Return a step's program, given the elements of its message, or the bytes."""
        if not isinstance(step, Call) or step.slot is not None:
            raise UnsupportedError(
                f"binding {self.name} has no non-blocking calls: measure latency or a blocking "
                "collective"
            )
        message, key = self.chosen(step)
        if not message.layout.contiguous:
            raise UnsupportedError(f"binding {self.name} sends contiguous data: leave out -D")
        elements = message.memory.ndarray(message.datatype.dtype if step.op else "uint8")
        return Work(self._program(*key), lambda: self.placed(elements.copy()))


class JaxBinding(CompiledBinding):
    """Calls such as ``jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "ranks"), …))(array)``."""

    name = "jax"
    needs_mpi = False
    own_options = ("backend", "interface")

    def __init__(self, comm: Any, options: Options) -> None:
        super().__init__(comm, options)
        job = job_of(comm)
        self._backend = options.backend or BACKENDS[0]
        if job.ranks != job.world().ranks:
            raise UnsupportedError("binding jax needs all ranks of the job: start fewer ranks")
        _connect(job, self._backend, options.interface)
        ours = {device.process_index: device for device in reversed(jax.devices())}
        self._mesh = Mesh(np.array([ours[rank] for rank in range(job.ranks)]), (AXIS,))
        self._sharding = NamedSharding(self._mesh, PartitionSpec(AXIS))

    def describe(self) -> dict[str, str]:
        return super().describe() | {"backend": self._backend}

    def chosen(self, call: Call) -> tuple[Message, tuple[Any, ...]]:
        if call.function in ("send", "recv") and self._size == 2 and call.peer is not None:
            (message,) = call.messages
            pair = (self._rank, call.peer)
            return message, ("ppermute", pair if call.function == "send" else pair[::-1])
        if call.function not in PROGRAMS or len(call.messages) < 2:
            raise UnsupportedError(
                f"binding jax has no {call.function} that this needs, only send and recv between "
                f"two ranks, and {', '.join(PROGRAMS)} into other memory: use --binding buffer"
            )
        return call.messages[0], (call.function,)

    def compiled(self, name: str, pair: tuple[int, int] | None = None) -> Program:
        def permuted(part: Any) -> Any:
            return jax.lax.ppermute(part, AXIS, [pair])

        function = permuted if pair else PROGRAMS[name]
        spec = PartitionSpec(AXIS)
        shared = jax.shard_map(function, mesh=self._mesh, in_specs=spec, out_specs=spec)
        compiled: Program = jax.jit(shared)
        return compiled

    def placed(self, elements: Any) -> Any:
        own = jax.device_put(elements, self._mesh.local_devices[0])
        shape = (len(elements) * self._size,)
        return jax.make_array_from_single_device_arrays(shape, self._sharding, [own])


def _connect(job: Job, backend: str, interface: str | None) -> None:
    """Connect all ranks, once; collective. Raises `MissingError` if JAX cannot."""
    if not jax.distributed.is_initialized():
        _initialize(job, backend, interface)
    platform = jax.default_backend()
    if (backend == "nccl") != (platform == "gpu"):
        raise MissingError(
            f"jax has no {backend} between devices of its platform {platform} here: choose "
            f"--backend {'nccl' if platform == 'gpu' else BACKENDS[0]}, or set JAX_PLATFORMS"
        )


def _initialize(job: Job, backend: str, interface: str | None) -> None:
    if backend not in BACKENDS and backend != "nccl":
        raise MissingError(f"jax has no backend {backend}: choose {' or '.join(BACKENDS)}")
    if backend == "mpi" and TRAMPOLINE not in os.environ:
        raise MissingError(
            f"jax's MPI collectives need MPItrampoline: set {TRAMPOLINE} to the MPIwrapper of your "
            "MPI library, or choose --backend gloo"
        )
    jax.config.update("jax_enable_x64", True)
    if backend in BACKENDS:
        choose_processor()
        jax.config.update("jax_cpu_collectives_implementation", backend)
    address = address_of(job, interface)
    with socket() as probe:
        probe.bind((address, 0))
        own = f"{address}:{probe.getsockname()[1]}"
    coordinator = job.bcast(own.encode()).decode()
    try:
        jax.distributed.initialize(
            coordinator, job.ranks, job.rank, initialization_timeout=SECONDS_TO_CONNECT
        )
    except (RuntimeError, ValueError) as error:
        text = " ".join(str(error).split())[:200]
        raise MissingError(f"jax cannot connect the ranks by {backend} ({text})") from error


BINDING = JaxBinding
