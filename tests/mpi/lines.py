"""Which command lines the benchmarks of the registry need to be tested with."""

from __future__ import annotations

from collections.abc import Iterable

from omb_py.benchmarks import Benchmark, all_benchmarks
from tests.helpers.battery import FILE, Line, line

MEASURED = [benchmark for benchmark in all_benchmarks() if benchmark.planned]
WITH_DATA = [benchmark for benchmark in MEASURED if benchmark.sized]
WITHOUT_DATA = [benchmark for benchmark in MEASURED if not benchmark.sized]
ONE_SIDED = [benchmark for benchmark in WITH_DATA if benchmark.family == "one-sided"]
TWO_SIDED = [benchmark for benchmark in WITH_DATA if benchmark.family != "one-sided"]
COLLECTIVES = [
    benchmark
    for benchmark in WITH_DATA
    if benchmark.collective and "neighborhood" not in benchmark.family
]

NEEDED = {"topology": (3, ""), "nodes": (4, "--node-map 2"), "file": (2, f"--file {FILE}")}
"""Ranks and options that benchmarks with an option cannot be without; for others 2 ranks do."""

QUICK = "-i 2 -x 1"
CHECKED = f"{QUICK} -u 1 -c"
SIZES = "--sizes 0,1,4,8,1000,4096,65536"
TWO_SIZES = "--sizes 8,4096"


def having(feature: str) -> list[Benchmark]:
    """The benchmarks with data that have an option."""
    return [benchmark for benchmark in WITH_DATA if feature in benchmark.options]


def named(names: str) -> list[Benchmark]:
    """The benchmarks with these names, in this order."""
    known = {benchmark.name: benchmark for benchmark in MEASURED}
    return [known[name] for name in names.split()]


def lines(
    benchmarks: Iterable[Benchmark], options: str, sizes: str = TWO_SIZES, ranks: int | None = None
) -> list[Line]:
    """A line for each benchmark, of those sizes where it has a choice of them."""
    found = []
    for benchmark in benchmarks:
        minimum, needed = next(
            (NEEDED[feature] for feature in NEEDED if feature in benchmark.options), (2, "")
        )
        chosen = sizes if benchmark.sized and benchmark.elements is None else ""
        words = f"{benchmark.name} {needed} {chosen} {options}"
        found.append(line(minimum if ranks is None else ranks, words))
    return found
