"""While it runs: a line on the terminal of the launcher, between rows that stay whole."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import OMB_PY, Finished, own_temporary_folder, rows_of
from tests.helpers.terminals import COLUMNS, on_terminal, screen, statuses

SLOW = "-m 1048576:4194304 -i 100 -x 20".split()
"""Three sizes that take long enough to be shown."""


def ranks_on_terminal(mpi: str, folder: Path, *words: str) -> tuple[int, str]:
    with own_temporary_folder() as environment:
        return on_terminal([mpi, "-n", "2", OMB_PY, *words], environment, folder)


def test_rows_stay_whole_around_the_line(mpi: str, tmp_path: Path) -> None:
    words = ["alltoall", *SLOW, "--output", "a.csv", "--format", "csv"]
    code, written = ranks_on_terminal(mpi, tmp_path, *words)
    lines = screen(written)
    assert code == 0, written
    shown = [line for line in lines if line and not line.startswith(("#", "omb-py: note"))]
    end = "omb-py: results are in a.csv"  # stderr, which a launcher may pass on before a row
    assert shown.count(end) == 1
    printed = [row["bytes"] for row in csv.DictReader(line for line in shown if line != end)]
    assert printed == [row["bytes"] for row in rows_of(tmp_path / "a.csv")]
    first, *later = statuses(written)
    assert first == "alltoall 1 MiB (1 of 3)"
    pattern = r"alltoall [124] MiB \([123] of 3\)"
    assert all(re.fullmatch(pattern, line) and len(line) < COLUMNS for line in later), later


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (
            ["overhead", "bcast", *SLOW, "--rounds", "2"],
            r"bcast 1 MiB \(1 of 3\)",
        ),
        (["kmeans", "--samples", "1000", "--repeats", "1"], r"kmeans solving \(1 of 2\)"),
        (["latency", "--sizes", "8", "-c", "-i", "3"], r"latency 8 B"),
    ],
)
def test_everything_that_measures_shows_it(
    mpi: str, tmp_path: Path, words: list[str], shown: str
) -> None:
    code, written = ranks_on_terminal(mpi, tmp_path, *words)
    assert code == 0, written
    assert re.fullmatch(shown, statuses(written)[0])


def test_notes_have_a_line_of_their_own(mpi: str, tmp_path: Path) -> None:
    words = ["overhead", "put_latency", "--sizes", "8", "--rounds", "2"]  # pickle cannot do that
    code, written = ranks_on_terminal(mpi, tmp_path, *words)
    assert code == 0, written
    assert statuses(written)
    left_out = [line for line in screen(written) if "left out" in line]
    assert left_out
    assert all(line.startswith("omb-py: note: left out") for line in left_out)


@pytest.mark.long
@pytest.mark.parametrize("redirected", ["> out", "2> err", "| cat"])
def test_a_file_or_a_pipe_gets_none(mpi: str, tmp_path: Path, redirected: str) -> None:
    job = f"exec {mpi} -n 2 {OMB_PY} bcast -m 8 {redirected}"
    with own_temporary_folder() as environment:
        code, written = on_terminal(["sh", "-c", job], environment, tmp_path)
    kept = "".join(path.read_text() for path in tmp_path.glob("*") if path.is_file())
    assert code == 0, written
    assert "\x1b" not in written + kept
    assert "bcast 8 B" not in written + kept


def test_lines_for_a_log_are_asked_for(mpiexec: Callable[..., Finished]) -> None:
    job = mpiexec(2, "bcast", "--sizes", "8,16", "--progress", "on")
    assert job.code == 0, job.err
    assert "omb-py: bcast 8 B (1 of 2)" in job.err
    assert "\x1b" not in job.out + job.err


def test_off_is_off(mpi: str, tmp_path: Path) -> None:
    _, written = ranks_on_terminal(mpi, tmp_path, "bcast", "-m", "8", "--progress", "off")
    assert statuses(written) == []


SWEEP = """
name = "one"
description = "one point"
time_limit = "1m"
[[experiments]]
benchmarks = ["bcast"]
ranks = 2
nodes = 1
bindings = ["buffer"]
sizes = "8:16"
"""


@pytest.mark.long
def test_a_sweep_shows_its_rows_and_what_it_measures(mpi: str, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(SWEEP)
    with own_temporary_folder() as environment:
        environment["PATH"] = f"{Path(mpi).parent}:{environment['PATH']}"
        command = [OMB_PY, "sweep", "./one.toml"]
        code, written = on_terminal(command, environment, tmp_path)
    assert code == 0, written
    plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", written)
    assert re.search(r"0 of 2 rows \S+ +bcast .* 2 ranks on 1 node: 8 B", plain)
    assert "complete: omb-py report sweeps/one-local" in plain
