"""A launch of points of a sweep, from its command to the end of its ranks."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omb_py.core.errors import OmbError
from omb_py.core.mpi.launcher import NOT_STARTED
from omb_py.core.text.words import count
from omb_py.measure.suite import UNDER_WAY, WAITING
from omb_py.sweeps import commands, processes
from omb_py.sweeps import folder as outcomes
from omb_py.sweeps.files import write_atomically, writing
from omb_py.sweeps.folder import RECORDS, Folder
from omb_py.sweeps.launchers import LAUNCHERS
from omb_py.sweeps.libraries import Installation
from omb_py.sweeps.points import SweepPoint
from omb_py.sweeps.stop import Stop
from omb_py.sweeps.sweep_job import SweepJob

LOOK_SECONDS = 0.5
PAUSE_SECONDS = 3.0
"""A look that comes so late means that the job was suspended: the row under way has the pause."""

END_SECONDS = 20.0
"""Seconds that a launcher has after the last row of a job whose ranks failed: some never end."""

ROOM = 64 * 1024
"""Free bytes below which a disk is full: a point's log, state and table need them."""

SAME_TIME_SECONDS = 0.2
"""Seconds between a scheduler's signals to ranks and to this process."""


class SharedLaunch:
    """Points that are measured in one launch, with outcomes from its summary."""

    def __init__(self, folder: Folder, points: Sequence[SweepPoint]) -> None:
        self.summary = folder.summary(points[0])
        self.since = time.monotonic()
        """The beginning of the point under way."""
        self.begun: list[SweepPoint] = []
        self.under_way: SweepPoint | None = None
        self._folder = folder
        self._before = {point: len(folder.measured(point)) for point in points}
        self._outcomes = dict.fromkeys(points, WAITING)

    def rows(self, point: SweepPoint) -> int:
        """Return how many rows of a point were added since the launch."""
        return len(self._folder.measured(point)) - self._before[point]

    def look(self) -> Iterator[tuple[SweepPoint, dict[str, Any]]]:
        """Yield the points that are over since the last look, with their lines of the summary."""
        try:
            lines = json.loads(self.summary.read_bytes())["entries"]
        except FileNotFoundError:
            return
        for point, line in zip(self._outcomes, lines, strict=True):
            if line["outcome"] == self._outcomes[point]:
                continue
            if self._outcomes[point] == WAITING:
                self.begun.append(point)
            self._outcomes[point] = line["outcome"]
            self.under_way = point if line["outcome"] == UNDER_WAY else None
            if self.under_way is None:
                yield point, line
            self.since = time.monotonic()


@dataclass(frozen=True)
class PointLaunch:
    """The points of one launch, with what it takes to launch them.

    ``shared`` is the state of several points, and ``note_over`` notes which of them are over.
    """

    job: SweepJob
    folder: Folder
    library: Installation
    stop: Stop
    points: Sequence[SweepPoint]
    shared: SharedLaunch | None
    note_over: Callable[[], None] | None

    def run(self) -> tuple[int | None, str | None, bool]:
        """Run the launcher to its end; return its exit code, or how it was ended, and whether its
        ranks met.

        It is logged, and runs, in the folders of the first point.
        """
        points, point = self.points, self.points[0]
        scratch = self.folder.scratch(point)
        hosts = self._host_file()
        command = commands.command(points, self.folder, self.library, hosts)
        csvs = [self.folder.csv(one) for one in points]
        sizes = {csv: size_of(csv) for csv in csvs}
        log = self.folder.log(point)
        records = scratch / RECORDS
        with writing(log):
            clear_scratch(scratch)
            for path in (scratch, log.parent, csvs[0].parent):
                path.mkdir(parents=True, exist_ok=True)
            (scratch / NOT_STARTED).touch()
            telling = processes.watch(records) if point.nodes == 1 else {}
            with (
                log.open("ab") as file,
                temporary_folder(self.library.launcher, point.nodes, records) as temporary,
            ):
                file.write(f"$ {shlex.join(command)}\n".encode())
                file.flush()
                wanted = commands.environment(point, self.library, scratch)
                environment = {**self.library.inherited, **wanted, **temporary, **telling}
                mark = mark_of(self.folder, point.name)
                try:
                    with processes.started(command, environment, mark, scratch, file) as process:
                        ended = self._wait(process, sizes)
                finally:
                    share_mode(log, csvs)
            for csv, size in sizes.items() if ended == outcomes.SUSPENDED else ():
                if size_of(csv) > size:
                    os.truncate(csv, size)
        if ended is None and process.returncode != 0:
            try:
                require_room(self.folder.root)
            except OmbError:
                clear_scratch(scratch)
                raise
        began = not (scratch / NOT_STARTED).exists()
        clear_scratch(scratch)
        return (None if ended else process.returncode), ended, began

    def _host_file(self) -> Path | None:
        """Return a file of the nodes that the points run on, if the launcher needs one.

        Open MPI would contact all nodes of the machine's file. Raises `OmbError` when there are
        fewer nodes, or as `commands.hosts` does.
        """
        point, names = self.points[0], commands.hosts(self.job.machine)
        if names is None:
            return None
        if len(names) < point.nodes:
            have = count(len(names), "node")
            raise OmbError(f"{point.describe()} needs more than the {have} of this job")
        place = commands.placement(point, self.library.machine)
        line = LAUNCHERS[self.library.launcher].host_line
        path = self.folder.scratch(point).with_suffix(".hosts").resolve()
        write_atomically(path, "".join(f"{line(name, place)}\n" for name in names[: point.nodes]))
        return path

    def _wait(self, process: subprocess.Popen[bytes], sizes: dict[Path, int]) -> str | None:
        """Wait for the launcher's end, each point within its limit; return why it was ended, if it
        was.

        ``sizes`` of files of rows are kept up to date, without those of points that are over.
        """
        point, shared = self.points[0], self.shared
        limit = time.monotonic() + self.job.sweep.time_limit
        while True:
            looked = time.monotonic()
            over = processes.wait(process, LOOK_SECONDS)
            if time.monotonic() - looked > LOOK_SECONDS + PAUSE_SECONDS:
                # a job that is ended measures no row again: its rows before the pause are progress
                return outcomes.STOPPED if self.stop else outcomes.SUSPENDED
            if over:
                break
            if shared is not None and self.note_over is not None:
                begun = len(shared.begun)
                self.note_over()
                if len(shared.begun) > begun:
                    limit = time.monotonic() + self.job.sweep.time_limit
            if self.stop:
                return outcomes.STOPPED
            complete = point.loses_ranks and not self.folder.missing(point)
            if complete:
                limit = min(limit, time.monotonic() + END_SECONDS)
            if time.monotonic() > limit:
                return outcomes.HUNG if complete else outcomes.TIMED_OUT
            for one in shared.begun if shared is not None else ():
                sizes.pop(self.folder.csv(one), None)
            current = point if shared is None else shared.under_way
            if current is not None:
                sizes[self.folder.csv(current)] = size_of(self.folder.csv(current))
        if process.returncode != 0:  # a scheduler may signal ranks and this process: none failed
            time.sleep(SAME_TIME_SECONDS)
        return outcomes.STOPPED if process.returncode != 0 and self.stop else None


def mark_of(folder: Folder, name: str) -> str:
    """Return the mark of the processes that measure a point, by its name."""
    return f"{folder.root.resolve()}:{name}"


def size_of(path: Path) -> int:
    """Return the bytes of a file, 0 if there is none."""
    return path.stat().st_size if path.exists() else 0


def share_mode(log: Path, written: Iterable[Path]) -> None:
    """Give files of ranks the log's permissions: a rank's umask is its node's, the log's ours."""
    for path in written:
        with suppress(OSError):  # it is missing, or another user's
            if path.is_file():
                shutil.copymode(log, path)


def require_room(folder: Path) -> None:
    """Raise `OmbError` if the disk of a folder is full.

    A point that failed then did not fail by itself, and its log may lack messages.
    """
    probe = folder / f".room-{os.getpid()}"
    with writing(folder):
        try:
            with probe.open("wb") as file:
                file.write(bytes(ROOM))
                file.flush()
                os.fsync(file.fileno())
        finally:
            probe.unlink(missing_ok=True)


def clear_scratch(scratch: Path) -> None:
    """Remove the folder of the ranks, and their files elsewhere on this host."""
    processes.remove(scratch / RECORDS)
    shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def temporary_folder(launcher: str, nodes: int, records: Path) -> Iterator[dict[str, str]]:
    """Make a TMPDIR of its own for Open MPI on one node.

    A launcher of Open MPI that was killed leaves a folder named after its process number, and a
    later one that happens to get that number refuses to start. On several nodes the folder would
    have to be on all of them. It is noted in ``records``, lest this process be killed, too.
    """
    if launcher != "openmpi" or nodes > 1:
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix=processes.PREFIX, ignore_cleanup_errors=True) as own:
        processes.note_folder(records, own)
        yield {"TMPDIR": own}
