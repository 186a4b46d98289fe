"""No gate passes over something that it did not look at: files, rows, hosts, parts, copies."""

from __future__ import annotations

import gzip
import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.conftest import Finished, Run

COLUMNS = "run,benchmark,bytes,part,ranks,buffer,binding,latency_us,bandwidth_MBps,iterations"
REFERENCES = "benchmark,bytes,value,unit\nlatency,8,1,us\nlatency,1024,1,us\n"
BANNER = "# OSU MPI {} Latency Test v7.5\n# Size          Avg Latency(us)\n"


def ours(
    path: Path, run: str, times: Mapping[object, object], host: str = "node1", **cells: object
) -> Path:
    """A CSV of omb-py with a latency for each size, or what else stands in its column."""
    start = [f"# run: {run}", "# omb_py: 1.0.0", "# mpi_library: MPICH Version: 5.0.2"]
    row = {"benchmark": "latency", "ranks": 2, "buffer": "numpy", "binding": "buffer", **cells}
    lines = [
        ",".join(
            str({**row, "run": run, "bytes": size, "latency_us": time}.get(name, ""))
            for name in COLUMNS.split(",")
        )
        for size, time in times.items()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*start, f"# hosts: {host}:2", COLUMNS, *lines]) + "\n")
    return path


def launches(folder: Path, hosts: int = 3, slow: int | None = None) -> Path:
    """A launch on each of some hosts, one of which may be 3 times as slow."""
    for number in range(hosts):
        factor = (3 if number == slow else 1) * random.Random(number).uniform(0.99, 1.01)
        run, host = f"20261101T0000{number:02}Z-{folder.name}", f"node{number}"
        ours(folder / f"{host}.csv", run, {8: factor, 1024: factor}, host)
    return folder


def native(times: float, *names: str) -> str:
    """The text of native collectives, with 5 sizes each."""
    return "\n".join(
        BANNER.format(name)
        + "".join(f"{4**n:<10}{(times + 0.03 * len(name)) * 4**n:15.2f}\n" for n in range(1, 6))
        for name in names
    )


@pytest.fixture
def checked(in_process: Run, tmp_path: Path) -> Run:
    """``checked(results, references)`` checks results, by references of two sizes or others."""
    path = tmp_path / "site.csv"

    def check(results: Path, references: str = REFERENCES) -> Finished:
        path.write_text(references)
        return in_process("check", str(results), "--expected", str(path))

    return check


def undecided(done: Finished, *names: str) -> bool:
    """Whether a gate ended with 7 and its last sentence has some names."""
    last = [line for line in done.out.splitlines() if line.startswith("CANNOT TELL: ")][-1]
    return done.code == 7 and all(name in last for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["nan", "inf", "-1", "0", "", "1e400"])
def test_row_without_a_number_in_one_launch_is_undecided(
    checked: Run, tmp_path: Path, text: str
) -> None:
    folder = launches(tmp_path / "runs")
    ours(folder / "again.csv", "20261102T000000Z-a", {8: 1.0, 1024: text}, "node1")
    assert undecided(checked(folder), "again.csv:7")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("node8.csv", ""),
        ("node8.csv", COLUMNS + "\n"),
        ("node8.txt", BANNER.format("Allreduce")),
        ("node8.csv.gz", "\x1f\x8b no archive"),
    ],
)
def test_file_of_a_run_that_failed_is_undecided(
    in_process: Run, checked: Run, tmp_path: Path, name: str, content: str
) -> None:
    folder = launches(tmp_path / "runs")
    (folder / name).write_text(content, encoding="latin-1")
    assert undecided(checked(folder), name)
    several = ("guidelines", str(folder), "--fail-above", "5%")
    assert in_process(*several).code == 7
    spread = ("--fail-above", "50%", "--launch-spread", "1%")
    assert undecided(in_process("compare", str(launches(tmp_path / "b")), str(folder), *spread))


@pytest.mark.slow
def test_text_without_results_next_to_texts_of_results_is_undecided(
    checked: Run, tmp_path: Path
) -> None:
    folder = launches(tmp_path / "runs")
    (folder / "slurm-12.out").write_text("node1: all done\n")
    assert checked(folder).code == 0
    (folder / "node9.txt").write_text(
        "# OSU MPI Latency Test v7.5\n# Size  Latency (us)\n8  1.00\n"
    )
    (folder / "node7.txt").write_text("srun: error: node7: Killed\n")
    assert undecided(checked(folder), "node7.txt")


@pytest.mark.slow
def test_links_inside_the_folder_are_no_loss(checked: Run, tmp_path: Path) -> None:
    folder = tmp_path / "nights"
    launches(folder / "2026-11-01")
    (folder / "latest").symlink_to("2026-11-01")
    assert checked(folder).code == 0
    launches(tmp_path / "elsewhere")
    (folder / "more").symlink_to(tmp_path / "elsewhere")
    (folder / "gone.csv").symlink_to("nothing")
    assert undecided(checked(folder), "more", "gone.csv")


def test_run_name_of_two_hosts_is_undecided(checked: Run, tmp_path: Path) -> None:
    for host in ("a", "b"):
        ours(tmp_path / "runs" / f"{host}.csv", "20261101T000000Z-aaaaaa", {8: 1, 1024: 1}, host)
    assert undecided(checked(tmp_path / "runs"), "b.csv: run 20261101T000000Z-aaaaaa")


def test_point_that_may_be_of_two_references_is_undecided(checked: Run, tmp_path: Path) -> None:
    references = "benchmark,bytes,ranks,value,unit\nlatency,8,2,1,us\nlatency,8,4,2,us\n"
    ours(tmp_path / "runs" / "two.csv", "a", {8: 1.0})
    ours(tmp_path / "runs" / "four.csv", "b", {8: 2.0}, ranks=4)
    ours(tmp_path / "runs" / "unsaid.csv", "c", {8: 90.0}, ranks="")
    assert undecided(checked(tmp_path / "runs", references), "2 of 3", "latency, 8 B")


def test_reference_of_the_whole_is_not_measured_by_a_part(checked: Run, tmp_path: Path) -> None:
    references = "benchmark,value,unit\ninit,700,us\n"
    part = ours(tmp_path / "part.csv", "a", {"": 100}, benchmark="init", part="MPI_Init")
    assert undecided(checked(part, references), "0 of 1", "1 not measured")


@pytest.mark.parametrize("low", ["-1", "-15"])
def test_limit_that_allows_any_number_is_refused(checked: Run, tmp_path: Path, low: str) -> None:
    references = f"benchmark,bytes,value,unit,low\nbw,8,1000,MB/s,{low}\n"
    run = ours(tmp_path / "a.csv", "a", {8: ""}, benchmark="bw", bandwidth_MBps=1.0)
    done = checked(run, references)
    assert done.code == 1
    assert f"low {low} allows any number" in done.err


def test_impossible_number_is_undecided(checked: Run, tmp_path: Path) -> None:
    references = "benchmark,bytes,value,unit\nbw,1048576,1000,MB/s\n"
    run = ours(tmp_path / "a.csv", "a", {1 << 20: ""}, benchmark="bw", bandwidth_MBps=8e9)
    assert undecided(checked(run, references), "impossible: bw")


@pytest.mark.slow
def test_slow_host_of_a_fleet_is_undecided_in_a_comparison(in_process: Run, tmp_path: Path) -> None:
    base, other = launches(tmp_path / "b", 10), launches(tmp_path / "n", 10, slow=4)
    gate = ("--fail-above", "10%")
    done = in_process("compare", str(base), str(other), *gate)
    assert undecided(done, "n: node4 takes", "host_names=node4")
    assert in_process("compare", str(other), str(launches(tmp_path / "m", 10)), *gate).code == 0


@pytest.mark.slow
def test_results_compared_with_themselves_are_undecided(in_process: Run, tmp_path: Path) -> None:
    base = launches(tmp_path / "b", 10)
    done = in_process("compare", str(base), str(base), "--fail-above", "10%")
    assert undecided(done, "all of its runs are in b")


@pytest.mark.slow
def test_percentile_that_only_the_base_has_is_undecided(in_process: Run, tmp_path: Path) -> None:
    head = COLUMNS.replace("iterations", "sample_p50_us,sample_p99_us,iterations")
    for side, iterations in (("b", 10000), ("n", 500)):
        (tmp_path / side).mkdir()
        for launch in range(8):
            run = f"2026110{launch + 1}T000000Z-{side}"
            cells = f"2,numpy,buffer,1.{launch},,1.{launch},2.{launch}"
            lines = [f"{run},latency,8,,{cells},10000", f"{run},latency,1024,,{cells},{iterations}"]
            start = [f"# run: {run}", "# mpi_library: MPICH Version: 5.0.2", "# hosts: a:2", head]
            (tmp_path / side / f"{launch}.csv").write_text("\n".join([*start, *lines]) + "\n")
    sides = (str(tmp_path / "b"), str(tmp_path / "n"))
    assert in_process("compare", *sides, "--fail-above", "50%").code == 0
    done = in_process("compare", *sides, "--fail-above", "50%", "--tail")
    assert undecided(done, "99th percentile, 1 KiB: too few iterations")


def test_copies_of_a_text_are_one_launch(in_process: Run, tmp_path: Path) -> None:
    for number in range(2):
        content = native(1 + number / 10, "Allreduce", "Reduce", "Broadcast")
        (tmp_path / f"{number}.txt").write_text(content)
        (tmp_path / f"copy-{number}.txt").write_text(content)
        (tmp_path / f"{number}.txt.gz").write_bytes(gzip.compress(content.encode()))
    assume = ("--assume", "ranks=4", "--assume", "mpi=MPICH 5", "--assume", "hosts=1")
    done = in_process("guidelines", str(tmp_path), "--fail-above", "20%", *assume)
    assert done.code == 7
    assert "0 violated, 0 hold" in done.out
    assert "counted once" in done.err


def nights(folder: Path, hosts: int, slow: int | None = None) -> Path:
    """30 nights of some hosts, one of which takes 3 times as long in the last 10."""
    noise = random.Random(1)
    for night in range(30):
        for number in range(hosts):
            start = datetime(2026, 9, 1) + timedelta(days=night, minutes=number)
            factor = 3 if number == slow and night >= 20 else 1
            run, host = f"{start:%Y%m%dT%H%M%SZ}-{number:06}", f"node{number}"
            path = folder / f"{start:%Y-%m-%d}" / f"{host}.csv"
            ours(path, run, {8: factor * noise.gauss(1, 0.01)}, host)
    return folder


def test_history_judges_each_host_of_a_fleet(in_process: Run, tmp_path: Path) -> None:
    done = in_process("history", str(nights(tmp_path, 4, slow=2)), "--fail-above", "5%")
    assert done.code == 4
    assert [line.split(":")[1] for line in done.out.splitlines() if line.startswith("FAIL: l")] == [
        " latency, node2, 8 B"
    ]


@pytest.mark.parametrize(("night", "code"), [("2026-09-30", 7), ("2026-09-10", 0)])
@pytest.mark.parametrize("content", ["", COLUMNS + "\n", "srun: error: Killed\n"])
def test_history_does_not_pass_over_a_newest_night_that_failed(
    in_process: Run, tmp_path: Path, night: str, code: int, content: str
) -> None:
    nights(tmp_path, 1)
    (tmp_path / night / "node0.csv").write_text(content)
    done = in_process("history", str(tmp_path), "--fail-above", "5%")
    assert done.code == code, done.out
    assert f"{night}/node0.csv" in done.err


@pytest.mark.parametrize(("night", "code"), [("2026-09-30", 7), ("2026-09-10", 0)])
def test_history_does_not_pass_over_a_newest_number_of_0(
    in_process: Run, tmp_path: Path, night: str, code: int
) -> None:
    nights(tmp_path, 1)
    run = f"{night.replace('-', '')}T000000Z-000000"
    ours(tmp_path / night / "node0.csv", run, {8: 0}, "node0")
    assert in_process("history", str(tmp_path), "--fail-above", "5%").code == code
