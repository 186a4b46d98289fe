"""Files of every kind as one table: nothing lost in silence, no number that no file has."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.analysis import across
from omb_py.analysis.charts.groups import Request, groups
from omb_py.analysis.compare.side_by_side import compare, names_of
from omb_py.analysis.compare.summary import sheets
from omb_py.analysis.history import POINT
from omb_py.analysis.points import common, distinctions, label
from omb_py.analysis.select import assumptions, where, where_of_kinds
from omb_py.analysis.table import library, load, of_rows
from omb_py.analysis.values import measured, value_column
from omb_py.core.errors import OmbError, UsageError
from omb_py.results import readers
from omb_py.results.columns import KINDS, LOADED, SOFTWARE, OverheadRow, Row
from tests import RESULTS, ROOT
from tests.helpers.properties import examples
from tests.helpers.refusals import assert_names, refuses

NATIVE = ROOT / "tests" / "data" / "omb"
WHOLE = {name for name in Row.columns if KINDS[name] == "int"}
REFERENCE = RESULTS / "families-mpich.csv"


def as_pandas_reads(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, comment="#")


def test_own_csv_reads_as_in_pandas_with_metadata() -> None:
    results = load(REFERENCE)
    plain = as_pandas_reads(REFERENCE)
    assert list(results.rows) == [*Row.columns, *LOADED]
    for column in ("latency_us", "bandwidth_MBps", "sample_p50_us", "bytes", "iterations"):
        mine = results.rows[column].astype("float64")
        pd.testing.assert_series_equal(mine, plain[column].astype("float64"))
    assert set(results.rows["mpi"]) == {"MPICH 5.0.2"}
    assert set(results.rows["suite"]) == {"omb-py 0.1.0"}
    assert set(results.rows["run"]) <= set(results.runs)  # a run that failed has no rows
    assert not results.problems


def test_a_row_can_be_found_again_by_its_line() -> None:
    lines = REFERENCE.read_text().splitlines()
    for row in load(REFERENCE).rows.iloc[::50].itertuples():
        assert lines[row.line - 1].startswith(f"{row.run},{row.benchmark},")


def test_folders_are_searched_and_what_holds_no_results_is_said(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    shutil.copy(REFERENCE, tmp_path / "deep" / "er")
    shutil.copy(NATIVE / "osu_latency.txt", tmp_path / "deep")
    (tmp_path / "notes.txt").write_text("nothing here\n")
    (tmp_path / ".hidden.csv").write_text("nothing here\n")
    results = load(tmp_path)
    assert len(results.rows) == len(as_pandas_reads(REFERENCE)) + 4
    assert [Path(problem.path).name for problem in results.problems] == ["notes.txt"]


@pytest.mark.parametrize("name", ["software.json", "s.summary.json"])
def test_what_omb_py_writes_beside_results_is_no_problem(tmp_path: Path, name: str) -> None:
    shutil.copy(REFERENCE, tmp_path)
    (tmp_path / name).write_text("{}")
    assert load(tmp_path).problems == ()


def test_a_folder_or_a_named_file_without_results_is_an_error(tmp_path: Path) -> None:
    with refuses(OmbError, "holds no file of results"):
        load(tmp_path)
    (tmp_path / "notes.txt").write_text("nothing here\n")
    with refuses(OmbError, "notes.txt holds no results"):
        load([REFERENCE, tmp_path / "notes.txt"])
    with refuses(OmbError, "No such file"):
        load(tmp_path / "gone.csv")


def test_overheads_have_a_table_of_their_own() -> None:
    results = load(RESULTS / "overhead-mpich.csv")
    assert results.rows.empty
    assert list(results.overhead) == [*OverheadRow.columns, *LOADED]
    plain = as_pandas_reads(RESULTS / "overhead-mpich.csv")
    assert list(results.overhead["added_us"]) == list(plain["added_us"])


def test_json_and_csv_of_one_run_are_one_table(tmp_path: Path) -> None:
    plain = as_pandas_reads(REFERENCE).head(20).astype(object)
    plain = plain.where(plain.notna(), None)
    items = [{"metadata": {"run": run, "omb_py": "0.1.0"}} for run in plain["run"].unique()]
    for record in plain.to_dict("records"):
        whole = {name: record[name] for name in WHOLE if record.get(name) is not None}
        items.append(record | {name: int(value) for name, value in whole.items()})
    path = tmp_path / "rows.json"
    path.write_text("\n".join(json.dumps(item) for item in items) + "\n")
    mine = load(path).rows[list(Row.columns)]
    theirs = load(REFERENCE).rows[list(Row.columns)].head(20)
    pd.testing.assert_frame_equal(
        mine.astype(object).where(mine.notna(), None),
        theirs.astype(object).where(theirs.notna(), None),
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [(",numpy,", ",numpy"), (",8,", ",eight,"), ("buffer", '"buffer'), (",2,", ",2.5,")],
)
def test_a_row_that_is_not_whole_is_left_out_and_named(tmp_path: Path, old: str, new: str) -> None:
    lines = REFERENCE.read_text().splitlines()
    victim = next(place for place, line in enumerate(lines) if ",latency,8,2,numpy,buffer" in line)
    lines[victim] = lines[victim].replace(old, new, 1)
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    results = load(path)
    assert len(results.rows) == len(as_pandas_reads(REFERENCE)) - 1
    assert [problem.line for problem in results.problems] == [victim + 1]


def test_a_table_that_a_job_printed_among_other_things(tmp_path: Path) -> None:
    noise = ["node1: warning, something", "1,2,3", "", "{}", "slurmstepd: error: x"]
    lines = REFERENCE.read_text().splitlines()
    for place, text in enumerate(noise):
        lines.insert(40 + 17 * place, text)
    path = tmp_path / "slurm-17.out"
    path.write_text("\r\n".join(lines) + "\r\n")
    results = load(path)
    columns = [*Row.columns]
    pd.testing.assert_frame_equal(results.rows[columns], load(REFERENCE).rows[columns])


@pytest.mark.long
@given(st.data())
@examples(60)
def test_cut_file_has_its_rows(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = REFERENCE.read_bytes()[:40_000]
    cut = data.draw(st.integers(0, len(content)))
    path = tmp_path_factory.mktemp("cut") / "rows.csv"
    path.write_bytes(content[:cut])
    whole = load(REFERENCE).rows[list(Row.columns)]
    try:
        part = load(path).rows[list(Row.columns)]
    except OmbError:
        return
    expected = whole.head(len(part))
    pd.testing.assert_frame_equal(part, expected, check_dtype=False)


def test_what_files_do_not_say_can_be_assumed() -> None:
    native = NATIVE / "osu_allreduce.txt"
    assert load(native).rows["ranks"].isna().all()
    assert set(load(native, assumptions(["ranks=16"])).rows["ranks"]) == {16}
    assert set(load(REFERENCE, {"ranks": 16}).rows["ranks"]) == set(load(REFERENCE).rows["ranks"])


def test_an_assumption_is_of_files_that_a_pattern_matches() -> None:
    files = [NATIVE / "osu_allreduce.txt", NATIVE / "osu_bcast.txt"]
    rows = load(files, assumptions(["*bcast*:ranks=4", "ranks=16", "threads=2:2"])).rows
    told = rows.groupby("benchmark")["ranks"].unique().map(list).to_dict()
    assert told == {"allreduce": [16], "bcast": [4]}
    assert set(rows["threads"]) == {"2:2"}
    rows = load(files, {"ranks": {"omb/*reduce*": 8}}).rows
    assert rows.groupby("benchmark")["ranks"].nunique().to_dict() == {"allreduce": 1, "bcast": 0}


@pytest.mark.parametrize(
    "texts",
    [
        *(["ranks"], ["rank=2"], ["=2"], ["ranks=two"], ["in_place=maybe"], ["*:rank=2"]),
        *(["*:ranks"], ["*:ranks=2,3"], ["a*:ranks=2", "a*:ranks=3"]),
    ],
)
def test_an_assumption_that_means_nothing_is_a_sentence(texts: list[str]) -> None:
    with pytest.raises(UsageError):
        assumptions(texts)


def test_rows_are_chosen_by_the_values_of_columns() -> None:
    rows = load(REFERENCE).rows
    chosen = where(rows, ["benchmark=latency,bw", "binding=native", "bytes=1M"])
    assert set(chosen["benchmark"]) == {"latency", "bw"}
    assert set(chosen["bytes"]) == {1 << 20}
    with refuses(UsageError, "no row binding=nccl: there are buffer, native"):
        where(rows, ["binding=nccl"])


def test_second_column_within_one_text_refused_with_the_two_options_to_write() -> None:
    rows = load(REFERENCE).rows
    with refuses(UsageError, "--where benchmark=latency --where hosts=1"):
        where(rows, ["benchmark=latency,hosts=1"])
    labelled = rows.assign(variant="ranks=2")
    assert len(where(labelled, ["variant=x,ranks=2"])) == len(rows)


def test_rows_of_one_kind_are_chosen_where_another_kind_has_none() -> None:
    found = load([RESULTS / "two-core-vm.csv", RESULTS / "overhead-mpich.csv"])
    kinds = (found.rows, found.overhead, found.pairs)
    rows, overhead, pairs = where_of_kinds(kinds, ["benchmark=bw"])
    assert (set(rows["benchmark"]), len(overhead), len(pairs)) == ({"bw"}, 0, 0)
    rows, overhead, _ = where_of_kinds(kinds, ["base=native"])  # benchmarks have no such column
    assert (len(rows), set(overhead["base"])) == (0, {"native"})


def test_value_that_no_kind_has_refused_with_those_of_all_kinds() -> None:
    found = load([RESULTS / "two-core-vm.csv", RESULTS / "overhead-mpich.csv"])
    of_rows, of_overhead = (set(one["binding"]) for one in (found.rows, found.overhead))
    assert of_overhead - of_rows
    every = ", ".join(sorted(of_rows | of_overhead))
    with refuses(UsageError, f"no row binding=nccl: there are {every}"):
        where_of_kinds((found.rows, found.overhead, found.pairs), ["binding=nccl"])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("MPICH Version: 5.0.2 MPICH Release date: Fri Sep 25 2026", "MPICH 5.0.2"),
        ("Open MPI v5.0.11, package: Open MPI root@h Distribution, ident: 5.0.11", "Open MPI"),
        ("Intel(R) MPI Library 2021.19 for Linux* OS", "Intel MPI 2021.19"),
        ("MVAPICH2 Version : 2.3.7 MVAPICH2 Release date: Wed March 02", "MVAPICH2 2.3.7"),
        ("MPI VERSION : CRAY MPICH version 8.1.28.15 (ANL base 3.4a2)", "MPICH 8.1.28.15"),
    ],
)
def test_libraries_are_named_shortly(text: str, name: str) -> None:
    assert str(library(text)).startswith(name)


@pytest.mark.slow
def test_median_bandwidth_comes_from_window_times() -> None:
    rows = where(load(RESULTS / "two-core-vm.csv").rows, ["benchmark=bw"])
    frame = value_column(rows, "median")
    mean = rows["bandwidth_MBps"] * rows["sample_mean_us"] / rows["sample_p50_us"]
    pd.testing.assert_series_equal(frame["value"], mean, check_names=False)
    assert (frame["spread_low"] <= frame["value"]).all()
    assert (frame["value"] <= frame["spread_high"]).all()
    assert (frame["low"] <= frame["value"]).all()
    assert set(frame["unit"]) == {"MB/s"}


def test_lines_are_named_by_what_differs() -> None:
    rows = where(load(REFERENCE).rows, ["benchmark=latency"])
    assert distinctions(rows) == ["binding"]
    assert label(("native", 8, pd.NA), ("binding", "ranks", "window")) == "native, 8 ranks"


@pytest.mark.parametrize("wrong", ["fast", "nan", "inf", "1" * 50, "1e999"])
def test_row_with_an_invalid_field_is_left_out(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "odd.csv"
    lines = ["run,benchmark,bytes,ranks,latency_us", f"x,latency,8,2,{wrong}", "x,latency,16,2,1.5"]
    path.write_text("\n".join([*lines, "x,,32,2,1.5", "x,latency,8.5,2,1.5", ""]))
    results = load(path)
    assert results.rows["bytes"].tolist() == [16]
    for problem, line in zip(results.problems, (2, 4, 5), strict=True):
        assert_names(problem, f"{path}:{line}: column left out")


@pytest.mark.long
def test_large_file_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(REFERENCE, tmp_path)
    for native in sorted(NATIVE.glob("osu_al*.txt")):
        shutil.copy(native, tmp_path)
    (tmp_path / "log.txt").write_bytes(REFERENCE.read_bytes() + b"not a row\n")
    whole = load(tmp_path)
    monkeypatch.setattr(readers, "BLOCK", 500)
    monkeypatch.setattr(readers, "ROWS_AT_ONCE", 3)
    pieces = load(tmp_path)
    pd.testing.assert_frame_equal(whole.rows, pieces.rows)
    assert pieces.problems == whole.problems


def rows(*versions: str, **of_python: str) -> pd.DataFrame:
    """Two sizes of a latency with each version of mpi4py."""
    made: list[dict[str, Any]] = [
        {"run": one, "benchmark": "latency", "bytes": size, "ranks": 2, "latency_us": 2.0}
        | {"buffer": "numpy", "binding": "buffer"}
        for one in versions
        for size in (8, 64)
    ]
    runs = {one: {"mpi4py": one, "numpy": "2.4.6"} | of_python for one in versions}
    return of_rows(made, runs).rows


def test_comparison_of_two_versions_names_both() -> None:
    points = compare(rows("4.1.0"), rows("4.1.1", python="CPython 3.12.1"), names=["a", "b"])
    assert list(points["ratio"]) == [1.0, 1.0]
    (sheet,) = sheets(points, "a")
    assert sheet.above.endswith("buffer, mpi4py 4.1.0 against mpi4py 4.1.1"), "none of one side"


def test_tables_and_figures_have_a_column_and_a_line_for_each_version() -> None:
    both = rows("4.1.0", "4.1.1")
    (sheet,) = across.sheets(both, ["mpi4py"])
    assert sheet.columns[1:3] == ("mpi4py 4.1.0", "mpi4py 4.1.1")
    (figure,) = groups(measured(both, "auto", "auto"), ["bytes"], Request())
    assert figure.lines == ("mpi4py",)
    assert "numpy 2.4.6" in common(both, figure.lines), "of a caption"


def test_history_goes_on_with_a_new_version() -> None:
    assert not set(SOFTWARE) & set(POINT)


def test_folder_keeps_all_of_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "m4.1.1"
    folder.mkdir()
    assert names_of([tmp_path / "base.csv", folder], None) == ["base", "m4.1.1"]
