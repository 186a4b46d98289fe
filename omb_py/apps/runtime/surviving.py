"""An application measured while ranks of it fail: the others go on, with or without replacements.

Steps are made in blocks that end with a checkpoint in memory. Whether a block has succeeded, the
ranks agree on uniformly (MPI_Comm_agree), whatever each has seen of a failure. If not, they shrink
the communicator, perhaps replace the ranks that failed, build the kernel anew on what is left,
restore the last checkpoint, and repeat the block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

from omb_py.apps import Restored, SteppedKernel
from omb_py.apps.runtime import math_threads
from omb_py.apps.runtime.faults import (
    Failure,
    Fault,
    Survival,
    due,
    holders,
    partner,
    schedule,
    survival_parts,
)
from omb_py.apps.runtime.measurement import Measurement, longest, nodes_of, solve
from omb_py.apps.runtime.phases import Phase, Phases
from omb_py.apps.runtime.rows import Setting, Solved, Turns
from omb_py.apps.runtime.team import Team
from omb_py.bindings import BoundCall
from omb_py.core.calls import Step
from omb_py.core.calls.loop import no_garbage_collection
from omb_py.core.errors import OmbError, UnsupportedError, UsageError
from omb_py.core.job import Node
from omb_py.core.mpi import recovery
from omb_py.measure.writers import start_writers
from omb_py.results.row import new_run
from omb_py.results.writer import Writer

if TYPE_CHECKING:
    from mpi4py import MPI

BINDINGS = ("buffer", "array", "prebound", "persistent", "pickle", "coroutine", "native")
"""Those whose calls raise the errors of MPI."""

NOTICE_TAG = 2


def measure(setting: Setting) -> None:
    """Measure, check and write; collective over the ranks that are left.

    A process that replaces a failed rank joins them in here. Raises `UsageError` or `SharedError`
    on all ranks when it cannot be done or a result is wrong.
    """
    if setting.job.control.is_spawned:
        comm = recovery.join()
        setting.job.continue_on(comm)
        SurvivingMeasurement(setting, []).join(comm)
        return
    check(setting)
    SurvivingMeasurement(setting, nodes_of(setting)).measure()


def check(setting: Setting) -> None:
    """Raise `UsageError` or `SharedError` where ranks of this job cannot fail; collective."""
    options = setting.options
    if setting.buffer.device is not None:
        raise UsageError("--faults keeps checkpoints in the host's memory: use --buffer numpy")
    with setting.job.agreement():
        if options.binding not in BINDINGS:
            raise UnsupportedError(
                f"binding {options.binding} does not say when a rank has failed: choose one of "
                f"{', '.join(BINDINGS)} for --faults"
            )
        recovery.check()
        math_threads.describe()  # where a package is missing, all ranks learn of it together
        if setting.request.settings.recover == "respawn":
            recovery.check_spawn()


class FailingTeam(Team):
    """A team in which this rank can fail before one of its calls."""

    calls_left: int | None = None
    """How many calls it still makes; None when it does not fail."""
    notice: Callable[[], None]

    def fail(self) -> None:
        """Fail now."""
        self.notice()
        recovery.fail()

    def _made(self, step: Step, phase: Phase | None) -> BoundCall:
        made = super()._made(step, phase)

        def make() -> None:
            if self.calls_left is not None:
                if self.calls_left == 0:
                    self.fail()
                self.calls_left -= 1
            made()

        return make


@dataclass(frozen=True)
class Checkpoint:
    """The state of ``rank``, one of ``ranks``, before a step, and that of the rank it is the
    partner of."""

    step: int
    ranks: int
    rank: int
    own: Sequence[Any]
    other: Sequence[Any]

    @property
    def nbytes(self) -> int:
        """What it takes."""
        return sum(one.nbytes for one in (*self.own, *self.other))


@dataclass(frozen=True)
class Standing:
    """What rank 0 tells a replacement: the checkpoint, and which ranks there are by their numbers
    before any failure."""

    step: int
    ranks: int
    members: tuple[int, ...]


class Notices:
    """How rank 0 learns when a rank failed: by a message that this one sends just before.

    Times are those of the hosts' clocks.
    """

    def __init__(self, comm: MPI.Intracomm, faults: Sequence[Fault]) -> None:
        """Collective."""
        import numpy as np

        self._comm: Any = comm.Dup()
        self._expected: dict[int, tuple[Any, Any]] = {}
        for one in faults if comm.rank == 0 else ():
            when = np.zeros(1)
            self._expected[one.rank] = when, self._comm.Irecv(when, one.rank, NOTICE_TAG)

    def give(self) -> None:
        """This rank is about to fail."""
        import numpy as np

        self._comm.Send(np.array([time()]), 0, NOTICE_TAG)

    def first(self, ranks: Sequence[int]) -> float | None:
        """When the first of these ranks failed, on rank 0; None where none said so."""
        from mpi4py import MPI

        found = []
        for rank in ranks:
            when, request = self._expected.pop(rank, (None, MPI.REQUEST_NULL))
            try:
                if when is not None and request.Test():
                    found.append(when[0])
            except MPI.Exception:
                continue
        return float(min(found)) if found else None


class Laps:
    """The seconds of one stage after the other."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = perf_counter()

    def lap(self, name: str) -> None:
        """A stage ends."""
        now = perf_counter()
        self.seconds[name] = now - self._last
        self._last = now


class Survivor:
    """Solves a problem by steps on ranks of which some fail."""

    def __init__(self, setting: Setting, make: Callable[[Phases], SteppedKernel[Any]]) -> None:
        """``make`` makes the kernel on the ranks that the job has then, which agree on that."""
        self.found = Survival()
        self._setting = setting
        self._job = setting.job
        self._make = make
        self._faults: tuple[Fault, ...] = ()
        self._notices: Notices | None = None
        self._checkpoint: Checkpoint | None = None
        self._saved_at = 0.0
        self._members = tuple(range(self._job.ranks))
        self._failed = 0
        self._completed = 0
        self._kernel: SteppedKernel[Any]

    def run(self, kernel: SteppedKernel[Any], faults: Sequence[Fault]) -> Solved:
        """Solve the problem, with these failures; collective over the ranks at the beginning."""
        self._kernel, self._faults = kernel, tuple(faults)
        self._notices = Notices(self._job.comm, faults)
        phases = kernel.team.phases
        phases.clear()
        kernel.team.comm.Barrier()
        with no_garbage_collection():
            begin = perf_counter()
            kernel.distribute()
            distributed = perf_counter() - begin
            phases.restart()
            phases.seconds[Phase.DISTRIBUTE] = distributed
            self._go_on(0 if self._advance(0, 0) else self._recover())
            return self._solved(perf_counter() - begin)

    def join(self, comm: MPI.Intracomm) -> Solved:
        """Take the place of a rank that failed, and solve the problem with the others."""
        begin = perf_counter()
        with no_garbage_collection():
            step = self._restored(comm, Phases(), Laps())
            self._go_on(step if self._advance(step, step) else self._recover())
            return self._solved(perf_counter() - begin)

    @property
    def kernel(self) -> SteppedKernel[Any]:
        """The one that has the solution."""
        return self._kernel

    def _solved(self, own: float) -> Solved:
        team = self._kernel.team
        tallies = tuple(replace(tally) for tally in team.phases.tallies.values() if tally.calls)
        seconds = longest(own, team)
        phases = dict(team.phases.seconds)
        return Solved(seconds, own, phases, tallies, tuple(self._kernel.parts()))

    def _go_on(self, step: int) -> None:
        """Make the steps from a number on, of which there is a checkpoint; collective."""
        end, every = self._kernel.steps, self._setting.request.settings.checkpoint_every
        while step < end:
            after = min(step + every, end)
            step = after if self._advance(step, after) else self._recover()

    def _advance(self, begin: int, end: int) -> bool:
        """Make some steps, and a checkpoint unless these are the last; whether all ranks have.

        Where a rank has seen a failure, all learn of it, and no checkpoint is new.
        """
        from mpi4py import MPI

        kernel, comm = self._kernel, self._kernel.team.comm
        if self._setting.watchdog is not None:
            self._setting.watchdog.progress(f"solving while ranks fail, from step {begin + 1} on")
        new, well, began = None, True, 0.0
        self._completed = begin
        try:
            for number in range(begin, end):
                self._step(number)
                self._completed = number + 1
            began = perf_counter()
            if end < kernel.steps:
                new = self._save(end)
        except (MPI.Exception, OmbError):
            if not recovery.is_failure(comm):
                raise
            well = False
            if not comm.Is_revoked():
                comm.Revoke()
        try:
            well = bool(comm.Agree(int(well)))
        except MPI.Exception:
            well = False  # of a failure that only others know of, too
        if well and new is not None:
            self._checkpoint, self._saved_at = new, perf_counter()
            self.found.checkpoints.append(self._saved_at - began)
            self.found.checkpoint_bytes = new.nbytes
        return well

    def _step(self, number: int) -> None:
        team = self._kernel.team
        fault = due(self._faults, self._members[team.rank], number, self._failed)
        if fault is None:
            self._kernel.step(number)
            return
        assert isinstance(team, FailingTeam)
        assert self._notices is not None
        team.notice, team.calls_left = self._notices.give, fault.call
        self._kernel.step(number)
        team.fail()

    def _save(self, step: int) -> Checkpoint:
        kernel, comm = self._kernel, self._kernel.team.comm
        own = [array.copy() for array in kernel.state(step)]
        alone = kernel.replicated or comm.size == 1
        other = [] if alone else [from_the_rank_before(comm, array) for array in own]
        return Checkpoint(step, comm.size, comm.rank, own, other)

    def _recover(self) -> int:
        """Go on without the ranks that have failed, or with others; from which step."""
        from mpi4py import MPI

        try:
            return self._recovered()
        except MPI.Exception as error:
            raise OmbError(
                f"a recovery did not succeed, since another rank failed meanwhile or the library "
                f"could not do it ({error}): start again"
            ) from error

    def _recovered(self) -> int:
        if self._checkpoint is None:
            raise OmbError("a rank failed before the first checkpoint: start again")
        known, now, laps = time(), perf_counter(), Laps()
        completed, saved_at = self._completed, self._saved_at
        old = self._kernel.team.comm
        survivors = recovery.shrink(old)
        laps.lap("shrink")
        numbers = recovery.failed_ranks(old, survivors)
        if not numbers:
            raise OmbError("MPI_Comm_agree reports a failure, and no rank has failed")
        failed = tuple(self._members[number] for number in numbers)
        self._failed += len(failed)
        comm = survivors
        if self._setting.request.settings.recover == "respawn":
            replacement = recovery.Replacement(survivors, old.rank, numbers)
            for stage, action in (("spawn", replacement.spawn), ("merge", replacement.merge)):
                action()
                laps.lap(stage)
            comm = replacement.reorder()
            replacement.finish()
            laps.lap("reorder")
        else:
            self._members = tuple(one for one in self._members if one not in failed)
        step = self._restored(comm, self._kernel.team.phases, laps)
        number = len(self.found.checkpoints)
        saved = self._advance(step, step)
        laps.lap("checkpoint")
        del self.found.checkpoints[number:]
        when = self._notices.first(failed) if self._notices is not None else None
        detection = {} if when is None else {"detection": max(0.0, known - when)}
        self.found.failures.append(
            Failure(
                failed,
                min((one.step for one in self._faults if one.rank in failed), default=completed),
                old.size,
                comm.size,
                completed - step,
                now - sum(detection.values()) - saved_at,
                detection | laps.seconds,
            )
        )
        return step if saved else self._recover()

    def _restored(self, comm: MPI.Intracomm, phases: Phases, laps: Laps) -> int:
        """Make the kernel anew on ``comm`` and restore the last checkpoint; collective."""
        kept, job = self._checkpoint, self._job
        standing = None if kept is None else Standing(kept.step, kept.ranks, self._members)
        standing = comm.bcast(standing)
        assert standing is not None
        self._members = standing.members
        numbers = comm.allgather(-1 if kept is None else kept.rank)
        job.continue_on(comm)
        self._kernel = kernel = self._make(phases)
        laps.lap("rebuild")
        kernel.distribute()
        has = {number: rank for rank, number in enumerate(numbers) if number >= 0}
        given = holders(standing.ranks, has, not kernel.replicated)
        if kernel.replicated:
            states = {comm.rank: self._replica(-1 in numbers)}
        elif kept is not None:
            states = {(kept.rank - 1) % kept.ranks: kept.other, kept.rank: kept.own}
        else:
            states = {}
        found = Restored(standing.step, standing.ranks, given, states)
        kernel.restore(found)
        laps.lap("restore")
        return found.step

    def _replica(self, needed: bool) -> Sequence[Any]:
        """The state of the last checkpoint, of which each rank has a replica once rank 0 has given
        it to those that ``needed`` it; collective."""
        kept = self._checkpoint
        if not needed:
            assert kept is not None
            return kept.own
        empty = [array.copy() for array in self._kernel.state(0)]
        found = empty if kept is None else kept.own
        for array in found:
            self._kernel.team.comm.Bcast(array)
        return found


def from_the_rank_before(comm: MPI.Intracomm, array: Any) -> Any:
    """The array of the rank that this one is the partner of, flat; collective."""
    import numpy as np

    to, source = partner(comm.rank, comm.size), (comm.rank - 1) % comm.size
    size = np.array([0])
    comm.Sendrecv(np.array([array.size]), to, recvbuf=size, source=source)
    given, found = array.reshape(-1), np.empty(int(size[0]), array.dtype)
    piece = recovery.EAGER_BYTES // 2 // array.itemsize  # see `recovery.raise_eager_limit`
    for start in range(0, max(given.size, found.size), piece):
        stretch = slice(start, start + piece)
        comm.Sendrecv(given[stretch], to, recvbuf=found[stretch], source=source)
    return found


class SurvivingMeasurement(Measurement):
    """An application about to be measured in a job whose ranks will fail."""

    def __init__(self, setting: Setting, nodes: list[Node]) -> None:
        asked = setting.request.settings
        self._repeats_without = asked.repeats - 1
        settings = replace(asked, references=False, repeats=1)
        setting = replace(setting, request=replace(setting.request, settings=settings))
        super().__init__(setting, nodes)
        self._survivor = Survivor(setting, self._made)
        job = self._job
        job.at_end(lambda: recovery.limit_finalize(job.rank))

    def measure(self) -> None:
        job, settings = self._job, self._settings
        self._progress("preparing")
        kernel = self._made(Phases())
        faults = schedule(self._problem.seed, settings.faults, job.ranks, kernel.steps)
        with job.agreement():
            self._prepare_references()
        run = new_run()
        binding = kernel.team.binding
        writers = start_writers(self._setting, run, self._nodes, self.open_writers, [binding])
        with math_threads.limit_threads(settings.threads):
            without = []
            for repeat in range(settings.warmup_repeats + self._repeats_without):
                self._progress(f"solving without failures, repeat {repeat + 1}")
                without.append(solve(kernel, kernel.team).seconds)
            del without[: settings.warmup_repeats]
            self._progress("solving while ranks fail")
            solved = self._survivor.run(kernel, faults)
            found = self._survivor.found
            parts = survival_parts(found, kernel.steps, solved.seconds, without)
            self._end(writers, run, replace(solved, parts=(*solved.parts, *parts)))

    def join(self, comm: MPI.Intracomm) -> None:
        """Do the rest in the place of a rank that failed."""
        with math_threads.limit_threads(self._settings.threads):
            self._end([], "", self._survivor.join(comm))

    def _made(self, phases: Phases) -> SteppedKernel[Any]:
        """What solves the problem on the ranks that there are now; collective."""
        setting, job = self._setting, self._job
        with job.agreement():
            team = FailingTeam(
                job.comm, setting.buffer, setting.options, self._settings.split_wait, phases
            )
        with job.agreement():
            kernel = self._application.kernel(team, self._problem)
        assert isinstance(kernel, SteppedKernel)
        return kernel

    def _end(self, writers: list[Writer[Any]], run: str, solved: Solved) -> None:
        """Check the solution and write what was measured; collective."""
        kernel = self._survivor.kernel
        self._job.at_end(kernel.team.close)
        blas, check = math_threads.describe(), self._check(kernel)
        turns = Turns([solved])
        measured = self._measured(run, blas, turns, check)
        self._finish([kernel], writers, measured, {})
