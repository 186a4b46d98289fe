"""``omb-py checkpoint`` on ranks: every method, wrong data, full disks, ranks that die."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from omb_py.measure.checkpoints.methods import usual
from tests.conftest import OMB_PY, Finished, rows_of, run

QUICK = ("checkpoint", "--rounds", "1", "--size", "100001")
PARTS = {
    "checkpoint_write": {"open", "write", "sync", "close", "", "blocking", "overhead"},
    "checkpoint_read": {"open", "read", "close", ""},
}


def assert_failed_well(job: Finished, folder: Path, *words: str) -> None:
    assert job.code != 0
    (sentence,) = job.sentences
    for word in words:
        assert word in sentence
    assert "Traceback" not in job.err
    assert left_in(folder) == []


def left_in(folder: Path) -> list[str]:
    """What is in a folder once a process that removes its own has had time to."""
    deadline = time.monotonic() + 30
    while os.listdir(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    return os.listdir(folder)


@pytest.fixture
def storage(tmp_path: Path) -> Path:
    folder = tmp_path / "storage"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("ranks", [2, 3])
def test_every_method_stores_and_restarts(
    mpiexec: Callable[..., Finished], tmp_path: Path, storage: Path, ranks: int
) -> None:
    words = (*QUICK, "--size", "100001,8", "--compute-time", "2", "--shift", f"{ranks - 1}")
    job = mpiexec(ranks, *words, "--folder", "storage", "--output", "rows.csv")
    assert (job.code, job.sentences) == (0, []), job.err
    rows = rows_of(tmp_path / "rows.csv")
    methods = usual(1)
    for size in ("100001", "8"):
        for method in methods:
            for benchmark, parts in PARTS.items():
                mine = [
                    row
                    for row in rows
                    if (row["bytes"], row["binding"], row["benchmark"]) == (size, method, benchmark)
                ]
                expected = set(parts)
                if benchmark == "checkpoint_write" and method in ("async", "thread"):
                    expected.add("compute")
                    expected -= {"sync"} if method == "thread" else set()
                assert {row["part"] for row in mine} == expected
                assert {row["validation"] for row in mine} == {"Pass"}
                times = {row["part"]: float(row["sample_p50_us"]) for row in mine}
                assert max(times.values()) == times[""] > 0
                if "compute" in times:
                    assert 0 < times["compute"] < times[""]
                    assert 0 < times["blocking"] < times[""]
    assert job.out.count(" Pass\n") == 2 * len(methods)
    assert left_in(storage) == []


def test_other_commands_read_the_rows(
    mpiexec: Callable[..., Finished], omb_py: Callable[..., Finished], tmp_path: Path
) -> None:
    words = (*QUICK, "--method", "shared,numpy", "--no-sync", "--keep-cache")
    job = mpiexec(2, *words, "--output", "rows.csv")
    assert job.code == 0, job.err
    assert "# Sync: none" in job.out
    shown = omb_py("show", "rows.csv", "--across", "binding")
    assert shown.code == 0, shown.err
    for benchmark in PARTS:
        assert f"{benchmark}, 2 ranks" in shown.out
    assert {row["variant"] for row in rows_of(tmp_path / "rows.csv")} == {"", "cache kept"}
    written = [row for row in rows_of(tmp_path / "rows.csv") if row["file_sync"]]
    assert {row["file_sync"] for row in written} == {"False"}
    assert "sync" not in {row["part"] for row in written}


def test_the_interval_follows_from_what_was_measured(mpiexec: Callable[..., Finished]) -> None:
    words = (*QUICK, "--method", "numpy", "--mtbf", "1000", "--nodes", "1,1000000")
    job = mpiexec(2, *words)
    assert job.code == 0, job.err
    few, many = (line.split() for line in job.out.splitlines() if " h  " in line or " s  " in line)
    assert few[:5] == ["numpy", "100001", "B", "1", "1000"]
    assert many[:6] == ["numpy", "100001", "B", "1000000", "3.60", "s"]
    seconds = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
    for line, mtbf in ((few, 3.6e6), (many, 3.6)):
        times = [float(line[i]) * seconds[line[i + 1]] for i in range(4, 14, 2)]
        found_mtbf, cost, _, young, daly = times
        assert found_mtbf == pytest.approx(mtbf)
        assert young == pytest.approx((2 * cost * mtbf) ** 0.5, rel=0.02)
        assert daly <= young * 1.01
    assert 99 < float(many[-2]) + 50 < 151
    assert float(few[-2]) > float(many[-2])


def test_one_rank_is_said_to_read_its_own_cache(
    mpiexec: Callable[..., Finished], storage: Path
) -> None:
    job = mpiexec(1, *QUICK, "--folder", "storage")
    assert job.code == 0
    (note,) = job.sentences
    assert "each rank reads what it wrote itself" in note
    assert left_in(storage) == []


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("damaged", "byte 1000 of rank 1's data is not what it wrote"),
        ("longer", "the file has 100002 bytes instead of 100001"),
    ],
)
def test_wrong_data_fails(
    mpiexec: Callable[..., Finished], storage: Path, method: str, words: str
) -> None:
    job = mpiexec(2, *QUICK, "--method", f"numpy,{method}", "--folder", "storage")
    assert_failed_well(job, storage, f"method {method}, round 0: {words}")
    results = [line.split() for line in job.out.splitlines() if line.endswith(("Pass", "Fail"))]
    assert [(row[0], row[-1]) for row in results] == [("numpy", "Pass"), (method, "Fail")]


def test_a_rank_that_cannot_write_ends_the_job_in_order(
    mpiexec: Callable[..., Finished], storage: Path
) -> None:
    job = mpiexec(3, *QUICK, "--method", "refused", "--folder", "storage")
    assert_failed_well(job, storage, "method refused cannot write", "(open)", "No space left")


@pytest.mark.parametrize("method", ["file_per_rank", "collective", "hdf5", "async", "thread"])
def test_a_file_that_may_not_grow_is_said(
    mpiexec: Callable[..., Finished], storage: Path, method: str
) -> None:
    if method == "hdf5":
        pytest.importorskip("h5py")
    job = mpiexec(2, *QUICK, "--method", f"limited_{method}", "--folder", "storage")
    assert_failed_well(job, storage, f"limited_{method} cannot write", "name another --folder")


def test_a_killed_rank_leaves_nothing(mpiexec: Callable[..., Finished], storage: Path) -> None:
    job = mpiexec(2, *QUICK, "--method", "killed", "--folder", "storage")
    assert job.code != 0
    assert job.seconds < 60
    assert left_in(storage) == []


@pytest.mark.parametrize("folder", ["/proc", "missing"])
def test_a_folder_that_cannot_be_written_is_named(
    mpiexec: Callable[..., Finished], storage: Path, folder: str
) -> None:
    job = mpiexec(2, *QUICK, "--folder", folder)
    assert_failed_well(job, storage, f"--folder {folder}: cannot make a folder", "write to")


def test_a_folder_that_nodes_do_not_share_is_named(mpi: str, tmp_path: Path, storage: Path) -> None:
    apart = ["unshare", "--mount", "--map-root-user", "bash", "-c"]
    hide = 'mount -t tmpfs none storage && exec "$@"'
    able = subprocess.run([*apart, hide, "-", "true"], cwd=tmp_path, capture_output=True)
    if able.returncode:
        pytest.skip("no mount namespaces")
    command = [OMB_PY, *QUICK, "--folder", "storage"]
    hidden = ["-n", "1", *apart, hide, "-", *command]
    job = run([mpi, "-n", "1", *command, ":", *hidden], {}, tmp_path, 120)
    assert_failed_well(job, storage, "rank 1", "does not see the folder", "all nodes share")
