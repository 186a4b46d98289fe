"""Points measured by a part of a launch's ranks, and the table of a sweep's titled experiments."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path
from typing import Any

import pytest

from omb_py.sweeps.batch import BatchJob
from omb_py.sweeps.commands import command
from omb_py.sweeps.folder import Folder
from omb_py.sweeps.points import SweepPoint, launched_together, plan
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
    return command(found, FOLDER, machine(**THREE), "mpich", installed=False)


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


def job_of(root: Path, *experiments: dict[str, Any]) -> BatchJob:
    """A sweep on three nodes with its folder."""
    what, where = sweep(*experiments, launches=3), machine(**THREE)
    return BatchJob(what, where, "mine", "here", plan=plan(what, where), folder=root)


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
    assert not missing("Site A 2 (far) 2.00 µs not measured yet has no GPUs", text)
    assert "bw" not in text
    rows = list(csv.DictReader((tmp_path / NAME).read_text().splitlines()))
    found = [(row["bytes"], row["value"], row["runs"], row["missing"]) for row in rows]
    assert found == [("8", "2.0", "3", ""), ("64", "", "0", "not measured yet")]
