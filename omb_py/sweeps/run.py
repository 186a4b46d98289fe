"""One start of ``omb-py sweep``: find missing rows, measure them, report the outcome."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import suppress

from omb_py.core.errors import LeftOutError, OmbError, UsageError, needing
from omb_py.core.text.words import count
from omb_py.sweeps import launchers
from omb_py.sweeps.batch import BatchJob, with_settings
from omb_py.sweeps.commands import nodes_here
from omb_py.sweeps.folder import FAILURES, MISSING, REFUSED, Folder, Software, software_here
from omb_py.sweeps.points import SweepPoint, in_order, plan, split
from omb_py.sweeps.reporter import Reporter
from omb_py.sweeps.runner import Runner, Stop, exit_code


def run_sweep(
    job: BatchJob, deadline: float | None, mix: bool = False, launch_each: bool = False
) -> int:
    """Measure the missing rows of a job's points; return the exit code (`runner.exit_code`).

    ``deadline`` is in the seconds of `time.monotonic`, ``mix`` lets rows of other software be in
    the folder; with ``launch_each`` each point has its own launch. Raises `OmbError` if the folder
    cannot be written or there is no launcher, `UsageError` if the launcher is another library's.
    """
    machine, folder, plan = job.machine, Folder(job.root), job.plan.on(job.nodes)
    points = in_order(job.missing, job.sweep)
    launcher = launchers.select(machine.launcher, machine.name) if points else machine.launcher
    software = software_here(machine.environment) if points else Software()
    folder.prepare(job.sweep, machine, software, mix)
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
        for name in orphaned(job, folder):
            reporter.say(f"note: {folder.root}/points/{name} is of no point in this plan")
        runner = Runner(job, folder, launcher, reporter, stop, launch_each=launch_each)
        runner.clear()
        with reporter.bar():
            added = runner.run(points)
        code = end(reporter, job, folder, stop, added, larger, short, runner)
        show_table(job, reporter)
        return code


def show_table(job: BatchJob, reporter: Reporter) -> None:
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


def orphaned(job: BatchJob, folder: Folder) -> list[str]:
    """Return files of points that are in no plan of the sweep, for any queue."""
    known = list(job.plan.points)
    if job.machine.job.queues and folder.strangers(known):
        for queue in job.machine.job.queues:
            with suppress(UsageError):
                known += plan(job.sweep, with_settings(job.machine, {"queue": queue})).points
    return folder.strangers(known)


def begin(reporter: Reporter, job: BatchJob, folder: Folder) -> None:
    """Print the plan of this start."""
    reporter.say(
        f"sweep {job.sweep.name} on {job.machine.name}: {count(len(job.points), 'point')}, "
        f"{count(reporter.rows, 'row')}, {reporter.there} of them there; "
        f"results in {folder.root}"
    )
    for left_out in job.plan.left_out:
        reporter.say(left_out.describe())


def end(
    reporter: Reporter,
    job: BatchJob,
    folder: Folder,
    stop: Stop,
    added: bool,
    larger: Sequence[SweepPoint],
    short: str,
    runner: Runner,
) -> int:
    """Print the outcome and the next command; return the exit code.

    ``short`` is why there are too few nodes for ``larger`` points.
    """
    points = job.points
    states = {point: folder.state(point) for point in points}
    hung = sum(one.hung for state in states.values() for one in state.attempts)
    if hung:
        reporter.say(
            f"{count(hung, 'run')} of jobs whose ranks failed hung after the last row and had to "
            "be ended; their results are complete"
        )
    given_up = [point for point in points if states[point].given_up]
    missing = {point: len(sizes) for point in points if (sizes := folder.missing(point))}
    reporter.list_points(given_up, "could not be measured here")
    here = [point for point in missing if point not in {*larger}]
    others = bool(here) and all(point in runner.elsewhere for point in here)
    alone = [point for point in here if point not in runner.left_out]
    code = exit_code(stop, not missing, added, too_few_nodes=not alone, elsewhere=others)
    if not missing and not any(map(folder.there, points)):
        reporter.say("nothing was measured: mend the reasons above, or choose another sweep")
        return OmbError.exit_code
    if not missing:
        but = ", but for what cannot be measured here" if given_up else ""
        reporter.say(f"complete{but}: {job.show_command}")
        return LeftOutError.exit_code if given_up else code
    failed = [point for point in alone if states[point].outcome in (*FAILURES, REFUSED)]
    reporter.list_points(failed, "failed")
    lacking = [point for point in here if states[point].outcome == MISSING]
    reporter.list_points(lacking, "lacked a package, a device or a library")
    why = ""
    if stop:
        warned = stop.signal in (None, signal.SIGUSR1, signal.SIGUSR2)
        by = "its time was over" if warned else f"signal {stop.signal} came"
        why = f"stopped because {by}{'' if added else ', and nothing was measured'}; "
    first = "mend that, and " if not alone or len(lacking) == len(here) else ""
    again = [f"{first}run the same command again"] if here else []
    if others:
        again = ["another omb-py sweep in this folder measures them"]
    rows = f"{count(sum(missing.values()), 'row')} of {count(len(missing), 'point')} missing"
    there = f"; results so far are in {folder.root}" if reporter.there else ""
    reporter.say(f"{why}{rows}: {'; '.join([*again, *([short] if short else [])])}{there}")
    return code
