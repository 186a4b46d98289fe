"""A machine's queue, by its configuration or by ``--queue``, limits nodes and walltime of jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omb_py.cli import command
from omb_py.core.errors import UsageError
from omb_py.sweeps import catalog, render, sweep_job
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.folder import Folder
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.points import plan
from omb_py.sweeps.run import orphaned
from omb_py.sweeps.toml import read
from tests.helpers.refusals import assert_names, missing, refuses
from tests.sweeps.configs import machine, sweep
from tests.sweeps.job_scripts import described

QUEUES = {
    "debug": {"max_nodes": 2, "max_walltime": "1h"},
    "prod": {"min_nodes": 10, "max_nodes": 496, "min_walltime": "5m"},
}
NODES = {"benchmarks": "bcast", "ranks_per_node": 1, "nodes": [1, 2, 4, 10, 16, "all"]}


def on(queue: str | None, **values: Any) -> Machine:
    """A machine whose jobs go to a queue of two whose limits are known."""
    job = {"queues": QUEUES, **({"queue": queue} if queue else {})}
    return machine(
        scheduler="pbs", nodes=600, gpus_per_node=values.pop("gpus", 0), job=job | values
    )


@pytest.mark.parametrize(
    ("queue", "nodes"),
    [
        ("debug", (1, 2)),
        ("prod", (10, 16, 496)),
        ("R123456", (1, 2, 4, 10, 16, 600)),
        (None, (1, 2, 4, 10, 16, 600)),
    ],
)
def test_points_are_those_that_fit_the_queue(queue: str | None, nodes: tuple[int, ...]) -> None:
    assert plan(sweep(NODES), on(queue)).node_counts == nodes


def test_points_outside_a_queue_name_other_queues() -> None:
    (left_out,) = plan(sweep(NODES), on("prod")).left_out
    words = "3 points (bcast on 1, 2 and 4 nodes): prod here 10 to 496 (--queue: debug 1 to 2)"
    assert_names(left_out.describe(), words)


@pytest.mark.parametrize(
    ("queue", "walltime", "words"),
    [
        ("debug", "2h", "queue debug of here at most 1h, 2h: another"),
        ("prod", "90s", "queue prod of here at least 5m, 90s: another"),
    ],
)
def test_walltime_outside_a_queue_refused(queue: str, walltime: str, words: str) -> None:
    with refuses(UsageError, words):
        sweep_job.divide(described(sweep(NODES), on(queue, walltime=walltime)), None, False)
    sweep_job.divide(described(sweep(NODES), on(None, walltime=walltime)), None, False)


BY_NODES = {"prod": {"max_nodes": 496, "max_walltime": [[24, "3h"], [99, "6h"], [496, "24h"]]}}


@pytest.mark.parametrize(("nodes", "hours"), [(16, 3), (24, 3), (25, 6), (99, 6), (496, 24)])
def test_a_walltime_limit_may_depend_on_the_nodes(nodes: int, hours: int) -> None:
    wide = sweep(NODES | {"nodes": sorted({16, nodes})})
    for walltime, fits in ((f"{hours}h", True), (f"{hours}h1s", False)):
        job = described(wide, on("prod", queues=BY_NODES, walltime=walltime))
        if fits:
            assert sweep_job.divide(job, nodes, False)[0].size == nodes
        else:
            with refuses(UsageError, f"{nodes} nodes at most {hours}"):
                sweep_job.divide(job, nodes, False)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"max_walltime": []}, "write a duration, or pairs"),
        ({"max_walltime": [24, "3h"]}, "write a duration, or pairs"),
        ({"max_walltime": [[24, "3h", 1]]}, "write a duration, or pairs"),
        ({"max_walltime": [[99, "3h"], [24, "6h"]]}, "must ascend from 1, not 99, 24"),
        ({"max_walltime": [[0, "3h"]]}, "must ascend from 1, not 0"),
        ({"max_walltime": [[24, "soon"]]}, "'soon' is no duration"),
        ({"min_nodes": 4, "max_nodes": 2}, "max_nodes = 2 is below min_nodes = 4"),
    ],
)
def test_wrong_limits_of_a_queue_refused(limits: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        machine(job={"queues": {"prod": limits}})


@pytest.mark.parametrize(
    ("most", "given", "jobs", "chain"),
    [
        (1, {}, 1, "none"),
        (2, {}, 1, "resubmit"),
        (3, {}, 1, "resubmit"),
        (4, {}, 3, "resubmit"),
        (3, {"chain": "none"}, 3, "none"),
        (1, {"chain": "resubmit"}, 1, "resubmit"),
    ],
)
def test_jobs_fit_the_queue(most: int, given: dict[str, str], jobs: int, chain: str) -> None:
    queues = {"few": {"max_nodes": 4, "max_queued": most}}
    job = described(sweep(NODES), on("few", queues=queues, **given))
    made = sweep_job.divide(job, None, False)
    assert len(made) == jobs
    assert {one.settings.chain for one in made} == {chain}
    assert f"--chain {chain} " in render.script(made[0])
    assert [one.nodes for one in sweep_job.divide(job, 2, False)] == [2]


def test_a_queue_of_parts_of_nodes_has_its_own_cores_and_gpus() -> None:
    queues = {"part": {"max_nodes": 1, "cores_per_node": 2, "gpus_per_node": 1}}
    part = on("part", queues=queues, gpus=4)
    found = plan(sweep({"benchmarks": "bcast", "ranks_per_node": [1, "cores", "gpus", 4]}), part)
    assert {point.ranks for point in found.points} == {1, 2}
    assert not missing("4 ranks 2 cores", found.left_out[0].describe())
    text = render.script(described(sweep(), part))
    assert "#PBS -l select=1:ncpus=2:mpiprocs=2:ngpus=1\n" in text
    assert on("other", queues=queues, gpus=4).gpus == 4


def test_queue_that_takes_no_point_refused() -> None:
    with refuses(UsageError, "prod of here 10 to 496 nodes (--queue: debug"):
        plan(sweep(NODES | {"nodes": [1, 2]}), on("prod"))


def test_a_queue_may_be_chosen_by_directives_of_its_own() -> None:
    queues = {"long": {"directives": ["--qos=long"]}}
    job = {"queue": "long", "queues": queues, "directives": ["--exclude=n1"]}
    text = render.script(described(sweep(), machine(scheduler="slurm", job=job)))
    assert "\n#SBATCH --qos=long\n#SBATCH --exclude=n1\n" in text
    assert "--partition=long" not in text


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    """What a command of the suite prints, on both streams."""
    capsys.readouterr()
    command.main(list(words), prog_name="omb-py", standalone_mode=False)
    return tuple(capsys.readouterr())  # type: ignore[return-value]


def test_script_for_another_queue_uses_its_limits(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("job", "render", "scaling", "--machine", "polaris", "--nodes", "16")
    script, left_out = run(capsys, *words, "--queue", "prod")
    assert "#PBS -q prod\n" in script
    assert "\nsweep=(scaling --machine polaris --queue prod --nodes 16)\n" in script
    points = "152 points (allreduce, bcast, alltoall, barrier on 1, 2, 4 and 8 nodes):"
    assert not missing(points, left_out)
    assert not missing("queue prod of polaris 10 to 496 (--queue: debug 1 to 2", left_out)
    out, _ = run(capsys, "sweep", "scaling", "--machine", "polaris", "--queue", "prod", "--dry-run")
    assert "16x8" in out
    assert "1x8" not in out


def test_render_and_submit_name_what_they_leave_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("quick", "--machine", "thetagpu", "--one-job")
    assert not missing("account --account", run(capsys, "job", "render", *words)[1])
    assert run(capsys, "job", "render", *words, "--account", "ours")[1] == ""
    words = ("scaling", "--machine", "polaris", "--one-job")
    left = "8 points (allreduce, bcast, alltoall, barrier on 2 nodes): 1 rank"
    for action in (("render",), ("submit", "--dry-run")):
        _, left_out = run(capsys, "job", *action, *words)
        assert left in left_out
        assert not missing("queue debug of polaris 1 to 2 nodes", left_out)


@pytest.mark.parametrize(
    "words",
    [
        ("job", "render", "quick", "--nodes", "1"),
        ("sweep", "quick", "--dry-run"),
        ("machine", "check"),
    ],
)
def test_an_unknown_queue_is_noted_with_those_that_are_known(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    polaris = ("polaris",) if words[0] == "machine" else ("--machine", "polaris")
    known = run(capsys, *words, *polaris, "--queue", "debug")[1]
    assert "not known" not in known
    _, noted = run(capsys, *words, *polaris, "--queue", "debg")
    (line,) = [line for line in noted.splitlines() if "not known" in line]
    assert_names(line, "note: limits queue debg of polaris 'debug'? debug, debug-scaling,")


def test_one_job_for_all_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("job", "render", "quick", "--machine", "polaris", "--queue", "debug-scaling")
    script, noted = run(capsys, *words)
    assert " --one-job " in script
    assert not missing("note: queue debug-scaling fewer jobs", noted)
    assert "fewer jobs" not in run(capsys, *words, "--one-job")[1]


def test_single_node_queue_has_no_range_of_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("sweep", "scaling", "--machine", "thetagpu", "--dry-run", "--queue", "single-gpu")
    out, err = run(capsys, *words)
    assert "takes 1 node (--queue: full-node 1 to 24, bigmem 1 to 2)" in " ".join(
        (out + err).split()
    )


def test_thetagpu_is_measured_on_all_of_its_nodes() -> None:
    thetagpu = read(catalog.find("machines", "thetagpu"), Machine)
    for name in ("scaling", "applications"):
        whole = read(catalog.find("sweeps", name), Sweep)
        assert plan(whole, thetagpu).node_counts == (1, 2, 4, 8, 16, 24)


def test_points_of_another_queue_are_no_strangers_in_the_folder(tmp_path: Path) -> None:
    folder, large = Folder(tmp_path), plan(sweep(NODES), on("prod"))
    (tmp_path / "points").mkdir()
    for point in large.points:
        folder.csv(point).touch()
    (tmp_path / "points" / "odd.csv").touch()
    assert orphaned(described(sweep(NODES), on("debug")), folder) == ["odd.csv"]
