"""Runs the missing rows of a sweep, point by point, and keeps all measured rows."""

from __future__ import annotations

import re
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from omb_py.core.errors import (
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
from omb_py.sweeps import commands, processes
from omb_py.sweeps import folder as outcomes
from omb_py.sweeps.files import locked, moment, writing
from omb_py.sweeps.folder import Attempt, Folder, PointState
from omb_py.sweeps.libraries import Installation
from omb_py.sweeps.point_launch import PointLaunch, SharedLaunch, clear_scratch, mark_of
from omb_py.sweeps.points import SweepPoint, launched_together
from omb_py.sweeps.reasons import last_words
from omb_py.sweeps.reporter import Reporter
from omb_py.sweeps.stop import Stop
from omb_py.sweeps.sweep_job import SweepJob

SAME_CAUSE = 3
"""Points that fail in the same words before the first row, or before their ranks meet: the cause is
not in the points."""

LEFT_OUT = "left out messages of "
"""How omb-py's sentence on sizes that cannot be measured begins."""

MOST_PAUSES = 20  # in a row, after which a point waits for another start


@dataclass(frozen=True)
class Runner:
    """What it takes to run the points of a job: its folder, libraries and limits."""

    job: SweepJob
    folder: Folder
    libraries: Mapping[str, Installation]
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
            if not self.reporter.there and alike(causes) and len(self.libraries) == 1:
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
                    processes.clear(mark_of(self.folder, scratch.name))
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
                    processes.clear(mark_of(self.folder, point.name))
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
        self._note_over(shared, ended)
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

    def _note_over(self, shared: SharedLaunch, ended: str | None = None) -> None:
        """Note the outcomes of the points that are over, if the launch was not ``ended`` before."""
        for point, line in shared.look():
            words = line["reason"] or None, ""
            rows = shared.rows(point)
            cut = ended if ended == outcomes.SUSPENDED else None
            self._note(point, rows, line["seconds"], line["exit_code"], cut, words)

    def _launch(
        self, points: Sequence[SweepPoint], shared: SharedLaunch | None = None
    ) -> tuple[int | None, str | None, bool]:
        """Launch points; outcomes of ``shared`` ones are noted meanwhile."""
        self.reporter.begins(points)
        note_over = partial(self._note_over, shared) if shared else None
        place = self.job, self.folder, self.libraries[points[0].library], self.stop
        return PointLaunch(*place, points, shared, note_over).run()

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
        if code == NoLibraryError.exit_code and excuse and len(self.libraries) == 1:
            raise OmbError(f"nothing can be measured here: {excuse}")  # nor any other point
        return attempt


def alike(causes: Sequence[str]) -> bool:
    """Return whether these are `SAME_CAUSE` causes, in the same words but for their numbers."""
    same = {re.sub(r"\d+", "0", cause) for cause in causes}
    return len(causes) >= SAME_CAUSE and len(same) == 1 and same != {""}


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
    if code is not None and code < 0 and (excuse or "").startswith(LEFT_OUT):
        return outcomes.SHORT  # Open MPI's launcher may crash when ranks of many nodes end so
    return outcomes.FAILED if code is None or not excuse else meant.get(code, outcomes.FAILED)


def silent_end(code: int | None) -> str:
    """Return the end of a launcher that printed nothing, and whose ranks printed nothing."""
    if code is None:
        return ""
    if code >= 0:
        return f"neither the launcher, with exit code {code}, nor a rank said why"
    return f"the launcher was killed by signal {-code} ({signal.strsignal(-code)})"
