"""Gradients averaged over the ranks, as Horovod and PyTorch's DDP do it.

Gradients arrive in the order of the backward pass: the last declared one first. They travel in
buckets, packed into a buffer if there are several in one, and are summed in one of several ways
(`summing`). The buckets are planned once, as by DDP. In half precision, ranks divide their
gradients by the ranks and round them before the sum, as DDP's ``fp16_compress_hook`` does.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import expm1
from statistics import fmean
from time import perf_counter
from typing import Any

from omb_py.apps import Detail
from omb_py.apps.runtime.phases import Phase, Timed
from omb_py.apps.runtime.team import Array, Team
from omb_py.apps.training import Training
from omb_py.bindings import Binding, BoundCall
from omb_py.core.calls import IN_PLACE, Call, Slot
from omb_py.core.datatypes import BRAIN, narrow, widen
from omb_py.core.errors import UnsupportedError, UsageError
from omb_py.core.job import first_ranks
from omb_py.core.job.by_mpi import job_of
from omb_py.core.options import LIBRARY
from omb_py.core.text.units import MEBIBYTE

PACKING, NEGOTIATION = "packing", "negotiation"
"""The keys of the seconds of packing and unpacking, and of negotiating."""

CYCLE_SECONDS = 1e-3
"""Time between two cycles of Horovod's by default (``HOROVOD_CYCLE_TIME``)."""


class GradientExchange:
    """Averages gradients over the ranks of a team; one rank makes no calls.

    ``averages`` are the gradients themselves, unless messages are in half precision: from averages,
    which are rounded, the next step would not have the expected gradients. Raises `UsageError` for
    options that exclude each other, `UnsupportedError` for elements that cannot be added.
    """

    def __init__(self, team: Team, gradients: Sequence[Array], training: Training) -> None:
        """``gradients`` are of float32, in the order of their declaration; collective."""
        check(training)
        self._team = team
        self._there = [False] * len(gradients)
        self._arrived = self._agreed = 0
        self._sent = 0
        self._overlap = training.overlap
        self._seconds = {PACKING: 0.0, NEGOTIATION: 0.0}
        itemsize = training.datatype.itemsize
        sizes = [itemsize * gradient.data.size for gradient in gradients[::-1]]
        self._bytes = sum(sizes)
        self.averages = gradients
        self._plan: Plan = []
        self._buckets: list[Bucket] = []
        self._negotiate = training.negotiate and team.ranks > 1
        self._word = array("q", (0,))
        self._cycles, self._due = 0, 0.0
        if team.ranks > 1:
            check_sum(team.binding, training)
            if training.half:
                self.averages = [team.array(gradient.data.shape) for gradient in gradients]
            self._plan = plan_of(training, sizes)
            packing = Timed(self._seconds, PACKING, team.buffer.wait())
            pairs = list(zip(gradients, self.averages, strict=True))[::-1]
            self._buckets = buckets_of(team, pairs, self._plan, training, packing)

    def begin(self) -> None:
        """Begin training, before any gradient is ready."""
        self._seconds.update(dict.fromkeys(self._seconds, 0.0))
        self._cycles = 0

    def ready(self, tensor: int) -> None:
        """Note that gradient number ``tensor`` is complete; with overlap, send complete buckets.

        A negotiation has a cycle at most every `CYCLE_SECONDS` here, whatever is complete: ranks
        that wait in `finish` have theirs with it.
        """
        there = self._there
        there[-1 - tensor] = True
        while self._arrived < len(there) and there[self._arrived]:
            self._arrived += 1
        if not self._negotiate or perf_counter() >= self._due:
            self._agree()

    def finish(self) -> None:
        """Return when all gradients of a step, which are ready now, are averaged."""
        self._arrived = len(self._there)
        while self._agreed < self._arrived:
            self._agree()
        self._send()
        if self._overlap:
            for bucket in self._buckets:
                bucket.receive()
        self._there = [False] * len(self._there)
        self._arrived = self._agreed = self._sent = 0

    def parts(self) -> list[Detail]:
        """Return details of the steps since the beginning; collective."""
        count = len(self._there)
        size = Detail(f"Gradients of a step: {count}", value=self._bytes / MEBIBYTE, unit="MiB")
        if not self._buckets:
            return [size]
        buckets = Detail("Buckets of a step", value=len(self._buckets))
        copies = Detail("Fusion copies and averaging", seconds=self._seconds[PACKING])
        return [size, buckets, copies, *self._negotiation()]

    def _negotiation(self) -> Iterator[Detail]:
        """Yield the negotiation: the mean rank's seconds, and how much of all communication."""
        if self._negotiate:
            spent, phases = self._seconds[NEGOTIATION], self._team.phases.seconds
            own = spent, phases[Phase.COMMUNICATE] + phases[Phase.WAIT]
            mean, whole = map(fmean, zip(*self._team.comm.allgather(own), strict=True))
            name, unit = "Negotiation, mean of the ranks", "% of communicating and waiting"
            yield Detail(name, mean, 100 * mean / whole, unit, self._cycles, self._word.itemsize)

    def _agree(self) -> None:
        """Find out how many gradients all ranks have; with overlap, send these buckets."""
        self._agreed = self._cycle() if self._negotiate else self._arrived
        if self._overlap:
            self._send()

    def _cycle(self) -> int:
        """Return how many gradients all ranks have, by an allreduce.

        As in Horovod (``MPIController::CrossRankBitwiseAnd``), it is MPI's, whatever the binding.
        Gradients arrive in one order, so that their number stands for the bits of all.
        """
        from mpi4py import MPI

        self._word[0], began = self._arrived, perf_counter()
        with Timed(self._team.phases.seconds, Phase.WAIT), Timed(self._seconds, NEGOTIATION):
            self._team.comm.Allreduce(MPI.IN_PLACE, [self._word, MPI.INT64_T], MPI.MIN)
        self._cycles += 1
        self._due = began + CYCLE_SECONDS
        return self._word[0]

    def _send(self) -> None:
        """Send each bucket that is complete on all ranks and has not been sent."""
        while self._sent < len(self._plan) and self._plan[self._sent][1] <= self._agreed:
            bucket = self._buckets[self._sent]
            bucket.send()
            if not self._overlap:
                bucket.receive()
            self._sent += 1


def check(training: Training) -> None:
    """Raise `UsageError` for options of an exchange that exclude each other."""
    if training.allreduce != LIBRARY and training.overlap:
        raise UsageError(
            f"--allreduce {training.allreduce} is many calls, one after the other: leave out "
            f"--overlap, or use --allreduce {LIBRARY}"
        )
    if training.buckets == "ddp" and training.fusion == 0:
        raise UsageError("--fusion 0 leaves no buckets: leave out --buckets")


def check_sum(binding: Binding, training: Training) -> None:
    """Raise `UnsupportedError` if neither the binding nor its own algorithms add the gradients."""
    own = training.datatype.code in binding.own_sums
    if not own or training.allreduce == LIBRARY:
        try:
            binding.check_sum(training.datatype)
        except UnsupportedError as error:
            instead = ", or add --allreduce ring" if own else ""
            raise UnsupportedError(f"{error}{instead}") from error


def limit(training: Training, ranks: int) -> float:
    """Return by how much averages may differ, relative to their size.

    A gradient is rounded when it is packed and in each sum, by half of the distance between two
    numbers at most; in single precision none is, for sums are small whole numbers.
    """
    return expm1(ranks / training.datatype.largest) if training.half else 0.0


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
    found: Plan = []
    begin = fused = 0
    for place, size in enumerate(sizes):
        if place > begin and fused + size > threshold:
            found.append((begin, place))
            begin, fused = place, 0
        fused += size
    return [*found, (begin, len(sizes))] if sizes else []


def ddp(sizes: Sequence[int], limit: int, first: int = FIRST_BUCKET) -> Plan:
    """Return DistributedDataParallel's buckets, closed as soon as they have ``limit`` bytes.

    So its last gradient may take it beyond. The first one is closed at ``first``. (From
    ``compute_bucket_assignment_by_size``, in DDP's order after its first step.)
    """
    found: Plan = []
    begin = held = 0
    for end, size in enumerate(sizes, start=1):
        held += size
        if held >= (first if begin == 0 else limit):
            found.append((begin, end))
            begin, held = end, 0
    return [*found, (begin, len(sizes))] if begin < len(sizes) else found


def room(sizes: Sequence[int], plan: Plan, training: Training) -> int:
    """Return the size of the buffer that packs gradients of these sizes; 0 without packing.

    That is enough for the largest bucket, or for all of them if many are under way. In half
    precision also single gradients are packed.
    """
    packed = [sum(sizes[begin:end]) for begin, end in plan if training.half or end - begin > 1]
    return sum(sizes) if packed and training.overlap else max(packed, default=0)


Sum = tuple[BoundCall, BoundCall]
"""What starts the sum of an array over the ranks, and what waits for it, again and again."""


def summing(team: Team, training: Training, largest: int) -> Callable[[Array], Sum]:
    """Return a function that binds the sum of an array over the ranks; collective.

    An array has at most ``largest`` elements.
    """
    if training.allreduce != LIBRARY:
        return by_algorithm(team, training, largest)

    def blocking(array: Array) -> Sum:
        call = Call("allreduce", team.in_place(array.message()), op="sum")
        return team.bind(call), team.bind()

    def background(array: Array) -> Sum:
        # That waiting for it is waiting hides that it also transfers.
        slot = Slot()
        start = Call("iallreduce", team.in_place(array.message()), op="sum", slot=slot)
        return team.bind(start), team.bind(Call("wait", slot=slot))

    return background if training.overlap else blocking


def by_algorithm(team: Team, training: Training, largest: int) -> Callable[[Array], Sum]:
    """Return `summing`'s function for an own algorithm (`omb_py.benchmarks.algorithms`)."""
    nodes = nodes_of(team, training.ranks_per_node)
    # Sums follow each other and share this; two halves of an odd number are one more.
    further = team.array(largest + 1, training.dtype)

    def bind(array: Array) -> Sum:
        call = Call("allreduce", (IN_PLACE, array.message()), op="sum")
        steps = team.own_steps(
            call, training.allreduce, lambda count: further.rows(0, count).message(), nodes
        )
        return team.bind(*steps), team.bind()

    return bind


def nodes_of(team: Team, pretended: int) -> tuple[int, ...]:
    """Return a number for each rank's node, or for ``pretended`` ranks each; collective."""
    if pretended:
        from mpi4py import MPI

        return tuple(team.comm.allgather(MPI.COMM_WORLD.rank // pretended))
    job = job_of(team.comm)
    nodes = first_ranks(job)
    job.free_host()  # nothing ends this job, which would free it
    return nodes


@dataclass(frozen=True)
class Bucket:
    """Gradients that travel together: what packs them, sums them, and unpacks the average."""

    packs: Sequence[Callable[[], Any]]
    sum: Sum
    unpacks: Sequence[Callable[[], Any]]
    packing: Timed

    def send(self) -> None:
        """Pack and start the sum."""
        if self.packs:
            with self.packing:
                for pack in self.packs:
                    pack()
        start, _ = self.sum
        start()

    def receive(self) -> None:
        """Wait for the sum, and give each gradient the average."""
        _, wait = self.sum
        wait()
        with self.packing:
            for unpack in self.unpacks:
                unpack()


def buckets_of(
    team: Team,
    gradients: Sequence[tuple[Array, Array]],
    plan: Plan,
    training: Training,
    packing: Timed,
) -> list[Bucket]:
    """Return the buckets of gradients in the order of their arrival, bound; collective.

    With each gradient comes the place of its average. Several gradients are packed at the beginning
    of one buffer. With overlap many buckets are under way at a time, and each gradient has a place
    of its own there.
    """
    counts = [gradient.data.size for gradient, _ in gradients]
    packed = room(counts, plan, training)
    buffer = team.array(packed, training.dtype) if packed else None
    bind = summing(team, training, max(packed, *counts))
    pack, unpack = packing_of(team, training)
    found = []
    for begin, end in plan:
        own = gradients[begin:end]
        if buffer is None or (len(own) == 1 and not training.half):
            ((alone, _),) = own
            found.append(Bucket((), bind(alone), (unpack(alone.data, alone.data),), packing))
            continue
        start = sum(counts[:begin]) if training.overlap else 0
        place = buffer.rows(start, start + sum(counts[begin:end]))
        packs, unpacks, at = [], [], 0
        for gradient, averaged in own:
            part = place.data[at : at + gradient.data.size]
            packs.append(pack(gradient.data.reshape(-1), part))
            unpacks.append(unpack(part, averaged.data.reshape(-1)))
            at += gradient.data.size
        found.append(Bucket(packs, bind(place), unpacks, packing))
    return found


Bind = Callable[[Any, Any], Callable[[], Any]]
"""Returns what writes the elements of one array to another, again and again."""


def packing_of(team: Team, training: Training) -> tuple[Bind, Bind]:
    """Return how gradients get into the buffer of a bucket, and averages out of it."""
    xp, ranks = team.xp, team.ranks
    if training.datatype.code == BRAIN:
        return (
            lambda source, target: lambda: xp.copyto(target, narrow(source / ranks)),
            lambda source, target: lambda: xp.copyto(target, widen(source)),
        )

    def copy(source: Any, target: Any) -> Callable[[], Any]:
        return partial(xp.copyto, target, source)

    def divide(source: Any, target: Any) -> Callable[[], Any]:
        return partial(xp.divide, source, ranks, target)

    return (divide, copy) if training.half else (copy, divide)
