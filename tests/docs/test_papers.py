"""Each row of docs/papers.md has a claim, a command and a result; its command runs, made small."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests import ROOT
from tests.conftest import BIN, ENVIRONMENT, python_path, run, succeeded
from tests.docs.pages import DOCS
from tests.simulation.conftest import simgrid as simgrid  # a fixture of this module, too

TEXT = (DOCS / "papers.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?P<claim>[^|]+) \| (?P<command>`[^|`]+`) \| (?P<result>[^|]+) \|$", re.M)
ROWS = list(ROW.finditer(TEXT))
COMMANDS = [row["command"].strip("`") for row in ROWS]

SMALL = {
    r"omb-py sweep .*": " --dry-run",
    r".*omb-py (train|kmeans|transpose_sum|merge)\b.*": " --repeats 1 --warmup-repeats 0",
    r".*omb-py (programs|replay|overhead|profile|show|plot|simulate|watch)\b.*": "",
    r"mpiexec .*": " -i 2 -x 1",
}
"""What makes a command small, by the first pattern that it matches: a sweep is planned only,
applications and benchmarks measure once or twice."""


def small(command: str) -> str:
    """The command with options that make it take seconds."""
    return command + next(more for form, more in SMALL.items() if re.fullmatch(form, command))


def test_every_row_has_a_claim_a_command_and_a_result() -> None:
    lines = [line for line in TEXT.splitlines() if line.startswith("| ")]
    heads = [line for line in lines if "| command |" in line]
    assert len(lines) - len(heads) == len(ROWS) > 25


def test_every_picture_is_there() -> None:
    pictures = re.findall(r"\]\((figures/[^)]+)\)", TEXT)
    assert pictures
    assert all((DOCS / picture).is_file() for picture in pictures)


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_of_a_row_runs(
    mpi: str, command: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if "omb-py simulate" in command:
        request.getfixturevalue("simgrid")
    for name in ("results", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    path = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": python_path(ROOT)}
    environment = os.environ | ENVIRONMENT | path
    succeeded(run(["bash", "-c", small(command)], environment, tmp_path, timeout=200))
