"""Pools of workers: tasks arrive, come back whole, and what a worker's death says."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner

from omb_py.cli.tasks import command
from omb_py.core.errors import OmbError
from omb_py.measure import pools
from tests.conftest import BIN, Finished

HERE = ("serial", "thread", "process", "multiprocessing")


def request(*names: str) -> pools.TaskRequest:
    return pools.TaskRequest(names, 2, (0, 1000), tasks=10, rounds=2)


def test_pools_take_turns_and_each_size_has_every_benchmark() -> None:
    with ExitStack() as after:
        opened = pools.open_pools(request(*HERE), after)
        found = list(pools.measure(request(*HERE), opened))
    assert [(one[0].benchmark, one[0].size) for one in found] == [
        (name, size) for size in (0, 1000) for name in pools.BENCHMARKS
    ]
    for group in found:
        assert tuple(one.pool for one in group) == HERE
        assert all(len(one.seconds) == 2 and min(one.seconds) > 0 for one in group)


def test_a_task_computes_for_as_long_as_it_is_told_to() -> None:
    data = os.urandom(10)
    assert pools.task(data) is data
    longer = pools.TaskRequest(("serial",), 1, (8,), tasks=3, rounds=1, task_seconds=2e-3)
    with ExitStack() as after:
        opened = pools.open_pools(longer, after)
        assert all(
            one.seconds[0] >= 2e-3 for group in pools.measure(longer, opened) for one in group
        )


def die(data: bytes, seconds: float = 0.0) -> bytes:
    os._exit(9)


def other(data: bytes, seconds: float = 0.0) -> bytes:
    return data + b"x"


@pytest.mark.parametrize(
    ("pool", "task", "sentence"),
    [
        ("process", die, "a worker of pool process has died"),
        ("multiprocessing", die, "pool multiprocessing gave no result for 1 s"),
        ("thread", other, "pool thread gave back other bytes"),
    ],
)
def test_what_can_go_wrong_is_one_sentence(
    pool: str, task: Callable[..., bytes], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "PATIENCE", 1.0)
    with ExitStack() as after:
        opened = pools.open_pools(request(pool), after)
        monkeypatch.setattr(pools, "task", task)
        with pytest.raises(OmbError, match=sentence):
            list(pools.measure(request(pool), opened))


def test_the_command_writes_rows_that_other_commands_read(tmp_path: Path) -> None:
    words = ["tasks", "--pool", "serial,thread", "--workers", "2", "--tasks", "10", "--rounds", "2"]
    made = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "omb_py", *words, "--output", "tasks.csv"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert made.returncode == 0, made.stderr
    assert "mpi4py" not in made.stderr, "pools without MPI do not start it"
    lines = (tmp_path / "tasks.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert {row["benchmark"] for row in rows} == {*pools.BENCHMARKS, "tasks_start"}
    show = [sys.executable, "-m", "omb_py", "show", "tasks.csv", "--across", "binding"]
    shown = subprocess.run(
        [*show, "--base", "serial"], cwd=tmp_path, capture_output=True, text=True
    )
    assert "tasks_map, 2 ranks" in shown.stdout, shown.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--pool", "processes"), "there is no processes: choose from serial, thread"),
        (("--output", "x.txt"), "name a file that ends in .csv or .json"),
    ],
)
def test_wrong_options_are_said(words: tuple[str, ...], sentence: str) -> None:
    result = CliRunner().invoke(command, words)
    assert sentence in str(result.exception)


def test_ranks_are_workers(mpiexec: Callable[..., Finished]) -> None:
    finished = mpiexec(3, *"tasks --pool serial,mpi --tasks 10 --rounds 2 --sizes 1K".split())
    assert finished.code == 0, finished.err
    assert finished.out.count(" mpi ") == 4
    finished = mpiexec(1, "tasks", "--pool", "mpi")
    assert finished.code == 2
    assert "start it with mpiexec -n N" in finished.err


def test_workers_that_mpi_spawns_end_before_it_does(mpiexec: Callable[..., Finished]) -> None:
    if (BIN / "prterun").exists():
        pytest.skip("Open MPI spawns where it may use TCP, which tests leave out: it starts slowly")
    words = "tasks --pool serial,mpi_spawn,mpi_pool --workers 1 --tasks 10 --rounds 1 --sizes 1K"
    finished = mpiexec(1, *words.split())
    assert finished.code == 0, finished.err
    assert finished.out.count(" mpi_pool ") == 4
