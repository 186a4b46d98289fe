"""Checkpoints without MPI: intervals, contents, who reads whose data, the folder, options."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from math import inf, isclose, sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from omb_py.cli.checkpoint import command
from omb_py.core.errors import MissingPackageError, OmbError
from omb_py.measure.checkpoints import interval
from omb_py.measure.checkpoints.content import CHUNK, fill, first_difference
from omb_py.measure.checkpoints.methods import GATHERED, TABLE, Place, usual
from omb_py.measure.checkpoints.rounds import Measured, Timed, check_space, default_shift
from omb_py.measure.checkpoints.rows import overhead

COSTS = st.floats(1e-3, 1e4)
SHARES = st.floats(1e-7, 0.5)
"""A checkpoint's cost over the mean time between failures."""


def best_efficiency(cost: float, restart: float, mtbf: float) -> float:
    """The maximum over the intervals, each 0.1 % longer than the one before it."""
    first, last = cost / 100, 20 * mtbf
    steps = np.geomspace(first, last, int(np.log(last / first) / 1e-3))
    return max(interval.efficiency(float(one), cost, restart, mtbf) for one in steps)


@given(COSTS, SHARES, st.floats(0, 10))
def test_daly_comes_closest_to_the_best_interval_of_the_model(
    cost: float, share: float, restarts: float
) -> None:
    mtbf, restart = cost / share, cost * restarts
    best = best_efficiency(cost, restart, mtbf)
    daly = interval.efficiency(interval.daly(cost, mtbf), cost, restart, mtbf)
    young = interval.efficiency(interval.young(cost, mtbf), cost, restart, mtbf)
    assert best * (1 - 5e-3) <= daly <= best * (1 + 1e-5)
    assert young <= daly * (1 + 1e-6)


@given(COSTS)
def test_the_two_intervals_are_one_where_failures_are_rare(cost: float) -> None:
    mtbf = 1e9 * cost
    assert isclose(interval.young(cost, mtbf), sqrt(2e9) * cost)
    assert isclose(interval.daly(cost, mtbf), interval.young(cost, mtbf), rel_tol=1e-4)


def test_checkpoints_that_take_longer_than_failures_leave_no_time() -> None:
    assert interval.daly(20.0, 10.0) == interval.daly(50.0, 10.0) == 10.0
    assert interval.efficiency(1.0, 1e6, 0.0, 1.0) == 0.0
    assert interval.efficiency(1.0, 0.0, 1e6, 1.0) == 0.0


@given(COSTS, SHARES, st.floats(1.5, 100))
def test_more_nodes_are_less_efficient(cost: float, share: float, more: float) -> None:
    few, many = cost / share, cost / share / more
    found = [interval.efficiency(interval.daly(cost, m), cost, cost, m) for m in (few, many)]
    assert 1 > found[0] > found[1] >= 0


def content(size: int, rank: int = 0, round_: int = 0) -> Any:
    data = np.empty(size, np.uint8)
    fill(data, rank, round_)
    return data


@given(st.integers(1, 3 * CHUNK), st.data())
def test_any_wrong_byte_is_found(size: int, draw: st.DataObject) -> None:
    data = content(size, 3, 7)
    assert first_difference(data, size, 3, 7) is None
    place = draw.draw(st.integers(0, size - 1))
    data[place] ^= draw.draw(st.integers(1, 255))
    assert first_difference(data, size, 3, 7) == place


def test_missing_bytes_and_too_many_are_found() -> None:
    data = content(100)
    assert first_difference(data[:60], 100, 0, 0) == 60
    assert first_difference(np.append(data, data), 100, 0, 0) == 100


@pytest.mark.parametrize("size", [64, CHUNK + 64])
def test_contents_differ_by_rank_and_round(size: int) -> None:
    for rank, round_ in ((1, 0), (0, 1)):
        assert first_difference(content(size, rank, round_), size, 0, 0) is not None


@given(st.integers(2, 6), st.integers(1, 8), st.booleans())
def test_every_rank_reads_what_another_node_wrote(nodes: int, each: int, turns: bool) -> None:
    places = [node for node in range(nodes) for _ in range(each)]
    places = sorted(places, key=lambda node: 0) if not turns else list(range(nodes)) * each
    shift = default_shift(places)
    ranks = len(places)
    assert all(places[rank] != places[(rank + shift) % ranks] for rank in range(ranks))


def test_on_one_node_the_next_rank_wrote_it() -> None:
    assert default_shift([0, 0, 0]) == 1
    assert default_shift([0]) == 0


def test_steps_after_a_failure_are_taken_and_the_first_one_is_said() -> None:
    def refuse(text: str) -> None:
        taken.append(text)
        raise OSError(text)

    taken: list[str] = []
    timed = Timed(("write", "close"), lambda part, error: OmbError(f"{part}: {error}"))
    timed.step("write", refuse, "full")
    timed.step("close", refuse, "not open")
    assert taken == ["full", "not open"]
    assert str(timed.failure) == "write: full"


def test_a_checkpoint_costs_what_it_adds_to_computing() -> None:
    times: dict[str, tuple[float, ...]] = {"total": (5.0, 7.0, 5.0), "blocking": (1.0, 1.5, 1.0)}
    times["compute alone"] = (3.5, 3.0, 6.0)
    found = Measured("async", 8, 2, times, {}, True)
    assert overhead(found) == (1.5, 4.0, 1.0), "no less than blocking"
    plain = Measured("shared", 8, 2, {"total": (5.0,), "blocking": (5.0,)}, {}, True)
    assert overhead(plain) == (5.0,)


def test_a_disk_without_room_is_said_before_anything_is_written(tmp_path: Path) -> None:
    check_space(str(tmp_path), 1)
    with pytest.raises(OmbError, match="free: lower --size, free space there, or name another"):
        check_space(str(tmp_path), 1 << 62)


def test_a_package_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)  # as Python has it where there is none
    comm: Any = SimpleNamespace(rank=0, size=1)
    with pytest.raises(MissingPackageError, match=r"needs the Python package h5py.*\[hdf5\]'"):
        TABLE["hdf5"].make(Place(comm, str(tmp_path), 8, 0))


def test_no_rank_gathers_more_than_it_may_have_memory_for() -> None:
    assert {*usual(GATHERED)} - {*usual(GATHERED + 1)} == {"gather"}


REMOVING = """
import os, signal, sys
from omb_py.measure.checkpoints.folder import Remover
remover = Remover()
remover.watch(sys.argv[1])
open(os.path.join(sys.argv[1], "part"), "w").write("x")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_no_folder(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    done = subprocess.run([sys.executable, "-c", REMOVING, str(folder)], timeout=60)
    assert done.returncode == -9
    deadline = time.monotonic() + 30
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not folder.exists()
    assert os.listdir(tmp_path) == []


WITHOUT_REMOVER = """
import os, signal, sys
from omb_py.measure.checkpoints.folder import Remover
remover = Remover()
child = int(open(f"/proc/self/task/{os.getpid()}/children").read())
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
remover.watch(sys.argv[1])
"""


def test_what_removes_the_folder_may_be_killed(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_REMOVER, str(tmp_path)], timeout=60)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--method hdf", "there is no hdf: choose from file_per_rank, shared"),
        ("--method ,", "--method: name one of file_per_rank"),
        ("--size 0", "a checkpoint has at least 1 byte"),
        ("--nodes 5", "--nodes needs --mtbf"),
        ("--mtbf 5 --nodes 0", "a job has at least 1 node"),
        ("--output x.txt", "name a file that ends in .csv or .json"),
    ],
)
def test_wrong_options_are_said(words: str, sentence: str) -> None:
    result = CliRunner().invoke(command, words.split())
    assert sentence in str(result.exception)


def test_failures_so_rare_that_they_never_happen_cost_nothing() -> None:
    assert interval.efficiency(1e6, 1e-3, 1.0, 1e30) == pytest.approx(1, abs=1e-6)
    assert interval.young(1.0, inf) == inf
