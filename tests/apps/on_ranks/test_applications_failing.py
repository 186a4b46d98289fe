"""Applications that cannot be run, or are from outside: sentences, exit codes, whole tables."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import pytest

from tests.conftest import OMB_PY, Run, rows_in_text, rows_of, run, succeeded
from tests.helpers.reading import objects
from tests.helpers.refusals import ANY_CODE, ENDED, assert_refused
from tests.helpers.waiting import ended_by_timeout

SMALL = ("--rows", "32", "--inner", "16", "--columns", "24", "--repeats", "2")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("matmull", "unknown benchmark 'matmull' did you mean matmul"),
        ("matmul --rows 0", "--rows 0 is not in the range x>=1"),
        ("matmul --output /proc/none/results.csv", "cannot write --output"),
        (
            f"matmul --rows 1 --inner 1 --columns {1 << 50} --no-references",
            "choose a smaller problem",
        ),
        ("pi --error 1", "pi: pi is off by 1"),
    ],
)
def test_impossible_application_refused(mpiexec: Run, words: str, says: str) -> None:
    assert_refused(mpiexec(2, *words.split()), ANY_CODE, says)


@pytest.mark.parametrize("application", ["kmeans", "knn"])
def test_missing_package_ends_all_ranks(mpi: str, tmp_path: Path, application: str) -> None:
    program = (
        "import sys; sys.modules['sklearn'] = None; sys.argv[0] = 'omb-py'; "
        "from omb_py.cli import main; main()"
    )
    job = run([mpi, "-n", "2", sys.executable, "-c", program, application], {}, tmp_path, 60)
    assert_refused(job, 8, "the Python package sklearn")
    assert "rank" not in job.sentences[0]
    assert "abort" not in job.err.lower()
    assert job.out == ""


def test_ranks_sleep_while_rank_0_prepares_the_reference(mpi: str, tmp_path: Path) -> None:
    """Importing scikit-learn took 50 s beside seven ranks that looked for messages."""

    def processor_seconds(pause: float) -> float:
        (tmp_path / "sklearn.py").write_text(
            f"import time; time.sleep({pause}); raise ModuleNotFoundError(name='sklearn')"
        )
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        job = run([mpi, "-n", "3", OMB_PY, "knn"], {"PYTHONPATH": str(tmp_path)}, tmp_path, 60)
        assert_refused(job, 8, "the Python package sklearn")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    pause = 3.0
    assert processor_seconds(pause) - processor_seconds(0) < pause / 2


@pytest.mark.parametrize("fault", ["raising", "killed"])
def test_a_rank_that_dies_ends_the_job(mpiexec: Run, fault: str) -> None:
    job = mpiexec(2, "pi", "--binding", fault, OMB_TEST_RANK="1")  # it has 120 s
    assert job.code != 0
    assert "Traceback" not in job.err


def test_a_rank_that_hangs_is_ended(mpiexec: Run) -> None:
    words = ("pi", "--binding", "hanging", "--timeout")
    job, seconds = ended_by_timeout(
        lambda timeout: mpiexec(2, *words, f"{timeout}", OMB_TEST_RANK="1"), "pi: solving"
    )
    assert_refused(job, ENDED, f"no progress for {seconds} s while pi: solving")


def test_an_application_from_outside_is_one_of_ours(mpiexec: Run) -> None:
    done = succeeded(mpiexec(3, "pi", "--steps", "100"))
    assert "rectangles/s" in done.out
    assert "Pass: pi is off by" in done.out
    assert "MPI_Allreduce" in done.out


@pytest.mark.any_library
def test_tables_hold_what_the_text_says(mpiexec: Run, tmp_path: Path) -> None:
    again = [mpiexec(2, "matmul", *SMALL, "--output", "rows.csv") for _ in range(2)]
    assert [done.code for done in again] == [0, 0]
    rows = rows_of(tmp_path / "rows.csv")
    assert len({row["run"] for row in rows}) == 2
    wholes = [row for row in rows if not row["part"]]
    assert [row["check"] for row in wholes] == ["Pass", "Pass"]
    assert f"{float(wholes[1]['speedup']):.3f}" in again[1].out
    assert wholes[0]["problem"] == "rows=32 inner=16 columns=24 dtype=float32 seed=1"
    assert "(1)" in wholes[0]["blas"]
    assert wholes[0]["cores"] == "2"


@pytest.mark.any_library
def test_formats(mpiexec: Run, tmp_path: Path) -> None:
    done = succeeded(mpiexec(2, "matmul", *SMALL, "--format", "json", "--output", "rows.json"))
    (printed,) = [row for row in objects(done.out) if "application" in row and "part" not in row]
    kept = objects((tmp_path / "rows.json").read_text())
    assert printed["ranks"] == 2
    assert printed in kept
    done = mpiexec(1, "matmul", *SMALL, "--format", "csv")
    assert rows_in_text(done.out)[0]["speedup"] == "1"
    assert mpiexec(1, "matmul", *SMALL, "-q").out == ""


@pytest.mark.any_library
def test_a_table_of_benchmarks_is_not_written_to(mpiexec: Run, tmp_path: Path) -> None:
    assert mpiexec(2, "latency", "--sizes", "8", "-i", "2", "--output", "rows.csv").code == 0
    before = (tmp_path / "rows.csv").read_text()
    refused = mpiexec(2, "matmul", *SMALL, "--output", "rows.csv")
    assert_refused(refused, ANY_CODE, "not a table of this version")
    assert (tmp_path / "rows.csv").read_text() == before


@pytest.mark.any_library
def test_threads_are_pinned_whatever_the_environment_says(mpiexec: Run, tmp_path: Path) -> None:
    succeeded(mpiexec(1, "matmul", *SMALL, "--output", "rows.csv", OPENBLAS_NUM_THREADS="2"))
    assert "(1)" in rows_of(tmp_path / "rows.csv")[0]["blas"]


@pytest.mark.any_library
@pytest.mark.parametrize("ranks", [1, 2])
def test_without_threadpoolctl_ranks_of_one_host_have_a_note(
    mpiexec: Run, tmp_path: Path, ranks: int
) -> None:
    (tmp_path / "threadpoolctl.py").write_text("raise ModuleNotFoundError(name='threadpoolctl')")
    paths = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    job = succeeded(mpiexec(ranks, "matmul", *SMALL, PYTHONPATH=paths))
    assert "# 1 thread in each rank for an unknown library" in job.out
    assert ("library were not set" in job.err) == (ranks > 1)
