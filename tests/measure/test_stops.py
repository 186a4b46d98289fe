"""A stop of this process is told from waiting, and from a SIGCONT that ends no stop."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from omb_py.measure.stops import Stops


def continued() -> None:
    """Get a SIGCONT while running."""
    os.kill(os.getpid(), signal.SIGCONT)
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass


def stopped() -> None:
    """Be stopped for a second, as by a scheduler."""
    own = os.getpid()
    with subprocess.Popen(["sh", "-c", f"kill -STOP {own}; sleep 1; kill -CONT {own}"]):
        pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "seconds"), [(lambda: time.sleep(0.2), 0), (continued, 0), (stopped, 1)]
)
def test_stop_ends_in_a_sigcont_without_cpu(event: Callable[[], None], seconds: float) -> None:
    with Stops() as stops:
        before = stops.read()
        event()
        assert stops.since(before) == pytest.approx(seconds, abs=0.5 * seconds)


def test_sleep_of_the_machine_is_a_stop() -> None:
    continued, idle, asleep = Stops().read()
    assert Stops().since((continued, idle, asleep - 10)) == pytest.approx(10, abs=0.1)


def test_handler_of_a_program_stays() -> None:
    kept = signal.signal(signal.SIGCONT, signal.SIG_IGN)
    with Stops():
        assert signal.getsignal(signal.SIGCONT) == signal.SIG_IGN
    signal.signal(signal.SIGCONT, kept)
