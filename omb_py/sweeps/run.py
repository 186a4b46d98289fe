"""One start of ``omb-py sweep``: find missing rows, measure them, report the outcome."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from omb_py.core.errors import LeftOutError, OmbError, UsageError, needing
from omb_py.core.text.words import count
from omb_py.sweeps.commands import nodes_here
from omb_py.sweeps.folder import FAILURES, MISSING, REFUSED, Folder
from omb_py.sweeps.libraries import installations
from omb_py.sweeps.points import SweepPoint, in_order, plan, split
from omb_py.sweeps.reporter import Reporter
from omb_py.sweeps.runner import Runner
from omb_py.sweeps.stop import Stop, exit_code
from omb_py.sweeps.sweep_job import SweepJob, with_settings


def run_sweep(
    job: SweepJob, deadline: float | None, mix: bool = False, launch_each: bool = False
) -> int:
    """Measure the missing rows of a job's points; return the exit code (`runner.exit_code`).

    ``deadline`` is in the seconds of `time.monotonic`, ``mix`` lets rows of other software be in
    the folder; with ``launch_each`` each point has its own launch. Raises `OmbError` if the folder
    cannot be written or there is no launcher, `UsageError` if the launcher is another library's.
    """
    machine, folder, plan = job.machine, Folder(job.root), job.plan.on(job.nodes)
    points = in_order(job.missing, job.sweep)
    found, faults = installations(machine, (point.library for point in points))
    if faults and not found and not any(map(folder.there, plan.points)):
        reasons = "; ".join(f"{name}: {why}" for name, why in faults.items())
        raise OmbError(f"no library of {machine.name} can be started: {reasons}")
    folder.prepare(job.sweep, machine, [one.software for one in found.values()], mix)
    reporter = Reporter(folder, plan.points)
    with Stop(deadline).watching() as stop:
        larger, short = list[SweepPoint](), ""
        if points:
            here = nodes_here(machine)
            points, larger = split(points, here)
            short = job.shortage(larger, here)
            begin(reporter, job, folder)
            if short:
                reporter.say(f"left out {count(len(larger), 'point')}: {short}")
        for name, why in faults.items():
            own = [point for point in points if point.library == name]
            points = [point for point in points if point.library != name]
            reporter.say(f"left out {count(len(own), 'point')} with {name}: {why}")
        for name in orphaned(job, folder):
            reporter.say(f"note: {folder.root}/points/{name} is of no point in this plan")
        runner = Runner(job, folder, found, reporter, stop, launch_each=launch_each)
        runner.clear()
        with reporter.bar():
            added = runner.run(points)
        outcome = outcome_of(runner, larger)
        report(outcome, runner, added, short)
        show_table(job, reporter)
        return code_of(outcome, stop, added)


def show_table(job: SweepJob, reporter: Reporter) -> None:
    """Write and print the table of the experiments with a title, if there are any."""
    if any(experiment.title for experiment in job.sweep.experiments):
        try:
            with needing("analysis"):
                from omb_py.sweeps import table
        except OmbError as error:
            reporter.say(f"note: the table of the sweep is left out: {error}")
        else:
            text = table.write(job)
            if text:
                reporter.say(f"table in {job.root / table.NAME}:\n\n{text}")


def orphaned(job: SweepJob, folder: Folder) -> list[str]:
    """Return files of points that are in no plan of the sweep, for any queue."""
    known = list(job.plan.points)
    if job.machine.job.queues and folder.strangers(known):
        for queue in job.machine.job.queues:
            with suppress(UsageError):
                known += plan(job.sweep, with_settings(job.machine, {"queue": queue})).points
    return folder.strangers(known)


def begin(reporter: Reporter, job: SweepJob, folder: Folder) -> None:
    """Print the plan of this start."""
    reporter.say(
        f"sweep {job.sweep.name} on {job.machine.name}: {count(len(job.points), 'point')}, "
        f"{count(reporter.rows, 'row')}, {reporter.there} of them there; "
        f"results in {folder.root}"
    )
    for left_out in job.plan.left_out:
        reporter.say(left_out.describe())


@dataclass(frozen=True)
class Outcome:
    """The points of a plan after a start.

    ``given_up`` have sizes that cannot be measured here. ``missing`` are the points that still can,
    with their numbers of rows; ``here`` are those of them that there are nodes for, ``tried`` those
    at whose place launches succeed. Of them, ``failed`` and ``lacking`` a package or device are
    worth another start. ``elsewhere``: other processes measure all that is missing here.
    ``hung`` counts launches that were ended after their last row, ``empty``: no row is there.
    """

    given_up: list[SweepPoint]
    missing: dict[SweepPoint, int]
    here: list[SweepPoint]
    tried: list[SweepPoint]
    failed: list[SweepPoint]
    lacking: list[SweepPoint]
    elsewhere: bool
    hung: int
    empty: bool


def outcome_of(runner: Runner, larger: Sequence[SweepPoint]) -> Outcome:
    """Return the outcome of a runner's start; for ``larger`` points there are too few nodes."""
    folder, points = runner.folder, runner.job.points
    states = {point: folder.state(point) for point in points}
    missing = {point: len(sizes) for point in points if (sizes := folder.missing(point))}
    here = [point for point in missing if point not in {*larger}]
    tried = [point for point in here if point not in runner.left_out]
    return Outcome(
        given_up=[point for point in points if states[point].given_up],
        missing=missing,
        here=here,
        tried=tried,
        failed=[point for point in tried if states[point].outcome in (*FAILURES, REFUSED)],
        lacking=[point for point in here if states[point].outcome == MISSING],
        elsewhere=bool(here) and all(point in runner.elsewhere for point in here),
        hung=sum(one.hung for state in states.values() for one in state.attempts),
        empty=not any(map(folder.there, points)),
    )


def code_of(found: Outcome, stop: Stop, added: bool) -> int:
    """Return the exit code of a start that ``added`` rows, or none."""
    if found.missing:
        few = not found.tried
        return exit_code(stop, False, added, too_few_nodes=few, elsewhere=found.elsewhere)
    if found.empty:
        return OmbError.exit_code
    return LeftOutError.exit_code if found.given_up else 0


def report(found: Outcome, runner: Runner, added: bool, short: str) -> None:
    """Print the outcome and the next command; ``short`` is why there are too few nodes."""
    reporter, folder = runner.reporter, runner.folder
    if found.hung:
        reporter.say(
            f"{count(found.hung, 'run')} of jobs whose ranks failed hung after the last row and "
            "had to be ended; their results are complete"
        )
    reporter.list_points(found.given_up, "could not be measured here")
    if not found.missing:
        but = ", but for what cannot be measured here" if found.given_up else ""
        whole = f"complete{but}: {runner.job.show_command}"
        nothing = "nothing was measured: mend the reasons above, or choose another sweep"
        reporter.say(nothing if found.empty else whole)
        return
    reporter.list_points(found.failed, "failed")
    reporter.list_points(found.lacking, "lacked a package, a device or a library")
    rows = f"{count(sum(found.missing.values()), 'row')} of {count(len(found.missing), 'point')}"
    there = f"; results so far are in {folder.root}" if reporter.there else ""
    what = "; ".join(filter(None, [next_step(found), short]))
    reporter.say(f"{why_stopped(runner.stop, added)}{rows} missing: {what}{there}")


def why_stopped(stop: Stop, added: bool) -> str:
    """Return the beginning of a sentence about a stop; empty without one."""
    if not stop:
        return ""
    warned = stop.signal in (None, signal.SIGUSR1, signal.SIGUSR2)
    by = "its time was over" if warned else f"signal {stop.signal} came"
    return f"stopped because {by}{'' if added else ', and nothing was measured'}; "


def next_step(found: Outcome) -> str:
    """Return the way to the rows that are missing here; empty if there are none."""
    if found.elsewhere:
        return "another omb-py sweep in this folder measures them"
    first = "mend that, and " if not found.tried or len(found.lacking) == len(found.here) else ""
    return f"{first}run the same command again" if found.here else ""
