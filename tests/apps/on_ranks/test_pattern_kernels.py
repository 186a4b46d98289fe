"""Tokens to experts, halos, transposes, joins on real ranks: uneven sizes, calls, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers.battery import Battery, Line, Record, completed, each_line, line

QUICK = "--repeats 2 --warmup-repeats 0"
UNEVEN = (
    "halo --rows 101 --columns 37 --steps 5",
    "halo --rows 101 --columns 37 --steps 6 --overlap",
    "halo --rows 8 --columns 2 --steps 3 --overlap",
    "dispatch --tokens 1001 --hidden 7 --experts 13 --top-k 3 --popularity 4",
    "dispatch --tokens 101 --hidden 6 --experts 9 --dtype float32",
    "dispatch --tokens 101 --hidden 6 --experts 9 --dtype float8 --exchange pairs",
    *(
        f"{problem} --exchange {exchange}"
        for problem in ("transpose_sum --size 37", "merge --rows 1001 --keys 100 --payload 3")
        for exchange in ("alltoallv", "pairs")
    ),
)
SCARCE = tuple(
    f"{problem} --exchange {exchange}"
    for problem in (
        "dispatch --tokens 1 --hidden 1 --experts 8 --top-k 1",
        "dispatch --tokens 3 --hidden 5 --experts 1000 --top-k 1",
        "dispatch --tokens 50 --hidden 5 --experts 8 --top-k 1 --popularity 8",
        "transpose_sum --size 1",
        "merge --rows 2 --keys 1",
        "merge --rows 50 --keys 1",
        "merge --rows 3 --keys 1000000000",
    )
    for exchange in ("alltoallv", "pairs")
)
"""So few tokens, rows or keys, or one so popular, that ranks send nothing, or one has all."""

EVEN = (
    "halo --rows 31 --columns 17 --steps 7",
    "halo --rows 31 --columns 17 --steps 7 --overlap",
    "dispatch --tokens 48 --hidden 4 --experts 12 --top-k 3 --exchange pairs",
    "transpose_sum --size 37 --exchange pairs",
    "merge --rows 1001 --keys 100 --exchange pairs",
)
ALL = (*UNEVEN, *SCARCE)


@pytest.mark.product(strength=1)
@each_line(
    *(line(ranks, f"{problem} {QUICK}") for ranks in (1, 2, 3, 4, 8) for problem in ALL),
    *(line(5, f"{problem} {QUICK}") for problem in ALL if not problem.startswith(("d", "h"))),
    *(line(ranks, f"{problem} {QUICK} --binding native") for ranks in (3, 4) for problem in ALL),
    *(line(ranks, f"{problem} {QUICK} --binding pickle") for ranks in (1, 4) for problem in EVEN),
    *(line(3, f"{problem} {QUICK} --binding pickle") for problem in UNEVEN if "halo" in problem),
    *(line(3, f"{problem} {QUICK} --buffer bytearray") for problem in (*EVEN, UNEVEN[3])),
)
def test_results_are_right_whatever_the_division(battery: Battery, line: Line) -> None:
    record = completed(battery(line))
    (whole,) = record.measured
    assert whole["check"] == "Pass"


GROWN: dict[str, dict[int, float]] = {
    "halo --rows 31 --columns 17 --steps 7": {2: 2 * 3689e-6, 3: 3 * 3689e-6},
    "dispatch --tokens 70 --hidden 4": {2: 2 * 70, 3: 3 * 70},
    "merge --rows 100 --keys 20": {2: 2 * 200, 3: 3 * 200},
    "transpose_sum --size 48": {2: 68**2 * 8e-9, 3: 84**2 * 8e-9},
}
"""What so many ranks do, in the metric's unit times seconds."""


@pytest.mark.product(strength=1)
@each_line(
    line(ranks, f"{problem} {QUICK} --scaling weak") for ranks in (2, 3) for problem in GROWN
)
def test_problems_grow_with_the_ranks(battery: Battery, line: Line) -> None:
    record = completed(battery(line))
    (whole,) = record.measured
    assert (whole["check"], whole["scaling"]) == ("Pass", "weak")
    done = GROWN[" ".join(line.arguments).removesuffix(f" {QUICK} --scaling weak")]
    assert whole["value"] * whole["time_s"] == pytest.approx(done[line.ranks])


CALLS = {
    "dispatch --tokens 48 --hidden 4 --experts 3 --top-k 3": {("MPI_Alltoallv", 2, 48 * 8 / 3)},
    "dispatch --tokens 50 --hidden 4 --experts 4 --top-k 4": {
        ("MPI_Alltoallv", 1, 17 * 4 * 8 / 3),
        ("MPI_Alltoallv", 1, 50 * 2 * 8 / 3),
    },
    "dispatch --tokens 48 --hidden 4 --experts 3 --top-k 3 --exchange pairs": {
        ("MPI_Irecv", 4, 16 * 8),
        ("MPI_Isend", 4, 16 * 8),
        ("MPI_Waitall", 2, 0),
    },
    "transpose_sum --size 50": {("MPI_Alltoallv", 1, 50 * 17 * 8 / 3), ("MPI_Reduce", 1, 8)},
    "merge --rows 300 --keys 1 --payload 2": {
        ("MPI_Alltoall", 1, 2 * 8),
        ("MPI_Alltoallv", 2, 100 * 3 * 8 / 3),
    },
    "halo --rows 31 --columns 17 --steps 7": {
        ("MPI_Irecv", 7, 17 * 8),
        ("MPI_Isend", 7, 17 * 8),
        ("MPI_Waitall", 7, 0),
    },
}
"""What rank 0 of three calls, how often and with how many bytes; all tokens go to all experts."""


@each_line(line(3, f"{problem} {QUICK}") for problem in CALLS)
def test_calls_are_those_of_the_pattern(battery: Battery, line: Line) -> None:
    record = battery(line)
    expected = CALLS[" ".join(line.arguments).removesuffix(f" {QUICK}")]
    assert _calls(record.rows) == expected


@each_line(
    line(3, f"{problem} {QUICK}") for problem in ("transpose_sum --size 600", "merge --rows 9000")
)
def test_parts_add_up_to_the_time(battery: Battery, line: Line) -> None:
    rows = battery(line).rows
    parts = {row["part"]: row["time_s"] for row in rows if not row["calls"] and not row["check"]}
    last = {"merge": "join", "transpose_sum": "sum"}[line.arguments[0]]
    (whole,) = (row["time_s"] for row in rows if row["rank"] == 0)
    assert sum(parts[name] for name in ("partition", "exchange", last)) == pytest.approx(
        whole, rel=0.05
    )


RESIDUALS = [line(ranks, f"halo --rows 31 --columns 17 --steps 9 {QUICK}") for ranks in (1, 3, 4)]


@pytest.fixture(scope="module")
def one_rank(mpi: str, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """What one rank finds."""
    return Battery(RESIDUALS[:1], tmp_path_factory.mktemp("one_rank"))(RESIDUALS[0])


@each_line(RESIDUALS[1:])
def test_residual_is_the_same_on_any_ranks(battery: Battery, one_rank: Record, line: Line) -> None:
    values = [
        row["value"]
        for record in (one_rank, battery(line))
        for row in record.rows
        if row["part"] == "residual"
    ]
    assert values[0] > 0
    assert values[1] == pytest.approx(values[0], rel=1e-12)


def _calls(rows: list[dict[str, Any]]) -> set[tuple[str, int, float]]:
    """Names, numbers and sizes of rank 0's calls."""
    return {
        (row["part"], row["calls"], row["call_bytes"])
        for row in rows
        if row["part"] is not None and row["part"].startswith("MPI_")
    }
