"""Sweeps that tests run: small ones, what they should leave behind, and what they did."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import (
    ENVIRONMENT,
    OMB_PY,
    Finished,
    own_temporary_folder,
    points_of,
    rows_in_text,
    run,
)
from tests.helpers.waiting import processes_with

MACHINE = """\
name = "here"
launcher = "auto"
oversubscribe = true
"""


def experiment(**values: object) -> str:
    """An experiment as TOML, from what differs from the plainest one."""
    plain = {
        "benchmarks": "allreduce",
        "bindings": "native",
        "ranks": [1, 2],
        "sizes": "8:64",
        "options": {"iterations": 20},
    }
    lines = (f"{name} = {toml(value)}" for name, value in (plain | values).items())
    return "\n".join(["[[experiments]]", *lines, ""])


def toml(value: object) -> str:
    """A value in TOML's words."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {toml(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class SmallSweep:
    """A sweep in a folder of its own, and a machine that is this one."""

    folder: Path
    text: str
    machine: str = MACHINE
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "mine.toml").write_text(self.text)
        (self.folder / "here.toml").write_text(self.machine)

    @property
    def place(self) -> Path:
        """The sweep's own folder."""
        return self.folder / "out"

    def command(self, *more: str) -> list[str]:
        """What a user would type."""
        words = ["sweep", "./mine.toml", "--machine", "./here.toml", "--folder", "out"]
        return [OMB_PY, *words, *more]

    def run(self, *more: str, timeout: float = 120) -> Finished:
        """Run it to its end."""
        return run(self.command(*more), self.environment, self.folder, timeout)

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """Start it; what is left of it at the end of the block is killed."""
        with own_temporary_folder() as own:
            process = subprocess.Popen(
                self.command(),
                env=own | self.environment,
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
            )
            try:
                yield process
            finally:
                process.kill()
                process.wait()

    def rows(self) -> Counter[tuple[str, ...]]:
        """Which rows are there, and how often each."""
        return rows_in(self.place)

    def lines(self) -> set[str]:
        """Every line of every table, whole."""
        return {
            line
            for text in points_of(self.place).values()
            for line in text.splitlines(keepends=True)
            if line.endswith("\n")
        }

    def left_behind(self) -> list[str]:
        """Processes that still measure for it."""
        return [*processes_with("", f"OMB_PY_SWEEP_POINT={self.place}:").values()]


def rows_in(folder: Path) -> Counter[tuple[str, ...]]:
    """Which rows the tables of a sweep's folder hold, and how often each."""
    found: Counter[tuple[str, ...]] = Counter()
    names = ("benchmark", "binding", "ranks", "bytes", "variant")
    for text in points_of(folder).values():
        found.update(tuple(row[name] for name in names) for row in rows_in_text(text))
    return found


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process as nobody can prevent."""
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


__all__ = ["ENVIRONMENT", "MACHINE", "SmallSweep", "experiment", "kill", "rows_in"]
