"""A check passes only if everything asked was judged and held; which points of launches failed."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from omb_py.analysis.compare import summary
from omb_py.analysis.compare.side_by_side import compare
from omb_py.analysis.conclusion import Conclusion, conclude, facts
from omb_py.analysis.failures import Beyond, Failure, only_first, rows_at
from omb_py.analysis.points import cells
from omb_py.analysis.table import load, of_rows
from omb_py.analysis.values import TAIL
from omb_py.results.columns import IDENTITY
from tests import RESULTS

SLOW = Failure("latency, 8 B: 2.0 µs, allowed is 1.0 µs")


def concluded(
    judged: int,
    failed: tuple[Failure, ...] = (),
    undecided: tuple[str, ...] = (),
    missing: tuple[str, ...] = (),
) -> Conclusion:
    """A conclusion about points."""
    return conclude(judged, failed, undecided, missing, held="within the limit")


@pytest.mark.parametrize(
    ("found", "code", "sentence"),
    [
        (concluded(3), 0, "PASS: 3 of 3 points within the limit"),
        (concluded(0), 7, "CANNOT TELL: there is no point to judge"),
        (concluded(3, (SLOW,)), 4, "FAIL: 2 of 3 points within the limit"),
        (
            concluded(2, undecided=("bw",)),
            7,
            "CANNOT TELL: 2 of 3 points within the limit, 1 cannot be judged (bw)",
        ),
        (
            concluded(1, missing=("a", "b", "c", "d")),
            7,
            "CANNOT TELL: 1 of 5 points within the limit, 4 not measured (a; b; c and 1 more)",
        ),
        (
            concluded(1, (SLOW,), ("a",), ("b",)),
            4,
            "FAIL: 0 of 3 points within the limit, 1 cannot be judged (a), 1 not measured (b)",
        ),
        (
            concluded(2, (Failure("r.txt: the data was wrong", on_top=True),)),
            4,
            "FAIL: 2 of 2 points within the limit",
        ),
    ],
)
def test_conclusion_passes_only_what_was_all_judged_and_held(
    found: Conclusion, code: int, sentence: str
) -> None:
    assert (found.exit_code, found.sentence) == (code, sentence)
    assert list(found.lines())[-1] == sentence


def test_reasons_beyond_twenty_are_counted() -> None:
    found = concluded(22, (SLOW,) * 22)
    lines = list(found.lines())
    assert lines[-2:] == ["FAIL: and 2 more reasons", "FAIL: 0 of 22 points within the limit"]
    assert len(lines) == 22


def test_document_has_the_same_keys_with_and_without_a_limit() -> None:
    assert facts(None, ["all"]).keys() == facts(concluded(1), ["all"]).keys()


def table(*rows: dict[str, Any]) -> pd.DataFrame:
    """Rows as `load` gives them, on lines of their own."""
    usual = {"run": "a", "benchmark": "latency", "ranks": 2, "file": "a.csv"}
    return of_rows([usual | {"line": n} | row for n, row in enumerate(rows)], {}).rows


def points(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """What each row has of a point's identity."""
    return cells(rows[["bytes", *IDENTITY]])


@pytest.mark.long
@pytest.mark.parametrize("tail", [False, True])
def test_points_of_a_comparison_have_the_rows_and_values_that_were_compared(tail: bool) -> None:
    other = load(RESULTS / "families-openmpi.csv").rows
    compared = compare(RESULTS / "families-mpich.csv", other, launch_spread=0.03, tail=tail)
    compared = compared[compared["slowdown"].notna()]
    assert (TAIL in set(compared["statistic"])) == tail
    every = summary.beyond(compared, 1.5)
    assert len(every) == len(compared) > 100
    for point, row in zip(every, compared.itertuples(), strict=True):
        values = point.values(rows_at(other, point.cells))
        assert pd.Series(values).median() == pytest.approx(row.value)
        assert point.excess(row.value) == pytest.approx(row.slowdown / 1.5)


@pytest.mark.parametrize(
    ("row", "there"),
    [
        ({"placement": "D D"}, True),
        ({"placement": None}, True),
        ({"placement": "D H"}, False),
        ({"mpi_type": "MPI_INT"}, False),
        ({"bytes": 16}, False),
        ({"hosts": 2}, False),
    ],
)
def test_rows_of_a_point_agree_in_what_they_have(row: dict[str, Any], there: bool) -> None:
    point = {"benchmark": "latency", "bytes": 8, "placement": "D", "ranks": 2, "validated": False}
    measured = {"bytes": 8, "latency_us": 1.0, "placement": "D"} | row
    assert bool(len(rows_at(table(measured), point))) == there


def slow(*sizes: int) -> list[Failure]:
    """Failures at sizes."""
    rows = table(*({"bytes": size, "latency_us": 9.0} for size in sizes))
    return [Failure("slow", (Beyond(point, 1.0, "us", "mean"),)) for point in points(rows)]


@pytest.mark.parametrize(
    ("failed", "judged", "found"),
    [
        ((8,), (8, 16, 32), True),
        ((8, 16), (8, 16, 32), True),
        ((8, 32), (8, 16, 32), False),
        ((16,), (8, 16, 32), False),
        ((8, 16, 32), (8, 16, 32), False),
        ((8,), (8,), False),
        ((), (8, 16, 32), False),
    ],
)
def test_only_the_first_points_fail_if_later_ones_are_judged_and_do_not(
    failed: tuple[int, ...], judged: tuple[int, ...], found: bool
) -> None:
    rows = table(*({"bytes": size, "latency_us": 1.0} for size in (8, 16, 32)))
    known = points(rows[rows["bytes"].isin(judged)])
    said = only_first("", rows, {}, slow(*failed), known)
    assert len(said) == found
    assert all("first points of the launch" in one and "8 B" in one for one in said)


def test_benchmark_of_a_shared_launch_is_not_called_a_launch() -> None:
    rows = table(*({"bytes": size, "latency_us": 1.0} for size in (8, 16)))
    runs = {"a": {"command": "omb-py run 'latency'"}}
    (said,) = only_first("", rows, runs, slow(8), points(rows))
    assert "benchmark" in said


def test_first_points_of_another_side_are_left_out() -> None:
    rows = table(*({"bytes": size, "latency_us": 1.0} for size in (8, 16)))
    assert only_first("other", rows, {}, slow(8), points(rows)) == []


def test_mean_of_several_points_weighs_times_and_rates_alike() -> None:
    points = (Beyond({}, 10.0, "us", "mean"), Beyond({}, 100.0, "MB/s", "mean"))
    assert Failure("", points).excess([20.0, 100.0]) == pytest.approx(2**0.5)
    assert Failure("", points).excess([20.0, 400.0]) < 1
