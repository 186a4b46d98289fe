"""`omb-py compare --native`: jobs of two programs alternately, and whatever can go wrong with them.

Native OMB is not there. In its place stands a script of its name that starts omb-py's own
benchmark through binding `native`, whose text has native OMB's layout.
"""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import BIN, Run, succeeded
from tests.helpers.refusals import assert_refused
from tests.helpers.waiting import wait_for

pytestmark = [pytest.mark.usefixtures("mpi"), pytest.mark.any_library]

QUICK = ("-m", "1:4", "-i", "20", "-x", "2")
STAND_IN = f'exec "{BIN}/omb-py" latency --binding native "$@"'


def program(folder: Path, script: str, name: str = "osu_latency") -> Path:
    """A program where native OMB installs it."""
    path = folder / "libexec" / "osu-micro-benchmarks" / "mpi" / "pt2pt" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.usefixtures("long_time")
def test_both_are_measured_by_turns_and_compared(omb_py: Run, tmp_path: Path) -> None:
    program(tmp_path / "omb", STAND_IN)
    done = omb_py(
        *("compare", "--native", "omb", "latency", *QUICK, "--rounds", "4", "-Tmpi_int"),
        *("--keep", "kept", "-o", "points.csv"),
        timeout=120,
    )
    assert done.code == 0, done.err
    points = pd.read_csv(tmp_path / "points.csv")
    assert list(points.bytes) == [4]  # whole elements of the type that both were told
    assert set(points.other) == {"native"}
    assert set(points.mpi_type) == {"MPI_INT"}
    assert set(points.runs_base) == set(points.runs_other) == {4}
    assert set(points.noise) == {"runs"}
    assert set(points.ranks) == {2}
    assert done.out.strip().startswith("native: ")
    turns = [f"{i:03d}-{name}" for i in (1, 2) for name in ("osu_latency.txt", "native.csv")]
    written = [(tmp_path / "kept" / name).stat().st_mtime_ns for name in turns]
    assert written[0] < written[1] < written[3] < written[2]  # the second round is reversed


@pytest.mark.long
@pytest.mark.product(strength=0)
@pytest.mark.parametrize(
    ("benchmark", "said", "taken"),
    [
        ("allreduce", "mpi_char", "MPI_CHAR"),
        ("allreduce", "mpi_int", "MPI_INT"),
        ("allreduce", None, "MPI_FLOAT"),  # as before version 7.1
        ("acc_latency", None, "MPI_CHAR"),
    ],
)
def test_our_reduction_takes_the_type_that_native_omb_took(
    in_process: Run, tmp_path: Path, benchmark: str, said: str | None, taken: str
) -> None:
    script = f'exec "{BIN}/omb-py" {benchmark} --binding native -T {said or taken.lower()} "$@"'
    if said is None:
        script = script.replace("exec ", "") + " | sed /Datatype/d"
    path = program(tmp_path, script, f"osu_{benchmark}")
    done = in_process(
        *("compare", "--native", str(path), benchmark, "-m", "8:8", "-i", "20", "-x", "2"),
        *("--rounds", "1", "--format", "csv", "-o", "points.csv"),
    )
    assert done.code == 0, done.err
    assert list(pd.read_csv(tmp_path / "points.csv").mpi_type) == [taken]


@pytest.mark.long
@pytest.mark.every_library
def test_several_bindings_take_turns(in_process: Run, tmp_path: Path) -> None:
    path = program(tmp_path / "omb", STAND_IN)
    done = in_process(
        *("compare", "--rounds=1", "latency", "-m", "8:8", "-i", "20", "-x", "2"),
        *("--bindings", "native,buffer", "--native", str(path), "-n", "2", "--format", "csv"),
    )
    assert done.code == 0, done.err
    assert [line.split(",")[0] for line in done.out.splitlines()[1:]] == ["native", "buffer"]
    assert "one run a side" in done.err


@pytest.mark.long
@pytest.mark.every_library
def test_bindings_of_a_round_share_a_launch(in_process: Run, tmp_path: Path) -> None:
    program(tmp_path / "omb", STAND_IN)
    words = ("compare", "--native", "omb", "latency", "-m", "8:8", "-i", "20", "--rounds", "2")
    bindings = ("--bindings", "native,buffer", "--keep")
    for options, launches in (((), 1), (("-I",), 2)):
        succeeded(in_process(*words, *bindings, f"kept{launches}", *options))
        assert len([*(tmp_path / f"kept{launches}").glob("*.csv")]) == 4
        assert len([*(tmp_path / f"kept{launches}").glob("001-*.stderr")]) == 1 + launches


@pytest.mark.long
def test_native_omb_is_told_sizes_that_it_understands(in_process: Run, tmp_path: Path) -> None:
    written = f'echo "$@" > "{tmp_path}/told"; '
    program(tmp_path / "omb", f"{written}{STAND_IN}")
    done = in_process(
        *("compare", "--native", "omb", "latency", "-m", "1K:2K", "-M1G", "-i", "20", "-x", "2"),
        *("--rounds", "1", "--format", "csv"),
    )
    assert done.code == 0, done.err
    assert (tmp_path / "told").read_text() == "-m 1024:2048 -M1073741824 -i 20 -x 2 -z50\n"
    assert len(done.out.splitlines()) == 3


@pytest.mark.usefixtures("long_time")
def test_rounds_end_at_max_time_with_a_summary(omb_py: Run, tmp_path: Path) -> None:
    program(tmp_path / "omb", STAND_IN)
    limits = ("--precision", "0.1%", "--max-time", "6")
    words = ("-m", "8:16", *limits, "--keep", "kept", "--format", "csv", "-o", "points.csv")
    done = succeeded(omb_py("compare", "--native", "omb", "latency", *words, timeout=120))
    points = pd.read_csv(tmp_path / "points.csv")
    (rounds,) = {*points.runs_base, *points.runs_other}
    assert len([*(tmp_path / "kept").glob("*-native.csv")]) == rounds
    assert set(points.statistic) == {"median"}
    assert f"{rounds} round" in done.out.splitlines()[-1]
    if rounds >= 4:
        assert "of 2 ratios known within ±0.1 %, the worst at " in done.out
        assert "raise --max-time" in done.out


@pytest.mark.long
def test_program_without_percentiles_compared_by_means(in_process: Run, tmp_path: Path) -> None:
    refuses = 'case "$*" in *-z*) echo "invalid option -z" >&2; exit 1;; esac; '
    program(tmp_path / "omb", f"{refuses}{STAND_IN}")
    words = ("latency", *QUICK, "--rounds", "1", "--format", "csv", "-o", "points.csv")
    succeeded(in_process("compare", "--native", "omb", *words))
    assert set(pd.read_csv(tmp_path / "points.csv").statistic) == {"mean"}


@pytest.mark.long
def test_a_program_that_never_ends_mpi_is_compared(in_process: Run, tmp_path: Path) -> None:
    """As native OMB's latency_mt, which some launchers end with an error for that."""
    script = f'"{BIN}/omb-py" latency_mt --binding native "$@"; exit 1'
    program(tmp_path / "omb", script, "osu_latency_mt")
    words = ("latency_mt", *QUICK, "--rounds", "1", "--format", "csv")
    done = succeeded(in_process("compare", "--native", "omb", *words))
    assert len(done.out.splitlines()) > 1


@pytest.mark.long
def test_programs_without_sizes_are_compared(in_process: Run, tmp_path: Path) -> None:
    program(tmp_path / "omb", f'exec "{BIN}/omb-py" init "$@"', "osu_init")
    done = in_process(*("compare", "--native", "omb", "init", "--rounds", "1", "--format", "csv"))
    assert done.code == 0, done.err
    (row,) = pd.read_csv(io.StringIO(done.out)).itertuples()
    assert (row.other, row.benchmark, row.verdict) == ("omb-py", "init", "unclear")
    assert row.ratio > 0


LATENCY = 'echo "# OSU MPI Latency Test v7.4"; echo "# Size          Latency (us)"; '
ROW = 'echo "1                       1.00"'
FAILURES = {
    "it fails": ("echo 'No such device: mlx9' >&2; exit 3", "'No such device: mlx9' failed"),
    "it prints nothing": ("exit 0", "printed no table of results"),
    "it measures something else": (
        f'echo "# OSU MPI Bandwidth Test v7.4"; echo "# Size      Bandwidth (MB/s)"; {ROW}',
        "measured bw, not latency",
    ),
    "it belongs to another MPI": (
        "echo 'This test requires exactly two processes' >&2; exit 1",
        "This test requires exactly two processes the same MPI library --launcher",
    ),
    "each process runs by itself": (
        f"{LATENCY}{ROW}",
        "did not run as one job of 2 ranks the same MPI library",
    ),
    "each process runs by itself, and one says more": (
        'mkdir first 2> /dev/null && echo "# OSU MPI Latency Test v7.4" && exit; '
        f"until [ -e first ]; do :; done; {LATENCY}{ROW}",
        "did not run as one job of 2 ranks the same MPI library",
    ),
}


@pytest.mark.parametrize("what", FAILURES)
def test_failing_program_is_named(what: str, in_process: Run, tmp_path: Path) -> None:
    script, words = FAILURES[what]
    program(tmp_path / "omb", script)
    rounds = ("--rounds", "1")
    done = in_process("compare", "--native", "omb", "latency", *QUICK, *rounds)
    assert_refused(done, 1, f"osu_latency {words}")


@pytest.mark.long
def test_incomparable_found_in_the_first_round(in_process: Run, tmp_path: Path) -> None:
    other = STAND_IN.replace('"$@"', "-T mpi_int -i 2 -x 1 -m 4:4")
    program(tmp_path / "omb", f"echo started >> '{tmp_path}/rounds'; {other}")
    done = in_process("compare", "--native", "omb", "latency", *QUICK)
    assert_refused(done, 2, "osu_latency mpi_type MPI_INT, native mpi_type MPI_CHAR")
    assert (tmp_path / "rounds").read_text().count("started") == 2  # ranks, once


@pytest.mark.long
def test_a_program_that_hangs_is_ended(omb_py: Run, tmp_path: Path) -> None:
    program(tmp_path / "omb", 'echo $$ >> "$HOME/started"; exec sleep 100')
    for seconds in ("1", "10"):  # on a busy machine they need more to be started
        words = ("compare", "--native", "omb", "latency", "--timeout", seconds)
        done = omb_py(*words, HOME=str(tmp_path))
        assert_refused(done, 1, f"osu_latency {seconds} s --timeout")
        if (tmp_path / "started").exists():
            break
    started = [Path("/proc") / line for line in (tmp_path / "started").read_text().split()]
    assert started
    wait_for(lambda: not any(process.exists() for process in started), 60)


def test_what_ours_refuses_is_said(in_process: Run, tmp_path: Path) -> None:
    program(tmp_path / "omb", STAND_IN)
    done = in_process(
        *("compare", "--native", "omb", "latency", *QUICK, "--bindings", "nccl", "--rounds", "1")
    )
    assert_refused(done, 1, "omb-py latency --binding nccl exit code")


def test_a_missing_launcher_or_program_is_said(in_process: Run, tmp_path: Path) -> None:
    program(tmp_path / "omb", STAND_IN)
    program(tmp_path / "omb" / "again", STAND_IN)
    for arguments, words in (
        (("omb", "bw"), "no program osu_bw below omb"),
        (("omb", "latency"), "several programs osu_latency"),
        (("omb/again", "latency", "--launcher", "no-such-launcher -x"), "no-such-launcher"),
        (("omb/again", "latency", "--launcher", "'"), "--launcher"),
        (("omb/again", "latency", "--keep", "omb"), "is not empty"),
    ):
        assert_refused(in_process("compare", "--native", *arguments), 2, words)


@pytest.mark.long
@pytest.mark.every_library
def test_it_starts_jobs_itself(mpiexec: Run, tmp_path: Path) -> None:
    program(tmp_path / "omb", STAND_IN)
    job = mpiexec(2, "compare", "--native", "omb", "latency")
    assert_refused(job, 2, "without a launcher")
