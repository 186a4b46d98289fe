"""How many nodes there really are, and which points fit on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from omb_py.core.errors import OmbError
from omb_py.sweeps.commands import nodes_here
from omb_py.sweeps.points import SweepPoint, plan, split
from tests.helpers.refusals import refuses
from tests.sweeps.configs import machine, sweep

VARIABLES = {
    "pbs": "PBS_NODEFILE",
    "torque": "PBS_NODEFILE",
    "cobalt": "COBALT_NODEFILE",
    "lsf": "LSB_DJOB_HOSTFILE",
}
COUNTS = [
    ("slurm", "SLURM_JOB_NUM_NODES"),
    ("slurm", "SLURM_NNODES"),
    ("torque", "SLURM_JOB_NUM_NODES"),
]


@pytest.fixture(autouse=True)
def no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES.values(), *(name for _, name in COUNTS)):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("scheduler", VARIABLES)
@pytest.mark.parametrize(
    ("lines", "nodes"), [("a b", 2), ("a", 1), ("a a b b", 2), ("a b a b", 2), ("a a", 1)]
)
def test_a_node_file_names_each_node_once_or_once_for_each_slot(
    scheduler: str, lines: str, nodes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nodes").write_text("".join(f"{name}\n" for name in lines.split()))
    monkeypatch.setenv(VARIABLES[scheduler], str(tmp_path / "nodes"))
    assert nodes_here(machine(scheduler=scheduler)) == nodes


def test_hosts_of_the_machine_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").write_text("a slots=4\nb:2\n# c\n\n")
    (tmp_path / "job").write_text("a\n")
    monkeypatch.setenv("PBS_NODEFILE", str(tmp_path / "job"))
    where = machine(scheduler="pbs", host_file=str(tmp_path / "mine"))
    assert nodes_here(where) == 2


@pytest.mark.parametrize(("scheduler", "variable"), COUNTS)
def test_number_of_nodes(scheduler: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "3")
    monkeypatch.setenv("PBS_NODEFILE", "")  # Slurm's Torque commands leave it so
    assert nodes_here(machine(scheduler=scheduler)) == 3


def test_flux_says_it_by_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "flux").write_text('#!/bin/sh\n[ "$*" = "getattr size" ] && echo 4\n')
    (tmp_path / "flux").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert nodes_here(machine(scheduler="flux")) == 4


@pytest.mark.parametrize("scheduler", ["none", "pbs", "cobalt", "slurm", "lsf", "flux"])
def test_outside_a_job_nothing_says_it(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert nodes_here(machine(scheduler=scheduler)) is None


def test_a_file_without_a_host_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("# none\n")
    with refuses(OmbError, "nodes no host: name a line"):
        nodes_here(machine(host_file=str(tmp_path / "nodes")))


def nodes_of(points: list[SweepPoint]) -> set[int]:
    return {point.nodes for point in points}


def test_points_fit_or_need_more_nodes() -> None:
    config = sweep({"benchmarks": "barrier", "nodes": [1, 2, 4], "ranks_per_node": [2]})
    points = plan(config, machine(nodes=4)).points
    fitting, larger = split(points, 2)
    assert (nodes_of(fitting), nodes_of(larger)) == ({1, 2}, {4})
    assert split(points, None) == (list(points), [])
