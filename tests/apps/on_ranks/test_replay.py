"""Profiles replayed on real ranks: calls of every kind, and what is said of them."""

from __future__ import annotations

import pytest

from tests import ROOT
from tests.helpers.battery import Battery, Line, completed, each_line, line

DATA = ROOT / "tests" / "data"
PROFILE = DATA / "mpitrace" / "thetagpu-cpu-16ranks.txt"
OTHER = DATA / "mpitrace" / "thetagpu-gpu-8ranks.txt"
EVERY_ROUTINE = DATA / "mpitrace" / "every-routine.txt"
QUICK = "--repeats 1 --warmup-repeats 0"
PLAIN = "--leave-out allgatherv --leave-out alltoallv --leave-out gatherv"
PLAIN += " --leave-out reduce_scatter"

ALL = [
    line(ranks, f"replay {EVERY_ROUTINE} --scale 0.2 {QUICK} --binding {binding}")
    for ranks in (2, 3, 4)
    for binding in ("buffer", "native")
] + [line(3, f"replay {EVERY_ROUTINE} --scale 0.2 {QUICK} --binding pickle {PLAIN}")]
BESIDE = line(4, f"replay {PROFILE} --scale 0.001 {QUICK} --split-wait --references")
ANOTHER = line(3, f"replay {OTHER} --scale 0.01 {QUICK}")


@pytest.mark.product(strength=1)
@each_line(ALL)
def test_each_routine_is_called_as_often_as_planned(battery: Battery, line: Line) -> None:
    record = completed(battery(line))
    (whole,) = record.measured
    assert whole["check"] == "Pass"
    made = {row["part"]: row["calls"] for row in record.rows if row["part"] is not None}
    routines = ["Bcast", "Reduce", "Barrier", "Send", "Recv", "Isend", "Irecv", "Sendrecv"]
    assert {made[f"MPI_{name}"] for name in routines} == {4}
    assert made["MPI_Waitall"] == 8


@each_line(BESIDE)
def test_each_size_stands_beside_the_profile(battery: Battery, line: Line) -> None:
    record = completed(battery(line))
    rows = [row for row in record.rows if row["call_bytes"] == 8 and row["calls"] == 7428]
    replayed, profile = sorted(rows, key=lambda row: row["part"], reverse=True)
    assert (replayed["part"], profile["part"]) == (
        "replayed MPI_Allreduce",
        "profile's MPI_Allreduce",
    )
    assert profile["time_s"] == 5.696
    assert replayed["value"] == pytest.approx(replayed["time_s"] / 5.696)
    (made,) = (
        row for row in record.rows if row["part"] == "MPI_Allreduce" and row["call_bytes"] == 8
    )
    assert made["calls"] == 7
    assert replayed["time_s"] == pytest.approx(made["time_s"] * 7428 / 7)
    total = next(row for row in record.rows if row["part"] == "replayed calls")
    parts = [row for row in record.rows if str(row["part"]).startswith("replayed MPI_")]
    assert total["time_s"] == pytest.approx(sum(row["time_s"] for row in parts))
    values = {row["part"]: row["value"] for row in record.rows}
    assert values["profile's ranks"] == 16
    assert "left out MPI_Comm_rank" in values


@each_line(BESIDE)
def test_there_is_no_reference_and_no_barrier(battery: Battery, line: Line) -> None:
    record = battery(line)
    (whole,) = record.measured
    assert whole["speedup"] is None
    assert whole["one_rank_s"] is None
    assert whole["wait_s"] == 0


@each_line(ANOTHER)
def test_another_profile_on_another_number_of_ranks(battery: Battery, line: Line) -> None:
    record = battery(line)
    (whole,) = record.measured
    assert (whole["check"], whole["ranks"]) == ("Pass", 3)
    assert whole["unit"] == "calls/s"
    assert whole["value"] == pytest.approx((117 + 9) / whole["time_s"])
