"""A victim and its congestors: a benchmark without load, and while other ranks run another one.

The idea, and the words, are those of GPCNeT (S. Chunduri et al., GPCNeT: designing a benchmark
suite for inducing and measuring contention in HPC networks, SC 2019): the congestion impact factor
is a time under congestion over the same time without. Here the two alternate, again and again, so
that a machine which drifts changes both alike.
"""

from __future__ import annotations

import sys
from array import array
from functools import partial
from math import ceil, inf
from typing import Any

from omb_py.benchmarks import Benchmark, Case, Plan, find_benchmark
from omb_py.core.calls.loop import Pace
from omb_py.core.dataclass import replace
from omb_py.core.datatypes import find_types
from omb_py.core.errors import UsageError
from omb_py.core.job import Combined
from omb_py.core.job.groups import GroupJob, ranks_text
from omb_py.core.options import Options
from omb_py.core.statistics import relative_spread
from omb_py.measure.groups import GroupRows, iterate_until, measurement_in_groups
from omb_py.measure.launch import Launch
from omb_py.measure.measurement import Kind, Measurement, check_ranks
from omb_py.measure.rows import Outcome, make_row
from omb_py.measure.sampling import run_counted
from omb_py.measure.turns import block_percentiles, busy, take_turns, turns, with_interval
from omb_py.results.columns import Row
from omb_py.results.destinations import writers_of
from omb_py.results.writer import Writer

ROUNDS = 10

NONE = "none"
"""The congestor in the rows of times without congestion."""

FIRST_ITERATIONS = 5
"""Iterations of a congestor, for warm-up, and then to time one iteration."""


def kind_of_congestion(launch: Launch, benchmark: Benchmark, options: Options) -> Kind:
    """Return the measurement of a victim beside its congestors; collective.

    Raises `UsageError` if the ranks cannot be divided into them.
    """
    return Congestion(*measurement_in_groups(launch, benchmark, options)).kind()


class Congestion:
    """The first group is the victim, all others are congestors; its methods are collective."""

    def __init__(self, measurement: Measurement, group: GroupJob) -> None:
        """Raise `UsageError` if there is no group beside the victim."""
        if len(group.groups) < 2:
            raise UsageError(
                "--congestor needs a group beside the victim, and --split makes 1 group: start "
                "more ranks, or choose another --split"
            )
        self._measurement = measurement
        self._group = group
        self.benchmark, self.options = measurement.benchmark, measurement.options
        name, size = self.options.congestor or ("", 0)
        self._congestor = find_benchmark(name)
        self._bytes = size
        self._name = f"{name}:{size}" if self._congestor.sized else name
        self._rounds = self.options.rounds or ROUNDS
        self._is_victim = measurement.job.rank in group.groups[0]
        self._made = self._idle_turns = 0
        self._spreads: list[float] = []
        self._group_rows = GroupRows(measurement, group)

    def kind(self) -> Kind:
        """Return this kind of measurement."""
        rows = self._group_rows
        return Kind(
            self._measurement,
            partial(rows.measure, self.measure_group, completed=self.completed),
            self.writers,
            get_ready=partial(rows.get_ready, self.get_group_ready),
            finish=self.finish,
            metadata=rows.metadata,
            largest_group=len(self._group.groups[0]),
        )

    def finish(self) -> None:
        """Note that the machine was busy, if it was."""
        if self._is_victim:
            self._group.note(busy(self._spreads))

    def get_group_ready(self) -> None:
        """Check the victim's benchmark, or the congestors', and choose where messages lie."""
        benchmark, options = self.benchmark, self.options
        if not self._is_victim:
            benchmark, options = self._congestor, self._own_options()
        check_ranks(benchmark, options, self._group)
        if not self._is_victim:
            needed = benchmark.memory(options, self._bytes, self._group.ranks)
            if needed > options.memory_limit:
                raise UsageError(
                    f"--congestor {self._name} needs {needed} bytes per process, more than the "
                    f"memory limit of {options.memory_limit}: raise -M or choose smaller messages"
                )
        self._measurement.choose_memory()

    def _own_options(self) -> Options:
        """Return a congestor's options: those of the victim's calls are not for it."""
        return replace(self.options, algorithm=None, in_place=False, root=0, node_map=None)

    def writers(self) -> list[Writer[Row]]:
        """Return the writers, on rank 0."""
        from omb_py.results.text import CONGESTION, TableWriter

        victim, *others = map(ranks_text, self._group.groups)
        who = f"# Victim: ranks {victim}; congestor {self._name}: ranks {', '.join(others)}"
        text = TableWriter(sys.stdout, self.benchmark, self.options, CONGESTION, [who])
        return writers_of(Row, text, self.options)

    def measure_group(self, case: Case) -> None:
        """Measure a case on the victim's ranks, congest it on all others."""
        if self._is_victim:
            self._measure_victim(case)
        else:
            self._congest(case)

    def completed(self, rows: list[Row]) -> list[Row]:
        """Return the victim's rows, with how often its congestors iterated."""
        job = self._measurement.job
        congests = self._group.takes_part and not self._is_victim
        own = array("d", [self._made if congests else inf, -self._idle_turns])
        fewest, idle = job.allreduce(own, "min")
        if idle:
            job.note(
                f"{self._name} made no iteration in {-idle:.0f} of {self._rounds} rounds: raise "
                "-i, or choose smaller messages for it"
            )
        counted = {NONE: 0, self._name: int(fewest)}
        return [row.replace(congestor_iterations=counted[str(row.congestor)]) for row in rows]

    def _measure_victim(self, case: Case) -> None:
        measurement, group = self._measurement, self._group
        (binding,) = measurement.bindings
        plan, _ = measurement.plan(case)
        loop = measurement.loop(binding, plan, measurement.pace())
        iterations, warmup = self.benchmark.counts(self.options, case.size)
        block = ceil(iterations / self._rounds)
        wait, report = group.wait_for_all, measurement.report
        with measurement.iterating():
            run_counted(loop, 0, warmup, 0, report)
            what = ([loop, loop], self._rounds, block, wait, report, wait)
            # once: the congestor makes as many rounds
            both, stopped = measurement.unstopped(case, partial(take_turns, *what), tries=1)
        alone, beside = (group.combine(one, plan.timed) for one in both)
        with group.agreement():
            if alone is not None and beside is not None:
                for row in self._rows(case, plan, warmup, alone, beside, block):
                    self._group_rows.keep(row.replace(stopped_s=stopped))

    def _congest(self, case: Case) -> None:
        """Run the congestor in one turn of each round, until the victim has its samples."""
        benchmark = self._congestor
        (datatype,) = find_types([benchmark.usual_type])
        size = self._bytes // datatype.itemsize * datatype.itemsize
        own = replace(case, size=size, datatype=datatype, options=self._own_options(), nodes=())
        measurement, group = self._measurement, self._group
        (binding,) = measurement.bindings
        plan, _ = measurement.plan(own, benchmark)
        loop = measurement.loop(binding, plan, Pace(barrier=False))
        self._made = self._idle_turns = 0
        with measurement.iterating():
            seconds = run_counted(loop, 0, FIRST_ITERATIONS, FIRST_ITERATIONS)
            for _, congested in turns(self._rounds, 2):
                running, over = group.begin_agreement(), group.begin_agreement()
                if congested:
                    made = iterate_until(group, over, loop, seconds, measurement.report)
                    self._made += made
                    self._idle_turns += made == 0
                over.sleep_until_there(measurement.report)
                group.end_agreement(running)
                group.end_agreement(over)

    def _rows(
        self,
        case: Case,
        plan: Plan,
        warmup: int,
        alone: Combined,
        congested: Combined,
        block: int,
    ) -> tuple[Row, Row]:
        """Return the rows of the times without congestion and of those under congestion."""
        made = (
            make_row(
                self._measurement.run_name, self.benchmark, case, Outcome(one, plan, warmup, None)
            )
            for one in (alone, congested)
        )
        first, second = (row.replace(rounds=self._rounds) for row in made)
        found: dict[str, Any] = {}
        for name, percent in (("impact", 50), ("impact_p99", 99)):
            ratios = [
                theirs / own
                for theirs, own in zip(
                    block_percentiles(congested.samples, block, percent),
                    block_percentiles(alone.samples, block, percent),
                    strict=True,
                )
            ]
            values = with_interval(ratios)
            found |= zip((name, f"{name}_low", f"{name}_high"), values, strict=True)
            if name == "impact":
                self._spreads.append(relative_spread(ratios))
        return first.replace(congestor=NONE), second.replace(congestor=self._name, **found)
