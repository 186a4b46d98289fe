"""The memory that a benchmark says it needs, by which sizes are left out."""

from __future__ import annotations

import pytest

from omb_py.benchmarks import Benchmark
from omb_py.buffers.numpy import NumpyBuffer, NumpyMemory
from omb_py.core.datatypes import Datatype
from tests.benchmarks.test_outputs import ANSWER_ELEMENTS, CHECKED
from tests.helpers.plans import cases


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
