"""A loader that starves a training on real ranks, its cure, and files that are not as they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omb_py.tracing import records
from omb_py.tracing.efficiency.runs import load
from tests.conftest import OMB_PY, Finished, rows_of
from tests.helpers.battery import Battery, Line, line
from tests.mpi.test_failing_well import assert_failed_well
from tests.mpi.test_train import ONCE

FILES = f"--loader files --samples 40 --batch 10 --epochs 2 {ONCE}"
REAL = f"train --data generated --hidden 8 --layers 3 {FILES}"
REPLAYED = f"train --model resnet110 --sample-time 0 {FILES}"

LINES = [
    line(ranks, f"{which} {way}")
    for which in (REAL, REPLAYED)
    for way in ("", "--workers 0", "--workers 3 --prefetch 1", "--scaling weak")
    for ranks in (1, 3)
] + [
    line(2, f"train --data generated --model cnn {FILES} --binding native"),
    line(2, f"{REAL} --data digits"),
    line(3, f"{REAL} --samples 5 --batch 2"),  # a rank has none of a batch
]


@pytest.mark.parametrize("line", LINES, ids=str)
def test_what_is_learned_comes_from_files(battery: Battery, line: Line) -> None:
    record = battery(line)
    assert not record.error, record.error
    (whole,) = record.measured
    assert whole["check"] == "Pass"
    assert whole["load_s"] > 0
    ranks = [row for row in record.rows if row["rank"] is not None]
    phases = ("distribute", "compute", "communicate", "wait", "load", "other")
    for row in ranks:
        assert sum(row[f"{name}_s"] for name in phases) == pytest.approx(row["time_s"])
    assert "Load(s)" in record.out


SLOW = (
    "train --model resnet --layers 8 --samples 24 --batch 8 --epochs 2 --sample-time 4 "
    f"{ONCE} --no-check --loader files --preprocess-time 40 --prefetch 3"
)
"""A sample takes ten times as long to prepare as to compute with: for a batch of a rank, 160 ms.
Preparing is a sleep, and gradients are few, so that cores that others use change little."""


def share(record: Any) -> float:
    """Of a rank's time, what it waits for data."""
    assert not record.error, record.error
    (whole,) = record.measured
    return float(whole["load_s"] / whole["time_s"])


STARVED, ALONE, FED = (line(2, f"{SLOW} --workers {workers}") for workers in (1, 0, 12))


@pytest.mark.parametrize(("starved", "fed"), [(STARVED, FED), (ALONE, FED)], ids=str)
def test_a_training_starves_and_more_workers_cure_it(
    battery: Battery, starved: Line, fed: Line
) -> None:
    hungry, cured = share(battery(starved)), share(battery(fed))
    assert hungry > 0.5
    assert cured < 0.6 * hungry


@pytest.mark.parametrize("line", [FED], ids=str)
def test_what_is_waited_for_data_is_told(battery: Battery, line: Line) -> None:
    record = battery(line)
    (told,) = [row for row in record.rows if row["part"] == "Waiting for data"]
    ranks = [row for row in record.rows if row["rank"] is not None]
    longest = [row["load_s"] / (row["time_s"] - row["distribute_s"]) for row in ranks]
    phases = ("compute", "communicate", "wait", "load")
    shortest = [row["load_s"] / sum(row[f"{name}_s"] for name in phases) for row in ranks]
    low, high = (100 * sum(shares) / len(shares) for shares in (longest, shortest))
    assert 0.99 * low <= told["value"] <= 1.01 * high, "the epochs have a part of the other time"
    (size,) = [row for row in record.rows if row["part"] == "Bytes of a sample"]
    assert size["value"] == 3 * 32 * 32 + 8


@pytest.mark.any_library
def test_timeline_and_efficiency_tell_loading_from_computing(
    mpiexec: Callable[..., Finished], tmp_path: Path
) -> None:
    done = mpiexec(2, "profile", "--timeline", "timeline.json", OMB_PY, *SLOW.split())
    assert done.code == 0, done.err
    for record in records.read_folder(tmp_path / "omb-profile"):
        spans = [event for event in record.events if event["kind"] == records.Kind.SPAN]
        names = [record.name(int(event["name"])) for event in spans]
        assert names.count("load") == 6
    (run,) = load([str(tmp_path / "omb-profile")])
    factors = run.efficiency
    assert factors.loading is not None
    assert 0 < factors.loading < 0.8
    product = factors.load_balance * factors.communication * factors.loading
    assert factors.parallel == pytest.approx(product)


@pytest.mark.any_library
def test_a_folder_is_written_once_and_files_that_changed_are_named(
    mpiexec: Callable[..., Finished], tmp_path: Path
) -> None:
    words = [*REAL.split(), "--data-folder", "data"]
    folder = tmp_path / "data" / "samples-40"

    def times() -> dict[str, int]:
        return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}

    assert mpiexec(2, *words, "--output", "rows.csv").code == 0
    assert float(rows_of(tmp_path / "rows.csv")[0]["load_s"]) > 0
    before = times()
    assert mpiexec(2, *words).code == 0
    assert times() == before
    assert_failed_well(mpiexec(2, *words, "--seed", "2"), "seed 1, not 2", "--data-folder")
    (data,) = folder.glob("*.bin")
    whole = data.read_bytes()
    data.write_bytes(whole[: len(whole) // 2])
    assert_failed_well(mpiexec(2, *words), f"{data.name} ends within sample 2")
    data.write_bytes(bytes(len(whole)))
    wrong = mpiexec(2, *words)
    assert wrong.code != 0
    assert "40 samples are READ WRONG" in wrong.out + wrong.err
    data.unlink()
    assert_failed_well(mpiexec(2, *words), "cannot read", data.name)


@pytest.mark.any_library
def test_a_temporary_folder_goes_whatever_a_job_ends_by(
    mpiexec: Callable[..., Finished], tmp_path: Path
) -> None:
    (tmp_path / "own").mkdir()
    own = {"TMPDIR": str(tmp_path / "own")}
    ended = mpiexec(2, *SLOW.split(), "--preprocess-time", "100000", "--timeout", "2", **own)
    assert ended.code != 0
    assert mpiexec(2, *REAL.split(), **own).code == 0
    assert not list((tmp_path / "own").glob("omb-py-samples-*"))


def test_a_folder_that_cannot_be_written_is_said(mpiexec: Callable[..., Finished]) -> None:
    job = mpiexec(2, *REAL.split(), "--data-folder", "/proc/none")
    assert_failed_well(job, "cannot write samples to /proc/none", "choose another --data-folder")
