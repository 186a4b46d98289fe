"""Computing for a time that is asked for, and the clock for the parts of an iteration."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.benchmarks import CheckedIteration, Plan
from omb_py.core.calls import Call, Slot
from omb_py.core.calls.loop import Loop
from omb_py.core.job import Combined
from omb_py.core.memory import Local
from omb_py.measure import overlap
from omb_py.measure.overlap import KINDS, Laps, Work, Worker, by_numpy, calibrated, overlapped
from tests.helpers.pace import slowness


class FakeWork:
    """Computes on a clock that goes as fast as it is told: nanoseconds of a call and of each time.

    Every other trial is disturbed.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, base: float, each: float) -> None:
        self.now = 0.0
        self.told = 0
        self._cost = (base, each)
        self._calls = 0
        monkeypatch.setattr(overlap, "perf_counter_ns", lambda: self.now)
        self.work = calibrated(self.repeat)

    def repeat(self, times: int) -> tuple[Local, ...]:
        return (Local("compute", partial(self._spend, times), 0, ()),)

    def _spend(self, times: int) -> None:
        self.told = times
        self._calls += 1
        base, each = self._cost
        self.now += base + times * each + (self._calls % 2) * 1e6


@given(st.floats(0, 1_000), st.floats(0.5, 20), st.floats(1e-6, 1e-2))
def test_work_takes_as_long_as_it_is_told_to(base: float, each: float, seconds: float) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        worker = FakeWork(monkeypatch, base, each)
        for step in worker.work(seconds):
            step.run()
        took = base + worker.told * each
        assert took == pytest.approx(max(seconds * 1e9, base), abs=each, rel=1e-6)


def test_less_than_a_call_costs_is_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = FakeWork(monkeypatch, base=300.0, each=2.0)
    for step in worker.work(0.0):
        step.run()
    assert worker.told == 0


@pytest.mark.long
def test_numpy_computes_where_there_is_no_compiler() -> None:
    work = calibrated(by_numpy())
    short, long = (seconds_of(work, wanted) for wanted in (20e-6, 2e-3))
    assert short < long
    assert 0.2e-3 < long < slowness()  # others can have the caches and the memory


def seconds_of(work: Work, wanted: float) -> float:
    steps = work(wanted)
    taken = []
    for _ in range(20):
        begin = time.perf_counter()
        for step in steps:
            step.run()
        taken.append(time.perf_counter() - begin)
    return min(taken)


def test_laps_add_up_by_kind_from_the_end_of_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [10**9]
    monkeypatch.setattr(overlap, "perf_counter_ns", partial(sum, clock))
    laps = Laps(kinds=3)
    laps.lap(0).run()
    laps.clear()
    for _ in range(3):
        laps.lap(0).run()
        clock.append(2 * 10**9)
        laps.lap(1).run()
        clock.append(4 * 10**9)
        laps.lap(2).run()
    assert (laps.seconds(1), laps.seconds(2)) == (6, 12)
    laps.clear()
    assert laps.seconds(1) == 0


@pytest.mark.parametrize(
    ("communication", "compute", "overall", "percent"),
    [(10, 10, 20, 0), (10, 10, 10, 100), (10, 10, 14, 60), (10, 30, 36, 40), (10, 10, 25, 0)],
)
def test_overlap_is_the_part_of_the_communication_that_computing_hides(
    communication: float, compute: float, overall: float, percent: float
) -> None:
    assert overlap.hidden(communication, compute, overall) == pytest.approx(percent)


def steps_of(tests: int) -> list[str]:
    """The steps of an iteration that overlaps, by name; laps are those of the clock."""
    slot = Slot()
    iteration = CheckedIteration((Call("iallreduce", slot=slot), Call("wait", slot=slot)))
    work = (Local("work", lambda: None),)
    steps = overlapped(iteration, work, tests, Laps(KINDS)).steps
    named = [step for step in steps if isinstance(step, Call | Local)]
    return [step.function if isinstance(step, Call) else step.name for step in named]


def test_computing_lies_between_start_and_wait_with_a_test_after_each_part() -> None:
    assert steps_of(0) == "lap iallreduce lap work lap wait lap".split()
    parts = "work lap test lap work lap test lap"
    assert steps_of(2) == f"lap iallreduce lap {parts} wait lap".split()


class ManualClock:
    """A clock that moves when it is told."""

    now = 1_000_000

    def pass_by(self, nanoseconds: int) -> None:
        self.now += nanoseconds


class Steps(Loop):
    """Iterations on the clock of the test, on which each step takes a known time."""

    def __init__(self, clock: ManualClock, plan: Plan) -> None:
        self._clock, self._plan = clock, plan

    def run(self, first: int, seconds: array[float]) -> None:
        for index in range(len(seconds)):
            began, progress = self._clock.now, 0.0
            for step in self._plan.iterations[0].steps:
                if isinstance(step, Local):
                    before = self._clock.now
                    step.run()
                    progress += self._clock.now - before
                elif isinstance(step, Call):
                    takes = {"iallreduce": 3000, "test": 500, "wait": max(0, 12000 - progress)}
                    self._clock.now += int(takes[step.function])
            seconds[index] = (self._clock.now - began) * 1e-9


class OneRank:
    """A job of one rank."""

    def barrier(self) -> None:
        """One rank waits for none."""

    def mean(self, values: array[float]) -> array[float]:
        return values

    def combine(self, seconds: array[float], timed: bool) -> Combined:
        return Combined(seconds, 0.0, 0.0)


@pytest.mark.parametrize(("tests", "percent", "wait"), [(0, 50.0, 2.0), (2, 40.0, 2.0)])
def test_parts_of_an_overlap_follow_from_the_times_of_its_calls(
    monkeypatch: pytest.MonkeyPatch, tests: int, percent: float, wait: float
) -> None:
    clock = ManualClock()
    monkeypatch.setattr(overlap, "perf_counter_ns", lambda: clock.now)

    def work(seconds: float) -> tuple[Local, ...]:
        return (Local("work", partial(clock.pass_by, round(seconds * 1e9))),)

    slot = Slot()
    plan = Plan((CheckedIteration((Call("iallreduce", slot=slot), Call("wait", slot=slot))),), 8)
    pure = array("d", [10e-6] * 4)
    job: Any = OneRank()
    iterating = []

    @contextmanager
    def counted() -> Iterator[None]:
        before = clock.now
        yield
        iterating.append(clock.now - before)

    begin = clock.now
    found = overlap.measure_overlap(
        job,
        Worker(work),
        lambda plan, pace: Steps(clock, plan),
        tests,
        None,
        plan,
        pure,
        1,
        counted,
    )
    assert found is not None
    assert len(iterating) == 4
    assert sum(iterating) == clock.now - begin > 0
    assert found.compute.mean == pytest.approx(10.0)
    assert found.start == pytest.approx(3.0)
    assert found.test == pytest.approx(0.5 * tests)
    assert found.wait == pytest.approx(wait)
    assert found.overall.mean == pytest.approx(15.0 + 0.5 * tests)
    assert found.percent == pytest.approx(percent)
