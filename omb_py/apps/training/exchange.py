"""Gradients averaged over the ranks, as Horovod and PyTorch's DDP do it.

Gradients arrive in the order of the backward pass: the last declared one first. They travel in
buckets, packed into a buffer if there are several in one, and are summed in one of several ways
(`Summing`). The buckets are planned once, as by DDP.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from omb_py.apps import Detail, shares
from omb_py.apps.runtime.phases import Timed
from omb_py.apps.runtime.team import Array, Team
from omb_py.apps.training import Training
from omb_py.bindings import BoundCall
from omb_py.core.calls import IN_PLACE, Call, Slot
from omb_py.core.datatypes import HALF, Datatype, find_types
from omb_py.core.errors import UsageError
from omb_py.core.job import first_ranks
from omb_py.core.job.by_mpi import job_of
from omb_py.core.options import LIBRARY
from omb_py.core.text.units import MEBIBYTE


class GradientExchange:
    """Averages gradients over the ranks of a team; one rank makes no calls.

    Raises `UsageError` for options that exclude each other.
    """

    def __init__(self, team: Team, gradients: Sequence[Array], training: Training) -> None:
        """``gradients`` are of float32, in the order of their declaration; collective."""
        check(training)
        self._there = [False] * len(gradients)
        self._arrived = 0
        self._sent = 0
        self._steps = 0
        self._early = training.overlap
        self._plan: Plan = []
        self._summing: Summing | None = None
        self._fused: FusedBuffers | None = None
        datatype = datatype_of(training)
        self._bytes = elements(gradients) * datatype.itemsize
        if team.ranks == 1:
            return
        arriving = gradients[::-1]
        counts = [gradient.data.size for gradient in arriving]
        sizes = [count * datatype.itemsize for count in counts]
        packed = room(sizes, training) // datatype.itemsize
        buffer = team.array(packed, datatype) if packed else None
        self._summing = summing_of(team, training, max(packed, *counts), datatype)
        self._fused = FusedBuffers(team, arriving, self._summing, buffer, training.overlap)
        self._plan = plan_of(training, sizes)
        for bucket in self._plan:
            self._fused.of(*bucket)

    def begin(self) -> None:
        """Begin training, before any gradient is ready."""
        self._steps = 0
        if self._fused is not None:
            self._fused.begin()

    def ready(self, tensor: int) -> None:
        """Note that gradient number ``tensor`` is complete; with overlap, send complete buckets."""
        there = self._there
        there[-1 - tensor] = True
        while self._arrived < len(there) and there[self._arrived]:
            self._arrived += 1
        if self._early:
            self._send()

    def finish(self) -> None:
        """Return when all gradients of a step, which are ready now, are averaged."""
        self._arrived = len(self._there)
        self._send()
        if self._fused is not None:
            self._fused.complete()
        self._there = [False] * len(self._there)
        self._arrived = self._sent = 0
        self._steps += 1

    def parts(self) -> list[Detail]:
        """Return details of the steps since the beginning."""
        count = len(self._there)
        size = Detail(f"Gradients of a step: {count}", value=self._bytes / MEBIBYTE, unit="MiB")
        if self._fused is None or self._summing is None:
            return [size]
        buckets = Detail("Buckets of a step", value=self._fused.sent / max(1, self._steps))
        copies = Detail("Fusion copies and averaging", seconds=self._fused.seconds[PACKING])
        return [size, buckets, copies, *self._summing.parts()]

    def _send(self) -> None:
        """Send each complete bucket that has not been sent."""
        while self._sent < len(self._plan) and self._plan[self._sent][1] <= self._arrived:
            assert self._fused is not None
            self._fused.send(*self._plan[self._sent])
            self._sent += 1


def datatype_of(training: Training) -> Datatype:
    """Return the type in which gradients travel, and in which limits of buckets are counted."""
    return HALF if training.compression == "fp16" else find_types(("float32",))[0]


def room(sizes: Sequence[int], training: Training) -> int:
    """Return the bytes of the buffer that packs gradients of these sizes; 0 without packing.

    That is enough for the largest bucket, or for all of them if many are under way.
    """
    half = training.compression == "fp16"
    if training.fusion == 0 and not half:
        return 0
    if training.overlap:
        return sum(sizes)
    buckets = [sizes[slice(*bucket)] for bucket in plan_of(training, sizes)]
    return max((sum(bucket) for bucket in buckets if half or len(bucket) > 1), default=0)


def check(training: Training) -> None:
    """Raise `UsageError` for options of an exchange that exclude each other."""
    if training.overlap and training.hierarchical:
        raise UsageError(
            "--hierarchical has several calls, one after the other: leave out --overlap"
        )
    if training.allreduce != LIBRARY and (training.overlap or training.hierarchical):
        other = "overlap" if training.overlap else "hierarchical"
        raise UsageError(
            f"--allreduce {training.allreduce} is many calls, one after the other: leave out "
            f"--{other}, or use --allreduce {LIBRARY}"
        )
    if training.buckets == "ddp" and training.fusion == 0:
        raise UsageError("--fusion 0 leaves no buckets: leave out --buckets")


FIRST_BUCKET = 1 * MEBIBYTE
"""Bytes at which DDP closes its first bucket, so that the first message leaves early."""

Plan = list[tuple[int, int]]


def plan_of(training: Training, sizes: Sequence[int]) -> Plan:
    """Return the buckets of all gradients, of so many bytes each, as ``training`` asks for them."""
    if training.fusion == 0:
        return [(place, place + 1) for place in range(len(sizes))]
    if training.buckets == "ddp":
        return ddp(sizes, training.fusion)
    return horovod(sizes, training.fusion)


def horovod(sizes: Sequence[int], threshold: int) -> Plan:
    """Return Horovod's buckets: gradients are added up to ``threshold`` bytes.

    A larger one gets a bucket of its own. (From ``Controller::FuseResponses``; that it looks past
    gradients of another type makes no difference if all have one type.)
    """
    return list(_horovod(sizes, threshold))


def _horovod(sizes: Sequence[int], threshold: int) -> Iterator[tuple[int, int]]:
    begin = fused = 0
    for place, size in enumerate(sizes):
        if place > begin and fused + size > threshold:
            yield begin, place
            begin, fused = place, 0
        fused += size
    if sizes:
        yield begin, len(sizes)


def ddp(sizes: Sequence[int], limit: int, first: int = FIRST_BUCKET) -> Plan:
    """Return DistributedDataParallel's buckets, closed as soon as they have ``limit`` bytes.

    So its last gradient may take it beyond. The first one is closed at ``first``. (From
    ``compute_bucket_assignment_by_size``, in DDP's order after its first step.)
    """
    return list(_ddp(sizes, limit, first))


def _ddp(sizes: Sequence[int], limit: int, first: int) -> Iterator[tuple[int, int]]:
    begin = held = 0
    for end, size in enumerate(sizes, start=1):
        held += size
        if held >= (first if begin == 0 else limit):
            yield begin, end
            begin, held = end, 0
    if begin < len(sizes):
        yield begin, len(sizes)


@dataclass(frozen=True)
class GradientSum:
    """A sum that can be started, and then waited for, again and again.

    ``start`` are the calls that start it.
    """

    start: Sequence[BoundCall]
    wait: BoundCall


class Summing(ABC):
    """A way to sum arrays over the ranks of a team."""

    @abstractmethod
    def sum(self, array: Array) -> GradientSum:
        """Return the bound sum of an array; collective."""

    def parts(self) -> list[Detail]:
        """Return details of the sums."""
        return []


class Blocking(Summing):
    """One allreduce, done when it is started."""

    def __init__(self, team: Team) -> None:
        self._team = team

    def sum(self, array: Array) -> GradientSum:
        return GradientSum([_allreduce(self._team, array)], self._team.bind())


class Background(Summing):
    """A non-blocking allreduce. That waiting for it is waiting hides that it also transfers."""

    def __init__(self, team: Team) -> None:
        self._team = team

    def sum(self, array: Array) -> GradientSum:
        team, slot = self._team, Slot()
        operands = team.in_place(array.message())
        start = team.bind(Call("iallreduce", operands, op="sum", slot=slot))
        return GradientSum([start], team.bind(Call("wait", slot=slot)))


class SumByAlgorithm(Summing):
    """Messages between two ranks, and additions (`omb_py.benchmarks.algorithms`)."""

    def __init__(self, team: Team, training: Training, largest: int, datatype: Datatype) -> None:
        """Prepare sums of arrays of at most ``largest`` elements; collective."""
        self._team = team
        self._algorithm = training.allreduce
        self._nodes = nodes_of(team, training.ranks_per_node)
        # Sums follow each other and share this; two halves of an odd number are one more.
        self._further = team.array(largest + 1, datatype)

    def sum(self, array: Array) -> GradientSum:
        team = self._team
        call = Call("allreduce", (IN_PLACE, array.message()), op="sum")
        steps = team.own_steps(
            call, self._algorithm, lambda count: self._further.rows(0, count).message(), self._nodes
        )
        return GradientSum([team.bind(*steps)], team.bind())


class Hierarchy(Summing):
    """Inside each node first, then across nodes.

    If all nodes have as many ranks, these are a reduce-scatter inside a node, an allreduce of each
    shard with the same rank of other nodes, and an allgather inside (Horovod's
    ``NCCLHierarchicalAllreduce``). Otherwise a rank of each node sums for it: a reduce, an
    allreduce among these, and a broadcast.
    """

    def __init__(self, team: Team, largest: int, datatype: Datatype, pretended: int) -> None:
        """Prepare sums of at most ``largest`` elements; ``pretended`` ranks are on a node, or 0."""
        nodes = nodes_of(team, pretended)
        self.nodes = len(set(nodes))
        self.pretended = bool(pretended)
        self.even = len({nodes.count(node) for node in nodes}) == 1
        self._inside = team.split(nodes[team.rank])
        rank = self._inside.rank
        self._across = team.split(rank if self.even else min(rank, 1))
        self._shard = team.array(shares(largest, self._inside.ranks)[0], datatype)

    def sum(self, array: Array) -> GradientSum:
        start = self._by_shards(array) if self.even else self._by_leaders(array)
        return GradientSum(start, self._inside.bind())

    def parts(self) -> list[Detail]:
        return [Detail("Nodes, pretended" if self.pretended else "Nodes", value=self.nodes)]

    def _by_shards(self, array: Array) -> list[BoundCall]:
        inside = self._inside
        if inside.ranks == 1:
            return [_allreduce(self._across, array)]
        counts = shares(array.data.size, inside.ranks)
        shard = self._shard.rows(0, counts[inside.rank])
        whole = array.message(counts)
        if len(set(counts)) == 1:
            scatter = Call("reduce_scatter_block", (whole, shard.message()), op="sum")
            gather = Call("allgather", (shard.message(), whole))
        else:
            scatter = Call(
                "reduce_scatter", (array.message(), shard.message()), op="sum", counts=counts
            )
            gather = Call("allgatherv", (shard.message(), array.message(counts, "v")))
        across = [_allreduce(self._across, shard)] if self._across.ranks > 1 else []
        return [inside.bind(scatter), *across, inside.bind(gather)]

    def _by_leaders(self, array: Array) -> list[BoundCall]:
        inside, message = self._inside, array.message()
        leads = inside.rank == 0
        operands = inside.in_place(message) if leads else (message, None)
        reduce = inside.bind(Call("reduce", operands, op="sum", root=0))
        across = [_allreduce(self._across, array)] if leads else []
        back = inside.bind(Call("bcast", (message,), root=0))
        return [reduce, *across, back]


def nodes_of(team: Team, pretended: int) -> tuple[int, ...]:
    """Return a number for each rank's node, or for ``pretended`` ranks each; collective."""
    if pretended:
        from mpi4py import MPI

        return tuple(team.comm.allgather(MPI.COMM_WORLD.rank // pretended))
    return first_ranks(job_of(team.comm))


def summing_of(team: Team, training: Training, largest: int, datatype: Datatype) -> Summing:
    """Return ``training``'s way of summing arrays of at most ``largest`` elements; collective."""
    if training.allreduce != LIBRARY:
        return SumByAlgorithm(team, training, largest, datatype)
    if training.hierarchical:
        return Hierarchy(team, largest, datatype, training.ranks_per_node)
    return Background(team) if training.overlap else Blocking(team)


def _allreduce(team: Team, array: Array) -> BoundCall:
    call = Call("allreduce", team.in_place(array.message()), op="sum")
    return team.bind(call)


PACKING = "packing"
"""The key of the seconds of packing and unpacking."""


@dataclass(frozen=True)
class FusedBuffer:
    """Gradients that travel together: what packs them, their sum, and what unpacks it."""

    packs: Sequence[Callable[[], Any]]
    sum: GradientSum
    unpacks: Sequence[Callable[[], Any]]
    packing: Timed

    def send(self) -> None:
        """Pack and start the sum."""
        if self.packs:
            with self.packing:
                for pack in self.packs:
                    pack()
        for call in self.sum.start:
            call()

    def receive(self) -> None:
        """Wait for the sum, and give each gradient the average."""
        self.sum.wait()
        with self.packing:
            for unpack in self.unpacks:
                unpack()


class FusedBuffers:
    """The fused buffer of each stretch of the arriving gradients, made when it is sent first."""

    def __init__(
        self,
        team: Team,
        gradients: Sequence[Array],
        summing: Summing,
        buffer: Array | None,
        overlap: bool,
    ) -> None:
        """``gradients`` are in the order of their arrival.

        Several of them are packed at the beginning of ``buffer``. With ``overlap`` many are under
        way at a time, and each gradient has a place of its own there. Without a buffer gradients
        travel one by one.
        """
        self.seconds = {PACKING: 0.0}
        self._packing = Timed(self.seconds, PACKING, team.buffer.wait())
        self.sent = 0
        self._xp = team.xp
        self._ranks = team.ranks
        self._gradients = gradients
        self._summing = summing
        self._buffer = buffer
        self._overlap = overlap
        self._made: dict[tuple[int, int], FusedBuffer] = {}
        self._under_way: list[FusedBuffer] = []

    def begin(self) -> None:
        """Count anew."""
        self.seconds[PACKING] = 0.0
        self.sent = 0

    def of(self, begin: int, end: int) -> FusedBuffer:
        """Return the fused buffer of the gradients from ``begin`` to ``end``."""
        if (begin, end) not in self._made:
            self._made[begin, end] = self._make(begin, end)
        return self._made[begin, end]

    def send(self, begin: int, end: int) -> None:
        """Send a fused buffer; it has arrived at once, or in `complete` where sending overlaps."""
        fused = self.of(begin, end)
        fused.send()
        self.sent += 1
        if self._overlap:
            self._under_way.append(fused)
        else:
            fused.receive()

    def complete(self) -> None:
        """Wait for all that is under way."""
        for fused in self._under_way:
            fused.receive()
        self._under_way.clear()

    def _make(self, begin: int, end: int) -> FusedBuffer:
        gradients, buffer = self._gradients[begin:end], self._buffer
        divide, copy, ranks = self._xp.divide, self._xp.copyto, self._ranks
        if buffer is None or (end - begin == 1 and buffer.datatype != HALF):
            (alone,) = gradients
            average = partial(divide, alone.data, ranks, alone.data)
            return FusedBuffer((), self._summing.sum(alone), (average,), self._packing)
        start = elements(self._gradients[:begin]) if self._overlap else 0
        place = buffer.rows(start, start + elements(gradients))
        packs, unpacks, start = [], [], 0
        for gradient in gradients:
            flat = gradient.data.reshape(-1)
            packed = place.data[start : start + flat.size]
            start += flat.size
            if buffer.datatype == HALF:
                # Divided before, a sum overflows only where the average does.
                packs.append(partial(self._xp.multiply, flat, 1 / ranks, packed))
                unpacks.append(partial(copy, flat, packed))
            else:
                packs.append(partial(copy, packed, flat))
                unpacks.append(partial(divide, packed, ranks, flat))
        return FusedBuffer(packs, self._summing.sum(place), unpacks, self._packing)


def elements(gradients: Sequence[Array]) -> int:
    """Return the count of numbers of several gradients together."""
    return sum(gradient.data.size for gradient in gradients)
