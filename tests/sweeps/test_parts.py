"""Points measured by a part of a launch's ranks, and the table of a sweep's titled experiments."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from omb_py.results.application import ApplicationRow
from omb_py.sweeps.commands import command
from omb_py.sweeps.folder import Attempt, Folder, PointState
from omb_py.sweeps.libraries import Installation
from omb_py.sweeps.points import SweepPoint, launched_together, plan
from omb_py.sweeps.sweep_job import SweepJob
from omb_py.sweeps.table import NAME, write
from tests.helpers.refusals import missing
from tests.sweeps.configs import machine, sweep

FOLDER = Folder(Path("/results"))
THREE = {"nodes": 3, "nics_per_node": 2}


def points(experiment: dict[str, Any]) -> tuple[SweepPoint, ...]:
    """The points of an experiment on three nodes of two network cards."""
    return plan(sweep(experiment), machine(**THREE)).points


def words(*found: SweepPoint) -> list[str]:
    """The words that measure points in one launch."""
    return command(found, FOLDER, Installation(machine(**THREE), "mpich"), installed=False)


@pytest.mark.parametrize(
    ("experiment", "ranks", "options"),
    [
        ({"part": "near"}, 2, "--pair near"),
        ({"part": "far"}, 2, "--pair far"),
        ({"benchmarks": "alltoall", "ranks_per_node": "nics", "part": "odd"}, 5, "--odd"),
    ],
)
def test_part_of_a_launch_measures_and_all_are_started(
    experiment: dict[str, Any], ranks: int, options: str
) -> None:
    (point,) = points({"ranks_per_node": 1, "nodes": "all", "sizes": 8} | experiment)
    assert (point.ranks, point.launched) == (ranks, 3 * point.ranks_per_node)
    text = shlex.join(words(point))
    assert not missing(f"-n {point.launched} run {options} --sizes 8 {FOLDER.csv(point)}", text)
    assert point.part in point.describe()


@pytest.mark.parametrize(
    "experiment",
    [
        {"ranks_per_node": 1, "nodes": 2, "part": ["near", "far"]},
        {"benchmarks": "alltoall", "ranks_per_node": 1, "nodes": 3, "part": "odd"},
    ],
)
def test_part_with_all_ranks_is_the_plain_point(experiment: dict[str, Any]) -> None:
    (point,) = points(experiment)
    (plain,) = points(experiment | {"part": "all"})
    assert point == plain
    assert "run" not in words(point)


def test_parts_are_points_of_their_own_and_launches_of_their_own() -> None:
    near, far = points({"ranks_per_node": 1, "nodes": 3, "part": ["near", "far"]})
    assert near.name != far.name
    assert launched_together((near, far)) == (near,)


def test_points_of_one_part_share_a_launch() -> None:
    experiment = {"benchmarks": ["latency", "bw"], "ranks_per_node": 1, "nodes": 3, "part": "far"}
    found = points(experiment)
    assert launched_together(found) == found
    text = shlex.join(words(*found))
    assert not missing(f"--pair far --summary {FOLDER.summary(found[0])}", text)


@pytest.mark.parametrize(
    ("experiment", "reason"),
    [
        ({"benchmarks": "barrier", "part": "far"}, "part far exactly 2 ranks"),
        ({"benchmarks": "kmeans", "part": "odd"}, "part odd share a launch"),
        ({"benchmarks": "mbw_mr", "part": "odd"}, "an even number"),
    ],
)
def test_part_that_a_benchmark_cannot_have_is_left_out(
    experiment: dict[str, Any], reason: str
) -> None:
    both = [{"ranks_per_node": 2, "nodes": 3} | experiment, {"nodes": 1}]
    found = plan(sweep(*both), machine(**THREE))
    assert len(found.points) == 1
    assert not missing(reason, found.left_out[0].describe())


def job_of(root: Path, *experiments: dict[str, Any]) -> SweepJob:
    """A sweep on three nodes with its folder."""
    what, where = sweep(*experiments, launches=3), machine(**THREE)
    return SweepJob(what, where, "mine", "here", plan=plan(what, where), folder=root)


def test_table_has_medians_of_launches_and_reasons_of_gaps(tmp_path: Path) -> None:
    asked = {"title": "Site A", "sizes": [8, 64], "ranks_per_node": 1, "nodes": 3, "part": "far"}
    on_gpus = {"title": "Site A", "ranks_per_node": "gpus", "buffers": "cupy"}
    job = job_of(tmp_path, asked, on_gpus, {"benchmarks": "bw", "nodes": 1})
    asked_for = [point for point in job.plan.points if point.part]
    for point, value in zip(asked_for, (1.0, 9.0, 2.0), strict=True):
        path = Folder(tmp_path).csv(point)
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"run,benchmark,bytes,ranks,latency_us\nr{value},latency,8,2,{value}\n")
    text = write(job)
    assert not missing("Site A 2 (far) 2.00 µs not measured yet has no CUDA or ROCM devices", text)
    assert "bw" not in text
    rows = list(csv.DictReader((tmp_path / NAME).read_text().splitlines()))
    found = [(row["bytes"], row["value"], row["runs"], row["missing"]) for row in rows]
    assert found == [("8", "2.0", "3", ""), ("64", "", "0", "not measured yet")]


def fill(root: Path, point: SweepPoint, *rows: str) -> None:
    """Write a point's file of results, as its launch would."""
    path = Folder(root).csv(point)
    path.parent.mkdir(exist_ok=True)
    head = "run,benchmark,bytes,part,ranks,latency_us,validation"
    path.write_text("\n".join([head, *(f"r{point.launch},{row}" for row in rows), ""]))


def table_rows(job: SweepJob, root: Path) -> list[dict[str, str]]:
    """The rows of the table that is written."""
    assert write(job)
    return list(csv.DictReader((root / NAME).read_text().splitlines()))


def test_table_of_parts_has_the_total_and_never_their_median(tmp_path: Path) -> None:
    job = job_of(tmp_path, {"title": "A", "benchmarks": "import_time"})
    parts = {"interpreter": 54e3, "omb-py": 178e3, "numpy": 295e3, "buffer": 300, "total": 711e3}
    for point in job.plan.points:
        fill(tmp_path, point, *(f"import_time,,{name},2,{us}," for name, us in parts.items()))
    (row,) = table_rows(job, tmp_path)
    assert (row["value"], row["runs"], row["component"]) == ("711000.0", "3", "")


def test_table_row_of_the_whole_wins_over_a_part_without_size(tmp_path: Path) -> None:
    asked = {"title": "A", "benchmarks": "neighbor_allgather", "ranks": 3, "sizes": 8}
    job = job_of(tmp_path, asked)
    for point in job.plan.points:
        part = "neighbor_allgather,,topology creation,3,184.0,"
        fill(tmp_path, point, part, "neighbor_allgather,8,,3,5.0,")
    (row,) = table_rows(job, tmp_path)
    assert (row["bytes"], row["value"], row["runs"]) == ("8", "5.0", "3")


def test_table_of_parts_without_a_total_has_a_row_for_each(tmp_path: Path) -> None:
    job = job_of(tmp_path, {"title": "A", "benchmarks": "init"})
    for point in job.plan.points:
        fill(tmp_path, point, "init,,revoke,2,10.0,", "init,,allreduce after,2,30.0,")
    rows = table_rows(job, tmp_path)
    assert [(row["component"], row["value"]) for row in rows] == [
        ("revoke", "10.0"),
        ("allreduce after", "30.0"),
    ]


@pytest.mark.slow
def test_table_tells_points_of_other_algorithms_and_options_apart(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"title": "A", "benchmarks": "allreduce", "sizes": 8}
    asked |= {"options": {"warmup": [1, 2], "iterations": 9}}
    job = job_of(tmp_path, asked | {"coll_algorithms": ["default", "ring"]})
    for point in job.plan.points:
        fill(tmp_path, point, "allreduce,8,,2,5.0,")
    rows = table_rows(job, tmp_path)
    assert len({row["options"] for row in rows}) == len(rows) == 4
    lines = [line for line in write(job).splitlines() if "5.00" in line]
    assert len(set(lines[1:])) == len(lines[1:]) == 3
    assert not missing("algorithm=ring, warmup=2", "\n".join(lines))
    assert "iterations" not in "\n".join(lines)  # the same in all rows


def test_table_with_long_reasons_stays_narrow(tmp_path: Path) -> None:
    job = job_of(tmp_path, {"title": "A", "sizes": [8, 64]})
    (point, *_) = job.plan.points
    reason = "the library has no such algorithm, and says so at great length: " * 3
    attempt = Attempt(
        started="now", seconds=1.0, exit_code=1, outcome="failed", rows=0, said=reason.strip()
    )
    Folder(tmp_path).note(point, PointState(attempts=(attempt,)))
    text = write(job)
    assert text.count(reason.strip()) == 1
    assert max(len(line) for line in text.splitlines() if "latency" in line) < 100
    assert [row["missing"] for row in table_rows(job, tmp_path)] == [reason.strip()] * 2


def test_table_leaves_out_wrong_data_and_says_so(tmp_path: Path) -> None:
    job = job_of(tmp_path, {"title": "A", "sizes": 8})
    for point, result in zip(job.plan.points, ("Pass", "Fail", "Pass"), strict=True):
        fill(tmp_path, point, f"latency,8,,2,{1.0 if result == 'Pass' else 9.0},{result}")
    (row,) = table_rows(job, tmp_path)
    assert (row["value"], row["runs"]) == ("1.0", "2")
    assert not missing("data was wrong 1 launch", row["missing"])
    assert "1.00 µs (1)" in write(job)


def test_table_with_an_application_has_its_time(tmp_path: Path) -> None:
    job = job_of(tmp_path, {"title": "A", "benchmarks": "kmeans"})
    for point, check in zip(job.plan.points, ("Pass", "Pass", "Fail"), strict=True):
        path = Folder(tmp_path).csv(point)
        path.parent.mkdir(exist_ok=True)
        rows = [
            {"run": point.name, "application": "kmeans", "ranks": 2, "time_s": 0.5, "check": check},
            {"run": point.name, "application": "kmeans", "part": "a", "rank": 0, "time_s": 0.1},
        ]
        pd.DataFrame(rows).reindex(columns=ApplicationRow.columns).to_csv(path, index=False)
    (row,) = table_rows(job, tmp_path)
    assert (row["value"], row["unit"], row["runs"]) == ("500000.0", "us", "2")
