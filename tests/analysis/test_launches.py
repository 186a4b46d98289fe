"""Variances within and between launches are those that were put in; the advice is the best one."""

from __future__ import annotations

import doctest
from math import inf, sqrt
from typing import Any

import numpy as np
import pandas as pd
import pytest

from omb_py.analysis import launches as module
from omb_py.analysis.launches import COLUMNS, Kind, advice, best_iterations, launches, sheets
from omb_py.analysis.table import of_rows
from omb_py.core.errors import UsageError
from omb_py.core.statistics import summarize

TIME = 10.0
COSTS = {"launch_seconds": "2.0", "iterating_seconds": "0.5"}


def row(run: int, size: int, samples: np.ndarray, **columns: Any) -> dict[str, Any]:
    """A row of a launch's samples."""
    found = summarize(list(map(float, samples)))
    low, high = found.median_interval
    return {
        "run": f"run {run}",
        "benchmark": "latency",
        "ranks": 2,
        "bytes": size,
        "latency_us": found.mean,
        "sample_mean_us": found.mean,
        "sample_stddev_us": found.stddev,
        "sample_p50_us": found.percentile(50),
        "median_low_us": low,
        "median_high_us": high,
        "iterations": len(samples),
        "warmup": 0,
    } | columns


def simulated(
    count: int, points: int, between: float, within: float, iterations: int = 50, **columns: Any
) -> pd.DataFrame:
    """Launches whose normal numbers have these standard deviations, as parts of their mean."""
    random = np.random.default_rng(2013)
    shifts = random.normal(TIME, TIME * between, (count, points))
    rows = [
        row(run, size, random.normal(shifts[run, size], TIME * within, iterations), **columns)
        for run in range(count)
        for size in range(points)
    ]
    return of_rows(rows, {}).rows


def runs_of(rows: pd.DataFrame, **costs: str) -> dict[str, dict[str, str]]:
    return {str(run): COSTS | costs for run in rows["run"].unique()}


def pooled(points: pd.DataFrame, name: str) -> float:
    """The root of the mean variance over the points."""
    return sqrt(float((points[name] ** 2).mean()))


def test_the_columns_are_those_documented() -> None:
    points = launches(simulated(3, 1, 0.02, 0.1), {})
    assert tuple(points.columns) == COLUMNS
    for name in COLUMNS:
        assert f"``{name}``" in (launches.__doc__ or "") or name in module.KIND


@pytest.mark.parametrize(
    ("statistic", "factor", "error"),
    [("mean", 1.0, 0.02), ("median", sqrt(np.pi / 2), 0.16)],
    ids=["means", "medians"],
)
def test_variances_are_those_that_were_put_in(statistic: str, factor: float, error: float) -> None:
    """The median of normal samples varies as if each had pi/2 of its variance; the intervals of
    few samples are a little wider than they need be."""
    points = launches(simulated(8, 100, 0.05, 0.1, iterations=200), {}, statistic)
    assert pooled(points, "between") == pytest.approx(0.05, rel=0.06)
    assert pooled(points, "within") == pytest.approx(0.1 * factor, rel=error)
    assert set(points["launches"]) == {8}
    assert points["mean"].mean() == pytest.approx(TIME, rel=0.01)


def test_iterations_alone_are_not_taken_for_a_difference_between_launches() -> None:
    points = launches(simulated(8, 100, 0.0, 0.1), {}, "mean")
    assert pooled(points, "between") < 0.1 / sqrt(50)
    assert (points["between"] == 0).mean() > 0.4, "an estimate below 0 is 0"
    assert points["share"].between(0, 1).all()


def test_the_interval_holds_the_mean_in_nineteen_of_twenty_cases() -> None:
    points = launches(simulated(5, 400, 0.05, 0.02, iterations=8), {}, "mean")
    held = ((points["low"] <= TIME) & (points["high"] >= TIME)).mean()
    assert held == pytest.approx(0.95, abs=0.03)


def test_a_bandwidths_numbers_are_those_of_its_times() -> None:
    rows = simulated(4, 1, 0.05, 0.1)
    times = launches(rows, {}, "mean").iloc[0]
    rates = rows.assign(latency_us=np.nan, bandwidth_MBps=1000 / rows["sample_mean_us"])
    found = launches(rates, {}, "mean").iloc[0]
    assert found["unit"] == "MB/s"
    for name in ("within", "between", "share", "half_width"):
        assert found[name] == pytest.approx(times[name])
    assert [found["low"], found["mean"], found["high"]] == pytest.approx(
        [1000 / times["high"], 1000 / times["mean"], 1000 / times["low"]]
    )


def test_costs_are_shared_out_by_the_times_of_the_sizes() -> None:
    rows = simulated(3, 2, 0.0, 0.0, warmup=50)
    rows.loc[rows["bytes"] == 1, ["latency_us", "sample_mean_us"]] *= 3
    points = launches(rows, runs_of(rows), "mean")
    # 0.5 s for 100 iterations of both sizes, of which half are warm-up
    assert list(points["iteration_seconds"]) == pytest.approx([0.5 / 400, 1.5 / 400])
    assert list(points["launch_seconds"]) == pytest.approx([1.75, 1.75])


class TestBest:
    KIND = Kind(launch=1.0, iteration=0.001, within=np.array([0.2]), between=np.array([0.0004]))

    def test_no_other_number_of_iterations_does_better_in_the_same_time(self) -> None:
        """Simulated at equal cost: the spread of the mean over the launches, of 4000 designs."""
        random = np.random.default_rng(1)
        best = best_iterations(1.0, 0.001, 0.2, 0.0004)
        assert best == 708

        def spread(iterations: float) -> float:
            number = int(200 / (1.0 + 0.001 * iterations))
            shape = (4000, number)
            own = random.normal(0, sqrt(0.0004), shape)
            means = own + random.normal(0, sqrt(0.2 / iterations), shape)
            return float(means.mean(axis=1).std())

        others = [spread(best * factor) for factor in (0.05, 0.2, 0.5, 2, 5, 20)]
        assert spread(best) <= min(others) * 1.03
        assert others[0] > 1.5 * spread(best) < others[-1]

    @pytest.mark.parametrize("seconds", [9.0, 30.0, 600.0])
    def test_a_design_is_the_best_of_all_that_fit_into_the_time(self, seconds: float) -> None:
        found = self.KIND.within_time(seconds)
        assert found is not None
        assert found.seconds <= seconds
        others = [
            self.KIND.design(number, int((seconds / number - 1.0) / 0.001))
            for number in range(5, int(seconds / 1.01))
        ]
        assert found.half_width <= 1.005 * min(one.half_width for one in others)

    @pytest.mark.parametrize("precision", [0.05, 0.02, 0.01])
    def test_a_design_for_a_precision_reaches_it_at_the_least_cost(self, precision: float) -> None:
        found = self.KIND.to_within(precision)
        assert found is not None
        assert found.half_width <= precision
        grid = [
            self.KIND.design(number, iterations)
            for number in range(5, 2 * found.launches)
            for iterations in (10, 100, 200, 400, 700, 1000, 2000, 5000)
        ]
        cheapest = min(one.seconds for one in grid if one.half_width <= precision)
        assert found.seconds <= 1.25 * cheapest

    def test_where_launches_do_not_differ_iterations_take_all_the_time(self) -> None:
        assert best_iterations(1.0, 0.001, 0.2, 0.0) == inf
        same = Kind(1.0, 0.001, np.array([0.2]), np.array([0.0]))
        found = same.within_time(100.0)
        assert found is not None
        assert (found.launches, found.iterations) == (5, 19000)
        reached = same.to_within(0.01)
        assert reached is not None
        assert reached.launches == 5
        assert reached.half_width == pytest.approx(0.01, rel=0.01)

    def test_a_time_for_fewer_than_five_launches_and_a_precision_out_of_reach_are_said(
        self,
    ) -> None:
        assert self.KIND.within_time(5.0) is None
        assert self.KIND.to_within(1e-6) is None
        rows = simulated(8, 1, 0.05, 0.02)
        points = launches(rows, runs_of(rows))
        assert "in 3.0 s there is no room for 5 launches" in advice(points, 3.0, None)
        assert "10000 launches would not be enough" in advice(points, None, 1e-6)


def test_the_advice_compares_with_what_was_done() -> None:
    rows = simulated(6, 2, 0.05, 0.02)
    points = launches(rows, runs_of(rows))
    text = advice(points, None, None)
    assert text.startswith("6 launches of 50 iterations took 12.0 s and give ± ")
    assert "; in the same time, " in text
    assert "; in 10 min 0 s, " in advice(points, 600.0, None)
    assert "; for ± 1.0 %, " in advice(points, None, 0.01)
    (sheet,) = sheets(points)
    assert sheet.title == "latency, medians"
    assert [cells[:3] for cells in sheet.rows] == [("0 B", "6", "50"), ("1 B", "6", "50")]
    assert sheet.remarks == (text,)


def test_configurations_have_lines_and_advice_of_their_own() -> None:
    first, second = (simulated(3, 1, 0.05, 0.02, binding=name) for name in ("native", "buffer"))
    both = pd.concat([first, second.assign(run=second["run"] + " too")])
    (sheet,) = sheets(launches(both, runs_of(both)))
    assert [cells[0] for cells in sheet.rows] == ["native", "buffer"]
    assert [text.partition(":")[0] for text in sheet.remarks] == ["native", "buffer"]


def test_files_that_do_not_say_what_a_launch_costs_have_variances_and_no_advice() -> None:
    points = launches(simulated(3, 1, 0.05, 0.02), {})
    assert points["between"].notna().all()
    assert advice(points, None, None).endswith("; the files do not say what a launch costs")


def test_single_launches_say_nothing_of_launches() -> None:
    with pytest.raises(UsageError, match="no point was launched twice: repeat launches"):
        launches(simulated(1, 2, 0.05, 0.02), {})


def test_rows_without_samples_say_nothing_of_iterations() -> None:
    rows = simulated(3, 1, 0.05, 0.02)
    with pytest.raises(UsageError, match="no point was launched twice"):
        launches(rows.assign(sample_mean_us=np.nan), {})


def test_examples_are_right() -> None:
    assert doctest.testmod(module).failed == 0
