"""Batch scripts for tests, and a folder in which they run among stand-ins for other programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from omb_py.sweeps import catalog, points, sweep_job
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.machine import Library, Machine
from omb_py.sweeps.sweep_job import SweepJob
from omb_py.sweeps.toml import read
from tests.sweeps.configs import machine, sweep

RECORDER = """\
#!/bin/bash
{
    printf '%s' "${0##*/}"
    for word; do printf '\\x1f%s' "$word"; done
    printf '\\x1e'
} >> "$RECORD"
"""

IN_JOB = """\
case "$1 $2" in
"job continue") echo "job 1234 goes on"; exit ;;
esac
"""
"""What a stand-in for `omb-py` answers to a script after its sweep."""

SCHEDULERS = ("qsub", "sbatch", "bsub", "flux")
"""Commands that submit jobs."""

MACHINE = """\
name = "here"
scheduler = "slurm"
launcher = "mpich"
nodes = 2
cores_per_node = 8
"""

SWEEP = """\
name = "mine"
[[experiments]]
benchmarks = "allreduce"
bindings = "buffer"
ranks = [2, 4]
nodes = [1, 2]
sizes = "8,16"
"""
UNFINISHED = 75
NODES = {"ranks": [1, 2, 4], "nodes": [1, 2], "benchmarks": "allreduce"}


def shipped_names(kind: str) -> list[str]:
    """The names of the configurations of a kind that come with the suite."""
    return sorted(path.stem for path in (catalog.folder() / kind).glob("*.toml"))


def described(plan: Sweep, where: Machine, **values: Any) -> SweepJob:
    """A sweep on a machine, to be divided into jobs."""
    sweep_job.check(where)
    words = {"sweep_word": plan.name, "machine_word": where.name} | values
    return SweepJob(sweep=plan, machine=where, plan=points.plan(plan, where), **words)


def shipped_job(sweep_name: str, machine_name: str) -> SweepJob:
    """A shipped sweep on a shipped machine."""
    plan = read(catalog.find("sweeps", sweep_name), Sweep)
    where = read(catalog.find("machines", machine_name), Machine)
    if any(one.libraries for one in plan.experiments):
        where = where.model_copy(update={"library": {"site": Library()}})
    return described(plan, where)


def own_job(
    scheduler: str = "slurm", job: Mapping[str, Any] | None = None, **values: Any
) -> SweepJob:
    """A small sweep on one and two nodes of a small machine, as one job."""
    where = machine(scheduler=scheduler, nodes=2, job=dict(job or {}), **values)
    return described(sweep(NODES), where)


@dataclass(frozen=True)
class Ran:
    """What running a script came to: its code and words, and the commands that were recorded."""

    code: int
    said: str
    commands: list[list[str]]

    def of(self, name: str) -> list[list[str]]:
        """The words of each command of a name."""
        return [words for program, *words in self.commands if program == name]

    @property
    def continued(self) -> list[list[str]]:
        """The options of each `omb-py job continue`, after job and sweep, before ``--seconds``."""
        found = (words for words in self.of("omb-py") if words[:2] == ["job", "continue"])
        return [words[words.index("--chain") : words.index("--seconds")] for words in found]


class Sandbox:
    """A folder to run scripts in, with no program on the PATH but stand-ins and what they need."""

    needed = ("bash", "mkdir", "install", "date", "touch", "cat", "sleep", "grep", "timeout", "awk")

    def __init__(self, root: Path, sweep_ends: str = "exit 0") -> None:
        """``sweep_ends`` is what `omb-py sweep` does after it is recorded."""
        self.root = root
        self.here = root / "here"
        self.here.mkdir()
        self.record = root / "record"
        self.programs = root / "programs"
        self.programs.mkdir()
        for name in self.needed:
            (self.programs / name).symlink_to(str(shutil.which(name)))
        self.stand_in("omb-py", IN_JOB + sweep_ends)
        for name in SCHEDULERS:
            self.stand_in(name, "echo 1234")
        self.stand_in("module")

    def stand_in(self, name: str, then: str = "") -> None:
        """Put a program on the PATH that is recorded and does ``then``."""
        path = self.programs / name
        path.write_text(f"{RECORDER}{then}\n")
        path.chmod(0o755)

    def enter(self, patch: pytest.MonkeyPatch, schedulers: bool = True) -> None:
        """Work in it, with the stand-ins for schedulers' commands or without them."""
        if not schedulers:
            for name in SCHEDULERS:
                (self.programs / name).unlink()
        for variable, value in self.environment.items():
            patch.setenv(variable, value)
        patch.chdir(self.here)

    @property
    def environment(self) -> dict[str, str]:
        """What programs find there."""
        own = {"PATH": str(self.programs), "RECORD": str(self.record), "HOME": str(self.root)}
        return own | {"LC_ALL": os.environ.get("LC_ALL", "C.UTF-8")}

    def start(self, script: Path, **variables: str) -> subprocess.Popen[str]:
        """Begin to run a script as a scheduler does."""
        return subprocess.Popen(
            ["bash", str(script)],
            cwd=self.here,
            env=self.environment | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def finish(self, started: subprocess.Popen[str]) -> Ran:
        """Wait for the end of a script."""
        said, _ = started.communicate(timeout=120)
        return Ran(started.returncode, said, self.commands())

    def commands(self) -> list[list[str]]:
        """The commands that were recorded, in order, each as its words."""
        text = self.record.read_text() if self.record.exists() else ""
        return [entry.split("\x1f") for entry in text.split("\x1e") if entry]

    def run(self, text: str, **variables: str) -> Ran:
        """Run a script from a copy elsewhere, as most schedulers do."""
        return self.finish(self.start(self.spooled(text), **variables))

    def spooled(self, text: str) -> Path:
        """A script where a scheduler would keep it."""
        path = self.root / "spool" / "12.script"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o700)
        return path

    def files(self) -> set[str]:
        """All files below, but for the stand-ins and the record."""
        kept = (self.programs, self.record)
        found = (path for path in self.root.rglob("*") if path.is_file() or path.is_symlink())
        return {
            str(path.relative_to(self.root))
            for path in found
            if not any(path.is_relative_to(other) for other in kept)
        }
