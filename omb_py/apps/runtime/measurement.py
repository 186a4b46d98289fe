"""The measurement of an application, next to one rank and the sequential program."""

from __future__ import annotations

import os
import shlex
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from statistics import mean, median, median_low
from time import perf_counter
from typing import Any

from omb_py.apps import (
    Application,
    ApplicationRequest,
    CheckedResult,
    Detail,
    Kernel,
    Sequential,
)
from omb_py.apps.runtime import math_threads
from omb_py.apps.runtime.phases import Phase, Tally
from omb_py.apps.runtime.team import Team, alone
from omb_py.core.calls.loop import no_garbage_collection
from omb_py.core.errors import ValidationError
from omb_py.core.job import Job, Node
from omb_py.core.mpi.launcher import unrecorded
from omb_py.measure import devices
from omb_py.measure.host_load import HostLoad
from omb_py.measure.launch import Launch
from omb_py.measure.writers import finish_writers, start_writers
from omb_py.results.application import ApplicationRow, ApplicationWriter
from omb_py.results.columns import new_run
from omb_py.results.destinations import writers_of
from omb_py.results.writer import Writer

TIMES = ("time_s", *(f"{phase.value}_s" for phase in Phase), "other_s")


@dataclass(frozen=True)
class Solved:
    """One repeat: its seconds, and this rank's own, with their phases, tallies and parts."""

    seconds: float
    own_seconds: float
    phases: dict[Phase, float]
    tallies: tuple[Tally, ...]
    parts: tuple[Detail, ...]

    @property
    def times(self) -> tuple[float, ...]:
        """This rank's times in the order of `TIMES`."""
        known = [self.phases[phase] for phase in Phase]
        return (self.own_seconds, *known, max(0.0, self.own_seconds - sum(known)))


@dataclass
class TurnSeconds:
    """Seconds of alternating repeats; only rank 0 has references of one process."""

    solved: list[Solved] = field(default_factory=list)
    one_rank: list[float] = field(default_factory=list)
    sequential: list[float] = field(default_factory=list)


def speedup(
    name: str, reference: Sequence[float], seconds: Sequence[float], work: int
) -> dict[str, float]:
    """Return the speed-up of each turn over its reference, which does one part of ``work``: the
    median as ``name``, and the minimum and maximum as ``name_low`` and ``name_high``."""
    found = [work * other / own for other, own in zip(reference, seconds, strict=True)]
    return {name: median(found), f"{name}_low": min(found), f"{name}_high": max(found)}


def _parts(chosen: Solved, check: CheckedResult | None) -> Iterator[dict[str, Any]]:
    """Yield the further rows: the application's own parts, rank 0's calls, and the check."""
    for part in chosen.parts:
        yield {
            "part": part.name,
            "time_s": part.seconds,
            "value": part.value,
            "unit": part.unit or None,
            "calls": part.calls,
            "call_bytes": part.nbytes,
        }
    for tally in sorted(chosen.tallies, key=lambda tally: (tally.function, tally.nbytes)):
        yield {
            "part": f"MPI_{tally.function.capitalize()}",
            "time_s": tally.seconds,
            "calls": tally.calls,
            "call_bytes": tally.nbytes,
        }
    if check is not None:
        said = f"{'Pass' if check.passed else 'Fail'}: {check.text}"
        yield {"part": "check", "check": said, "difference": check.difference}


def describe(application: Application[Any], problem: Any) -> str:
    """Return a problem in words: the options that mean something in it, and their values."""
    names = [one.name for one in fields(problem) if application.applies(problem, one.name)]
    values = {name: text(getattr(problem, name)) for name in names}
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in values.items() if value)


def text(value: Any) -> str:
    """Write a value as an option has it."""
    if isinstance(value, tuple):
        return ",".join(map(text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _gathered(job: Job, values: tuple[float, ...]) -> list[tuple[float, ...]]:
    """Return the values of each rank, on rank 0; collective."""
    return [tuple(array("d", data)) for data in job.gather(array("d", values).tobytes())]


def measure(
    launch: Launch,
    request: ApplicationRequest,
    more_writers: Callable[[], Sequence[Writer[Any]]] = tuple,
) -> None:
    """Measure an application, check its result and write; collective.

    ``more_writers`` makes writers on rank 0 besides those that the options name. Raises
    `UsageError` or `SharedError` on all ranks when it cannot be done or a result is wrong.
    """
    nodes = checked_nodes(launch, request)
    ApplicationMeasurement(launch, request, nodes, more_writers).measure()


def checked_nodes(launch: Launch, request: ApplicationRequest) -> list[Node]:
    """Return the job's nodes, on rank 0, after all checks without measuring; collective."""
    job, device, threads = launch.job, launch.buffer.device, request.settings.threads
    job.check_launcher()
    if device is None:
        devices.check_host_only(request.options, None)
    nodes = job.nodes(devices.word(device))
    notes = (
        job.oversubscription(nodes, job.ranks * threads if threads > 1 else 0),
        devices.sharing(nodes),
    )
    for note in notes:
        if note is not None:
            job.note(note)
    return nodes


class ApplicationMeasurement:
    """An application about to be measured in a job."""

    def __init__(
        self,
        launch: Launch,
        request: ApplicationRequest,
        nodes: list[Node],
        more_writers: Callable[[], Sequence[Writer[Any]]],
    ) -> None:
        self._application = request.application
        self._settings = self._application.settings(request.problem, request.settings)
        self._launch = launch
        self._request = replace(request, settings=self._settings)
        self._options = request.options
        self._job = launch.job
        self._nodes = nodes
        self._more_writers = more_writers
        self._problem = request.problem_for(launch.job.ranks)
        self._to_check: Sequential | None = None
        self._to_time: Sequential | None = None
        self._reference: Any = None

    def measure(self) -> None:
        """Check the solution, time it and write its rows; collective.

        Raises `ValidationError` if the result is wrong.
        """
        job = self._job
        self._progress("preparing")
        kernel = self._kernel(self._problem)
        with job.agreement():  # others sleep: importing scikit-learn takes seconds
            first = alone(self._prepare_references, job.comm)
        run, nodes = new_run(), self._nodes
        with ExitStack() as limited:
            with job.agreement():
                blas = limited.enter_context(math_threads.limit_threads(self._settings.threads))
            if blas is None and job.ranks > len(nodes):
                job.note(math_threads.NOT_SET)
            writers = start_writers(
                self._launch,
                self._options,
                run,
                nodes,
                lambda: [*self.open_writers(), *self._more_writers()],
                [kernel.team.binding],
            )
            host_load = HostLoad(job, job.ranks * self._settings.threads)
            turns = self._take_turns(kernel, first)
            metadata, note = host_load.finish()
            check = self._check(kernel)
        rows = self._rows(self._common(run, blas or "an unknown library"), turns, check)
        with job.agreement():
            for writer in writers:
                writer.together(rows)
        finish_writers(job, writers, run, metadata)
        if note is not None:
            job.note(note)
        kernel.team.release()
        wrong = None
        if check is not None and not check.passed:
            wrong = ValidationError(f"{self._application.name}: {check.text}")
        job.agree(wrong)

    def _rows(
        self, common: dict[str, Any], turns: TurnSeconds, check: CheckedResult | None
    ) -> list[ApplicationRow]:
        """Return the rows, on rank 0, which has the references; empty elsewhere. Collective."""
        seconds = [one.seconds for one in turns.solved]
        chosen = turns.solved[seconds.index(median_low(seconds))]
        times = _gathered(self._job, chosen.times)
        if self._job.rank != 0:
            return []
        means = dict(zip(TIMES, map(mean, zip(*times, strict=True)), strict=True))
        found = [common | means | self._whole(turns, seconds, check)]
        found += [
            common | {"part": "rank", "rank": rank} | dict(zip(TIMES, own, strict=True))
            for rank, own in enumerate(times)
        ]
        found += [common | part for part in _parts(chosen, check)]
        return [ApplicationRow(**row) for row in found]

    def _common(self, run: str, blas: str) -> dict[str, Any]:
        """Return the columns that all rows of a run share."""
        options, settings, ranks = self._options, self._settings, self._job.ranks
        return {
            "run": run,
            "application": self._application.name,
            "ranks": ranks,
            "nodes": len(self._nodes),
            "host_cores": os.cpu_count() or 1,
            "buffer": options.buffer,
            "binding": options.binding,
            "problem": describe(self._application, self._request.problem),
            "scaling": settings.scaling,
            "threads": settings.threads,
            "cores": ranks * settings.threads,
            "blas": blas,
            "repeats": settings.repeats,
            "variant": options.variant,
        }

    def _whole(
        self, turns: TurnSeconds, seconds: Sequence[float], check: CheckedResult | None
    ) -> dict[str, Any]:
        """Return the row of the application as a whole, without its phases."""
        ranks, time = self._job.ranks, median(seconds)
        one_rank = turns.one_rank if ranks > 1 else list(seconds)
        found = {
            "time_s": time,
            "time_low_s": min(seconds),
            "time_high_s": max(seconds),
            "value": self._application.metric(self._problem, time),
            "unit": self._application.unit,
        }
        work = ranks if self._settings.scaling == "weak" else 1
        if self._settings.references:
            over_one_rank = speedup("speedup", one_rank, seconds, work)
            found |= over_one_rank
            found |= {"one_rank_s": median(one_rank)}
            found |= {"efficiency": over_one_rank["speedup"] / ranks}
        if self._to_time is not None:
            found |= speedup("sequential_speedup", turns.sequential, seconds, work)
            pairs = zip(one_rank, turns.sequential, strict=True)
            found |= {
                "sequential_s": median(turns.sequential),
                "sequential": self._to_time.name,
                "sequential_ratio": median(one / other for one, other in pairs),
            }
        if check is not None:
            found |= {
                "check": "Pass" if check.passed else "Fail",
                "difference": check.difference,
            }
        return found

    def open_writers(self) -> list[Writer[ApplicationRow]]:
        text = ApplicationWriter(sys.stdout, self._application.title)
        return writers_of(ApplicationRow, text, self._options)

    def _prepare_references(self) -> Kernel[Any] | None:
        """Prepare the sequential programs; return the kernel that one rank is to time, if any."""
        settings = self._settings
        own = self._request.problem_for(1)
        same = own == self._problem
        if settings.check or (settings.references and same):
            self._to_check = self._application.sequential(self._problem)
        if settings.references:
            self._to_time = self._to_check if same else self._application.sequential(own)
        if not settings.references or self._job.ranks == 1:
            return None
        from mpi4py import MPI

        team = Team(MPI.COMM_SELF, self._launch.buffer, self._options)
        return self._application.kernel(team, own)

    def _kernel(self, problem: Any) -> Kernel[Any]:
        """Return the kernel that solves a problem on all ranks; collective."""
        job = self._job
        with job.agreement():
            team = Team(
                job.comm_for(self._application.name),
                self._launch.buffer,
                self._options,
                self._settings.split_wait,
            )
            job.at_end(team.close)
        with job.agreement():
            return self._application.kernel(team, problem)

    def _take_turns(self, kernel: Kernel[Any], first: Kernel[Any] | None) -> TurnSeconds:
        turns, settings, job = TurnSeconds(), self._settings, self._job
        for turn in range(settings.warmup_repeats + settings.repeats):
            self._progress(f"solving, turn {turn + 1}")
            if settings.references:
                with job.agreement():
                    alone(lambda: self._time_references(turns, first), job.comm)
            turns.solved.append(solve(kernel, kernel.team))
        for series in (turns.solved, turns.one_rank, turns.sequential):
            del series[: settings.warmup_repeats]
        return turns

    def _time_references(self, turns: TurnSeconds, first: Kernel[Any] | None) -> None:
        if self._to_time is not None:
            with no_garbage_collection():
                begin = perf_counter()
                found = self._to_time.solve()
                turns.sequential.append(perf_counter() - begin)
            if self._to_time is self._to_check:
                self._reference = found
        if first is not None:
            turns.one_rank.append(solve(first, first.team).seconds)

    def _check(self, kernel: Kernel[Any]) -> CheckedResult | None:
        """Return whether the last result is right, on rank 0; None elsewhere and if not checked."""
        if not self._settings.check:
            return None
        self._progress("checking")
        with self._job.agreement(), unrecorded():
            result = kernel.result()
        with self._job.agreement():
            return alone(lambda: self._compare(result), self._job.comm)

    def _compare(self, result: Any) -> CheckedResult | None:
        if self._to_check is not None and self._reference is None:
            self._reference = self._to_check.solve()
        return self._application.compare(self._problem, result, self._reference)

    def _progress(self, what: str) -> None:
        self._launch.progress(f"{self._application.name}: {what}")


def solve(kernel: Kernel[Any], team: Team) -> Solved:
    """Solve a problem once; collective over the team."""
    from mpi4py import MPI

    phases = team.phases
    phases.clear()
    with unrecorded():
        team.comm.Barrier()
    with no_garbage_collection():
        begin = perf_counter()
        kernel.distribute()
        distributed = perf_counter()
        phases.restart()
        kernel.solve()
        own = perf_counter() - begin
    phases.seconds[Phase.DISTRIBUTE] += distributed - begin
    tallies = tuple(replace(tally) for tally in phases.tallies.values() if tally.calls)
    with unrecorded():
        longest, parts = team.comm.allreduce(own, MPI.MAX), tuple(kernel.parts())
    return Solved(longest, own, dict(phases.seconds), tallies, parts)
