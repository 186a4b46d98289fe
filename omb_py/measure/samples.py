"""The samples of all ranks, row by row, in the file that ``--samples`` names."""

from __future__ import annotations

from array import array
from math import fsum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from omb_py.core.job import Job
from omb_py.core.mpi.clock import Offset, SharedClock
from omb_py.measure.rows import MICROSECONDS
from omb_py.results.columns import Row

if TYPE_CHECKING:
    from omb_py.results.samples import SampleFile

MAX_SAMPLES = 100_000
"""Samples of one rank that are kept of a row; beyond it one of every two, three … iterations."""

GATHERED_BYTES = 4 << 20
"""Samples that rank 0 holds at once; with more ranks than that has room for, some at a time."""

PAIR_BYTES = 16
"""A start and a duration, as ranks send them."""


class StartTimes:
    """Starts of iterations on this rank's clock, from their durations and the time around them.

    The loop stores only durations, so that the timed part does not grow. A stretch of iterations
    takes longer than their durations together: the loop, barriers and the wait for a common start
    come between them. This rest is divided evenly; the error of a start is at most the whole rest.
    ``error`` is the largest of these bounds, in seconds, ``seconds`` the starts.
    """

    def __init__(self) -> None:
        self.seconds = array("d")
        self.error = 0.0

    def add(self, begin: float, elapsed: float, durations: array[float], uncounted: int) -> None:
        """Add the iterations of a stretch from ``begin`` on but the first ``uncounted``."""
        between = max(0.0, elapsed - fsum(durations))
        each = between / len(durations)
        at = begin + each / 2
        for number, duration in enumerate(durations):
            if number >= uncounted:
                self.seconds.append(at)
            at += duration + each
        if uncounted < len(durations):
            self.error = max(self.error, between)


class SampleKeeper:
    """Brings the samples of a row to rank 0 and into the file; collective in all it does."""

    def __init__(self, job: Job, path: str, force: bool) -> None:
        """Open the file on rank 0; raises `SharedError` if it cannot be written to."""
        self._job = job
        self._file: SampleFile | None = None
        self._thinned: dict[str, int] = {}
        with job.agreement():
            if job.rank == 0:
                from omb_py.results.samples import SampleFile

                self._file = SampleFile(Path(path), force)
        self._clock = SharedClock(job.comm_for("--samples"))
        self._zero = job.bcast_from_root(perf_counter())

    def start_times(self) -> StartTimes:
        """Return the recorder of the times when the iterations of the next row begin."""
        return StartTimes()

    def keep(
        self,
        row: Row | None,
        seconds: array[float],
        starts: StartTimes,
        timed: bool,
        round_trips: int,
    ) -> None:
        """Write the samples of a row, which rank 0 has; ranks whose clock does not count have none.

        Raises `SharedError` if they cannot be written.
        """
        job = self._job
        every = -(-len(seconds) // MAX_SAMPLES)
        offset = self._clock.align()
        error = starts.error + offset.error if timed else 0.0
        (error,) = job.reduce(array("d", [error]), "max")
        mine = self._packed(seconds, starts, offset, every) if timed else b""
        kept = len(range(0, len(seconds), every))
        at_once = max(1, GATHERED_BYTES // (PAIR_BYTES * kept))
        for first in range(0, job.ranks, at_once):
            some = first <= job.rank < first + at_once
            gathered = job.gather(mine if some else b"")
            with job.agreement():
                if row is not None and self._file is not None and any(gathered):
                    write(self._file, row, gathered, round_trips, every, error * MICROSECONDS)
        if row is not None and every > 1:
            self._thinned[f"{row.bytes} bytes" if row.bytes is not None else row.benchmark] = every

    def _packed(
        self, seconds: array[float], starts: StartTimes, offset: Offset, every: int
    ) -> bytes:
        """Return some of this rank's starts on the common clock, then the durations."""
        began = [offset.root(at) - self._zero for at in starts.seconds[::every]]
        return (array("d", began) + seconds[::every]).tobytes()

    def finish(self) -> None:
        """Complete the file; raises `SharedError` if that fails."""
        self._clock.free()
        with self._job.agreement():
            if self._file is not None:
                self._file.finish()
        if self._thinned:
            which = ", ".join(f"{every} at {name}" for name, every in self._thinned.items())
            self._job.note(
                f"--samples keeps at most {MAX_SAMPLES} iterations of a rank and row, so one of "
                f"every {which}"
            )


def write(
    file: SampleFile,
    row: Row,
    gathered: list[bytes],
    round_trips: int,
    every: int,
    start_error: float,
) -> None:
    """Add what ranks packed to the file, in the order of ranks and iterations."""
    import numpy as np

    from omb_py.results.samples import DTYPE, description

    common = description(row, round_trips, every, start_error)
    count = sum(map(len, gathered)) // PAIR_BYTES
    samples = np.empty(count, DTYPE)
    for name, value in common.items():
        samples[name] = value
    done = 0
    for rank, packed in enumerate(gathered):
        starts, seconds = np.frombuffer(packed).reshape(2, -1) * MICROSECONDS
        part = samples[done : done + len(starts)]
        part["rank"] = rank
        part["iteration"] = np.arange(len(starts)) * every
        part["start_us"] = starts
        part["sample_us"] = seconds / round_trips
        done += len(starts)
    file.append(samples)
