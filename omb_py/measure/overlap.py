"""The part of a non-blocking call that computing hides: `docs/definitions.md` defines it.

Computing for a given time, and the clock for the parts of an iteration, are functions in C, the
same for every binding; if they were not compiled NumPy computes instead.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from time import perf_counter_ns
from typing import TypeAlias

from omb_py.benchmarks import CheckedIteration, Plan
from omb_py.bindings.compiled.loop import address_in_loop
from omb_py.buffers import Buffer
from omb_py.core.calls import Call, Step
from omb_py.core.calls.loop import Loop, Pace
from omb_py.core.dataclass import dataclass, replace
from omb_py.core.errors import MissingError
from omb_py.core.job import Job
from omb_py.core.memory import Local
from omb_py.core.options import Options
from omb_py.core.statistics import summarize
from omb_py.measure.rows import MICROSECONDS, Overlap
from omb_py.measure.sampling import Report, run_counted

NANOSECONDS = 1e9
TRIALS = 20
FASTEST_STEP = 0.01
"""Nanoseconds: no step is faster; a shorter time is the noise of the trials."""

SHORT, LONGER = 200, 2200
LONGER_ON_DEVICE = 200_200
"""Lengths of work that are timed. A kernel's launch takes 10 us, and milliseconds if processes
share the device: this takes about 0.4 ms, so that its length and not the launch decides."""


class Laps:
    """Sums of the times between laps, by kind."""

    def __init__(self, kinds: int, function: int = 0) -> None:
        """``function`` is the address of `loop.c`'s lap."""
        self._state = array("q", bytes(8 * (1 + kinds)))
        self._function = function

    def lap(self, kind: int) -> Local:
        """Return the step that ends a lap of this kind."""
        address = self._state.buffer_info()[0]
        run = partial(self._run, self._state, 1 + kind)
        return Local("lap", run, self._function, (address, kind))

    def seconds(self, kind: int) -> float:
        """Return the sum of the laps of this kind."""
        return self._state[1 + kind] / NANOSECONDS

    def clear(self) -> None:
        for place in range(len(self._state)):
            self._state[place] = 0

    @staticmethod
    def _run(state: array[int], place: int) -> None:
        now = perf_counter_ns()
        state[place] += now - state[0]
        state[0] = now


Repeat: TypeAlias = Callable[[int], tuple[Local, ...]]
"""Makes the steps that do so many times a minimum of work."""

Work: TypeAlias = Callable[[float], tuple[Local, ...]]
"""Makes the steps that take about so many seconds when they are made as they will be."""


@dataclass(frozen=True)
class Worker:
    """Computes for a given time; ``lap`` is the address of `loop.c`'s lap, 0 without a compiler."""

    work: Work
    lap: int = 0


def calibrated(repeat: Repeat, longer: int = LONGER, call_costs: bool = True) -> Work:
    """Return work in equal pieces, timed from those of `SHORT` and of ``longer`` work.

    ``call_costs`` is false if a compiled loop makes the call, which then takes no time.
    """
    short, long = map(fastest, (repeat(SHORT), repeat(longer)))
    each = max((long - short) / (longer - SHORT), FASTEST_STEP)
    base = max(0.0, short - SHORT * each) if call_costs else 0.0
    return lambda seconds: repeat(max(0, round((seconds * NANOSECONDS - base) / each)))


def fastest(steps: tuple[Local, ...]) -> float:
    """Return the nanoseconds of the fastest of some trials."""
    times = []
    for _ in range(TRIALS):
        begin = perf_counter_ns()
        for step in steps:
            step.run()
        times.append(perf_counter_ns() - begin)
    return float(min(times))


def by_machine() -> Repeat:
    """Return a chain of multiplications and additions in C: 2 to 3 ns each.

    Raises `MissingError` if it was not compiled.
    """
    start = address_in_loop("omb_py_compute")
    function = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_int64)(start)
    return lambda times: (Local("compute", partial(function, times), start, (times,)),)


def by_numpy() -> Repeat:
    """Return a worker that adds whole arrays: coarser, and each call costs some 0.3 us."""
    import numpy as np

    def repeat(times: int) -> tuple[Local, ...]:
        values = np.ones(times)
        return (Local("compute", partial(np.add, values, 1.0, values)),)

    return repeat


def find_worker(options: Options, buffer: Buffer) -> Worker:
    """Return the most precise worker available here for ``-r``.

    Raises `UnsupportedError` when a device is to compute and there is none.
    """
    lap = 0
    try:
        host = calibrated(by_machine(), call_costs=options.binding != "native")
        lap = address_in_loop("omb_py_lap")
    except MissingError:
        host = calibrated(by_numpy())
    if options.compute_target == "cpu":
        return Worker(host, lap)
    device = calibrated(buffer.compute, LONGER_ON_DEVICE)
    if options.compute_target == "gpu":
        return Worker(device, lap)

    def both(seconds: float) -> tuple[Local, ...]:
        launch, wait = device(seconds)
        return launch, *host(seconds), wait

    return Worker(both, lap)


KINDS = 5
OTHER, START, COMPUTE, TEST, WAIT = range(KINDS)
"""Kinds of laps: what lies between two iterations, and the parts of one."""


MakeLoop: TypeAlias = Callable[[Plan, Pace], Loop]
"""Makes the loop of a plan; collective, and raises on all ranks alike."""


def measure_overlap(
    job: Job,
    worker: Worker,
    make_loop: MakeLoop,
    tests: int,
    report: Report | None,
    plan: Plan,
    pure: array[float],
    warmup: int,
    iterating: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Overlap | None:
    """Return the overlap when each rank computes as long as its communication takes; collective.

    On rank 0; None elsewhere. ``pure`` are the seconds of this rank's iterations without computing.
    ``plan`` has non-blocking calls; ``tests`` divide the computing, an MPI_Test after each part;
    ``warmup`` iterations precede those of a pass. All iterations are made in ``iterating``.

    The time to compute is the mean of pass 1, and one pass has both the whole and its parts, as in
    osu_iallreduce.c:202-243; the length of each part is that of osu_util_mpi.c:3322-3330.
    """
    iterations = len(pure)
    laps = Laps(KINDS, worker.lap)
    parts = max(tests, 1)
    work = worker.work(sum(pure) / iterations / parts)

    def run(chosen: Sequence[CheckedIteration], pace: Pace) -> array[float]:
        """Return the seconds of the timed iterations."""
        loop = make_loop(replace(plan, iterations=tuple(chosen)), pace)
        job.barrier()
        with iterating():
            run_counted(loop, 0, warmup, 0, report)
            laps.clear()
            return run_counted(loop, warmup, 0, iterations, report)

    clock = run([CheckedIteration()], Pace())
    clocks = run([only_laps(overlapped(one, (), tests, laps)) for one in plan.iterations], Pace())
    compute = run([CheckedIteration(work * parts)], Pace())
    pace = Pace(barrier=True)
    overall = run([overlapped(one, work, tests, laps) for one in plan.iterations], pace)
    means = job.mean(array("d", [laps.seconds(kind) / iterations for kind in range(KINDS)]))
    passes = (clock, clocks, pure, compute, overall)
    combined = [one for one in (job.combine(seconds, timed=True) for seconds in passes) if one]
    if not combined:
        return None
    summaries = [summarize([seconds * MICROSECONDS for seconds in one.samples]) for one in combined]
    clock_, clocks_, pure_, compute_, overall_ = (summary.percentile(50) for summary in summaries)
    return Overlap(
        overall=summaries[4],
        compute=summaries[3],
        start=means[START] * MICROSECONDS,
        test=means[TEST] * MICROSECONDS,
        wait=means[WAIT] * MICROSECONDS,
        percent=hidden(pure_ - clock_, compute_ - clock_, overall_ - clocks_),
    )


def hidden(communication: float, compute: float, overall: float) -> float:
    """Return the part of the communication that computing hides, in percent.

    Each is the time of an iteration, less that of the clock's readings in it.

    >>> hidden(communication=10.0, compute=10.0, overall=14.0)
    60.0
    """
    communication = max(communication, 1e-9)
    return min(100.0, max(0.0, 100 * (communication + compute - overall) / communication))


def overlapped(
    iteration: CheckedIteration, work: tuple[Local, ...], tests: int, laps: Laps
) -> CheckedIteration:
    """Return an iteration with computing, a test after each part of it, between start and wait."""
    steps: list[Step] = [laps.lap(OTHER)]
    for step in iteration.steps:
        if not isinstance(step, Call) or step.function != "wait":
            steps += [step, laps.lap(START)]
            continue
        part: list[Step] = [*work, laps.lap(COMPUTE)]
        test = replace(step, function="test")
        steps += tests * [*part, test, laps.lap(TEST)] or part
        steps += [step, laps.lap(WAIT)]
    return replace(iteration, steps=tuple(steps))


def only_laps(iteration: CheckedIteration) -> CheckedIteration:
    """Return an iteration that reads the clock as often, and does nothing else."""
    return CheckedIteration(tuple(step for step in iteration.steps if isinstance(step, Local)))
