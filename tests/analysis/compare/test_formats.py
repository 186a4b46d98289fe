"""A comparison as other programs read it."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from click.testing import CliRunner

from omb_py.analysis.compare.formats import escaped, github, json_document, junit
from omb_py.analysis.compare.side_by_side import COLUMNS, compare
from omb_py.cli.compare import command
from tests import ROOT

MPICH, OPEN_MPI = (ROOT / "results" / f"families-{name}.csv" for name in ("mpich", "openmpi"))


@pytest.fixture(scope="module")
def points() -> pd.DataFrame:
    found = compare(OPEN_MPI, MPICH, names=["open", "mpich"], launch_spread=0.03)
    return found[found["benchmark"].isin(["latency", "bw", "barrier"])]


def test_json_has_every_column_of_every_point(points: pd.DataFrame) -> None:
    document = json.loads(json_document(points, "open", 1.05))
    assert [list(point) for point in document["points"]] == [list(COLUMNS)] * len(points)
    assert [point["verdict"] for point in document["points"]] == points["verdict"].tolist()
    assert document["verdicts"]["mpich"].startswith("mpich: 1.")
    assert all("allowed is 1.050x" in reason for reason in document["failures"])
    assert {"slowdown", "slowdown_low", "slowdown_high"} <= set(document["summary"][0])


def test_github_gets_an_annotation_for_each_reason(points: pd.DataFrame) -> None:
    lines = github(points, "open", 1.05).splitlines()
    assert lines[0].startswith("::notice title=omb-py compare::mpich: 1.")
    assert "95 %25 interval" in lines[0]
    *errors, open_points = lines[1:]
    assert all(line.startswith("::error title=omb-py compare::mpich: ") for line in errors)
    assert open_points.startswith("::warning title=omb-py compare::cannot tell: ")
    slower = (points["verdict"] == "slower").sum()
    assert github(points, "open", None).count("\n::warning ") == slower > 0
    assert escaped("a%\r\nb") == "a%25%0D%0Ab"


def test_junit_has_a_case_for_each_point_and_fails_what_is_slower(points: pd.DataFrame) -> None:
    (suite,) = ElementTree.fromstring(junit(points, "open", None))
    assert suite.get("name") == "mpich against open"
    cases = {(case.get("classname"), case.get("name")): case for case in suite}
    assert len(cases) == len(points) + points["pair"].nunique() == int(suite.get("tests", ""))
    failed = [key for key, case in cases.items() if case.find("failure") is not None]
    of_points = [name for _, name in failed if name != "average"]
    assert len(of_points) == (points["verdict"] == "slower").sum()
    assert int(suite.get("failures", "")) == len(failed)
    assert "value" in {name for _, name in cases}, "a barrier has no size"


def test_what_is_missing_fails_only_under_a_limit(points: pd.DataFrame) -> None:
    alone = points.assign(verdict="only in base", ratio=None, slowdown_low=None)
    for allowed, tag in ((None, "skipped"), (1.05, "failure")):
        (suite,) = ElementTree.fromstring(junit(alone, "open", allowed))
        assert int(suite.get({"skipped": "skipped", "failure": "failures"}[tag], "")) == len(alone)


def test_undecided_points_are_in_every_format() -> None:
    unclear = compare(OPEN_MPI, MPICH, names=["open", "mpich"])
    unclear = unclear[unclear["benchmark"] == "latency"]
    document = json.loads(json_document(unclear, "open", 1.05))
    assert (len(document["undecided"]), document["failures"]) == (len(unclear), [])
    assert github(unclear, "open", 1.05).count("\n::warning title=omb-py compare::cannot tell") == 1
    (suite,) = ElementTree.fromstring(junit(unclear, "open", 1.05))
    assert suite.get("skipped") == suite.get("tests")


@pytest.mark.parametrize("kind", ["json", "junit", "csv"])
def test_nothing_else_stands_beside_a_document(kind: str, tmp_path: Path) -> None:
    arguments = [str(MPICH), str(OPEN_MPI), "--where", "benchmark=latency", "--format", kind]
    printed = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert "families-openmpi: unclear" in printed.stderr
    suffix = {"junit": "xml"}.get(kind, kind)
    target = tmp_path / f"out.{suffix}"
    CliRunner().invoke(command, [*arguments[:-2], "-o", str(target)], catch_exceptions=False)
    assert target.read_text() == printed.stdout
