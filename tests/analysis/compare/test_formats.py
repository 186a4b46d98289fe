"""A comparison as other programs read it."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from omb_py.analysis.compare.side_by_side import COLUMNS, compare
from omb_py.analysis.compare.summary import guard
from omb_py.analysis.compare.text import escaped, github
from omb_py.cli.compare import command
from omb_py.core.errors import UsageError
from tests import ROOT

MPICH, OPEN_MPI = (ROOT / "results" / f"families-{name}.csv" for name in ("mpich", "openmpi"))


@pytest.fixture(scope="module")
def points() -> pd.DataFrame:
    found = compare(OPEN_MPI, MPICH, names=["open", "mpich"], launch_spread=0.03)
    return found[found["benchmark"].isin(["latency", "bw", "barrier"])]


def test_github_gets_an_annotation_for_each_reason(points: pd.DataFrame) -> None:
    lines = github(points, guard(points, 1.05)).splitlines()
    assert lines[0].startswith("::notice title=omb-py compare::mpich: 1.")
    assert "95 %25 interval" in lines[0]
    *errors, open_points = lines[1:]
    assert all(line.startswith("::error title=omb-py compare::mpich: ") for line in errors)
    assert open_points.startswith("::warning title=omb-py compare::cannot tell: ")
    slower = (points["verdict"] == "slower").sum()
    assert github(points, None).count("\n::warning ") == slower > 0
    assert escaped("a%\r\nb") == "a%25%0D%0Ab"


def test_undecided_points_are_annotated() -> None:
    unclear = compare(OPEN_MPI, MPICH, names=["open", "mpich"])
    unclear = unclear[unclear["benchmark"] == "latency"]
    assert (
        github(unclear, guard(unclear, 1.05)).count("\n::warning title=omb-py compare::cannot tell")
        == 1
    )


def run(*words: str) -> Result:
    arguments = [str(MPICH), str(OPEN_MPI), "--where", "benchmark=latency"]
    return CliRunner().invoke(command, [*arguments, *words], catch_exceptions=False)


def test_json_has_every_column_of_every_point(tmp_path: Path) -> None:
    printed = run("--format", "json", "--launch-spread", "3%", "--fail-above", "5%")
    document = json.loads(printed.stdout)
    assert [list(point) for point in document["rows"]] == [list(COLUMNS)] * len(document["rows"])
    assert list(document["verdicts"]) == ["families-openmpi"]
    assert all("allowed is 1.050x" in reason for reason in document["failures"])
    assert {"slowdown", "slowdown_low", "slowdown_high"} <= set(document["summary"][0])


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_nothing_else_stands_beside_a_document(kind: str, tmp_path: Path) -> None:
    printed = run("--format", kind)
    assert "families-openmpi: unclear" in printed.stderr
    target = tmp_path / f"out.{kind}"
    run("-o", str(target))
    assert target.read_text() == printed.stdout
    with pytest.raises(UsageError, match="--force"):
        run("-o", str(target))
