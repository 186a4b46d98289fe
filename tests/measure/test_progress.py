"""How far a measurement is: counted in steps and iterations."""

from __future__ import annotations

import pytest

from omb_py.core.errors import OmbError
from omb_py.measure import progress
from omb_py.measure.progress import CallerDisplay, Display, Lines, Progress, Step, Tracker


class Shown(Display):
    """Keeps what is shown."""

    def __init__(self) -> None:
        self.all: list[Progress] = []

    def show(self, progress: Progress) -> None:
        self.all.append(progress)


class Clock:
    """Seconds that pass where a test lets them."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_steps_are_counted_with_their_iterations() -> None:
    counts, shown = [110, 110, 22], Shown()
    tracker = Tracker("bw", [Step("8 B", count) for count in counts], shown, Clock())
    for number in range(len(counts)):
        tracker.begin(number)
    assert [(one.number, one.done, one.total) for one in shown.all] == [
        (1, 0, 242),
        (2, 110, 242),
        (3, 220, 242),
    ]


def test_within_a_step_its_own_iterations_count_but_not_its_preparation() -> None:
    shown, clock = Shown(), Clock()
    tracker = Tracker("allreduce", [Step("1 MiB", 110)], shown, clock)
    tracker.begin(0)
    clock.now += 7.0
    tracker.advance(0, 110)
    clock.now += 2.0
    tracker.advance(10, 110)
    clock.now += 0.05
    tracker.advance(11, 110)
    assert [one.done for one in shown.all] == [0, 10]


def test_a_number_of_iterations_that_ranks_decide_on_has_no_total() -> None:
    steps = [Step("1 B", None), Step("2 B", None)]
    shown, clock = Shown(), Clock()
    tracker = Tracker("latency", steps, shown, clock)
    tracker.begin(0)
    clock.now += 1.0
    tracker.advance(4000, 10**6)
    tracker.begin(1)
    assert [(one.done, one.total) for one in shown.all] == [(0, None), (4000, None), (4000, None)]


@pytest.mark.parametrize(
    ("reported", "text"),
    [
        (Progress("bw", "64 KiB", 17, 23, 12000, 13110), "bw 64 KiB (17 of 23), "
         "12 000 of 13 110 iterations"),
        (Progress("barrier", "", 1, 1, 0, 1100), "barrier, 0 of 1 100 iterations"),
        (Progress("kmeans", "solving", 2, 6, 1, 6), "kmeans solving (2 of 6)"),
        (Progress("latency", "8 B", 1, 2, 500, None), "latency 8 B (1 of 2), 500 iterations"),
    ],
)  # fmt: skip
def test_in_words(reported: Progress, text: str) -> None:
    assert str(reported) == text


def test_a_log_gets_a_line_a_second(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(progress, "monotonic", clock)
    lines = Lines()
    for number in range(1, 8):
        clock.now += 0.25
        lines.show(Progress("bw", f"step {number}", number, 7, 0, 100))
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(" (")[0] for line in said] == [
        "omb-py: bw step 1",
        "omb-py: bw step 5",
    ]


def test_a_function_that_fails_ends_no_measurement_before_its_end() -> None:
    reported = Progress("bw", "8 B", 1, 1, 0, 10)
    called: list[Progress] = []

    def function(one: Progress) -> None:
        called.append(one)
        raise KeyError("oops")

    calls = CallerDisplay(function)
    calls.show(reported)
    calls.show(reported)
    assert called == [reported]
    with pytest.raises(OmbError, match=r"the function for progress failed: KeyError: 'oops'"):
        calls.finish()
