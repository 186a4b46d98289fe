"""ReFrame's performance logs, as version 4.10 wrote them, and damaged ones."""

from __future__ import annotations

from functools import partial

import pytest

from omb_py.results.readers import has_marks
from omb_py.results.readers.reframe import READER
from tests import ROOT
from tests.helpers.reading import read_by

LOG = ROOT / "tests" / "data" / "reframe" / "lat.log"
TEXT = LOG.read_text()


found = partial(read_by, READER.read)


def test_each_number_is_a_row_of_the_run_that_ended_then() -> None:
    part = found(TEXT)
    assert part.problems == []
    assert has_marks(LOG)
    alike = {"benchmark": "lat", "suite": "ReFrame", "ranks": 1, "line": 2}
    run = {"run": "20261128T073628Z-29063"}
    assert part.rows == [
        {**run, **alike, "part": "latency_8", "latency_us": 1.25},
        {**run, **alike, "part": "bw_1M", "bandwidth_MBps": 2000.0},
    ]
    assert part.runs[run["run"]]["machine"] == "generic:default"


@pytest.mark.parametrize(
    ("unit", "column", "value"),
    [("ms", "latency_us", 1250.0), ("GB/s", "bandwidth_MBps", 1250.0), ("GFLOPS", "", None)],
)
def test_unit_decides_column_and_scale(unit: str, column: str, value: float | None) -> None:
    rows = found(TEXT.replace("|us|", f"|{unit}|")).rows
    assert [row[column] for row in rows if row["part"] == "latency_8"] == [value] * bool(column)


@pytest.mark.parametrize(
    "text",
    [
        TEXT.rstrip("\n"),  # the last line may be torn
        TEXT.replace("|nid001|", "|nid|001|"),
        TEXT.replace("|1795851388.4816124|", "|null|"),
        TEXT.replace("|1.25|", "|nan|").replace("|2000.0|", "|None|"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(text: str) -> None:
    part = found(text)
    assert part.rows == []
    assert [problem.line for problem in part.problems] == [2]


def test_names_of_a_second_header_hold_for_the_lines_below_it() -> None:
    header, line = TEXT.splitlines()
    text = f"{TEXT}{header.replace('latency_8', 'p99_8')}\n{line}\n"
    assert [row["part"] for row in found(text).rows] == ["latency_8", "bw_1M", "p99_8", "bw_1M"]
