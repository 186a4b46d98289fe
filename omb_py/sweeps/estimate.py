"""How long points will take: a guess before the first one, then what earlier ones took."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import log2
from statistics import median

from omb_py.sweeps.folder import DONE, Folder
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.points import Point
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


def guess(point: Point, machine: Machine) -> float:
    """Seconds that a point may take, from nothing but its sizes, iterations and their check."""
    return guess_on(point, machine.cores)


@lru_cache(1 << 17)
def guess_on(point: Point, cores: int) -> float:
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


def remaining(points: Iterable[Point], folder: Folder, machine: Machine) -> tuple[float, bool]:
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
