"""Programs by native OMB's names, as others start them and read what they print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omb_py.cli.programs import link
from tests.conftest import BIN, Finished, Run, run, succeeded
from tests.helpers.refusals import assert_refused


@pytest.fixture
def program(mpi: str, tmp_path: Path) -> Run:
    """``program(words)`` runs a program by its name, the first word, on two ranks."""

    def start(words: str) -> Finished:
        name, *options = words.split()
        link(tmp_path / name, BIN / "omb-py")
        return run([mpi, "-n", "2", str(tmp_path / name), *options], {}, tmp_path, timeout=60)

    return start


def test_ranks_fail_and_answer_as_one(program: Run) -> None:
    shown = program("osu_bw -v")
    assert (shown.code, shown.out) == (0, "# OSU MPI Bandwidth Test v7.4\n")
    assert_refused(program("osu_bw -d openacc D D"), 2, "-d openacc: no array library is for it")


@pytest.mark.parametrize(
    ("words", "ignored"),
    [
        ("osu_barrier -m 8 -M 1048576 -u 2 -r cpu -i 10", ("-m", "-M", "-u", "-r")),
        ("osu_ibarrier -m 8 -M 1048576 -r cpu -i 10", ("-m", "-M")),
        ("osu_bibw_persistent -m 8:8 -t 2 -i 10", ("-t",)),
        ("osu_allreduce_persistent -m 8:8 -M 1048576 -r both -i 10", ("-r",)),
        ("osu_multi_lat -m 8:8 -b multiple -i 10", ()),
    ],
)
def test_idle_options_noted(program: Run, words: str, ignored: tuple[str, ...]) -> None:
    job = succeeded(program(words))
    assert re.findall(r"note: (\S+) has no effect on osu_", job.err) == [*ignored]


@pytest.mark.parametrize(
    ("words", "smallest"),
    [
        ("osu_latency -m 2", "1"),
        ("osu_latency -m 0:2", "0"),
        ("osu_latency_persistent -m 2", "1"),
        ("osu_multi_lat -m 2", "1"),
        ("osu_bw -m 2", "1"),
    ],
)
def test_programs_begin_at_native_size(program: Run, words: str, smallest: str) -> None:
    assert succeeded(program(f"{words} -i 5")).rows[0][0] == smallest


OMB_PY_RUNS = [
    ("--benchmark latency --buffer numpy --max 4", "MPI_CHAR numpy buffer", "0 1 2 4"),
    ("--benchmark pt2pt/osu_bw --min 100 --max 300", "MPI_CHAR bytearray buffer", "64 128 256"),
    ("--benchmark bibw --max 2 --pickle", "MPI_CHAR bytearray pickle", "1 2"),
    ("--benchmark latency --max 0 --skip 0", "MPI_CHAR bytearray buffer", "0"),
    ("--benchmark multi_lat --max 1 --iterations 9", "MPI_CHAR bytearray buffer", "0 1"),
    ("--benchmark allreduce --max 8 --skip 2", "MPI_FLOAT numpy buffer", "4 8"),
    ("--benchmark collective/allgatherv --max=2", "MPI_CHAR bytearray buffer", "1 2"),
]
"""Options of OMB-Py; element type, buffer and binding of the messages; sizes of the rows."""


@pytest.mark.parametrize(("words", "how", "sizes"), OMB_PY_RUNS)
def test_run_py_has_rows_of_omb_py(
    mpi: str, tmp_path: Path, words: str, how: str, sizes: str
) -> None:
    link(tmp_path / "run.py", BIN / "omb-py")
    command = [mpi, "-n", "2", str(BIN / "python"), "run.py", *words.split()]
    job = succeeded(run(command, {}, tmp_path, timeout=120))
    datatype, buffer, binding = how.split()
    assert f"buffer {buffer}, binding {binding}" in job.out
    assert f"Datatype: {datatype}." in job.out
    rows = [line for line in job.out.splitlines() if not line.startswith("#")]
    assert [row.split()[0] for row in rows] == sizes.split()
    # OMB-Py prints '%-10d%18.2f'
    assert all(re.fullmatch(r"(?=.{28}$)\d+ +\d+\.\d\d", row) for row in rows)


def test_partitions_are_named_as_in_7_5(program: Run) -> None:
    job = succeeded(program("osu_partitioned_latency -q 4 -m 8:8 -i 10"))
    assert "# Partitions: 4" in job.out
