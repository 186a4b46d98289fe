"""The slow link between virtual hosts is found, and named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omb_py
from omb_py.analysis.pairs.findings import judge
from omb_py.analysis.pairs.matrix import matrices
from tests.hosts.jobs import job
from tests.hosts.network import Link
from tests.hosts.virtual_hosts import Hosts, virtual_hosts

pytestmark = pytest.mark.any_library

SLOW = Link(delay=5e-4, slow=(2, 5), slow_delay=4e-2)


@pytest.fixture(scope="module")
def one_slow_link(can_make_hosts: None) -> Iterator[Hosts]:
    """Six hosts, two of which are far from each other."""
    with virtual_hosts(6, SLOW) as hosts:
        yield hosts


@pytest.mark.long
def test_one_slow_link_is_named(one_slow_link: Hosts, tmp_path: Path) -> None:
    done = job(
        *(one_slow_link, 6, 1, "pairs", "--sizes", "8", "-i", "10", "-x", "2"),
        *("--output", str(tmp_path / "p.csv")),
        folder=tmp_path,
    )
    assert done.code == 0, done.err
    (matrix,) = matrices(omb_py.load(tmp_path / "p.csv").pairs.to_dict("records"))
    slowest, *others = judge(matrix).findings  # a busy machine may add some
    assert slowest.subject == "the pair node2 and node5"
    assert all(other.factor < slowest.factor / 3 for other in others)
    assert f"# slow: {slowest.text}" in done.out


@pytest.mark.long
def test_one_rank_of_each_host_stands_for_it(one_slow_link: Hosts, tmp_path: Path) -> None:
    done = job(
        *(one_slow_link, 12, 2, "pairs", "--by", "node", "--sizes", "8", "-i", "3", "-x", "1"),
        *("--repeats", "1", "--rounds", "2", "--output", str(tmp_path / "p.csv")),
        folder=tmp_path,
    )
    assert done.code == 0, done.err
    rows = omb_py.load(tmp_path / "p.csv").pairs
    assert set(rows.sender) == {0, 2, 4, 6, 8, 10}
    assert {*zip(rows.sender, rows.sender_host, strict=True)} == {
        (2 * number, f"node{number + 1}") for number in range(6)
    }
