"""Packing: what a layout costs if MPI gathers its elements, without any message."""

from __future__ import annotations

from functools import partial

from omb_py.benchmarks import Benchmark, Case, CheckedIteration, Content, Defaults, Plan
from omb_py.core.calls import Call
from omb_py.core.dataclass import replace
from omb_py.core.datatypes import CONTIGUOUS


def plan(function: str, case: Case) -> Plan:
    """Pack each rank's message into contiguous memory, or unpack one that was packed before.

    The other of the two follows or comes before, not timed, so that the data can be checked.
    """
    loose, again = case.message(), case.message()
    size = case.options.layout.transmitted(case.elements)
    packed = case.message((size,), layout=CONTIGUOUS)
    pack, unpack = Call("pack", (loose, packed)), Call("unpack", (packed, again))
    before, after = (Content.of(case.rank, message.memory) for message in (loose, again))
    iteration = CheckedIteration(inputs=(before,), outputs=(after,))
    if function == "pack":
        iteration = replace(iteration, steps=(pack,), before_check=(unpack,))
    else:
        iteration = replace(iteration, steps=(unpack,), before=(pack,))
    return Plan((iteration,), case.payload)


def benchmark(name: str, title: str) -> Benchmark:
    return Benchmark(
        name=name,
        title=f"{title} Latency",
        family="packing",
        summary=f"Time of one MPI_{title}, mean over the ranks.",
        plan=partial(plan, name),
        defaults=Defaults(1_000, 100, 100, 10, smallest=1, largest=4 << 20),
        options=frozenset({"layout", "full"}),
        paced=False,
        memory=lambda options, size, ranks: 3 * size,
        native=False,
    )


BENCHMARKS = (benchmark("pack", "Pack"), benchmark("unpack", "Unpack"))
