"""The making of communicators and processes, which native OMB does not measure."""

from __future__ import annotations

from functools import partial
from typing import Any

from omb_py.benchmarks import Benchmark, Case, CheckedIteration, Defaults, Plan
from omb_py.core.calls import Call, Slot
from omb_py.core.dataclass import replace

COLORS = 2
"""Number of communicators that a split makes."""


def making(function: str, case: Case) -> Plan:
    """Let every rank make a communicator; it is freed outside the measured time."""
    slot = Slot()
    values: tuple[Any, ...] = ()
    if function == "comm_split":
        values = (case.rank % COLORS, case.rank)
    elif function == "comm_spawn":
        values = (case.options.spawned,)
    elif function == "dist_graph_create_adjacent":
        values = (*case.options.topology.neighbors(case.rank, case.ranks), 0)
    make = Call(function, values=values, slot=slot)
    free = Call("comm_disconnect" if function == "comm_spawn" else "comm_free", slot=slot)
    return Plan((CheckedIteration((make,), after=(free,)),), payload=0)


DUP = Benchmark(
    name="comm_dup",
    title="Comm_dup Latency",
    family="communicator",
    summary="Time to duplicate the communicator of all ranks.",
    plan=partial(making, "comm_dup"),
    defaults=Defaults(1_000, 100, 1_000, 100, smallest=0, largest=0),
    options=frozenset({"full", "sync"}),
    sized=False,
    native=False,
)

BENCHMARKS = (
    DUP,
    replace(
        DUP,
        name="comm_split",
        title="Comm_split Latency",
        summary=f"Time to split the communicator of all ranks into {COLORS}.",
        plan=partial(making, "comm_split"),
    ),
    replace(
        DUP,
        name="graph_create",
        title="Dist_graph_create_adjacent Latency",
        summary="Time to make the communicator of a neighborhood.",
        plan=partial(making, "dist_graph_create_adjacent"),
        options=DUP.options | {"topology"},
    ),
    replace(
        DUP,
        name="spawn",
        title="Comm_spawn Latency",
        summary="Time to start processes from a running job.",
        plan=partial(making, "comm_spawn"),
        options=DUP.options | {"spawned"},
        defaults=Defaults(10, 1, 10, 1, smallest=0, largest=0),
    ),
)
