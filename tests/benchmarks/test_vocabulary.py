"""What a benchmark may say of itself is checked when it is loaded, not when it runs."""

import dataclasses

import pytest

from omb_py.benchmarks import FEATURES, all_benchmarks, find_benchmark
from omb_py.core.calls import Call
from omb_py.core.errors import BenchmarkError
from omb_py.options.table import TABLE


def test_every_feature_has_options_or_benchmarks() -> None:
    of_options = {word for rows in TABLE.values() for row in rows for word in row.who}
    of_options -= {"planned", "sized", "varied", "single"}
    of_benchmarks = {word for benchmark in all_benchmarks() for word in benchmark.options}
    assert of_options | of_benchmarks == FEATURES.keys()


def test_an_unknown_feature_is_refused_with_the_nearest() -> None:
    message = "benchmark latency has unknown option 'layouts': did you mean 'layout'?"
    with pytest.raises(BenchmarkError, match=message.replace("?", r"\?")):
        dataclasses.replace(find_benchmark("latency"), options=frozenset({"layouts"}))


@pytest.mark.parametrize("function", ["send", "irecv", "ssend_init", "put", "rget", "improbe"])
def test_a_call_without_its_peer_is_refused(function: str) -> None:
    with pytest.raises(BenchmarkError, match=f"{function} needs a peer"):
        Call(function)


@pytest.mark.parametrize("function", ["bcast", "ireduce", "gatherv_init"])
def test_a_call_without_its_root_is_refused(function: str) -> None:
    with pytest.raises(BenchmarkError, match=f"{function} needs a root"):
        Call(function)
