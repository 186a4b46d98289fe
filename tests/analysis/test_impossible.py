"""Numbers that cannot be are found, and no number of a machine is accused."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from omb_py.analysis.anomalies import anomalies
from omb_py.analysis.impossible import impossible, judged
from omb_py.analysis.table import load, of_rows
from omb_py.analysis.values import value_column
from omb_py.benchmarks import Metric, all_benchmarks
from omb_py.benchmarks.collective import TABLE
from omb_py.core.errors import OmbError
from tests import ROOT
from tests.conftest import Run, succeeded

KIB, MIB = 1 << 10, 1 << 20


def line(points: dict[int, float], **columns: Any) -> list[dict[str, Any]]:
    """Rows of one latency line: microseconds by message size."""
    same = {"run": "r", "benchmark": "latency", "ranks": 2, "buffer": "numpy", "binding": "buffer"}
    return [same | columns | {"bytes": size, "latency_us": t} for size, t in points.items()]


def found(rows: list[dict[str, Any]]) -> list[tuple[Any, str]]:
    """Sizes and sentences of what cannot be among rows."""
    values = value_column(of_rows(rows, {"r": {}}).rows)
    return [(values.loc[one.row, "bytes"], one.sentence) for one in impossible(values)]


GH200 = {1: 3.37, MIB: 2.84, 2 * MIB: 2.85, 4 * MIB: 8.94}
"""Published: osu_latency D D between two GPUs whose links carry 450 GB/s in one direction."""


@pytest.mark.parametrize(
    ("rows", "size", "word"),
    [
        (
            line(GH200, buffer="cupy", placement="D D"),
            2 * MIB,
            "2.85 µs is the time of 1 MiB, too, and would be 736 GB/s; the bytes beyond it have "
            "344 GB/s",
        ),
        (
            line({MIB: 2.84, 2 * MIB: 2.85, 4 * MIB: 7.9}, placement="D"),
            2 * MIB,
            "2.85 µs is the time of 1 MiB, too, and would be 736 GB/s; the bytes beyond it have "
            "415 GB/s",
        ),
        (line({MIB: 5.0}), MIB, "one core copies at most 200 GB/s"),
        (line({MIB: 1.0}, placement="D"), MIB, "device carry at most 900 GB/s"),
        (line({8: 3.0}, latency_min_us=1.0, latency_max_us=2.0), 8, "above the slowest rank's"),
        (line({8: 3.0}, latency_min_us=4.0, latency_max_us=5.0), 8, "below the fastest rank's"),
        (line({8: 300.0, KIB: 2.0}), 8, "150 times the time of a larger message"),
        (
            line({MIB: 100.0}, benchmark="alltoall", ranks=256, hosts=2),
            MIB,
            "links of a node carry at most 800 GB/s",
        ),
        (
            line({MIB: 2.5, 4 * MIB: 10.0, 16 * MIB: 70.0}, placement="D", benchmark="latency_mt"),
            MIB,
            "loses a third",
        ),
    ],
    ids="flat alone core device above below slow network falling".split(),
)
def test_impossible_number_is_found_once(rows: list[dict[str, Any]], size: int, word: str) -> None:
    ((at, sentence),) = found(rows)
    assert at == size
    assert word in sentence


SAMPLES = {"sample_min_us": 0.9, "sample_p50_us": 1.0, "sample_p99_us": 1.1, "sample_max_us": 1.2}


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        ({**SAMPLES, "sample_p50_us": 5.0}, "sample_p50_us 5.00 µs is above sample_p99_us 1.10 µs"),
        ({**SAMPLES, "sample_p99_us": 0.8}, "sample_p50_us 1.00 µs is above sample_p99_us 800 ns"),
        ({**SAMPLES, "sample_mean_us": 3.0}, "sample_mean_us 3.00 µs is above sample_max_us"),
        (
            {"sample_p50_us": 1.0, "median_low_us": 1.5, "median_high_us": 1.6},
            "median_low_us 1.50 µs is above sample_p50_us 1.00 µs",
        ),
        ({"overlap_percent": 150.0}, "overlap of 150 % is not between 0 and 100 %"),
        ({"overlap_percent": -3.0}, "overlap of -3 %"),
        ({"algbw_GBps": 80.0}, "80.0 GB/s of algorithm bandwidth in 1.00 µs would be 80000 bytes"),
        (
            {"algbw_GBps": 0.008, "busbw_GBps": 8.0},
            "a bus bandwidth of 8.00 GB/s does not follow from 0.00800 GB/s on 2 ranks",
        ),
    ],
)
def test_columns_of_a_row_that_disagree_are_found(columns: dict[str, Any], word: str) -> None:
    benchmark = "iallreduce" if "overlap_percent" in columns else "allreduce"
    ((at, sentence),) = found(line({8: 1.0}, benchmark=benchmark, **columns))
    assert at == 8
    assert word in sentence


ALL = [row.benchmark().name for row in TABLE if row.name != "barrier"]
FORMS = [form.format(name) for name in ALL for form in ("{}", "i{}", "{}_persistent", "imb_{}")]


LATENCIES = [*FORMS, "sendrecv", "exchange", "multi_lat", "rget_latency"]
BANDWIDTHS = "bw bibw put_bw get_bw put_bibw mbw_mr put_mr bw_persistent bw_fan_in new_bw".split()


def benchmarks_beyond_a_core(rows: list[dict[str, Any]]) -> list[str]:
    """The benchmark of each row that is faster than a core copies, sorted."""
    values = value_column(of_rows(rows, {"r": {}}).rows)
    named = impossible(values)
    assert all("one core copies at most 200 GB/s" in one.sentence for one in named)
    return sorted(str(values.loc[one.row, "benchmark"]) for one in named)


def test_time_of_each_benchmark_has_the_limit_of_a_core() -> None:
    def of(microseconds: float) -> list[dict[str, Any]]:
        one, *_ = line({4 * MIB: microseconds}, ranks=4, hosts=1)
        return [one | {"benchmark": name} for name in LATENCIES]

    assert benchmarks_beyond_a_core(of(5.0)) == sorted(LATENCIES)
    assert benchmarks_beyond_a_core(of(500.0)) == []


def test_bandwidth_of_each_benchmark_has_the_limit_of_a_core() -> None:
    def of(rate: float) -> list[dict[str, Any]]:
        same = {"run": "r", "ranks": 2, "bytes": 4 * MIB, "bandwidth_MBps": rate}
        return [same | {"benchmark": name} for name in BANDWIDTHS]

    assert benchmarks_beyond_a_core(of(1e6)) == sorted(BANDWIDTHS)
    assert benchmarks_beyond_a_core(of(150e3)) == []


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        (line({8: 0.01}), "10.0 ns: an exchange of two ranks takes 20.0 ns at least"),
        (line({8: 0.01}, benchmark="allreduce"), "an exchange of two ranks"),
        (line({8: 0.001}, benchmark="get_latency"), "the call for a message takes 2.00 ns"),
        (
            [{"run": "r", "benchmark": "bw", "ranks": 2, "bytes": 1, "bandwidth_MBps": 80e3}],
            "0.0125 ns a message: the call for a message takes 2.00 ns at least",
        ),
        (
            line({64 * MIB: 600.0}, benchmark="allreduce", ranks=192, hosts=1),
            "112 GB/s in one direction, of each rank: the memory of a node copies, for each of "
            "192 at most 55.2 GB/s",
        ),
        (line({32 * KIB: 0.05}), "655 GB/s in one direction: one core copies at most 400 GB/s"),
    ],
    ids="latency allreduce get bw memory first-level".split(),
)
def test_time_below_the_floor_is_found(rows: list[dict[str, Any]], word: str) -> None:
    ((_, sentence),) = found(rows)
    assert word in sentence


@pytest.mark.parametrize(
    "rows",
    [
        line({4 * MIB: 0.06}, benchmark="bcast", ranks=1, placement="D"),
        line({8: 0.01}, benchmark="allreduce", ranks=1),
        line({0: 0.01}, benchmark="allgather"),
        line({4: 0.01}, benchmark="reduce_scatter"),  # fewer elements than ranks
        line({MIB: 0.01}, benchmark="neighbor_alltoall", topology="graph:no-edges.txt"),
        line({MIB: 40.0}, benchmark="gather", ranks=64),  # all but the root leave early
        line({256 * MIB: 980.0}, benchmark="allreduce", ranks=8, placement="D"),  # NVLS
        line({MIB: 0.01}, benchmark="alltoallv", skew="sparse"),
        line({MIB: 0.01}, benchmark="imb_multi_unknown"),
        line({8 << 30: 1.1e7}, benchmark="alltoall", placement="D", algbw_GBps=1.62),
    ],
    ids="one-rank alone no-bytes no-part no-edge gather nvls skew unknown two-digits".split(),
)
def test_time_that_moves_less_is_no_finding(rows: list[dict[str, Any]]) -> None:
    assert found(rows) == []


def test_only_rows_that_a_rule_can_accuse_are_counted() -> None:
    rows = [
        *line({8: 1.0}),
        *line({8: 1.0}, benchmark="imb_multi_unknown"),
        *line({0: 1.0}, benchmark="allgather"),
        *line({8: 1.0}, benchmark="bcast", ranks=1),
    ]
    assert judged(value_column(of_rows(rows, {"r": {}}).rows)) == 1


SIZES = [1 << power for power in range(23)]
WRITTEN: dict[str, tuple[str, list[tuple[float, ...]]]] = {
    "latency-1000GBps": ("latency", [(s, max(0.5, s / 1e6)) for s in SIZES]),
    "bw-20TBps": ("bw", [(s, s * 5.0) for s in SIZES]),
    "bw-80GBps-at-1B": ("bw", [(s, 80_000.0) for s in SIZES]),
    "allreduce-4MiB-0.4us": ("allreduce", [(s, 0.4) for s in SIZES[2:]]),
    "put_bw-20TBps": ("put_bw", [(s, s * 5.0) for s in SIZES]),
    "get_latency-4MiB-0.4us": ("get_latency", [(s, 0.4) for s in SIZES]),
    "latency-0.01us": ("latency", [(s, 0.01) for s in SIZES[:13]]),
    "alltoall-1us": ("alltoall", [(s, 1.0) for s in SIZES]),
    "mbw_mr-5Gmsg": ("mbw_mr", [(s, 10.0, 5e9) for s in SIZES[:5]]),
    "bibw-4TBps": ("bibw", [(s, s * 1.0) for s in SIZES]),
    "iallreduce-150%": ("iallreduce", [(4, 10.0, 5.0, 5.0, 150.0)]),
    "reduce_scatter-1us": ("reduce_scatter", [(s, 1.0) for s in SIZES[3:]]),
}
"""Tables that native OMB cannot have printed: a program and its rows."""

HEADINGS = {
    "mbw_mr": "MB/s        Messages/s",
    "iallreduce": "Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)",
}


def written(name: str) -> str:
    """Native OMB's text of a table that cannot be."""
    program, rows = WRITTEN[name]
    benchmark = {one.name: one for one in all_benchmarks()}[program]
    usual = "Bandwidth (MB/s)" if benchmark.metric is Metric.BANDWIDTH else "Avg Latency(us)"
    title = benchmark.title if benchmark.title.startswith("_") else f" {benchmark.title}"
    lines = [f"$ mpiexec -n {64 if program == 'alltoall' else 2} osu_{program}"]
    lines += [f"# OSU MPI{title} Test v7.4", f"# Size       {HEADINGS.get(program, usual)}"]
    lines += [
        "".join(f"{cell:<14}" if at else f"{cell:<10}" for at, cell in enumerate(cells))
        for cells in [(row[0], *(f"{one:.2f}" for one in row[1:])) for row in rows]
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", WRITTEN)
def test_table_that_cannot_be_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "it.txt").write_text(written(name))
    results = load(tmp_path / "it.txt")
    values = value_column(results.rows)
    assert set(values["benchmark"]) == {WRITTEN[name][0]}
    kinds = {one.kind for one in anomalies(values, results.runs, results.rows)}
    assert "impossible" in kinds


def test_rounding_of_two_decimals_is_no_contradiction() -> None:
    assert found(line({8: 0.24}, latency_min_us=0.23, latency_max_us=0.23)) == []


def test_racks_that_share_nvlink_exceed_network_cards() -> None:
    published = line(
        {512 * MIB: 18_000.0}, benchmark="alltoall", ranks=16, hosts=4, placement="D", buffer="cuda"
    )
    assert found(published) == []


def sane(seed: int) -> list[dict[str, Any]]:
    """A line of a machine: start, rate, a cache and a protocol switch, noise, interval, ranks."""
    draw = random.Random(seed)
    device = draw.random() < 0.5
    start, rate = draw.uniform(0.2, 30), draw.uniform(1, 450 if device else 60) * 1e3
    cached = 1.0 if device else draw.uniform(1, 3)
    switch, cost = draw.choice([KIB, 8 * KIB, 64 * KIB]), draw.uniform(0.5, 4)
    rows = []
    for size in (1 << power for power in range(27)):
        faster = cached if size < MIB else 1.0
        t = start * (cost if size >= switch else 1) + size / (rate * faster)
        t *= draw.lognormvariate(0, 0.05)
        rows += line({size: t}, latency_min_us=t * 0.9, latency_max_us=t * 1.1)
    return [row | {"placement": "D" if device else "H", "variant": f"{seed}"} for row in rows]


def test_sane_lines_have_no_impossible_number() -> None:
    assert found([row for seed in range(100) for row in sane(seed)]) == []


PUBLISHED = "# OSU MPI-CUDA Latency Test v7.5\n# Size  Avg Latency(us)\n" + "".join(
    f"{size}  {time}\n" for size, time in GH200.items()
)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["show", "compare"])
def test_command_notes_an_impossible_number(in_process: Run, tmp_path: Path, command: str) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(PUBLISHED)
    done = succeeded(in_process(command, *(["a.txt"] if command == "show" else ["a.txt", "b.txt"])))
    assert done.err.count("impossible: latency") == (1 if command == "show" else 2)


@pytest.mark.long
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_programs_outputs_have_no_impossible_number() -> None:
    looked = 0
    for path in sorted((ROOT / "tests" / "data").glob("*/*")):
        with suppress(OmbError):  # which refuses what holds no results
            values = value_column(load(path).rows)
            looked += judged(values)
            assert [one for one in impossible(values) if not one.possible] == [], path
    assert looked > 1000


@pytest.mark.slow
def test_committed_results_have_no_impossible_number() -> None:
    values = value_column(load(ROOT / "results").rows)
    assert len(values) > 1000
    assert impossible(values) == []
