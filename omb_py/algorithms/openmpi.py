"""Open MPI's algorithms: component ``tuned`` of its framework ``coll`` (seen in 5.0.11).

Its numbers have no effect without ``coll_tuned_use_dynamic_rules``, and then only where ``tuned``
is the component that runs: its priority is raised above that of han (35), which otherwise takes
communicators of several nodes, and left below that of accelerator (78), which brings a device's
data to the host for it. The numbers go before a file of rules (5.0.10).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from omb_py.algorithms import Algorithm, AlgorithmLibrary, Requirement, folding, trees
from omb_py.algorithms.patterns import (
    CollectiveShape,
    Round,
    added,
    along,
    around,
    backwards,
    bruck_allgather,
    bruck_alltoall,
    dissemination,
    double_ring,
    doubled,
    doubling_reduce_scatter,
    doubling_scan,
    everyone,
    exchanges,
    from_root,
    from_root_in_turn,
    neighbor_exchange,
    nothing,
    on_powers_of_two,
    pairwise_exchange,
    pipelined,
    power_within,
    reduction,
    share,
    sparbit,
    swapped_digits,
    to_root_in_turn,
    together,
    up_and_down,
    whole,
)
from omb_py.core.dataclass import replace

SEGMENT = 64 << 10
"""Bytes of a segment if an algorithm lives by them: Open MPI's own 0 means that none is cut."""


def in_segments(segment: int) -> dict[str, str]:
    """Return the setting of an algorithm that cuts messages."""
    return {"segmentsize": str(segment)}


ALWAYS = {
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
    "OMPI_MCA_coll_tuned_priority": "77",
    "OMPI_MCA_coll_hcoll_enable": "0",
    "OMPI_MCA_coll_ucc_enable": "0",
}


def variables(function: str, algorithm: Algorithm) -> dict[str, str]:
    """Open MPI's MCA parameters as environment variables."""
    mine = f"OMPI_MCA_coll_tuned_{function}_algorithm"
    further = {f"{mine}_{name}": value for name, value in algorithm.settings.items()}
    return ALWAYS | {mine: algorithm.value} | further


def in_effect(function: str, algorithm: Algorithm) -> dict[str, int]:
    """Return the parameters, by MPI_T's names, that must be in effect."""
    return {
        "coll_tuned_use_dynamic_rules": 1,
        f"coll_tuned_{function}_algorithm": int(algorithm.value),
    }


def two_ranks(shape: CollectiveShape) -> str | None:
    return None if shape.ranks == 2 else "it is for 2 ranks"


def power_of_two(shape: CollectiveShape) -> str | None:
    wrong = shape.ranks != power_within(shape.ranks)
    return "it is for powers of two of ranks" if wrong else None


def even_ranks(shape: CollectiveShape) -> str | None:
    return "it is for even numbers of ranks" if shape.ranks % 2 else None


def element_for_each(shape: CollectiveShape) -> str | None:
    return "there are fewer elements than ranks" if shape.elements < shape.ranks else None


def element_for_each_of_power(shape: CollectiveShape) -> str | None:
    """Require as many elements as the maximum power of two within the ranks."""
    return element_for_each(replace(shape, ranks=power_within(shape.ranks)))


def segment_for_each(segment: int) -> Requirement:
    """Require a segment for each rank, at the minimum."""

    def requirement(shape: CollectiveShape) -> str | None:
        minimum = shape.ranks * segment
        if shape.nbytes >= minimum:
            return None
        return f"it needs {minimum} bytes, a segment of {segment} for each rank"

    return requirement


def not_in_place(shape: CollectiveShape) -> str | None:
    """Require a buffer on both sides: in place there is one algorithm for all."""
    return "in place it has an algorithm of its own" if shape.in_place else None


def sends_nothing_in_place(shape: CollectiveShape) -> str | None:
    """Require a buffer on both sides: in place, messages are sent whose data is missing."""
    return "in place it sends empty messages, a fault of Open MPI" if shape.in_place else None


def segmented_ring(segment: int = SEGMENT) -> Algorithm:
    """Return the ring whose first half, with the sums, takes a segment of each block at a time."""

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        turn = shape.ranks * (segment // shape.itemsize)
        turns, rest = divmod(shape.elements, turn)
        turns += rest >= shape.ranks and rest > turn // 2
        first = around(lambda shape: share(shape) / turns, lambda ranks: turns * (ranks - 1))
        yield from together(added(first), around(share))(shape)

    requires = (segment_for_each(segment),)
    settings = in_segments(segment)
    return Algorithm("segmented_ring", "5", rounds, requires, settings, segmented_ring)


def pipeline(segment: int = SEGMENT) -> Algorithm:
    """Return the pipeline of a broadcast."""
    rounds = pipelined(trees.down(trees.chains(1)), segment)
    settings = in_segments(segment)
    return Algorithm("pipeline", "3", rounds, settings=settings, with_segment=pipeline)


def reduce_pipeline(segment: int = SEGMENT) -> Algorithm:
    """Return the pipeline of a reduction."""
    rounds = reduction(pipelined(trees.down(trees.chains(1)), segment))
    settings = in_segments(segment)
    return Algorithm("pipeline", "3", rounds, settings=settings, with_segment=reduce_pipeline)


def synchronized_gather(shape: CollectiveShape) -> Iterator[Round]:
    """Let the root ask rank after rank for an empty part; then the data comes."""
    for rank in range(1, shape.ranks):
        yield Round([(0, rank, 0.0)])
        yield Round([(rank, 0, 0.0)])
    yield from backwards(from_root())(shape)


chain = trees.down(trees.chains(4), at_once=True)
barrier_tree = trees.down(trees.binomial_by_lowest, nothing, trees.largest_first())
SCAN = (
    Algorithm("linear", "1", added(along)),
    Algorithm("recursive_doubling", "2", doubling_scan),
)

TABLE: dict[str, tuple[Algorithm, ...]] = {
    "allreduce": (
        Algorithm("linear", "1", together(reduction(from_root_in_turn), from_root())),
        Algorithm("recursive_doubling", "3", folding.recursive_doubling),
        Algorithm("ring", "4", together(added(around(share)), around(share)), (element_for_each,)),
        segmented_ring(),
        Algorithm(
            "rabenseifner",
            "6",
            folding.fold(
                folding.halving_and_doubling, folding.half_each, folding.lower_to_upper, keep=0
            ),
            (element_for_each_of_power,),
        ),
    ),
    "bcast": (
        Algorithm("linear", "1", from_root()),
        Algorithm("chain", "2", chain),
        pipeline(),
        Algorithm("binary", "5", trees.down(trees.by_levels, at_once=True)),
        Algorithm("binomial", "6", trees.down(trees.binomial_by_highest, at_once=True)),
        Algorithm(
            "knomial",
            "7",
            trees.down(trees.knomial(4), order=trees.largest_first(4), at_once=True),
        ),
        Algorithm(
            "scatter_allgather",
            "8",
            trees.scatter_allgather,
            (element_for_each,),
        ),
        Algorithm(
            "scatter_ring",
            "9",
            trees.scatter_ring,
            (element_for_each,),
        ),
    ),
    "reduce": (
        Algorithm("linear", "1", reduction(from_root_in_turn)),
        Algorithm("chain", "2", reduction(trees.down(trees.chains(4), order=trees.farthest_first))),
        reduce_pipeline(),
        Algorithm(
            "binary", "4", reduction(trees.down(trees.by_levels, order=trees.farthest_first))
        ),
        Algorithm("binomial", "5", reduction(trees.binomial)),
        Algorithm("in_order_binary", "6", trees.in_order),
        Algorithm(
            "rabenseifner",
            "7",
            folding.fold(folding.halving_and_gather, folding.half_each, keep=0),
            (element_for_each_of_power,),
        ),
    ),
    "allgather": (
        Algorithm("bruck", "2", bruck_allgather),
        Algorithm("recursive_doubling", "3", exchanges(doubled), (power_of_two,)),
        Algorithm("ring", "4", around(whole)),
        Algorithm("neighbor_exchange", "5", neighbor_exchange, (even_ranks,)),
        Algorithm("two_ranks", "6", everyone(whole), (two_ranks,)),
        Algorithm("sparbit", "7", sparbit, (sends_nothing_in_place,)),
    ),
    "allgatherv": (
        Algorithm("bruck", "2", bruck_allgather),
        Algorithm("ring", "3", around(whole)),
        Algorithm("neighbor_exchange", "4", neighbor_exchange, (even_ranks,)),
        Algorithm("two_ranks", "5", everyone(whole), (two_ranks,)),
        Algorithm("sparbit", "6", sparbit),
    ),
    "alltoall": (
        Algorithm("linear", "1", everyone(whole), (not_in_place,)),
        Algorithm("pairwise", "2", pairwise_exchange(whole), (not_in_place,)),
        Algorithm("bruck", "3", bruck_alltoall, (not_in_place,)),
        Algorithm("linear_sync", "4", everyone(whole), (not_in_place,)),
        Algorithm("two_ranks", "5", everyone(whole), (two_ranks, not_in_place)),
    ),
    "alltoallv": (
        Algorithm("linear", "1", everyone(whole), (not_in_place,)),
        Algorithm("pairwise", "2", pairwise_exchange(whole, itself=True), (not_in_place,)),
    ),
    "barrier": (
        Algorithm("linear", "1", up_and_down(from_root(nothing))),
        Algorithm("double_ring", "2", double_ring),
        Algorithm("recursive_doubling", "3", folding.doubling_barrier_above),
        Algorithm("dissemination", "4", dissemination(nothing)),
        Algorithm("two_ranks", "5", everyone(nothing), (two_ranks,)),
        Algorithm("tree", "6", up_and_down(barrier_tree)),
    ),
    "gather": (
        Algorithm("linear", "1", to_root_in_turn),
        Algorithm("binomial", "2", backwards(trees.scatter_of_blocks)),
        Algorithm("linear_sync", "3", synchronized_gather),
    ),
    "scatter": (
        Algorithm("linear", "1", from_root_in_turn),
        Algorithm("binomial", "2", trees.scatter_of_blocks),
        Algorithm("linear_nonblocking", "3", from_root()),
    ),
    "reduce_scatter": (
        Algorithm("recursive_halving", "2", folding.recursive_halving),
        Algorithm("ring", "3", added(around(share))),
        Algorithm("butterfly", "4", on_powers_of_two(together(folding.halving, swapped_digits))),
    ),
    "reduce_scatter_block": (
        Algorithm("recursive_doubling", "2", doubling_reduce_scatter),
        Algorithm("recursive_halving", "3", folding.recursive_halving),
        Algorithm("butterfly", "4", on_powers_of_two(folding.halving)),
    ),
    "scan": SCAN,
    "exscan": SCAN,
}

LIBRARY = AlgorithmLibrary(
    "Open MPI",
    TABLE,
    variables,
    rivals=re.compile(r"OMPI_MCA_coll_(\w+_priority|tuned_dynamic_rules_filename)"),
    in_effect=in_effect,
)
