"""Makes one call by each of omb-py's own algorithms, and one iteration of some benchmarks.

Each is a phase that is called as `Made.phase` says, on the first ranks of the job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mpi4py import MPI

import omb_py
from omb_py.benchmarks import Case, find_benchmark
from omb_py.benchmarks.algorithms import TABLE
from omb_py.bindings.buffer import BufferBinding
from omb_py.buffers import BUFFERS
from omb_py.core.datatypes import find_types
from omb_py.core.options import Options

RANKS = 8
COUNTS = (2, 3, 5, 8)
SIZES = (24, 4400)
"""Bytes: fewer elements than ranks, and parts that are unequal."""

PAIRS = ("latency", "bw", "bibw", "multi_lat")
(DATATYPE,) = find_types(["mpi_int"])


@dataclass(frozen=True)
class Made:
    """A call on so many ranks, by a word of ours where it is a collective."""

    name: str
    word: str | None
    ranks: int
    size: int

    @property
    def phase(self) -> str:
        """The name of its phase."""
        return f"{self.name} {self.word} {self.ranks} {self.size}"

    @property
    def options(self) -> Options:
        """What is asked for."""
        return Options(algorithm=self.word, node_map=2, root=1)

    def case(self, rank: int, buffer: Any, resources: Any) -> Case:
        """A rank's case, two ranks on a node."""
        nodes = tuple(rank // 2 for rank in range(self.ranks))
        options = self.options
        return Case(rank, self.ranks, self.size, DATATYPE, 4, buffer, options, resources, nodes)


def all_made() -> list[Made]:
    """All calls, in their order."""
    collectives = [
        Made(name, algorithm.word, ranks, size)
        for name, own in TABLE.items()
        for algorithm in own.algorithms
        for ranks in COUNTS
        for size in SIZES
        if size // DATATYPE.itemsize >= find_benchmark(name).smallest_elements(ranks)
    ]
    return collectives + [Made(name, None, 2, 64) for name in PAIRS]


def main() -> None:
    world = MPI.COMM_WORLD
    buffer = BUFFERS.load("numpy").prepare(0, ())
    first: dict[int, Any] = {
        count: world.Split(int(world.rank >= count), world.rank) for count in COUNTS
    }
    for made in all_made():
        if world.rank >= made.ranks:
            continue
        case = made.case(world.rank, buffer, None)
        iteration = find_benchmark(made.name).plan(case).iterations[0]
        binding = BufferBinding(first[made.ranks], made.options)
        calls = binding.bound(iteration).calls
        with omb_py.phase(made.phase):
            for call in calls:
                call()
        binding.release()


if __name__ == "__main__":
    main()
