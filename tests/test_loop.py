"""The timing loop: which calls it makes, in which order, and what it times."""

from __future__ import annotations

import gc
import time
from functools import partial
from itertools import cycle, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.measure.loop import no_garbage_collection, time_iterations, time_once


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 5), st.integers(1, 7), st.booleans())
def test_calls_are_made_in_order(
    exchanges: int, steps: int, warmup: int, iterations: int, paced: bool
) -> None:
    made: list[object] = []
    calls = [
        tuple(partial(made.append, (exchange, step)) for step in range(steps))
        for exchange in range(exchanges)
    ]
    barrier = partial(made.append, "barrier") if paced else None
    seconds = time_iterations(calls, iterations, warmup, barrier)
    assert len(seconds) == iterations
    wanted: list[object] = []
    for exchange in islice(cycle(range(exchanges)), warmup + iterations):
        wanted += [(exchange, step) for step in range(steps)]
        wanted += ["barrier"] if paced else []
    assert made == wanted


def test_a_rank_without_calls_takes_part_in_the_barriers() -> None:
    made: list[str] = []
    time_iterations([()], 3, 1, partial(made.append, "barrier"))
    assert len(made) == 4


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_calls_are_timed_and_the_barrier_is_not(steps: int) -> None:
    calls = tuple(partial(time.sleep, 0.002) for _ in range(steps))
    seconds = time_iterations([calls], 3, 1, partial(time.sleep, 0.05))
    assert all(0.002 * steps <= value for value in seconds)
    assert min(seconds) < 0.05


def test_one_iteration_keeps_what_its_calls_return() -> None:
    results: list[object] = []
    assert time_once((partial(int, 3), partial(str, 4)), results) >= 0
    assert results == [3, "4"]


def test_the_collector_is_off_inside_and_as_before_outside() -> None:
    seen: list[bool] = []
    time_iterations([(lambda: seen.append(gc.isenabled()),)], 2, 0, None)
    assert seen == [False, False]
    assert gc.isenabled()
    gc.disable()
    try:
        with no_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
