"""Tables of applications are read back whole, whatever happened to the files."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.analysis.scaling.rows import Run, load
from omb_py.analysis.scaling.rows import read as read_applications
from omb_py.analysis.table import load as load_benchmarks
from omb_py.core.errors import OmbError
from omb_py.results.readers import Found, Problem
from tests import ROOT
from tests.analysis.scaling.tables import row, write
from tests.helpers.damage import damaged, noisy
from tests.helpers.properties import examples
from tests.helpers.reading import read

RESULTS = ROOT / "results" / "two-core-vm.csv"
ROWS = [row(1, 1.0), row(2, 1.8, 0.1), row(4, 3.25, 0.1)]


def runs_in(content: bytes) -> tuple[list[Run], list[Problem]]:
    problems: list[Problem] = []
    return list(read_applications("table.csv", content, problems)), problems


def lines_of(found: Found) -> list[str]:
    return [line for table in found.tables for _, line in table.lines()]


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write(tmp_path_factory.mktemp("tables") / "table.csv", *ROWS).read_bytes()


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    loaded = load(write(tmp_path / "table.csv", *ROWS))
    assert loaded.problems == ()
    for run, written in zip(loaded.runs, ROWS, strict=True):
        for name, value in asdict(written).items():
            same = pytest.approx(value, rel=1e-8) if isinstance(value, float) else value
            assert getattr(run.row, name) == same, name
    assert {run.mpi for run in loaded.runs} == {"MPICH 5.0.2"}


def test_tables_from_before_a_column_was_added_are_read(tmp_path: Path) -> None:
    """As those in ``results``, which know nothing of loading."""
    lines = write(tmp_path / "new.csv", *ROWS).read_text().splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("run,"))
    at = lines[head].split(",").index("load_s")
    for number in range(head, len(lines)):
        if not lines[number].startswith("#"):
            cells = lines[number].split(",")
            lines[number] = ",".join(cells[:at] + cells[at + 1 :])
    (tmp_path / "old.csv").write_text("\n".join(lines) + "\n")
    loaded = load(tmp_path / "old.csv")
    assert loaded.problems == ()
    assert [run.row.load_s for run in loaded.runs] == [None] * len(ROWS)
    assert [run.row.other_s for run in loaded.runs] == [one.other_s for one in ROWS]


def test_rows_of_ranks_and_parts_are_passed_over(tmp_path: Path) -> None:
    parts = [row(2, None, part="rank", rank=0), row(2, None, part="check", time_s=None)]
    loaded = load(write(tmp_path / "table.csv", ROWS[1], *parts))
    assert [run.row.speedup for run in loaded.runs] == [1.8]


def test_a_folder_may_hold_other_tables(tmp_path: Path) -> None:
    write(tmp_path / "below.csv", *ROWS)
    (tmp_path / "benchmarks.csv").write_bytes(RESULTS.read_bytes())
    (tmp_path / "notes.txt").write_text("nothing")
    loaded = load(tmp_path)
    assert (len(loaded.runs), loaded.problems) == (3, ())


def test_a_run_in_a_table_and_in_a_log_is_one(tmp_path: Path) -> None:
    table = write(tmp_path / "table.csv", *ROWS)
    (tmp_path / "job.log").write_bytes(b"starting\n" + table.read_bytes() + b"done\n")
    assert len(load(tmp_path).runs) == 3


def test_a_file_of_both_kinds_has_the_rows_of_each(content: bytes) -> None:
    benchmarks = RESULTS.read_bytes()
    alone = read("results.csv", benchmarks)
    for both in (content + benchmarks, benchmarks + content):
        found = read("job.log", both)
        assert lines_of(found) == lines_of(alone)
        assert found.problems == []
        assert len(runs_in(both)[0]) == 3


def test_who_reads_benchmarks_says_where_applications_are_shown(tmp_path: Path) -> None:
    table = write(tmp_path / "table.csv", *ROWS)
    with pytest.raises(OmbError, match="omb-py scaling shows them"):
        load_benchmarks(table)
    (tmp_path / "benchmarks.csv").write_bytes(RESULTS.read_bytes())
    found = load_benchmarks(tmp_path)
    assert len(found.rows) == len(load_benchmarks(RESULTS).rows)
    (problem,) = found.problems
    assert "omb-py scaling shows them" in str(problem)


@pytest.mark.parametrize("name", ["missing.csv", "benchmarks.csv", "."])
def test_where_there_is_nothing_one_sentence_says_so(tmp_path: Path, name: str) -> None:
    (tmp_path / "benchmarks.csv").write_bytes(RESULTS.read_bytes())
    with pytest.raises(OmbError, match=r"cannot read|omb-py APPLICATION --output FILE\.csv"):
        load(tmp_path / name)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"check": "Fail"}, "the result of matmul was wrong"),
        ({"time_s": 0.0}, "not what its column holds"),
        ({"time_low_s": None}, "not what its column holds"),
        ({"speedup_low": None}, "not what its column holds"),
        ({"cores": 0}, "not what its column holds"),
        ({"ranks": "two"}, "not what its column holds"),
        ({"speedup": float("inf")}, "not what its column holds"),
        ({"scaling": "sideways"}, "not what its column holds"),
    ],
)
def test_a_row_that_is_wrong_is_left_out_and_named(
    tmp_path: Path, wrong: dict[str, Any], words: str
) -> None:
    loaded = load(write(tmp_path / "table.csv", ROWS[0], replace(ROWS[1], **wrong)))
    assert [run.row.ranks for run in loaded.runs] == [1]
    (problem,) = loaded.problems
    assert words in problem.text
    assert problem.line is not None


def test_a_torn_last_line_is_left_out(content: bytes) -> None:
    runs, problems = runs_in(content[:-10])
    assert [run.row.ranks for run in runs] == [1, 2]
    assert "incomplete" in problems[0].text


@given(st.data())
@examples(200)
def test_a_file_cut_anywhere_keeps_the_runs_before_the_cut(
    content: bytes, data: st.DataObject
) -> None:
    whole = runs_in(content)[0]
    part = runs_in(content[: data.draw(st.integers(0, len(content)))])[0]
    assert [run.row for run in part] == [run.row for run in whole[: len(part)]]


@given(st.data())
@examples(200)
def test_noise_between_lines_changes_nothing(content: bytes, data: st.DataObject) -> None:
    text = data.draw(noisy(content.decode()))
    assert [run.row for run in runs_in(text.encode())[0]] == [
        run.row for run in runs_in(content)[0]
    ]


@given(st.data(), st.binary(max_size=300))
@examples(300)
def test_no_damage_makes_it_raise(content: bytes, data: st.DataObject, noise: bytes) -> None:
    changed = data.draw(damaged(content))
    for text in (changed, noise + changed, content + noise + b"\n" + changed):
        runs_in(text)
