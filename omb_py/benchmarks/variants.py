"""Benchmarks in MPI's other forms: non-blocking ones, started, overlapped with computing and waited
for; persistent ones, set up once, outside the time. Everything but their calls stays.
"""

from __future__ import annotations

from collections.abc import Callable

from omb_py.benchmarks import Benchmark, Case, CheckedIteration, Plan, collective, pt2pt
from omb_py.core.calls import Call
from omb_py.core.calls.forms import nonblocking, persistent
from omb_py.core.dataclass import replace

OF_BLOCKING_CALLS = frozenset({"library_algorithm", "algorithm", "node_map"})
"""Features that only blocking collectives have."""

LEGEND = ("# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait", "")


def nonblocking_form(blocking: Benchmark) -> Benchmark:
    """Return the benchmark of the non-blocking function, with computing meanwhile."""
    words = blocking.title.removesuffix(" Latency").replace(" Personalized Exchange", "")
    return replace(
        blocking,
        name=f"i{blocking.name}",
        title=f"Non-blocking {words} Latency",
        family=f"non-blocking {blocking.family}",
        summary=f"Time of one MPI_I{blocking.name}, and how much of it computing hides.",
        plan=in_form(blocking, nonblocking),
        options=blocking.options - {"sync", "bus", *OF_BLOCKING_CALLS} | {"overlap"},
        traffic=None,
        heading=lambda options, ranks: LEGEND,
    )


def persistent_form(
    plain: Benchmark, native: bool = True, applies: Callable[[Call], bool] = lambda call: True
) -> Benchmark:
    """Return the benchmark of persistent requests; ``applies`` chooses the calls that get them."""
    words = plain.title.removesuffix(" Latency")
    return replace(
        plain,
        name=f"{plain.name}_persistent",
        title=f"{words} Persistent Latency" if words != plain.title else f"{words} Persistent",
        family=f"persistent {plain.family}",
        summary=f"{plain.summary.removesuffix('.')}, by persistent requests.",
        plan=in_form(plain, lambda exchange: persistent(exchange, applies)),
        options=plain.options - OF_BLOCKING_CALLS,
        native=native and plain.native,
    )


def in_form(
    plain: Benchmark, form: Callable[[CheckedIteration], CheckedIteration]
) -> Callable[[Case], Plan]:
    """Return the plan of a benchmark with its calls in another form."""

    def formed(case: Case) -> Plan:
        made = plain.plan(case)
        return replace(made, exchanges=tuple(map(form, made.exchanges)))

    return formed


POINT_TO_POINT = ("latency", "bw", "bibw")


def carries_data(call: Call) -> bool:
    """Return whether a call is not the short answer to a window, which stays as it is."""
    return call.tag != pt2pt.ACKNOWLEDGE_TAG


BENCHMARKS = (
    *map(nonblocking_form, collective.BENCHMARKS),
    *(
        persistent_form(plain, applies=carries_data)
        for plain in pt2pt.BENCHMARKS
        if plain.name in POINT_TO_POINT
    ),
    *(
        persistent_form(plain, native=plain.name != "reduce_scatter_block")
        for plain in collective.BENCHMARKS
    ),
)
