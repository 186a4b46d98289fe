"""Rows on a clock that the test sets: `docs/definitions.md` by hand, for every benchmark.

On binding `clock` (`tests/plugin`), nothing is sent: call number ``k`` of rank ``r`` takes
``k * (1 + r)`` times the cost of its function. One warm-up iteration (``k = 0``) takes no time, and
four timed ones take 1, 2, 3 and 4 times what is written here: mean 2.5, median 2.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from omb_py.benchmarks import Benchmark, Metric, Ranks, all_benchmarks, find_benchmark
from tests.conftest import MPIEXEC, run, succeeded

PROGRAM = Path(__file__).parent / "programs" / "on_a_set_clock.py"
PLANNED = [one for one in all_benchmarks() if one.planned]
BYTES, MEAN = 1024, 2.5
"""The size of a message, and the mean of the numbers of the timed iterations."""

COST = {
    "": 100,
    "send": 1,
    "recv": 2,
    "sendrecv": 3,
    "isend": 4,
    "irecv": 5,
    "waitall": 7,
    "wait": 300,
    "test": 11,
    "start": 13,
    "startall": 17,
    "pready": 19,
    "probe": 23,
    "mprobe": 29,
    "mrecv": 31,
    "put": 37,
    "get": 41,
    "rput": 43,
    "rget": 47,
    "win_flush": 53,
    "win_lock": 59,
    "win_unlock": 61,
    "win_post": 67,
    "win_start": 71,
    "win_complete": 73,
    "win_wait": 79,
    "file_sync": 83,
}
"""Microseconds of a function, the first time on rank 0; 100 if it is not listed."""

HALVED = {
    "latency": "send recv",
    "multi_lat": "send recv",
    "latency_mt": "send recv",
    "latency_mp": "send recv",
    "latency_persistent": "start wait start wait",
    "probe": "send probe recv",
    "mprobe": "send mprobe mrecv",
    "partitioned_latency": "start 8*pready wait start wait",
}
"""The calls of a round trip, half of which is the latency."""

LATENCIES = {
    "barrier": "barrier",
    "exchange": "2*irecv 2*isend waitall",
    "sendrecv": "sendrecv",
    "sendrecv_mt": "sendrecv",
    "put_latency": "put win_flush",
    "get_latency": "get win_flush",
    "acc_latency": "accumulate win_flush",
    "get_acc_latency": "win_lock get_accumulate win_unlock",
    "fop_latency": "fetch_and_op win_flush",
    "cas_latency": "compare_and_swap win_flush",
    "rput_latency": "rput wait win_flush",
    "rget_latency": "rget wait win_flush",
}
"""The calls of latencies that have neither one call nor a start and a wait."""

BANDWIDTHS = {
    "bw": (64, "64*isend waitall recv"),
    "bw_persistent": (64, "startall waitall recv"),
    "bibw": (2 * 64, "64*irecv 64*isend 2*waitall"),
    "bibw_persistent": (2 * 64, "2*startall 2*waitall"),
    "mbw_mr": (2 * 64, "64*isend waitall recv"),
    "mbw_mr_mt": (2 * 64, "64*isend waitall recv"),
    "bw_fan_in": (2 * 64, "64*isend waitall recv"),
    "bw_fan_out": (2 * 64, "64*isend waitall recv"),
    "put_bw": (64, "64*put win_flush"),
    "get_bw": (64, "64*get win_flush"),
    "rput_bw": (64, "64*rput waitall win_flush"),
    "rget_bw": (64, "64*rget waitall win_flush"),
    "put_bibw": (2 * 64, "win_post win_start 64*put win_complete win_wait"),
    "put_mr": (2 * 64, "64*put win_flush"),
    "get_mr": (2 * 64, "64*get win_flush"),
    "partitioned_bw": (1, "start 8*pready wait recv"),
    "file_write": (4, "barrier file_write_at file_sync"),
    "file_write_all": (4, "barrier file_write_at_all file_sync"),
    "file_read": (4, "barrier file_read_at"),
    "file_read_all": (4, "barrier file_read_at_all"),
}
"""The messages of an iteration over the whole job, and the calls on a rank whose clock counts."""

CLOCKS = {
    "multi_lat": (0, 1),
    "mbw_mr": (0, 1),
    "put_mr": (0, 1),
    "get_mr": (0, 1),
    "bw_fan_in": (2, 3),
    "bw_fan_out": (0, 1),
}
"""The ranks whose clocks count, of four; of two it is rank 0, and in collectives all four."""

BUS = {
    "allreduce": 2 * 3 / 4 * BYTES,
    "allgather": 3 / 4 * 4 * BYTES,
    "alltoall": 3 / 4 * 4 * BYTES,
    "reduce_scatter": 3 / 4 * BYTES,
    "bcast": BYTES,
    "reduce": BYTES,
    "gather": 3 / 4 * 4 * BYTES,
}
"""Bytes that pass the busiest link (nccl-tests), of four ranks."""


def ranks_of(benchmark: Benchmark) -> int:
    return 2 if benchmark.ranks is Ranks.TWO else 4


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The row of every benchmark, from one launch of two ranks and one of four."""
    found: dict[str, dict[str, Any]] = {}
    costs = {"OMB_TEST_COST": json.dumps(COST)}
    for ranks in (2, 4):
        folder = tmp_path_factory.mktemp("clock")
        names = [one.name for one in PLANNED if ranks_of(one) == ranks]
        words = [sys.executable, str(PROGRAM), str(folder / "rows"), *names]
        succeeded(run([MPIEXEC, "-n", str(ranks), *words], costs, folder, timeout=240))
        found |= json.loads((folder / "rows").read_text())
    return found


def microseconds(calls: str) -> float:
    """The time of calls on rank 0, the first time."""
    counted = [call.rpartition("*") for call in calls.split()]
    return float(sum(int(count or 1) * COST.get(name, COST[""]) for count, _, name in counted))


def time_of(name: str) -> float:
    """Half of a round trip, or an iteration, on rank 0, the first time."""
    if name in HALVED:
        return microseconds(HALVED[name]) / 2
    if name in BANDWIDTHS:
        return microseconds(BANDWIDTHS[name][1])
    if name in LATENCIES:
        return microseconds(LATENCIES[name])
    if name.endswith("_persistent"):
        return microseconds("start wait")
    return microseconds("call wait" if name.startswith("i") else "call")


@pytest.mark.parametrize("name", [one.name for one in PLANNED])
def test_row_follows_from_the_definition(name: str, rows: dict[str, dict[str, Any]]) -> None:
    benchmark, row, one = find_benchmark(name), rows[name], time_of(name)
    timed = CLOCKS.get(name, (0,) if ranks_of(benchmark) == 2 else range(4))
    if benchmark.family == "file":
        timed = (3,)  # the slowest
    speeds = [1 + rank for rank in timed]
    one *= sum(speeds) / len(speeds)
    expected = {
        "sample_mean_us": MEAN * one,
        "sample_min_us": one,
        "sample_p50_us": 2 * one,
        "sample_p99_us": 4 * one,
        "sample_max_us": 4 * one,
    }
    if benchmark.metric is Metric.LATENCY:
        each = MEAN * time_of(name)
        expected |= {"latency_us": MEAN * one}
        expected |= {"latency_min_us": each * min(speeds), "latency_max_us": each * max(speeds)}
        tails = [2 * one, 4 * one]
    else:
        messages, _ = BANDWIDTHS[name]
        expected["messages_per_s"] = messages / (MEAN * one) * 1e6
        expected["bandwidth_MBps"] = messages * BYTES / (MEAN * one)
        tails = [messages * BYTES / (3 * one), messages * BYTES / one]
        if benchmark.family == "file":
            expected |= {"latency_min_us": MEAN * time_of(name), "latency_max_us": MEAN * one}
    if len(speeds) > 1:
        expected["slowest_mean_us"] = MEAN * time_of(name) * max(speeds)
    if name in BUS:
        expected["busbw_GBps"] = BUS[name] / (MEAN * one) / 1e3
    if "overlap" in benchmark.options:
        expected |= OVERLAP
        tails = [OVERLAP["overall_p50_us"], 2.5 * 2100]
    assert {column: row[column] for column in expected} == pytest.approx(expected)
    values = [float(text.partition("=")[2]) for text in row["percentiles"].split()]
    assert values == pytest.approx(tails)


OVERLAP = {
    # in units of rank 0, and 2.5 is the mean of 1, 2, 3 and 4: of the iterations, and of the ranks
    "compute_us": 2.5 * 2.5 * 400,
    # 100 k, then 1000, then 300 k less half of the 1000, but 7 k at least: 1107, 1300, 1700, 2100
    "overall_us": 2.5 * 1551.75,
    "overall_p50_us": 2.5 * 1300,
    "start_us": 2.5 * 2.5 * 100,
    "test_us": 0,
    "wait_us": 2.5 * (7 + 100 + 400 + 700) / 4,
    # of the median communication, 800, are hidden 800 + 1000 - 1300
    "overlap_percent": 62.5,
}
