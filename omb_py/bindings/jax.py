"""JAX's collectives between processes: psum, all_gather, all_to_all, psum_scatter and ppermute.

A step is a compiled program over a mesh of one device for each rank, by XLA's collectives: gloo or
MPI between processors, NCCL between GPUs. A program returns before it has ended: the loop keeps
both times. Arrays of JAX do not change, so messages are copied to the device before an iteration
and from it after a checked one, outside the time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from socket import socket
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from omb_py.bindings import Binding, BoundCall, BoundIteration
from omb_py.core.calls import Call, Iteration, Message, Step
from omb_py.core.calls.loop import Calls, Loop, Pace, StartedLoop
from omb_py.core.errors import MissingError, UnsupportedError
from omb_py.core.job import Job
from omb_py.core.job.by_mpi import job_of
from omb_py.core.job.network import address_of
from omb_py.core.memory import Local
from omb_py.core.options import Options

AXIS = "ranks"
BACKENDS = ("gloo", "mpi")
"""XLA's collectives between processors (`jax_cpu_collectives_implementation`)."""

TRAMPOLINE = "MPITRAMPOLINE_LIB"
"""The variable by which XLA finds an MPI library; without it the process is killed."""

SECONDS_TO_CONNECT = 60

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "allreduce": lambda part: jax.lax.psum(part, AXIS),
    "allgather": lambda part: jax.lax.all_gather(part, AXIS, tiled=True),
    "alltoall": lambda part: jax.lax.all_to_all(part, AXIS, 0, 0, tiled=True),
    "reduce_scatter_block": lambda part: jax.lax.psum_scatter(part, AXIS, tiled=True),
}
"""What each rank does with its part, by MPI's name of the collective."""


class Work:
    """A program, the array that it is given, and the array that its last start makes."""

    def __init__(self, program: Callable[[Any], Any]) -> None:
        self._program = program
        self.sent: Any = None
        self.received: Any = None

    def start(self) -> list[Work]:
        """Start it, and return what is to be waited for."""
        self.received = self._program(self.sent)
        return [self]

    def wait(self) -> None:
        """Wait for the end of the last start."""
        self.received.block_until_ready()


class JaxBinding(Binding):
    """Calls such as ``jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "ranks"), …))(array)``."""

    name = "jax"
    needs_mpi = False
    passes_addresses = False
    serves_threads = False
    own_options = ("backend", "interface")

    def __init__(self, comm: Any, options: Options) -> None:
        super().__init__(comm, options)
        job = job_of(comm)
        self._rank, self._size = job.rank, job.ranks
        self._backend = options.backend or BACKENDS[0]
        if job.ranks != job.world().ranks:
            raise UnsupportedError("binding jax needs all ranks of the job: start fewer ranks")
        _connect(job, self._backend, options.interface)
        ours = {device.process_index: device for device in reversed(jax.devices())}
        self._mesh = Mesh(np.array([ours[rank] for rank in range(job.ranks)]), (AXIS,))
        self._sharding = NamedSharding(self._mesh, PartitionSpec(AXIS))
        self._program = cache(self._compiled)

    def bind(self, step: Step) -> BoundCall:
        if isinstance(step, Local):
            return step.run
        copy, work = self._made(step)
        return partial(_complete, copy, work)

    def bound(self, iteration: Iteration) -> BoundIteration:
        starts, before, after = self._parts_of(iteration)
        return BoundIteration(tuple(partial(_finish, start) for start in starts), before, after)

    def loop(self, iterations: Sequence[Iteration], pace: Pace) -> Loop:
        parts = [self._parts_of(iteration) for iteration in iterations]
        return StartedLoop(
            [starts for starts, _, _ in parts],
            self.barrier if pace.barrier else None,
            pace.start.wait if pace.start else None,
            [(before, after) for _, before, after in parts],
        )

    def deliver(self, step: Step, result: Any) -> None:
        if not isinstance(step, Call) or not step.operands or step.function == "send":
            return
        message = step.operands[-1]
        if isinstance(message, Message) and result is not None:
            arrived = np.asarray(result.addressable_shards[0].data)
            message.memory.write(arrived.view(np.uint8))

    def describe(self) -> dict[str, str]:
        return {"jax": jax.__version__, "backend": self._backend}

    def _parts_of(self, iteration: Iteration) -> tuple[Calls, Calls, Calls]:
        """Return what starts an iteration's steps, and the calls before and after them."""
        before: list[BoundCall] = [self.bind(step) for step in iteration.before]
        starts: list[BoundCall] = []
        for step in iteration.steps:
            if isinstance(step, Local):
                starts.append(step.run)
            else:
                copy, work = self._made(step)
                before.append(copy)
                starts.append(work.start)
        return tuple(starts), tuple(before), tuple(map(self.bind, iteration.after))

    def _made(self, step: Step) -> tuple[BoundCall, Work]:
        """Return what copies a step's data to the device, and its program."""
        if not isinstance(step, Call) or step.slot is not None:
            raise UnsupportedError(
                "binding jax has no non-blocking calls: measure latency or a blocking collective"
            )
        message, key = self._sent(step)
        if not message.layout.contiguous:
            raise UnsupportedError("binding jax sends contiguous data: leave out -D")
        work = Work(self._program(*key))
        return partial(self._copy, message, step.op is not None, work), work

    def _sent(self, call: Call) -> tuple[Message, tuple[Any, ...]]:
        """Return the message whose memory a call reads, and what its program depends on."""
        if call.function in ("send", "recv") and self._size == 2 and call.peer is not None:
            (message,) = call.messages
            pair = (self._rank, call.peer)
            return message, ("ppermute", pair if call.function == "send" else pair[::-1])
        sides = [side for side in call.operands if isinstance(side, Message)]
        if call.function not in PROGRAMS or len(sides) < 2:
            raise UnsupportedError(
                f"binding jax has no {call.function} that this needs, only send and recv between "
                f"two ranks, and {', '.join(PROGRAMS)} into other memory: use --binding buffer"
            )
        return sides[0], (call.function,)

    def _compiled(self, name: str, pair: tuple[int, int] | None = None) -> Callable[[Any], Any]:
        def permuted(part: Any) -> Any:
            return jax.lax.ppermute(part, AXIS, [pair])

        function = permuted if pair else PROGRAMS[name]
        spec = PartitionSpec(AXIS)
        shared = jax.shard_map(function, mesh=self._mesh, in_specs=spec, out_specs=spec)
        compiled: Callable[[Any], Any] = jax.jit(shared)
        return compiled

    def _copy(self, message: Message, added: bool, work: Work) -> None:
        """Put a message's elements, or its bytes, on this rank's device."""
        elements = message.memory.ndarray(message.datatype.dtype if added else "uint8").copy()
        own = jax.device_put(elements, self._mesh.local_devices[0])
        shape = (len(elements) * self._size,)
        work.sent = jax.make_array_from_single_device_arrays(shape, self._sharding, [own])


def _connect(job: Job, backend: str, interface: str | None) -> None:
    """Connect all ranks, once; collective. Raises `MissingError` if JAX cannot."""
    if jax.distributed.is_initialized():
        return
    if backend not in BACKENDS and backend != "nccl":
        raise MissingError(f"jax has no backend {backend}: choose {' or '.join(BACKENDS)}")
    if backend == "mpi" and TRAMPOLINE not in os.environ:
        raise MissingError(
            f"jax's MPI collectives need MPItrampoline: set {TRAMPOLINE} to the MPIwrapper of your "
            "MPI library, or choose --backend gloo"
        )
    jax.config.update("jax_enable_x64", True)
    if backend in BACKENDS:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
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


def _complete(copy: BoundCall, work: Work) -> Any:
    copy()
    return _finish(work.start)


def _finish(start: BoundCall) -> Any:
    for work in start() or ():
        work.wait()
        return work.received
    return None


BINDING = JaxBinding
