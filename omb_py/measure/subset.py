"""Some ranks of a job, rank 0 among them, measure while the others sleep."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from omb_py.core.datatypes import Datatype
from omb_py.core.errors import SharedError
from omb_py.core.job import Job
from omb_py.core.job.by_mpi import MPIJob
from omb_py.core.job.groups import ranks_text
from omb_py.results.columns import Row
from omb_py.results.writer import Writer

if TYPE_CHECKING:
    from mpi4py import MPI

    from omb_py.measure.sampling import Report

SHORTEST_SLEEP, LONGEST_SLEEP = 0.001, 0.05
"""Seconds between two looks of a rank that waits, first and at most.

Each look takes a core for some 10 us: at most 0.02 % of it.
"""


class SubsetJob(MPIJob):
    """The ranks of a job that take part; the first of them is rank 0."""

    def __init__(self, comm: MPI.Intracomm, whole: Job, ranks: Sequence[int]) -> None:
        """``ranks`` are those of the ``whole`` job that ``comm`` consists of."""
        super().__init__(comm)
        self.whole = whole
        self.name = ranks_text(ranks)
        self.thread_level = whole.thread_level
        self.noted = whole.noted

    def check_launcher(self) -> None:
        self.whole.check_launcher()

    def naming(self, writers: Iterable[Writer[Any]]) -> list[Writer[Any]]:
        """Return writers that name the subset in each row, and hand it on to ``writers``."""
        return [SubsetWriter(writer, self.name, self.whole.ranks) for writer in writers]


def on_subset(
    whole: Job,
    ranks: Sequence[int],
    work: Callable[[SubsetJob], None],
    report: Report | None,
) -> None:
    """Call ``work`` on ascending ``ranks`` of a job while the others sleep; collective.

    ``report`` is called by ranks that wait. Raises `SharedError` on all ranks if the subset agrees
    on a failure.
    """
    from mpi4py import MPI

    takes_part = whole.rank in ranks
    comm: Any = whole.comm.Split(0 if takes_part else MPI.UNDEFINED, whole.rank)
    failure = None
    if takes_part:
        subset = SubsetJob(comm, whole, ranks)
        try:
            with subset.scope():
                work(subset)
        except SharedError as error:
            failure = error
        subset.free()
    everyone = whole.comm.Ibarrier()
    pause = SHORTEST_SLEEP
    while not everyone.Test():
        time.sleep(pause)
        pause = min(1.5 * pause, LONGEST_SLEEP)
        if report is not None:
            report(0, 0)
    whole.agree(failure)


class SubsetWriter(Writer[Row]):
    """Names the ranks of a subset in its rows."""

    def __init__(self, writer: Writer[Row], name: str, ranks: int) -> None:
        """``name`` has the ranks of the subset, of so many ``ranks`` of the job."""
        self._writer = writer
        self._name = name
        self._ranks = ranks

    def start(self, metadata: dict[str, str]) -> None:
        self._writer.start(metadata | {"part": f"ranks {self._name} of {self._ranks}"})

    def section(self, datatype: Datatype | None) -> None:
        self._writer.section(datatype)

    def row(self, row: Row) -> None:
        self._writer.row(row.replace(group=self._name))

    def amend(self, run: str, metadata: dict[str, str]) -> None:
        self._writer.amend(run, metadata)

    def finish(self) -> None:
        self._writer.finish()
