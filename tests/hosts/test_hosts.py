"""Benchmarks over several hosts: data that is right, times that are true, failures that are told.

The hosts are virtual; what is between them is TCP with a delay and losses.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from omb_py.results.metadata import placed_ranks
from tests.conftest import Finished, rows_of, succeeded
from tests.helpers.battery import Battery, Line, each_line, line, passes, refused
from tests.helpers.refusals import ENDED, assert_refused
from tests.helpers.waiting import ended_by_timeout, wait_for
from tests.hosts.fixtures import FAR
from tests.hosts.jobs import job
from tests.hosts.virtual_hosts import Hosts

DELAY_US = FAR.delay * 1e6
CHECKED = "-i 3 -x 1 -u 1 -c --sizes 8,20000"
SHORT = " --window-size 8"


def assert_failed_well(done: Finished, hosts: Hosts, words: str) -> None:
    """Assert that one sentence has all ``words``, soon, and that nothing is left on any host."""
    assert_refused(done, ENDED, words)
    assert_nothing_left(hosts)


def assert_nothing_left(hosts: Hosts) -> None:
    """Nothing that a job started still runs on a host when the launcher has been gone a while."""
    wait_for(lambda: not any(host.running() for host in hosts.hosts), 60)


def comments(path: Path) -> dict[str, str]:
    """The metadata above a table."""
    lines = [text[2:] for text in path.read_text().splitlines() if text.startswith("# ")]
    return dict(text.split(": ", 1) for text in lines if ": " in text)


@pytest.mark.long
@pytest.mark.any_library
def test_a_table_names_the_hosts_and_their_ranks(near: Hosts, tmp_path: Path) -> None:
    for ranks, per_host, hosts, placement, nodes in (
        (6, 2, "node1:2 node2:2 node3:2", "in blocks", (0, 0, 1, 1, 2, 2)),
        (6, 1, "node1:2 node2:2 node3:2", "0,1,2,0,1,2", (0, 1, 2, 0, 1, 2)),
        (2, 1, "node1:1 node2:1", None, (0, 1)),
        (2, 2, "node1:2", None, (0, 0)),
    ):
        output = tmp_path / f"{ranks}x{per_host}.csv"
        done = job(
            *(near, ranks, per_host, "allreduce", "-i", "3", "-x", "1", "--sizes", "8", "-c"),
            *("--output", str(output)),
            folder=tmp_path,
        )
        assert done.code == 0, done.err
        metadata = comments(output)
        assert (metadata["hosts"], metadata.get("placement")) == (hosts, placement)
        assert placed_ranks(metadata, ranks) == nodes
        assert comments(output)["ranks"] == str(ranks)
        assert [row["validation"] for row in rows_of(output)] == ["Pass"]


@pytest.mark.long
def test_latency_between_hosts_is_the_networks(far: Hosts, tmp_path: Path) -> None:
    found = {}
    for per_host in (1, 2):
        output = tmp_path / f"{per_host}.csv"
        options = ("--sizes", "8", "-i", "200", "-x", "5")
        done = job(
            *(far, 2, per_host, "latency", *options, "--output", str(output)), folder=tmp_path
        )
        assert done.code == 0, done.err
        found[per_host] = float(rows_of(output)[0]["sample_min_us"])
    assert found[1] >= DELAY_US
    assert found[2] < DELAY_US / 2


def lines(ranks: int, bindings: str, names: str) -> list[Line]:
    """A line for each of some benchmarks by each of some bindings."""
    return [
        line(ranks, f"{name} {CHECKED} --binding {binding}{SHORT if 'bw' in name else ''}")
        for binding in bindings.split()
        for name in names.split()
    ]


OVER_THREE = (
    lines(6, "buffer native", "allreduce alltoallv bcast bw_fan_in bw_fan_out neighbor_allgather")
    + lines(6, "buffer", "reduce_scatter allreduce_persistent ineighbor_alltoallw")
    + lines(6, "pickle", "allreduce bw_fan_in")
)
BETWEEN_TWO = lines(2, "buffer native", "latency put_latency get_bw") + lines(
    2, "buffer", "latency_mt acc_latency partitioned_latency"
)
WINDOWS = [
    line(2, f"put_latency {CHECKED} -w {kind} -s {synchronization}")
    for kind in ("create", "allocate", "dynamic")
    for synchronization in ("lock", "fence", "pscw")
]


@pytest.mark.long
@pytest.mark.product
@each_line(OVER_THREE, BETWEEN_TWO, WINDOWS)
def test_data_arrives_although_packets_are_lost(far_battery: Battery, line: Line) -> None:
    passes(far_battery(line), rows=2)


@each_line(line(6, "graph_create -i 3 -x 1"), line(6, "barrier -i 3"))
def test_what_has_no_data(far_battery: Battery, line: Line) -> None:
    assert far_battery(line).code == 0
    assert len(far_battery(line).rows) == 1


@each_line(line(6, "allreduce --sync clock -i 20 --sizes 8"))
def test_clocks_that_differ_by_days_make_a_common_start(far_battery: Battery, line: Line) -> None:
    (row,) = far_battery(line).rows
    assert DELAY_US <= row["clock_error_us"] < 1e6
    assert DELAY_US <= row["latency_us"] < 60e6


@pytest.mark.long
@each_line(line(2, "put_latency -w shared --sizes 8"), line(6, "put_mr -w shared --sizes 8"))
def test_memory_is_not_shared_between_hosts(far_battery: Battery, line: Line) -> None:
    refused(far_battery(line), "-w shared needs all ranks on one host")


def test_nodes_with_different_numbers_of_ranks_do_not_fan_in(near: Hosts, tmp_path: Path) -> None:
    done = job(near, 3, 2, "bw_fan_in", "--sizes", "8", folder=tmp_path)
    assert_failed_well(done, near, "3 ranks are on 2 nodes the same number of ranks")


@pytest.mark.long
@pytest.mark.product(strength=0)
@pytest.mark.parametrize("name", ["file_write", "file_read_all"])
def test_a_file_is_everybodys_in_a_folder_that_is(near: Hosts, tmp_path: Path, name: str) -> None:
    words = (name, *CHECKED.split(), "--file", str(tmp_path / "data"))
    done = succeeded(job(near, 3, 1, *words, folder=tmp_path))
    assert [cells[-1] for cells in done.rows] == ["Pass", "Pass"]


@pytest.mark.product(strength=0)
@pytest.mark.parametrize("name", ["file_write", "file_read_all"])
def test_a_file_in_a_folder_of_each_host_is_refused(near: Hosts, tmp_path: Path, name: str) -> None:
    path = f"{near.environment['TMPDIR']}/data"
    done = job(near, 3, 1, name, *CHECKED.split(), "--file", path, folder=tmp_path)
    assert_failed_well(done, near, "rank 1 on node2 in a folder that all hosts share")
    assert files_on(near, 0, path) == []


@pytest.mark.long
def test_the_parts_of_a_start_are_told_of_each_host(near: Hosts, tmp_path: Path) -> None:
    output = tmp_path / "start.csv"
    done = succeeded(job(near, 3, 1, "import_time", "--output", str(output), folder=tmp_path))
    parts = {row["part"]: float(row["latency_max_us"]) for row in rows_of(output)}
    assert next(iter(parts)) == "interpreter"
    assert all(0 < parts[name] < done.seconds * 1e6 for name in ("interpreter", "total"))


def files_on(hosts: Hosts, number: int, folder: str) -> list[Path]:
    """The files that a host has in a folder."""
    done = subprocess.run(
        hosts.hosts[number].inside(["find", folder, "-type", "f"]),
        capture_output=True,
        text=True,
        check=False,
    )
    return [Path(name) for name in done.stdout.split()]


@pytest.mark.long
@pytest.mark.parametrize(
    ("binding", "words"),
    [("raising", "rank 2 RuntimeError: the network is on fire"), ("killed", "")],
)
def test_failing_remote_rank_ends(near: Hosts, tmp_path: Path, binding: str, words: str) -> None:
    output = tmp_path / "rows.csv"
    done = job(
        *(near, 3, 1, "allreduce", "--sizes", "4,8,16", "-i", "10", "--binding", binding),
        *("--output", str(output)),
        folder=tmp_path,
        OMB_TEST_RANK="2",
    )
    assert done.code != 0
    if words:
        assert_failed_well(done, near, words)
    assert_nothing_left(near)
    assert [row["bytes"] for row in rows_of(output)] == ["4"]


@pytest.mark.long
def test_hanging_rank_on_another_host_is_ended(near: Hosts, tmp_path: Path) -> None:
    words = ("bcast", "--sizes", "1,8", "-i", "10", "--binding", "hanging")

    def start(timeout: int) -> Finished:
        options = ("--timeout", f"{timeout}")
        return job(near, 3, 1, *words, *options, folder=tmp_path, OMB_TEST_RANK="2")

    done, seconds = ended_by_timeout(start, "8 bytes")
    assert_failed_well(done, near, f"no progress for {seconds} s --timeout")
