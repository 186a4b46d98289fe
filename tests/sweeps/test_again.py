"""Measuring again what failed: which launch, which rows count, and when a failure stands."""

from __future__ import annotations

import shlex
from pathlib import Path

import pandas as pd
import pytest

from omb_py.analysis.failures import Beyond, Failure
from omb_py.analysis.points import cells
from omb_py.analysis.table import load
from omb_py.benchmarks import find_benchmark
from omb_py.core.errors import OmbError, UsageError
from omb_py.options.parse import parse
from omb_py.results.columns import IDENTITY
from omb_py.sweeps.confirming import Confirmed, Way, confirm, filled, launcher_words, start_of
from tests.helpers.refusals import missing

TEXT = "# OSU MPI Allreduce Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size   Avg Latency(us)\n"
SPIKE = Failure(
    "8 B is slow", (Beyond({"benchmark": "allreduce", "bytes": 8}, 11.5, "us", "mean"),)
)


def text(*values: float, name: str = "Allreduce") -> str:
    """A table of native OMB, of 8 bytes and doubled sizes."""
    lines = [f"{8 << place:<10} {value:.2f}\n" for place, value in enumerate(values)]
    return TEXT.replace("Allreduce", name) + "".join(lines)


def again(folder: Path, *launches: str, failures: tuple[Failure, ...] = (SPIKE,)) -> Confirmed:
    """What comes of a first launch of 100 us and further ones, each a shell's commands."""
    first = folder / "first.txt"
    first.write_text(text(100.0, 10.0))
    rows = load(first).rows
    for number, launch in enumerate(launches, 1):
        (folder / f"again-{number:03d}-001.sh").write_text(launch)
    script = f"sh {folder}/again-00$(ls {folder}/again-*.txt | wc -l)-001.sh"
    way = Way(len(launches), 60, shlex.join(["sh", "-c", script]), None, folder)
    known = {each["bytes"]: each for each in cells(rows[["bytes", *IDENTITY]])}
    told = [
        Failure(one.reason, tuple(p._replace(cells=known[p.cells["bytes"]]) for p in one.points))
        for one in failures
    ]
    return confirm(told, {"": rows}, {}, way)


def printing(*values: float, name: str = "Allreduce") -> str:
    """A shell's commands that print a table."""
    return f"cat <<'END'\n{text(*values, name=name)}END\n"


def test_spike_of_one_launch_is_not_confirmed(tmp_path: Path) -> None:
    found = again(tmp_path, printing(10.0), printing(10.4))
    assert found.failures == []
    (said,) = found.passed
    assert not missing("8 B is slow 100 µs, 10.0 µs, 10.4 µs, median 10.4 µs", said)
    assert sorted(pd.concat(found.rows)["latency_us"]) == [10.0, 10.4]


def test_slow_launches_confirm(tmp_path: Path) -> None:
    found = again(tmp_path, printing(12.5), printing(10.0))
    (failure,) = found.failures
    assert not missing(
        "8 B is slow confirmed 100 µs, 12.5 µs, 10.0 µs, median 12.5 µs", failure.reason
    )
    assert found.passed == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("exit 3", "again-002-001 exit code 3"),
        ("echo nothing", "no table of results"),
        (f"{printing(10.0)}exit 1", "exit code 1"),
        (printing(10.0, name="Bcast"), "no new row"),
        ("cat <<'END'\n" + TEXT + "16   10.00\nEND", "bytes of the new rows is 16, not 8"),
        (printing(10.0).replace("v7.5", "v7.4"), "suite OSU 7.4, not OSU 7.5"),
        (printing(10.0).replace("MPI_CHAR", "MPI_INT"), "mpi_type MPI_INT, not MPI_CHAR"),
    ],
)
def test_launch_without_the_point_leaves_the_failure(
    tmp_path: Path, second: str, said: str
) -> None:
    found = again(tmp_path, printing(10.0), second)
    (failure,) = found.failures
    assert not missing(f"8 B is slow; not measured again: {said}", failure.reason)
    assert (found.passed, found.rows) == ([], [])


def test_failure_without_a_point_stands(tmp_path: Path) -> None:
    absent = Failure("not measured at 1 KiB")
    assert again(tmp_path, failures=(absent,)).failures == [absent]


@pytest.mark.slow
@pytest.mark.parametrize(("values", "stands"), [((13.0, 13.0), True), ((11.0, 12.0), False)])
def test_several_points_are_judged_by_their_mean(
    tmp_path: Path, values: tuple[float, float], stands: bool
) -> None:
    points = (Beyond({"bytes": size}, 11.8, "us", "mean") for size in (8, 16))
    mean = Failure("slow on average", tuple(points))
    found = again(tmp_path, *[printing(*values)] * 3, failures=(mean,))
    assert len(found.failures) == stands
    assert len(found.passed) == (not stands)


@pytest.mark.parametrize(
    ("command", "options", "started"),
    [
        ("omb-py allreduce -m 1:1K -i 9 -o a.csv -q", "", "allreduce -i 9 --sizes=8"),
        (
            "omb-py allreduce --sizes 8,16 --samples s.csv --force -x5",
            "",
            "allreduce -x 5 --sizes=8",
        ),
        ("omb-py allreduce --buffer numpy -c", "--buffer numpy", "allreduce -c --sizes=8"),
        (
            "omb-py run -q -i 9 --pair near --summary s.json -W 4 'allreduce -f -m 4:8 -G png'",
            "--pair near",
            "allreduce -i 9 -f --sizes=8",
        ),
    ],
)
def test_command_of_a_run_is_started_with_the_failed_size_only(
    command: str, options: str, started: str
) -> None:
    first = pd.DataFrame([{"run": "a", "ranks": 2}])
    data = {"command": command, "hosts": "n1:2", "environment": "UCX_TLS=tcp"}
    point = {"benchmark": "allreduce", "bytes": 8}
    start, entry = start_of(point, first, {"a": data}, Way(1, 1, None, None, Path()))
    assert (list(start[0]), *start[1:]) == (shlex.split(options), "n1:2", "UCX_TLS=tcp")
    words = [shlex.split(one)[1:] for one in (entry, started)]
    benchmark = find_benchmark("allreduce")
    assert parse(benchmark, words[0]) == parse(benchmark, words[1])


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"command": "omb-py allreduce"},
        {"command": "omb-py halo", "hosts": "n1:2"},
        {"command": "omb-py", "hosts": "n1:2"},
    ],
)
def test_rows_without_a_command_name_again(data: dict[str, str]) -> None:
    first = pd.DataFrame([{"run": "a", "ranks": 2}])
    with pytest.raises(OmbError, match="--again"):
        start_of({"benchmark": "allreduce"}, first, {"a": data}, Way(1, 1, None, None, Path()))


def test_launcher_by_name_gets_the_ranks_of_all_hosts() -> None:
    assert launcher_words("n1:4 n2:4", {}, "env mpiexec -ppn 4")[-2:] == ["-n", "8"]


@pytest.mark.usefixtures("mpi")
def test_launcher_of_the_machine_spreads_the_ranks_over_hosts() -> None:
    words = " ".join(launcher_words("n1:4 n2:4", {}, None))
    assert "-n 8" in words
    assert "-ppn 4" in words or "ppr:4:node" in words


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("osu_{benchmark} -m {least}", ["bw", "2"]),
        ("mpiexec -n {ranks} osu_{benchmark}", ["bw"]),
        ("osu_bw 'x", ["bw"]),
        ("osu_bw {", ["bw"]),
    ],
)
def test_command_with_an_unknown_name_is_refused(command: str, what: list[str]) -> None:
    with pytest.raises(UsageError, match="--again"):
        filled(command, what, ["8"])


def test_command_without_sizes_is_of_a_barrier() -> None:
    assert filled("osu_{benchmark}", ["barrier"], [""]) == ["osu_barrier"]
    with pytest.raises(UsageError, match="min"):
        filled("osu_{benchmark} -m {min}", ["barrier"], [""])
