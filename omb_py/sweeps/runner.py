"""Runs the missing rows of a sweep, point by point, and keeps all measured rows."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from omb_py.core.errors import (
    INTERRUPTED,
    LeftOutError,
    MissingError,
    NoLibraryError,
    OmbError,
    UnsupportedError,
    UsageError,
)
from omb_py.core.mpi.launcher import NOT_STARTED
from omb_py.core.mpi.recovery import HUNG as FINALIZE_HUNG
from omb_py.core.text.units import duration
from omb_py.core.text.words import count
from omb_py.measure.suite import UNDER_WAY, WAITING
from omb_py.sweeps import commands, processes
from omb_py.sweeps import folder as outcomes
from omb_py.sweeps.batch import BatchJob
from omb_py.sweeps.files import locked, moment, write_atomically, writing
from omb_py.sweeps.folder import RECORDS, Attempt, Folder, PointState
from omb_py.sweeps.launchers import LAUNCHERS
from omb_py.sweeps.points import SweepPoint, launched_together
from omb_py.sweeps.reasons import last_words
from omb_py.sweeps.reporter import Reporter

UNFINISHED = 75
"""Exit code of a sweep that has more to do, later or on more nodes: sysexits' "try again"."""

SAME_CAUSE = 3
"""Points that fail in the same words before the first row, or before their ranks meet: the cause is
not in the points."""

LOOK_SECONDS = 0.5
PAUSE_SECONDS = 3.0
"""A look that comes so late means that the job was suspended: the row under way has the pause."""

MOST_PAUSES = 20  # in a row, after which a point waits for another start
END_SECONDS = 20.0
"""Seconds that a launcher has after the last row of a job whose ranks failed: some never end."""

ROOM = 64 * 1024
"""Free bytes below which a disk is full: a point's log, state and table need them."""

SAME_TIME_SECONDS = 0.2
"""Seconds between a scheduler's signals to ranks and to this process."""

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that stop a sweep in order; schedulers warn by one of them before the end of a job."""


@dataclass
class Stop:
    """A reason to stop: a signal, or the end of the available time."""

    deadline: float | None = None
    signal: int | None = None

    def __bool__(self) -> bool:
        over = self.deadline is not None and time.monotonic() >= self.deadline
        return over or self.signal is not None

    @contextmanager
    def watching(self) -> Iterator[Stop]:
        """Catch signals as long as the block lasts, and ignore them from then on.

        A signal while the process exits may not change its exit code, by which a job decides
        whether another one goes on. Under `nohup` a hangup stays ignored.
        """

        def caught(number: int, frame: FrameType | None) -> None:
            self.signal = number

        deaf = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        heard = [number for number in STOPPING if not (deaf and number == signal.SIGHUP)]
        for number in heard:
            signal.signal(number, caught)
        try:
            yield self
        finally:
            for number in heard:
                signal.signal(number, signal.SIG_IGN)


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
class Runner:
    """What it takes to run the points of a job: its folder, launcher and limits."""

    job: BatchJob
    folder: Folder
    launcher: str
    reporter: Reporter
    stop: Stop
    elsewhere: list[SweepPoint] = field(default_factory=list)
    """Points that another process was measuring."""
    launch_each: bool = False
    """True if each point has its own launch."""
    broken: list[SweepPoint] = field(default_factory=list)
    """Points that failed in a launch with others."""
    left_out: list[SweepPoint] = field(default_factory=list)
    """Points at places where no launch succeeds."""

    def run(self, points: Sequence[SweepPoint]) -> bool:
        """Measure missing rows, points that failed before last; return whether any row was added.

        Raises `OmbError` when the folder cannot be written, there is no launcher or no MPI
        library, or the first `SAME_CAUSE` points fail in the same words before there is any row.
        """
        alone = [point for point in points if self._failed(point)]
        waiting = [point for point in points if point not in alone]
        causes, launches = list[str](), dict[str, list[str]]()
        while (waiting or alone) and not self.stop:
            together = self._next(waiting) if waiting else (alone.pop(0),)
            begun = self.measure(together)
            if len(together) > 1:
                self.broken.extend(filter(self._failed, begun))
                alone += filter(self._failed, begun)
            for point in begun:
                last = self.folder.state(point).last
                causes.append(last.said if last and last.outcome == outcomes.FAILED else "")
                if point in self.elsewhere:
                    continue
                if last and last.outcome in outcomes.FAILURES and not last.began:
                    launches.setdefault(point.place, []).append(last.said)
                else:
                    launches.pop(point.place, None)
            if not self.reporter.there and alike(causes):
                raise OmbError(
                    f"the first {len(causes)} points failed alike, so no other one is started: "
                    f"{causes[0]}"
                )
            waiting = [point for point in waiting if point not in begun]
            waiting += filter(self._suspended, begun)
            place = begun[0].place if begun else ""
            if alike(launches.get(place, [])[-SAME_CAUSE:]):
                self.leave_out([point for point in points if point.place == place])
                waiting = [point for point in waiting if point.place != place]
                alone = [point for point in alone if point.place != place]
        return self.reporter.added > 0

    def leave_out(self, points: Sequence[SweepPoint]) -> None:
        """Report that the missing rows of points at one place are left out, and its dead hosts."""
        missing = [point for point in points if self.folder.missing(point)]
        failed = next(filter(self._failed, missing))
        last = self.folder.state(failed).last
        names = commands.hosts(self.job.machine) or []
        dead = commands.silent(names[: points[0].nodes])
        unheard = f"; no answer from {', '.join(dead)}" if dead else ""
        self.left_out.extend(missing)
        self.reporter.say(
            f"left out {count(len(missing), 'point')} on {points[0].place}: {SAME_CAUSE} launches "
            f"in a row failed before their ranks met: {last.said if last else ''}{unheard} "
            f"({self.folder.log(failed)})"
        )

    def _failed(self, point: SweepPoint) -> bool:
        """Return whether the last attempt at a point failed."""
        return self.folder.state(point).outcome in outcomes.FAILURES

    def _suspended(self, point: SweepPoint) -> bool:
        """Return whether a pause of the job cut the last attempt at a point, but not too many."""
        ends = [one.outcome for one in self.folder.state(point).attempts[-MOST_PAUSES:]]
        return ends[-1:] == [outcomes.SUSPENDED] and ends != MOST_PAUSES * [outcomes.SUSPENDED]

    def _next(self, waiting: Sequence[SweepPoint]) -> tuple[SweepPoint, ...]:
        """Return the first of the points, and those that share its launch."""
        return (waiting[0],) if self.launch_each else launched_together(waiting)

    def clear(self) -> None:
        """End and remove the remains of killed sweeps, for points that no process measures now."""
        for scratch in self.folder.abandoned():
            with locked(self.folder.lock(scratch.name)) as ours:
                if ours:
                    processes.clear(self._mark(scratch.name))
                    clear_scratch(scratch)

    def measure(self, points: Sequence[SweepPoint]) -> list[SweepPoint]:
        """Measure missing rows of points, several in one launch; return the points that were
        reached.

        A single point is retried if it fails. Points that another process measures, or has
        measured before their locks were free, are skipped.
        """
        with ExitStack() as held:
            ours = []
            for point in points:
                locks = held.enter_context(locked(self.folder.lock(point.name)))
                if locks:
                    processes.clear(self._mark(point.name))
                if not self.folder.missing(point):
                    self.reporter.look(point)
                elif locks:
                    ours.append(point)
                else:
                    self.reporter.elsewhere(point)
                    self.elsewhere.append(point)
            taken = [point for point in points if point not in ours]
            if len(ours) > 1:
                return [*taken, *self._together(ours)]
            for point in ours:
                self._alone(point)
            return list(points)

    def _alone(self, point: SweepPoint) -> None:
        """Measure the missing rows of a point, retries included.

        A point that has broken a shared launch is tried at least once.
        """
        again = point in self.broken
        retries = self.job.sweep.retries
        for _ in range(max(1, retries) if again else 1 + retries):
            if self.stop or not self.folder.missing(point):
                break
            if self._attempt(point).outcome not in outcomes.FAILURES:
                break

    def _together(self, points: Sequence[SweepPoint]) -> list[SweepPoint]:
        """Measure points in one launch; those that it came to."""
        shared = SharedLaunch(self.folder, points)
        with writing(shared.summary):
            shared.summary.unlink(missing_ok=True)
        code, ended, began = self._launch(points, shared)
        self._settle(shared, ended)
        broken = shared.under_way if shared.begun else points[0]
        if broken is not None:
            log = self.folder.log(points[0])
            if broken != points[0]:
                with writing(log):
                    shutil.copyfile(log, self.folder.log(broken))
            seconds = time.monotonic() - shared.since
            rows = shared.rows(broken)
            self._note(broken, rows, seconds, code, ended, last_words(log), began)
        return shared.begun or [points[0]]

    def _settle(self, shared: SharedLaunch, ended: str | None = None) -> None:
        """Note the outcomes of the points that are over, if the launch was not ``ended`` before."""
        for point, line in shared.look():
            words = line["reason"] or None, ""
            rows = shared.rows(point)
            cut = ended if ended == outcomes.SUSPENDED else None
            self._note(point, rows, line["seconds"], line["exit_code"], cut, words)

    def _attempt(self, point: SweepPoint) -> Attempt:
        began, before = time.monotonic(), len(self.folder.measured(point))
        code, ended, met = self._launch([point])
        seconds, rows = time.monotonic() - began, len(self.folder.measured(point)) - before
        words = last_words(self.folder.log(point))
        return self._note(point, rows, seconds, code, ended, words, met)

    def _note(
        self,
        point: SweepPoint,
        rows: int,
        seconds: float,
        code: int | None,
        ended: str | None,
        words: tuple[str | None, str],
        began: bool = True,
    ) -> Attempt:
        """Keep how an attempt at a point went, which took ``seconds`` and is over now.

        ``words`` are as `last_words` gives them.

        Raises `OmbError` if there is no MPI library.
        """
        left = self.folder.missing(point)
        excuse, others = words
        outcome = judge(code, ended, left, excuse)
        said = excuse or others or silent_end(code)
        if outcome == outcomes.DONE and code and not point.loses_ranks:
            said = f"exit code {code} after its last row: {said}"
        elif outcome in (outcomes.DONE, outcomes.STOPPED):
            said = ""
        if outcome == outcomes.SUSPENDED:
            said = "the job was suspended meanwhile, so it is measured again"
        hung = ended == outcomes.HUNG or FINALIZE_HUNG in (excuse or "")
        if outcome == outcomes.TIMED_OUT:
            limit = f"{duration(self.job.sweep.time_limit)} (time_limit)"
            said = f"not at its end after {limit}"
            if not began:
                said = f"its ranks had not met after {limit}{f': {others}' if others else ''}"
        attempt = Attempt(
            started=moment(time.time() - seconds),
            seconds=round(seconds, 3),
            exit_code=code,
            outcome=outcome,
            rows=rows,
            said=said,
            hung=hung,
            began=began,
        )
        state = self.folder.state(point)
        lost = left if outcome in (outcomes.SHORT, outcomes.UNSUPPORTED) else ()
        self.folder.note(
            point,
            PointState(attempts=(*state.attempts, attempt), given_up=(*state.given_up, *lost)),
        )
        self.reporter.ended(point, attempt)
        if code == NoLibraryError.exit_code and excuse:
            raise OmbError(f"nothing can be measured here: {excuse}")  # nor any other point
        return attempt

    def _launch(
        self, points: Sequence[SweepPoint], shared: SharedLaunch | None = None
    ) -> tuple[int | None, str | None, bool]:
        """Run the launcher of points to its end; return its exit code, or how it was ended, and
        whether its ranks met.

        It is logged, and runs, in the folders of the first point. Several points are ``shared``.
        """
        point = points[0]
        self.reporter.begins(points)
        scratch = self.folder.scratch(point)
        hosts = self._host_file(point)
        command = commands.command(points, self.folder, self.job.machine, self.launcher, hosts)
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
                temporary_folder(self.launcher, point.nodes, records) as temporary,
            ):
                file.write(f"$ {shlex.join(command)}\n".encode())
                file.flush()
                wanted = commands.environment(point, self.job.machine, self.launcher, scratch)
                environment = {**os.environ, **wanted, **temporary, **telling}
                mark = self._mark(point.name)
                try:
                    with processes.started(command, environment, mark, scratch, file) as process:
                        ended = self._wait(process, point, shared, sizes)
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

    def _host_file(self, point: SweepPoint) -> Path | None:
        """Return a file of the nodes that this point runs on, if the launcher needs one.

        Open MPI would contact all nodes of the machine's file. Raises `OmbError` when there are
        fewer nodes, or as `commands.hosts` does.
        """
        names = commands.hosts(self.job.machine)
        if names is None:
            return None
        if len(names) < point.nodes:
            have = count(len(names), "node")
            raise OmbError(f"{point.describe()} needs more than the {have} of this job")
        place = commands.placement(point, self.job.machine)
        line = LAUNCHERS[self.launcher].host_line
        path = self.folder.scratch(point).with_suffix(".hosts").resolve()
        write_atomically(path, "".join(f"{line(name, place)}\n" for name in names[: point.nodes]))
        return path

    def _wait(
        self,
        process: subprocess.Popen[bytes],
        point: SweepPoint,
        shared: SharedLaunch | None,
        sizes: dict[Path, int],
    ) -> str | None:
        """Wait for the launcher's end, each point within its limit; return why it was ended, if it
        was.

        ``sizes`` of files of rows are kept up to date, without those of points that are over.
        """
        limit = time.monotonic() + self.job.sweep.time_limit
        while True:
            looked = time.monotonic()
            over = processes.wait(process, LOOK_SECONDS)
            if time.monotonic() - looked > LOOK_SECONDS + PAUSE_SECONDS:
                # a job that is ended measures no row again: its rows before the pause are progress
                return outcomes.STOPPED if self.stop else outcomes.SUSPENDED
            if over:
                break
            if shared is not None:
                begun = len(shared.begun)
                self._settle(shared)
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

    def _mark(self, name: str) -> str:
        return f"{self.folder.root.resolve()}:{name}"


def alike(causes: Sequence[str]) -> bool:
    """Return whether these are `SAME_CAUSE` causes, in the same words but for their numbers."""
    same = {re.sub(r"\d+", "0", cause) for cause in causes}
    return len(causes) >= SAME_CAUSE and len(same) == 1 and same != {""}


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


def judge(code: int | None, ended: str | None, left: tuple[int, ...], excuse: str | None) -> str:
    """Return the outcome of an attempt.

    It follows from the exit code, the reason why omb-py ended it, the missing sizes and omb-py's
    message. Without a message of omb-py, an exit code is the launcher's. Open MPI's is 0 after a
    node broke.
    """
    if not left:
        return outcomes.DONE
    if ended is not None:
        return ended
    meant = {
        LeftOutError.exit_code: outcomes.SHORT,
        UsageError.exit_code: outcomes.REFUSED,
        UnsupportedError.exit_code: outcomes.UNSUPPORTED,
        MissingError.exit_code: outcomes.MISSING,
    }
    return outcomes.FAILED if code is None or not excuse else meant.get(code, outcomes.FAILED)


def silent_end(code: int | None) -> str:
    """Return the end of a launcher that printed nothing, and whose ranks printed nothing."""
    if code is None:
        return ""
    if code >= 0:
        return f"neither the launcher, with exit code {code}, nor a rank said why"
    return f"the launcher was killed by signal {-code} ({signal.strsignal(-code)})"


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


def exit_code(
    stop: Stop, complete: bool, added: bool, too_few_nodes: bool = False, elsewhere: bool = False
) -> int:
    """Return the exit code of a sweep.

    0 when everything is there, `UNFINISHED` if it was stopped or all missing points need more
    nodes, and it is worth going on with, or if other processes measure the missing points, 130
    after Ctrl-C, 1 if points failed or the whole time gave no row.
    """
    if complete:
        return 0
    if elsewhere and not stop:
        return UNFINISHED
    if stop.signal == signal.SIGINT:
        return INTERRUPTED
    return UNFINISHED if (stop or too_few_nodes) and added else 1
