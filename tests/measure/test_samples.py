"""When iterations began, from what a loop stores: their durations."""

from __future__ import annotations

from array import array
from time import perf_counter, sleep

from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.calls.loop import PythonLoop
from omb_py.core.mpi.clock import Offset
from omb_py.measure.samples import StartTimes
from omb_py.measure.sampling import run_counted


def test_starts_are_within_their_error_of_those_that_a_loop_had() -> None:
    began: list[float] = []

    def call() -> None:
        began.append(perf_counter())
        sleep(0.0002)

    loop = PythonLoop([(call,)], barrier=lambda: sleep(0.0001))
    starts = StartTimes()
    seconds = run_counted(loop, 0, 10, 50, starts=starts)
    off = [abs(at - true) for at, true in zip(starts.seconds, began[10:], strict=True)]
    assert max(off) <= starts.error < 60 * 0.01
    assert starts.error >= 60 * 0.0001
    assert len(seconds) == 50


@given(
    st.lists(st.floats(1e-7, 1.0), min_size=1, max_size=50),
    st.floats(0, 1.0),
    st.integers(0, 50),
)
def test_iterations_fill_a_stretch(durations: list[float], between: float, uncounted: int) -> None:
    starts = StartTimes()
    elapsed = sum(durations) + between
    starts.add(100.0, elapsed, array("d", durations), uncounted)
    assert len(starts.seconds) == max(0, len(durations) - uncounted)
    ends = [100.0]
    for start, duration in zip(starts.seconds, durations[uncounted:], strict=True):
        assert start >= ends[-1] - 1e-9
        ends.append(start + duration)
    assert ends[-1] <= 100.0 + elapsed + 1e-9
    assert starts.error <= between + 1e-9


def test_a_clock_that_steps_back_gives_no_time_between() -> None:
    starts = StartTimes()
    starts.add(5.0, 0.5, array("d", [1.0, 1.0]), 0)
    assert list(starts.seconds) == [5.0, 6.0]
    assert starts.error == 0


@given(st.floats(-1e3, 1e3), st.floats(-1e-4, 1e-4), st.floats(0, 1e3))
def test_common_time_is_the_inverse_of_local_time(seconds: float, drift: float, at: float) -> None:
    offset = Offset(seconds, 0.0, drift, reference=10.0)
    assert abs(offset.local(offset.root(at)) - at) <= 1e3 * (abs(drift) * abs(drift)) + 1e-6
