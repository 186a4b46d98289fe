"""Ranks that fail, and the others that go on: Open MPI's ULFM, by real kills."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omb_py.benchmarks.recovery import AROUND_FAILURE, REPLACED, REVOKED
from omb_py.core.options import OPERATIONS
from tests.conftest import OMB_PY, Run, rows_of, run, succeeded
from tests.helpers.pace import slowness
from tests.helpers.refusals import ENDED, assert_refused
from tests.mpi.fixtures import START, assert_goes_well
from tests.mpi.vendor import on_open_mpi


@pytest.mark.long
@on_open_mpi
def test_every_operation_reports_a_failed_rank(outliving: Run, tmp_path: Path) -> None:
    job = outliving(5, "ft_detect", "--output", "rows.csv")
    assert_goes_well(job)
    rows = rows_of(tmp_path / "rows.csv")
    assert [row["part"] for row in rows] == [*OPERATIONS]
    assert [row["ranks"] for row in rows] == ["5", "4", "3"]
    assert {row["failed"] for row in rows} == {"1"}
    for row in rows:
        low, mean, high = (float(row[f"latency_{name}us"]) for name in ("min_", "", "max_"))
        assert 0 < low <= mean * 1.000001 <= high * 1.000002 < job.seconds * 1e6
    assert [line[:3] for line in job.rows] == [[row["part"], row["ranks"], "1"] for row in rows]


@pytest.mark.long
@on_open_mpi
@pytest.mark.parametrize(
    ("words", "failed", "ranks"),
    [
        (("ft_shrink", "--victims", "1,3"), "2", ["6"]),
        (("ft_agree", "--failures", "2", "-I"), "1", ["6", "5"]),
    ],
)
def test_a_failure_is_repaired_and_agreed_on(
    outliving: Run, tmp_path: Path, words: tuple[str, ...], failed: str, ranks: list[str]
) -> None:
    job = outliving(6, *words, "-i", "7", "-x", "2", "--output", "rows.csv")
    assert_goes_well(job)
    rows = rows_of(tmp_path / "rows.csv")
    assert [row["part"] for row in rows] == [*AROUND_FAILURE] * len(ranks)
    assert [row["failed"] for row in rows] == ["0", failed, failed] * len(ranks)
    assert [row["iterations"] for row in rows] == ["7", "1", "7"] * len(ranks)
    assert [row["ranks"] for row in rows] == [number for number in ranks for _ in range(3)]


@on_open_mpi
def test_ranks_that_wait_learn_of_a_revocation(outliving: Run, tmp_path: Path) -> None:
    job = outliving(4, "ft_revoke", "-i", "20", "--output", "rows.csv")
    assert_goes_well(job)
    rows = rows_of(tmp_path / "rows.csv")
    assert [row["part"] for row in rows] == [*REVOKED]
    assert {(row["iterations"], row["failed"]) for row in rows} == {("20", "0")}
    assert all(float(row["sample_min_us"]) > 0 for row in rows)


@pytest.mark.long
@on_open_mpi
def test_failed_ranks_are_replaced_again_and_again(outliving: Run, tmp_path: Path) -> None:
    words = ("ft_respawn", "--failures", "2", "--output", "rows.csv")
    job = outliving(4, *words, OMPI_MCA_btl="self,sm,tcp")
    assert_goes_well(job)
    rows = rows_of(tmp_path / "rows.csv")
    assert [row["part"] for row in rows] == [*REPLACED] * 2
    assert {(row["ranks"], row["failed"], row["validation"]) for row in rows} == {
        ("4", "1", "Pass")
    }
    times = {row["part"]: float(row["latency_us"]) for row in rows[5:]}
    assert sum(times[part] for part in REPLACED[:-1]) <= times["total"] * 1.01


@on_open_mpi
@pytest.mark.parametrize(
    ("ranks", "words", "says"),
    [
        (2, ("ft_detect",), "failure 2 of 3 no rank other than 0 1 rank"),
        (1, ("ft_shrink",), "ft_shrink at least 2 ranks"),
        (3, ("ft_agree", "--victims", "0"), "rank 0 results: others"),
        (3, ("ft_respawn",), "OMPI_MCA_btl=self,sm add"),
    ],
)
def test_infallible_refused(outliving: Run, ranks: int, words: tuple[str, ...], says: str) -> None:
    job = outliving(ranks, *words)
    assert_refused(job, 2, says)


def test_a_job_that_ends_with_its_ranks_says_how_to_start_it(mpiexec: Run) -> None:
    job = mpiexec(2, "ft_shrink")
    assert_refused(job, 5, "rank fails mpirun --with-ft ulfm")


@pytest.mark.long
@on_open_mpi
def test_sweep_repeats_jobs_that_outlive_ranks(mpi: str, tmp_path: Path) -> None:
    (tmp_path / "failures.toml").write_text(
        'name = "failures"\nlaunches = 2\n[[experiments]]\n'
        'benchmarks = ["ft_shrink", "init"]\nranks = [3]\n'
    )
    (tmp_path / "here.toml").write_text('name = "here"\nlauncher = "openmpi"\ncores_per_node = 4\n')
    sweep = [OMB_PY, "sweep", "./failures.toml", "--machine", "./here.toml"]
    first = succeeded(run(sweep, {}, tmp_path, 100))
    assert "4/4 rows" in first.out
    again = run(sweep, {}, tmp_path, 60)
    assert (again.code, again.out.splitlines()[-1][:9]) == (0, "complete:")
    assert "[" not in again.out
    files = os.listdir(tmp_path / "sweeps" / "failures-here" / "points")
    assert len([name for name in files if name.startswith("ft_shrink")]) == 2


@pytest.mark.long
@on_open_mpi
def test_a_job_that_outlives_its_ranks_fails_where_one_hangs(mpi: str, tmp_path: Path) -> None:
    words = "ft_revoke -i 100000000 --timeout 3"
    stop = f"[ $OMPI_COMM_WORLD_RANK != 2 ] || (sleep 2; kill -STOP $$) & exec {OMB_PY} {words}"
    job = run([mpi, *START, "-n", "4", "bash", "-c", stop], {}, tmp_path, timeout=60)
    assert_refused(job, ENDED, "rank 0: no progress for 3 s while measuring ft_revoke")
    assert job.seconds < 15 * slowness()
