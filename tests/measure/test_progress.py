"""How far a measurement is: counted in steps and iterations."""

from __future__ import annotations

import pytest

from omb_py.core.errors import OmbError
from omb_py.measure import progress
from omb_py.measure.progress import CallerDisplay, Display, Lines, Progress, Tracker
from tests.helpers.refusals import refuses


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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "monotonic", made)
    return made


def test_steps_are_counted_and_their_iterations() -> None:
    shown = Shown()
    tracker = Tracker("bw", ["8 B", "16 B"], shown)
    tracker.begin(0)
    tracker.advance(10, 110)
    tracker.begin(1)
    assert [(one.step, one.number, one.done, one.total) for one in shown.all] == [
        ("8 B", 1, 0, 0),
        ("8 B", 1, 10, 110),
        ("16 B", 2, 0, 0),
    ]


def test_a_display_is_not_called_more_often_than_it_wants(clock: Clock) -> None:
    shown = Shown()
    shown.seconds = 0.1
    tracker = Tracker("bw", ["8 B"], shown)
    for done in range(5):
        clock.now += 0.06
        tracker.advance(done, 5)
    assert [one.done for one in shown.all] == [0, 2, 4]


@pytest.mark.parametrize(
    ("reported", "text"),
    [
        (Progress("bw", "64 KiB", 17, 23, 12000, 13110),
         "bw 64 KiB (17 of 23): 12 000 of 13 110 iterations"),
        (Progress("barrier", "", 1, 1), "barrier"),
        (Progress("kmeans", "solving", 2, 6), "kmeans solving (2 of 6)"),
        (Progress("latency", "8 B", 1, 2, 500, 0), "latency 8 B (1 of 2): 500 iterations"),
    ],
)  # fmt: skip
def test_in_words(reported: Progress, text: str) -> None:
    assert str(reported) == text


def test_a_log_gets_a_line_a_second(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    tracker = Tracker("bw", [f"step {number}" for number in range(1, 8)], Lines())
    for number in range(7):
        clock.now += 0.25
        tracker.begin(number)
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(" (")[0] for line in said] == [
        "omb-py: bw step 1",
        "omb-py: bw step 5",
    ]


def test_failing_progress_function_ends_after_measuring() -> None:
    reported = Progress("bw", "8 B", 1, 1)
    called: list[Progress] = []

    def function(one: Progress) -> None:
        called.append(one)
        raise KeyError("oops")

    calls = CallerDisplay(function)
    calls.show(reported)
    calls.show(reported)
    assert called == [reported]
    with refuses(OmbError, "function for progress failed: KeyError: 'oops'"):
        calls.finish()
