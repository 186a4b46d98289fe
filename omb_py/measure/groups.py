"""A benchmark on groups of ranks at the same time: a row for each of them."""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Sequence
from functools import partial
from math import ceil
from statistics import fmean
from typing import Any

from omb_py.benchmarks import Case
from omb_py.bindings import Binding
from omb_py.core.calls.loop import Loop
from omb_py.core.errors import SharedError
from omb_py.core.job.groups import Agreement, GroupJob, ranks_text
from omb_py.measure.benchmark import BenchmarkMeasurement
from omb_py.measure.measurement import RunContext
from omb_py.results.columns import Row
from omb_py.results.output import writers_of
from omb_py.results.writer import Writer

BUSY_SECONDS = 0.001
"""About how long a group that has its samples iterates before it looks whether all have theirs."""


MIN_SECONDS = 1e-7
"""Assumed seconds of an iteration whose time is not known better."""


class GroupRows(Writer[Row]):
    """Keeps the rows of a group on its first rank."""

    def __init__(self, group: str) -> None:
        self._group = group
        self.kept: list[Row] = []

    def row(self, row: Row) -> None:
        self.kept.append(row.replace(group=self._group))


class GroupsMeasurement(BenchmarkMeasurement):
    """One benchmark through one binding, on all groups."""

    def __init__(self, context: RunContext, binding: Binding, group: GroupJob) -> None:
        super().__init__(context, binding, group)
        self._mine = group
        self._hosts: dict[str, str] = {}
        self.largest_group = max(map(len, group.groups))

    def get_ready(self) -> None:
        self._mine.phase(super().get_ready, self.report)
        names = self.job.host_of_each_rank()
        if names:
            self._hosts = {
                ranks_text(ranks): " ".join(dict.fromkeys(names[rank] for rank in ranks))
                for ranks in self._mine.groups
            }

    def more_metadata(self) -> dict[str, str]:
        return {"groups": ", ".join(f"{name} on {on}" for name, on in self._hosts.items())}

    def open_writers(self) -> list[Writer[Row]]:
        from omb_py.results.text import GroupsWriter

        text = GroupsWriter(sys.stdout, self.benchmark, self.options, self._hosts)
        return writers_of(Row, text, self.options)

    def where(self, case: Case) -> str:
        return f"{super().where(case)} in group {self._mine.name}"

    def measure_case(self, case: Case, writers: list[Writer[Any]]) -> None:
        rows = GroupRows(self._mine.name)
        failure = None
        try:
            self._mine.phase(partial(self.measure_group, case, [rows]), self.report)
        except SharedError as error:
            failure = error
        else:
            rows.kept = self.completed(rows.kept)
        self._write(rows.kept, writers)
        if failure is not None:
            raise failure

    def measure_group(self, case: Case, writers: list[Writer[Any]]) -> None:
        """Measure one message size on this rank's group; its first rank writes."""
        super().measure_case(case, writers)

    def completed(self, rows: list[Row]) -> list[Row]:
        """Return the rows of this rank, completed by data of other groups; collective."""
        return rows

    def keep_busy(self, loop: Loop, seconds: Sequence[float]) -> None:
        before = len(loop.device_seconds), len(loop.queued_seconds)
        cpu = loop.cpu_seconds, loop.cpu_iterations
        agreement = self._mine.begin_agreement()
        self.iterate_until(agreement, loop, seconds)
        self._mine.end_agreement(agreement)
        del loop.device_seconds[before[0] :], loop.queued_seconds[before[1] :]
        loop.cpu_seconds, loop.cpu_iterations = cpu

    def iterate_until(self, agreement: Agreement, loop: Loop, seconds: Sequence[float]) -> int:
        """Iterate until all ranks have contributed to an agreement; return how often; collective.

        ``seconds`` are what iterations take; all ranks of the group stop after the same one.
        """
        each = max(fmean(seconds), MIN_SECONDS)
        stretch = int(self.group.bcast_from_root(ceil(BUSY_SECONDS / each)))
        done = 0
        while not self.group.allreduce(array("d", [agreement.is_there()]), "min")[0]:
            loop.run(done, array("d", bytes(8 * stretch)))
            done += stretch
            if self.report is not None:
                self.report(done, 0)
        return done

    def _write(self, rows: Sequence[Row], writers: Sequence[Writer[Any]]) -> None:
        """Bring the rows of all groups to rank 0, and write them together; collective."""
        sent = json.dumps([vars(row) for row in rows]) if rows else ""
        received = self.job.gather(sent.encode())
        found = [
            row_of(one | {"run": self.run_name})
            for text in filter(None, received)
            for one in json.loads(text)
        ]
        with self.job.agreement():
            for writer in writers:
                writer.together(found)


def row_of(sent: dict[str, Any]) -> Row:
    """Return a row as it was before it was sent."""
    if "percentiles" in sent:
        sent["percentiles"] = tuple(map(tuple, sent["percentiles"]))
    return Row(**sent)
