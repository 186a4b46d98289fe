"""The documentation's table of benchmarks is that of the benchmarks and of what was tried."""

from __future__ import annotations

from docs.generate import benchmarks, read_record
from omb_py.benchmarks import all_benchmarks, own_benchmarks


def test_every_benchmark_was_tried_on_both_libraries() -> None:
    tried = {(found.benchmark, found.mpi.split()[0]) for found in read_record()}
    names = {benchmark.name for benchmark in own_benchmarks()}
    assert tried >= {(name, library) for name in names for library in ("MPICH", "Open")}
    assert {name for name, _ in tried} <= {benchmark.name for benchmark in all_benchmarks()}


def test_a_reason_is_given_once_and_referred_to() -> None:
    text = benchmarks()
    reasons = [line for line in text.splitlines() if line.startswith("1. ")]
    assert len(reasons) == 1
    assert "(1)" in text
