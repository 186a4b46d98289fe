"""What a long sweep tells: points, rows and time left, each launch, and a bar on a terminal."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest

from omb_py.sweeps.folder import Attempt, Folder
from omb_py.sweeps.points import plan
from omb_py.sweeps.reporter import Reporter, TimeLeft
from tests.sweeps.configs import machine, sweep

POINTS = plan(sweep({"benchmarks": ["latency", "bw"], "sizes": [8, 16]}), machine()).points


def attempt(seconds: float, rows: int) -> Attempt:
    return Attempt(started="", seconds=seconds, exit_code=0, outcome="done", rows=rows)


def test_time_left_is_that_of_the_benchmarks_own_rows_else_of_all_rows() -> None:
    first, second = POINTS[0], POINTS[-1]
    assert first.benchmark != second.benchmark
    left = TimeLeft()
    assert left.seconds({first: 2}) is None
    left.add(first, attempt(4.0, 2))
    assert left.seconds({first: 3, second: 1}) == pytest.approx(3 * 2 + 2)
    left.add(second, attempt(10.0, 1))
    left.add(second, attempt(7.0, 0))
    assert left.seconds({first: 3, second: 1}) == pytest.approx(3 * 2 + 10)


def test_lines_count_points_and_rows_and_name_the_launch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Folder(tmp_path)
    reporter = Reporter(folder, POINTS)
    with reporter.bar():
        reporter.begins(POINTS)
        reporter.ended(POINTS[0], attempt(1.0, 1))
    lines = capsys.readouterr().out.splitlines()
    others = len(POINTS) - 1
    assert lines[0].startswith(f"measuring {POINTS[0].describe()} and {others} other point")
    rows = sum(point.rows for point in POINTS)
    assert lines[1].startswith(f"[0/{len(POINTS)} points, 0/{rows} rows, ")
    assert f" left] {POINTS[0].describe()}, 1 row in 1.0 s" in lines[1]
    log = (tmp_path / "logs" / "sweep.output").read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in log] == lines


def test_bar_is_on_a_terminal_and_not_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        reporter = Reporter(Folder(tmp_path), POINTS)
        with reporter.bar():
            reporter.begins(POINTS[:1])
        terminal.flush()
        shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert "━" in shown
    assert f"0/{len(POINTS)} points" in shown
    assert "━" not in (tmp_path / "logs" / "sweep.output").read_text()
