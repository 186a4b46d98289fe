"""One table of MPI libraries: ratios to the first, and which is proved to be best."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from omb_py.analysis.compare.side_by_side import compare
from omb_py.analysis.libraries import beside, by_library, compared, sentences, sheet
from omb_py.analysis.report.page import report
from omb_py.analysis.table import load
from tests import RESULTS

SIZES = (8, 4096, 262144)
BENCHMARKS = ("latency", "allreduce", "bcast", "alltoall", "put_latency")
ROUNDS = 5


def rows_of(times: dict[str, float], seed: int, noise: float = 0.03) -> pd.DataFrame:
    """Rows of libraries that take ``times`` as long as the first, of rounds with a noise."""
    chance = np.random.default_rng(seed)
    found = []
    for name, launch, benchmark, size in product(times, range(ROUNDS), BENCHMARKS, SIZES):
        time = times[name] * (1 + size / 4096) * np.exp(noise * chance.standard_normal())
        numbers = {"latency_us": time, "sample_p50_us": time, "bytes": size}
        names = {"benchmark": benchmark, "file": name, "variant": name}
        found.append({"run": f"{name} {launch} {benchmark}", **names, **numbers})
    changed = pd.DataFrame(found)
    known = load([str(RESULTS / "families-mpich.csv")]).rows
    first = known.index[known["benchmark"] == "latency"][0]
    rows = known.loc[[first] * len(changed)].reset_index(drop=True)
    rows = rows.assign(**{column: changed[column] for column in changed})
    gone = ["sample_mean_us", "median_low_us", "median_high_us"]
    return rows.assign(mpi=rows["variant"] + " 1.0", **dict.fromkeys(gone, np.nan))


def tables_of(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {str(name): own for name, own in rows.groupby("variant", sort=False)}


@pytest.mark.long
def test_library_against_itself_has_no_difference_in_20_of_20_tables() -> None:
    for seed in range(20):
        points = compared(tables_of(rows_of({"own": 1.0, "again": 1.0}, seed)), compare)
        assert set(points["verdict"]) <= {"equal", "within noise"}, seed
        assert points["best"].isna().all(), seed


@pytest.mark.slow
def test_library_that_is_faster_than_every_other_is_best() -> None:
    points = compared(tables_of(rows_of({"a": 1.0, "b": 0.6, "c": 0.8}, 1)), compare)
    assert set(points["best"]) == {"b"}
    assert list(sentences(points, "a")) == [f"b: best at 15 of 15 points ({', '.join(BENCHMARKS)})"]


@pytest.mark.slow
def test_best_is_not_proved_where_two_are_alike() -> None:
    for times in ({"a": 1.0, "b": 0.6, "c": 0.6}, {"a": 0.6, "b": 1.0, "c": 0.6}):
        points = compared(tables_of(rows_of(times, 2)), compare)
        assert points["best"].isna().all()
        assert [*sentences(points, "a")][-1] == "no library is proved to be best at 15 of 15 points"


@pytest.mark.slow
def test_base_is_best_where_all_others_are_slower() -> None:
    points = compared(tables_of(rows_of({"a": 1.0, "b": 1.5, "c": 2.0}, 3)), compare)
    assert set(points["best"]) == {"a"}


@pytest.mark.slow
def test_table_has_a_line_for_each_point_and_a_column_for_each_library() -> None:
    rows = rows_of({"a": 1.0, "b": 0.5, "c": 1.0}, 4)
    rows = rows[~((rows["variant"] == "c") & (rows["benchmark"] == "bcast"))]
    made = sheet(compared(tables_of(rows), compare), "a")
    assert made.columns == ("", "size", "best", "a", "b", "c")
    assert len(made.rows) == len(SIZES) * len(BENCHMARKS)
    by_place = {row[:2]: row for row in made.rows}
    line = by_place["latency", "8 B"]
    assert line[4].endswith("faster")
    assert line[4].count("to") == 1
    assert line[2] == "b"
    assert by_place["bcast", "8 B"][5] == "-"
    assert by_place["bcast", "8 B"][2] == "b"


def test_rows_are_apart_by_labels_only_where_software_follows_them() -> None:
    rows = rows_of({"a": 1.0, "b": 0.5}, 5)
    assert [*by_library(rows)] == ["a", "b"]
    assert [*by_library(rows.assign(mpi="MPICH 5.0.2"))] == []
    mixed = rows.assign(variant=["x", "y"] * (len(rows) // 2))
    assert [*by_library(mixed)] == ["a 1.0", "b 1.0"]


@pytest.mark.slow
def test_libraries_measured_once_have_no_table() -> None:
    rows = rows_of({"a": 1.0, "b": 0.5}, 6)
    assert beside(rows, "auto") is not None
    once = rows[rows["run"].str.contains(" 0 ")]
    assert beside(once, "auto") is None


@pytest.mark.slow
def test_report_of_libraries_begins_with_their_table() -> None:
    page = report(rows_of({"a": 1.0, "b": 0.5}, 7))
    assert page.index(">MPI libraries<") < page.index(">Key numbers<")
    assert "b: best at 15 of 15 points" in page
