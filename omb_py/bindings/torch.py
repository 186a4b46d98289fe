"""torch.distributed: what programs that train with PyTorch call, on gloo, NCCL, MPI or UCC.

A call is started, with ``async_op=True`` if it is a collective, and waited for: the loop keeps both
times. On a device waiting means synchronizing the stream.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from omb_py.bindings import (
    BoundCall,
    Start,
    StartedBinding,
    calls_of,
    complete,
    torch_backend,
    waited_for,
)
from omb_py.buffers import on_device
from omb_py.core.calls import IN_PLACE, Call, Message, Step, parts_of_sendrecv
from omb_py.core.calls.loop import Stream, StreamLoop
from omb_py.core.errors import LeftOutError, MissingError, UnsupportedError
from omb_py.core.job import Job
from omb_py.core.job.address import address_of, interface_of
from omb_py.core.job.by_mpi import job_of
from omb_py.core.memory import Local
from omb_py.core.options import Options

BACKENDS = ("gloo", "nccl", "mpi", "ucc")
CONNECT_SECONDS = 60.0

INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
"""Variables by which backends take ``--interface``."""

ALL_GATHER, REDUCE_SCATTER = (
    next(name for name in names if hasattr(dist, name))
    for names in (
        ("all_gather_single", "all_gather_into_tensor"),
        ("reduce_scatter_single", "reduce_scatter_tensor"),
    )
)
"""The names of functions over one tensor; torch 2.13 calls the second ones deprecated."""


class TorchBinding(StartedBinding):
    """Calls such as ``dist.all_reduce(tensor, async_op=True).wait()``."""

    name = "torch"
    needs_mpi = False
    in_place_is_alias = True
    own_options = ("backend", "interface")
    initialized = False
    """True if omb-py made torch's group of all ranks: a program may have made one of its own."""

    def __init__(self, comm: Any, options: Options) -> None:
        super().__init__(comm, options)
        self._on_device = not options.staging and on_device(options.buffer)
        self._backend = torch_backend(options)
        job = job_of(comm)
        self._rank = job.rank
        self._size = job.ranks
        self._is_part = job.is_part
        self._group, self._ranks = _connect(job, self._backend, options.interface)
        self.wait_for_device = torch.cuda.current_stream().synchronize if self._on_device else None
        if self.wait_for_device is not None:
            self.loop_of = partial(on_stream, self.wait_for_device)
        self._lacking: dict[str, bool] = {}

    def describe(self) -> dict[str, str]:
        found = {"torch": torch.__version__, "backend": self._backend}
        if self._backend == "nccl":
            found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
        return found

    def close(self) -> None:
        group, self._group = self._group, None
        if group is not None:
            dist.destroy_process_group(group)
        elif not self._is_part:  # other parts of the job come after this one
            _end()

    def started(self, step: Step) -> tuple[Sequence[BoundCall], Start]:
        # torch reduces in place: a reduction into other memory begins with a copy
        if isinstance(step, Local):
            return (), step.run
        if isinstance(step, Call):
            if step.function.removeprefix("i") in ("allreduce", "reduce"):
                return self._reduction(step)
            return (), self._bind_call(step)
        calls = calls_of(step)
        if self._backend == "nccl":  # several sends and receives have to be one group
            return (), partial(dist.batch_isend_irecv, [self._operation(call) for call in calls])
        groups = [self._bind_call(call) for group in step.groups for call in group]
        return (), partial(_start_each, groups)

    def _bind_call(self, call: Call) -> Start:
        name = call.function
        if call.slot is not None and name in ("wait", "waitall"):
            return partial(self.held(call).__getitem__, waited_for(call))
        if call.slot is not None and name == "test":
            return partial(_test, self.held(call), call.index)
        if name in ("send", "recv", "isend", "irecv"):
            start: Start = partial(_start_one, *self._transfer(call), group=self._group)
        elif name == "sendrecv":
            both = [self._operation(one) for one in parts_of_sendrecv(call)]
            return partial(dist.batch_isend_irecv, both)
        elif name == "reduce_local":
            other, total = (self._tensor(message, typed=True) for message in call.messages)
            return partial(_nothing_of, partial(total.add_, other))
        else:
            start = self._known(call)
        return self._kept(call, start)

    def _known(self, call: Call) -> Start:
        plain = call.function
        if call.slot is not None:
            plain = plain.removeprefix("i")
        make = {
            "allgather": self._allgather,
            "alltoall": self._alltoall,
            "alltoallv": self._alltoall,
            "barrier": lambda call: self._collective(dist.barrier),
            "bcast": self._bcast,
            "gather": self._rooted,
            "reduce_scatter": self._reduce_scatter,
            "reduce_scatter_block": self._reduce_scatter,
            "scatter": self._rooted,
        }
        if plain not in make:
            raise UnsupportedError(
                f"binding torch has no {call.function}, only send, recv, isend, irecv, sendrecv, "
                f"allreduce, reduce, {', '.join(make)}: use --binding buffer"
            )
        return make[plain](call)

    def _collective(self, function: Callable[..., Any], *arguments: Any) -> Start:
        return partial(_start_one, function, *arguments, group=self._group, async_op=True)

    def _allgather(self, call: Call) -> Start:
        source, received = call.operands
        assert isinstance(received, Message)
        into = self._tensor(received)
        own = into.chunk(self._size)[self._rank] if len(into) else into
        given = self._tensor(source) if isinstance(source, Message) else own
        if self._lacks(ALL_GATHER, lambda a, b: (b, a)):
            return self._collective(dist.all_gather, list(into.chunk(self._size)), given)
        return self._collective(getattr(dist, ALL_GATHER), into, given)

    def _reduction(self, call: Call) -> tuple[Sequence[BoundCall], Start]:
        source, target = call.operands
        copies: list[BoundCall] = []
        if source is IN_PLACE:
            assert isinstance(target, Message)
            tensor = self._tensor(target, typed=True)
        else:
            assert isinstance(source, Message)
            given = self._tensor(source, typed=True)
            # torch leaves anything in what others than the root give
            tensor = self._tensor(target, True) if isinstance(target, Message) else given.clone()
            copies.append(partial(tensor.copy_, given))
        if call.root is None:
            start = self._collective(dist.all_reduce, tensor, dist.ReduceOp.SUM)
        else:
            root = self._ranks[call.root]
            start = self._collective(dist.reduce, tensor, root, dist.ReduceOp.SUM)
        return copies, self._kept(call, start)

    def _kept(self, call: Call, start: Start) -> Start:
        """Return a start whose work goes to the call's slot, if it has one, for a later wait."""
        if call.slot is None:
            return start
        return partial(_keep, start, self.held(call), call.index)

    def _reduce_scatter(self, call: Call) -> Start:
        source, target = call.operands
        if not isinstance(source, Message) or not isinstance(target, Message):
            raise UnsupportedError(
                f"torch's {REDUCE_SCATTER} leaves no result where MPI's in-place form does: "
                "leave out -l"
            )
        if call.counts is not None and len(set(call.counts)) > 1:
            raise LeftOutError("torch scatters parts of one length, and the ranks' parts differ")
        given = self._tensor(source, typed=True)
        part = self._tensor(target, typed=True)[: len(given) // self._size]
        if self._lacks(REDUCE_SCATTER, lambda a, b: (a, b)):
            raise UnsupportedError(
                f"{self._backend} of torch {torch.__version__} has no {REDUCE_SCATTER}: use a "
                "newer torch"
            )
        return self._collective(getattr(dist, REDUCE_SCATTER), part, given, dist.ReduceOp.SUM)

    def _alltoall(self, call: Call) -> Start:
        source, received = call.operands
        if not isinstance(source, Message) or not isinstance(received, Message):
            raise UnsupportedError("torch's all_to_all_single has no in-place form: leave out -l")
        given, into = self._tensor(source), self._tensor(received)
        if call.function.endswith("v"):
            splits = [
                [count * side.datatype.itemsize for count in side.counts]
                for side in (received, source)
            ]
            return self._collective(dist.all_to_all_single, into, given, *splits)
        return self._collective(dist.all_to_all_single, into, given)

    def _bcast(self, call: Call) -> Start:
        assert call.root is not None
        (message,) = call.messages
        return self._collective(dist.broadcast, self._tensor(message), self._ranks[call.root])

    def _rooted(self, call: Call) -> Start:
        """Return a call in which the root has a part of each rank; in place its own is there."""
        function, (mine, everybody) = dist.gather, call.operands
        if call.function.endswith("scatter"):
            function, mine, everybody = dist.scatter, everybody, mine
        assert call.root is not None
        parts = self._parts(everybody) if isinstance(everybody, Message) else None
        own = self._tensor(mine) if isinstance(mine, Message) else None
        if own is None:
            assert parts is not None
            own = parts[self._rank]
        return self._collective(function, own, parts, self._ranks[call.root])

    def _parts(self, message: Message) -> list[Any]:
        """Return a tensor for each rank."""
        tensor = self._tensor(message)
        return list(tensor.view(self._size, len(tensor) // self._size))

    def _transfer(self, call: Call) -> tuple[Callable[..., Any], Any, int]:
        """Return torch's function for a message between two ranks, its tensor and its peer."""
        assert call.peer is not None
        (message,) = call.messages
        function = dist.isend if call.function.endswith("send") else dist.irecv
        return function, self._tensor(message), self._ranks[call.peer]

    def _operation(self, call: Call) -> Any:
        return dist.P2POp(*self._transfer(call), self._group)

    def _tensor(self, message: Message, typed: bool = False) -> Any:
        """Return a tensor of a message's memory: of its elements if they matter, or of bytes."""
        memory = message.memory
        if not message.layout.contiguous:
            raise UnsupportedError("binding torch sends contiguous data: leave out -D")
        if memory.on_device and not self._on_device:
            raise UnsupportedError(
                f"torch's {self._backend} sends memory of the host here: add --staging, or choose "
                "--backend nccl"
            )
        if self._backend == "nccl" and not memory.on_device:
            raise UnsupportedError("NCCL moves memory on a device only: use --buffer cupy or torch")
        if isinstance(memory.array, torch.Tensor):
            tensor = memory.array.view(torch.uint8)
        elif memory.on_device:
            tensor = torch.as_tensor(memory.array, device="cuda").view(torch.uint8)
        elif memory.nbytes:
            tensor = torch.frombuffer(memory.view(), dtype=torch.uint8)
        else:
            tensor = torch.empty(0, dtype=torch.uint8)
        if not typed:
            return tensor
        dtype = getattr(torch, message.datatype.dtype, None)
        if not isinstance(dtype, torch.dtype):
            raise UnsupportedError(
                f"torch {torch.__version__} cannot add {message.datatype.dtype}: choose another -T"
            )
        return tensor.view(dtype)

    def _lacks(self, name: str, order: Callable[[Any, Any], tuple[Any, Any]]) -> bool:
        """Return whether the backend refuses a function, which older ones do before they send."""
        if name not in self._lacking:
            device = "cuda" if self._on_device else "cpu"
            one = torch.zeros(1, device=device), torch.zeros(self._size, device=device)
            try:
                getattr(dist, name)(*order(*one), group=self._group)
            except RuntimeError as error:
                if "support" not in str(error):
                    raise
                self._lacking[name] = True
            else:
                self._lacking[name] = False
        return self._lacking[name]


def on_stream(
    wait: Callable[[], Any], iterations: Sequence[Sequence[Start]], *pace: Any
) -> StreamLoop:
    """Return the loop of work on torch's current stream, which ``wait`` waits for."""
    begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    elapsed = partial(begun.elapsed_time, ended)
    queued = [tuple(partial(complete, (), one, None) for one in starts) for starts in iterations]
    return StreamLoop(Stream(begun.record, ended.record, wait, elapsed), queued, *pace)


def _connect(job: Job, backend: str, interface: str | None) -> tuple[Any, list[int]]:
    """Return the process group of these ranks, and their ranks among all of torch's; collective.

    None is our group of all ranks. Only torch refers to that group: else it would outlive its end.
    """
    whole = job.world()
    if not dist.is_initialized():
        _initialize(whole, backend, interface)
        TorchBinding.initialized = True
        atexit.register(_end)
    if TorchBinding.initialized and job.ranks == whole.ranks:
        return None, list(range(whole.ranks))
    ranks = [int(rank) for rank in job.allgather(b"%d" % dist.get_rank())]
    if job.ranks == whole.ranks:  # each with a name of its own: gloo finds the ranks by that
        return dist.new_group(ranks, backend=backend), ranks
    try:
        return dist.new_group(ranks, backend=backend, use_local_synchronization=True), ranks
    except TypeError:
        raise UnsupportedError(
            f"torch {torch.__version__} cannot make groups of some ranks by these alone: use torch "
            "2.1 or newer"
        ) from None


def _initialize(job: Job, backend: str, interface: str | None) -> None:
    """Connect all ranks by ``backend``; collective. Raises `MissingError` if it cannot."""
    there = [name for name in BACKENDS if getattr(dist, f"is_{name}_available", bool)()]
    if "gloo" not in there and not hasattr(dist, "is_gloo_available"):
        there.insert(0, "gloo")
    if backend in BACKENDS and backend not in there:
        raise MissingError(
            f"this torch ({torch.__version__}) is built without {backend}: choose --backend from "
            f"{', '.join(there)}, or install a torch that has it"
        )
    if interface is not None:
        for name in INTERFACES:
            os.environ.setdefault(name, interface)
    patience = timedelta(seconds=CONNECT_SECONDS)
    own = address_of(job, interface)
    if backend == "gloo" and (known := interface_of(own)) is not None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", known)  # else it is what the host's name means
    size, leads = job.ranks, job.rank == 0
    store = getattr(job, "store", None)  # torchrun's
    if store is None:
        host = job.bcast(own.encode()).decode()
        if leads:
            store = dist.TCPStore(host, 0, size, True, patience, wait_for_workers=False)
            job.bcast(b"%d" % store.port)
        else:
            store = dist.TCPStore(host, int(job.bcast(b"")), size, False, patience)
    try:
        dist.init_process_group(backend, store=store, rank=job.rank, world_size=size)
    except (RuntimeError, ValueError, AssertionError) as error:
        text = " ".join(str(error).split())[:200]
        raise MissingError(
            f"torch cannot connect the ranks by {backend} ({text}): choose another --backend, or "
            "--interface"
        ) from error


def _end() -> None:
    """Join torch's threads, which end the process by a signal where Python ends before them."""
    if TorchBinding.initialized and dist.is_initialized():
        dist.destroy_process_group()
    TorchBinding.initialized = False


def _start_one(function: Callable[..., Any], *arguments: Any, **named: Any) -> list[Any]:
    return [function(*arguments, **named)]


def _start_each(starts: Sequence[Start]) -> list[Any]:
    return [work for start in starts for work in start() or ()]


def _keep(start: Start, held: list[Any], index: int) -> None:
    (held[index],) = start() or (None,)


def _test(held: list[Any], index: int) -> None:
    held[index].is_completed()


def _nothing_of(action: Callable[[], Any]) -> None:
    action()


BINDING = TorchBinding
