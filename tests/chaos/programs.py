"""What faults happen to: benchmarks, an application, sweeps; and their rows."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.chaos.faults import ROW_BY_ROW, SWEEPS
from tests.conftest import MPIEXEC, OMB_PY
from tests.hosts.jobs import OPEN_MPI, launcher
from tests.hosts.virtual_hosts import Hosts
from tests.sweeps.sweeping import MACHINE, SmallSweep, experiment

TIMEOUT = 4
"""Seconds of ``--timeout``."""

TIME_LIMIT = 8
"""Seconds of a sweep's ``time_limit``, which each point has."""

PACE = {"iterations": 1_000_000_000, "max_time": 0.1}
"""Options by which a row takes a tenth of a second."""

SIZES = ",".join(str(2**power) for power in range(2, 18))
MATRICES = {"rows": 512, "inner": 512, "columns": 512, "repeats": 30}
RESULTS = "out"
"""The folder of results, in the folder of the run."""


@dataclass(frozen=True)
class Program:
    """A command that adds rows to tables.

    ``planned`` rows are there in the end; ``limit`` is the seconds after which the command itself
    ends what makes no progress.
    """

    command: list[str]
    folder: Path
    planned: int
    limit: float
    sweeps: bool

    @property
    def results(self) -> Path:
        """Where its results are."""
        return self.folder / RESULTS

    @property
    def tables(self) -> list[Path]:
        """The files of its rows that are there."""
        found = self.results.glob("points/*.csv" if self.sweeps else "rows.*")
        return sorted(found)

    def rows(self) -> int:
        """How many whole rows are there."""
        return sum(1 for path in self.tables for _ in rows_in(path))

    def records(self) -> Counter[str]:
        """Every whole line of every table that has a row: without one nothing was measured."""
        tables = [path for path in self.tables if any(rows_in(path))]
        return Counter(f"{path.name} {line.strip()}" for path in tables for line in whole(path))


def whole(path: Path) -> Iterator[str]:
    """The whole lines of a table: rows, and what is known of runs."""
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return
    for line in text.splitlines(keepends=True):
        if path.suffix == ".json":
            if is_json(line):
                yield line
        elif line.endswith("\n"):
            yield line


def is_json(text: str) -> bool:
    """Whether a text is a whole object."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def rows_in(path: Path) -> Iterator[dict[str, str]]:
    """The whole rows of a table, of an application those of the whole."""
    if path.suffix == ".json":
        items = map(json.loads, whole(path))
        yield from (item for item in items if "metadata" not in item)
        return
    lines = (line for line in whole(path) if not line.startswith("#"))
    rows = csv.DictReader(lines)
    yield from (row for row in rows if "application" not in row or not row["part"])


def broken(path: Path) -> list[str]:
    """Whole lines of a CSV table that are no rows of it."""
    if path.suffix == ".json":
        return []
    lines = [line for line in whole(path) if not line.startswith("#")]
    cells = [len(found) for found in csv.reader(lines)]
    return [line for line, count in zip(lines, cells, strict=True) if count != cells[0]]


def program(name: str, folder: Path, hosts: Hosts | None) -> Program:
    """The program of a name, on two hosts if there are any."""
    (folder / RESULTS).mkdir()
    found = sweep(name, folder, hosts) if name in SWEEPS else launched(name, folder, hosts)
    if hosts is None:
        return found
    return replace(found, command=hosts.first.inside(found.command, folder))


def launched(name: str, folder: Path, hosts: Hosts | None) -> Program:
    """A program that a launcher starts with two ranks."""
    start = [MPIEXEC, "-n", "2"] if hosts is None else launcher(2, 1, ("PYTHONPATH",))
    output = ["--output", f"{RESULTS}/rows.{'json' if name == 'allreduce' else 'csv'}"]
    words = f"--sizes {SIZES} -i {PACE['iterations']} --max-time 0.06".split()
    if name == "matmul":
        words = [word for option in MATRICES.items() for word in (f"--{option[0]}", f"{option[1]}")]
    command = [*start, OMB_PY, name, *words, "--timeout", str(TIMEOUT), *output, "-q"]
    return Program(command, folder, ROW_BY_ROW.get(name, 1), TIMEOUT, sweeps=False)


def sweep(name: str, folder: Path, hosts: Hosts | None) -> Program:
    """A sweep of two points: one row after another, or of an application."""
    head = f'name = "mine"\nretries = {0 if hosts else 1}\ntime_limit = "{TIME_LIMIT}s"\n'
    machine = MACHINE
    if name == "application":
        text = experiment(benchmarks="matmul", ranks=[1, 2], options=MATRICES)
        text = text.replace('sizes = "8:64"\n', "").replace('"native"', '"buffer"')
    else:
        text = experiment(bindings=["native", "buffer"], ranks=2, options=PACE)
    if hosts is not None:
        text = text.replace("ranks = 2", "ranks = 2\nnodes = 2")
        (folder / "hosts").write_text("".join(f"{host.name}\n" for host in hosts.hosts))
        kind = "openmpi" if OPEN_MPI else "mpich"
        machine = f'name = "here"\nlauncher = "{kind}"\noversubscribe = true\n'
        machine += f'nodes = 2\nhost_file = "{folder}/hosts"\n'
    small = SmallSweep(folder, head + text, machine)
    planned = ROW_BY_ROW.get(name, 2)
    return Program(small.command(), folder, planned, TIME_LIMIT, sweeps=True)
