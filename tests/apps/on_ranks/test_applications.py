"""Every application on real ranks, through every kind of binding, with its result checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.apps import APPLICATIONS
from omb_py.core.errors import ValidationError
from tests import ROOT
from tests.conftest import Run, rows_of, succeeded
from tests.helpers.battery import Battery, Line, completed, each_line, line

RANKS = (1, 2, 3, 4, 8)
NATIVE_RANKS = (2, 3)
QUICK = "--repeats 1 --warmup-repeats 0"
PROFILE = ROOT / "tests" / "data" / "mpitrace" / "thetagpu-gpu-8ranks.txt"
SMALL = {
    "dispatch": (
        "--tokens 60 --hidden 8 --experts 12 --top-k 3",
        "--tokens 61 --hidden 5 --experts 13 --popularity 4 --dtype float8 --exchange pairs",
    ),
    "halo": ("--rows 31 --columns 17 --steps 7", "--rows 31 --columns 17 --steps 4 --overlap"),
    "kmeans": tuple(
        "--samples 480 --features 4 --k-from 2 --k-to 9 --k-step 1 --lloyd-iterations 4 "
        f"--dtype float64 --divide {what}"
        for what in ("samples", "k")
    ),
    "knn": ("--samples 480 --queries 48 --features 4",),
    "matmul": ("--rows 48 --inner 32 --columns 40",),
    "merge": ("--rows 400 --keys 100", "--rows 101 --keys 1000 --payload 2 --exchange pairs"),
    "replay": (f"{PROFILE} --scale 0.001",),
    "train": ("--model resnet20 --samples 40 --batch 10 --epochs 2",),
    "transpose_sum": ("--size 48", "--size 37 --exchange pairs"),
}
"""For each application problems that are solved at once; rows that every number of ranks divides,
since objects cannot be divided unevenly."""


def problems(name: str) -> tuple[str, ...]:
    """The small problems of an application."""
    return tuple(f"{name} {options}" for options in SMALL[name])


LINES = [
    line(ranks, f"{problem} {QUICK} --binding {binding}")
    for name in SMALL
    for problem in problems(name)
    for ranks in RANKS
    for binding in (("buffer", "native") if ranks in NATIVE_RANKS else ("buffer",))
]
PHASES = ("distribute_s", "compute_s", "communicate_s", "wait_s", "other_s")


def test_every_application_is_tested() -> None:
    assert set(SMALL) == set(APPLICATIONS.builtin())


@pytest.mark.product(strength=1)
@each_line(LINES)
def test_results_are_those_of_the_sequential_program(battery: Battery, line: Line) -> None:
    record = completed(battery(line))
    (whole,) = record.measured
    assert whole["check"] == "Pass"
    assert whole["ranks"] == line.ranks
    ranks = [row for row in record.rows if row["rank"] is not None]
    assert [row["rank"] for row in ranks] == list(range(line.ranks))
    for row in ranks:
        assert sum(row[name] for name in PHASES) == pytest.approx(row["time_s"])
    assert whole["time_s"] == pytest.approx(max(row["time_s"] for row in ranks), rel=1e-3)


@pytest.mark.parametrize("scaling", ["strong", "weak"])
def test_speed_ups_have_both_references(mpiexec: Run, tmp_path: Path, scaling: str) -> None:
    words = f"matmul --rows 64 --repeats 1 --scaling {scaling} --output rows.csv".split()
    job = succeeded(mpiexec(2, *words))
    whole = rows_of(tmp_path / "rows.csv")[0]
    work = 2 if scaling == "weak" else 1
    for speedup, reference in (("speedup", "one_rank"), ("sequential_speedup", "sequential")):
        expected = work * float(whole[f"{reference}_s"]) / float(whole["time_s"])
        assert float(whole[speedup]) == pytest.approx(expected, rel=1e-4)
        assert whole[f"{speedup}_low"] == whole[speedup] == whole[f"{speedup}_high"]
    assert f"over {whole['sequential']}; repeats" in job.out


@pytest.mark.product(strength=1)
@each_line(
    line(2, f"{problem} {QUICK} --binding wrong", OMB_TEST_RANK=str(rank))
    for name in SMALL
    for problem in problems(name)
    for rank in (0, 1)
)
def test_a_wrong_element_is_found(battery: Battery, line: Line) -> None:
    record = battery(line)
    assert record.code == ValidationError.exit_code, record.error
    assert [row["check"] for row in record.measured] == ["Fail"]
