"""Ranks that were started without MPI, by environment variables: real processes over TCP."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from omb_py.core.errors import UsageError
from omb_py.core.job import by_sockets
from tests.helpers.without_mpi import HOST, ended, start

QUICK = ("-i", "20", "-x", "2", "-m", "4:4096")


@pytest.mark.parametrize("binding", ["tcp", "unix", "asyncio", "multiprocessing", "grpc"])
def test_a_benchmark_runs_without_mpi(binding: str, tmp_path: Path) -> None:
    words = ("bibw", "-W", "4", "--binding", binding, "-c", *QUICK, "--output", "rows.csv")
    codes, out, error = ended(start(*words, cwd=tmp_path))
    assert codes == [0, 0], error
    assert out.count("Pass") == 11
    text = (tmp_path / "rows.csv").read_text()
    assert "# started_by: environment" in text
    assert "# mpi_library" not in text


def test_mpi4py_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "mpi4py.py").write_text("raise ImportError('mpi4py is not to be imported')")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    codes, _, error = ended(
        start("latency", "--binding", "tcp", *QUICK, PYTHONPATH={0: path, 1: path})
    )
    assert codes == [0, 0], error


def test_what_needs_mpi_says_so_once() -> None:
    codes, _, error = ended(start("put_latency", "--binding", "tcp", *QUICK))
    assert codes == [2, 2]
    assert error.count("start it with mpiexec") == 1
    assert "Traceback" not in error


def test_torchrun_is_said_to_start_no_mpi() -> None:
    started = start("latency", *QUICK, TORCHELASTIC_RUN_ID={0: "run", 1: "run"})
    codes, _, error = ended(started)
    assert codes == [5, 5]
    assert error.count("omb-py: ") == 1
    assert "binding buffer needs MPI, and torchrun starts ranks without it" in error


def test_ranks_that_differ_end_together() -> None:
    codes, _, error = ended(start("latency", "--binding", "tcp", *QUICK, WORLD_SIZE={1: "3"}))
    assert 0 not in codes
    assert "WORLD_SIZE=3" in error


def test_a_rank_that_cannot_reach_rank_0_says_so() -> None:
    ranks = start("latency", "--binding", "tcp", *QUICK, MASTER_ADDR={1: "nowhere.invalid"})
    _, _, error = ended(ranks[1:])
    ranks[0].kill()
    ended(ranks[:1])
    assert error.count("rank 1: cannot reach rank 0 at nowhere.invalid") == 1


def test_what_bindings_add_is_measured_without_mpi() -> None:
    words = "overhead allreduce --bindings tcp,asyncio --sizes 8 -i 60 --rounds 6".split()
    codes, out, error = ended(start(*words, ranks=3))
    assert codes == [0, 0, 0], error
    assert "asyncio's streams (asyncio - tcp)" in out


def killed_when_connected(ranks: list[subprocess.Popen[str]], victim: int) -> None:
    out = ranks[0].stdout
    assert out is not None
    while "Size" not in out.readline():
        pass
    time.sleep(0.3)
    ranks[victim].send_signal(signal.SIGKILL)


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_killed_rank_ends_the_others(victim: int) -> None:
    words = ("multi_lat", "--binding", "tcp", "-m", "1:1", "-i", "100000000")
    ranks = start(*words, ranks=4)
    killed_when_connected(ranks, victim)
    codes, _, error = ended(ranks, within=10)
    assert 0 not in codes
    assert error.count(f"rank {victim} ended without saying why") == 1


def test_a_port_in_use_is_said() -> None:
    with socket.create_server((HOST, 0)) as listener:
        port = str(listener.getsockname()[1])
        ranks = start("latency", "--binding", "tcp", ranks=1, MASTER_PORT={0: port})
        codes, _, error = ended(ranks)
    assert codes == [2]
    assert f"MASTER_PORT={port}" in error


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR and MASTER_PORT not"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "not below WORLD_SIZE=2"),
        ({"RANK": "-1", "WORLD_SIZE": "2"}, "RANK=-1 is no number"),
    ],
)
def test_an_environment_that_contradicts_itself_is_refused(
    variables: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = {} if "MASTER_ADDR" in sentence else {"MASTER_ADDR": HOST, "MASTER_PORT": "1"}
    for name, value in (variables | place).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=sentence):
        by_sockets.environment()


@pytest.mark.skipif(find_spec("ucxx") is not None, reason="ucxx is installed")
def test_what_is_missing_is_said_once_and_starts_no_mpi() -> None:
    codes, _, error = ended(start("latency", "--binding", "ucxx", *QUICK, ranks=3))
    assert codes == [5, 5, 5]
    assert error.count("[ucxx]'") == 1
    assert "Abort" not in error


def test_a_rank_that_is_left_over_silences_no_other_command(tmp_path: Path) -> None:
    codes, out, _ = ended(start("list", ranks=2, cwd=tmp_path))
    assert codes == [0, 0]
    assert out.count("bindings: ") == 2


def test_variables_of_torchrun_left_over_under_mpiexec_are_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in by_sockets.VARIABLES:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("PMI_RANK", "0")
    assert by_sockets.environment() is None
