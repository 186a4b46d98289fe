"""`--congestor`: a victim and its congestors on real ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

import omb_py
from tests.conftest import Run, succeeded
from tests.helpers.battery import Battery, Line, completed, each_line, line

LINES = [
    line(5, "allreduce --congestor alltoall:4K --sizes 8,64 -i 12 -x 2 --rounds 6"),
    line(
        5, "allreduce --congestor barrier --sizes 8 -i 12 --rounds 6 --binding native --sync clock"
    ),
    line(5, "barrier --congestor iallgather:1K -i 12 --rounds 6 --split 0-1,2+4"),
    line(5, "latency --congestor bw:4K --split 0+3,1-2 --sizes 8 -i 12 --rounds 6"),
]


@each_line(LINES)
def test_each_size_has_a_row_alone_and_one_congested(battery: Battery, line: Line) -> None:
    record = completed(battery(line))
    alone, congested = record.rows[::2], record.rows[1::2]
    name = line.arguments[2] if ":" not in line.arguments[2] else congested[0]["congestor"]
    assert {row["congestor"] for row in alone} == {"none"}
    assert {row["congestor"] for row in congested} == {name}
    for first, second in zip(alone, congested, strict=True):
        assert (first["bytes"], first["group"]) == (second["bytes"], second["group"])
        assert (first["iterations"], second["iterations"], second["rounds"]) == (12, 12, 6)
        assert (first["congestor_iterations"], first["impact"]) == (0, None)
        assert second["congestor_iterations"] > 0
        for factor in ("impact", "impact_p99"):
            assert second[f"{factor}_low"] <= second[factor] <= second[f"{factor}_high"]


@pytest.mark.long
@pytest.mark.every_library
def test_impact_of_congestion_is_in_the_file(mpiexec: Run, tmp_path: Path) -> None:
    words = ("--congestor", "alltoall:1K", "--sizes", "8", "-i", "12", "--rounds", "6")
    groups = ("--split", "1-2,0+5,3-4", "-o", str(tmp_path / "c.csv"))
    job = succeeded(mpiexec(7, "allreduce", *words, *groups))
    assert "# Victim: ranks 1-2; congestor alltoall:1024: ranks 0+5, 3-4" in job.out
    _, cells = job.rows
    rows = omb_py.load(tmp_path / "c.csv").rows
    assert [*rows.congestor] == ["none", "alltoall:1024"]
    assert {*rows.group} == {"1-2"}
    assert cells[0] == "8"
    assert float(cells[3]) == pytest.approx(rows.impact[1], abs=0.005)
