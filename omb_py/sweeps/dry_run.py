"""A sweep without running it: its points, their rows, and the commands that measure them."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text.units import duration
from omb_py.core.text.words import count
from omb_py.sweeps import commands, jobs, launchers
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.files import is_locked, moment
from omb_py.sweeps.folder import FAILURES, Folder
from omb_py.sweeps.libraries import Installation, installation
from omb_py.sweeps.points import SweepPoint, in_order, launched_together, split
from omb_py.sweeps.reasons import listed
from omb_py.sweeps.reporter import TimeLeft
from omb_py.sweeps.sweep_job import SweepJob


def show(job: SweepJob) -> None:
    """Print the points to measure, and the rows that are there.

    Raises `OmbError` when a host file cannot be read.
    """
    from omb_py.core.text.tables import Sheet, on_console

    sweep, machine, folder, plan = job.sweep, job.machine, Folder(job.root), job.plan.on(job.nodes)
    by_benchmark: dict[str, list[SweepPoint]] = {}
    for point in plan.points:
        by_benchmark.setdefault(point.benchmark, []).append(point)
    lines = []
    for name, points in by_benchmark.items():
        rows = sum(point.rows for point in points)
        there = sum(map(folder.there, points))
        cells = (
            name,
            several(point.buffer for point in points),
            several(point.binding for point in points),
            several(f"{point.nodes}x{point.ranks_per_node}" for point in points),
            several(word for p in points for word in (p.library_algorithm, p.variant) if word),
            str(len(points)),
            str(rows),
            str(there),
        )
        lines.append(cells)
    what = ("benchmark", "buffers", "bindings", "nodes x ranks", "variants")
    heads = (*what, "points", "rows", "there")
    title = f"sweep {sweep.name} on {machine.name}"
    on_console([Sheet(title, heads, tuple(lines), left=len(what))], (), sys.stdout)
    here = commands.nodes_here(machine)
    larger = split(job.missing, here)[1]
    print(f"{count(len(plan.points), 'point')}, {count(plan.rows, 'row')}{rounds(sweep)}")
    for line in standing(folder, plan.points):
        print(line)
    for left_out in plan.left_out:
        print(left_out.describe())
    if larger:
        short = job.shortage(larger, here)
        print(f"left out {count(len(larger), 'point')}: {short}")


def standing(folder: Folder, points: Sequence[SweepPoint]) -> Iterator[str]:
    """Yield how a sweep stands: rows and time left, jobs, launches, points with their reasons."""
    states = {point: folder.state(point) for point in points}
    left = {point: len(folder.missing(point)) for point in points}
    failed = [one for one in points if left[one] and states[one].outcome in FAILURES]
    never = [one for one in points if states[one].given_up]
    found = [f"{sum(map(folder.there, points))} of {sum(one.rows for one in points)} rows"]
    found += [f"{count(len(failed), 'point')} failed"] if failed else []
    found += [f"{len(never)} cannot be measured here"] if never else []
    time_left = TimeLeft()
    for point, state in states.items():
        for attempt in state.attempts:
            time_left.add(point, attempt)
    seconds = time_left.seconds(left)
    yield ", ".join(found) + (f"; about {duration(seconds)} left" if seconds else "")
    for number, standing_of_job in jobs.states(folder.root).items():
        yield f"job {number}: {standing_of_job}"
    for point in points:
        scratch = folder.scratch(point)
        if scratch.exists() and is_locked(folder.lock(point.name)):
            since = scratch.stat().st_mtime
            yield (
                f"a launch runs since {moment(since)}, {duration(time.time() - since)} so far, "
                f"beginning with {point.describe()}"
            )
    yield from listed(folder, never, "could not be measured here")
    yield from listed(folder, failed, "failed")


def rounds(sweep: Sweep) -> str:
    """Return words for the order of the launches of a sweep's points."""
    if sweep.launches == 1:
        return ""
    how = f", each shuffled (seed {sweep.seed})" if sweep.order == "shuffled" else ""
    return f"; {sweep.launches} rounds{how}"


def show_commands(job: SweepJob, launch_each: bool, note: Callable[[str], None]) -> None:
    """Print the command line of each launch that measures missing rows, in order, for a shell.

    A launcher that the machine names need not be installed; that of another library is noted.
    Raises `OmbError` if `auto` finds none.
    """
    machine, folder = job.machine, Folder(job.root)
    libraries, installed = dict[str, Installation](), True
    waiting = in_order(job.missing, job.sweep)
    for name in dict.fromkeys(point.library for point in waiting):
        try:
            libraries[name] = installation(machine, name)
        except OmbError as error:
            if name:
                note(f"left out {name}: {error}")
                continue
            if machine.launcher == launchers.AUTO:
                raise
            libraries[name], installed = Installation(machine, machine.launcher), False
            if isinstance(error, UsageError):
                note(f"here, {error}")
    waiting = [point for point in waiting if point.library in libraries]
    while waiting:
        together = waiting[:1] if launch_each else launched_together(waiting)
        waiting = [one for one in waiting if one not in together]
        library = libraries[together[0].library]
        values = commands.environment(together[0], library)
        words = commands.command(together, folder, library, installed=installed)
        assigned = [f"--unset={name}" for name in library.taken_back]
        assigned += [f"{name}={value}" for name, value in values.items()]
        print(shlex.join([*(["env"] if assigned else []), *assigned, *words]))


def several(words: Iterable[str]) -> str:
    """List words, each once."""
    return ", ".join(dict.fromkeys(words))
