"""A benchmark on groups of ranks at the same time: a row for each of them."""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from statistics import fmean
from typing import Any

from omb_py.benchmarks import Benchmark, Case
from omb_py.bindings import BINDINGS, Binding
from omb_py.core.calls.loop import Loop
from omb_py.core.errors import SharedError
from omb_py.core.job.groups import Agreement, GroupJob, parse_split, ranks_text
from omb_py.core.options import Options
from omb_py.measure.benchmark import OneBinding
from omb_py.measure.launch import Launch
from omb_py.measure.measurement import Kind, Measurement
from omb_py.measure.sampling import Report
from omb_py.results.columns import Row
from omb_py.results.destinations import writers_of
from omb_py.results.writer import Writer

BUSY_SECONDS = 0.001
"""About how long a group that has its samples iterates before it looks whether all have theirs."""


MIN_SECONDS = 1e-7
"""Assumed seconds of an iteration whose time is not known better."""


def kind_of_groups(launch: Launch, benchmark: Benchmark, options: Options) -> Kind:
    """Return the measurement of the groups of ranks that the options name; collective.

    Raises `UsageError` if the ranks cannot be divided in this way.
    """
    measurement, group = measurement_in_groups(launch, benchmark, options)
    rows = GroupRows(measurement, group)
    one = OneBinding(measurement, keep=rows.keep, keep_busy=partial(keep_busy, group, launch))
    return Kind(
        measurement,
        partial(rows.measure, one.measure_case),
        rows.writers,
        get_ready=partial(rows.get_ready, one.get_ready),
        prepare=one.prepare,
        finish=one.finish,
        metadata=rows.metadata,
        largest_group=max(map(len, group.groups)),
    )


def measurement_in_groups(
    launch: Launch, benchmark: Benchmark, options: Options
) -> tuple[Measurement, GroupJob]:
    """Divide the ranks into groups, and return this rank's measurement and group; collective.

    Raises `UsageError` if the ranks cannot be divided in this way.
    """
    group = GroupJob(launch.job, parse_split(options.split or ""))
    launch.job.at_end(group.free)
    binding: Binding = BINDINGS.load(options.binding)(group.communicator, options)
    launch.job.at_end(binding.close)
    return Measurement(launch, benchmark, options, [binding], group), group


class GroupRows:
    """The rows of all groups: each group's first rank keeps its own until rank 0 writes them."""

    def __init__(self, measurement: Measurement, group: GroupJob) -> None:
        self._measurement = measurement
        self._job = measurement.job
        self._group = group
        self._kept: list[Row] = []
        self._hosts: dict[str, str] = {}
        measurement.within = f" in group {group.name}"

    def keep(self, row: Row) -> None:
        """Keep a row of this rank's group."""
        self._kept.append(row.replace(group=self._group.name))

    def get_ready(self, get_group_ready: Callable[[], None]) -> None:
        """Get each group ready, and learn their hosts; collective over all groups."""
        self._group.phase(get_group_ready, self._measurement.report)
        names = self._job.host_of_each_rank()
        if names:
            self._hosts = {
                ranks_text(ranks): " ".join(dict.fromkeys(names[rank] for rank in ranks))
                for ranks in self._group.groups
            }

    def metadata(self) -> dict[str, str]:
        """Return the hosts of the groups, on rank 0."""
        return {"groups": ", ".join(f"{name} on {on}" for name, on in self._hosts.items())}

    def writers(self) -> list[Writer[Row]]:
        """Return the writers, on rank 0."""
        from omb_py.results.text import GroupsWriter

        measurement = self._measurement
        text = GroupsWriter(sys.stdout, measurement.benchmark, measurement.options, self._hosts)
        return writers_of(Row, text, measurement.options)

    def measure(
        self,
        measure_case: Callable[[Case], None],
        case: Case,
        completed: Callable[[list[Row]], list[Row]] | None = None,
    ) -> None:
        """Measure a case in all groups at the same time, and write the rows of all; collective.

        ``measure_case`` measures it on this rank's group; its first rank keeps the rows, which
        ``completed`` completes by data of other groups, collectively.
        """
        self._kept.clear()
        failure = None
        try:
            self._group.phase(partial(measure_case, case), self._measurement.report)
        except SharedError as error:
            failure = error
        else:
            if completed is not None:
                self._kept[:] = completed(self._kept)
        self._write()
        if failure is not None:
            raise failure

    def _write(self) -> None:
        """Bring the rows of all groups to rank 0, and write them together; collective."""
        sent = json.dumps([vars(row) for row in self._kept]) if self._kept else ""
        received = self._job.gather(sent.encode())
        found = [
            row_of(one | {"run": self._measurement.run_name})
            for text in filter(None, received)
            for one in json.loads(text)
        ]
        with self._job.agreement():
            for writer in self._measurement.writers:
                writer.together(found)


def keep_busy(group: GroupJob, launch: Launch, loop: Loop, seconds: Sequence[float]) -> None:
    """Go on with a group's loop until all groups have their samples; collective.

    ``seconds`` are those that this rank's iterations took.
    """
    before = len(loop.device_seconds), len(loop.queued_seconds)
    cpu = loop.cpu_seconds, loop.cpu_iterations
    agreement = group.begin_agreement()
    iterate_until(group, agreement, loop, seconds, launch.report)
    group.end_agreement(agreement)
    del loop.device_seconds[before[0] :], loop.queued_seconds[before[1] :]
    loop.cpu_seconds, loop.cpu_iterations = cpu


def iterate_until(
    group: GroupJob,
    agreement: Agreement,
    loop: Loop,
    seconds: Sequence[float],
    report: Report | None,
) -> int:
    """Iterate until all ranks have contributed to an agreement; return how often; collective.

    ``seconds`` are what iterations take; all ranks of the group stop after the same one.
    """
    each = max(fmean(seconds), MIN_SECONDS)
    stretch = int(group.bcast_from_root(ceil(BUSY_SECONDS / each)))
    done = 0
    while not group.allreduce(array("d", [agreement.is_there()]), "min")[0]:
        loop.run(done, array("d", bytes(8 * stretch)))
        done += stretch
        if report is not None:
            report(done, 0)
    return done


def row_of(sent: dict[str, Any]) -> Row:
    """Return a row as it was before it was sent."""
    if "percentiles" in sent:
        sent["percentiles"] = tuple(map(tuple, sent["percentiles"]))
    return Row(**sent)
