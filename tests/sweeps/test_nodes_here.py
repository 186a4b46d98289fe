"""How many nodes there really are, which points fit on them, and a line for each slot of a node."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import OmbError
from omb_py.sweeps.commands import nodes_here
from omb_py.sweeps.launchers import with_slots
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
    for name in (*VARIABLES.values(), *(name for _, name in COUNTS), *JOB, "PBS_PPN"):
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
def test_variable_of_the_scheduler_has_the_number_of_nodes(
    scheduler: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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


JOB = {"PBS_JOBID": "12[3].server", "COBALT_JOBID": "12"}
NODE_FILE = {"PBS_JOBID": "PBS_NODEFILE", "COBALT_JOBID": "COBALT_NODEFILE"}


def start(monkeypatch: pytest.MonkeyPatch, variable: str, path: Path) -> None:
    monkeypatch.setenv(variable, JOB[variable])
    monkeypatch.setenv(NODE_FILE[variable], str(path))


@pytest.mark.parametrize("variable", JOB)
def test_a_file_named_after_the_job_has_a_line_for_each_slot(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nodes").write_text("a\nb")
    start(monkeypatch, variable, tmp_path / "nodes")
    found = with_slots(3, tmp_path / "mine")
    assert found == {NODE_FILE[variable]: str(tmp_path / "mine" / JOB[variable])}
    assert (tmp_path / "mine" / JOB[variable]).read_text() == "a\nb\na\na\nb\nb\n"
    assert (tmp_path / "nodes").read_text() == "a\nb"


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        pytest.param("a\na\nb\nb\n", "", id="enough"),
        pytest.param("", "", id="empty"),
        pytest.param(None, "", id="unreadable"),
        pytest.param("a\n", "8", id="slots by a variable"),
    ],
)
def test_file_of_nodes_stays(
    text: str | None, slots: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is not None:
        (tmp_path / "nodes").write_text(text)
    start(monkeypatch, "PBS_JOBID", tmp_path / "nodes")
    if slots:
        monkeypatch.setenv("PBS_PPN", slots)
    assert with_slots(2, tmp_path / "mine") == {}


def test_outside_a_job_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert with_slots(2, tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


@given(lines=st.lists(st.sampled_from(["a", "b", "c.site"]), min_size=1), slots=st.integers(1, 9))
def test_lines_keep_their_numbers(lines: list[str], slots: int) -> None:
    """Open MPI starts its daemons by the number of the line that names a node first."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "nodes")
        path.write_text("".join(f"{line}\n" for line in lines))
        start(patch, "PBS_JOBID", path)
        ours = with_slots(slots, Path(folder, "mine")).get("PBS_NODEFILE", path)
        found = Path(ours).read_text().splitlines()
    assert found[: len(lines)] == lines
    before = Counter(lines)
    assert Counter(found) == {name: max(slots, before[name]) for name in before}
