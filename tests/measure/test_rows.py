"""From what was measured to a row: the columns that say what was chosen."""

from __future__ import annotations

from array import array

import pytest

from omb_py.benchmarks import Benchmark, all_benchmarks, find_benchmark
from omb_py.core.dataclass import replace
from omb_py.core.job import Combined
from omb_py.measure.rows import Outcome, make_row
from omb_py.options.parse import parse
from omb_py.results.columns import Row
from tests.helpers.plans import cases

SAMPLES = array("d", [1e-6, 2e-6, 3e-6])


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
