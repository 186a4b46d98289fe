"""One message size of a benchmark as a program, and the row that its simulation gives.

Plans are made with placeholder memory: a length, and no bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any, NoReturn

from omb_py.algorithms import function_of, library
from omb_py.algorithms.patterns import CollectiveShape
from omb_py.benchmarks import Benchmark, Case, Exposed, find_benchmark
from omb_py.buffers import Buffer
from omb_py.core.datatypes import Datatype, find_types
from omb_py.core.errors import OmbError, UnsupportedError, UsageError
from omb_py.core.job import Combined, mapped
from omb_py.core.memory import Memory
from omb_py.core.options import Options
from omb_py.core.text.units import size_text
from omb_py.measure import rows
from omb_py.measure.rows import make_row
from omb_py.measure.sizes import message_sizes
from omb_py.results.columns import Row
from omb_py.simulation import collectives
from omb_py.simulation.engine import Run, SimulatedOutcome
from omb_py.simulation.program import Operation, Program, StartTiming

BARRIER = "barrier"
"""Word of ``--sync``: iterations begin as ranks leave a barrier, not all at the same time."""

SHORT, LONG = 12, 24
"""Repetitions of a round in the simulations from which more of them are extended."""


@dataclass(frozen=True)
class SimulatedPoint:
    """A message size of a benchmark on ``ranks`` ranks, with algorithms of ``library``.

    Only ``options`` that determine the messages matter.
    """

    name: str
    options: Options
    library: str
    ranks: int
    size: int

    @property
    def benchmark(self) -> Benchmark:
        """Benchmark that the point is of."""
        return find_benchmark(self.name)

    @property
    def datatype(self) -> Datatype:
        """Type of the elements of messages."""
        return find_types(self.options.types or (self.benchmark.usual_type,))[0]

    @property
    def algorithm(self) -> str:
        """The algorithm that its options name."""
        own = self.options.own_algorithm
        if own is None:
            return self.options.library_algorithm or ""
        segment = self.options.own_segment
        return f"own {own}" + (f", segments of {size_text(segment)}" if segment else "")

    @property
    def title(self) -> str:
        """Name of the benchmark with the algorithm."""
        return f"{self.name} {self.algorithm}".rstrip()

    @property
    def refusal(self) -> str | None:
        """The reason why it cannot be simulated; None if it can."""
        if not self.benchmark.ranks.allow(self.ranks):
            return f"{self.name} needs {self.benchmark.ranks.value}, and there are {self.ranks}"
        options = replace(self.options, sizes=(self.size,))
        try:
            if not self.benchmark.planned:
                raise UnsupportedError(f"{self.name} sends no messages that can be simulated")
            sizes = message_sizes(self.benchmark, options, self.datatype, self.ranks)
            if not sizes.sizes:
                return sizes.refusal
            program = self.program()
            for rank in (0, self.ranks - 1):
                next(program.operations(rank), None)
            self.repetitions()
        except OmbError as error:
            return str(error)
        return None

    def case(self, rank: int) -> Case:
        """Return the case of the benchmark on a rank, with placeholder memory."""
        nodes = mapped(self.options.node_map, self.ranks, f"{self.ranks} are simulated")
        size = (rank, self.ranks, self.size, self.datatype)
        return Case(*size, self.options.window, BUFFER, self.options, RESOURCES, nodes)

    def program(self, limits: Mapping[int, int] | None = None) -> Program:
        """Return the program of one iteration; ``limits`` are as of `collectives.of_library`.

        Raises `OmbError` if it cannot be simulated.
        """
        return collectives.program(self.benchmark, self.case, self.library, limits or {})

    def iterations(self, limits: Mapping[int, int], nodes: Sequence[int]) -> Program:
        """Return a warm-up iteration and a timed one, with a barrier between them as benchmarks
        have it.

        ``nodes`` has the node of each rank. Ranks leave a barrier one after the other, and enter
        the next iteration so: that is part of what they measure.
        """
        warmup, timed = self.program(limits), self.program(limits)
        barrier = None
        if self.benchmark.paced and self.options.sync == BARRIER:
            barrier = collectives.barrier(nodes)

        def operations(rank: int) -> Iterator[Operation]:
            yield from warmup.operations(rank)
            if barrier is not None:
                yield from barrier.operations(rank)
            yield StartTiming()
            yield from timed.operations(rank)

        if self.options.sync != BARRIER:
            return timed
        return Program(self.ranks, operations, self.title, timed=True)

    def repetitions(self) -> list[int]:
        """Return how often the algorithm's rounds are repeated; empty for an algorithm without
        rounds."""
        word = self.options.library_algorithm
        if word is None or self.options.own_algorithm is not None:
            return []
        algorithm = library(self.library).algorithm(function_of(self.name), word)
        case = self.case(0)
        shape = CollectiveShape(
            self.ranks, case.payload, self.datatype.itemsize, self.options.in_place
        )
        return collectives.repetitions(algorithm, shape)

    def simulate(self, nodes: Sequence[int], run: Run) -> SimulatedOutcome:
        """Return the result of one iteration; ``nodes`` has the node of each rank.

        Rounds that are repeated often take the same time again and again: they are simulated
        `SHORT` and `LONG` times, and the difference is added for each further time.
        """
        longer = sorted({times for times in self.repetitions() if times > LONG})
        limits = dict.fromkeys(longer, LONG)
        base = run(self.iterations(limits, nodes))
        ends, messages = list(base.ends), float(base.messages)
        for times in longer:
            shorter = run(self.iterations(limits | {times: SHORT}, nodes))
            more = (times - LONG) / (LONG - SHORT)
            for rank, end in enumerate(shorter.ends):
                ends[rank] += (base.ends[rank] - end) * more
            messages += (base.messages - shorter.messages) * more
        return replace(base, ends=tuple(ends), messages=round(messages))

    def row(self, outcome: SimulatedOutcome, run: str, variant: str | None = None) -> Row:
        """Return the row of a result, by the benchmark's definitions."""
        case = self.case(0)
        plan = self.benchmark.plan(replace(case, options=replace(case.options, algorithm=None)))
        timed = outcome.ends
        if not self.benchmark.collective:
            timed = tuple(
                end
                for rank, end in enumerate(outcome.ends)
                if self.benchmark.plan(self.case(rank)).timed
            )
        mean = fsum(timed) / len(timed)
        combined = Combined(array("d", [mean]), min(timed), max(timed), array("d", [max(timed)]))
        row = make_row(
            run, self.benchmark, case, rows.Outcome(combined, plan, warmup=0, passed=None)
        )
        return row.replace(variant=variant or row.variant)


def named(name: str) -> Benchmark:
    """Return the benchmark called ``name``, for a simulation.

    Raises `UsageError` if it does not exist or cannot be simulated.
    """
    benchmark = find_benchmark(name)
    if not benchmark.planned:
        raise UsageError(f"{benchmark.name} sends no messages that can be simulated")
    return benchmark


class Extent(Memory):
    """Placeholder memory of a given size."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes

    def slice(self, start: int, nbytes: int) -> Memory:
        return Extent(nbytes)

    def fill(self, tile: bytes) -> NoReturn:
        raise NotImplementedError

    def first_difference(self, tile: bytes) -> NoReturn:
        raise NotImplementedError

    def read(self, start: int, nbytes: int) -> NoReturn:
        raise NotImplementedError

    def write(self, data: Any) -> NoReturn:
        raise NotImplementedError


class ExtentBuffer(Buffer):
    """An array library whose arrays are only as long as they should be."""

    name = "none"

    def allocate(self, nbytes: int, datatype: Datatype) -> Memory:
        return Extent(nbytes)


class NoResources:
    """MPI objects of `omb_py.benchmarks.Resources`, which a simulation does not have.

    All but buffers of messages raise `UnsupportedError`.
    """

    def graph(self, sources: tuple[int, ...], destinations: tuple[int, ...]) -> Any:
        raise UnsupportedError("neighbourhoods are not simulated, only messages of two ranks")

    def duplicates(self, count: int) -> list[Any]:
        raise UnsupportedError("communicators are not simulated: leave out --thread-comm each")

    def window(self, nbytes: int, datatype: Datatype) -> Exposed:
        raise UnsupportedError("one-sided communication is not simulated, only messages")

    def file(self, nbytes: int) -> tuple[Any, Memory]:
        raise UnsupportedError("files are not simulated, only messages")

    def group(self, rank: int) -> Any:
        raise UnsupportedError("groups of ranks are not simulated, only messages")

    def fork(self, processes: int) -> None:
        raise UnsupportedError("forked processes are not simulated, only messages")


BUFFER = ExtentBuffer()
RESOURCES = NoResources()
