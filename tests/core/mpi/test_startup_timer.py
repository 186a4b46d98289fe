"""The parts of a start: each moment belongs to one of them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from omb_py.core.mpi import startup_timer
from omb_py.core.mpi import startup_timer as stages_module
from omb_py.core.mpi.startup_timer import BUFFER, INIT, OMB_PY, Stages


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(stages_module, "time", made)
    return made


def test_a_moment_belongs_to_one_part(clock: Clock) -> None:
    stages = Stages(began=96.0)
    with stages.stage(BUFFER):
        clock.sleep(2)
        with stages.stage(INIT):
            clock.sleep(3)
        clock.sleep(1)
    clock.sleep(5)
    assert list(stages.seconds.items()) == [(OMB_PY, 4), (BUFFER, 3), (INIT, 3)]


def test_a_part_may_come_again_and_may_fail(clock: Clock) -> None:
    stages = Stages(began=clock.now)

    def fail() -> None:
        with stages.stage(BUFFER):
            clock.sleep(2)
            raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            fail()
        clock.sleep(1)
    assert stages.seconds == {OMB_PY: 1, BUFFER: 4}


@pytest.mark.parametrize("command", ["python", "a b) R 2 (c", ")"])
def test_the_start_is_the_middle_of_its_tick(command: str) -> None:
    fields = " ".join(["S", *(str(number) for number in range(4, 22)), "12345", "23"])
    assert startup_timer.start_in(f"77 ({command}) {fields}\n", 100) == 123.455


def test_the_time_before_a_moment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = (
        "import time\n"
        "from omb_py.core.mpi.startup_timer import seconds_before\n"
        "time.sleep(0.3)\n"
        "now = time.perf_counter()\n"
        "print(seconds_before(now, 0.0), seconds_before(now - 0.1, 0.0), seconds_before(now, 99.0))"
    )
    began = time.perf_counter()
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    whole = time.perf_counter() - began
    now, earlier, by_cpu = map(float, out.stdout.split())
    assert 0.3 < now < whole + 0.006
    assert now - earlier == pytest.approx(0.1, abs=0.05)
    assert by_cpu == 99
    monkeypatch.setattr(startup_timer, "STAT", tmp_path / "none")
    assert startup_timer.seconds_before(began, 0.0) is None
