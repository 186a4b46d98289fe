"""k-means and k nearest neighbours on ranks: any division gives what one rank finds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers.battery import Battery, Line, Record, each_line, line

QUICK = "--repeats 1 --warmup-repeats 0 --no-references"
KMEANS = f"kmeans --samples 500 --features 3 --lloyd-iterations 6 --dtype float64 {QUICK}"
KNN = f"knn --samples 333 --queries 47 --features 3 --dtype float64 {QUICK}"
SEARCH = "--k-from 2 --k-to 10 --k-step 2"
KMEANS_LINES = [
    line(ranks, f"{KMEANS} {SEARCH} --divide {what}")
    for ranks in (1, 3, 4)
    for what in ("samples", "k")
]
KNN_LINES = [line(ranks, KNN) for ranks in (1, 3, 4)]


@pytest.fixture(scope="module")
def one_rank(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Battery:
    """What one rank finds."""
    return Battery((KMEANS_LINES[0], KNN_LINES[0]), tmp_path_factory.mktemp("one_rank"))


def passed(record: Record) -> dict[str, Any]:
    """The row of the whole, once its check has passed."""
    assert not record.error, record.error
    (whole,) = record.measured
    assert whole["check"] == "Pass"
    return whole


def parts(record: Record, beginning: str = "") -> dict[str, float]:
    """The values of the parts whose names begin so."""
    return {
        row["part"]: row["value"]
        for row in record.rows
        if row["value"] is not None and (row["part"] or "").startswith(beginning)
    }


@pytest.mark.product(strength=1)
@each_line(KMEANS_LINES)
def test_inertias_ignore_the_division(battery: Battery, one_rank: Battery, line: Line) -> None:
    reference = one_rank(KMEANS_LINES[0])
    passed(battery(line))
    inertias = parts(battery(line), "k ")
    assert list(inertias) == ["k 2", "k 4", "k 6", "k 8", "k 10"]
    assert inertias == pytest.approx(parts(reference, "k "), rel=1e-12)
    assert sorted(inertias.values(), reverse=True) == list(inertias.values())


@pytest.mark.long
@pytest.mark.product(strength=1)
@each_line(KNN_LINES)
def test_accuracy_ignores_the_division(battery: Battery, one_rank: Battery, line: Line) -> None:
    passed(battery(line))
    accuracy = parts(battery(line), "accuracy")
    assert accuracy == parts(one_rank(KNN_LINES[0]), "accuracy")
    assert accuracy["accuracy"] > 2 / 8


@each_line(
    line(2, f"{problem} --binding pickle")
    for problem in (
        f"{KMEANS} --divide samples",
        f"{KMEANS} --divide k",
        f"knn --samples 300 --queries 40 {QUICK}",
    )
)
def test_pickled_objects_pass(battery: Battery, line: Line) -> None:
    passed(battery(line))


def calls(record: Record) -> dict[tuple[str, float], int]:
    """Rank 0's calls of each function with messages of so many bytes."""
    return {
        (row["part"], row["call_bytes"]): row["calls"]
        for row in record.rows
        if row["calls"] is not None
    }


@each_line(line(2, f"{KMEANS} --k-to 4 --divide samples"))
def test_samples_divided_are_summed_in_each_iteration(battery: Battery, line: Line) -> None:
    record = battery(line)
    passed(record)
    sums = {key: times for key, times in calls(record).items() if key[0] == "MPI_Allreduce"}
    sizes = {k: 8 * k * (3 + 1) for k in (2, 4)}
    assert sums == {("MPI_Allreduce", sizes[k]): 6 for k in (2, 4)}


@each_line(line(2, f"{KMEANS} --divide k"))
def test_values_of_k_divided_need_one_reduction(battery: Battery, line: Line) -> None:
    record = battery(line)
    passed(record)
    names = [name for name, _ in calls(record)]
    assert names.count("MPI_Reduce") == 1
    assert "MPI_Allreduce" not in names


@pytest.mark.parametrize(
    ("line", "rows"),
    [(line(4, f"{KMEANS} --k-to 4 --scaling weak"), 500), (line(4, f"{KNN} --scaling weak"), 333)],
    ids=str,
)
def test_each_rank_gets_as_much_on_any_count(battery: Battery, line: Line, rows: int) -> None:
    passed(battery(line))
    assert calls(battery(line))["MPI_Scatter", 8 * 3 * rows] == 1
