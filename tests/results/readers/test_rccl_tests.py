"""rccl-tests' CSV and JSON, of every version: whole lines only, whose bandwidths fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.benchmarks import all_benchmarks
from omb_py.results.readers import Found, join, source_of
from omb_py.results.readers.rccl_tests import READER
from tests import ROOT
from tests.helpers.damage import damaged
from tests.helpers.properties import examples

DATA = ROOT / "tests" / "data" / "rccl-tests"
FILES = sorted(path for path in DATA.iterdir() if path.suffix in (".csv", ".json"))
LIST = (DATA / "all_reduce.json").read_text()
TABLE = (DATA / "all_gather.csv").read_text()


def found(text: str | bytes, path: str = "job.log") -> Found:
    return join(READER.read(source_of(path, text if isinstance(text, bytes) else text.encode())))


def rows(name: str) -> list[dict[str, Any]]:
    return found((DATA / name).read_bytes(), name).rows


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_line_with_a_collective_is_a_row(path: Path) -> None:
    lines = path.read_text().splitlines()
    result = found(path.read_bytes(), path.name)
    assert result.problems == []
    assert [row["line"] for row in result.rows] == [
        number for number, line in enumerate(lines, 1) if '"' in line
    ]
    assert {(row["suite"], row["binding"], row["buffer"]) for row in result.rows} == {
        ("rccl-tests", "rccl", "hip")
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_bus_bandwidth_is_what_our_own_formula_gives(path: Path) -> None:
    ours = {benchmark.name: benchmark for benchmark in all_benchmarks()}
    for row in rows(path.name):
        traffic = ours[row["benchmark"]].traffic
        assert traffic is not None
        size, factor = traffic(row["bytes"], row["ranks"])
        assert row["busbw_GBps"] == pytest.approx(
            size / row["latency_us"] / 1e3 * factor, rel=1e-3, abs=1e-6
        )


@pytest.mark.parametrize(
    ("name", "benchmark", "ranks", "sizes"),
    [
        ("all_reduce.json", "allreduce", 8, [1024, 1 << 20, 1 << 24]),
        ("all_reduce_lines.json", "allreduce", 4, [1024, 1 << 20]),
        ("reduce_scatter_lines.json", "reduce_scatter_block", 8, [1024, 1 << 20]),
        ("all_gather.csv", "allgather", 8, [128, 1 << 17]),
        ("alltoall_blanks.csv", "alltoall", 4, [256, 1 << 18]),
        ("scatter_blanks.csv", "scatter", 4, [256, 1 << 18]),
        ("broadcast.csv", "bcast", 4, [1024, 1 << 20]),
    ],
)
def test_sizes_and_ranks_are_ours(name: str, benchmark: str, ranks: int, sizes: list[int]) -> None:
    result = rows(name)
    assert {(row["benchmark"], row["ranks"]) for row in result} == {(benchmark, ranks)}
    assert sorted({row["bytes"] for row in result}) == sizes


def test_cycles_are_repeated_runs() -> None:
    result = rows("all_reduce.json")
    assert [row["run"] for row in result][::6] == ["all_reduce.json:1", "all_reduce.json:1 cycle 2"]


def test_what_is_checked_and_in_place() -> None:
    assert [row.get("validation") for row in rows("alltoall_blanks.csv")] == ["Pass", None] * 2
    assert [row["in_place"] for row in rows("broadcast.csv")] == [True, True]
    failed = found(LIST.replace('"wrong":"0"', '"wrong":"7"', 1)).rows
    assert [row["validation"] for row in failed][:2] == ["Fail", "Pass"]


def test_a_list_that_was_cut_keeps_its_whole_elements() -> None:
    result = found(LIST[: LIST.rindex("{") + 60])
    assert len(result.rows) == 11
    assert result.problems[0].text == "not a whole row, left out"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"size":1048576', '"size":524288', "bandwidths"),
        ('"inPlace":1, ', "", "not a whole row"),
        ('"inPlace":1', '"inPlace":2', "not a whole row"),
        ('"name":"AllReduce"', '"name":"AllRedux"', "no collective that is known"),
        ('"type":"float"', '"type":"floot"', "no type that is known"),
        ('"ranks":8', '"ranks":9', "contradict"),
        ('"time":', '"time":1', "bandwidths"),
        ('"size":1024', '"size":1024, "size":1024', "not a whole row"),
    ],
)
def test_an_element_that_contradicts_itself_is_left_out(old: str, new: str, reason: str) -> None:
    result = found(LIST.replace(old, new, 1))
    assert len(result.rows) == 11
    assert reason in result.problems[0].text


@pytest.mark.parametrize(
    ("old", "new"),
    [('"AllGather",1,8', '"AllGather",8'), (',"0"\n', "\n"), ("fp8_e4m3", "fp8-e4m3")],
)
def test_a_row_of_csv_without_all_fields_is_left_out(old: str, new: str) -> None:
    result = found(TABLE.replace(old, new, 1))
    assert len(result.rows) == 3
    assert [(problem.line, problem.text) for problem in result.problems] == [
        (2, "not a whole row, left out")
    ]


def test_rows_of_csv_without_a_header_are_nobody_s() -> None:
    assert found(TABLE.split("\n", 1)[1]).rows == []


@given(st.data())
@examples(300)
def test_a_damaged_file_gives_no_numbers_that_were_not_printed(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(FILES))
    content = path.read_bytes()
    # nothing in a file tells 4 ranks from 44 where a bus bandwidth does not depend on them
    names = ("benchmark", "bytes", "dtype", "latency_us", "algbw_GBps", "busbw_GBps")
    whole = {tuple(row[name] for name in names) for row in found(content, path.name).rows}
    for row in found(data.draw(damaged(content)), path.name).rows:
        assert tuple(row[name] for name in names) in whole
