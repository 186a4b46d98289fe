"""Every benchmark that ``-c`` checks: what arrives is checked, in no more memory than told."""

from __future__ import annotations

import pytest

from omb_py.benchmarks import Benchmark, all_benchmarks
from omb_py.bindings import calls_of
from omb_py.buffers.numpy import NumpyBuffer, NumpyMemory
from omb_py.core.datatypes import Datatype
from omb_py.core.memory import Memory
from tests.helpers.plans import cases, plans

CHECKED = [
    benchmark for benchmark in all_benchmarks() if benchmark.sized and benchmark.start_up is None
]
ANSWER_ELEMENTS = 1
"""What the other side sends back after a window: its data is not what is measured."""


def stretch(memory: Memory) -> range:
    """The addresses of memory."""
    start = memory.array.__array_interface__["data"][0]
    return range(start, start + memory.nbytes)


@pytest.mark.parametrize("benchmark_", CHECKED, ids=lambda benchmark: benchmark.name)
def test_what_arrives_is_checked(benchmark_: Benchmark) -> None:
    of_ranks = plans(benchmark_)
    iterations = [iteration for plan in of_ranks for iteration in plan.iterations]
    checked = [stretch(output.memory) for one in iterations for output in one.outputs]
    assert any(checked)
    for rank, plan in enumerate(of_ranks):
        steps = [step for iteration in plan.iterations for step in iteration.everything]
        for call in [call for step in steps for call in calls_of(step)]:
            message = call.written(rank)
            nothing = "exscan" in call.function and rank == 0
            if message is None or message.elements == ANSWER_ELEMENTS or nothing:
                continue
            place = stretch(message.memory)
            assert any(place.start < end.stop and end.start < place.stop for end in checked)


class CountingBuffer(NumpyBuffer):
    """Memory of NumPy, whose bytes are counted."""

    allocated = 0

    def allocate(self, nbytes: int, datatype: Datatype) -> NumpyMemory:
        self.allocated += nbytes
        return super().allocate(nbytes, datatype)


@pytest.mark.parametrize("benchmark_", CHECKED, ids=lambda benchmark: benchmark.name)
def test_no_rank_allocates_more_than_the_estimate(benchmark_: Benchmark) -> None:
    buffer = CountingBuffer()
    for case in cases(benchmark_, buffer):
        buffer.allocated = 0
        plan = benchmark_.plan(case)
        estimate = benchmark_.memory(case.options, case.size, case.ranks)
        answers = plan.threads * ANSWER_ELEMENTS * case.datatype.itemsize
        assert 0 < buffer.allocated <= estimate + answers
