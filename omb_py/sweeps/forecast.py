"""What a sweep would measure, and how long: a guess at first, then what earlier points took."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from functools import lru_cache
from math import log2
from statistics import median

from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text.units import duration
from omb_py.core.text.words import count
from omb_py.sweeps import allocation, commands, launchers
from omb_py.sweeps.batch import BatchJob
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.folder import DONE, Folder
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.points import SweepPoint, in_order
from omb_py.sweeps.targets import APPLICATION, parse_target, target

START_SECONDS = 0.8
"""Of a job of few ranks, with Python and NumPy to import."""

APPLICATION_SECONDS = 3.0
"""Of all repeats and references of a problem of the default size."""

CALL_SECONDS = 2e-6
BYTES_PER_SECOND = 2e9
SYNC_SECONDS = 2e-3
"""Of MPI_File_sync on a local disk."""

CHECK_SECONDS = 1e-4
CHECK_MESSAGE_SECONDS = 5e-5
CHECK_BYTES_PER_SECOND = 1e9
"""What ``-c`` adds to an iteration beside its untimed calls: once, for each message of a window,
and for the memory that is filled twice and compared. As `perf/checking.py` found on two cores."""

OVERSUBSCRIPTION = 8.0
"""How much longer calls take where ranks share cores; it can be ten times that or nothing."""


def guess(point: SweepPoint, machine: Machine) -> float:
    """Seconds that a point may take, from nothing but its sizes, iterations and their check."""
    return guess_on(point, machine.cores)


@lru_cache(1 << 17)
def guess_on(point: SweepPoint, cores: int) -> float:
    """`guess` on nodes of so many cores."""
    benchmark = target(point.benchmark)
    crowd = max(1.0, point.ranks_per_node / cores)
    start = START_SECONDS * crowd
    if not benchmark.planned:
        return start
    if benchmark.family == APPLICATION:
        return start + APPLICATION_SECONDS * crowd
    options = parse_target(point.benchmark, point.arguments(())[1:])
    steps = point.ranks if "all" in point.benchmark else 1 + log2(point.ranks)
    messages = options.window if "window" in benchmark.options else 1
    slow = OVERSUBSCRIPTION * crowd if crowd > 1 else 1.0
    total = start
    for size in point.sizes or (0,):
        call = (CALL_SECONDS + size / BYTES_PER_SECOND) * steps * messages * slow
        if options.file_sync and "file_sync" in benchmark.options:
            call += SYNC_SECONDS * crowd
        iterations, warmup = benchmark.counts(options, size)
        if options.validate:
            check = CHECK_SECONDS + messages * CHECK_MESSAGE_SECONDS
            check += benchmark.memory(options, size, point.ranks) / CHECK_BYTES_PER_SECOND
            total += iterations * ((1 + options.validation_warmup) * call + check * crowd)
        elif options.max_time is not None:
            total += warmup * call + min(iterations * call, options.max_time)
        else:
            total += (iterations + warmup) * call
    return total


def remaining(points: Iterable[SweepPoint], folder: Folder, machine: Machine) -> tuple[float, bool]:
    """Seconds that the missing rows may take, and whether measured points back that up."""
    todo, took = 0.0, []
    for point in points:
        expected = guess(point, machine)
        missing = len(folder.missing(point))
        todo += expected * missing / point.rows
        attempts = folder.state(point).attempts
        if len(attempts) == 1 and attempts[0].outcome == DONE and not missing:
            took.append(attempts[0].seconds / expected)
    return todo * (median(took) if took else 1.0), bool(took)


def show(job: BatchJob) -> None:
    """Print what would be measured, what is there, and how long the rest may take.

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
            duration(sum(guess(point, machine) for point in points)),
        )
        lines.append(cells)
    what = ("benchmark", "buffers", "bindings", "nodes x ranks", "variants")
    heads = (*what, "points", "rows", "there", "about")
    title = f"sweep {sweep.name} on {machine.name}"
    on_console([Sheet(title, heads, tuple(lines), left=len(what))], (), sys.stdout)
    here = allocation.nodes_here(machine)
    larger = allocation.split(job.missing, here)[1]
    left, backed = remaining(set(plan.points) - set(larger), folder, machine)
    basis = "from what is there already" if backed else "a guess; better once something is there"
    print(
        f"{count(len(plan.points), 'point')}, {count(plan.rows, 'row')}; "
        f"{rounds(sweep)}about {duration(left)} to go ({basis})"
    )
    for left_out in plan.left_out:
        print(left_out.describe())
    if larger:
        short = allocation.shortage(larger, here, job)
        print(f"left out {count(len(larger), 'point')}: {short}")


def rounds(sweep: Sweep) -> str:
    """How the launches of a sweep's points follow each other."""
    if sweep.launches == 1:
        return ""
    how = f", each shuffled (seed {sweep.seed})" if sweep.order == "shuffled" else ""
    return f"{sweep.launches} rounds{how}; "


def show_commands(job: BatchJob) -> None:
    """Print the command line of each point of which something is missing, in order, for a shell.

    A launcher that the machine names need not be here. Raises `OmbError` when there is none to ask
    for `auto`, `UsageError` when the one here is another library's.
    """
    machine, folder = job.machine, Folder(job.root)
    launcher, installed = machine.launcher, True
    try:
        launcher = launchers.select(launcher, machine.name)
    except OmbError as error:
        if isinstance(error, UsageError) or launcher == launchers.AUTO:
            raise
        installed = False
    for point in in_order(job.missing, job.sweep):
        values = commands.environment(point, machine, launcher)
        where = commands.Where(machine, launcher, None, folder.profile(point), installed)
        words = commands.command(point, folder.missing(point), where, folder.csv(point))
        assigned = [f"{name}={value}" for name, value in values.items()]
        print(shlex.join([*(["env"] if values else []), *assigned, *words]))


def several(words: Iterable[str]) -> str:
    """Different words, each once."""
    return ", ".join(dict.fromkeys(words))
