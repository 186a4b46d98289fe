"""One-sided plans: native OMB's locks, and a place of its own for each access of a window."""

from __future__ import annotations

import pytest

from omb_py.benchmarks import Case, CheckedIteration, find_benchmark
from omb_py.buffers.numpy import BUFFER
from omb_py.core.calls import Call
from omb_py.core.datatypes import find_types
from omb_py.options.parse import parse
from tests.helpers.plans import MemoryAlone


def exchange(name: str, *words: str, rank: int = 0) -> CheckedIteration:
    """One iteration of a rank of two, with messages of 256 bytes or one element."""
    benchmark = find_benchmark(name)
    options = parse(benchmark, list(words))
    (datatype,) = find_types([benchmark.usual_type])
    size = benchmark.elements * datatype.itemsize if benchmark.elements else 256
    case = Case(rank, 2, size, datatype, options.window, BUFFER, options, MemoryAlone())
    (found,) = benchmark.plan(case).iterations
    return found


@pytest.mark.parametrize(
    ("name", "sync", "kind"),
    [
        ("put_latency", "lock", "LOCK_SHARED"),
        ("acc_latency", "lock", "LOCK_SHARED"),
        ("get_acc_latency", "lock", "LOCK_EXCLUSIVE"),
        ("get_acc_latency", "flush", "LOCK_EXCLUSIVE"),
        ("get_acc_latency", "flush_local", "LOCK_EXCLUSIVE"),
        ("fop_latency", "lock", "LOCK_EXCLUSIVE"),
        ("fop_latency", "flush", "LOCK_SHARED"),
        ("cas_latency", "lock", "LOCK_EXCLUSIVE"),
        ("cas_latency", "flush_local", "LOCK_SHARED"),
    ],
)
def test_lock_is_that_of_native_omb(name: str, sync: str, kind: str) -> None:
    steps = exchange(name, "-s", sync).everything
    locks = [step for step in steps if isinstance(step, Call) and step.function == "win_lock"]
    assert [lock.values[0] for lock in locks] == [kind]


@pytest.mark.parametrize("checked", [(), ("-c",)])
@pytest.mark.parametrize("name", ["put_bw", "get_bw", "put_bibw", "rput_bw", "rget_bw", "put_mr"])
def test_window_of_accesses_has_places_back_to_back(name: str, checked: tuple[str, ...]) -> None:
    steps = exchange(name, "-W", "4", *checked).steps
    calls = [step for step in steps if isinstance(step, Call) and step.messages]
    begins = [call.messages[0].memory.array.ctypes.data for call in calls]
    assert [begin - begins[0] for begin in begins] == [0, 256, 512, 768]
    assert [call.at for call in calls] == [0, 256, 512, 768]
