"""A comparison as other programs read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from omb_py.analysis.compare.side_by_side import COLUMNS
from omb_py.cli.compare import command
from omb_py.core.errors import UsageError
from tests import ROOT
from tests.helpers.refusals import refuses

MPICH, OPEN_MPI = (ROOT / "results" / f"families-{name}.csv" for name in ("mpich", "openmpi"))


def run(*words: str) -> Result:
    arguments = [str(MPICH), str(OPEN_MPI), "--where", "benchmark=latency"]
    return CliRunner().invoke(command, [*arguments, *words], catch_exceptions=False)


def test_json_has_every_column_of_every_point(tmp_path: Path) -> None:
    printed = run("--format", "json", "--launch-spread", "3%", "--fail-above", "5%")
    document = json.loads(printed.stdout)
    assert [list(point) for point in document["rows"]] == [list(COLUMNS)] * len(document["rows"])
    assert [one.split(":")[0] for one in document["summary"]] == ["families-openmpi"]
    assert all("allowed is 1.050x" in reason for reason in document["failures"])
    assert {"slowdown", "slowdown_low", "slowdown_high"} <= set(document["pairs"][0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["json", "csv"])
def test_nothing_else_stands_beside_a_document(kind: str, tmp_path: Path) -> None:
    printed = run("--format", kind)
    assert "families-openmpi: unclear" in printed.stderr
    target = tmp_path / f"out.{kind}"
    run("-o", str(target))
    assert target.read_text() == printed.stdout
    with refuses(UsageError, "--force"):
        run("-o", str(target))
