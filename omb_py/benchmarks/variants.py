"""Benchmarks in MPI's other forms: non-blocking ones, started, overlapped with computing and waited
for; persistent ones, set up once, outside the time. Everything but their calls stays.
"""

from __future__ import annotations

from collections.abc import Callable

from omb_py.benchmarks import Benchmark, Case, CheckedIteration, Plan, collective, pt2pt
from omb_py.core.calls import Call
from omb_py.core.calls.forms import nonblocking, persistent
from omb_py.core.dataclass import replace

OF_BLOCKING_CALLS = frozenset({"library_algorithm", "algorithm", "node_map", "segment"})
"""Features that only blocking collectives have."""

LEGEND = ("# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait", "")


def nonblocking_form(blocking: Benchmark) -> Benchmark:
    """Return the benchmark of the non-blocking function, with computing meanwhile."""
    words = blocking.title.removesuffix(" Latency").replace(" Personalized Exchange", "")
    defaults = blocking.defaults
    if not blocking.sized:  # native OMB takes the counts of large messages: osu_ibarrier.c:93
        counts = defaults.large_iterations, defaults.large_warmup
        defaults = replace(defaults, iterations=counts[0], warmup=counts[1])
    return replace(
        blocking,
        name=f"i{blocking.name}",
        title=f"Non-blocking {words} Latency",
        family=f"non-blocking {blocking.family}",
        summary=f"Time of one MPI_I{blocking.name}, and how much of it computing hides.",
        plan=in_form(blocking, nonblocking),
        defaults=defaults,
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
        plan=in_form(plain, lambda iteration: persistent(iteration, applies)),
        options=plain.options - OF_BLOCKING_CALLS,
        native=native and plain.native,
    )


def in_form(
    plain: Benchmark, form: Callable[[CheckedIteration], CheckedIteration]
) -> Callable[[Case], Plan]:
    """Return the plan of a benchmark with its calls in another form."""

    def formed(case: Case) -> Plan:
        made = plain.plan(case)
        return replace(made, iterations=tuple(map(form, made.iterations)))

    return formed


POINT_TO_POINT = ("latency", "bw", "bibw")


def carries_data(call: Call) -> bool:
    """Return whether a call is not the short answer to a window, which stays as it is."""
    return call.tag != pt2pt.ACKNOWLEDGE_TAG


# Native OMB's pass without computing, and that with it: osu_iallgather.c:174, 229,
# osu_iallgatherv.c:194, 264, osu_iallreduce.c:175, 230, osu_ialltoall.c:185, 242,
# osu_ialltoallv.c:214, 278, osu_ialltoallw.c:227, 290, osu_ibarrier.c:109, 139,
# osu_ibcast.c:162, 214, osu_igather.c:171, 247, osu_igatherv.c:192, 275, osu_ireduce.c:174, 243,
# osu_ireduce_scatter.c:187, 234, osu_ireduce_scatter_block.c:181, 228, osu_iscatter.c:180, 246,
# osu_iscatterv.c:199, 279.
#
# The timed part of persistent ones: osu_latency_persistent.c:203, osu_bw_persistent.c:251,
# osu_bibw_persistent.c:263, osu_allgather_persistent.c:164, osu_allgatherv_persistent.c:182,
# osu_allreduce_persistent.c:164, osu_alltoall_persistent.c:181, osu_alltoallv_persistent.c:210,
# osu_alltoallw_persistent.c:230, osu_barrier_persistent.c:100, osu_bcast_persistent.c:150,
# osu_gather_persistent.c:160, osu_gatherv_persistent.c:180, osu_reduce_persistent.c:167,
# osu_reduce_scatter_persistent.c:200, osu_scatter_persistent.c:179, osu_scatterv_persistent.c:199.
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
