"""How far a measurement is: counted in iterations, forecast from the steps so far."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import OmbError
from omb_py.measure.progress import Calls, Display, Lines, Progress, Step, Tracker


class Shown(Display):
    """Keeps what is shown."""

    def __init__(self) -> None:
        self.all: list[Progress] = []

    def show(self, progress: Progress, expected: float | None) -> None:
        self.all.append(progress)


class Clock:
    """Seconds that pass where a test lets them."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def follow(steps: list[Step], pace: list[float]) -> tuple[list[Progress], list[float]]:
    """What is shown before each step of an iteration's seconds, and the seconds then left."""
    shown, clock = Shown(), Clock()
    tracker = Tracker("bw", steps, shown, clock)
    took = [seconds * (step.iterations or 1) for step, seconds in zip(steps, pace, strict=True)]
    for number, seconds in enumerate(took):
        tracker.begin(number)
        clock.now += seconds
    return shown.all, [sum(took[number:]) for number in range(len(took))]


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=30), st.floats(1e-7, 1e-2))
def test_steps_that_take_alike_are_forecast_exactly(counts: list[int], pace: float) -> None:
    steps = [Step("8 B", 8, count) for count in counts]
    shown, left = follow(steps, [pace] * len(steps))
    assert [one.done for one in shown] == [sum(counts[:n]) for n in range(len(counts))]
    assert {one.total for one in shown} == {sum(counts)}
    assert shown[0].seconds_left is None
    assert [one.seconds_left for one in shown[1:]] == pytest.approx(left[1:])


def test_times_that_grow_with_the_bytes_are_forecast_to_grow() -> None:
    steps = [Step("", 1024 << doubled, 100) for doubled in range(10)]
    shown, left = follow(steps, [1e-9 * step.nbytes for step in steps])
    assert [one.seconds_left for one in shown[2:]] == pytest.approx(left[2:])


def test_within_a_step_its_own_iterations_count_but_not_its_preparation() -> None:
    shown, clock = Shown(), Clock()
    tracker = Tracker("allreduce", [Step("1 MiB", 1 << 20, 110)], shown, clock)
    tracker.begin(0)
    clock.now += 7.0
    tracker.advance(0, 110)
    clock.now += 2.0
    tracker.advance(10, 110)
    clock.now += 0.05
    tracker.advance(11, 110)
    assert [(one.done, one.seconds_left) for one in shown.all] == [(0, None), (10, 20.0)]


def test_a_number_of_iterations_that_ranks_decide_on_has_no_total() -> None:
    steps = [Step("1 B", 1, None), Step("2 B", 2, None)]
    shown, clock = Shown(), Clock()
    tracker = Tracker("latency", steps, shown, clock)
    tracker.begin(0)
    clock.now += 1.0
    tracker.advance(4000, 10**6)
    tracker.begin(1)
    assert [(one.done, one.total) for one in shown.all] == [(0, None), (4000, None), (4000, None)]
    assert shown.all[-1].seconds_left == 1.0


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress("bw", "64 KiB", 17, 23, 12000, 13110, 3.2), "bw 64 KiB (17 of 23), "
         "12 000 of 13 110 iterations, about 4 s left"),
        (Progress("barrier", "", 1, 1, 0, 1100, None), "barrier, 0 of 1 100 iterations"),
        (Progress("kmeans", "solving", 2, 6, 1, 6, 0.5), "kmeans solving (2 of 6), about 1 s left"),
        (Progress("latency", "8 B", 1, 2, 500, None, None), "latency 8 B (1 of 2), 500 iterations"),
    ],
)  # fmt: skip
def test_in_words(progress: Progress, text: str) -> None:
    assert str(progress) == text


def test_long_times_are_said_with_their_end() -> None:
    words = str(Progress("bw", "1 GiB", 1, 1, 10, 1100, 3700.0))
    assert words.startswith("bw 1 GiB, 10 of 1 100 iterations, about 1 h 1 min left, until ")


def test_a_log_gets_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    for number in range(1, 100):
        lines.show(Progress("bw", f"step {number}", number, 100, 0, 100, None), expected=0.01)
    for done in range(5):
        lines.show(Progress("bw", "long step", 100, 100, done, 100, None), expected=60.0)
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(" (")[0] for line in said] == [
        "omb-py: bw step 1",
        "omb-py: bw long step",
    ]


def test_a_function_that_fails_ends_no_measurement_before_its_end() -> None:
    progress = Progress("bw", "8 B", 1, 1, 0, 10, None)
    called: list[Progress] = []

    def function(one: Progress) -> None:
        called.append(one)
        raise KeyError("oops")

    calls = Calls(function)
    calls.show(progress, None)
    calls.show(progress, None)
    assert called == [progress]
    with pytest.raises(OmbError, match=r"the function for progress failed: KeyError: 'oops'"):
        calls.finish()
