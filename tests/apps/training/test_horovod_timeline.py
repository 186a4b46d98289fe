"""Horovod's phases of each gradient, said to a recorder; and nothing where nobody records."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest

from omb_py.apps.runtime.phases import Phases
from omb_py.apps.training import Training
from omb_py.apps.training.fusion import Plan, plan_of
from omb_py.apps.training.horovod_timeline import SILENT, Activities, activities_of
from omb_py.apps.training.negotiation import Negotiation
from omb_py.apps.training.schedules import Negotiated, Planned
from omb_py.tracing.recorder import annotation
from omb_py.tracing.records.layout import Kind

NAMES = ("last", "middle", "first")
SIZES = (4, 8, 16)


@dataclass(frozen=True)
class Said:
    """A slice, or a mark without length."""

    name: str
    lane: str
    began: int
    ended: int
    nbytes: int
    kind: Kind


class Listener:
    """Keeps what is said."""

    def __init__(self) -> None:
        self.said: list[Said] = []
        self._names = [""]

    def name(self, text: str) -> int:
        if text not in self._names:
            self._names.append(text)
        return self._names.index(text)

    def event(self, *fields: int) -> None:
        kind, name, _, _, _, lane, began, ended, nbytes, *_ = fields
        said = Said(self._names[name], self._names[lane], began, ended, nbytes, Kind(kind))
        self.said.append(said)

    def lane(self, lane: str) -> list[str]:
        """The names of what is on a lane, by beginning, what encloses others first."""
        here = [said for said in self.said if said.lane == lane]
        return [one.name for one in sorted(here, key=lambda one: (one.began, -one.ended))]


@pytest.fixture
def listener() -> Iterator[Listener]:
    listening = Listener()
    annotation.attach(listening)
    yield listening
    annotation.detach()


class Sending:
    """Parcels that are packed, summed and unpacked, or only started, but hold nothing."""

    def __init__(self, activities: Activities, overlap: bool = False) -> None:
        self._activities = activities
        self._overlap = overlap
        self._under_way: list[tuple[int, int]] = []

    def of(self, begin: int, end: int) -> None: ...

    def begin(self) -> None: ...

    def send(self, begin: int, end: int) -> None:
        self._activities.enter(begin, end, "MEMCPY_IN_FUSION_BUFFER")
        self._activities.enter(begin, end, "MPI_ALLREDUCE")
        self._under_way.append((begin, end))
        if not self._overlap:
            self.complete()

    def complete(self) -> None:
        for bucket in self._under_way:
            self._activities.enter(*bucket, "MEMCPY_OUT_FUSION_BUFFER")
            self._activities.leave(*bucket)
        self._under_way.clear()


class Agreeing(Negotiation):
    """What the ranks agree on, cycle by cycle."""

    def __init__(self, outcomes: Sequence[int]) -> None:
        self._outcomes = iter(outcomes)

    def step(self) -> None: ...

    def cycle(self, agreed: int, ready: int) -> int:
        return next(self._outcomes)


def planned(plan: Plan, early: bool = False) -> tuple[Activities, Planned]:
    activities = activities_of(NAMES, SIZES, plan)
    fused = cast(Any, Sending(activities, overlap=early))
    return activities, Planned(fused, plan, early)


def step(activities: Activities, schedule: Planned | Negotiated) -> None:
    for place in range(len(NAMES)):
        activities.ready(place)
        schedule.advance(place + 1)
    schedule.finish()


SUMMED = ["MEMCPY_IN_FUSION_BUFFER", "MPI_ALLREDUCE", "MEMCPY_OUT_FUSION_BUFFER"]


def test_a_gradient_of_a_bucket_waits_for_the_others_and_then_for_its_turn(
    listener: Listener,
) -> None:
    step(*planned([(0, 2), (2, 3)]))
    waiting = ["ALLREDUCE", "WAIT_FOR_OTHER_TENSOR_DATA", "QUEUE"]
    assert listener.lane("last") == [*waiting, *SUMMED]
    assert listener.lane("middle") == ["ALLREDUCE", "QUEUE", *SUMMED]
    assert listener.lane("first") == ["ALLREDUCE", "QUEUE", *SUMMED]


@pytest.mark.parametrize("early", [False, True])
def test_every_step_says_the_same(listener: Listener, early: bool) -> None:
    activities, schedule = planned([(0, 2), (2, 3)], early)
    step(activities, schedule)
    first = {name: listener.lane(name) for name in NAMES}
    step(activities, schedule)
    assert {name: listener.lane(name) for name in NAMES} == {n: 2 * s for n, s in first.items()}


@pytest.mark.parametrize("outcomes", [(3,), (0, 3), (0, 1, 1, 3)])
def test_a_gradient_is_negotiated_until_the_cycle_in_which_all_agree(
    listener: Listener, outcomes: tuple[int, ...]
) -> None:
    activities = activities_of(NAMES, SIZES, None)
    schedule = Negotiated(
        cast(Any, Sending(activities)),
        SIZES,
        lambda sizes: plan_of(Training(), sizes),
        Agreeing(outcomes),
        0.0,
        Phases(),
        activities,
    )
    schedule.begin()
    for place in range(len(NAMES)):
        activities.ready(place)
    schedule.finish()
    for name in NAMES:
        lane = ["NEGOTIATE_ALLREDUCE", "ALLREDUCE", "QUEUE", *SUMMED]
        assert listener.lane(name) == lane
        slices = {said.name: said for said in listener.said if said.lane == name}
        assert slices["NEGOTIATE_ALLREDUCE"].ended == slices["ALLREDUCE"].began
        assert slices["ALLREDUCE"].ended == slices["MEMCPY_OUT_FUSION_BUFFER"].ended
    marks = [said for said in listener.said if said.name == "CYCLE_START"]
    assert len(marks) == len(outcomes)
    assert {(mark.kind, mark.lane) for mark in marks} == {(Kind.INSTANT, "")}


@pytest.mark.parametrize("early", [False, True])
def test_activities_follow_each_other_without_gaps_inside_the_allreduce(
    listener: Listener, early: bool
) -> None:
    step(*planned([(0, 3)], early))
    for name, size in zip(NAMES, SIZES, strict=True):
        inside = [s for s in listener.said if s.lane == name]
        whole = next(said for said in inside if said.name == "ALLREDUCE")
        inside.remove(whole)
        ends = [whole.began, *(said.ended for said in inside)]
        assert [said.began for said in inside] == ends[:-1]
        assert ends[-1] == whole.ended
        assert whole.nbytes == size


def test_a_mark_tells_when_the_coordinator_heard_of_a_rank(listener: Listener) -> None:
    activities_of(NAMES, SIZES, None).asked(3, [0, 2])
    assert [(s.name, s.lane, s.kind) for s in listener.said] == [
        ("3", "last", Kind.INSTANT),
        ("3", "first", Kind.INSTANT),
    ]


def test_nothing_is_said_where_nobody_records() -> None:
    activities, schedule = planned([(0, 3)])
    assert activities is SILENT
    step(activities, schedule)


def test_a_recorder_that_comes_later_hears_nothing_of_a_training() -> None:
    activities, schedule = planned([(0, 3)])
    late = Listener()
    annotation.attach(late)
    try:
        step(activities, schedule)
    finally:
        annotation.detach()
    assert late.said == []


def test_a_program_names_its_phases(listener: Listener) -> None:
    import omb_py

    with omb_py.phase("epoch 1"), omb_py.phase("forward"):
        pass
    assert listener.lane("") == ["epoch 1", "forward"]


def test_a_phase_that_nobody_records_loads_nothing_heavy() -> None:
    program = (
        "import sys, omb_py\n"
        "with omb_py.phase('backward'):\n    pass\n"
        "print(*{'numpy', 'pandas', 'mpi4py', 'click', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr
