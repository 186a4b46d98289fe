"""A recorded profile as a benchmark: the same calls, of the same sizes, in the same proportions."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omb_py.apps import Application, Check, Kernel, Part, option
from omb_py.apps._replay_plan import (
    ANSWERS,
    COMPLETED,
    Item,
    Plan,
    Tallies,
    disagreement,
    partner,
    plan_of,
)
from omb_py.apps.runtime.team import Team
from omb_py.benchmarks import Case, Content, Exchange, collective
from omb_py.core.calls import Call, Cell, Step
from omb_py.core.datatypes import find_types
from omb_py.core.errors import OutOfMemoryError, UsageError
from omb_py.measure.validation import DataCheck
from omb_py.results.readers import source_of
from omb_py.tracing.profile import text
from omb_py.tracing.profile.mpitrace import RankFile, parsed, read_profile
from omb_py.tracing.profile.store import TEXT, kind_of, load

TAG = 1
FIRST = "profile.0.txt"


@dataclass(frozen=True)
class Recorded:
    """A profile, and how much of it is replayed."""

    file: str = option("", "A profile's folder or file.", kind="argument", metavar="PROFILE")
    scale: float = option(
        0.1, "Part of the profile's calls that is made, at least one of each size.", least=0.0
    )
    leave_out: tuple[str, ...] = option(
        (), "Leave out this routine, as in gatherv.", metavar="ROUTINE"
    )

    def plan(self, profile: RankFile) -> Plan:
        """What is to be done; raises `UsageError` where that is nothing."""
        return plan_of(profile, self.scale, self.leave_out)


def rank_profile(path: str) -> RankFile:
    """The calls of one rank: a file's, or those of the lowest rank in a folder or whole profile.

    Raises `UsageError` where it cannot be read, and for the calls of several ranks together.
    """
    text_of_first = Path(path) / FIRST  # instead of the records of all ranks, on each rank
    if text_of_first.is_file():
        path = str(text_of_first)
    if not Path(path).is_dir() and kind_of(Path(path)) == TEXT:
        found = read_profile(path)
        if found.of_several:
            raise UsageError(
                f"{path} adds up the calls of several ranks, which no rank has made: name the "
                f"profile's folder, or the text of one rank, as in {FIRST}"
            )
        return found
    profile = load([path])
    if not profile.counted:
        raise UsageError(f"{path} has no rank's calls: name another profile")
    out = io.StringIO()
    text.write(profile, profile.counted[0].rank, out)
    return parsed(source_of(path, out.getvalue().encode()))


@dataclass(frozen=True)
class Made:
    """What a rank did: the calls of the last `Replay.solve`, and what arrived wrong in them."""

    tallies: Tallies
    faults: tuple[str, ...]


class Replay(Kernel[Recorded]):
    """Calls one after the other, with no computing between them."""

    def __init__(self, team: Team, problem: Recorded) -> None:
        super().__init__(team, problem)
        self._profile = rank_profile(problem.file)
        self._plan = problem.plan(self._profile)
        self._data: list[tuple[DataCheck, Exchange]] = []
        calls = [self._bound(item) for item in self._plan.items]
        self._calls = [calls[index] for index in self._plan.order]

    def solve(self) -> None:
        for call in self._calls:
            call()

    def result(self) -> list[Made] | None:
        """What each rank did."""
        tallies = self.team.phases.tallies
        faults = (fault for check, exchange in self._data for fault in check.faults(exchange, 0))
        mine = {key: tally.calls for key, tally in tallies.items() if tally.calls}
        return self.team.comm.gather(Made(mine, tuple(faults)))

    def parts(self) -> list[Part]:
        """This rank's seconds beside the profile's, both for all calls of the profile."""
        found: list[Part] = []
        replayed = recorded = 0.0
        for item in self._plan.items:
            calls = item.recorded
            tally = self.team.phases.tallies.get((item.function, item.nbytes))
            seconds = tally.seconds * calls.calls / item.calls if tally else 0.0
            replayed, recorded = replayed + seconds, recorded + calls.seconds
            name, number = f"MPI_{calls.routine}", calls.calls
            found += _beside(name, seconds, calls.seconds, number, calls.nbytes)
        return [*found, *_beside("calls", replayed, recorded), *_told(self._profile, self._plan)]

    def _bound(self, item: Item) -> Callable[[], None]:
        """What this rank does in each call of an item, if it takes part; its data is filled in."""
        from omb_py.measure.resources import Resources

        team = self.team
        (datatype,) = find_types((item.dtype,))
        size = (team.rank, team.ranks, item.nbytes, datatype)
        case = Case(*size, 1, team.buffer, team.options, Resources(team.comm, team.options))
        try:
            exchange = (_between_two if item.function in ANSWERS else _among_all)(case, item)
        except OutOfMemoryError as error:
            text, name = str(error).removesuffix(": lower -m"), item.function
            raise OutOfMemoryError(f"{text}: take fewer ranks, or --leave-out {name}") from error
        check = DataCheck(*size)
        check.fill(exchange, 0)
        self._data.append((check, exchange))
        return team.bind(*exchange.steps)


def _among_all(case: Case, item: Item) -> Exchange:
    """A collective call as its benchmark makes it, rank 0 the root."""
    (row,) = (row for row in collective.TABLE if row.name == item.function)
    (exchange,) = collective.plan(row, case).exchanges
    return exchange


def _between_two(case: Case, item: Item) -> Exchange:
    """A call with this rank's partner, if there is one; rank 0 makes that of the profile."""
    name = item.function
    if case.ranks == 1:
        raise UsageError(f"{name} needs another rank: start 2 or more, or --leave-out {name}")
    peer = partner(case.rank, case.ranks)
    if peer is None:
        return Exchange()
    function = name if case.rank % 2 == 0 else ANSWERS[name]
    messages = tuple(case.message() for _ in range(1 + (function == "sendrecv")))
    sends, receives = "send" in function, "recv" in function
    inputs = (Content.of(case.rank, messages[0].memory),) if sends else ()
    outputs = (Content.of(peer, messages[-1].memory),) if receives else ()
    steps: tuple[Step, ...] = (Call(function, messages, peer, TAG),)
    if function == "sendrecv":
        steps = (Call(function, messages, values=(peer, TAG, peer, TAG)),)
    elif function in COMPLETED:
        cell = Cell()
        started = Call(function, messages, peer, TAG, cell=cell)
        steps = (started, Call("waitall", cell=cell))
    return Exchange(steps, inputs=inputs, outputs=outputs)


def _beside(
    name: str,
    replayed: float,
    recorded: float,
    calls: int | None = None,
    nbytes: float | None = None,
) -> Iterator[Part]:
    """Two rows: what was measured with the quotient of both, and what the profile says."""
    quotient = replayed / recorded if recorded else None
    unit = "of the profile's time" if recorded else ""
    yield Part(f"replayed {name}", replayed, quotient, unit, calls, nbytes)
    yield Part(f"profile's {name}", recorded, calls=calls, nbytes=nbytes)


def _told(profile: RankFile, plan: Plan) -> Iterator[Part]:
    """What else the profile says, and what of it was not replayed."""
    if profile.ranks is not None:
        yield Part("profile's ranks", value=profile.ranks, unit="ranks")
    if profile.rank is not None:
        yield Part("profile's own rank", value=profile.rank)
    if profile.communicate_s is not None:
        yield Part("profile's time in MPI", profile.communicate_s)
    if profile.elapsed_s is not None:
        yield Part("profile's elapsed time", profile.elapsed_s)
    spread = profile.ranks_communicate_s
    for name, seconds in zip(("least", "median", "greatest"), spread or (), strict=False):
        yield Part(f"profile's {name} time in MPI", seconds)
    for calls in plan.left_out:
        name = f"left out MPI_{calls.routine}"
        yield Part(name, calls.seconds, calls=calls.calls, nbytes=calls.nbytes)
    for note in profile.notes:
        yield Part(f"note: {note}")


def calls_per_second(problem: Recorded, seconds: float) -> float:
    """The calls of the profile's rank over the time that they take here."""
    plan = problem.plan(rank_profile(problem.file))
    return sum(item.calls for item in plan.items) / seconds


def compare(problem: Recorded, made: Sequence[Made], reference: Any) -> Check:
    """Each rank made exactly the calls that are planned for it, and data arrived as it was sent."""
    plan = problem.plan(rank_profile(problem.file))
    wrong, words = disagreement(plan, [one.tallies for one in made])
    faults = [fault for one in made for fault in one.faults]
    number = sum(sum(one.tallies.values()) for one in made)
    right = f"all of the {number} calls that were planned were made, and data arrived as sent"
    return Check(not wrong and not faults, words or next(iter(faults), right), float(wrong))


APPLICATION = Application(
    name="replay",
    title="Replay",
    summary="The MPI calls of a recorded profile, beside its times.",
    problem=Recorded,
    kernel=Replay,
    metric=calls_per_second,
    unit="calls/s",
    compare=compare,
    references=False,
    split_wait=False,
    details="""\
PROFILE is the folder of omb-py profile, whose rank 0 is replayed, or one rank's text
(profile.RANK.txt, or mpitrace's mpi_profile.JOB.RANK). Its calls are made in its proportions,
spread evenly over the whole, with nothing computed between them: what the profile's times have
beyond that is waiting for ranks that computed, or another machine. The parts compare rank 0's
seconds with the profile's, both for all calls of the profile.

Sizes are the profile's averages, rounded to whole elements, each as mpitrace counts it. All ranks
do what the profile's rank did; rank 0 is the root. Reductions add up: 8 bytes as one integer,
other sizes as 4-byte floats where 4 divides them, else as bytes. Send, Recv, Isend, Irecv and
Sendrecv go between pairs of neighbours, of which rank 0's makes the profile's call, and a Waitall
follows what does not block. A Gatherv without sizes moves what the profile's own rank sent: its 0
bytes. Other routines are left out, and named.

There is no program for one rank to compare with, and no barrier before calls (--split-wait).
""",
)
