"""What an iteration has around its calls: a flush of caches, and copies of messages to the host."""

from __future__ import annotations

from pathlib import Path

from omb_py.benchmarks import CheckedIteration, Plan
from omb_py.buffers.numpy import BUFFER
from omb_py.core.calls import Call, Message, Step
from omb_py.core.dataclass import replace
from omb_py.core.datatypes import find_types
from omb_py.core.errors import UnsupportedError
from omb_py.measure.measurement import USUAL_CACHE, flushed, host_flush
from omb_py.measure.staging import Staging
from tests.helpers.kernel_files import write
from tests.helpers.refusals import refuses

CACHE = "devices/system/cpu/cpu0/cache"
PLAN = Plan((CheckedIteration((Call("reset"),), before=(Call("waitall"),)),), 0)


def test_twice_the_largest_cache_is_read(tmp_path: Path) -> None:
    caches = (("Data", "48K"), ("Unified", "2M"), ("Instruction", "4M"), ("Unified", ""))
    for index, (kind, size) in enumerate(caches):
        texts = {"type": kind, "size": size}
        write(tmp_path, {f"{CACHE}/index{index}/{name}": text for name, text in texts.items()})
    (step,) = host_flush(str(tmp_path))
    first, second, half = step.arguments
    assert (second - first, half) == (2 << 20, 2 << 20)
    assert len(step.kept) == 4 << 20
    assert set(step.kept) == {1}
    step.run()


def test_a_machine_that_names_no_cache_gets_the_usual_size(tmp_path: Path) -> None:
    (step,) = host_flush(str(tmp_path))
    assert len(step.kept) == 2 * USUAL_CACHE


def test_a_flush_and_a_barrier_come_before_each_iteration() -> None:
    flush = (Call("reset"),)
    (exchange,) = flushed(PLAN, flush).iterations
    assert exchange.before == (*flush, Call("barrier"), Call("waitall"))
    assert exchange.steps == PLAN.iterations[0].steps


def test_threads_are_refused() -> None:
    with refuses(UnsupportedError, "one thread"):
        flushed(replace(PLAN, threads=2), ())


def test_a_call_is_not_taken_for_one_that_is_gone() -> None:
    staging = Staging(rank=0)
    (datatype,) = find_types(("float32",))

    def staged(function: str) -> Step:
        message = Message(BUFFER.allocate(4, datatype), datatype, (1,))
        (step,) = staging.iteration(CheckedIteration((Call(function, (message,), peer=1),))).steps
        return step

    functions = ["send", "recv"] * 20
    found = [staged(function) for function in functions]
    assert [step.function for step in found if isinstance(step, Call)] == functions
