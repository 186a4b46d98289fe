"""Ranks on the nodes of a PBS or Cobalt job, of which a node file names each once or more often.

The hosts are virtual, and the variables of the job are set by hand: no scheduler runs. Open MPI
reads them for the slots of each node.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from omb_py.sweeps.launchers import LAUNCHERS, Placement
from tests.conftest import ENVIRONMENT, rows_of, run, succeeded
from tests.hosts.jobs import OPEN_MPI
from tests.hosts.test_sweep_over_hosts import OTHER_FILES, told
from tests.hosts.virtual_hosts import Hosts
from tests.sweeps.sweeping import SmallSweep

# The tests' own environment lets Open MPI ignore slots.
SLOTS_COUNT = {"PRTE_MCA_rmaps_default_mapping_policy": ":nooversubscribe"}
LAUNCHER = "openmpi" if OPEN_MPI else "mpich"
ONCE, PER_RANK = 1, 2
"""How often a node file names a node: without ``mpiprocs`` in ``select``, and with it."""

MACHINE = f"""\
name = "here"
scheduler = "{{scheduler}}"
launcher = "{LAUNCHER}"
nodes = 2
cores_per_node = 4
"""
SWEEP = """\
name = "mine"
retries = 0

[[experiments]]
benchmarks = "barrier"
bindings = "native"
nodes = [1, 2]
ranks_per_node = [2, 4]
options = { iterations = 5 }
"""


def job(hosts: Hosts, folder: Path, scheduler: str, lines: int) -> dict[str, str]:
    """The variables of a job on the first two hosts."""
    nodes = folder / "nodes"
    nodes.write_text("".join(f"{host.name}\n" * lines for host in hosts.hosts[:2]))
    name = scheduler.upper()
    environment = {f"{name}_JOBID": "12.server", f"{name}_NODEFILE": str(nodes)}
    return environment | ({"PBS_ENVIRONMENT": "PBS_BATCH"} if scheduler == "pbs" else {})


def variables(hosts: Hosts) -> dict[str, str]:
    """What launchers need to reach the hosts, without the files that name all of them."""
    found = hosts.environment
    return {name: found[name] for name in found if name not in OTHER_FILES} | SLOTS_COUNT


@dataclass(frozen=True)
class SweepInJob(SmallSweep):
    """A small sweep that a job starts on its first node."""

    hosts: Hosts | None = None

    def command(self, *more: str) -> list[str]:
        """What the job's script says."""
        assert self.hosts is not None
        return self.hosts.first.inside(super().command(*more), self.folder)


JOBS = pytest.mark.parametrize(
    ("scheduler", "lines"), [("pbs", ONCE), ("pbs", PER_RANK), ("cobalt", ONCE)]
)


@pytest.mark.long
@pytest.mark.product(strength=0)
@JOBS
def test_sweep_measures_each_point(near: Hosts, tmp_path: Path, scheduler: str, lines: int) -> None:
    environment = variables(near) | job(near, tmp_path, scheduler, lines)
    machine = MACHINE.format(scheduler=scheduler)
    sweep = SweepInJob(tmp_path, SWEEP, machine, environment, near)
    succeeded(sweep.run())
    measured = {told(path)[1]: len(rows_of(path)) for path in sweep.place.glob("points/*.csv")}
    assert measured == dict.fromkeys(("1x2", "1x4", "2x2", "2x4"), 1)


@pytest.mark.long
@pytest.mark.product(strength=1)
@pytest.mark.parametrize("nodes", [1, 2])
@JOBS
def test_each_node_takes_one_to_eight_ranks(
    near: Hosts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    nodes: int,
    scheduler: str,
    lines: int,
) -> None:
    environment = variables(near) | job(near, tmp_path, scheduler, lines)
    for name in environment:
        monkeypatch.setenv(name, environment[name])
    row = LAUNCHERS[LAUNCHER]
    names = [host.name for host in near.hosts[:nodes]]
    for ranks in range(1, 9):
        place = Placement(nodes, ranks, cores=8, host_file=str(tmp_path / "hosts"))
        (tmp_path / "hosts").write_text("".join(f"{row.host_line(n, place)}\n" for n in names))
        given = row.environment(place) | row.in_job(place, tmp_path)
        # Of programs that end at once PRRTE may lose the end on another node.
        program = ["sh", "-c", "uname -n; sleep 0.2"]
        command = near.first.inside([*row.command(place), *program], tmp_path)
        done = run(command, ENVIRONMENT | environment | given, tmp_path, timeout=240)
        assert Counter(done.out.split()) == dict.fromkeys(names, ranks), done.err
