"""One start of ``omb-py sweep``: look at what is there, measure what is missing, say what came."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from omb_py.core import VERSION
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text.units import duration
from omb_py.core.text.words import count
from omb_py.results.metadata import TELLING_PREFIXES, processor
from omb_py.sweeps import allocation, launchers, profiling, reasons
from omb_py.sweeps.batch import with_settings
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.files import write_atomically
from omb_py.sweeps.folder import FAILURES, MISSING, Folder, Software, software_here
from omb_py.sweeps.forecast import remaining
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.points import Plan, Point, in_order, plan
from omb_py.sweeps.reporter import Reporter
from omb_py.sweeps.runner import Runner, Stop, exit_code
from omb_py.sweeps.targets import APPLICATION, target

CAPTURED = (
    *("SLURM_", "PBS_", "COBALT_", "LSB_", "FLUX_", "OMB_PY_", "LOADEDMODULES", "MODULEPATH"),
    *("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "VIRTUAL_ENV", "CONDA_PREFIX", "HOSTNAME"),
)
"""Beginnings of environment variables worth keeping beside those that change what MPI does."""

SECRET = ("TOKEN", "SECRET", "PASSW", "KEY", "JWT", "COOKIE", "CREDENTIAL")
"""Words in names of variables whose values are nobody's business."""


def run_sweep(
    sweep: Sweep,
    machine: Machine,
    whole: Plan,
    nodes: int | None,
    folder: Folder,
    deadline: float | None,
    words: str,
    mix: bool = False,
) -> int:
    """Measure what is missing of a plan, on so many nodes; the exit code (`runner.exit_code`).

    ``deadline`` is in the seconds of `time.monotonic`, ``words`` are as in `allocation.shortage`,
    ``mix`` lets rows of other software be in the folder. Raises `OmbError` when the folder cannot
    be written or there is no launcher, `UsageError` when that is another library's.
    """
    plan = whole.on(nodes)
    points = [point for point in in_order(plan.points, sweep) if folder.missing(point)]
    if any(profiling.is_profiled(point, machine) for point in points):
        profiling.check(machine)
    launcher = launchers.select(machine.launcher, machine.name) if points else machine.launcher
    software = software_here(machine.environment) if points else Software()
    folder.prepare(sweep, machine, software, mix)
    there = sum(map(folder.there, plan.points))
    reporter = Reporter(folder.root / "logs" / "sweep.output", sys.stdout, plan.rows, there)
    with Stop(deadline).watching() as stop, reporter:
        larger, short = list[Point](), ""
        if points:
            here = allocation.nodes_here(machine)
            points, larger = allocation.split(points, here)
            short = allocation.shortage(larger, here, machine, words)
            capture(folder, launcher)
            begin(reporter, sweep, machine, plan, folder, larger)
            if short:
                reporter.say(f"left out {count(len(larger), 'point')}: {short}")
        if machine.profile is not None and not any(is_application(one) for one in whole.points):
            reporter.say("note: nothing is profiled, for no point is an application")
        for name in orphaned(folder, sweep, machine, whole):
            reporter.say(f"note: {folder.root}/points/{name} is of no point in this plan")
        runner = Runner(
            folder=folder,
            machine=machine,
            launcher=launcher,
            time_limit=sweep.time_limit,
            retries=sweep.retries,
            reporter=reporter,
            stop=stop,
        )
        runner.clear()
        added = runner.run(points)
        unanswered = [point for point in points if runner.needs_silent(point)]
        if unanswered:
            larger += unanswered
            alone = f"{', '.join(runner.silent)} did not answer"
            short = f"{short}; {alone}" if short else alone
        return end(reporter, plan, folder, stop, added, larger, short, runner.elsewhere)


def orphaned(folder: Folder, sweep: Sweep, machine: Machine, whole: Plan) -> list[str]:
    """Files of points that are in no plan of the sweep, whichever queue it is for."""
    known = list(whole.points)
    if machine.job.queues and folder.strangers(known):
        for queue in machine.job.queues:
            with suppress(UsageError):
                known += plan(sweep, with_settings(machine, {"queue": queue})).points
    return folder.strangers(known)


def begin(
    reporter: Reporter,
    sweep: Sweep,
    machine: Machine,
    plan: Plan,
    folder: Folder,
    larger: Sequence[Point],
) -> None:
    """Say what is about to happen; there are too few nodes for ``larger`` points."""
    left, backed = remaining(allocation.without(plan.points, larger), folder, machine)
    reporter.expect(left)
    reporter.say(
        f"sweep {sweep.name} on {machine.name}: {count(len(plan.points), 'point')}, "
        f"{count(plan.rows, 'row')}, {reporter.there} of them there; "
        f"about {duration(left)} to go{'' if backed else ' (a guess)'}; results in {folder.root}"
    )
    for left_out in plan.left_out:
        reporter.say(left_out.describe())


def filter_points(plan: Plan) -> str:
    """The command that shows what was measured."""
    return "scaling" if all(map(is_application, plan.points)) else "report"


def is_application(point: Point) -> bool:
    """Whether a point measures an application."""
    return target(point.benchmark).family == APPLICATION


def end(
    reporter: Reporter,
    plan: Plan,
    folder: Folder,
    stop: Stop,
    added: bool,
    larger: Sequence[Point],
    short: str,
    elsewhere: Sequence[Point] = (),
) -> int:
    """Say what came of it, and what to do next; the exit code.

    ``short`` is why there are too few nodes for ``larger`` points. Other processes were measuring
    those ``elsewhere``.
    """
    list_profiles(reporter, folder, plan.points)
    hung = sum(one.hung for point in plan.points for one in folder.state(point).attempts)
    if hung:
        reporter.say(
            f"{count(hung, 'run')} of jobs whose ranks failed hung after the last row and had to "
            "be ended; their results are complete"
        )
    given_up = [point for point in plan.points if folder.state(point).given_up]
    left = [point for point in plan.points if folder.missing(point)]
    list_points(reporter, folder, given_up, "could not be measured here")
    here = allocation.without(left, larger)
    others = here and all(point in elsewhere for point in here)
    code = exit_code(stop, not left, added, too_few_nodes=not here, elsewhere=bool(others))
    if not left and not any(map(folder.there, plan.points)):
        reporter.say("nothing was measured: mend the reasons above, or choose another sweep")
        return OmbError.exit_code
    if not left:
        but = ", but for what cannot be measured here" if given_up else ""
        reporter.say(f"complete{but}: omb-py {filter_points(plan)} {folder.root}")
        return code
    failed = [point for point in here if folder.state(point).outcome in FAILURES]
    list_points(reporter, folder, failed, "failed")
    lacking = [point for point in here if folder.state(point).outcome == MISSING]
    list_points(reporter, folder, lacking, "lacked a package, a device or a library")
    why = ""
    if stop:
        by = "its time was over" if stop.signal is None else f"signal {stop.signal} came"
        why = f"stopped because {by}{'' if added else ', and nothing was measured'}; "
    first = "mend that, and " if len(lacking) == len(here) else ""
    again = [f"{first}run the same command again"] if here else []
    if others:
        again = ["another omb-py sweep in this folder measures them"]
    missing = f"{count(missing_rows(folder, left), 'row')} of {count(len(left), 'point')} missing"
    there = f"; results so far are in {folder.root}" if reporter.there else ""
    reporter.say(f"{why}{missing}: {'; '.join([*again, *([short] if short else [])])}{there}")
    return code


def list_profiles(reporter: Reporter, folder: Folder, points: Sequence[Point]) -> None:
    """Say where the profiles of points are, if there are any."""
    found = [path for point in points if (path := folder.profile(point)).is_dir()]
    if found:
        there = f"profiles of {count(len(found), 'point')} in {found[0].parent}"
        reporter.say(f"{there}: omb-py profile show {found[0]}")


def list_points(reporter: Reporter, folder: Folder, points: Sequence[Point], what: str) -> None:
    """Name points, gathered by what they said for themselves."""
    for line in reasons.lines(folder, points, what, reporter.since):
        reporter.say(line)


def missing_rows(folder: Folder, points: Sequence[Point]) -> int:
    """How many planned rows are not there and can still be measured."""
    return sum(len(folder.missing(point)) for point in points)


def capture(folder: Folder, launcher: str) -> None:
    """Keep what this session's environment is; raises `OmbError` when it cannot be written."""
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    lines = [
        f"omb-py {VERSION}, Python {platform.python_version()}, {sys.executable}",
        f"host {platform.node()}, {platform.system()} {platform.release()}, {processor()}",
        f"launcher {launcher}: {version(launcher)}",
        *(
            f"{name}={value}"
            for name, value in sorted(os.environ.items())
            if name.startswith((*TELLING_PREFIXES, *CAPTURED))
            and not any(word in name.upper() for word in SECRET)
        ),
    ]
    write_atomically(
        folder.root / "environment" / f"{now}-{platform.node()}-{os.getpid()}",
        "\n".join(line.replace("\n", " ") for line in lines) + "\n",
    )


def version(launcher: str) -> str:
    """What the launcher says of itself; where it is when it does not answer."""
    row = launchers.LAUNCHERS[launcher]
    try:
        said = launchers.version(launchers.find(row.program, row.in_venv))
    except OmbError:
        return shutil.which(row.program) or "not found"
    return " ".join(said.split())[:300]
