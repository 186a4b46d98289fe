"""From what was measured to a row: the columns that say what was chosen."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from omb_py.benchmarks import Benchmark, all_benchmarks, find_benchmark
from omb_py.core.dataclass import replace
from omb_py.core.job import Combined, Job
from omb_py.measure.rows import Outcome, make_row
from omb_py.options.parse import parse
from omb_py.results.columns import Row
from tests.helpers.plans import cases

SAMPLES = array("d", [1e-6, 1e-6, 4e-6])


def row_of(benchmark: Benchmark, words: str = "") -> Row:
    """The row of rank 0 with some options, from given samples."""
    case = cases(benchmark)[0]
    options = parse(benchmark, words.split()) if words else case.options
    case = replace(case, options=options, window=options.window)
    outcome = Outcome(Combined(SAMPLES, 1e-6, 3e-6), benchmark.plan(case), 1, passed=None)
    return make_row("r", benchmark, case, outcome)


@pytest.mark.parametrize(
    ("words", "column", "value"),
    [
        ("gather", "root", "0"),
        ("gather -k fixed:2", "root", "2"),
        ("reduce -k rotate", "root", "rotate"),
        ("ireduce -k fixed:1", "root", "1"),
        ("allreduce", "root", None),
        ("bcast", "root", None),
        ("bw -W 16", "window", 16),
        ("latency", "window", None),
        ("mbw_mr -p 1", "pairs", 1),
        ("mbw_mr", "pairs", 2),
        ("latency", "pairs", 1),
        ("allreduce", "pairs", None),
        ("put_latency -s lock", "window_sync", "lock"),
        ("put_latency -w create", "window_kind", "create"),
        ("allreduce --in-place", "in_place", True),
        ("allreduce", "in_place", False),
        ("latency", "in_place", None),
        ("iallreduce -t 3", "test_calls", 3),
        ("allreduce", "test_calls", None),
        ("latency --target-busy 20", "target_busy_us", 20.0),
        ("latency", "target_busy_us", None),
        ("latency --offset 64", "offset", 64),
        ("alltoallv --skew 2:1", "skew", "2:1"),
        ("alltoallv", "skew", None),
    ],
)
def test_column_has_the_choice_or_is_empty(words: str, column: str, value: object) -> None:
    name, *options = words.split()
    assert getattr(row_of(find_benchmark(name), " ".join(options)), column) == value


@pytest.mark.parametrize(
    "benchmark_",
    [one for one in all_benchmarks() if one.planned and "root" in one.options],
    ids=lambda benchmark: benchmark.name,
)
def test_root_of_every_rooted_benchmark_is_named(benchmark_: Benchmark) -> None:
    assert row_of(benchmark_).root == "0"
    assert row_of(benchmark_, "-k rotate").root == "rotate"


HALVED = (
    "latency multi_lat latency_persistent latency_mt latency_mp probe mprobe partitioned_latency"
).split()
"""Benchmarks that report half of an iteration."""

BANDWIDTHS = {
    1: ["partitioned_bw"],
    4: "bw bw_persistent put_bw get_bw rput_bw rget_bw".split(),
    8: (
        "bibw bibw_persistent put_bibw mbw_mr put_mr get_mr bw_fan_in bw_fan_out".split()
        # two pairs, two directions or two children, each with a window of 4
    ),
}
"""Messages that an iteration moves, by the rows of docs/definitions.md: window 4, 4 ranks."""


@pytest.mark.parametrize(
    "name", [one.name for one in all_benchmarks() if one.planned and one.sized]
)
def test_value_is_that_of_the_definition(name: str) -> None:
    row = row_of(find_benchmark(name))
    moved = next((count for count, names in BANDWIDTHS.items() if name in names), None)
    if moved is not None:
        assert row.bandwidth_MBps == pytest.approx(moved * 256 / 2)
        assert row.messages_per_s == pytest.approx(moved / 2e-6)
    elif row.bandwidth_MBps is None:
        assert row.latency_us == pytest.approx(1.0 if name in HALVED else 2.0)
    else:
        assert name in FURTHER_BANDWIDTHS


def test_median_is_told_from_the_mean() -> None:
    row = row_of(find_benchmark("allreduce"))
    assert (row.sample_p50_us, row.sample_mean_us) == pytest.approx((1.0, 2.0))


FURTHER_BANDWIDTHS = ("file_write", "file_read", "file_write_all", "file_read_all", "mbw_mr_mt")
"""Bandwidths whose data depends on more than a window."""


BLOCKS = (
    "allgather allgatherv alltoall alltoallv alltoallw gather gatherv scatter scatterv"
).split()
"""Collectives of which each rank has a block for each of the 4 ranks."""

FACTORS = dict.fromkeys(BLOCKS, 3 / 4) | {
    "allreduce": 2 * 3 / 4,
    **dict.fromkeys(("reduce_scatter", "reduce_scatter_block"), 3 / 4),
    **dict.fromkeys(("reduce", "bcast", "scan", "exscan"), 1),
}
"""Bus bandwidth over algorithm bandwidth: nccl-tests' PERFORMANCE.md."""


def test_every_collective_that_moves_data_has_a_bus_bandwidth() -> None:
    moving = (one for one in all_benchmarks() if one.family == "collective" and one.sized)
    assert {one.name for one in moving} == FACTORS.keys()


@pytest.mark.parametrize("name", FACTORS)
def test_bus_bandwidth_is_that_of_the_definition(name: str) -> None:
    row = row_of(find_benchmark(name))
    rate = (4 if name in BLOCKS else 1) * 256 / 2e-6 / 1e9
    assert row.algbw_GBps == pytest.approx(rate)
    assert row.busbw_GBps == pytest.approx(rate * FACTORS[name])


class Unequal:
    """Rank 0 of a job whose other ranks contributed known times."""

    rank = 0

    def __init__(self, others: list[list[float]]) -> None:
        self._others = others
        self.ranks = 1 + len(others)

    def total(self, value: int) -> int:
        return value * self.ranks

    def reduce(self, values: array[float], op: str) -> array[float]:
        known: dict[str, Callable[[Iterable[float]], float]] = {"sum": sum, "max": max, "min": min}
        over = known[op]
        return array("d", (over(each) for each in zip(values, *self._others, strict=True)))

    def _over_ranks(self, value: float, op: str) -> float:
        means = [value, *(sum(times) / len(times) for times in self._others)]
        return {"max": max, "min": min}[op](means)


def test_ranks_are_combined_to_their_mean_and_the_slowest_is_kept() -> None:
    job: Any = Unequal([[3e-6, 5e-6], [8e-6, 6e-6]])
    combined = Job.combine(job, array("d", [1e-6, 1e-6]), timed=True)
    assert combined is not None
    assert list(combined.samples) == pytest.approx([4e-6, 4e-6])
    assert list(combined.slowest or ()) == [8e-6, 6e-6]
    assert (combined.lowest, combined.highest) == pytest.approx((1e-6, 7e-6))
