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

from omb_py.benchmarks import Case, Plan, find_benchmark
from omb_py.bindings import Binding
from omb_py.core.calls.loop import Pace
from omb_py.core.dataclass import replace
from omb_py.core.datatypes import find_types
from omb_py.core.errors import UsageError
from omb_py.core.job import Combined
from omb_py.core.job.groups import GroupJob, ranks_text
from omb_py.core.options import Options
from omb_py.core.statistics import relative_spread
from omb_py.measure.groups import GroupsMeasurement
from omb_py.measure.measurement import RunContext, check_ranks
from omb_py.measure.rows import Outcome, make_row
from omb_py.measure.sampling import run_counted
from omb_py.measure.turns import block_percentiles, busy, take_turns, turns, with_interval
from omb_py.results.columns import Row
from omb_py.results.output import writers_of
from omb_py.results.writer import Writer

ROUNDS = 10

NONE = "none"
"""The congestor in the rows of times without congestion."""

FIRST_ITERATIONS = 5
"""Iterations of a congestor, for warm-up, and then to time one iteration."""


class CongestionMeasurement(GroupsMeasurement):
    """The first group is the victim, all others are congestors."""

    def __init__(self, context: RunContext, binding: Binding, group: GroupJob) -> None:
        super().__init__(context, binding, group)
        name, size = self.options.congestor or ("", 0)
        self._congestor = find_benchmark(name)
        self._bytes = size
        self._name = f"{name}:{size}" if self._congestor.sized else name
        self._rounds = self.options.rounds or ROUNDS
        self._is_victim = group.whole.rank in group.groups[0]
        self._made = self._idle_turns = 0
        self._spreads: list[float] = []
        self.largest_group = len(group.groups[0])

    def run(self) -> None:
        if len(self._mine.groups) < 2:
            raise UsageError(
                "--congestor needs a group beside the victim, and --split makes 1 group: start "
                "more ranks, or choose another --split"
            )
        super().run()
        if self._is_victim:
            self.group.note(busy(self._spreads))

    def check_group(self) -> None:
        benchmark, options = self.benchmark, self.options
        if not self._is_victim:
            benchmark, options = self._congestor, self._own_options()
        check_ranks(benchmark, options, self.group)
        if not self._is_victim:
            needed = benchmark.memory(options, self._bytes, self.group.ranks)
            if needed > options.memory_limit:
                raise UsageError(
                    f"--congestor {self._name} needs {needed} bytes per process, more than the "
                    f"memory limit of {options.memory_limit}: raise -M or choose smaller messages"
                )

    def _own_options(self) -> Options:
        """Return a congestor's options: those of the victim's calls are not for it."""
        return replace(self.options, algorithm=None, in_place=False, root=0, node_map=None)

    def open_writers(self) -> list[Writer[Row]]:
        from omb_py.results.text import CONGESTION, TableWriter

        victim, *others = map(ranks_text, self._mine.groups)
        who = f"# Victim: ranks {victim}; congestor {self._name}: ranks {', '.join(others)}"
        text = TableWriter(sys.stdout, self.benchmark, self.options, CONGESTION, [who])
        return writers_of(Row, text, self.options)

    def measure_group(self, case: Case, writers: list[Writer[Any]]) -> None:
        if self._is_victim:
            self._measure_victim(case, writers)
        else:
            self._congest(case)

    def completed(self, rows: list[Row]) -> list[Row]:
        congests = self._mine.takes_part and not self._is_victim
        own = array("d", [self._made if congests else inf, -self._idle_turns])
        fewest, idle = self.job.allreduce(own, "min")
        if idle:
            self.job.note(
                f"{self._name} made no iteration in {-idle:.0f} of {self._rounds} rounds: raise "
                "-i, or choose smaller messages for it"
            )
        counted = {NONE: 0, self._name: int(fewest)}
        return [row.replace(congestor_iterations=counted[str(row.congestor)]) for row in rows]

    def _measure_victim(self, case: Case, writers: list[Writer[Any]]) -> None:
        plan, _ = self.plan(case)
        loop = self.loop(self.binding, plan, self.pace())
        iterations, warmup = self.benchmark.counts(self.options, case.size)
        block = ceil(iterations / self._rounds)
        wait = self._mine.wait_for_all
        with self.iterating():
            run_counted(loop, 0, warmup, 0, self.report)
            what = ([loop, loop], self._rounds, block, wait, self.report, wait)
            # once: the congestor makes as many rounds
            both, stopped = self.unstopped(case, partial(take_turns, *what), tries=1)
        alone, beside = (self.group.combine(one, plan.timed) for one in both)
        with self.group.agreement():
            if alone is not None and beside is not None:
                for row in self._rows(case, plan, warmup, alone, beside, block):
                    for writer in writers:
                        writer.row(row.replace(stopped_s=stopped))

    def _congest(self, case: Case) -> None:
        """Run the congestor in one turn of each round, until the victim has its samples."""
        benchmark = self._congestor
        (datatype,) = find_types([benchmark.usual_type])
        size = self._bytes // datatype.itemsize * datatype.itemsize
        own = replace(case, size=size, datatype=datatype, options=self._own_options(), nodes=())
        plan, _ = self.plan(own, benchmark)
        loop = self.loop(self.binding, plan, Pace(barrier=False))
        self._made = self._idle_turns = 0
        with self.iterating():
            seconds = run_counted(loop, 0, FIRST_ITERATIONS, FIRST_ITERATIONS)
            for _, congested in turns(self._rounds, 2):
                running, over = self._mine.begin_agreement(), self._mine.begin_agreement()
                if congested:
                    made = self.iterate_until(over, loop, seconds)
                    self._made += made
                    self._idle_turns += made == 0
                over.sleep_until_there(self.report)
                self._mine.end_agreement(running)
                self._mine.end_agreement(over)

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
            make_row(self.run_name, self.benchmark, case, Outcome(one, plan, warmup, None))
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
