"""What a benchmark may say of itself is checked when it is loaded, not when it runs."""

import dataclasses
import re
from pathlib import Path

import pytest

from omb_py import benchmarks
from omb_py.benchmarks import FEATURES, all_benchmarks, find_benchmark
from omb_py.core.calls import Call
from omb_py.core.errors import BenchmarkError
from omb_py.options.table import TABLE
from tests.helpers.refusals import refuses


def test_every_feature_has_options_or_benchmarks() -> None:
    of_options = {word.strip("!") for rows in TABLE.values() for row in rows for word in row.who}
    of_options -= {"planned", "sized", "varied", "single", "pairwise"}
    of_benchmarks = {word for benchmark in all_benchmarks() for word in benchmark.options}
    assert of_options | of_benchmarks == FEATURES.keys()


def test_unknown_option_names_the_nearest() -> None:
    with refuses(BenchmarkError, "benchmark latency option 'layouts': 'layout'?"):
        dataclasses.replace(find_benchmark("latency"), options=frozenset({"layouts"}))


@pytest.mark.parametrize(
    ("function", "lacks"),
    [
        *((name, "peer") for name in ("send", "irecv", "ssend_init", "put", "rget", "improbe")),
        *((name, "root") for name in ("bcast", "ireduce", "gatherv_init")),
    ],
)
def test_call_without_its_peer_or_root_refused(function: str, lacks: str) -> None:
    with refuses(BenchmarkError, f"{function} {lacks}"):
        Call(function)


def test_every_benchmark_of_native_omb_names_the_line_of_its_source() -> None:
    folder = Path(next(iter(benchmarks.__path__)))
    text = " ".join(path.read_text() for path in folder.glob("*.py"))
    named = set(re.findall(r"osu_(\w+)\.c:\d+", text))
    assert named == {one.name for one in all_benchmarks() if one.native}
