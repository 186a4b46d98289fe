"""Comparing results: who is compared with whom, how sure the difference is, and the verdict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from omb_py.analysis import verdict
from omb_py.analysis.compare import side_by_side as comparing
from omb_py.analysis.compare import summary as summarizing
from omb_py.analysis.compare.side_by_side import COLUMNS, compare, names_of
from omb_py.analysis.compare.summary import conclusion, summary
from omb_py.analysis.table import of_rows
from omb_py.core.errors import UsageError
from omb_py.results.columns import Row
from perf.gates import compare_made
from tests.helpers.properties import examples
from tests.helpers.refusals import assert_names, missing, refuses
from tests.helpers.tables import comparison_text

LATENCY: dict[str, Any] = {
    "run": "first",
    "benchmark": "latency",
    "ranks": 2,
    "mpi_type": "MPI_CHAR",
    "suite": "omb-py 0.1.0",
    "mpi": "MPICH 5.0.2",
    "buffer": "numpy",
    "binding": "buffer",
}
NATIVE: dict[str, Any] = {
    "run": "native.txt:1",
    "benchmark": "latency",
    "suite": "OSU 7.4",
    "binding": "C",
}


def table(*rows: dict[str, Any]) -> pd.DataFrame:
    """Rows as `load` gives them."""
    return of_rows(list(rows), {}).rows


def latency(value: float, size: int | None = 8, **columns: Any) -> dict[str, Any]:
    """A row with a mean alone."""
    return LATENCY | {"bytes": size, "latency_us": value} | columns


def sampled(median: float, low: float, high: float, **columns: Any) -> dict[str, Any]:
    """A row with a median and its interval; its mean is far off."""
    samples = {"sample_p50_us": median, "median_low_us": low, "median_high_us": high}
    return latency(3 * median) | {"sample_mean_us": 3 * median} | samples | columns


def bandwidth(value: float, **columns: Any) -> dict[str, Any]:
    """A row of a bandwidth, without samples."""
    return LATENCY | {"benchmark": "bw", "bytes": 8, "bandwidth_MBps": value} | columns


def runs(values: list[float], **columns: Any) -> pd.DataFrame:
    """Repeated runs of one point."""
    return table(*(latency(value, run=f"run {i}", **columns) for i, value in enumerate(values)))


def only(points: pd.DataFrame) -> Any:
    """The one row of a comparison."""
    assert len(points) == 1
    return points.iloc[0]


def test_the_columns_are_those_documented() -> None:
    points = compare(table(latency(2.0)), table(latency(3.0)))
    assert tuple(points.columns) == COLUMNS
    text = comparing.compare.__doc__ or ""
    named = [name for name in COLUMNS if not name.startswith(("base_", "other_"))]
    in_results = {*Row.columns, "hosts"}
    assert [name for name in named if f"``{name}``" not in text and name not in in_results] == []


def test_every_point_has_both_values_their_difference_and_ratio() -> None:
    row = only(compare(table(latency(2.0)), table(latency(3.0))))
    assert (row.base, row.value, row.unit) == (2.0, 3.0, "us")
    assert row.difference == pytest.approx(1.0)
    assert row.ratio == pytest.approx(1.5)
    assert row.slowdown == pytest.approx(1.5)
    assert (row.runs_base, row.runs_other, row.statistic) == (1, 1, "mean")


# who is compared with whom


def test_different_experiments_are_never_compared() -> None:
    base = table(latency(1.0, ranks=2), latency(2.0, ranks=4))
    points = compare(base, table(latency(3.0, ranks=4), latency(4.0, ranks=8)))
    told = {row.ranks: (row.base, row.value, row.verdict) for row in points.itertuples()}
    assert told[4] == (2.0, 3.0, "unclear")
    assert told[2][2] == "only in base"
    assert told[8][2] == "only in other"


@pytest.mark.slow
def test_parts_are_not_the_whole() -> None:
    whole = latency(1.0, size=None)
    part = latency(9.0, size=None, part="topology creation")
    points = compare(table(whole, part), table(whole))
    assert dict(zip(points.verdict, points.base, strict=True)) == {
        "unclear": 1.0,
        "only in base": 9.0,
    }


def test_what_native_omb_does_not_say_matches_what_ours_says() -> None:
    native = table(NATIVE | {"bytes": 8, "latency_us": 1.0})
    row = only(compare(native, table(latency(2.0, window=None, hosts=1, pairs=1))))
    assert (row.ranks, row.mpi_type, row.ratio) == (2, "MPI_CHAR", 2.0)
    assert (row.base_binding, row.other_binding) == ("C", "buffer")


@pytest.mark.parametrize("swapped", [False, True])
def test_column_of_one_side_with_several_values_refused(swapped: bool) -> None:
    native = table(NATIVE | {"bytes": 8, "latency_us": 1.0})
    ours = table(latency(2.0, ranks=2), latency(3.0, ranks=4))
    with pytest.raises(UsageError) as error:
        compare(*((ours, native) if swapped else (native, ours)), names=["one", "two"])
    silent = "two" if swapped else "one"
    assert not missing(f"{silent} ranks of latency", error.value)
    assert "there is ranks 2, 4" in str(error.value)
    assert "--assume ranks=2" in str(error.value)
    assert "--where ranks=2" in str(error.value)


NEW: dict[str, Any] = {"suite": "omb-py 0.2.0", "mpi": "Open MPI 5.0.11"}
OPEN: dict[str, Any] = {"mpi": "Open MPI 5.0.11"}


@pytest.mark.parametrize(
    ("base", "other", "column", "ratios"),
    [
        (
            [NATIVE | {"bytes": 8, "latency_us": 1.0}],
            [latency(2.0, binding="native"), latency(4.0, binding="pickle")],
            "other_binding",
            {"native": 2.0, "pickle": 4.0},
        ),
        (
            [latency(2.0, binding="native"), latency(4.0, binding="pickle")],
            [latency(8.0, **OPEN)],
            "base_binding",
            {"native": 4.0, "pickle": 2.0},
        ),
        (
            [latency(1.0, binding="native"), latency(2.0, binding="pickle")],
            [latency(6.0, binding="pickle", **NEW), latency(2.0, binding="native", **NEW)],
            "base_binding",
            {"native": 2.0, "pickle": 3.0},
        ),
        (
            [latency(1.0), latency(2.0, **OPEN)],
            [latency(3.0), latency(4.0, **OPEN)],
            "base_mpi",
            {"MPICH 5.0.2": 3.0, "Open MPI 5.0.11": 2.0},
        ),
        (
            [latency(1.0, None, benchmark="barrier")],
            [latency(1.0, None, benchmark="barrier")],
            "benchmark",
            {"barrier": 1.0},
        ),
    ],
    ids=["one with each", "each with one", "equal ones", "libraries", "no size"],
)
def test_configurations_are_paired(base: Any, other: Any, column: str, ratios: Any) -> None:
    points = compare(table(*base), table(*other))
    assert dict(zip(points[column], points.ratio, strict=True)) == ratios


def test_binding_of_one_side_only_is_counted() -> None:
    bindings = [latency(1.0, binding="native"), latency(2.0, binding="buffer")]
    more = latency(9.0, binding="pickle")
    points = compare(table(*bindings, more), table(*bindings))
    assert list(points[points.verdict == "only in base"].base_binding) == ["pickle"]
    assert set(points.ratio.dropna()) == {1.0}
    # what a benchmark lacks is not replaced by what another one has
    other = [*bindings, bandwidth(1.0, binding="native"), bandwidth(5.0, binding="buffer")]
    points = compare(table(*bindings, bandwidth(1.0, binding="native")), table(*other))
    assert set(points.ratio.dropna()) == {1.0}
    assert list(points[points.verdict == "only in other"].other_binding) == ["buffer"]


def several_kinds() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Sides that each have several values of another column."""
    base = table(latency(1.0, binding="native"), latency(2.0, binding="pickle"))
    return base, table(latency(1.0, buffer="numpy"), latency(2.0, buffer="bytearray"))


@pytest.mark.parametrize(
    ("base", "other", "words"),
    [
        (*several_kinds(), "a several binding, b several buffer"),
        (table(latency(1.0)), table(latency(1.0, ranks=4)), "a ranks 2, b ranks 4"),
        (
            *(table(latency(1.0)), table(latency(1.0, benchmark="bcast"))),
            "a benchmark latency, b benchmark bcast",
        ),
        (
            *(table(latency(1.0)), table(latency(1.0, mpi_type="MPI_INT"))),
            "a mpi_type MPI_CHAR, b mpi_type MPI_INT",
        ),
        (table(latency(1.0, 8)), table(latency(1.0, 16)), "no message size"),
        (table(latency(1.0)), table(latency(0.0)), "b no row a number"),
    ],
)
def test_sides_with_nothing_in_common_refused(
    base: pd.DataFrame, other: pd.DataFrame, words: str
) -> None:
    with refuses(UsageError, words):
        compare(base, other, names=["a", "b"])


@pytest.mark.slow
def test_elements_are_compared_by_whatever_type_the_library_was_passed() -> None:
    brain: dict[str, Any] = {"elements": "bfloat16"}
    there = table(latency(1.0, mpi_type="MPI_BFLOAT16_T", **brain))
    passed = latency(2.0, mpi_type="MPI_UINT16_T")
    assert only(compare(there, table(passed | brain))).ratio == 2.0
    with refuses(UsageError, "mpi_type MPI_BFLOAT16_T MPI_UINT16_T"):
        compare(table(latency(1.0, mpi_type="MPI_BFLOAT16_T")), table(passed))
    both = compare(table(passed, passed | brain), table(passed, passed | brain))
    assert list(both.elements.fillna("")) == ["", "bfloat16"]


def test_each_other_is_compared_with_the_base() -> None:
    points = compare(*(runs([value]) for value in (2.0, 4.0, 8.0)), names=["a", "b", "c"])
    assert dict(zip(points.other, points.ratio, strict=True)) == {"b": 2.0, "c": 4.0}
    assert points.pair.nunique() == 2


# how sure the difference is


def test_medians_are_compared_where_both_have_them_else_means() -> None:
    ours = table(sampled(1.0, 0.9, 1.1))
    row = only(compare(ours, table(sampled(2.0, 1.9, 2.1))))
    assert (row.statistic, row.base, row.value) == ("median", 1.0, 2.0)
    row = only(compare(table(NATIVE | {"bytes": 8, "latency_us": 1.0}), ours))
    assert (row.statistic, row.value, row.noise) == ("mean", 3.0, "one run a side")
    with refuses(UsageError, "not all rows have a median"):
        compare(ours, table(latency(1.0)), statistic="median")


def test_one_run_a_side_is_no_verdict_whatever_its_samples_say() -> None:
    row = only(compare(table(sampled(1.0, 0.99, 1.02)), table(sampled(37.6, 36.0, 40.0))))
    assert (row.verdict, row.noise) == ("unclear", "one run a side")
    assert np.isnan([row.ratio_low, row.ratio_high, row.launch_spread]).all()


@pytest.mark.slow
def test_stated_launch_spread_separates_change_from_noise() -> None:
    base = table(sampled(1.0, 0.99, 1.02))
    told = {
        value: only(
            compare(base, table(sampled(value, value - 0.01, value + 0.02)), launch_spread=0.03)
        )
        for value in (0.8, 0.95, 1.05, 1.2)
    }
    verdicts = [row.verdict for row in told.values()]
    assert verdicts == ["faster", "within noise", "within noise", "slower"]
    assert {row.noise for row in told.values()} == {"spread"}


def test_interval_adds_spreads_of_launches_and_samples() -> None:
    base, other = table(sampled(1.0, 0.8, 1.1)), table(sampled(2.0, 1.9, 2.3))
    row = only(compare(base, other, launch_spread=0.03))
    between = 1.959964 * np.log(1.03) * np.sqrt(2)
    low = np.log(2) - np.hypot(between, np.hypot(np.log(2 / 1.9), np.log(1.1)))
    high = np.log(2) + np.hypot(between, np.hypot(np.log(2.3 / 2), np.log(1 / 0.8)))
    assert np.log([row.ratio_low, row.ratio_high]) == pytest.approx([low, high])


def test_single_run_is_judged_by_the_spread_of_base_launches() -> None:
    values = [1.00, 1.02, 0.98, 1.01, 0.99]
    row = only(compare(runs(values), runs([1.03])))
    spread = np.log(values).std(ddof=1)
    half = 2.776445 * spread * np.sqrt(np.pi / 2 / 5 + 1)
    told = (row.verdict, row.noise, row.runs_base, row.runs_other)
    assert told == ("within noise", "spread", 5, 1)
    assert row.launch_spread == pytest.approx(np.expm1(spread))
    assert np.log([row.ratio_low, row.ratio_high]) == pytest.approx(
        [np.log(1.03) - half, np.log(1.03) + half]
    )
    assert only(compare(runs(values), runs([1.2]))).verdict == "slower"


@pytest.mark.slow
def test_the_spread_is_that_of_the_pair_and_the_size_class() -> None:
    def side(*factors: float, **columns: Any) -> pd.DataFrame:
        """Launches of a quiet small size, a noisy large one and another binding."""
        return table(
            *(
                latency(value**power, size, run=f"run {number}", **columns)
                for number, value in enumerate(factors)
                for size, power in ((8, 1), (1 << 20, 10))
            )
        )

    points = compare(side(1.00, 1.02, 0.98, 1.01, 0.99), side(1.0))
    small, large = points.launch_spread
    assert large == pytest.approx(10 * small, rel=0.1)
    quiet = pd.concat([side(1.0, binding="native"), side(1.0)], ignore_index=True)
    points = compare(
        pd.concat(
            [side(1.0, binding="native"), side(1.00, 1.02, 0.98, 1.01, 0.99)], ignore_index=True
        ),
        quiet,
    )
    told = points.groupby("base_binding")["noise"].first()
    assert dict(told) == {"buffer": "spread", "native": "one run a side"}


def test_a_bandwidths_interval_is_turned_round() -> None:
    samples = {"sample_mean_us": 10.0, "sample_p50_us": 10.0, "median_high_us": 10.2}
    base = table(bandwidth(100.0, **samples, median_low_us=9.9))
    other = table(bandwidth(50.0, **samples, median_low_us=9.9))
    row = only(compare(base, other, launch_spread=0.03))
    assert row.ratio_low < 0.5 < row.ratio_high
    assert row.slowdown_low == pytest.approx(1 / row.ratio_high)
    assert row.slowdown_high == pytest.approx(1 / row.ratio_low)
    assert row.verdict == "slower"


@pytest.mark.slow
def test_repeated_runs_are_compared_by_their_ranks() -> None:
    row = only(compare(runs([1.0, 1.1, 1.2, 5.0]), runs([6.0, 6.1, 6.2, 60.0])))
    assert (row.verdict, row.noise, row.runs_base, row.runs_other) == ("slower", "runs", 4, 4)
    assert row.p_value == pytest.approx(2 / 70)
    row = only(compare(runs([1.0, 1.1, 1.2, 1.5]), runs([1.1, 1.1, 1.2, 1.3])))
    assert row.verdict == "within noise"
    row = only(compare(runs([1.0, 1.1, 1.2, 5.0]), runs([4.0, 6.1, 6.2, 60.0])))
    assert row.verdict == "unclear"
    assert row.ratio_low < 1 < 2 < row.ratio_high


@pytest.mark.slow
def test_three_runs_a_side_and_not_fewer_are_a_verdict() -> None:
    row = only(compare(runs([1.0, 1.1, 1.2]), runs([6.0, 6.1, 6.2])))
    assert (row.verdict, row.noise) == ("slower", "spread")
    row = only(compare(runs([1.0, 1.1, 1.2]), runs([6.0, 6.1])))
    assert (row.verdict, row.noise) == ("unclear", "too few runs")
    assert row.ratio == pytest.approx(6.05 / 1.1)
    known = [verdict.enough(m, n) for m, n in ((3, 4), (4, 4), (3, 5), (1, 30))]
    assert known == [False, True, True, False]


def test_ratio_is_the_quotient_within_its_interval() -> None:
    base = [0.5, 0.6, 1.41, 8.0, 9.0]
    other = [0.6, 0.7, 8.74, 8.8, 9.1]
    row = only(compare(runs(base), runs(other)))
    assert (row.base, row.value) == (1.41, 8.74)
    assert row.ratio == pytest.approx(8.74 / 1.41)
    assert row.ratio_low <= row.ratio <= row.ratio_high
    assert row.verdict == "unclear"


def test_a_file_and_its_copy_are_one_run() -> None:
    one = latency(1.0)
    row = only(compare(table(one, one, latency(1.0, run="another")), runs([1.0])))
    assert row.runs_base == 2


positive = st.floats(0.01, 1e6)
whole = st.integers(1, 1_000_000).map(float)
samples = st.lists(whole, min_size=4, max_size=9, unique=True)


@given(samples, samples)
def test_p_value_and_interval_agree_with_scipy(base: list[float], other: list[float]) -> None:
    found = verdict.by_runs(np.array([base]), np.array([other]))
    p_value = found.p_value[0]
    outside = found.low[0] > 1 or found.high[0] < 1
    assert outside == (p_value <= 0.05)
    assert found.low[0] <= found.ratio[0] <= found.high[0]
    if not set(base) & set(other):
        exact = mannwhitneyu(base, other, method="exact").pvalue
        assert p_value == pytest.approx(exact)


@given(samples, samples, st.floats(0.01, 100))
def test_ratio_of_swapped_sides_is_the_inverse_in_any_unit(
    base: list[float], other: list[float], unit: float
) -> None:
    one = verdict.by_runs(np.array([base]), np.array([other]))
    scaled = verdict.by_runs(np.array([base]), unit * np.array([other]))
    swapped = verdict.by_runs(np.array([other]), np.array([base]))
    assert scaled.ratio == pytest.approx(unit * one.ratio)
    assert scaled.low == pytest.approx(unit * one.low)
    assert swapped.ratio == pytest.approx(1 / one.ratio)
    assert swapped.low == pytest.approx(1 / one.high)


def launches(random: np.random.Generator, count: int, points: int) -> pd.DataFrame:
    """Runs of one program at many sizes, each launch 3 % off, each median known to 0.5 %."""
    of_launch = random.lognormal(0, 0.03, (points, count))
    return table(
        *(
            sampled(value, 0.995 * value, 1.005 * value, bytes=size, run=f"run {number}")
            for size, values in enumerate(of_launch)
            for number, value in enumerate(values)
        )
    )


def share_of_alarms(points: pd.DataFrame, chance: str = "p_adjusted") -> float:
    """The part of the points that are slower or faster, by their p-values."""
    outside = (points["ratio_low"] > 1) | (points["ratio_high"] < 1)
    return float((outside & (points[chance] <= 0.05)).mean())


@pytest.mark.parametrize(
    ("base", "other", "stated", "rates"),
    [
        (1, 1, None, (0.0, 0.0)),
        (1, 1, 0.03, (0.02, 0.06)),
        (6, 6, None, (0.02, 0.06)),
    ],
)
def test_stated_launch_spread_of_3_percent_rarely_alarms(
    base: int, other: int, stated: float | None, rates: tuple[float, float]
) -> None:
    random = np.random.default_rng(19)
    sides = launches(random, base, 1500), launches(random, other, 1500)
    found = share_of_alarms(compare(*sides, launch_spread=stated), "p_value")
    assert rates[0] <= found <= rates[1]


def rank_tests(random: np.random.Generator, true: np.ndarray, shared: float) -> pd.DataFrame:
    """P-values of families of points with these ratios, six runs a side of 3 % noise.

    ``shared`` is the part of the noise's variance that all points of a launch have in common.
    """
    families, points = true.shape
    sides = []
    for _ in range(2):
        own = random.normal(0, 0.03, (families, points, 6))
        common = random.normal(0, 0.03, (families, 1, 6))
        sides.append(np.exp(np.sqrt(1 - shared) * own + np.sqrt(shared) * common))
    sides[1] *= true[:, :, None]
    p_values = pd.Series(verdict.by_runs(*(side.reshape(-1, 6) for side in sides)).p_value)
    family = pd.Series(np.repeat(np.arange(families), points))
    adjusted = verdict.adjusted(p_values, family)
    return pd.DataFrame({"family": family, "p_value": p_values, "p_adjusted": adjusted})


def any_alarm(found: pd.DataFrame, name: str) -> float:
    """The part of the families in which some point is beyond 5 %."""
    return float((found[name] <= 0.05).groupby(found["family"]).any().mean())


class TestManySizes:
    @pytest.mark.parametrize("shared", [0.0, 0.9])
    def test_unchanged_pair_alarms_in_at_most_5_percent(self, shared: float) -> None:
        found = rank_tests(np.random.default_rng(5), np.ones((500, 20)), shared)
        assert any_alarm(found, "p_value") > (0.5 if not shared else 0.1)
        assert any_alarm(found, "p_adjusted") <= 0.05

    def test_of_the_differences_found_at_most_one_of_twenty_is_none(self) -> None:
        true = np.ones((400, 20))
        true[:, :5] = 1.15
        found = rank_tests(np.random.default_rng(5), true, 0.0)
        told = (found["p_adjusted"] <= 0.05).to_numpy().reshape(true.shape)
        false = told[:, 5:].sum(axis=1) / np.maximum(1, told.sum(axis=1))
        assert false.mean() <= 0.05
        assert told[:, :5].mean() > 0.95, "what is slower is found"

    @pytest.mark.slow
    def test_one_slow_size_of_twenty_is_found_from_six_runs(self) -> None:
        values = {6: "slower", 5: "unclear"}
        for count, expected in values.items():
            rows = [
                latency(1 + 0.01 * number, size, run=f"run {number}")
                for number in range(count)
                for size in range(20)
            ]
            base, other = table(*rows), table(*rows)
            other.loc[other["bytes"] == 3, "latency_us"] *= 2
            points = compare(base, other)
            assert points["verdict"].tolist().count("slower") == (expected == "slower")
            assert points["verdict"][3] == expected
            assert points["slowdown_low"][3] > 1, "its own interval is as it was"
            assert compare(base, other)["p_value"][3] <= 0.05
            assert len(conclusion(points, 1.05).reasons) == (expected == "slower")


def same(count: int, points: int, spread: float, slower: int = 0, seed: int = 3) -> pd.DataFrame:
    """A comparison of benchmarks of two sizes; the first ``slower`` points are 1.2 times slower."""
    random = np.random.default_rng(seed)
    sides = []
    for factor in (1.0, 1.2):
        values = np.exp(random.normal(0, spread, (points, count)))
        values[:slower] *= factor
        sides.append(
            table(
                *(
                    latency(float(value), 8 << (point % 2), run=f"run {run}", root=str(point // 2))
                    for (point, run), value in np.ndenumerate(values)
                )
            )
        )
    return compare(*sides)


class TestManyPairs:
    def test_the_family_is_the_whole_table(self) -> None:
        points = same(5, 40, 0.001, slower=1)
        slow = points[points["slowdown"] > 1.1].iloc[0]
        assert slow["p_value"] * 40 == pytest.approx(slow["p_adjusted"])
        assert (slow["verdict"], slow["slowdown_low"] > 1.1) == ("within noise", True)
        several = same(5, 40, 0.001, slower=8)
        assert several["verdict"].tolist().count("slower") == 8

    @pytest.mark.slow
    def test_point_that_few_launches_cannot_tell_is_named_with_advice(self) -> None:
        points = same(5, 40, 0.001, slower=1)
        assert_names(conclusion(points, 1.05).sentence, "CANNOT TELL 1.20 chance")
        assert_names(summarizing.advice(points, 1.05)[0], "among 40 from 7 launches a side")
        found = conclusion(same(7, 40, 0.001, slower=1), 1.05)
        assert any("root 0, 8 B" in reason for reason in found.reasons)

    @pytest.mark.slow
    def test_advised_number_of_launches_passes(self) -> None:
        few = same(5, 40, 0.025)
        said = summarizing.advice(few, 1.05)[-1]
        assert conclusion(few, 1.05).exit_code == 7
        advised = int(said.partition("about ")[2].split()[0])
        assert conclusion(same(advised + 1, 40, 0.025), 1.05).exit_code == 0

    def test_launches_that_differ_too_much_need_another_limit(self) -> None:
        assert_names(summarizing.advice(same(5, 40, 0.1), 1.05)[-1], "not even 50 allow more")

    @pytest.mark.slow
    def test_mean_of_one_pair_fails_only_if_it_stands_the_correction(self) -> None:
        among_many = same(5, 80, 0.001, slower=2)
        assert summary(among_many)["slowdown_low"].iloc[0] > 1.05
        assert conclusion(among_many, 1.05).reasons == ()
        (of_mean, *_) = conclusion(same(5, 2, 0.001, slower=2), 1.05).reasons
        assert "on average" in of_mean

    @pytest.mark.parametrize(("count", "stated"), [(5, None), (10, None), (1, 0.05)])
    def test_bound_of_a_slowdown_is_too_low_in_at_most_5_percent(
        self, count: int, stated: float | None
    ) -> None:
        random = np.random.default_rng(5)
        values = np.exp(random.normal(0, np.log(1.05), (2, 1000, count)))
        base, other = (
            table(
                *(
                    latency(float(value), size, run=f"run {run}")
                    for (size, run), value in np.ndenumerate(side)
                )
            )
            for side in values
        )
        points = compare(base, other, launch_spread=stated)
        assert (points["slowdown_bound"] <= points["slowdown_high"]).all()
        assert 0.03 <= (points["slowdown_bound"] < 1).mean() <= 0.065

    @pytest.mark.long
    @pytest.mark.parametrize("noise", ["independent", "shared by half"])
    @pytest.mark.parametrize(("spread", "count"), [(0.02, 10), (0.10, 5), (0.10, 20)])
    def test_160_equal_points_fail_in_at_most_5_percent(
        self, noise: str, spread: float, count: int
    ) -> None:
        random = np.random.default_rng(7)
        words = compare_made(random, noise, spread, count, slower=0, trials=60, whole=0)
        assert (words == "FAIL").mean() <= 0.05
        if spread == 0.02:
            assert (words == "PASS").mean() >= 0.8

    @pytest.mark.long
    @pytest.mark.parametrize(("spread", "count"), [(0.01, 5), (0.02, 10), (0.10, 20)])
    def test_one_slower_point_of_160_hardly_ever_passes(self, spread: float, count: int) -> None:
        random = np.random.default_rng(7)
        words = compare_made(random, "independent", spread, count, slower=1, trials=60, whole=1)
        assert (words == "PASS").mean() <= 0.05


class TestEqual:
    @pytest.mark.slow
    def test_points_with_interval_within_the_margin_are_equal(self) -> None:
        sides = table(sampled(1.0, 0.999, 1.001)), table(sampled(1.001, 1.0, 1.002))
        point = only(compare(*sides, launch_spread=0.01))
        assert (point["verdict"], point["tolerance"]) == ("equal", 0.05)
        assert only(compare(*sides, launch_spread=0.02))["verdict"] == "within noise"
        for margin in (0.02, None):
            point = only(compare(*sides, launch_spread=0.01, tolerance=margin))
            assert point["verdict"] == "within noise"
        sure = table(sampled(1.0, 0.9999, 1.0001)), table(sampled(1.01, 1.0099, 1.0101))
        assert only(compare(*sure, launch_spread=0.0002))["verdict"] == "slower", "though little"

    def test_the_words_name_the_margin(self) -> None:
        sides = table(sampled(1.0, 0.999, 1.001)), table(sampled(1.001, 1.0, 1.002))
        points = compare(*sides, launch_spread=0.01)
        assert summarizing.sentences(points)["other"] == (
            "other: equal within 5 % (mean slowdown 1.001, 95 % interval 0.974 to 1.029); of 1 "
            "points 0 slower, 0 faster, 0 within noise, 1 equal within 5 %"
        )
        assert comparison_text(points, "base").count("  equal within 5 %") == 1
        assert summary(points)["equal"].tolist() == [1]


@pytest.mark.parametrize("name", ["launch_spread", "tolerance"])
@pytest.mark.parametrize("part", [0.0, -0.1, 1.0, 3.0])
def test_a_spread_and_a_margin_are_parts(name: str, part: float) -> None:
    options: dict[str, Any] = {name: part}
    with refuses(UsageError, f"{name} 0 to 1, 0.0"):
        compare(runs([1.0]), runs([1.0]), **options)


class TestTail:
    def side(self, *factors: float, **columns: Any) -> pd.DataFrame:
        return pd.concat(
            [
                table(
                    sampled(1.0, 0.99, 1.01, run=f"run {number}", iterations=1000)
                    | {"sample_p99_us": 5 * factor}
                    | columns
                )
                for number, factor in enumerate(factors)
            ]
        )

    @pytest.mark.slow
    def test_99th_percentiles_are_points_of_their_own(self) -> None:
        base = self.side(1.0, 1.01, 1.02, 1.03, 1.04)
        points = compare(base, self.side(2.0, 2.01, 2.02, 2.03, 2.04), tail=True)
        assert points[["pair", "statistic", "base", "verdict"]].to_numpy().tolist() == [
            [0, "median", 1.0, "equal"],
            [1, "p99", pytest.approx(5.1), "slower"],
        ]
        said = summarizing.sentences(points)
        assert list(said) == ["other", "other, 99th percentiles"]
        assert "1.980x slower" in said["other, 99th percentiles"]
        assert "other against base, 99th percentiles" in comparison_text(points, "base")
        (reason, *_) = conclusion(points, 1.05).reasons
        assert "latency, 2 ranks, 99th percentile, 8 B" in reason

    def test_a_bandwidths_99th_percentile_is_its_slow_one(self) -> None:
        rates = {"latency_us": np.nan, "bandwidth_MBps": 30.0, "benchmark": "bw"}
        point = compare(self.side(1.0, **rates), self.side(2.0, **rates), tail=True).iloc[1]
        assert (point["base"], point["value"]) == (pytest.approx(18.0), pytest.approx(9.0))
        assert point["slowdown"] == pytest.approx(2.0)

    def test_too_few_iterations_have_none(self) -> None:
        with refuses(UsageError, "99th percentile 1000 iterations"):
            compare(self.side(1.0, iterations=999), self.side(2.0), tail=True)


def test_interval_that_ends_at_1_has_p_value_5_percent() -> None:
    random = np.random.default_rng(2)
    base, other = launches(random, 3, 300), launches(random, 3, 300)
    other[["sample_p50_us", "median_low_us", "median_high_us"]] *= 1.05
    points = compare(base, other)
    assert set(points["noise"]) == {"spread"}
    beyond = (points["ratio_low"] > 1) | (points["ratio_high"] < 1)
    assert 0 < beyond.sum() < len(points)
    assert ((points["p_value"] <= 0.05) == beyond).all()


def test_a_real_change_is_still_found() -> None:
    random = np.random.default_rng(19)
    base, other = launches(random, 6, 300), launches(random, 6, 300)
    other[["sample_p50_us", "median_low_us", "median_high_us"]] *= 1.1
    assert share_of_alarms(compare(base, other)) > 0.9


# the verdict


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "values", "reasons", "words"),
    [
        (0.01, [1.10, 1.04] * 10, 11, "1.070x slower average 1.050x"),
        (0.1, [1.06] * 20, 0, ""),
        (0.01, [1.0, 1.0, 1.0, 1.2] + [1.0] * 16, 1, "3 B"),
        (0.2, [1.0, 1.0, 1.0, 1.2] + [1.0] * 16, 0, ""),
    ],
    ids=["all sizes", "all within noise", "one size", "one within noise"],
)
def test_sizes_fail_together_or_one_by_one_but_not_by_noise(
    noise: float, values: list[float], reasons: int, words: str
) -> None:
    base, after = (
        table(*(sampled(n, n - noise, n + noise, bytes=size) for size, n in enumerate(numbers)))
        for numbers in ([1.0] * 20, values)
    )
    found = conclusion(compare(base, after, launch_spread=0.001), 1.05).reasons
    assert len(found) == reasons
    assert not missing(words, found[:1])


@pytest.mark.slow
def test_point_without_an_interval_is_undecided() -> None:
    points = compare(runs([1.0]), runs([3.0]))
    assert conclusion(points, 1.05).reasons == ()
    said = conclusion(points, 1.05).sentence
    assert_names(said, "CANNOT TELL: 0 of 1 point 1.050x slower (other: latency, 2 ranks")
    assert "no interval" in said
    judged = compare(runs([1.0]), runs([3.0]), launch_spread=0.03)
    assert conclusion(judged, 1.05).undecided == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "spread", "decided"),
    [(1.0, 0.03, False), (1.0, 0.01, True), (2.26, 0.5, False), (1.06, 0.001, True)],
)
def test_interval_across_the_limit_is_undecided(value: float, spread: float, decided: bool) -> None:
    points = compare(runs([1.0]), runs([value]), launch_spread=spread)
    assert (conclusion(points, 1.05).undecided == ()) == decided
    assert bool(conclusion(points, 1.05).reasons) == (decided and value > 1.05)


@pytest.mark.slow
def test_a_verdict_claims_no_change_where_all_is_within_noise() -> None:
    sizes = (8, 16)
    base = table(*(sampled(1.0, 0.9, 1.1, bytes=size) for size in sizes))
    other = table(*(sampled(1.008 * size / 8, 0.9, 3.0, bytes=size) for size in sizes))

    def line(points: pd.DataFrame) -> str:
        return summarizing.sentences(points)["other"]

    def slowed(*factors: float) -> pd.DataFrame:
        names = ["sample_p50_us", "median_low_us", "median_high_us"]
        return base.assign(**base[names].mul(np.array(factors), axis=0))

    within = compare(base, slowed(1.008, 1.02), launch_spread=0.03)
    text = line(within)
    assert_names(text, "other: no difference 1.014, 95 % 0.861 to 1.195, 1.008 to 1.020")
    assert "of 2 points 0 slower, 0 faster, 2 within noise" in text
    assert line(compare(base, other)).startswith("other: unclear (mean slowdown 1.426, range over")
    changed = compare(base, slowed(1.008, 2.0), launch_spread=0.03)
    assert "1.420x slower on average (95 % interval 1.2" in line(changed)
    assert "range over sizes 1.008x slower to 2.000x slower)" in line(changed)


@pytest.mark.slow
def test_remarks_name_what_limits_verdicts() -> None:
    for values, words in (
        ([1.0], "one run a side repeat 5"),
        ([1.0, 1.01, 1.02], "repeated runs 1 % (standard deviation)"),
        ([1.0, 2.0, 3.0], "repeated runs busy several states"),
    ):
        found = summarizing.remarks(
            compare(runs(values), runs([2.0] if len(values) == 1 else values))
        )
        assert_names(found[-1], words)
        wide = [one for one in found if "1 point could hide a factor of 2" in one]
        assert len(wide) == (values[-1] == 3.0)


def test_points_that_are_missing_fail() -> None:
    base = table(latency(1.0, 8), latency(1.0, 16), latency(1.0, 1024))
    found = conclusion(compare(base, table(latency(1.0, 8))), 1.05)
    (reason,) = found.reasons
    assert reason.endswith("not measured at 16 B, 1 KiB")
    assert "0 of 3 points" in found.sentence
    assert (
        "2 not measured (other: latency, 2 ranks, 16 B; other: latency, 2 ranks, 1 KiB)"
        in found.sentence
    )
    assert conclusion(compare(table(latency(1.0, 8)), base), 1.05).reasons == ()


def test_a_summary_counts_every_point_once() -> None:
    base = table(sampled(1.0, 0.99, 1.01), latency(5.0, 16), latency(5.0, 32, run="x"))
    points = compare(base, table(latency(2.0, 8), latency(20.0, 16), latency(1.0, 64)))
    (row,) = summary(points).itertuples()
    assert row.slowdown == pytest.approx(np.sqrt(2 / 3 * 4))
    assert (row.minimum, row.maximum) == pytest.approx((2 / 3, 4.0))
    assert (row.unclear, row.slower, row.faster) == (2, 0, 0)
    counts = summary(points).iloc[0]
    assert (counts["only in base"], counts["only in other"]) == (1, 1)


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["old/latency.csv", "new/latency.csv"], ["old/latency.csv", "new/latency.csv"]),
        (["results/mpich.csv", "results/openmpi.csv"], ["mpich", "openmpi"]),
        (["a/x/run.csv", "a/y/run.csv", "a/z/run.csv"], ["x/run.csv", "y/run.csv", "z/run.csv"]),
        (["a.csv", "a.json"], ["a.csv", "a.json"]),
        (["a.csv", "a.csv"], ["a.csv (1)", "a.csv (2)"]),
    ],
)
def test_arguments_are_called_by_what_tells_them_apart(paths: list[str], names: list[str]) -> None:
    assert names_of(paths, None) == names


def test_names_must_be_as_many_and_different() -> None:
    assert names_of(["a", "b"], ["before", "after"]) == ["before", "after"]
    with refuses(UsageError, "2 different names"):
        names_of(["a", "b"], ["same", "same"])


# any tables


rows_of_tables = st.lists(
    st.fixed_dictionaries(
        {
            "run": st.sampled_from(["a", "b", "c"]),
            "benchmark": st.sampled_from(["latency", "bcast"]),
            "bytes": st.sampled_from([None, 1, 2]),
            "ranks": st.sampled_from([None, 2, 4]),
            "root": st.sampled_from([None, "0", "rotate"]),
            "binding": st.sampled_from([None, "native", "pickle"]),
            "mpi": st.sampled_from([None, "MPICH 5.0.2"]),
            "latency_us": positive,
        }
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.long
@examples(40)
@given(rows_of_tables, rows_of_tables)
def test_any_tables_are_compared_whole_or_refused_with_a_reason(
    base: list[dict[str, Any]], other: list[dict[str, Any]]
) -> None:
    first, second = table(*base), table(*other)
    try:
        points = compare(first, second)
    except UsageError as error:
        assert len(str(error)) > 20
        return
    both = points[points.ratio.notna()]
    assert len(both) > 0
    for row in both.itertuples():
        assert row.base in set(first[first.benchmark == row.benchmark].latency_us) or (
            row.runs_base > 1
        )
    for name, rows in (("base", first), ("value", second)):
        for benchmark, members in rows.groupby("benchmark"):
            there = points[points.benchmark == benchmark][name].dropna()
            assert there.min() >= members.latency_us.min()
            assert set(points[points.benchmark == benchmark][name].notna()) & {True}


def test_a_lower_bandwidth_is_slower() -> None:
    row = only(compare(table(bandwidth(100.0)), table(bandwidth(50.0))))
    assert row.unit == "MB/s"
    assert row.ratio == pytest.approx(0.5)
    assert row.slowdown == pytest.approx(2.0)


def test_a_stated_spread_is_enough_for_single_means() -> None:
    base, other = table(NATIVE | {"bytes": 8, "latency_us": 1.0}), table(latency(1.2))
    row = only(compare(base, other, launch_spread=0.03))
    half = 1.959964 * np.log(1.03) * np.sqrt(2) + np.log1p(row.rounding)
    assert (row.verdict, row.statistic) == ("slower", "mean")
    assert np.log([row.ratio_low, row.ratio_high]) == pytest.approx(
        [np.log(1.2) - half, np.log(1.2) + half]
    )


@pytest.mark.slow
@pytest.mark.parametrize(("base", "other"), [(5, 1), (3, 3), (10, 1)])
def test_spread_of_the_runs_rarely_alarms(base: int, other: int) -> None:
    random = np.random.default_rng(19)
    # a number of ranks for each size: its launches are then all that is known of the spread
    sides = [launches(random, count, 600) for count in (base, other)]
    apart = [side.assign(ranks=side["bytes"] + 1, bytes=8) for side in sides]
    assert 0.01 <= share_of_alarms(compare(*apart), "p_value") <= 0.06


@pytest.mark.slow
def test_interval_of_a_mean_with_shared_noise_covers_it() -> None:
    random = np.random.default_rng(1)
    for shared in (0.0, 1.0):
        sides = []
        for _ in range(2):
            own, common = random.normal(0, 0.03, (100, 6, 5)), random.normal(0, 0.03, (100, 6, 1))
            noise = np.exp(shared * common + (1 - shared) * own)
            rows = [
                latency(float(value), 8 << size, run=f"run {run}", root=str(pair))
                for (pair, run, size), value in np.ndenumerate(noise)
            ]
            sides.append(table(*rows))
        means = summary(compare(*sides))
        held = (means["slowdown_low"] <= 1) & (means["slowdown_high"] >= 1)
        assert held.mean() >= 0.9
        if shared:
            assert held.mean() < 1, "no wider than it need be"
