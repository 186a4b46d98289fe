"""How an array is summed over the ranks, in its place: in one call, in the background, by nodes, or
by an algorithm of our own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from omb_py.apps import Detail, shares
from omb_py.apps.runtime.team import Array, Team
from omb_py.apps.training import Training
from omb_py.bindings import BoundCall
from omb_py.core.calls import IN_PLACE, Call, Slot
from omb_py.core.datatypes import Datatype
from omb_py.core.job.by_mpi import job_of
from omb_py.core.job.node_map import first_ranks
from omb_py.core.options import LIBRARY


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
        """The bound sum of an array; collective."""

    def parts(self) -> list[Detail]:
        """What there is to tell of it."""
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
        team, cell = self._team, Slot()
        operands = team.in_place(array.message())
        start = team.bind(Call("iallreduce", operands, op="sum", cell=cell))
        return GradientSum([start], team.bind(Call("wait", cell=cell)))


class SumByAlgorithm(Summing):
    """Messages between two ranks, and additions (`omb_py.benchmarks.algorithms`)."""

    def __init__(self, team: Team, training: Training, largest: int, datatype: Datatype) -> None:
        """For arrays of at most ``largest`` elements; collective."""
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

    Where all nodes have as many ranks, these are a reduce-scatter inside a node, an allreduce of
    each shard with the same rank of other nodes, and an allgather inside (Horovod's
    ``NCCLHierarchicalAllreduce``). Otherwise a rank of each node sums for it: a reduce, an
    allreduce among these, and a broadcast.
    """

    def __init__(self, team: Team, largest: int, datatype: Datatype, pretended: int) -> None:
        """For arrays of at most ``largest`` elements; ``pretended`` ranks are on a node, or 0."""
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
    """A number for the node of each rank, or of ``pretended`` ranks of the job each; collective."""
    if pretended:
        from mpi4py import MPI

        return tuple(team.comm.allgather(MPI.COMM_WORLD.rank // pretended))
    return first_ranks(job_of(team.comm))


def summing_of(team: Team, training: Training, largest: int, datatype: Datatype) -> Summing:
    """What ``training`` asks for, for arrays of at most ``largest`` elements; collective."""
    if training.allreduce != LIBRARY:
        return SumByAlgorithm(team, training, largest, datatype)
    if training.hierarchical:
        return Hierarchy(team, largest, datatype, training.ranks_per_node)
    return Background(team) if training.overlap else Blocking(team)


def _allreduce(team: Team, array: Array) -> BoundCall:
    call = Call("allreduce", team.in_place(array.message()), op="sum")
    return team.bind(call)
