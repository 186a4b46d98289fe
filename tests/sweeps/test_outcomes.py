"""How an attempt went, from what is missing, the exit code, and who spoke."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from omb_py.sweeps import point_launch, runner
from omb_py.sweeps.folder import (
    DONE,
    FAILED,
    MISSING,
    REFUSED,
    SHORT,
    STOPPED,
    TIMED_OUT,
    UNSUPPORTED,
    Folder,
)
from omb_py.sweeps.libraries import Installation
from omb_py.sweeps.points import plan
from omb_py.sweeps.reporter import Reporter
from omb_py.sweeps.runner import judge, silent_end
from omb_py.sweeps.stop import Stop, exit_code
from omb_py.sweeps.sweep_job import SweepJob
from tests.helpers.refusals import missing
from tests.sweeps.configs import machine, sweep


@pytest.mark.parametrize(
    ("code", "ended", "left", "excuse", "outcome"),
    [
        (0, None, (), None, DONE),
        (139, None, (), None, DONE),  # crashed after the last row
        (0, None, (8,), None, FAILED),  # Open MPI's launcher after a node broke
        (3, None, (8,), "left out messages of 8 bytes", SHORT),
        (-11, None, (8,), "left out messages of 8 bytes", SHORT),  # and the launcher crashed
        (5, None, (8,), "binding pickle has no reduce_scatter", UNSUPPORTED),
        (8, None, (8,), "buffer cupy needs a device", MISSING),
        (2, None, (8,), "start 3 ranks or more", REFUSED),
        (2, None, (8,), None, FAILED),  # the launcher's own usage error
        (5, None, (8,), None, FAILED),
        (1, None, (8,), "the network is on fire", FAILED),
        (-9, None, (8,), None, FAILED),
        (None, TIMED_OUT, (8,), None, TIMED_OUT),
        (None, STOPPED, (8,), "interrupted", STOPPED),
        (None, STOPPED, (), None, DONE),
    ],
)
def test_attempt_is_judged_by_its_code_its_rows_and_its_reason(
    code: int | None, ended: str | None, left: tuple[int, ...], excuse: str | None, outcome: str
) -> None:
    assert judge(code, ended, left, excuse) == outcome


def test_exit_code_says_whether_a_sweep_is_complete_or_goes_on() -> None:
    over = Stop(deadline=0.0)
    assert exit_code(Stop(), complete=True, added=False) == 0
    assert exit_code(over, complete=True, added=True) == 0
    assert exit_code(Stop(), complete=False, added=True) == 1
    assert exit_code(over, complete=False, added=True) == 75
    assert exit_code(over, complete=False, added=False) == 1
    assert exit_code(Stop(signal=2), complete=False, added=True) == 130
    assert exit_code(Stop(), complete=False, added=True, too_few_nodes=True) == 75
    assert exit_code(Stop(), complete=False, added=False, too_few_nodes=True) == 1
    assert exit_code(over, complete=False, added=True, too_few_nodes=True) == 75
    assert exit_code(Stop(), complete=False, added=False, elsewhere=True) == 75
    assert exit_code(over, complete=False, added=False, elsewhere=True) == 1


@pytest.mark.parametrize(
    ("code", "words"),
    [(-9, "launcher signal 9 (Killed)"), (255, "launcher exit code 255 rank"), (None, "")],
)
def test_silent_launcher_is_known_by_its_exit_code(code: int | None, words: str) -> None:
    assert not missing(words, silent_end(code))
    assert bool(silent_end(code)) == bool(words)


class StopAfter(Stop):
    """A reason to stop that comes as soon as a launcher has made a file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def __bool__(self) -> bool:
        return self.path.exists()


def stand_in(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `srun` be a shell script, which a runner looks at often."""
    launcher = folder / "bin" / "srun"
    launcher.parent.mkdir()
    launcher.write_text(f"#!/bin/sh\n{script}\n")
    launcher.chmod(0o755)
    monkeypatch.setenv("PATH", f"{launcher.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(point_launch, "LOOK_SECONDS", 0.02)


class Shared(Folder):
    """A folder in which another sweep measures rows just before a lock is free."""

    rows: Mapping[str, tuple[int, ...]]
    """Sizes by the bindings of points."""

    def lock(self, name: str) -> Path:
        binding = next((one for one in self.rows if f"-{one}-" in name), None)
        if binding is not None:
            path = self.root / "points" / f"{name}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in ("bytes", *self.rows[binding])))
        return super().lock(name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "launches", "there"),
    [
        ({"native": (8, 64), "buffer": (8, 64)}, [], 4),
        ({"native": (8, 64), "buffer": (64,)}, ["8"], 3),
        ({"native": (64,)}, ["8 8,64"], 1),
    ],
    ids=["all", "all but a row", "a row"],
)
@pytest.mark.parametrize("order", ["shuffled", "as written"])
def test_rows_measured_elsewhere_before_the_locks_are_not_measured_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows: dict[str, tuple[int, ...]],
    launches: list[str],
    there: int,
    order: str,
) -> None:
    stand_in(f'echo "$*" >> {tmp_path}/launches; exit 1', tmp_path, monkeypatch)
    what = sweep({"bindings": ["native", "buffer"], "sizes": [8, 64]}, retries=0, order=order)
    where = machine(launcher="srun")
    job = SweepJob(what, where, "mine", "here", plan=plan(what, where), folder=tmp_path / "mine")
    folder = Shared(job.root)
    folder.rows = rows
    reporter = Reporter(folder, job.plan.points)
    running = runner.Runner(job, folder, {"": Installation(where, "srun")}, reporter, Stop())
    assert running.run(job.plan.points) is False
    log = tmp_path / "launches"
    first = log.read_text().splitlines()[:1] if log.exists() else []
    assert [" ".join(re.findall(r"--sizes (\S+?)'? ", line)) for line in first] == launches
    assert reporter.there == there


@pytest.mark.parametrize(
    ("script", "outcome", "exit_code"),
    [
        ("touch {}; exec sleep 60", STOPPED, None),
        ("touch {}; exit 143", STOPPED, None),  # a scheduler's signal came to it, too
        ("exit 143", FAILED, 143),
    ],
    ids=["running", "signalled", "failed"],
)
def test_point_that_a_signal_interrupts_is_stopped_and_has_not_failed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    outcome: str,
    exit_code: int | None,
) -> None:
    begun = tmp_path / "begun"
    stand_in(script.format(begun), tmp_path, monkeypatch)
    what, where = sweep(retries=0), machine(launcher="srun")
    job = SweepJob(what, where, "mine", "here", plan=plan(what, where), folder=tmp_path / "mine")
    folder = Folder(job.root)
    reporter = Reporter(folder, job.plan.points)
    running = runner.Runner(
        job, folder, {"": Installation(where, "srun")}, reporter, StopAfter(begun)
    )
    assert running.run(job.plan.points) is False
    (point,) = job.plan.points
    (attempt,) = folder.state(point).attempts
    assert (attempt.outcome, attempt.exit_code) == (outcome, exit_code)
