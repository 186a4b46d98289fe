"""A collective on halves of the units at once, with other halves each time: which unit is slow.

`omb_py.analysis.pairs.bisection` finds it from the halves' times.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable
from typing import Any, TypeAlias

from omb_py.benchmarks import Benchmark, Case, Defaults, Ranks
from omb_py.bindings import BINDINGS
from omb_py.core.calls.loop import Pace
from omb_py.core.dataclass import dataclass, replace
from omb_py.core.errors import UsageError
from omb_py.core.job.by_mpi import MPIControl
from omb_py.core.job.node_map import first_ranks
from omb_py.core.statistics import percentile
from omb_py.measure import devices
from omb_py.measure.measurement import Measurement, RunContext
from omb_py.measure.pairs import LEFT_OUT, Unit, unit_of_each_rank
from omb_py.measure.sampling import run_counted
from omb_py.results.writer import Writer

FEWEST_UNITS = 4
"""With fewer, no half differs from the others by one unit. Nodes are the units by default where
there are so many, ranks otherwise."""

DEFAULTS = Defaults(50, 5, 10, 2, smallest=4096, largest=4096)

SEED = 1
"""Of the halves: all ranks draw the same."""

Sides: TypeAlias = tuple[int, ...]
"""For each unit 1 in the first half, -1 in the second, 0 where it rests."""

Report: TypeAlias = Callable[[int, list[str], list[Sides], list[tuple[float, float]]], None]
"""Gets a message size, the units' names, and of each test the sides and both halves' seconds."""


@dataclass(frozen=True)
class BisectionRequest:
    """How halves are made and measured: of what units (None: nodes, if several), how many tests of
    halves (None: as many as they need), and how often each; ``report`` is called on rank 0."""

    report: Report
    by: Unit | None = None
    tests: int | None = None
    repeats: int = 3


def has_halves(benchmark: Benchmark) -> bool:
    """Whether a benchmark is a blocking collective, which any subset of ranks can make."""
    return benchmark.family == "collective" and benchmark.planned


def for_halves(benchmark: Benchmark) -> Benchmark:
    """A collective as it runs on halves."""
    left_out = LEFT_OUT | {"sync", "bus", "full", "algorithm", "node_map", "nodes"}
    options = benchmark.options - left_out
    return replace(benchmark, ranks=Ranks.SEVERAL, options=options, defaults=DEFAULTS)


def needed_tests(units: int) -> int:
    """Tests that tell one slow unit, or one slow link, from all others.

    >>> needed_tests(8), needed_tests(4096)
    (20, 56)
    """
    return 4 * (units - 1).bit_length() + 8


def halvings(units: int, tests: int) -> list[Sides]:
    """Halves drawn at random, the same on all ranks; of an odd number, one unit rests."""
    chance = random.Random(SEED)
    half = units // 2
    found = []
    for _ in range(tests):
        order = list(range(units))
        chance.shuffle(order)
        sides = [0] * units
        for place, unit in enumerate(order[: 2 * half]):
            sides[unit] = 1 if place < half else -1
        found.append(tuple(sides))
    return found


class BisectionMeasurement(Measurement):
    """A collective on halves of all units."""

    def __init__(self, context: RunContext, request: BisectionRequest) -> None:
        super().__init__(context, [])
        self._request = request
        self._unit = 0
        self._names: list[str] = []
        self._halvings: list[Sides] = []

    def run(self) -> None:
        """Measure all halves at all sizes; collective, raises like `Measurement.run`."""
        request, job = self._request, self.job
        job.check_launcher()
        nodes = first_ranks(job.control)
        by = request.by or ("node" if len(set(nodes)) >= FEWEST_UNITS else "rank")
        device = devices.word(self._context.buffer.device)
        of_rank = unit_of_each_rank(job, by, device, nodes)
        firsts = sorted(set(of_rank))
        units = len(firsts)
        if units < FEWEST_UNITS:
            raise UsageError(
                f"--bisect needs {FEWEST_UNITS} {by}s or more and got {units}: start more "
                "of them, or choose another --by"
            )
        sizes = sorted({of_rank.count(first) for first in firsts})
        if len(sizes) > 1:
            raise UsageError(
                f"--bisect compares halves of as many ranks, and a {by} has {sizes[0]} to "
                f"{sizes[-1]}: start the same number on each"
            )
        self._unit = firsts.index(of_rank[job.rank])
        if hosts := job.host_of_each_rank():
            self._names = [hosts[first] if by == "node" else f"rank {first}" for first in firsts]
        self._halvings = halvings(units, request.tests or needed_tests(units))
        super().run()

    def open_writers(self) -> list[Writer[Any]]:
        return []

    def iterations(self, size: int) -> int | None:
        return len(self._halvings) * self._request.repeats

    def measure_case(self, case: Case, writers: list[Writer[Any]]) -> None:
        tests, repeats = len(self._halvings), self._request.repeats
        found: list[list[tuple[float, float]]] = [[] for _ in range(tests)]
        for step in range(tests * repeats):
            found[step % tests].append(self._measure_halves(case, step % tests))
            for report in (self.report, self.advance):
                if report is not None:
                    report(step + 1, tests * repeats)
        if self.job.rank == 0:
            seconds = [middle(times) for times in found]
            self._request.report(case.size, self._names, self._halvings, seconds)

    def _measure_halves(self, case: Case, test: int) -> tuple[float, float]:
        """The seconds of an iteration in either half, of its slowest rank; collective."""
        job, options = self.job, self.options
        side = self._halvings[test][self._unit]
        half: Any = job.comm_for("--bisect").Split(side + 1, job.rank)
        loop = None
        binding = BINDINGS.load(options.binding)(half, options)
        iterations, warmup = self.benchmark.counts(options, case.size)
        plan, _ = self.plan(replace(case, rank=half.rank, ranks=half.size))
        with self.agreement():
            if side:
                devices.check(binding, plan.exchanges, options)
                loop = binding.loop(plan.exchanges, Pace(barrier=self.benchmark.paced))
        job.control.barrier()
        seconds = 0.0
        if loop is not None:
            seconds = percentile(sorted(run_counted(loop, 0, warmup, iterations)), 50)
        binding.release()
        binding.close()
        MPIControl(half).free()
        first, second = (
            job.control.allreduce(array("d", [seconds if side == one else 0.0]), "max")[0]
            for one in (1, -1)
        )
        return first, second


def middle(times: list[tuple[float, float]]) -> tuple[float, float]:
    """The pair of times whose ratio is the median."""
    return sorted(times, key=lambda pair: pair[0] / pair[1])[(len(times) - 1) // 2]
