"""Many benchmarks in one MPI job: command lines that tests ask about, and what came of them.

A test is parametrised with a `Line` and asks the fixture ``battery`` for its `Record`. The first
question starts one job for all lines, of the tests that are to run, that may share it; a job that
dies is started again after the line that it died of.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from omb_py.core.errors import LeftOutError
from tests import ROOT
from tests.conftest import MPIEXEC, run
from tests.helpers.refusals import ANY_CODE, assert_names

PROGRAM = ROOT / "tests" / "mpi" / "programs" / "battery.py"
FILE = "data"
"""What lines that need a file call it: each job makes and deletes it."""

SECONDS = 1800
MAX_DEATHS = 5
DIED = -1
BROKEN = re.compile(r"[\d, …]+ bytes(: not whole elements| of \w+: .*(at least|parts of whole))")
"""Sizes that are left out for the elements that they hold."""
"""The code of a line that ended its job, or that was not run since too many had."""


@dataclass(frozen=True)
class Line:
    """A command line of omb-py, on so many ranks, with further variables while it runs."""

    ranks: int
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.ranks} {' '.join(self.arguments)}"

    @property
    def binding(self) -> str:
        """The binding that it names."""
        given = self.arguments
        return given[given.index("--binding") + 1] if "--binding" in given else "buffer"


def line(ranks: int, text: str, **environment: str) -> Line:
    """A line of words."""
    return Line(ranks, tuple(text.split()), tuple(environment.items()))


@dataclass(frozen=True)
class Record:
    """What came of a line: rows, standard output and error, the last sentence and its exit code."""

    rows: list[dict[str, Any]]
    out: str
    err: str
    error: str
    code: int

    @property
    def measured(self) -> list[dict[str, Any]]:
        """The rows of the benchmark as a whole, which those of parts stand beside."""
        return [row for row in self.rows if row["part"] is None]

    @property
    def validation(self) -> set[str | None]:
        """What the rows say of their data."""
        return {row["validation"] for row in self.measured}


Start = Callable[[int, tuple[str, ...]], tuple[list[str], dict[str, str]]]
"""Gives, for ranks and a program, the command line of a job and its environment."""


def own_job(ranks: int, program: tuple[str, ...]) -> tuple[list[str], dict[str, str]]:
    """A job of this environment's MPI."""
    return [MPIEXEC, "-n", str(ranks), *program], {}


class Battery:
    """Runs lines in few jobs."""

    def __init__(self, lines: Iterable[Line], folder: Path, start: Start = own_job) -> None:
        self._lines = list(dict.fromkeys(lines))
        self._folder = folder
        self._start = start
        self._records: dict[Line, Record] = {}

    def __call__(self, wanted: Line) -> Record:
        """What came of a line."""
        if wanted not in self._records:
            self._run([one for one in self._lines if one.ranks == wanted.ranks])
        return self._records[wanted]

    def _run(self, lines: list[Line]) -> None:
        deaths = 0
        while lines:
            asked, told = self._folder / "lines.json", self._folder / "records.jsonl"
            told.write_text("")
            (self._folder / FILE).unlink(missing_ok=True)  # of a job that died
            asked.write_text(
                json.dumps(
                    [{"arguments": one.arguments, "environment": one.environment} for one in lines]
                )
            )
            program = (sys.executable, str(PROGRAM), str(asked), str(told))
            command, environment = self._start(lines[0].ranks, program)
            job = run(command, environment, self._folder, timeout=SECONDS)
            records = [Record(**json.loads(text)) for text in told.read_text().splitlines()]
            self._records |= zip(lines, records, strict=False)
            lines = lines[len(records) :]
            if lines:
                deaths += 1
                said = f"the job died with code {job.code}: {(job.out + job.err)[-3000:]}"
                dead = lines if deaths == MAX_DEATHS else lines[:1]
                self._records |= {one: Record([], "", "", said, DIED) for one in dead}
                lines = lines[len(dead) :]


def lines_of(request: pytest.FixtureRequest, fixture: str) -> list[Line]:
    """The lines of all tests that are to run and use the fixture."""
    found = []
    for item in request.session.items:
        if fixture not in getattr(item, "fixturenames", ()):
            continue
        parameters = getattr(item, "callspec", None)
        values = parameters.params.values() if parameters else ()
        found += [value for value in values if isinstance(value, Line)]
    return found


def each_line(*parts: Line | Iterable[Line]) -> pytest.MarkDecorator:
    """Return the mark that runs a test, as its argument ``line``, with each of the lines."""
    several = ([part] if isinstance(part, Line) else part for part in parts)
    return pytest.mark.parametrize("line", list(chain.from_iterable(several)), ids=str)


def completed(record: Record, broken: bool = False) -> Record:
    """Return what came of a line, after asserting that it ended without an error.

    ``broken``: or that it left out only sizes without whole elements.
    """
    if broken and record.code == LeftOutError.exit_code:
        parts = record.error.removeprefix("left out ").split("; and ")
        assert all(map(BROKEN.match, parts)), record.error
        return record
    assert not record.error, record.error
    assert record.code == 0
    return record


def passes(record: Record, rows: int = 1, broken: bool = False) -> Record:
    """Return what came of a line, after asserting that there is data, and all of it right."""
    completed(record, broken)
    assert len(record.measured) >= rows
    assert record.validation == {"Pass"}
    return record


def refused(record: Record, words: str) -> None:
    """Assert that nothing was measured and one line contains all ``words``."""
    assert record.code in ANY_CODE, record.error
    assert_names(record.error, words)
    assert record.measured == []
