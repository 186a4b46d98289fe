"""Computing for a time that is asked for, and the clock for the parts of an iteration."""

from __future__ import annotations

import time
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.memory import Local
from omb_py.measure import overlap
from omb_py.measure.overlap import Laps, Work, by_numpy, calibrated


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
    assert 0.2e-3 < long < 1  # others can have the caches and the memory


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
