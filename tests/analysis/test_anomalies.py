"""What is said of results that somebody made by hand, so that the answer is known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from omb_py.analysis.anomalies import Anomaly, anomalies
from omb_py.analysis.table import Results, load
from omb_py.analysis.values import value_column
from omb_py.results.columns import Row
from omb_py.results.csv_json import cell, header_of
from tests.helpers.refusals import assert_names, missing
from tests.results.readers.test_nccl_tests import of_one_rank

SIZES = tuple(1 << power for power in range(16))


def row(nbytes: int | None = 8, latency: float = 2.0, **columns: Any) -> dict[str, Any]:
    """A row of a quiet run: all percentiles close together."""
    return {
        "run": "20261121T090000Z-000001",
        "benchmark": "allreduce",
        "bytes": nbytes,
        "ranks": 4,
        "buffer": "numpy",
        "binding": "buffer",
        "latency_us": latency * 1.02,
        "latency_min_us": latency,
        "latency_max_us": latency * 1.05,
        "sample_mean_us": latency * 1.02,
        "sample_min_us": latency * 0.95,
        "sample_p50_us": latency,
        "median_low_us": latency * 0.99,
        "median_high_us": latency * 1.01,
        "sample_p90_us": latency * 1.05,
        "sample_p95_us": latency * 1.08,
        "sample_p99_us": latency * 1.2,
        "sample_p999_us": latency * 1.5,
        "sample_max_us": latency * 3,
        "slowest_p50_us": latency * 1.1,
        "iterations": 1000,
        "warmup": 100,
        "sync": "clock",
        "late_starts": 3,
    } | columns


def curve(times: dict[int, float] | None = None, **columns: Any) -> list[dict[str, Any]]:
    """Rows of a smooth line, 2 us and 1 ns for each byte, but at some sizes as told."""
    return [row(size, (times or {}).get(size, 2 + size / 1000), **columns) for size in SIZES]


def read(folder: Path, rows: list[dict[str, Any]], metadata: str = "") -> Results:
    """Rows by way of a file, as users have them."""
    runs = dict.fromkeys(str(member["run"]) for member in rows)
    lines = ["".join(f"# run: {run}\n{metadata}" for run in runs), header_of(Row.columns)]
    lines += [",".join(cell(member.get(name)) for name in Row.columns) + "\n" for member in rows]
    (folder / "results.csv").write_text("".join(lines), encoding="utf-8")
    return load(folder / "results.csv")


def said_of(rows: pd.DataFrame, runs: Mapping[str, Mapping[str, str]]) -> list[Anomaly]:
    return anomalies(value_column(rows), runs, rows)


@pytest.fixture
def said(tmp_path: Path) -> Any:
    """What is said of rows that somebody made."""

    def found(rows: list[dict[str, Any]], metadata: str = "") -> list[Anomaly]:
        results = read(tmp_path, rows, metadata)
        return said_of(results.rows, results.runs)

    return found


def test_nothing_is_said_of_quiet_results(said: Any) -> None:
    metadata = "# hosts: node1:4\n# processor: fast, 4 logical cores\n"
    rows = [
        *(member for run in range(6) for member in curve(run=f"20261121T09000{run}Z-00000{run}")),
        *curve(benchmark="bcast", latency_max_us=200.0),  # ranks of a tree differ by nature
        *curve(binding="native", iterations=20, late_starts=0),
        row(None, benchmark="barrier"),
    ]
    assert said(rows, metadata) == []


def test_a_median_that_is_hardly_known_is_uncertain(said: Any) -> None:
    (found,) = said([row(64, median_low_us=1.5, median_high_us=2.5), row(128)])
    assert found.kind == "uncertain"
    assert found.severity == "warning"
    assert found.where["bytes"] == 64
    assert_names(found.text, "At 64 B median 2.00 µs 1.50 µs 2.50 µs.")


def test_a_rank_that_is_slower_than_the_others(said: Any) -> None:
    (found,) = said([row(8, latency_max_us=8.0), row(16, latency_max_us=6.0)])
    assert found.kind == "slow rank"
    assert_names(found.text, "At 8 B slowest rank 8.00 µs 4.00 fastest 2.00 µs 1 more size")


def test_wrong_data_comes_first_even_without_a_number(said: Any) -> None:
    wrong = row(64, validation="Fail") | {"latency_us": None, "sample_p50_us": None}
    found = said([row(8, latency_max_us=8.0), wrong])
    assert [anomaly.severity for anomaly in found] == ["error", "warning"]
    assert not missing("at 64 B not data sent", found[0].text)


def test_more_ranks_than_cores_on_a_host(said: Any) -> None:
    metadata = "# hosts: node1:4 node2:2\n# processor: slow, 2 logical cores\n"
    (found,) = said([row()], metadata)
    assert found.kind == "oversubscribed"
    assert_names(found.text, "4 ranks 2 logical cores of node1 in 1 run: core")


def test_a_machine_that_others_used(said: Any) -> None:
    quiet = "# other_processes: 0.4% of 2 cores of node1, steal 0.0%, wait for a core 0.1%\n"
    assert said([row()], quiet) == []
    busy = "# other_processes: 33.4% of 2 cores of node1, steal 2.0%, wait for a core 35.0%\n"
    (found,) = said([row()], busy)
    assert (found.kind, found.where["hosts"]) == ("busy machine", "node1")
    assert not missing("Other programs 35 % cores 1 run", found.text)


def test_processes_of_nccl_tests_that_ran_alone(tmp_path: Path) -> None:
    def said(command: str, tables: int = 1) -> list[tuple[str, str]]:
        (tmp_path / "all_reduce.txt").write_text(command + of_one_rank() * tables)
        results = load(tmp_path / "all_reduce.txt")
        return [(one.kind, one.severity) for one in said_of(results.rows, results.runs)]

    assert said("$ mpirun -np 16 ./all_reduce_perf -g 1\n") == [("ran alone", "error")]
    assert said("$ ./all_reduce_perf -g 1\n") == [("one rank", "warning")]
