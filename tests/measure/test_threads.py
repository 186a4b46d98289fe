"""Several threads share one rank's iterations."""

from __future__ import annotations

import threading
from array import array
from functools import partial
from itertools import cycle, islice
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.calls.loop import Loop, PythonLoop
from omb_py.measure.threads import ThreadLoop, together


def nothing() -> None:
    """Enter no device."""


class Numbering(Loop):
    """Pretends that the iteration of a thread takes as many seconds as its number says."""

    def __init__(self, thread: int, threads: int) -> None:
        self._thread = thread
        self._threads = threads
        self.ident = 0

    def run(self, first: int, seconds: array[float]) -> None:
        self.ident = threading.get_ident()
        for index in range(len(seconds)):
            seconds[index] = (first + index) * self._threads + self._thread


@given(st.integers(1, 5), st.integers(0, 30), st.integers(0, 30))
def test_iteration_i_is_made_by_thread_i_modulo_n(threads: int, first: int, length: int) -> None:
    loops = [Numbering(thread, threads) for thread in range(threads)]
    seconds = array("d", bytes(8 * length))
    ThreadLoop(loops, nothing).run(first, seconds)
    assert list(seconds) == list(range(first, first + length))


def test_each_loop_has_a_thread_of_its_own() -> None:
    meet = threading.Barrier(3)
    loops = [PythonLoop([(lambda: meet.wait(timeout=10),)]) for _ in range(3)]
    ThreadLoop(loops, nothing).run(0, array("d", bytes(8 * 6)))
    assert not meet.broken


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 9), st.integers(0, 9))
def test_threads_exchange_as_one(threads: int, rounds: int, first: int, length: int) -> None:
    made: list[int] = []
    numbers = range(threads * rounds)
    calls = [(lambda number=number: made.append(number),) for number in numbers]
    loops = [PythonLoop(calls[thread::threads]) for thread in range(threads)]
    ThreadLoop(loops, nothing).run(first, array("d", bytes(8 * length)))
    assert sorted(made) == sorted(islice(cycle(numbers), first, first + length))


def test_what_a_thread_raises_is_raised() -> None:
    def fail() -> None:
        raise ValueError("in a thread")

    with pytest.raises(ValueError, match="in a thread"):
        together([lambda: 1, fail], nothing)


def test_results_come_in_order() -> None:
    assert together([partial(int, number) for number in range(5)], nothing) == [0, 1, 2, 3, 4]


def test_each_thread_enters_before_its_task() -> None:
    here = threading.local()
    entered = together([lambda: here.device] * 3, lambda: setattr(here, "device", 7))
    assert entered == [7, 7, 7]


def test_the_first_error_of_a_thread_is_raised_while_others_wait() -> None:
    wait = partial(threading.Event().wait, 20)
    began = monotonic()

    def fails() -> None:
        raise ValueError("lost")

    with pytest.raises(ValueError, match="lost"):
        together([wait, fails, wait], nothing)
    assert monotonic() - began < 10
