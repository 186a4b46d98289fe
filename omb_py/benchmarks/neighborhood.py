"""Neighbourhood collectives: each rank exchanges blocks with its neighbours in a graph."""

from __future__ import annotations

from functools import partial

from omb_py.benchmarks import Benchmark, Case, CheckedIteration, Content, Defaults, Plan
from omb_py.benchmarks.variants import nonblocking_form, persistent_form
from omb_py.core.calls import Call, Form
from omb_py.core.options import Options

FORMS: dict[str, Form] = {
    "allgather": "",
    "allgatherv": "v",
    "alltoall": "",
    "alltoallv": "v",
    "alltoallw": "w",
}
"""The form of the call, by the function's name after ``neighbor_``."""


def is_personalized(function: str) -> bool:
    """Return whether each neighbour gets a block of its own."""
    return function.startswith("alltoall")


def plan(function: str, case: Case) -> Plan:
    """Return a plan with blocks from every source to this rank, and to every destination."""
    form, personalized = FORMS[function], is_personalized(function)
    topology = case.options.topology
    sources, destinations = topology.neighbors(case.rank, case.ranks)
    graph = case.resources.graph(sources, destinations)
    received = case.message((case.elements,) * len(sources), form)
    if personalized:
        sent = case.message((case.elements,) * len(destinations), form)
        inputs = tuple(
            Content.of(case.rank, block, index) for index, block in enumerate(sent.blocks())
        )
    else:
        sent = case.message()
        inputs = (Content.of(case.rank, sent.memory),)
    outputs = []
    for source, block in zip(sources, received.blocks(), strict=True):
        place = 0
        if personalized:
            place = topology.neighbors(source, case.ranks)[1].index(case.rank)
        outputs.append(Content.of(source, block, place))
    call = Call(f"neighbor_{function}", (sent, received), on=graph)
    iteration = CheckedIteration((call,), inputs=inputs, outputs=tuple(outputs))
    return Plan((iteration,), case.payload)


def memory(function: str, options: Options, size: int, ranks: int) -> int:
    """Return the bytes that one process needs, whose neighbours are as many as the first rank's."""
    sources, destinations = options.topology.neighbors(0, ranks)
    return size * (len(sources) + (len(destinations) if is_personalized(function) else 1))


def benchmark(function: str) -> Benchmark:
    """Return the benchmark of a blocking function."""
    return Benchmark(
        name=f"neighbor_{function}",
        title=f"Neighborhood {function.capitalize()} Latency",
        family="neighborhood collective",
        collective=True,
        summary=f"Time of one MPI_Neighbor_{function}, mean over the ranks.",
        plan=partial(plan, function),
        defaults=Defaults(1_000, 100, 100, 10, smallest=1, largest=1 << 20),
        options=frozenset({"full", "sync", "layout", "topology", "split"}),
        memory=partial(memory, function),
    )


# The timed part of native OMB's programs: osu_neighbor_allgather.c:165,
# osu_neighbor_allgatherv.c:183, osu_neighbor_alltoall.c:164, osu_neighbor_alltoallv.c:195,
# osu_neighbor_alltoallw.c:208. The pass without computing, and that with it:
# osu_ineighbor_allgather.c:177, 229, osu_ineighbor_allgatherv.c:193, 251,
# osu_ineighbor_alltoall.c:176, 228, osu_ineighbor_alltoallv.c:204, 256,
# osu_ineighbor_alltoallw.c:219, 270.
PLAIN = tuple(map(benchmark, FORMS))
BENCHMARKS = (
    *PLAIN,
    *map(nonblocking_form, PLAIN),
    *(persistent_form(plain, native=False) for plain in PLAIN),
)
