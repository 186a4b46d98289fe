"""A sweep over two hosts: each point where it should be, and exactly the rows that are planned.

The hosts are virtual; the file of hosts in the machine's configuration is all that says where.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import Counter
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from tests.conftest import OMB_PY, rows_of, run, succeeded
from tests.helpers.waiting import wait_for
from tests.hosts import network
from tests.hosts.jobs import OPEN_MPI
from tests.hosts.test_hosts import assert_nothing_left, comments
from tests.hosts.virtual_hosts import Hosts, virtual_hosts
from tests.sweeps.sweeping import SmallSweep, toml

MACHINE = """\
name = "two-hosts"
launcher = "{launcher}"
host_file = "{host_file}"
nodes = 2
oversubscribe = true
"""
SWEEP = """\
name = "mine"
retries = 1

[[experiments]]
benchmarks = "latency"
bindings = "native"
nodes = [1, 2]
ranks = 2
sizes = "8:64"
options = {{ iterations = {iterations} }}

[[experiments]]
benchmarks = {collectives}
bindings = "native"
nodes = 2
ranks_per_node = [1, 2]
sizes = "8:64"
options = {{ iterations = {iterations} }}
"""
PLACES = {"latency": ("1x2", "2x1"), "allreduce": ("2x1", "2x2")}
HOSTS_OF = {"1x2": "node1:2", "2x1": "node1:1 node2:1", "2x2": "node1:2 node2:2"}
Row = tuple[str, str, str]
"""Benchmark, nodes and ranks on each as in 2x1, and bytes."""

OTHER_FILES = ("HYDRA_HOST_FILE", "PRTE_MCA_prte_default_hostfile")
"""Variables that would tell a launcher of hosts without the machine's configuration."""


@dataclass(frozen=True)
class SweepOverHosts(SmallSweep):
    """A small sweep that is started on the first of some hosts."""

    hosts: Hosts | None = None
    benchmarks: tuple[str, ...] = ()

    @property
    def planned(self) -> Counter[Row]:
        """Each row, once."""
        return Counter(
            (benchmark, place, size)
            for benchmark in self.benchmarks
            for place, size in product(PLACES[benchmark], ("8", "16", "32", "64"))
        )

    def command(self, *more: str) -> list[str]:
        """What a user would type there."""
        assert self.hosts is not None
        return self.hosts.first.inside(super().command(*more), self.folder)

    def found(self) -> Counter[Row]:
        """The rows that are there, and how often each is."""
        found: Counter[Row] = Counter()
        for path in self.place.glob("points/*.csv"):
            found.update((*told(path), row["bytes"]) for row in rows_of(path))
        return found


def told(path: Path) -> tuple[str, str]:
    """The benchmark and the place that the name of a point's file tells."""
    found = re.match(r"(\w+)-.*-(\d+x\d+)-", path.name)
    assert found is not None
    return found[1], found[2]


def over(hosts: Hosts, folder: Path, iterations: int, *collectives: str) -> SweepOverHosts:
    """A sweep of latency and these, on a machine of which the first two hosts are the nodes."""
    host_file = folder / "my hosts"
    host_file.write_text("".join(f"{host.name}\n" for host in hosts.hosts[:2]))
    launcher = "openmpi" if OPEN_MPI else "mpich"
    variables = hosts.environment
    environment = {name: variables[name] for name in variables if name not in OTHER_FILES}
    return SweepOverHosts(
        folder,
        SWEEP.format(iterations=iterations, collectives=toml(list(collectives))),
        MACHINE.format(launcher=launcher, host_file=host_file),
        environment,
        hosts,
        ("latency", *collectives),
    )


@pytest.mark.long
def test_each_point_runs_on_its_hosts_and_a_report_tells_of_it(near: Hosts, tmp_path: Path) -> None:
    sweep = over(near, tmp_path, 20, "allreduce")
    done = sweep.run()
    assert (done.code, done.err) == (0, ""), done.out
    assert sweep.found() == sweep.planned
    for path in sweep.place.glob("points/*.csv"):
        assert comments(path)["hosts"] == HOSTS_OF[told(path)[1]]
    before = sweep.lines()
    assert sweep.run().code == 0
    assert sweep.lines() == before
    succeeded(run([OMB_PY, "report", str(sweep.place)], {}, tmp_path, timeout=60))
    page = (sweep.place / "report.html").read_text()
    assert all(hosts in page for hosts in HOSTS_OF.values())


@pytest.mark.long
@pytest.mark.product(strength=0)
@pytest.mark.any_library
@pytest.mark.parametrize("victim", ["omb-py sweep", "mpiexec|prterun"])
def test_killed_sweep_leaves_nothing_and_resumes(near: Hosts, tmp_path: Path, victim: str) -> None:
    sweep = over(near, tmp_path, 300, "allreduce")
    with sweep.running() as process:
        wait_for(lambda: len(sweep.found()) > 4 and near.hosts[1].running())
        kill(process, victim)
        if victim == "omb-py sweep":
            assert_nothing_left(near)
            assert 4 < len(sweep.found()) < len(sweep.planned)
        else:
            assert process.wait(240) == 0
    before = sweep.lines()
    succeeded(sweep.run())
    assert before <= sweep.lines()
    assert sweep.found() == sweep.planned
    assert_nothing_left(near)


def kill(entered: subprocess.Popen[bytes], words: str) -> None:
    """Kill the first of a process's descendants whose command line matches."""
    parents = [entered.pid]
    for parent in parents:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        for child in map(int, children):
            line = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            if re.search(words, line.partition(" --")[0]):
                os.kill(child, signal.SIGKILL)
                return
            parents.append(child)
    raise AssertionError(f"nothing to kill matches {words}")


@pytest.mark.usefixtures("mpi", "can_make_hosts", "long_time")
def test_points_on_a_host_that_does_not_answer_fail_and_are_named(tmp_path: Path) -> None:
    with virtual_hosts(2) as hosts:
        sweep = over(hosts, tmp_path, 20, "allreduce")
        text = 'order = "as written"\ntime_limit = "8s"\n' + (tmp_path / "mine.toml").read_text()
        (tmp_path / "mine.toml").write_text(text)
        network.in_network(hosts.hosts[1].process, f"ip link set {network.CARD} down")
        done = sweep.run(timeout=240)
        network.in_network(hosts.hosts[1].process, f"ip link set {network.CARD} up")
        assert done.code == 1, done.out
        assert "left out 2 points on 2 nodes x 1 rank: 3 launches in a row failed" in done.out
        assert "no answer from node2" in done.out
        assert "1 point failed:" in done.out
        assert set(sweep.found()) == {("latency", "1x2", size) for size in ("8", "16", "32", "64")}
        again = sweep.run(timeout=240)
        assert (again.code, again.err) == (0, ""), again.out
        assert sweep.found() == sweep.planned
