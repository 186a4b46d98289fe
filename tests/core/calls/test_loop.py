"""The timing loop: which calls it makes, in which order, and what it times."""

from __future__ import annotations

import gc
from array import array
from functools import partial
from itertools import cycle, islice
from time import sleep

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.calls import loop
from omb_py.core.calls.loop import (
    PythonLoop,
    Stream,
    StreamLoop,
    no_garbage_collection,
    time_once,
)


def run(loop: PythonLoop, iterations: int, first: int = 0) -> list[float]:
    seconds = array("d", bytes(8 * iterations))
    loop.run(first, seconds)
    return list(seconds)


@given(
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(0, 9),
    st.integers(0, 7),
    st.booleans(),
    st.booleans(),
)
def test_calls_are_made_in_order(
    exchanges: int, steps: int, first: int, iterations: int, paced: bool, started: bool
) -> None:
    made: list[object] = []
    calls = [
        tuple(partial(made.append, (exchange, step)) for step in range(steps))
        for exchange in range(exchanges)
    ]
    barrier = partial(made.append, "barrier") if paced else None
    start = partial(made.append, "start") if started else None
    seconds = run(PythonLoop(calls, barrier, start), iterations, first)
    assert len(seconds) == iterations
    wanted: list[object] = []
    for exchange in islice(cycle(range(exchanges)), first, first + iterations):
        wanted += ["start"] if started else []
        wanted += [(exchange, step) for step in range(steps)]
        wanted += ["barrier"] if paced else []
    assert made == wanted


def test_a_rank_without_calls_takes_part_in_the_barriers() -> None:
    made: list[str] = []
    run(PythonLoop([()], partial(made.append, "barrier")), 4)
    assert len(made) == 4


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_calls_are_timed_without_the_barrier(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(loop, "perf_counter", partial(sum, clock))
    calls = tuple(partial(clock.append, 2.0) for _ in range(steps))
    seconds = run(PythonLoop([calls], partial(clock.append, 50.0), partial(clock.append, 50.0)), 3)
    assert seconds == [2.0 * steps] * 3


def test_one_iteration_keeps_what_its_calls_return() -> None:
    results: list[object] = []
    assert time_once((partial(int, 3), partial(str, 4)), results) >= 0
    assert results == [3, "4"]


def test_the_collector_is_off_inside_and_as_before_outside() -> None:
    seen: list[bool] = []
    run(PythonLoop([(lambda: seen.append(gc.isenabled()),)]), 2)
    assert seen == [False, False]
    assert gc.isenabled()
    gc.disable()
    try:
        with no_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_burst_on_a_stream_waits_once_for_all_of_its_work() -> None:
    made: list[str] = []

    def wait() -> None:
        made.append("wait")
        sleep(0.001)

    stream = Stream(lambda: None, lambda: None, wait, lambda: 0.0)
    works = [(partial(made.append, name),) for name in ("first", "second")]
    elapsed, queued = StreamLoop(stream, works, partial(made.append, "barrier")).burst(3)
    assert made == ["first", "second", "first", "wait"]
    assert 0 <= queued <= elapsed - 0.001


def test_a_burst_of_calls_that_wait_is_the_sum_of_their_times() -> None:
    elapsed, queued = PythonLoop([(partial(sleep, 0.001),)]).burst(3)
    assert elapsed == queued >= 0.003


def test_work_of_a_stream_is_timed_by_host_and_device() -> None:
    made: list[str] = []

    def wait() -> None:
        made.append("wait")
        sleep(0.001)

    begin, end = (partial(made.append, word) for word in ("begin", "end"))
    stream = Stream(begin, end, wait, lambda: 2.5)
    timed = StreamLoop(stream, [(partial(made.append, "work"),)], partial(made.append, "barrier"))
    seconds = run(timed, 3)
    assert made == ["begin", "work", "end", "wait", "barrier"] * 3
    assert list(timed.device_seconds) == [0.0025] * 3
    assert len(timed.queued_seconds) == 3
    for whole, queued in zip(seconds, timed.queued_seconds, strict=True):
        assert 0 <= queued <= whole - 0.001
