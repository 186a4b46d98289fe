"""Plans of benchmarks without MPI, and the functions that they call."""

from __future__ import annotations

from typing import Any

from omb_py.benchmarks import Benchmark, Case, Exposed, Plan, Ranks
from omb_py.bindings import calls_of
from omb_py.buffers import Buffer
from omb_py.buffers.numpy import BUFFER
from omb_py.core.calls import Call
from omb_py.core.datatypes import Datatype, find_types
from omb_py.core.memory import Memory
from omb_py.measure.sizes import message_sizes
from omb_py.options.parse import parse


class MemoryAlone:
    """Gives plans memory where MPI would give them windows and files."""

    def __init__(self, buffer: Buffer = BUFFER) -> None:
        self._buffer = buffer

    def graph(self, sources: tuple[int, ...], destinations: tuple[int, ...]) -> Any:
        return object()

    def duplicates(self, count: int) -> list[Any]:
        return [object() for _ in range(count)]

    def window(self, nbytes: int, datatype: Datatype) -> Exposed:
        return Exposed(object(), self._buffer.allocate(nbytes, datatype), (0,) * 8)

    def file(self, nbytes: int) -> tuple[Any, Memory]:
        return object(), BUFFER.allocate(nbytes, find_types(["mpi_char"])[0])

    def group(self, rank: int) -> Any:
        return object()

    def fork(self, processes: int) -> None:
        pass


def cases(benchmark: Benchmark, buffer: Buffer = BUFFER) -> list[Case]:
    """The case of every rank for 256 bytes, or the size that the benchmark has, under ``-c``."""
    words = ["--file", "data"] if "file" in benchmark.options else []
    words += ["--sizes", "256"] if benchmark.family == "file" else []
    words += ["-W", "4"] if "window" in benchmark.options else []
    options = parse(benchmark, ["-c", *words])
    (datatype,) = find_types(["mpi_int" if benchmark.reduces else "mpi_char"])
    ranks = 2 if benchmark.ranks is Ranks.TWO else 4
    size = 256 if benchmark.elements is None else benchmark.elements * datatype.itemsize
    assert benchmark.elements or size in message_sizes(benchmark, options, datatype, ranks).sizes
    nodes = tuple(rank // 2 for rank in range(ranks))
    resources = MemoryAlone(buffer)
    return [
        Case(rank, ranks, size, datatype, 4, buffer, options, resources, nodes)
        for rank in range(ranks)
    ]


def plans(benchmark: Benchmark) -> list[Plan]:
    """The plan of every rank, as `cases` has them."""
    return [benchmark.plan(case) for case in cases(benchmark)]


def functions(benchmark: Benchmark) -> set[str]:
    """The functions of MPI that a benchmark calls, on any rank."""
    iterations = [iteration for plan in plans(benchmark) for iteration in plan.iterations]
    steps = [step for iteration in iterations for step in iteration.everything]
    return {call.function for step in steps for call in calls_of(step)}


def prepared(benchmark: Benchmark) -> set[str]:
    """Those that binding persistent would prepare: timed ones with data, but for windows."""
    iterations = [iteration for plan in plans(benchmark) for iteration in plan.iterations]
    steps = [step for iteration in iterations for step in iteration.steps]
    return {step.function for step in steps if isinstance(step, Call) and step.operands}
