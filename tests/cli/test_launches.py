"""What a launch of several benchmarks keeps: its command line, and outcomes next to the rows."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from omb_py.cli import run
from omb_py.core.errors import UsageError
from omb_py.measure.suite import FAILED, MEASURED, UNDER_WAY, Line, Summary
from tests.helpers.refusals import refuses


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        ("latency --label latency -q", "--label latency -q"),
        ("--label=bw bw -W 4 4", "--label=bw -W 4"),
        ("-qi9 's:pt2pt -i 5' -x auto auto", "-qi9 -x auto"),
        ("-c bw --pair far far --summary bw", "-c --pair far --summary bw"),
        ("--odd -z50,90 latency -- --label", "--odd -z50,90"),
    ],
)
def test_options_of_a_launch_are_known_by_their_place(typed: str, options: str) -> None:
    found = run.option_words(shlex.split(typed), run.command.params)
    assert shlex.join(found) == options


def of(*names: str, launch: str) -> list[Line]:
    """The entries of a launch."""
    return [Line(name, name, 2, launch=launch) for name in names]


def outcomes(path: Path) -> list[tuple[str, str]]:
    """The benchmarks of a summary's file, and their outcomes."""
    return [(one["benchmark"], one["outcome"]) for one in json.loads(path.read_text())["entries"]]


def test_summary_keeps_the_entries_of_other_launches(tmp_path: Path) -> None:
    path = tmp_path / "s.summary.json"
    first = Summary(of("latency", launch="a"), str(path), clear=False)
    first.update(0, outcome=MEASURED)
    second = Summary(of("bw", "put", launch="b"), str(path), clear=False)
    second.update(0, outcome=UNDER_WAY)
    first.update(0, outcome=FAILED)
    second.update(0, outcome=MEASURED)
    assert outcomes(path) == [("latency", FAILED), ("bw", MEASURED), ("put", "waiting")]
    third = Summary(of("get", launch="c"), str(path), clear=True)
    assert len(outcomes(path)) == 3, "it is replaced by the first outcome"
    third.update(0, outcome=UNDER_WAY)
    third.update(0, outcome=MEASURED)
    assert outcomes(path) == [("get", MEASURED)]


@pytest.mark.parametrize(
    "text", ["my thesis\n", "{}", '{"entries": [1]}', "[" * 100_000, "\udcff"], ids=range(5)
)
def test_summary_of_other_content_needs_force(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.json"
    content = text.encode(errors="surrogateescape")
    path.write_bytes(content)
    with refuses(UsageError, "s.json --summary --force"):
        Summary(of("bw", launch="a"), str(path), clear=False)
    assert path.read_bytes() == content
    Summary(of("bw", launch="a"), str(path), clear=True).update(0, outcome=MEASURED)
    assert outcomes(path) == [("bw", MEASURED)]
