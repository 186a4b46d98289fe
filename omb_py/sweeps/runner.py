"""Runs what is missing of a sweep, point by point, and keeps whatever was measured."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from omb_py.core.errors import (
    INTERRUPTED,
    LeftOutError,
    MissingError,
    NoLibraryError,
    OmbError,
    UnsupportedError,
    UsageError,
)
from omb_py.core.mpi.recovery import HUNG as FINALIZE_HUNG
from omb_py.core.text.units import duration
from omb_py.core.text.words import count
from omb_py.sweeps import commands, processes, profiling
from omb_py.sweeps import folder as outcomes
from omb_py.sweeps.files import locked, write_atomically, writing
from omb_py.sweeps.folder import RECORDS, Attempt, Folder, PointState
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.points import SweepPoint
from omb_py.sweeps.reasons import last_words
from omb_py.sweeps.reporter import Reporter

UNFINISHED = 75
"""Exit code of a sweep that has more to do, later or on more nodes: sysexits' "try again"."""

NO_PROFILE = (
    "no profile was written where its ranks ran: does the library write one, and of programs that "
    "load MPI when they run?"
)

SAME_CAUSE = 3
"""Points that fail in the same words before the first row: the cause is not in the points."""

LOOK_SECONDS = 0.5
ASK_SECONDS = 30.0
"""What a launcher has to start a program on each host that it is asked about."""

END_SECONDS = 20.0
"""What a launcher has after the last row of a job whose ranks failed: some never end."""

ROOM = 64 * 1024
"""Bytes without which a disk is full: what a point writes into its log, state and table."""

REFUSE_BY_THEMSELVES = ("mpich", "intel")
"""Launchers of libraries that count no messages; MPICH fails rather than take another algorithm."""

PROVEN = (0, LeftOutError.exit_code, UnsupportedError.exit_code)
"""Exit codes of a proof after which is measured: as named, but for sizes that are left out, or by
a library that counts nothing."""

SAME_TIME_SECONDS = 0.2
"""How far apart a scheduler's signals come to ranks and to us."""

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that stop a sweep in order; schedulers warn by one of them before the end of a job."""


@dataclass
class Stop:
    """Whether to stop: a signal came, or the time that we have is over."""

    deadline: float | None = None
    signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None or self.left() <= 0

    def left(self) -> float:
        """Seconds until the deadline; infinite without one."""
        return float("inf") if self.deadline is None else self.deadline - time.monotonic()

    @contextmanager
    def watching(self) -> Iterator[Stop]:
        """Catch signals as long as the block lasts, and ignore them from then on.

        What comes while the process leaves may not change its exit code, by which a job decides
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


@dataclass(frozen=True)
class Runner:
    """What it takes to run points: where, with which launcher, and how patient to be."""

    folder: Folder
    machine: Machine
    launcher: str
    time_limit: float
    retries: int
    reporter: Reporter
    stop: Stop = field(default_factory=Stop)
    elsewhere: list[SweepPoint] = field(default_factory=list)
    """Points that another process was measuring."""
    silent: list[str] = field(default_factory=list)
    """Hosts on which the launcher starts no program."""
    asked: list[str] = field(default_factory=list)

    def run(self, points: Sequence[SweepPoint]) -> bool:
        """Measure what is missing; those that failed before come last. Whether any row was added.

        Raises `OmbError` when the folder cannot be written, there is no launcher or no MPI
        library, or the first `SAME_CAUSE` points fail in the same words before there is any row.
        """
        failed = [
            point for point in points if self.folder.state(point).outcome in outcomes.FAILURES
        ]
        added, causes = False, list[str]()
        for point in [*(point for point in points if point not in failed), *failed]:
            if self.stop:
                break
            if self.folder.missing(point) and not self.needs_silent(point):
                added |= self.measure(point)
                last = self.folder.state(point).last
                causes.append(last.said if last and last.outcome == outcomes.FAILED else "")
                if not self.reporter.there and len(causes) == SAME_CAUSE:
                    stop_if_same(causes)
        return added

    def clear(self) -> None:
        """End and remove what killed sweeps left, of points that nobody measures now."""
        for scratch in self.folder.abandoned():
            with locked(self.folder.lock(scratch.name)) as ours:
                if ours:
                    processes.clear(self._mark(scratch.name))
                    clear_scratch(scratch)

    def measure(self, point: SweepPoint) -> bool:
        """Measure what is missing of a point, retries included. Whether any row was added."""
        with locked(self.folder.lock(point.name)) as ours:
            if not ours:
                self.reporter.elsewhere(point)
                self.elsewhere.append(point)
                return False
            processes.clear(self._mark(point.name))
            before = len(self.folder.measured(point))
            for number in range(1 + self.retries):
                missing = self.folder.missing(point)
                if not missing or self.stop:
                    break
                attempt = self._attempt(point, missing, retry=number > 0)
                if attempt.outcome not in outcomes.FAILURES:
                    break
                if point.nodes > 1 and not self.stop:
                    self._ask()
                if self.needs_silent(point):
                    break
            return len(self.folder.measured(point)) > before

    def _attempt(self, point: SweepPoint, missing: tuple[int, ...], retry: bool) -> Attempt:
        self.reporter.started(point, missing, retry)
        began, clock = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), time.monotonic()
        before = len(self.folder.measured(point))
        code, ended = (
            self._launch(point, missing, prove=True) if self._provable(point) else (0, None)
        )
        if ended is None and code in PROVEN:
            code, ended = self._launch(point, missing)
        left = self.folder.missing(point)
        excuse, words = last_words(self.folder.log(point))
        outcome = judge(code, ended, left, excuse)
        well = outcome in (outcomes.DONE, outcomes.STOPPED)
        said = "" if well else excuse or words or silent_end(code)
        hung = ended == outcomes.HUNG or FINALIZE_HUNG in (excuse or "")
        if outcome == outcomes.TIMED_OUT:
            said = f"not at its end after {duration(self.time_limit)} (time_limit)"
        attempt = Attempt(
            started=began,
            seconds=round(time.monotonic() - clock, 3),
            exit_code=code,
            outcome=outcome,
            rows=len(self.folder.measured(point)) - before,
            said=said,
            hung=hung,
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

    def needs_silent(self, point: SweepPoint) -> bool:
        """Whether a point needs more hosts than those that answer."""
        return bool(self.silent) and point.nodes > len(self.asked) - len(self.silent)

    def _ask(self) -> None:
        """Ask each host once whether the launcher can start a program there; name the silent."""
        names = commands.hosts(self.machine)
        if names is None or self.asked:
            return
        self.asked.extend(names)
        scratch = self.folder.root / "scratch" / f"hosts-{os.getpid()}"
        scratch.mkdir(parents=True, exist_ok=True)
        asked = []
        with (scratch / "output").open("ab") as output:
            for number, name in enumerate(names):
                file = scratch / f"{number}.hosts"
                command = commands.question(name, self.machine, self.launcher, file.resolve())
                mark = self._mark(f"{scratch.name}-{number}")
                started = processes.start(command, dict(os.environ), mark, scratch, output)
                asked.append((name, mark, started))
            limit = time.monotonic() + ASK_SECONDS
            for name, mark, process in asked:
                ended = processes.wait(process, max(0.1, limit - time.monotonic()))
                if not ended or process.returncode != 0:
                    self.silent.append(name)
                processes.end(process, mark)
        shutil.rmtree(scratch, ignore_errors=True)
        if self.silent:
            self.reporter.say(
                f"the launcher starts nothing on {', '.join(self.silent)}: points that need more "
                f"than the other {count(len(names) - len(self.silent), 'node')} are left out"
            )

    def _provable(self, point: SweepPoint) -> bool:
        """Whether it is to be counted first that the algorithm named is the one that runs."""
        in_groups = any(one.name in ("split", "congestor") for one in point.settings)
        by_itself = self.launcher in REFUSE_BY_THEMSELVES
        return point.library_algorithm is not None and not in_groups and not by_itself

    def _launch(
        self, point: SweepPoint, missing: tuple[int, ...], prove: bool = False
    ) -> tuple[int | None, str | None]:
        """Run the launcher to its end: its exit code, or how we ended it."""
        csv = self.folder.csv(point)
        scratch = self.folder.scratch(point)
        own, kept = scratch / profiling.OWN, self.folder.profile(point)
        where = commands.Where(self.machine, self.launcher, self._host_file(point), own)
        profiled = not prove and profiling.is_profiled(point, self.machine)
        command = commands.command(point, missing, where, None if prove else csv)
        limit = time.monotonic() + self.time_limit
        log = self.folder.log(point)
        records = scratch / RECORDS
        with writing(log):
            clear_scratch(scratch)
            if profiled and kept.exists():
                shutil.rmtree(kept)
            for path in (scratch, log.parent, csv.parent):
                path.mkdir(parents=True, exist_ok=True)
            telling = processes.watch(records) if point.nodes == 1 else {}
            with (
                log.open("ab") as file,
                temporary_folder(self.launcher, point.nodes, records) as temporary,
            ):
                file.write(f"$ {shlex.join(command)}\n".encode())
                file.flush()
                wanted = commands.environment(point, self.machine, self.launcher, scratch)
                environment = {**os.environ, **wanted, **temporary, **telling}
                mark = self._mark(point.name)
                process = processes.start(command, environment, mark, scratch, file)
                try:
                    ended = self._wait(process, limit, point)
                finally:
                    processes.end(process, mark)
                    share_mode(log, [csv])
        if ended is None and process.returncode != 0:
            with clearing(scratch):
                require_room(self.folder.root)
        if profiled:
            with writing(kept):
                there = profiling.collect(scratch, kept)
            share_mode(log, kept.rglob("*"))
            if not there and ended is None and process.returncode == 0:
                self.reporter.say(f"{point.describe()}: it ran, but {NO_PROFILE}")
        clear_scratch(scratch)
        return (None if ended else process.returncode), ended

    def _host_file(self, point: SweepPoint) -> Path | None:
        """A file of the nodes that this point runs on, where the launcher has to be told.

        Open MPI would reach out for all that are in the machine's file.
        """
        lines = commands.host_lines(point, self.machine, self.launcher, self.silent)
        if lines is None:
            return None
        path = self.folder.scratch(point).with_suffix(".hosts").resolve()
        write_atomically(path, "".join(f"{line}\n" for line in lines))
        return path

    def _wait(
        self, process: subprocess.Popen[bytes], limit: float, point: SweepPoint
    ) -> str | None:
        """Wait for the launcher's end; what made us end it, if anything."""
        missing, csv = self.folder.missing(point), self.folder.csv(point)
        known = bytes_of(csv)
        while not processes.wait(process, LOOK_SECONDS):
            if self.reporter.is_live and (nbytes := bytes_of(csv)) != known:
                known = nbytes
                self.reporter.row_added(point, self.folder.missing(point), len(missing))
            if self.stop:
                return outcomes.STOPPED
            complete = point.loses_ranks and not self.folder.missing(point)
            if complete:
                limit = min(limit, time.monotonic() + END_SECONDS)
            if time.monotonic() > limit:
                return outcomes.HUNG if complete else outcomes.TIMED_OUT
        return self._ended_by_us(process.returncode)

    def _ended_by_us(self, code: int) -> str | None:
        """A scheduler tells ranks to end at the same time as us: then they did not fail."""
        if code != 0:
            time.sleep(SAME_TIME_SECONDS)
        return outcomes.STOPPED if code != 0 and self.stop else None

    def _mark(self, name: str) -> str:
        return f"{self.folder.root.resolve()}:{name}"


def stop_if_same(causes: Sequence[str]) -> None:
    """Raise `OmbError` where all points failed in the same words, but for their numbers."""
    if causes[0] and len({re.sub(r"\d+", "0", cause) for cause in causes}) == 1:
        raise OmbError(
            f"the first {len(causes)} points failed alike, so no other one is started: {causes[0]}"
        )


def bytes_of(path: Path) -> int:
    """The size of a file; 0 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def share_mode(log: Path, written: Iterable[Path]) -> None:
    """Give files of ranks the log's permissions: a rank's umask is its node's, the log's ours."""
    for path in written:
        with suppress(OSError):  # there is none, or it is somebody else's
            if path.is_file():
                shutil.copymode(log, path)


def require_room(folder: Path) -> None:
    """Raise `OmbError` where the disk of a folder is full.

    A point that failed then did not fail by itself, and its log may lack what it said.
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


@contextmanager
def clearing(scratch: Path) -> Iterator[None]:
    """Remove where ranks ran if the block fails."""
    try:
        yield
    except OmbError:
        clear_scratch(scratch)
        raise


def clear_scratch(scratch: Path) -> None:
    """Remove where ranks ran, and what they left elsewhere on this host."""
    processes.remove(scratch / RECORDS)
    shutil.rmtree(scratch, ignore_errors=True)


def judge(code: int | None, ended: str | None, left: tuple[int, ...], excuse: str | None) -> str:
    """How an attempt went.

    From its exit code, what made us end it, the sizes still missing and what omb-py itself said:
    without a word of its own, an exit code is the launcher's. Open MPI's is 0 after a node broke.
    """
    if not left:
        return outcomes.DONE
    if ended is not None:
        return ended
    meant = {
        LeftOutError.exit_code: outcomes.SHORT,
        UsageError.exit_code: outcomes.UNSUPPORTED,
        UnsupportedError.exit_code: outcomes.UNSUPPORTED,
        MissingError.exit_code: outcomes.MISSING,
    }
    return outcomes.FAILED if code is None or not excuse else meant.get(code, outcomes.FAILED)


def silent_end(code: int | None) -> str:
    """How a launcher ended that said nothing, nor its ranks."""
    if code is None:
        return ""
    if code >= 0:
        return f"neither the launcher, with exit code {code}, nor a rank said why"
    return f"the launcher was killed by signal {-code} ({signal.strsignal(-code)})"


@contextmanager
def temporary_folder(launcher: str, nodes: int, records: Path) -> Iterator[dict[str, str]]:
    """A TMPDIR of its own for Open MPI on one node.

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
    """What a sweep's end means to whoever started it.

    0 when everything is there, `UNFINISHED` when it was stopped or all that is missing needs more
    nodes, and it is worth going on with, or when other processes measure what is missing, 130 after
    Ctrl-C, 1 when points failed or nothing was measured in all the time.
    """
    if complete:
        return 0
    if elsewhere and not stop:
        return UNFINISHED
    if stop.signal == signal.SIGINT:
        return INTERRUPTED
    return UNFINISHED if (stop or too_few_nodes) and added else 1
