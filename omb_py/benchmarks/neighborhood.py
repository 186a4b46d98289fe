"""Neighbourhood collectives: each rank exchanges blocks with its neighbours in a graph."""

from __future__ import annotations

from omb_py.benchmarks import Benchmark, Case, CheckedIteration, Content, Defaults, Plan
from omb_py.benchmarks.variants import nonblocking_form, persistent_form
from omb_py.core.calls import Call, Form
from omb_py.core.dataclass import dataclass
from omb_py.core.options import Options


@dataclass(frozen=True)
class Neighborhood:
    """A row: whether each neighbour gets a block of its own, and the form of the call."""

    name: str
    title: str
    personalized: bool
    form: Form = ""


TABLE = (
    Neighborhood("neighbor_allgather", "Allgather", personalized=False),
    Neighborhood("neighbor_allgatherv", "Allgatherv", personalized=False, form="v"),
    Neighborhood("neighbor_alltoall", "Alltoall", personalized=True),
    Neighborhood("neighbor_alltoallv", "Alltoallv", personalized=True, form="v"),
    Neighborhood("neighbor_alltoallw", "Alltoallw", personalized=True, form="w"),
)


def plan(row: Neighborhood, case: Case) -> Plan:
    """Return a plan with blocks from every source to this rank, and to every destination."""
    topology = case.options.topology
    sources, destinations = topology.neighbors(case.rank, case.ranks)
    graph = case.resources.graph(sources, destinations)
    received = case.message((case.elements,) * len(sources), row.form)
    if row.personalized:
        sent = case.message((case.elements,) * len(destinations), row.form)
        inputs = tuple(
            Content.of(case.rank, block, index) for index, block in enumerate(sent.blocks())
        )
    else:
        sent = case.message()
        inputs = (Content.of(case.rank, sent.memory),)
    outputs = []
    for source, block in zip(sources, received.blocks(), strict=True):
        place = 0
        if row.personalized:
            place = topology.neighbors(source, case.ranks)[1].index(case.rank)
        outputs.append(Content.of(source, block, place))
    call = Call(row.name, (sent, received), on=graph)
    exchange = CheckedIteration((call,), inputs=inputs, outputs=tuple(outputs))
    return Plan((exchange,), case.payload)


def memory(row: Neighborhood, options: Options, size: int, ranks: int) -> int:
    """Return the bytes that one process needs, whose neighbours are as many as the first rank's."""
    sources, destinations = options.topology.neighbors(0, ranks)
    return size * (len(sources) + (len(destinations) if row.personalized else 1))


def benchmark(row: Neighborhood) -> Benchmark:
    """Return the benchmark of a row's blocking function."""
    return Benchmark(
        name=row.name,
        title=f"Neighborhood {row.title} Latency",
        family="neighborhood collective",
        collective=True,
        summary=f"Time of one MPI_{row.name.capitalize()}, mean over the ranks.",
        plan=lambda case: plan(row, case),
        defaults=Defaults(1_000, 100, 100, 10, smallest=1, largest=1 << 20),
        options=frozenset({"full", "sync", "layout", "topology", "split"}),
        memory=lambda options, size, ranks: memory(row, options, size, ranks),
    )


PLAIN = tuple(map(benchmark, TABLE))
BENCHMARKS = (
    *PLAIN,
    *map(nonblocking_form, PLAIN),
    *(persistent_form(plain, native=False) for plain in PLAIN),
)
