"""A recorded profile as a benchmark: the same calls, of the same sizes, in the same proportions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omb_py.apps import Application, CheckedResult, Detail, Kernel, option
from omb_py.apps.runtime.team import Team
from omb_py.benchmarks import Case, CheckedIteration, Content, collective
from omb_py.core.calls import Call, Slot, Step
from omb_py.core.datatypes import find_types
from omb_py.core.errors import OutOfMemoryError, UsageError
from omb_py.core.job.by_mpi import job_of
from omb_py.core.mpi import THREAD_LEVELS
from omb_py.measure.validation import DataCheck
from omb_py.tracing.profile.profile import Extreme, RankProfile, ranked, spread_of
from omb_py.tracing.profile.store import load
from omb_py.tracing.profile.tables import Sums, by_size
from omb_py.tracing.records.layout import record_names
from omb_py.tracing.records.routines import sent_bytes

if TYPE_CHECKING:
    from mpi4py import MPI

REDUCING = ("allreduce", "reduce", "reduce_scatter")
COLLECTIVES = (
    *"allgather allgatherv alltoall alltoallv barrier bcast gather gatherv scatter".split(),
    *REDUCING,
)
ANSWERS = {"send": "recv", "recv": "send", "isend": "irecv", "irecv": "isend"}
ANSWERS["sendrecv"] = "sendrecv"
"""Calls between two ranks, and what the partner makes of each."""

COMPLETED = ("isend", "irecv")
"""Calls after which there is a Waitall."""

MAX_CALLS = 10_000_000
"""Calls of one replay, whose order is kept in memory."""

Tallies = Mapping[tuple[str, float], int]
"""The number of calls of a function with messages of so many bytes."""


@dataclass(frozen=True)
class Item:
    """Calls of one function with messages of one size: so many of the profile's ``recorded`` ones.

    ``routine`` is its name in the profile. ``elements`` are of the whole message as the profile
    counts it: a rank's own part of it, or each rank's; of ``reduce_scatter`` all parts together, of
    ``sendrecv`` one direction.
    """

    function: str
    dtype: str
    elements: int
    calls: int
    routine: str
    recorded: Sums

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.elements * ITEM_BYTES[self.dtype]


@dataclass(frozen=True)
class ReplayPlan:
    """The calls of a replay; ``left_out`` are calls that it does not make."""

    items: tuple[Item, ...]
    left_out: tuple[tuple[str, Sums], ...]

    @property
    def order(self) -> list[int]:
        """The item of each call: every item spread evenly over the whole.

        Call k of n is at (k + 1/2) / n of the way.
        """
        places = (
            ((2 * turn + 1) / (2 * item.calls), index)
            for index, item in enumerate(self.items)
            for turn in range(item.calls)
        )
        return [index for _, index in sorted(places)]

    def tallies(self, rank: int, ranks: int) -> Tallies:
        """Return the calls that a rank makes, among them those that complete others."""
        found: Counter[tuple[str, float]] = Counter()
        for item in self.items:
            function = item.function
            if function in ANSWERS:
                if partner(rank, ranks) is None:
                    continue
                function = function if rank % 2 == 0 else ANSWERS[function]
            if function in COMPLETED:
                found["waitall", 0] += item.calls
            found[function, item.nbytes] += item.calls
        return found


def partner(rank: int, ranks: int) -> int | None:
    """Return the rank to exchange messages with, in pairs; None for the last of an odd number."""
    other = rank + 1 if rank % 2 == 0 else rank - 1
    return other if other < ranks else None


def plan_of(member: RankProfile, scale: float, leave_out: Iterable[str]) -> ReplayPlan:
    """Return the replay of a rank's profile, with this part of its calls.

    Raises `UsageError` if there are no calls to replay, or more than fit in memory.
    """
    every = [(routine, calls) for (routine, _), calls in by_size([member]).items()]
    unwanted = {function_of(name) for name in leave_out}
    if strangers := sorted(unwanted.difference(function_of(routine) for routine, _ in every)):
        raise UsageError(f"--leave-out {strangers[0]}: the profile has no calls of it")
    kept = {*COLLECTIVES, *ANSWERS} - unwanted
    left_out = tuple(one for one in every if function_of(one[0]) not in kept)
    recorded = grouped(one for one in every if function_of(one[0]) in kept)
    if not recorded:
        only = ", ".join(sorted({routine for routine, _ in left_out}))
        why = f"no call of {only} can be replayed; " if only else ""
        raise UsageError(
            f"there is nothing to replay in this file: {why}give a profile with calls that move "
            "arrays"
        )
    items = tuple(
        Item(*key, max(1, round(scale * calls.calls)), routine, calls)
        for key, (routine, calls) in recorded.items()
    )
    if (number := sum(item.calls for item in items)) > MAX_CALLS:
        raise UsageError(f"these would be {number} calls: choose a smaller --scale")
    return ReplayPlan(items, left_out)


def grouped(every: Iterable[tuple[str, Sums]]) -> dict[tuple[str, str, int], tuple[str, Sums]]:
    """Return calls of routines by function, type and number of elements, with a routine of each."""
    found: dict[tuple[str, str, int], tuple[str, Sums]] = {}
    for routine, calls in every:
        function = function_of(routine)
        key = (function, *message_of(function, calls.average))
        found[key] = routine, calls.plus(found[key][1]) if key in found else calls
    return found


ITEM_BYTES = {"int8": 1, "float32": 4, "int64": 8}


def message_of(function: str, nbytes: float) -> tuple[str, int]:
    """Return type and number of the elements nearest to an average size.

    8 bytes to reduce are one integer, as a framework's ranks agree on what is ready. Other
    sizes are of 4-byte floats, but for whole ones that 4 does not divide.
    """
    nbytes = sent_bytes(function, nbytes)
    if function in REDUCING and (nbytes % 1 or nbytes % ITEM_BYTES["float32"] == 0):
        elements = round(nbytes / ITEM_BYTES["float32"])
        is_integer = elements * ITEM_BYTES["float32"] == ITEM_BYTES["int64"]
        return ("int64", 1) if is_integer else ("float32", elements)
    return "int8", round(nbytes)


def function_of(routine: str) -> str:
    """Return the function of a routine's calls, as in ``allreduce`` of ``MPI_Allreduce``."""
    return routine.lower().removeprefix("mpi_")


def disagreement(plan: ReplayPlan, made: Sequence[Tallies]) -> tuple[int, str]:
    """Return the number of surplus or missing calls, and the first rank with any, in words."""
    wrong, words = 0, ""
    for rank, tallies in enumerate(made):
        planned = plan.tallies(rank, len(made))
        for function, nbytes in sorted({*planned, *tallies}):
            wanted = planned.get((function, nbytes), 0)
            found = tallies.get((function, nbytes), 0)
            wrong += abs(found - wanted)
            if found != wanted and not words:
                words = (
                    f"rank {rank} made {found} calls of MPI_{function.capitalize()} "
                    f"of {nbytes:g} bytes, not {wanted}"
                )
    return wrong, words


TAG = 1


@dataclass(frozen=True)
class RankCalls:
    """The calls of a ``member`` of a profile of ``ranks`` ranks, with its ``notes``.

    ``spread`` are the ranks with the minimum, median and maximum communication time, if known;
    ``thread_level`` is the program's level of thread support, empty if unknown.
    """

    ranks: int
    member: RankProfile
    spread: tuple[Extreme, ...]
    notes: tuple[str, ...]
    thread_level: str = ""

    def thread_level_note(self, level: str) -> str | None:
        """Return a sentence if the program had another level of thread support than the replay.

        Its calls take other times: MPICH's broadcast of 8 bytes six times as long with
        ``multiple`` as with ``single``.
        """
        if self.thread_level not in THREAD_LEVELS or self.thread_level == level:
            return None
        return (
            f"the profile's program had thread level {self.thread_level}, this replay has {level}: "
            f"add --thread-level {self.thread_level}"
        )


@dataclass(frozen=True)
class Recorded:
    """A profile, and how much of it is replayed."""

    file: str = option("", "A profile's folder or file.", kind="argument", metavar="PROFILE")
    scale: float = option(
        0.1, "Part of the profile's calls that is made, at least one of each size.", minimum=0.0
    )
    leave_out: tuple[str, ...] = option(
        (), "Leave out this routine, as in gatherv.", metavar="ROUTINE"
    )

    def plan(self, profile: RankCalls) -> ReplayPlan:
        """Return the plan of the replay; raise `UsageError` if it has no calls."""
        return plan_of(profile.member, self.scale, self.leave_out)


def rank_profile(path: str) -> RankCalls:
    """Return the calls of one rank: that of a rank's record, or the lowest rank with known calls.

    Raises `UsageError` if the profile cannot be read.
    """
    file = Path(path)
    profile = load([path])
    if not profile.counted:
        raise UsageError(f"{path} has no rank's calls: name another profile")
    member = profile.counted[0]
    if file.name in record_names(file.parent):
        profile = load([str(file.parent)])  # the ranks beside it, whose times spread
    known = ranked((one.communication_s, one.rank) for one in profile.members)
    return RankCalls(
        profile.ranks,
        member,
        spread_of(known) or (),
        profile.notes,
        str(profile.about.get("thread_level", "")),
    )


def shared_profile(path: str, comm: MPI.Intracomm) -> RankCalls:
    """Return `rank_profile` on all ranks of ``comm``: only rank 0 reads, and imports the checks.

    Raises `SharedError` on all ranks if rank 0 cannot read it.
    """
    with job_of(comm).agreement():
        found = rank_profile(path) if comm.rank == 0 else None
    shared: RankCalls = comm.bcast(found)
    return shared


@dataclass(frozen=True)
class Made:
    """The result of a rank: calls of the last `Replay.solve`, and faults of received data."""

    tallies: Tallies
    faults: tuple[str, ...]


class Replay(Kernel[Recorded]):
    """Calls one after the other, with no computing between them."""

    def __init__(self, team: Team, problem: Recorded) -> None:
        super().__init__(team, problem)
        self._profile = shared_profile(problem.file, team.comm)
        self._plan = problem.plan(self._profile)
        self._data: list[tuple[DataCheck, CheckedIteration]] = []
        calls = [self._bound(item) for item in self._plan.items]
        self._calls = [calls[index] for index in self._plan.order]

    def solve(self) -> None:
        for call in self._calls:
            call()

    def result(self) -> list[Made] | None:
        """Return the result of each rank."""
        tallies = self.team.phases.tallies
        faults = (fault for check, exchange in self._data for fault in check.faults(exchange, 0))
        mine = {key: tally.calls for key, tally in tallies.items() if tally.calls}
        return self.team.comm.gather(Made(mine, tuple(faults)))

    def parts(self) -> list[Detail]:
        """Return this rank's seconds next to the profile's, both for all calls of the profile."""
        found: list[Detail] = []
        replayed = recorded = 0.0
        for item in self._plan.items:
            calls = item.recorded
            tally = self.team.phases.tallies.get((item.function, item.nbytes))
            seconds = tally.seconds * calls.calls / item.calls if tally else 0.0
            replayed, recorded = replayed + seconds, recorded + calls.seconds
            found += _beside(item.routine, seconds, calls.seconds, calls.calls, calls.average)
        return [*found, *_beside("calls", replayed, recorded), *self._told()]

    def _told(self) -> Iterator[Detail]:
        """Yield other facts of the profile, and its calls that were not replayed."""
        profile = self._profile
        member = profile.member
        yield Detail("profile's ranks", value=profile.ranks, unit="ranks")
        yield Detail("profile's own rank", value=member.rank)
        if member.communication_s is not None:
            yield Detail("profile's time in MPI", member.communication_s)
        if member.elapsed_s is not None:
            yield Detail("profile's elapsed time", member.elapsed_s)
        for name, one in zip(("minimum", "median", "maximum"), profile.spread, strict=False):
            yield Detail(f"profile's {name} time in MPI", one.value)
        for routine, calls in self._plan.left_out:
            name = f"left out {routine}"
            yield Detail(name, calls.seconds, calls=calls.calls, nbytes=calls.average)
        other = profile.thread_level_note(self.team.options.thread_level)
        for note in (*profile.notes, *([other] if other else [])):
            yield Detail(f"note: {note}")

    def _bound(self, item: Item) -> Callable[[], None]:
        """Return this rank's steps in each call of an item, if it takes part; fill in its data."""
        from omb_py.measure.resources import MpiResources

        team = self.team
        (datatype,) = find_types((item.dtype,))
        size = (team.rank, team.ranks, item.nbytes, datatype)
        case = Case(
            *size, 1, team.buffer, team.options, MpiResources(job_of(team.comm), team.options)
        )
        try:
            exchange = (_between_two if item.function in ANSWERS else _among_all)(case, item)
        except OutOfMemoryError as error:
            text, name = str(error).removesuffix(": lower -m"), item.function
            raise OutOfMemoryError(f"{text}: take fewer ranks, or --leave-out {name}") from error
        check = DataCheck(*size)
        check.fill(exchange, 0)
        self._data.append((check, exchange))
        return team.bind(*exchange.steps)


def _among_all(case: Case, item: Item) -> CheckedIteration:
    """Return a collective call as its benchmark makes it, rank 0 the root."""
    (row,) = (row for row in collective.TABLE if row.name == item.function)
    (exchange,) = collective.plan(row, case).iterations
    return exchange


def _between_two(case: Case, item: Item) -> CheckedIteration:
    """Return a call with this rank's partner, if any; rank 0 makes that of the profile."""
    name = item.function
    if case.ranks == 1:
        raise UsageError(f"{name} needs another rank: start 2 or more, or --leave-out {name}")
    peer = partner(case.rank, case.ranks)
    if peer is None:
        return CheckedIteration()
    function = name if case.rank % 2 == 0 else ANSWERS[name]
    messages = tuple(case.message() for _ in range(1 + (function == "sendrecv")))
    sends, receives = "send" in function, "recv" in function
    inputs = (Content.of(case.rank, messages[0].memory),) if sends else ()
    outputs = (Content.of(peer, messages[-1].memory),) if receives else ()
    steps: tuple[Step, ...] = (Call(function, messages, peer, TAG),)
    if function == "sendrecv":
        steps = (Call(function, messages, values=(peer, TAG, peer, TAG)),)
    elif function in COMPLETED:
        slot = Slot()
        started = Call(function, messages, peer, TAG, slot=slot)
        steps = (started, Call("waitall", slot=slot))
    return CheckedIteration(steps, inputs=inputs, outputs=outputs)


def _beside(
    name: str,
    replayed: float,
    recorded: float,
    calls: int | None = None,
    nbytes: float | None = None,
) -> Iterator[Detail]:
    """Return two rows: the measured value with the quotient of both, and the profile's value."""
    quotient = replayed / recorded if recorded else None
    unit = "of the profile's time" if recorded else ""
    yield Detail(f"replayed {name}", replayed, quotient, unit, calls, nbytes)
    yield Detail(f"profile's {name}", recorded, calls=calls, nbytes=nbytes)


def calls_per_second(problem: Recorded, seconds: float) -> float:
    """Return the calls of the profile's rank over the time that they take here."""
    plan = problem.plan(rank_profile(problem.file))
    return sum(item.calls for item in plan.items) / seconds


def compare(problem: Recorded, made: Sequence[Made], reference: Any) -> CheckedResult:
    """Check that each rank made exactly its planned calls, and that data arrived unchanged."""
    plan = problem.plan(rank_profile(problem.file))
    wrong, words = disagreement(plan, [one.tallies for one in made])
    faults = [fault for one in made for fault in one.faults]
    number = sum(sum(one.tallies.values()) for one in made)
    right = f"all of the {number} calls that were planned were made, and data arrived as sent"
    return CheckedResult(not wrong and not faults, words or next(iter(faults), right), float(wrong))


APPLICATION = Application(
    name="replay",
    title="Replay",
    summary="The MPI calls of a recorded profile, beside its times.",
    problem=Recorded,
    kernel=Replay,
    metric=calls_per_second,
    unit="calls/s",
    compare=compare,
    settings=lambda problem, settings: replace(settings, references=False, split_wait=False),
    split_wait=False,
    details="""\
PROFILE is the folder of omb-py profile, whose rank 0 is replayed, or one rank's file
(rank-RANK.record in that folder, or mpitrace's mpi_profile.JOB.RANK). Its calls are made in its
proportions, spread evenly over the whole, with nothing computed between them: what the profile's
times have beyond that is waiting for ranks that computed, or another machine. The parts compare
rank 0's seconds with the profile's, both for all calls of the profile. A replayed call's seconds
include what Python adds to it; the profile's do not.

Sizes are the profile's averages, rounded to whole elements, each as mpitrace counts it. All ranks
do what the profile's rank did; rank 0 is the root. Reductions add up: 8 bytes as one integer,
other sizes as 4-byte floats where 4 divides them, else as bytes. Send, Recv, Isend, Irecv and
Sendrecv go between pairs of neighbours, of which rank 0's makes the profile's call, and a Waitall
follows what does not block. A Gatherv without sizes moves what the profile's own rank sent: its 0
bytes. Other routines are left out, and named.

There is no program for one rank to compare with, and no barrier before calls (--split-wait).
""",
)
