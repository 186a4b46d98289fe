"""`omb-py run`: several benchmarks in one launch of real ranks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from omb_py.cli.run import SUITES
from tests import ROOT
from tests.conftest import Run, rows_of, succeeded
from tests.helpers.pace import slowness
from tests.helpers.refusals import assert_refused, missing

pytestmark = pytest.mark.every_library

QUICK = ("--sizes", "8,64", "-i", "5", "-x", "1")
CORRUPTING = {"PYTHONPATH": str(ROOT / "tests" / "plugin"), "OMB_TEST_RANK": "0"}


def summary_of(path: Path) -> list[dict[str, Any]]:
    """The entries of a summary."""
    entries: list[dict[str, Any]] = json.loads(path.read_text())["entries"]
    return entries


def outcomes(path: Path) -> list[tuple[str, str, int]]:
    """The benchmarks of a summary, what came of them, and their rows."""
    return [(one["benchmark"], one["outcome"], one["rows"]) for one in summary_of(path)]


def test_launch_has_tables_rows_and_a_summary(mpiexec: Run, tmp_path: Path) -> None:
    results = tmp_path / "s.csv"
    own = "allreduce --binding native --sizes 16"
    job = succeeded(mpiexec(3, "run", "latency", own, "barrier", *QUICK, "-o", str(results)))
    titles = re.findall(r"OSU MPI (.*?) (?:Latency )?Test", job.out)
    assert titles == ["Latency", "Allreduce", "Barrier"]
    found = [(r["benchmark"], r["bytes"], r["ranks"], r["binding"]) for r in rows_of(results)]
    assert found == [
        ("latency", "8", "2", "buffer"),
        ("latency", "64", "2", "buffer"),
        ("allreduce", "16", "3", "native"),
        ("barrier", "", "3", "buffer"),
    ]
    assert outcomes(tmp_path / "s.summary.json") == [
        ("latency", "measured", 2),
        ("allreduce", "measured", 1),
        ("barrier", "measured", 1),
    ]
    assert "# Summary: 3 of 3 benchmarks measured" in job.out
    assert f"# command: omb-py run {' '.join(QUICK)} -o {results} barrier\n" in results.read_text()


@pytest.mark.long
def test_a_file_that_is_overwritten_has_the_rows_of_all(mpiexec: Run, tmp_path: Path) -> None:
    results = tmp_path / "s.csv"
    for _ in range(2):
        succeeded(mpiexec(2, "run", "latency", "bw", *QUICK, "-o", str(results), "--force"))
        assert len(summary_of(tmp_path / "s.summary.json")) == 2
        assert [row["benchmark"] for row in rows_of(results)] == ["latency"] * 2 + ["bw"] * 2


def test_csv_on_standard_output_is_one_table(mpiexec: Run) -> None:
    job = mpiexec(2, "run", "latency", "bw", *QUICK, "--format", "csv")
    lines = [line for line in job.out.splitlines() if not line.startswith("#")]
    assert [line.split(",")[1] for line in lines] == ["benchmark", *["latency"] * 2, *["bw"] * 2]
    assert job.out.count("# command: ") == 2


@pytest.mark.long
@pytest.mark.parametrize(("pair", "part"), [("near", "0-1"), ("far", "0+3")])
def test_rows_name_the_pair_of_a_job(mpiexec: Run, tmp_path: Path, pair: str, part: str) -> None:
    results = tmp_path / "s.csv"
    words = ("run", "latency -c", "bw", "--pair", pair, *QUICK, "-o", str(results))
    job = succeeded(mpiexec(4, *words))
    assert [(r["ranks"], r["group"]) for r in rows_of(results)] == [("2", part)] * 4
    assert {r["validation"] for r in rows_of(results) if r["benchmark"] == "latency"} == {"Pass"}
    assert f"# part: ranks {part} of 4\n" in results.read_text()
    assert f"# On ranks {part} of 4." in job.out


@pytest.mark.long
def test_a_scale_measures_on_2_4_and_all_ranks(mpiexec: Run, tmp_path: Path) -> None:
    results = tmp_path / "s.csv"
    words = ("run", "bcast", "latency", "--scale", *QUICK, "-c", "-o", str(results))
    succeeded(mpiexec(5, *words))
    found = [(r["benchmark"], r["ranks"], r["group"]) for r in rows_of(results)][::2]
    assert found == [
        ("bcast", "2", "0-1"),
        ("bcast", "4", "0-3"),
        ("bcast", "5", ""),
        ("latency", "2", "0+4"),
    ]


def test_failure_ends_only_its_benchmark(mpiexec: Run, tmp_path: Path) -> None:
    results = tmp_path / "s.csv"
    words = ["bcast -c --binding corrupting", "put_latency --binding pickle", "allreduce"]
    words += ["latency --sizes 8,1G", "allgather --sizes 2,4 -T float32"]
    job = mpiexec(2, "run", *words, *QUICK, "-o", str(results), **CORRUPTING)
    assert job.code == 1
    assert outcomes(tmp_path / "s.summary.json") == [
        ("bcast", "failed", 1),
        ("put_latency", "left out", 0),
        ("allreduce", "measured", 2),
        ("latency", "left out", 0),
        ("allgather", "measured", 1),
    ]
    assert summary_of(tmp_path / "s.summary.json")[-1]["exit_code"] == 3
    assert "Traceback" not in job.err
    assert "wrong data in bcast" in job.err
    assert [row["validation"] for row in rows_of(results)] == ["Fail", "", "", ""]


@pytest.mark.parametrize(
    ("ranks", "words", "why"),
    [(1, (), "needs exactly 2 ranks"), (2, ("--binding", "pickle"), "binding pickle has no put")],
)
def test_suite_of_which_nothing_was_measured_fails_and_says_why(
    mpiexec: Run, tmp_path: Path, ranks: int, words: tuple[str, ...], why: str
) -> None:
    results = tmp_path / "s.csv"
    job = mpiexec(ranks, "run", "s:onesided", *words, *QUICK, "--quiet", "-o", str(results))
    assert job.code == 5
    assert not missing(f"nothing of s:onesided was measured: put_latency {why}", job.err)
    assert not results.exists()
    other = mpiexec(ranks, "run", "s:onesided", "barrier", *words, *QUICK, "--quiet")
    assert other.code == 5


def test_failure_on_a_part_ends_only_its_benchmark(mpiexec: Run, tmp_path: Path) -> None:
    results = tmp_path / "s.csv"
    words = ["latency -c --binding corrupting", "bw", "--pair", "near", "--timeout", "20"]
    job = mpiexec(3, "run", *words, *QUICK, "-o", str(results), **CORRUPTING)
    assert job.code == 1
    assert outcomes(tmp_path / "s.summary.json") == [
        ("latency", "failed", 1),
        ("bw", "measured", 2),
    ]
    assert "Traceback" not in job.err
    assert "wrong data in latency" in job.err
    found = [(row["benchmark"], row["group"]) for row in rows_of(results)]
    assert found == [("latency", "0-1"), *[("bw", "0-1")] * 2]


@pytest.mark.long
def test_a_suite_leaves_out_what_this_launch_cannot_do(mpiexec: Run, tmp_path: Path) -> None:
    summary = tmp_path / "x.json"
    succeeded(mpiexec(3, "run", "s:pt2pt", *QUICK, "--summary", str(summary), "-q"))
    lines = {one["benchmark"]: one for one in summary_of(summary)}
    assert lines["mbw_mr"]["ranks"] == 2
    assert lines["latency_mt"]["outcome"] == "left out"
    assert "thread level multiple" in lines["latency_mt"]["reason"]
    assert lines["latency"]["outcome"] == "measured"
    named = mpiexec(2, "run", "latency_mt", *QUICK, "-q")
    assert named.code == 5


@pytest.mark.long
@pytest.mark.parametrize("suite", [name for name in SUITES if name not in ("communicator",)])
def test_a_suite_arrives_whole_on_both_libraries(mpiexec: Run, tmp_path: Path, suite: str) -> None:
    summary = tmp_path / "x.json"
    own = " --node-map 2" if suite == "congestion" else ""
    words = (f"s:{suite}{own}", "--sizes", "8", "-i", "2", "-x", "1", "-c", "-q")
    job = mpiexec(4, "run", *words, "--summary", str(summary))
    found = summary_of(summary)
    assert job.code in (0, 3), job.err
    assert [one for one in found if one["outcome"] not in ("measured", "left out")] == []
    assert sum(one["outcome"] == "measured" for one in found) > 0 or suite == "partitioned"


@pytest.mark.long
def test_crash_leaves_rows_and_the_summary_names_what_was_under_way(
    mpiexec: Run, tmp_path: Path
) -> None:
    results, words = tmp_path / "s.csv", ("barrier", "bcast --binding raising", "allreduce")
    common = (*QUICK, "-o", str(results))
    job = mpiexec(2, "run", *words, *common, **CORRUPTING)
    assert job.code not in (0, None)
    assert outcomes(tmp_path / "s.summary.json") == [
        ("barrier", "measured", 1),
        ("bcast", "under way", 0),
        ("allreduce", "waiting", 0),
    ]
    assert [row["benchmark"] for row in rows_of(results)] == ["barrier"]


@pytest.mark.long
def test_a_hang_ends_the_launch_within_its_timeout(mpiexec: Run, tmp_path: Path) -> None:
    results = tmp_path / "s.csv"
    words = ("run", "barrier", "bcast --binding hanging", *QUICK, "-o", str(results))
    job = mpiexec(2, *words, "--timeout", "2", **CORRUPTING)
    assert job.code != 0
    assert job.seconds < 30 * slowness()
    assert "bcast" in job.err
    assert outcomes(tmp_path / "s.summary.json")[1][1] == "under way"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name a benchmark"),
        (("s:all_of_it",), "no suite s:all_of_it: s:pt2pt"),
        (("latancy",), "latancy did you mean latency"),
        (("init",), "init alone"),
        (("ft_shrink",), "ft_shrink alone"),
        (("latency --buffer bytearray",), "same --buffer"),
        (("barrier", "--window-size", "8"), "--window-size option none"),
        (("",), "unknown benchmark ''"),
        (("latency 'x",), "closing quotation"),
        (("latency --sizes x",), "'x' number of bytes"),
        (("latency", "--pair", "0,2"), "--pair '0,2' 'near', 'far'"),
        (("latency", "bw -o a.json", "--summary", "./a.json"), "--summary --output a.json"),
        (("latency", "--force"), "--force --output"),
    ],
    ids=str,
)
def test_run_impossible_launch_refused(mpiexec: Run, words: tuple[str, ...], said: str) -> None:
    job = mpiexec(3, "run", *words)
    assert_refused(job, 2, said)
    assert job.err.count("omb-py:") == 1


def test_a_full_disk_ends_the_launch_in_one_sentence(mpiexec: Run) -> None:
    job = mpiexec(2, "run", "latency", "bw", *QUICK, "--summary", "/dev/full")
    assert_refused(job, 1, "cannot write /dev/full")


def test_odd_ranks_leave_out_the_last_of_an_even_number(mpiexec: Run, tmp_path: Path) -> None:
    results = tmp_path / "s.csv"
    job = mpiexec(4, "run", "alltoall", "mbw_mr", "--odd", *QUICK, "-q", "-o", str(results))
    assert job.code == 0, job.err
    found = {(row["benchmark"], row["ranks"], row["group"]) for row in rows_of(results)}
    assert found == {("alltoall", "3", "0-2"), ("mbw_mr", "4", "")}
