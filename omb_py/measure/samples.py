"""The samples of all ranks, row by row, in the file that ``--samples`` names."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import TYPE_CHECKING

from omb_py.core.job import Job
from omb_py.measure.rows import MICROSECONDS
from omb_py.results.columns import Row

if TYPE_CHECKING:
    from omb_py.results.samples import SampleFile

MAX_SAMPLES = 100_000
"""Samples of one rank that are kept of a row; beyond it one of every two, three … iterations."""

GATHERED_BYTES = 4 << 20
"""Samples that rank 0 holds at once; with more ranks than that has room for, some at a time."""

SECONDS_BYTES = 8
"""A duration, as ranks send it."""


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

    def keep(self, row: Row | None, seconds: array[float], timed: bool, round_trips: int) -> None:
        """Write the samples of a row, which rank 0 has; ranks whose clock does not count have none.

        Raises `SharedError` if they cannot be written.
        """
        job = self._job
        every = -(-len(seconds) // MAX_SAMPLES)
        kept = seconds[::every]
        mine = kept.tobytes() if timed else b""
        at_once = max(1, GATHERED_BYTES // (SECONDS_BYTES * len(kept)))
        for first in range(0, job.ranks, at_once):
            some = first <= job.rank < first + at_once
            gathered = job.gather(mine if some else b"")
            with job.agreement():
                if row is not None and self._file is not None and any(gathered):
                    write(self._file, row, gathered, round_trips, every)
        if row is not None and every > 1:
            self._thinned[f"{row.bytes} bytes" if row.bytes is not None else row.benchmark] = every

    def finish(self) -> None:
        """Complete the file; raises `SharedError` if that fails."""
        with self._job.agreement():
            if self._file is not None:
                self._file.finish()
        if self._thinned:
            which = ", ".join(f"{every} at {name}" for name, every in self._thinned.items())
            self._job.note(
                f"--samples keeps at most {MAX_SAMPLES} iterations of a rank and row, so one of "
                f"every {which}"
            )


def write(file: SampleFile, row: Row, gathered: list[bytes], round_trips: int, every: int) -> None:
    """Add what ranks packed to the file, in the order of ranks and iterations."""
    import numpy as np

    from omb_py.results.samples import DTYPE, description

    common = description(row, round_trips, every)
    count = sum(map(len, gathered)) // SECONDS_BYTES
    samples = np.empty(count, DTYPE)
    for name, value in common.items():
        samples[name] = value
    done = 0
    for rank, packed in enumerate(gathered):
        seconds = np.frombuffer(packed) * MICROSECONDS
        part = samples[done : done + len(seconds)]
        part["rank"] = rank
        part["iteration"] = np.arange(len(seconds)) * every
        part["sample_us"] = seconds / round_trips
        done += len(seconds)
    file.append(samples)
