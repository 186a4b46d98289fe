"""Every benchmark that ``-c`` checks says what data should arrive, wherever a call writes some."""

from __future__ import annotations

from typing import Any

import pytest

from omb_py.benchmarks import Benchmark, Case, Exposed, Plan, Ranks, all_benchmarks
from omb_py.bindings import calls_of
from omb_py.buffers.numpy import BUFFER
from omb_py.core.datatypes import Datatype, find_types
from omb_py.core.memory import Memory
from omb_py.measure.sizes import message_sizes
from tests.options.test_command_line import parsed

CHECKED = [
    benchmark for benchmark in all_benchmarks() if benchmark.sized and benchmark.start_up is None
]
ANSWER_ELEMENTS = 1
"""What the other side sends back after a window: its data is not what is measured."""


class MemoryAlone:
    """Gives plans memory where MPI would give them windows and files."""

    def graph(self, sources: tuple[int, ...], destinations: tuple[int, ...]) -> Any:
        return object()

    def window(self, nbytes: int, datatype: Datatype) -> Exposed:
        return Exposed(object(), BUFFER.allocate(nbytes, datatype), (0,) * 8)

    def file(self, nbytes: int) -> tuple[Any, Memory]:
        return object(), BUFFER.allocate(nbytes, find_types(["mpi_char"])[0])

    def group(self, rank: int) -> Any:
        return object()

    def attach(self, messages: int, nbytes: int) -> None:
        pass

    def fork(self, processes: int) -> None:
        pass


def plans(benchmark: Benchmark) -> list[Plan]:
    """The plan of every rank for 256 bytes, or the size that the benchmark has, under ``-c``."""
    words = ["--file", "data"] if "file" in benchmark.options else []
    options = parsed(benchmark.name, "-c", *words)
    (datatype,) = find_types(["mpi_int" if benchmark.reduces else "mpi_char"])
    ranks = 2 if benchmark.ranks is Ranks.TWO else 4
    size = 256 if benchmark.elements is None else benchmark.elements * datatype.itemsize
    assert benchmark.elements or size in message_sizes(benchmark, options, datatype, ranks).sizes
    nodes = tuple(rank // 2 for rank in range(ranks))
    return [
        benchmark.plan(Case(rank, ranks, size, datatype, 4, BUFFER, options, MemoryAlone(), nodes))
        for rank in range(ranks)
    ]


def stretch(memory: Memory) -> range:
    """The addresses of memory."""
    start = memory.array.__array_interface__["data"][0]
    return range(start, start + memory.nbytes)


@pytest.mark.parametrize("benchmark_", CHECKED, ids=lambda benchmark: benchmark.name)
def test_what_arrives_is_checked(benchmark_: Benchmark) -> None:
    of_ranks = plans(benchmark_)
    exchanges = [exchange for plan in of_ranks for exchange in plan.exchanges]
    checked = [stretch(output.memory) for one in exchanges for output in one.outputs]
    assert any(checked)
    for rank, plan in enumerate(of_ranks):
        steps = [step for exchange in plan.exchanges for step in exchange.everything]
        for call in [call for step in steps for call in calls_of(step)]:
            message = call.written(rank)
            nothing = "exscan" in call.function and rank == 0
            if message is None or message.elements == ANSWER_ELEMENTS or nothing:
                continue
            place = stretch(message.memory)
            assert any(place.start < end.stop and end.start < place.stop for end in checked)
