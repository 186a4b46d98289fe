"""An application measured: by turns with one rank and with the sequential program, then checked."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from time import perf_counter
from typing import Any

from omb_py.apps import Alternative, CheckedResult, Kernel, Sequential
from omb_py.apps.runtime import math_threads
from omb_py.apps.runtime.phases import Phase
from omb_py.apps.runtime.rows import (
    ApplicationSetting,
    MeasuredRepeats,
    Solved,
    TurnSeconds,
    application_rows,
)
from omb_py.apps.runtime.team import Team, alone
from omb_py.core.calls.loop import no_garbage_collection
from omb_py.core.errors import ValidationError
from omb_py.core.job import Node
from omb_py.measure import devices
from omb_py.measure.host_load import HostLoad
from omb_py.measure.writers import finish_writers, start_writers
from omb_py.results.application import ApplicationRow, ApplicationWriter
from omb_py.results.columns import new_run
from omb_py.results.output import writers_of
from omb_py.results.writer import Writer


def measure(setting: ApplicationSetting) -> None:
    """Measure, check and write; collective.

    Raises `UsageError` or `SharedError` on all ranks when it cannot be done or a result is wrong.
    """
    ApplicationMeasurement(setting, nodes_of(setting)).measure()


def nodes_of(setting: ApplicationSetting) -> list[Node]:
    """The job's nodes, on rank 0, once all is checked that needs no measuring; collective."""
    job, threads = setting.job, setting.request.settings.threads
    job.check_launcher()
    if setting.buffer.device is None:
        devices.check_host_only(setting.options, None)
    nodes = job.nodes(devices.word(setting.buffer.device))
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

    def __init__(self, setting: ApplicationSetting, nodes: list[Node]) -> None:
        self._application = setting.request.application
        self._settings = self._application.applicable(
            setting.request.settings, setting.request.problem
        )
        self._setting = replace(setting, request=replace(setting.request, settings=self._settings))
        self._job = setting.job
        self._nodes = nodes
        self._ranks = setting.job.ranks
        self._problem = setting.request.problem_for(self._ranks)
        self._alternative: Alternative[Any] | None = None
        if self._settings.references and self._job.ranks > 1:
            self._alternative = self._application.alternative(self._problem)
        self._to_check: Sequential | None = None
        self._to_time: Sequential | None = None
        self._reference: Any = None

    def measure(self) -> None:
        """Do all of it."""
        setting, job = self._setting, self._job
        self._progress("preparing")
        kernel = self._kernel(self._problem)
        with job.agreement():
            first = self._prepare_references()
        other = self._alternative
        alternative = self._kernel(other.problem) if other else None
        run, nodes = new_run(), self._nodes
        with ExitStack() as limited:
            with job.agreement():
                limited.enter_context(math_threads.limit_threads(self._settings.threads))
                blas = math_threads.describe()
            writers: list[Writer[Any]] = start_writers(
                setting, run, nodes, self.open_writers, [kernel.team.binding]
            )
            host_load = HostLoad(job, job.ranks * self._settings.threads)
            turns = self._take_turns(kernel, first, alternative)
            metadata, note = host_load.finish()
            check = self._check(kernel)
        measured = self._measured(run, blas, turns, check)
        kernels = [one for one in (kernel, alternative) if one is not None]
        self._finish(kernels, writers, measured, metadata, note)

    def _measured(
        self, run: str, blas: str, turns: TurnSeconds, check: CheckedResult | None
    ) -> MeasuredRepeats:
        name = self._to_time.name if self._to_time else None
        if self._settings.references and self._application.sequential_is_one_rank:
            name = "one process"
            turns.sequential = turns.one_rank or [one.seconds for one in turns.solved]
        named = self._alternative.name if self._alternative else None
        return MeasuredRepeats(
            self._setting,
            run,
            self._problem,
            self._ranks,
            self._nodes,
            blas,
            turns,
            check,
            name,
            named,
        )

    def _finish(
        self,
        kernels: Sequence[Kernel[Any]],
        writers: list[Writer[Any]],
        measured: MeasuredRepeats,
        metadata: dict[str, str],
        note: str | None = None,
    ) -> None:
        """Write what was measured; collective. Raises `ValidationError` where it is wrong."""
        job, check = self._job, measured.check
        rows = application_rows(measured)
        with job.agreement():
            for writer in writers:
                writer.together(rows)
        finish_writers(job, writers, measured.run, metadata)
        if note is not None:
            job.note(note)
        for one in kernels:
            one.team.release()
        wrong = None
        if check is not None and not check.passed:
            wrong = ValidationError(f"{self._application.name}: {check.text}")
        job.agree(wrong)

    def open_writers(self) -> list[Writer[ApplicationRow]]:
        text = ApplicationWriter(sys.stdout, self._application.title)
        return writers_of(ApplicationRow, text, self._setting.options)

    def _prepare_references(self) -> Kernel[Any] | None:
        """The sequential programs, and the problem of one rank on rank 0 alone."""
        setting, settings = self._setting, self._settings
        if self._job.rank != 0:
            return None
        own = setting.request.problem_for(1)
        same = own == self._problem
        if settings.check or (settings.references and same):
            self._to_check = self._application.sequential(self._problem)
        if settings.references:
            self._to_time = self._to_check if same else self._application.sequential(own)
        if not settings.references or self._job.ranks == 1:
            return None
        from mpi4py import MPI

        team = Team(MPI.COMM_SELF, setting.buffer, setting.options)
        return self._application.kernel(team, own)

    def _kernel(self, problem: Any) -> Kernel[Any]:
        """What solves a problem on all ranks; collective."""
        setting, job = self._setting, self._job
        with job.agreement():
            team = Team(
                job.comm_for(self._application.name),
                setting.buffer,
                setting.options,
                self._settings.split_wait,
            )
            job.at_end(team.close)
        with job.agreement():
            return self._application.kernel(team, problem)

    def _take_turns(
        self, kernel: Kernel[Any], first: Kernel[Any] | None, alternative: Kernel[Any] | None
    ) -> TurnSeconds:
        turns, settings, job = TurnSeconds(), self._settings, self._job
        total = settings.warmup_repeats + settings.repeats
        tracker = None
        if self._setting.display is not None:
            from omb_py.measure.progress import Tracker

            steps = ["solving"] * total
            tracker = Tracker(self._application.name, steps, self._setting.display)
        for turn in range(total):
            self._progress(f"solving, turn {turn + 1}")
            if tracker is not None:
                tracker.begin(turn)
            if settings.references:
                with job.agreement():
                    alone(lambda: self._time_references(turns, first), job.comm)
            turns.solved.append(solve(kernel, kernel.team))
            if alternative is not None:
                turns.alternative.append(solve(alternative, alternative.team).seconds)
        for series in (turns.solved, turns.alternative, turns.one_rank, turns.sequential):
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
        """Whether the last result is right, on rank 0; None elsewhere and where not checked."""
        if not self._settings.check:
            return None
        self._progress("checking")
        with self._job.agreement():
            result = kernel.result()
        with self._job.agreement():
            return alone(lambda: self._compare(result), self._job.comm)

    def _compare(self, result: Any) -> CheckedResult | None:
        if self._to_check is not None and self._reference is None:
            self._reference = self._to_check.solve()
        return self._application.compare(self._problem, result, self._reference)

    def _progress(self, what: str) -> None:
        if self._setting.watchdog is not None:
            self._setting.watchdog.progress(f"{self._application.name}: {what}")


def solve(kernel: Kernel[Any], team: Team) -> Solved:
    """Solve a problem once; collective over the team."""
    phases = team.phases
    phases.clear()
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
    return Solved(
        longest(own, team),
        own,
        dict(phases.seconds),
        tallies,
        tuple(kernel.parts()),
        tuple(kernel.transfers()),
    )


def longest(seconds: float, team: Team) -> float:
    """The maximum of the ranks' seconds, on all of them; collective."""
    from mpi4py import MPI

    found = array("d", [0.0])
    mine = array("d", [seconds])
    team.comm.Allreduce([mine, 1, MPI.DOUBLE], [found, 1, MPI.DOUBLE], MPI.MAX)
    return found[0]
