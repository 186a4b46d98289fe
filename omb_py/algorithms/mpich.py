"""MPICH's algorithms: control variables of each collective (seen in 5.0.2).

They choose at MPICH's own level, above which its devices have collectives of their own: those are
taken out of the way for the collective in question, and for no other.
"""

from __future__ import annotations

from omb_py.algorithms import Algorithm, AlgorithmLibrary, folding, trees
from omb_py.algorithms.patterns import (
    added,
    around,
    backwards,
    bruck_allgather,
    bruck_alltoall,
    by_segments,
    cut,
    dissemination,
    doubled,
    doubling_reduce_scatter,
    doubling_scan,
    everyone,
    exchanges,
    nothing,
    on_powers_of_two,
    opposite,
    pairwise_exchange,
    reduction,
    share,
    together,
    whole,
)

PIECE = 32 << 10
"""Bytes of a message of allgatherv's ring, which is also the second half of allreduce's."""

CHUNK = 8 << 10
"""Bytes of a message of the pipelined tree."""

AT_ONCE = 32
"""Messages that a rank of a linear alltoall has under way (``MPIR_CVAR_ALLTOALL_THROTTLE``)."""

BINARY = {"TREE_TYPE": "kary", "TREE_KVAL": "2"}
"""All these are MPICH's defaults, and named so that no environment changes what a word means."""


def variables(function: str, algorithm: Algorithm) -> dict[str, str]:
    """Return the control variables (MPIR_CVAR) that make MPICH use an algorithm for a function."""
    mine = f"MPIR_CVAR_{function.upper()}"
    return {
        "MPIR_CVAR_DEVICE_COLLECTIVES": "percoll",
        f"{mine}_DEVICE_COLLECTIVE": "0",
        f"{mine}_INTRA_ALGORITHM": algorithm.value,
        **{f"{mine}_{name}": value for name, value in algorithm.settings.items()},
    }


heap = trees.down(trees.heap, at_once=True)
linear = everyone(whole, at_once=AT_ONCE)


def pipelined_binary(segment: int = CHUNK) -> Algorithm:
    """Return the binary tree of a broadcast that passes on a message in chunks."""
    settings = BINARY | {"TREE_PIPELINE_CHUNK_SIZE": str(segment)}
    rounds = by_segments(heap, segment)
    return Algorithm(
        "pipelined_binary",
        "pipelined_tree",
        rounds,
        settings=settings,
        with_segment=pipelined_binary,
    )


REDUCE_SCATTER = (
    Algorithm("pairwise", "pairwise", added(pairwise_exchange(share))),
    Algorithm("recursive_doubling", "recursive_doubling", doubling_reduce_scatter),
    Algorithm("recursive_halving", "recursive_halving", folding.recursive_halving),
)

TABLE: dict[str, tuple[Algorithm, ...]] = {
    "allreduce": (
        Algorithm("recursive_doubling", "recursive_doubling", folding.recursive_doubling),
        Algorithm(
            "rabenseifner",
            "reduce_scatter_allgather",
            folding.fold(
                folding.halving_and_doubling,
                added(folding.lower_to_upper),
                folding.upper_to_lower,
            ),
        ),
        Algorithm("ring", "ring", together(added(around(share)), cut(around(share), PIECE))),
        Algorithm(
            "binomial",
            "tree",
            together(
                reduction(trees.down(trees.binomial_preorder, order=trees.farthest_first)),
                trees.down(trees.binomial_preorder, at_once=True),
            ),
            settings={"TREE_TYPE": "knomial_1", "TREE_KVAL": "2"},
        ),
    ),
    "bcast": (
        Algorithm("binomial", "binomial", trees.binomial),
        Algorithm("binary", "tree", heap, settings=BINARY),
        pipelined_binary(),
        Algorithm(
            "scatter_allgather",
            "scatter_recursive_doubling_allgather",
            trees.scatter_allgather,
        ),
        Algorithm("scatter_ring", "scatter_ring_allgather", trees.scatter_ring),
    ),
    "reduce": (
        Algorithm("binomial", "binomial", reduction(trees.binomial)),
        Algorithm(
            "rabenseifner",
            "reduce_scatter_gather",
            folding.fold(folding.halving_and_gather, added(folding.upper_to_lower), keep=0),
        ),
    ),
    "allgather": (
        Algorithm("bruck", "brucks", bruck_allgather),
        Algorithm("recursive_doubling", "recursive_doubling", on_powers_of_two(exchanges(doubled))),
        Algorithm("ring", "ring", around(whole)),
    ),
    "allgatherv": (
        Algorithm("bruck", "brucks", bruck_allgather),
        Algorithm("recursive_doubling", "recursive_doubling", on_powers_of_two(exchanges(doubled))),
        Algorithm(
            "ring", "ring", cut(around(whole), PIECE), settings={"PIPELINE_MSG_SIZE": str(PIECE)}
        ),
    ),
    "alltoall": (
        Algorithm("bruck", "brucks", bruck_alltoall),
        Algorithm("pairwise", "pairwise", pairwise_exchange(whole, partner=opposite)),
        Algorithm("linear", "scattered", linear),
    ),
    "alltoallv": (Algorithm("linear", "scattered", linear),),
    "alltoallw": (Algorithm("linear", "scattered", linear),),
    "barrier": (
        Algorithm(
            "dissemination",
            "k_dissemination",
            dissemination(nothing),
            settings={"DISSEM_KVAL": "2"},
        ),
        Algorithm(
            "recursive_doubling",
            "recexch",
            folding.doubling_barrier,
            settings={"RECEXCH_KVAL": "2"},
        ),
    ),
    "gather": (Algorithm("binomial", "binomial", backwards(trees.scatter_of_blocks)),),
    "scatter": (Algorithm("binomial", "binomial", trees.scatter_of_blocks),),
    "reduce_scatter": REDUCE_SCATTER,
    "reduce_scatter_block": REDUCE_SCATTER,
    "scan": (Algorithm("recursive_doubling", "recursive_doubling", doubling_scan),),
    "exscan": (Algorithm("recursive_doubling", "recursive_doubling", doubling_scan),),
}

LIBRARY = AlgorithmLibrary(
    "MPICH",
    TABLE,
    variables,
    refusal="User set collective algorithm",
    refusing={"MPIR_CVAR_COLLECTIVE_FALLBACK": 0},  # its words: error, print and silent
)
