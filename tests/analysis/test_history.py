"""Changes and outliers over many runs: series with known steps, and what they must not find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

pytest.importorskip("otava", reason="the extra history is not installed")

from omb_py.analysis.history import (
    MAX_LISTED,
    History,
    date_of,
    differences,
    history,
    outliers_of,
    sheets,
    since_of,
    starts_of,
    summary,
)
from omb_py.analysis.history_gate import conclusion, ended, verdict
from omb_py.analysis.history_gate import sheets as gate_sheets
from omb_py.analysis.table import of_rows
from omb_py.core.errors import UsageError
from tests.helpers.refusals import missing

START = datetime(2026, 1, 1)


def noise(runs: int, seed: int = 1) -> np.ndarray:
    """Values around 10 with a deviation of 2 %."""
    return 10 * np.random.default_rng(seed).lognormal(0, 0.02, runs)


def steps(runs: int, *levels: tuple[int, float], seed: int = 1) -> np.ndarray:
    """Noise around levels, each of which begins with a run; before the first it is 1."""
    factors = np.ones(runs)
    for start, factor in levels:
        factors[start:] = factor
    return noise(runs, seed) * factors


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
    return of(rows, runs)


def of(rows: list[dict[str, Any]], runs: Any = None, file: str = "a.csv") -> History:
    """The history of rows of a file."""
    return history(of_rows([{**row, "file": file, "line": 1} for row in rows], runs or {}))


@pytest.mark.parametrize("size", [0.05, 0.1, 0.2])
def test_a_step_at_2_percent_noise_is_found_within_two_runs(size: float) -> None:
    (_, start) = starts_of(steps(120, (100, 1 + size)))
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
    found = made(steps(60, (40, 1.1)) / 10)
    (row,) = found.rows[found.rows["kind"] == "change"].to_dict("records")
    assert row["date"] == "2026-02-10 00:00"
    assert row["change"] == pytest.approx(0.1, abs=0.02)
    assert (row["verdict"], row["runs_before"], row["runs_after"]) == ("slower", 40, 20)
    assert (row["run_before"], row["run_after"]) == (run_name(39), run_name(40))


def test_a_higher_bandwidth_is_faster() -> None:
    found = made(steps(60, (40, 1.1)), "bandwidth_MBps")
    assert list(found.rows["verdict"]) == ["faster"]
    assert conclusion(found, 1.05).exit_code == 0


def test_a_change_names_the_metadata_that_changed_with_it() -> None:
    kernels = ["Linux 6.1" if number < 40 else "Linux 6.2" for number in range(60)]
    found = made(steps(60, (40, 1.1)), system=kernels)
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
    found = of(rows[::-1])
    assert list(found.series[0].values) == list(values)


def test_a_series_of_fewer_than_10_runs_is_counted_as_short() -> None:
    found = made(noise(9))
    assert (len(found.series), len(found.short)) == (0, 1)
    assert "1 had fewer than 10 runs" in summary(found)
    assert conclusion(found, 1.05).exit_code == 7


def test_guard_passes_if_a_slower_segment_is_over() -> None:
    found = made(steps(90, (30, 1.2), (60, 1), seed=2))
    assert list(found.rows["verdict"]) == ["faster", "slower"]
    assert conclusion(found, 1.05).exit_code == 0


def said(values: np.ndarray, allowed: float = 1.05, column: str = "latency_us") -> tuple[int, str]:
    """The exit code of the gate for one series, and its sentence with the reasons."""
    found = conclusion(made(values, column), allowed)
    return found.exit_code, "; ".join(found.lines())


def with_newest(runs: int, newest: int, factor: float, seed: int = 1) -> np.ndarray:
    return steps(runs, (runs - newest, factor), seed=seed)


BEST_EARLIER = "1.4 µs against (2026-01-01 to 2026-01-30) slower since 2026-01-31"
CREEPING = 10 * np.random.default_rng(1).lognormal(0, 0.005, 120) * np.linspace(1, 1.2, 120)


@pytest.mark.parametrize(
    ("values", "code", "words"),
    [
        (with_newest(60, 4, 3), 4, "2.9 slower since 2026-02-26"),
        (with_newest(60, 3, 3), 4, "slower since 2026-02-27"),
        (with_newest(60, 1, 10), 7, "the newest run of 2026-03-01 is slower too few to judge"),
        (with_newest(60, 2, 1.5), 7, "the newest 2 runs since 2026-02-28 are 1.4 slower"),
        (with_newest(16, 4, 2), 7, "the newest 4 runs since 2026-01-13 are slower"),
        (with_newest(12, 5, 3), 4, "slower since 2026-01-08"),
        (with_newest(60, 1, 0.1), 0, "PASS: 1 of 1 series"),
        (with_newest(60, 3, 1.03), 0, "PASS: 1 of 1 series"),
        (steps(60, (40, 1.1)), 4, "slower since 2026-02-10"),
        (steps(60, (58, 3), (59, 1)), 0, "PASS: 1 of 1 series"),
        (steps(60, (30, 1.5), (45, 1.44)) / 10, 4, BEST_EARLIER),
        (CREEPING, 4, "slower"),
        (steps(60, (30, 1.5), (59, 4.5)), 4, "slower"),
        *((steps(80 + n, (40, 1.5), (80, 1)), c, "") for n, c in ((0, 4), (1, 7), (2, 7), (4, 0))),
    ],
    ids=lambda value: None if isinstance(value, np.ndarray) else str(value),
)
def test_gate_of_a_series_passes_only_what_is_not_slower_than_its_best_level(
    values: np.ndarray, code: int, words: str
) -> None:
    found, text = said(values)
    assert (found, missing(words, text)) == (code, [])


def test_newest_low_bandwidth_is_undecided() -> None:
    assert said(with_newest(60, 1, 0.1), column="bandwidth_MBps")[0] == 7
    assert said(with_newest(60, 1, 10), column="bandwidth_MBps")[0] == 0


@pytest.mark.long
@pytest.mark.parametrize("deviation", [0.02, 0.1])
def test_steady_noise_never_fails_and_is_seldom_undecided(deviation: float) -> None:
    random = np.random.default_rng(5)
    series = (made(10 * random.lognormal(0, deviation, 40)).series[0] for _ in range(100))
    said = [verdict(one, 1.05)[0] for one in series]
    assert said.count(False) == 0
    assert said.count(None) <= 2


def test_limit_below_the_smallest_change_is_refused() -> None:
    with pytest.raises(UsageError, match="changes below 2% are not looked for"):
        conclusion(made(noise(60)), 1.01)


def of_days(days: Mapping[str, Sequence[float]]) -> dict[str, np.ndarray]:
    """Seconds of the runs of each series, from days."""
    return {name: np.array(own) * 86400 for name, own in days.items()}


NIGHTS = np.arange(30)


@pytest.mark.parametrize(
    ("days", "names"),
    [
        pytest.param({"a": NIGHTS, "b": NIGHTS}, set(), id="same runs"),
        pytest.param({"a": NIGHTS[:-1], "b": NIGHTS}, {"a"}, id="not in the newest run"),
        pytest.param({"a": NIGHTS, "b": NIGHTS + 0.1}, set(), id="one after the other"),
        pytest.param({"a": NIGHTS[:-1], "b": NIGHTS + 0.1}, {"a"}, id="the first is missing"),
        pytest.param({"a": NIGHTS, "b": NIGHTS[:-1] + 0.1}, {"b"}, id="the second is missing"),
        pytest.param({"a": NIGHTS[:28:7], "b": NIGHTS[:28]}, set(), id="weekly and nightly"),
        pytest.param({"a": NIGHTS[::7] + 0.4, "b": NIGHTS[:29]}, set(), id="weekly is newest"),
        pytest.param({"a": NIGHTS[::7] + 0.4, "b": NIGHTS[:27]}, {"b"}, id="only weekly goes on"),
        pytest.param({"a": NIGHTS[:21:7], "b": NIGHTS}, {"a"}, id="a week is missing"),
        pytest.param({"a": NIGHTS, "b": NIGHTS + 100}, {"a"}, id="another one instead"),
        pytest.param({"a": NIGHTS[NIGHTS != 9], "b": NIGHTS}, set(), id="a gap that is over"),
        pytest.param({"a": NIGHTS, "b": np.array([40.0])}, {"a"}, id="older than a single run"),
    ],
)
def test_series_ended_if_others_ran_since_more_than_usual(
    days: dict[str, Sequence[float]], names: set[str]
) -> None:
    assert ended(of_days(days)) == names


def history_of(series: Mapping[int, np.ndarray], **options: Any) -> History:
    """The history of series by their message sizes, a run a day; `nan` is no row, 0 wrong data."""
    rows = [
        {"run": run_name(day), "benchmark": "latency", "bytes": size, "ranks": 2}
        | {"latency_us": value or 1.0, "validation": "Pass" if value else "Fail"}
        | {"file": f"r{day}.csv", "line": 1}
        for size, values in series.items()
        for day, value in enumerate(values)
        if not np.isnan(value)
    ]
    return history(of_rows(rows, {}), **options)


def test_series_that_ended_is_missing_by_name() -> None:
    broken = np.where(np.arange(40) < 38, noise(40), np.nan)
    found = conclusion(history_of({8: noise(40), 64: broken}), 1.05)
    assert (found.exit_code, found.missing) == (7, ("latency, 64 B: no run since 2026-02-07",))


def test_short_series_are_undecided_each_by_name() -> None:
    series = {8: noise(40)} | {size: np.append(np.full(32, np.nan), noise(8)) for size in (16, 64)}
    found = conclusion(history_of(series), 1.05)
    assert found.exit_code == 7
    assert found.undecided == tuple(
        f"latency, {size} B: 8 runs until 2026-02-09, 10 are needed" for size in (16, 64)
    )
    assert "PASS" not in found.sentence
    assert "1 of 3 series" in found.sentence


def test_series_with_sizes_that_read_alike_have_names_of_their_own() -> None:
    found = history_of({1_000_000: noise(12), 1_000_001: noise(12)})
    assert len({one.name for one in found.series}) == 2


def test_wrong_data_in_the_newest_run_fails_older_does_not() -> None:
    newest, older = noise(40), noise(40)
    newest[-1] = older[20] = 0
    found = history_of({8: newest, 64: older})
    done = conclusion(found, 1.05)
    assert done.reasons == (
        "latency, 8 B: the data of the newest run was wrong (validation Fail), in r39.csv",
    )
    assert done.sentence == "FAIL: 1 of 2 series without a slowdown above 1.050x"


def test_series_without_any_right_data_fails() -> None:
    done = conclusion(history_of({8: noise(40), 64: np.zeros(40)}), 1.05)
    assert (done.exit_code, len(done.failed)) == (4, 1)


def test_runs_before_a_date_do_not_count() -> None:
    values = steps(60, (30, 1.5))
    assert conclusion(history_of({8: values}), 1.05).exit_code == 4
    found = history_of({8: values}, since=since_of("2026-01-31"))
    assert conclusion(found, 1.05).exit_code == 0
    assert "1 series of 30 runs since 2026-01-31 (of 60) were judged" in summary(found)


def test_series_with_older_runs_only_are_named() -> None:
    old = np.where(np.arange(60) < 20, noise(60), np.nan)
    found = history_of({8: noise(60), 64: old}, since=since_of("2026-01-31"))
    assert found.gone == ("latency, 64 B",)
    assert "not run since then: latency, 64 B" in summary(found)


def test_few_runs_after_the_date_are_undecided() -> None:
    found = history_of({8: noise(60)}, since=since_of("2026-02-25"))
    assert conclusion(found, 1.05).undecided == (
        "latency, 8 B: 5 runs until 2026-03-01, 10 are needed",
    )


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "2026-11-21 and more", "", "20"])
def test_since_is_a_date(text: str) -> None:
    with pytest.raises(UsageError, match="write a date as in 2026-11-21"):
        since_of(text)


def test_statistic_is_chosen_for_each_series() -> None:
    step = steps(40, (20, 1.3))
    rows = [
        {"run": run_name(day), "benchmark": "latency", "bytes": 8, "ranks": 2}
        | {"suite": "omb-py 1.0.0", "latency_us": 10.0, "sample_p50_us": value}
        for day, value in enumerate(step)
    ]
    rows.append(rows[-1] | {"suite": "OSU 7.4", "sample_p50_us": None, "run": run_name(40)})
    found = of(rows)
    assert [one.values.tolist() for one in found.series] == [step.tolist()]
    assert [one.name for one in found.short] == ["latency, OSU, 8 B"]


def test_file_without_a_date_is_undecided() -> None:
    rows = [
        {"run": run_name(day), "benchmark": "latency", "bytes": 8, "latency_us": value}
        for day, value in enumerate(noise(40))
    ]
    rows.append({"run": "osu.txt:1", "benchmark": "latency", "bytes": 8, "latency_us": 10.0})
    found = conclusion(of(rows, file="osu.txt"), 1.05)
    assert (found.exit_code, found.undecided) == (7, ("osu.txt: no date",))


def test_tables_name_all_that_was_not_judged_if_the_sentence_does_not() -> None:
    few = {size: noise(9) for size in (8, 16, 32, 64)}
    three = conclusion(history_of({size: few[size] for size in (8, 16, 32)}), 1.05)
    four = conclusion(history_of(few), 1.05)
    assert [*gate_sheets(three, complete=False)] == []
    (sheet,) = gate_sheets(four, complete=False)
    assert (sheet.title, len(sheet.rows)) == ("Not judged", 4)
    assert [sheet.title for sheet in gate_sheets(three)] == ["Not judged"]


def changed_series(number: int) -> History:
    """The history of so many series, each with one change of 10 %."""
    values = steps(40, (20, 1.1))
    rows = [
        {"run": run_name(day), "benchmark": "latency", "bytes": 8 << series, "latency_us": value}
        for series in range(number)
        for day, value in enumerate(values)
    ]
    return of(rows)


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
