"""``omb-py scaling --rows --columns``: options compared in one table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.analysis.scaling.pivot import sheet
from omb_py.analysis.scaling.rows import Run
from omb_py.core.errors import UsageError
from tests.analysis.scaling.tables import row, write
from tests.conftest import Finished


def run(ranks: int, strategy: str, speedup: float, number: int = 0, depth: int = 110) -> Run:
    """A training on so many ranks."""
    problem = f"model=resnet layers={depth} strategy={strategy}"
    name = f"{ranks}-{strategy}-{number}-{depth}"
    return Run(row(ranks, speedup, problem=problem, application="train", run=name), "")


RUNS = [
    run(8, "data", 2.0),
    run(8, "model", 3.0),
    run(8, "model", 5.0, 1),
    run(16, "data", 6.0),
    run(16, "hybrid", 3.0),
]


def test_a_cell_is_the_median_of_the_runs_with_these_options() -> None:
    found = sheet(RUNS, ["ranks"], ["strategy"], "speedup")
    assert found.columns == ("ranks", "data", "model", "hybrid", "best")
    assert found.rows == (
        ("8", "2.00", "4.00", "-", "model (2.00x)"),
        ("16", "6.00", "-", "3.00", "data (2.00x)"),
    )
    assert found.remarks == ("Medians of 5 runs.",)


def test_the_smallest_of_times_is_best() -> None:
    """The median of 8/3 and 8/5 seconds is 2.13, of 8/2 it is 4."""
    found = sheet(RUNS, ["ranks"], ["strategy"], "time_s")
    assert [line[-1] for line in found.rows] == ["model (1.88x)", "data (2.00x)"]


def test_several_names_make_the_rows_and_numbers_are_ordered_by_size() -> None:
    runs = [run(4, "data", 2.0, depth=depth) for depth in (1001, 20, 110)]
    found = sheet(runs, ["layers", "ranks"], ["strategy"], "efficiency")
    assert [line[:2] for line in found.rows] == [("20", "4"), ("110", "4"), ("1001", "4")]
    assert found.columns[-1] == "data"


def test_runs_without_the_value_are_counted() -> None:
    runs = [*RUNS, Run(row(4, None, problem="strategy=data", run="without"), "")]
    assert sheet(runs, ["ranks"], ["strategy"], "speedup").remarks == (
        "Medians of 5 runs. 1 without speedup are left out.",
    )


@pytest.mark.parametrize(
    ("rows", "value", "words"),
    [
        ("rank", "speedup", "no run has 'rank': choose from ranks"),
        ("ranks", "alternative_s", "no run has 'alternative_s'"),
        ("ranks", "strategy", "'strategy' is no number"),
    ],
)
def test_names_that_no_run_has_are_refused(rows: str, value: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        sheet(RUNS, [rows], ["strategy"], value)


def test_only_some_runs_are_compared() -> None:
    found = sheet(RUNS, ["ranks"], ["strategy"], "speedup", ["ranks=16", "strategy=data,hybrid"])
    assert found.rows == (("16", "6.00", "3.00", "data (2.00x)"),)
    with pytest.raises(UsageError, match="no run has ranks=3"):
        sheet(RUNS, ["ranks"], ["strategy"], "speedup", ["ranks=3"])
    with pytest.raises(UsageError, match="is not NAME=VALUE"):
        sheet(RUNS, ["ranks"], ["strategy"], "speedup", ["ranks"])


def test_runs_that_differ_within_a_cell_are_said_to() -> None:
    runs = [run(4, "data", 2.0, depth=depth) for depth in (20, 110)]
    (_, told) = sheet(runs, ["ranks"], ["strategy"], "speedup").remarks
    assert told == "Runs of a cell differ in layers: choose some with --where."


def test_values_with_blanks_and_commas_are_options_too() -> None:
    problem = "strategy=model data_folder='/a b' partition=8,9 fusion=67108864"
    runs = [Run(row(2, 1.5, problem=problem), "")]
    found = sheet(runs, ["data_folder", "fusion"], ["ranks"], "speedup", ["partition=8,9"])
    assert found.rows == (("/a b", "67108864", "1.50"),)


def test_an_option_is_in_rows_or_in_columns() -> None:
    with pytest.raises(UsageError, match="ranks cannot be in --rows and in --columns"):
        sheet(RUNS, ["ranks"], ["ranks"], "speedup")


def test_the_command_prints_the_table(in_process: Callable[..., Finished], tmp_path: Path) -> None:
    table = write(tmp_path / "table.csv", *(run.row for run in RUNS))
    done = in_process(
        "scaling", str(table), "--rows", "ranks", "--columns", "strategy", "--value", "speedup"
    )
    assert (done.code, done.err) == (0, "")
    assert "model (2.00x)" in done.out
    refused = in_process("scaling", str(table), "--rows", "ranks")
    assert refused.code == 2
    assert "give --rows and --columns" in refused.err
