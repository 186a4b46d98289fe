"""``-G``, native OMB's letter: figures of what was just measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Run, succeeded
from tests.helpers.refusals import missing

QUICK = ("-m", "1:64", "-i", "20", "-x", "2")


@pytest.mark.long
def test_figures_are_drawn_in_the_terminal_and_as_files(mpiexec: Run, tmp_path: Path) -> None:
    job = succeeded(mpiexec(2, "latency", *QUICK, "-G", "tty,svg,pdf"))
    table, drawing = job.out.split("latency: Latency, median over message size")
    assert "# OSU MPI Latency Test" in table
    assert "64 B" in drawing
    assert (tmp_path / "latency.svg").read_text().count("<svg") == 1
    assert (tmp_path / "latency.pdf").read_bytes().startswith(b"%PDF")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latency.pdf", "latency.svg"]


@pytest.mark.long
@pytest.mark.any_library
@pytest.mark.parametrize("command", [("barrier",), ("import_time",), ("overhead", "latency")])
def test_bars_are_drawn_as_a_file(mpiexec: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    more = ("-m", "1:64", "-i", "20", "--rounds", "2") if command[0] == "overhead" else ()
    job = succeeded(mpiexec(2, *command, *more, "-G", "tty,svg"))
    assert "-G: a terminal shows lines" in job.err
    (path,) = tmp_path.glob("*.svg")
    assert path.name.startswith(command[-1])


@pytest.mark.long
@pytest.mark.any_library
def test_existing_graph_is_noted_and_rows_kept(mpiexec: Run, tmp_path: Path) -> None:
    (tmp_path / "latency.png").write_text("my thesis")
    job = succeeded(mpiexec(2, "latency", *QUICK, "-G", "png"))
    assert len(job.rows) == 7
    assert not missing("latency.png exists: --force", job.err)
    assert (tmp_path / "latency.png").read_text() == "my thesis"
