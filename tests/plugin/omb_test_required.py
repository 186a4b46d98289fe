"""What `omb_py.run` has to be given so that a benchmark can run, for programs of `tests/mpi`."""

from __future__ import annotations

from typing import Any

from omb_py.benchmarks import Benchmark


def required(benchmark: Benchmark, size: int, file: str = "", node: int = 1) -> dict[str, Any]:
    """Return a size, if it has several, a file, and nodes of so many ranks."""
    more: dict[str, Any] = {}
    if benchmark.sized and not benchmark.elements:
        more["sizes"] = [size]
    if "nodes" in benchmark.options:
        more["node_map"] = str(node)
    if "file" in benchmark.options:
        more["file"] = file
    return more
