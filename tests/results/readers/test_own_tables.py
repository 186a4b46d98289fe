"""Our own CSV and JSON, line by line: whole rows only, each cell what its column holds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from omb_py.results.readers import Found, all_readers
from tests import RESULTS
from tests.helpers.reading import read
from tests.helpers.refusals import assert_names

HEADER = "run,benchmark,bytes,ranks,latency_us\n"
ROW = "x,latency,8,2,1.5\n"


def found(text: str) -> Found:
    return read("job.log", text.encode())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x,latency,8\n", "not a whole row"),
        ("x,latency,8,2\n", "not a whole row"),
        ("slurmstepd: error\n", "not a whole row"),
        ("x,latency,8,2,1.5", "an incomplete row"),
        ("x,lat", "an incomplete row"),
        ('x,"latency,8,2,1.5\n', "not a whole row"),
    ],
)
def test_a_line_of_csv_that_is_no_whole_row_is_left_out(line: str, reason: str) -> None:
    told = found(HEADER + ROW + line)
    (table,) = told.tables
    assert list(table.lines()) == [(2, ROW[:-1])]
    assert [(problem.line, problem.text) for problem in told.problems] == [
        (3, f"{reason}, left out")
    ]


def test_fields_of_csv_may_hold_commas_in_quotes() -> None:
    told = found(f'{HEADER}x,"la,tency",8,2,1.5\nx,latency,8,2,1\n\n{ROW}')
    assert [number for number, _ in told.tables[0].lines()] == [2, 3, 5]
    assert told.problems == []


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("run,benchmark,bytes,latency_us", "not whole column names"),
        ("run,benchmark,bytes,ranks,ranks", "not whole column names"),
    ],
)
def test_a_header_that_is_not_whole_has_no_rows(header: str, reason: str) -> None:
    told = found(f"{header}\n{ROW}")
    assert told.tables == []
    (problem,) = told.problems
    assert problem.line == 1
    assert_names(problem.text, reason)


def test_columns_that_are_not_known_are_named() -> None:
    told = found(HEADER.replace("latency_us", "speed,taste") + "x,latency,8,2,1,2\n")
    assert told.tables[0].columns[-2:] == ("speed", "taste")
    (problem,) = told.problems
    assert_names(problem, "job.log:1: unknown columns speed, taste left out: another omb-py")


def test_comments_belong_to_the_run_before_them() -> None:
    told = found(
        f"# run: x\n# ranks: 2 \n# Not a key: 1\n{HEADER}{ROW}# run: y\n# ranks: 4\n{HEADER}"
    )
    assert told.runs == {"x": {"run": "x", "ranks": "2"}, "y": {"run": "y", "ranks": "4"}}
    assert len(told.tables) == 1, "a table without rows is none"


@pytest.mark.parametrize("name", all_readers())
def test_no_other_reader_takes_our_tables_for_its_own(name: str) -> None:
    content = (RESULTS / "two-core-vm.csv").read_bytes()
    own = content.replace(b"omb-py 0.1.0", b"nccl-tests 2.19.6")
    claimed = [mark for mark in all_readers()[name].marks if mark in own]
    assert bool(claimed) is (name == "csv_table")


OBJECT: dict[str, Any] = {"run": "x", "benchmark": "latency", "bytes": 8, "ranks": 2}


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("in_place", [True, False, None], [1, "true"]),
        ("bytes", [0, 2**63 - 1, None], [True, 1.5, "8", 2**63, -(2**63)]),
        ("latency_us", [1, 1.5, None], [True, "1.5", 10**400]),
        ("part", ["a", None], [1, True, ["a"]]),
    ],
)
def test_cell_of_json_has_its_column_type(name: str, right: list[Any], wrong: list[Any]) -> None:
    lines = [json.dumps(OBJECT | {name: value}) for value in (*right, *wrong)]
    told = found("\n".join(lines) + "\n")
    assert [row[name] for row in told.rows] == right
    (problem,) = told.problems
    assert (problem.line, problem.rows) == (1 + len(right), len(wrong))
    assert_names(problem.text, f"{name} column left out")


@pytest.mark.parametrize("name", ["run", "benchmark"])
@pytest.mark.parametrize("value", [None, 1, ["x"]], ids=str)
def test_object_of_json_without_benchmark_or_run_is_no_row(name: str, value: object) -> None:
    lacking = {key: cell for key, cell in OBJECT.items() if key != name}
    lines = (OBJECT, lacking, OBJECT | {name: value})
    assert found("\n".join(map(json.dumps, lines)) + "\n").rows == [OBJECT | {"line": 1}]


def test_objects_of_json_are_rows_or_begin_a_run() -> None:
    lines = [
        {"metadata": {"run": "x", "ranks": 2}},
        OBJECT | {"unknown": 1, "percentiles": {"p50": 1.25, "p99": 2, "odd": "x"}},
        {"benchmark": "latency"},
        {"metadata": {"run": "x", "hosts": "a:2"}},
    ]
    told = found("\n".join(map(json.dumps, lines)) + '\n{"run": "x", "bench\n')
    assert told.rows == [OBJECT | {"percentiles": "p50=1.25 p99=2", "line": 2}]
    assert told.runs == {"x": {"run": "x", "ranks": "2", "hosts": "a:2"}}
    assert [(problem.line, problem.text) for problem in told.problems] == [
        (5, "an incomplete object, left out")
    ]
