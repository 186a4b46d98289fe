"""Launchers and algorithms of other distributions, by entry points."""

import os
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from omb_py.core import registry
from omb_py.core.errors import UsageError
from omb_py.sweeps.launchers import BUILTIN, Launcher
from tests.conftest import Run, succeeded
from tests.helpers.refusals import refuses

SWEEP = """
name = "few"
[[experiments]]
benchmarks = "allreduce"
bindings = "buffer"
ranks_per_node = 2
nodes = 2
"""
MACHINE = """
name = "ranch"
cores_per_node = 4
nodes = 4
launcher = "corral"
"""


@pytest.fixture
def ranch(tmp_path: Path) -> Path:
    """A folder with a sweep, a machine that needs the plug-in, and its launcher."""
    (tmp_path / "few.toml").write_text(SWEEP)
    (tmp_path / "ranch.toml").write_text(MACHINE)
    return tmp_path


@pytest.mark.slow
def test_launcher_starts_points(ranch: Path, omb_py: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = ranch / "corral"
    launcher.write_text("#!/bin/sh\n")
    launcher.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ranch}:{os.environ['PATH']}")
    words = ("sweep", "few.toml", "--machine", "ranch.toml", "--dry-run", "--commands")
    assert "corral --head 4" in " ".join(omb_py(*words).out.split())


@pytest.mark.slow
def test_commands_are_shown_without_the_launcher(ranch: Path, omb_py: Run) -> None:
    done = omb_py("sweep", "few.toml", "--machine", "ranch.toml", "--dry-run", "--commands")
    assert done.code == 0, done.err
    assert " corral --head 4" in done.out


def test_an_algorithm_can_be_selected(mpiexec: Run) -> None:
    words = ("bcast", "--p2p-algorithm", "relay", "--sizes", "8,1000", "-i", "2", "-x", "0", "-c")
    done = succeeded(mpiexec(3, *words))
    assert done.out.count("Pass") == 2


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("omb_py:nothing", "loaded: 'omb_py' attribute 'nothing'"),
        ("no_such_module:ROW", "loaded: No module 'no_such_module'"),
        ("sys:path", "no Launcher"),
    ],
)
def test_unloadable_refused(value: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("lost", value, "omb_py.launchers")
    monkeypatch.setattr(registry, "_points", lambda group: {"lost": point})
    with refuses(UsageError, f"omb_py.launchers lost ({value}) {message}"):
        len(registry.Rows(BUILTIN, "omb_py.launchers", Launcher))


def test_ours_are_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("srun", "sys:path", "omb_py.launchers")
    monkeypatch.setattr(registry, "_points", lambda group: {"srun": point})
    assert dict(registry.Rows(BUILTIN, "omb_py.launchers", Launcher)) == BUILTIN
