"""Slow hosts: found among all others by name, and kept out of limits, checks and points."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from omb_py.analysis import references
from omb_py.analysis.hosts import slow_hosts
from omb_py.analysis.references_check import check, told_apart
from omb_py.analysis.references_learned import from_runs
from omb_py.analysis.table import load, of_rows
from omb_py.analysis.values import value_column
from tests.conftest import Run
from tests.helpers.refusals import missing

HEAD = """# run: {run}
# omb_py: 1.0.0
# processor: {processor}
# mpi_library: MPICH Version: 5.0.2
# hosts: {host}:2
# ranks: 2
run,benchmark,bytes,ranks,buffer,binding,placement,dtype,mpi_type,latency_us,sample_p50_us
"""
SITE = "benchmark,bytes,value,unit\nlatency,8,1.0,us\nlatency,64,1.0,us\n"


def fleet(
    folder: Path,
    hosts: int,
    slow: dict[int, float] | None = None,
    processor: str = "EPYC",
    noise: float = 0.02,
) -> Path:
    """A folder with a file of each host; some hosts are slower by a factor."""
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(hosts)
    for number in range(hosts):
        run = f"20260101T000000Z-{len(processor)}{number:05x}"
        head = HEAD.format(run=run, host=f"node{number:02}", processor=processor)
        rows = ""
        for size in (8, 64):
            time = (slow or {}).get(number, 1.0) * np.exp(random.normal(0, noise))
            rows += f"{run},latency,{size},2,numpy,native,H,int8,MPI_CHAR,{time:.6f},{time:.6f}\n"
        (folder / f"{processor}-{number:02}.csv").write_text(head + rows)
    return folder


def test_slow_host_among_many_is_found_by_name(tmp_path: Path) -> None:
    found = slow_hosts(value_column(load(fleet(tmp_path / "f", 40, {7: 3.0})).rows))
    (one,) = found.slow
    assert (one.name, one.slow, one.points, found.hosts) == ("node07", 2, 2, 40)
    assert one.worst == pytest.approx(3.0, rel=0.1)


@pytest.mark.parametrize("hosts", [3, 6, 40])
def test_healthy_fleet_has_no_slow_host(tmp_path: Path, hosts: int) -> None:
    found = slow_hosts(value_column(load(fleet(tmp_path / "f", hosts)).rows))
    assert found.slow == ()
    assert "no host is slow: one would have to take up to 1." in found.remarks[0]


@pytest.mark.slow
def test_healthy_few_hosts_of_much_noise_and_many_points_have_no_slow_one() -> None:
    random = np.random.default_rng(1)
    points, hosts = 160, 5
    table = pd.DataFrame(
        {
            "host_names": np.tile([f"node{number}" for number in range(hosts)], points),
            "benchmark": "allreduce",
            "bytes": np.repeat(np.arange(1, points + 1), hosts),
            "unit": "us",
        }
    )
    for _ in range(20):
        noise = random.normal(0, 0.2, len(table))
        assert slow_hosts(table.assign(value=np.exp(noise))).slow == ()


def test_which_of_two_hosts_is_slow_cannot_be_told(tmp_path: Path) -> None:
    found = slow_hosts(value_column(load(fleet(tmp_path / "f", 2, {1: 3.0})).rows))
    assert found.slow == ()
    assert found.remarks == ("2 points of fewer than 3 hosts: which is slow cannot be told",)


def test_host_that_lacks_points_of_others_is_named(tmp_path: Path) -> None:
    folder = fleet(tmp_path / "f", 6)
    path = folder / "EPYC-03.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    found = slow_hosts(value_column(load(folder).rows))
    assert "1 host without points that most hosts have: node03 (1)" in found.remarks


@pytest.mark.slow
def test_check_judges_each_host_and_names_the_slow_one(in_process: Run, tmp_path: Path) -> None:
    (tmp_path / "site.csv").write_text(SITE)
    folder = str(fleet(tmp_path / "f", 30, {7: 3.0}))
    done = in_process("check", folder, "--expected", "site.csv")
    assert done.code == 4
    assert not missing("1 of 30 hosts failed: node07 FAIL: 58 of 60 values", done.out)
    assert "node07, latency, 8 B: " in done.out
    assert "node06" not in done.out
    healthy = in_process("check", str(fleet(tmp_path / "h", 30)), "--expected", "site.csv")
    assert (healthy.code, "PASS: 60 of 60 values" in healthy.out) == (0, True)


def test_check_names_the_host_on_which_a_reference_was_not_measured(
    in_process: Run, tmp_path: Path
) -> None:
    (tmp_path / "site.csv").write_text(SITE)
    path = fleet(tmp_path / "f", 4) / "EPYC-03.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    done = in_process("check", "f", "--expected", "site.csv")
    assert done.code == 7
    assert "7 of 8 values as expected from site, 1 not measured (node03, latency, 64 B)" in done.out


def test_rows_measured_again_on_another_host_are_of_the_same_point(tmp_path: Path) -> None:
    (tmp_path / "site.csv").write_text(SITE)
    known = references.load(str(tmp_path / "site.csv"))
    first = told_apart(load(fleet(tmp_path / "a", 1)).rows)
    again = first.assign(host_names="elsewhere", run="again")
    found = check(pd.concat([first, again], ignore_index=True), known, "site")
    assert found.lines["runs"].tolist() == [2, 2]


def test_host_whose_data_was_wrong_is_named_and_fails(in_process: Run, tmp_path: Path) -> None:
    (tmp_path / "site.csv").write_text(SITE)
    path = fleet(tmp_path / "f", 4) / "EPYC-03.csv"
    *head, columns, one, two = path.read_text().splitlines()
    wrong = [f"{columns},validation", f"{one},Fail", f"{two},Fail"]
    path.write_text("\n".join([*head, *wrong, ""]))
    done = in_process("check", "f", "--expected", "site.csv", "--assume", "validation=Pass")
    assert done.code == 4
    assert not missing("FAIL: latency at 8 B, 64 B on node03: the data was wrong", done.out)
    assert not missing("2 not measured (node03, latency, 8 B; node03", done.out)


def test_failure_of_one_host_is_not_measured_again_elsewhere(
    in_process: Run, tmp_path: Path
) -> None:
    (tmp_path / "site.csv").write_text(SITE)
    fleet(tmp_path / "f", 4, {2: 3.0})
    done = in_process("check", "f", "--expected", "site.csv", "--confirm", "1", "--again", "true")
    assert done.code == 4
    assert "not measured again: it is of node02, one of several hosts: measure it there" in done.out


@pytest.mark.long
def test_healthy_fleet_passes_the_limits_that_it_taught() -> None:
    random = np.random.default_rng(5)

    def launch() -> pd.DataFrame:
        times = np.exp(random.normal(0, 0.04, (40, 2)))
        return of_rows(
            [
                {"run": f"{host}", "benchmark": "latency", "bytes": size, "ranks": 2}
                | {"latency_us": float(times[host, place]), "file": f"{host}.csv", "line": place}
                for host in range(40)
                for place, size in enumerate((8, 64))
            ],
            {f"{host}": {"hosts": f"node{host}:2"} for host in range(40)},
        ).rows

    failed = 0
    for _ in range(40):
        known = from_runs(launch(), "site").drop(columns=["spread", "degrees", "runs"])
        failed += check(launch(), known, "site").conclusion.exit_code != 0
    assert failed <= 5  # 5 % of 40 are 2


def test_update_refuses_a_fleet_with_a_slow_host(in_process: Run, tmp_path: Path) -> None:
    done = in_process("check", str(fleet(tmp_path / "f", 9, {7: 3.0})), "--update", "own.csv")
    assert done.code == 2
    assert not missing("node07 takes is slow leave out", done.err)
    assert not (tmp_path / "own.csv").exists()


def test_update_refuses_results_of_two_processors(in_process: Run, tmp_path: Path) -> None:
    fleet(tmp_path / "f", 4)
    fleet(tmp_path / "f", 4, processor="Grace")
    done = in_process("check", "f", "--update", "own.csv")
    assert done.code == 2
    assert not missing("several machines processor EPYC Grace", done.err)


@pytest.mark.slow
def test_report_names_the_slow_host_and_draws_it_apart(in_process: Run, tmp_path: Path) -> None:
    fleet(tmp_path / "f", 30, {7: 3.0})
    assert in_process("report", "f", "-o", "page.html").code == 0
    page = re.sub(r"<[^>]+>", " ", (tmp_path / "page.html").read_text(encoding="utf-8"))
    assert not missing("1 of 30 hosts slow: node07", page)
    assert not missing("Who is slow node07 slower slow points 2 of 2", page)
    assert not missing("29 hosts: node07 (slow)", page)


def test_show_across_hosts_has_a_column_for_each_name(in_process: Run, tmp_path: Path) -> None:
    fleet(tmp_path / "f", 4, {2: 3.0})
    done = in_process("show", "f", "--across", "hosts")
    assert not missing("node00 node01 node02 node03 8 B", done.out)


@pytest.mark.slow
def test_show_across_many_hosts_has_the_slowest_beside_all(in_process: Run, tmp_path: Path) -> None:
    fleet(tmp_path / "f", 30, {22: 3.0})
    heads = in_process("show", "f", "--across", "hosts").out.splitlines()[1]
    assert not missing("all hosts node22 best", heads)
    assert len(re.findall(r"node\d\d", heads)) == 7
