"""Changes and outliers over many runs: series with known steps, and what they must not find."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

pytest.importorskip("otava", reason="the extra history is not installed")

from omb_py.analysis.history import (
    MAX_LISTED,
    History,
    conclusion,
    date_of,
    differences,
    history,
    outliers_of,
    sheets,
    starts_of,
    summary,
)
from omb_py.analysis.table import of_rows

START = datetime(2026, 1, 1)


def noise(runs: int, seed: int = 1) -> np.ndarray:
    """Values around 10 with a deviation of 2 %."""
    return 10 * np.random.default_rng(seed).lognormal(0, 0.02, runs)


def run_name(number: int) -> str:
    return f"{START + timedelta(days=number):%Y%m%dT%H%M%SZ}-{number:06x}"


def made(values: np.ndarray, column: str = "latency_us", **metadata: list[str]) -> History:
    """The history of a run a day with a row each, and metadata that has a value for each run."""
    rows = [
        {"run": run_name(number), "benchmark": "latency", "bytes": 8, "ranks": 2, column: value}
        for number, value in enumerate(values)
    ]
    runs = {
        str(row["run"]): {name: texts[number] for name, texts in metadata.items()}
        for number, row in enumerate(rows)
    }
    return history(of_rows([{**row, "file": "a.csv", "line": 1} for row in rows], runs))


@pytest.mark.parametrize("size", [0.05, 0.1, 0.2])
def test_a_step_at_2_percent_noise_is_found_within_two_runs(size: float) -> None:
    values = noise(120) * np.where(np.arange(120) < 100, 1, 1 + size)
    (_, start) = starts_of(values)
    assert abs(start - 100) <= 2


def test_steady_series_have_no_change() -> None:
    assert [len(starts_of(noise(400, seed))) for seed in range(10)] == [1] * 10


@pytest.mark.parametrize(
    ("runs", "factor", "outliers"),
    [
        pytest.param(slice(30, 31), 1.5, [30], id="one slow run is an outlier"),
        pytest.param(slice(30, 32), 1.5, [], id="two slow runs are not"),
        pytest.param(slice(56, 60), 1.2, [], id="fewer than 5 runs are no change"),
    ],
)
def test_few_slow_runs_are_no_change(runs: slice, factor: float, outliers: list[int]) -> None:
    values = noise(60)
    values[runs] *= factor
    assert starts_of(values) == (0,)
    assert list(outliers_of(values, (0,))) == outliers


def test_rounded_values_within_1_percent_are_no_outliers() -> None:
    values = np.where(np.arange(40) == 20, 1.005, 1.0)
    assert list(outliers_of(values, (0,))) == []


def test_a_change_has_its_date_its_size_and_its_direction() -> None:
    found = made(np.where(np.arange(60) < 40, 1, 1.1) * noise(60) / 10)
    (row,) = found.rows[found.rows["kind"] == "change"].to_dict("records")
    assert row["date"] == "2026-02-10 00:00"
    assert row["change"] == pytest.approx(0.1, abs=0.02)
    assert (row["verdict"], row["runs_before"], row["runs_after"]) == ("slower", 40, 20)
    assert (row["run_before"], row["run_after"]) == (run_name(39), run_name(40))


def test_a_higher_bandwidth_is_faster() -> None:
    found = made(np.where(np.arange(60) < 40, 1, 1.1) * noise(60), "bandwidth_MBps")
    assert list(found.rows["verdict"]) == ["faster"]
    assert conclusion(found, 1.05).exit_code == 0


def test_a_change_names_the_metadata_that_changed_with_it() -> None:
    kernels = ["Linux 6.1" if number < 40 else "Linux 6.2" for number in range(60)]
    found = made(np.where(np.arange(60) < 40, 1, 1.1) * noise(60), system=kernels)
    assert list(found.rows["changed"]) == ["system: Linux 6.1 → Linux 6.2"]


def test_runs_with_another_library_are_one_series_and_on_another_processor_two() -> None:
    steady = noise(40)
    libraries = [f"MPICH Version: 5.0.{number // 20}" for number in range(40)]
    assert len(made(steady, mpi_library=libraries).series) == 1
    processors = [f"processor {number % 2}" for number in range(40)]
    series = made(steady, processor=processors).series
    assert [len(one.values) for one in series] == [20, 20]
    assert [one.name for one in series] == [f"latency, processor {at}, 8 B" for at in (0, 1)]


def test_runs_are_in_the_order_of_their_dates() -> None:
    values = np.arange(1.0, 13.0)
    rows: list[dict[str, Any]] = [
        {"run": run_name(number), "benchmark": "latency", "bytes": 8, "latency_us": value}
        for number, value in enumerate(values)
    ]
    found = history(of_rows([{**row, "file": "a.csv", "line": 1} for row in rows[::-1]], {}))
    assert list(found.series[0].values) == list(values)


def test_a_series_of_fewer_than_10_runs_is_counted_as_short() -> None:
    found = made(noise(9))
    assert (found.series, found.short) == ((), 1)
    assert "1 had fewer than 10 runs" in summary(found)
    assert conclusion(found, 1.05).exit_code == 7


def test_guard_fails_if_the_newest_change_is_slower_by_more() -> None:
    found = made(np.where(np.arange(60) < 40, 1, 1.1) * noise(60))
    assert (conclusion(found, 1.05).exit_code, conclusion(found, 1.2).exit_code) == (4, 0)


def test_guard_passes_if_a_slower_segment_is_over() -> None:
    steps = np.select([np.arange(90) < 30, np.arange(90) < 60], [1, 1.2], 1.0)
    found = made(steps * noise(90, seed=2))
    assert list(found.rows["verdict"]) == ["faster", "slower"]
    assert conclusion(found, 1.05).exit_code == 0


def changed_series(number: int) -> History:
    """The history of so many series, each with one change of 10 %."""
    values = np.where(np.arange(40) < 20, 1, 1.1) * noise(40)
    rows = [
        {"run": run_name(day), "benchmark": "latency", "bytes": 8 << series, "latency_us": value}
        for series in range(number)
        for day, value in enumerate(values)
    ]
    return history(of_rows([{**row, "file": "a.csv", "line": 1} for row in rows], {}))


@pytest.mark.parametrize(
    ("series", "remarks"),
    [(0, ("none",)), (MAX_LISTED, ()), (MAX_LISTED + 2, ("and 2 more",))],
)
def test_table_of_changes_counts_those_beyond_its_end(
    series: int, remarks: tuple[str, ...]
) -> None:
    found = changed_series(series) if series else made(noise(40))
    changes, outliers = sheets(found)
    assert (changes.title, outliers.title) == ("Changes", "Single outliers")
    assert (len(changes.rows), changes.remarks) == (min(series, MAX_LISTED), remarks)
    assert outliers.remarks == ("none",)


@pytest.mark.parametrize(
    ("run", "file", "date"),
    [
        ("20261121T094543Z-12b457", "2020-01-01.csv", datetime(2026, 11, 21, 9, 45, 43)),
        ("a.txt:1", "nightly/2026-11-20/a.txt", datetime(2026, 11, 20)),
        ("a.txt:1", "2025/osu_20261120.txt", datetime(2026, 11, 20)),
        ("a.txt:1", "osu_20261120-0102.txt", datetime(2026, 11, 20)),
        ("a.txt:1", "a-20261399.txt", None),
        ("a.txt:1", "job-12026112012.txt", None),
    ],
)
def test_a_date_is_in_the_run_or_in_the_path(run: str, file: str, date: datetime | None) -> None:
    assert date_of(run, file) == date


def test_differences_leave_out_what_every_run_has_of_its_own() -> None:
    before = {"run": "a", "command": "x", "environment": "UCX_TLS=tcp", "python": "3.11"}
    after = {"run": "b", "command": "y", "environment": "UCX_TLS=rc", "python": "3.11"}
    assert differences(before, after) == "UCX_TLS: tcp → rc"
