"""One message size of a benchmark as a program, and the row that its simulation gives."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum
from typing import Any

from omb_py.algorithms import function_of
from omb_py.algorithms.patterns import Shape
from omb_py.benchmarks import Benchmark, Case, Plan, find_benchmark
from omb_py.core.datatypes import Datatype, find_types
from omb_py.core.errors import UnsupportedError
from omb_py.core.job import Combined
from omb_py.core.options import Options
from omb_py.measure.rows import Outcome as Measured
from omb_py.measure.rows import make_row
from omb_py.results.row import Row
from omb_py.simulation import collectives
from omb_py.simulation.engine import Outcome, Run
from omb_py.simulation.program import Operation, Program
from omb_py.simulation.stand_ins import BUFFER, RESOURCES

SHORT, LONG = 12, 24
"""Repetitions of a round in the two simulations that longer ones are extended from."""


@dataclass(frozen=True)
class Point:
    """A message size of a benchmark on so many ranks; ``library`` is whose algorithms are meant.

    Of ``options`` count those that say what is sent.
    """

    name: str
    options: Options
    library: str
    ranks: int
    size: int

    @cached_property
    def benchmark(self) -> Benchmark:
        """The benchmark."""
        return find_benchmark(self.name)

    @cached_property
    def datatype(self) -> Datatype:
        """The type of elements."""
        default = "mpi_int" if self.benchmark.reduces else "mpi_char"
        return find_types(self.options.types or (default,))[0]

    @property
    def shape(self) -> Shape:
        """The call, for the tables of algorithms."""
        return Shape(self.ranks, self.size, self.datatype.itemsize, self.options.in_place)

    def case(self, rank: int) -> Case:
        """What the benchmark is told on a rank, with memory that holds nothing."""
        options = self.options
        return Case(
            rank,
            self.ranks,
            self.size,
            self.datatype,
            options.window,
            BUFFER,
            options,
            RESOURCES,
            collectives.nodes_of(options, self.ranks),
        )

    def plan(self, rank: int) -> Plan:
        """A rank's part."""
        return self.benchmark.plan(self.case(rank))

    def row(self, outcome: Outcome, run: str) -> Row:
        """The row of what came of it, by the benchmark's definitions."""
        plan = self.plan(0)
        timed = outcome.ends
        if not self.benchmark.collective:
            timed = tuple(
                end for rank, end in enumerate(outcome.ends) if self.plan(rank).timed
            )
        mean = fsum(timed) / len(timed)
        combined = Combined(array("d", [mean]), min(timed), max(timed), array("d", [max(timed)]))
        measured = Measured(combined, plan, warmup=0, passed=None)
        return make_row(run, self.benchmark, self.case(0), measured)
