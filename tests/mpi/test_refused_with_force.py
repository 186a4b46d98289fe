"""A command that is refused, or fails before its first row, leaves old files as they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Finished, Run, rows_of, succeeded
from tests.helpers import torchrun
from tests.helpers.torchrun import needs_torchrun

pytestmark = pytest.mark.slow

OLD = b"run,benchmark\nold,latency\nhalf a li"


def refused(start: Callable[[], Finished], path: Path) -> Finished:
    """Run a command that fails; ``path`` keeps its bytes."""
    path.write_bytes(OLD)
    done = start()
    assert done.code != 0
    assert "Traceback" not in done.err or "omb_py/" not in done.err
    assert path.read_bytes() == OLD
    return done


@pytest.mark.long
@pytest.mark.parametrize("suffix", ["csv", "json"])
@pytest.mark.parametrize(
    "words",
    [
        "latency --binding tcp -D vect:4:2",
        "scan --binding tcp",
        "latency --binding tcp --interface none0",
        "bw --binding tcp --samples rows.npz",
        "overhead latency --bindings tcp,asyncio -D vect:4:2",
        "pairs latency --binding tcp -D vect:4:2",
        "pairs allreduce",
        "kmeans --binding tcp --backend nccl",
        "file_write --file none/none",
    ],
)
def test_refused_force_leaves_a_file(mpiexec: Run, tmp_path: Path, words: str, suffix: str) -> None:
    more = ("--output", f"rows.{suffix}", "--force")
    refused(lambda: mpiexec(2, *words.split(), *more), tmp_path / f"rows.{suffix}")


def test_force_of_a_refused_command_leaves_samples(mpiexec: Run, tmp_path: Path) -> None:
    name = "samples.npy"
    words = ("latency", "--binding", "tcp", "-D", "vect:4:2", "--samples", name, "--force")
    refused(lambda: mpiexec(2, *words), tmp_path / name)


@pytest.mark.long
@needs_torchrun
@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        ("allreduce --sync clock", "or leave out --sync clock"),
        ("latency -D vect:4:2", "leave out -D"),
        ("get_latency", "start them with mpiexec"),
        ("halo", "halo needs MPI"),
    ],
)
def test_force_under_torchrun_leaves_the_file(tmp_path: Path, words: str, way_out: str) -> None:
    command = (*words.split(), "--binding", "tcp", "--output", "rows.csv", "--force")
    done = refused(lambda: torchrun.run(*command, folder=tmp_path), tmp_path / "rows.csv")
    said = [line for line in done.err.splitlines() if "omb-py: " in line]
    (sentence,) = [line for line in said if "note: " not in line]
    assert way_out in sentence


def test_a_refused_command_makes_no_file(mpiexec: Run, tmp_path: Path) -> None:
    done = mpiexec(2, "latency", "--binding", "tcp", "-D", "vect:4:2", "--output", "new.csv")
    assert done.code != 0
    assert not (tmp_path / "new.csv").exists()


def test_force_replaces_the_file_by_the_first_row(mpiexec: Run, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(OLD * 1000)
    words = ("latency", "--binding", "tcp", "-i", "5", "-m", "8:8", "--output", "rows.csv")
    succeeded(mpiexec(2, *words, "--force"))
    assert [row["bytes"] for row in rows_of(tmp_path / "rows.csv")] == ["8"]
    assert b"old,latency" not in (tmp_path / "rows.csv").read_bytes()
