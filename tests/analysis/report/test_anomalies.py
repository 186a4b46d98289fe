"""What is said of results that somebody made by hand, so that the answer is known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.analysis.points import points_of, values_of
from omb_py.analysis.report.anomalies import Anomaly, anomalies
from omb_py.analysis.table import Results, load
from omb_py.results.csv import cell, header_of
from omb_py.results.row import COLUMNS
from tests.helpers.properties import examples

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
    lines = ["".join(f"# run: {run}\n{metadata}" for run in runs), header_of(COLUMNS)]
    lines += [",".join(cell(member.get(name)) for name in COLUMNS) + "\n" for member in rows]
    (folder / "results.csv").write_text("".join(lines), encoding="utf-8")
    return load(folder / "results.csv")


def said_of(rows: pd.DataFrame, runs: Mapping[str, Mapping[str, str]]) -> list[Anomaly]:
    values = values_of(rows, "auto")
    return anomalies(values, runs, points_of(values) if len(values) else None, rows)


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
        *curve(benchmark="bcast", latency_max_us=20.0),  # ranks of a tree differ by nature
        *curve(
            binding="native", iterations=20, late_starts=0, sample_p90_us=9.0, sample_mean_us=9.0
        ),
        row(None, benchmark="barrier"),
    ]
    assert said(rows, metadata) == []


def test_a_median_that_is_hardly_known_is_uncertain(said: Any) -> None:
    (found,) = said([row(64, median_low_us=1.5, median_high_us=2.5), row(128)])
    assert found.kind == "uncertain"
    assert found.severity == "warning"
    assert found.where["bytes"] == 64
    assert (
        found.text == "At 64 B the median 2.00 µs is only known to lie between 1.50 µs and 2.50 µs."
    )


def test_a_plateau_above_the_median_is_likely_a_second_mode(said: Any) -> None:
    modes = {"sample_p90_us": 5.0, "sample_p95_us": 5.2, "sample_p99_us": 5.3}
    (found,) = said(
        [row(8, **modes), row(16, **(modes | {"sample_p90_us": 6.0, "sample_p95_us": 6.1}))]
    )
    assert found.kind == "two modes"
    assert found.where["bytes"] == 16
    assert "likely" in found.text
    assert found.text.endswith("takes 6.00 µs or more (and at 1 more size).")


def test_a_wide_single_mode_is_not_called_two(said: Any) -> None:
    wide = {"sample_min_us": 0.8, "sample_p90_us": 3.2, "sample_p95_us": 3.7}
    assert said([row(8, **wide)]) == []


def test_a_mean_far_above_the_median_tells_of_few_long_iterations(said: Any) -> None:
    (found,) = said([row(8, sample_mean_us=4.0, sample_p999_us=900.0, sample_max_us=1500.0)])
    assert found.kind == "long tail"
    assert found.text == (
        "At 8 B the mean 4.00 µs is 2.00 times the median 2.00 µs: likely fewer than one "
        "iteration in a hundred takes very long, up to 1.50 ms."
    )


def test_runs_that_fall_into_two_groups(said: Any) -> None:
    values = [2.0, 2.01, 2.02, 3.0, 3.01, 2.0]
    rows = [row(8, value, run=f"20261121T09000{i}Z-00000{i}") for i, value in enumerate(values)]
    (found,) = said(rows)
    assert found.kind == "two groups of runs"
    assert found.text == "At 8 B runs fall into two groups: 4 near 2.00 µs and 2 near 3.00 µs."


@pytest.mark.parametrize("values", [[2.0, 2.5, 3.0, 3.6, 4.3], [2.0, 3.0, 2.01], [2.0] * 5 + [9.0]])
def test_scattered_few_or_single_runs_are_no_groups(said: Any, values: list[float]) -> None:
    rows = [row(8, value, run=f"20261121T09000{i}Z-00000{i}") for i, value in enumerate(values)]
    assert said(rows) == []


def test_a_larger_message_that_is_faster_by_more_than_its_interval(said: Any) -> None:
    faster = {size: 8 + size / 1000 for size in SIZES if size <= 64}
    faster |= {size: 2 + size / 1000 for size in SIZES if size > 64}
    (found,) = said(curve(faster))
    assert found.kind == "larger is faster"
    assert found.where["bytes"] == 128
    assert found.text.startswith("128 B takes less time than 64 B")


def test_the_same_within_wide_intervals_is_not_said(said: Any) -> None:
    rows = curve({size: 2.4 + size / 1000 for size in SIZES if size <= 64})
    assert {found.kind for found in said(rows)} == {"larger is faster"}
    wide = [member | {"median_low_us": 1.9, "median_high_us": 2.6} for member in rows[:7]]
    assert "larger is faster" not in {found.kind for found in said([*wide, *rows[7:]])}


def test_a_call_that_is_slower_than_others_that_do_the_same(said: Any) -> None:
    rows = [
        row(8, time * (1 + launch / 1000), run=f"{launch}-{name}", benchmark=name)
        for launch in range(6)
        for name, time in (("gather", 6.0), ("allgather", 2.0))
    ]
    (found,) = (one for one in said(rows) if one.kind == "guideline violated")
    assert "gather <= allgather at 8 B: 6.6" in found.text
    assert found.where["benchmark"] == "gather"


def test_a_rank_that_is_slower_than_the_others(said: Any) -> None:
    (found,) = said([row(8, latency_max_us=8.0), row(16, latency_max_us=6.0)])
    assert found.kind == "slow rank"
    assert found.text == (
        "At 8 B the slowest rank's mean 8.00 µs is 4.00 times the fastest rank's 2.00 µs "
        "(and at 1 more size)."
    )


def test_another_rank_is_slow_in_each_iteration(said: Any) -> None:
    (found,) = said([row(8, slowest_p50_us=5.0)])
    assert (found.kind, found.severity) == ("slow rank", "note")
    assert "2.50 times the mean of all ranks" in found.text


def test_ranks_that_start_too_late(said: Any) -> None:
    (found,) = said([row(8, late_starts=100)])
    assert found.kind == "late starts"
    assert "100 of 1000 iterations" in found.text


def test_wrong_data_comes_first_even_without_a_number(said: Any) -> None:
    wrong = row(64, validation="Fail") | {"latency_us": None, "sample_p50_us": None}
    found = said([row(8, latency_max_us=8.0), wrong])
    assert [anomaly.severity for anomaly in found] == ["error", "warning"]
    assert "at 64 B was not the data that was sent" in found[0].text


def test_more_ranks_than_cores_on_a_host(said: Any) -> None:
    metadata = "# hosts: node1:4 node2:2\n# processor: slow, 2 logical cores\n"
    (found,) = said([row()], metadata)
    assert found.kind == "oversubscribed"
    assert found.text == (
        "4 ranks shared 2 logical cores of node1 in 1 run: times include waiting for a core."
    )


def test_a_machine_that_others_used(said: Any) -> None:
    quiet = "# other_processes: 0.4% of 2 cores of node1, steal 0.0%, wait for a core 0.1%\n"
    assert said([row()], quiet) == []
    busy = "# other_processes: 33.4% of 2 cores of node1, steal 2.0%, wait for a core 35.0%\n"
    (found,) = said([row()], busy)
    assert (found.kind, found.where["hosts"]) == ("busy machine", "node1")
    assert found.text.startswith("Other programs used up to 35 % of the cores in 1 run (most in")


@examples(40)
@given(
    start=st.floats(0.2, 100),
    rate=st.floats(1e-6, 1e-1),
    noise=st.lists(st.floats(-1, 1), min_size=16, max_size=16),
)
def test_no_smooth_line_is_called_odd(start: float, rate: float, noise: list[float]) -> None:
    rows = pd.DataFrame(
        [
            row(size, (start + rate * size) * (1 + 0.02 * shake))
            for size, shake in zip(SIZES, noise, strict=True)
        ]
    ).reindex(columns=[*COLUMNS, "suite", "mpi", "hosts", "file", "line"])
    assert said_of(rows, {}) == []
