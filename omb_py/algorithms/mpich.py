"""MPICH's algorithms: control variables of each collective (seen in 5.0.2).

They choose at MPICH's own level, above which its devices have collectives of their own: those are
taken out of the way for the collective in question, and for no other.
"""

from __future__ import annotations

from omb_py.algorithms import Algorithm, Library, folding, trees
from omb_py.algorithms.patterns import (
    all_but_done,
    all_data,
    around,
    backwards,
    bruck_blocks,
    bruck_digits,
    cut,
    dissemination,
    doubled,
    doubled_shares,
    everyone,
    exchanges,
    no_data,
    on_powers_of_two,
    share,
    together,
    up_and_down,
    whole,
)

PIECE = 32 << 10
"""Bytes of a message of allgatherv's ring, which is also the second half of allreduce's."""

CHUNK = 8 << 10
"""Bytes of a message of the pipelined tree."""

BINARY = {"TREE_TYPE": "kary", "TREE_KVAL": "2"}
"""All these are MPICH's defaults, and named so that no environment changes what a word means."""


def variables(function: str, algorithm: Algorithm) -> dict[str, str]:
    """MPICH's control variables as environment variables."""
    mine = f"MPIR_CVAR_{function.upper()}"
    return {
        "MPIR_CVAR_DEVICE_COLLECTIVES": "percoll",
        f"{mine}_DEVICE_COLLECTIVE": "0",
        f"{mine}_INTRA_ALGORITHM": algorithm.value,
        **{f"{mine}_{name}": value for name, value in algorithm.settings.items()},
    }


to_root = backwards(trees.down(trees.binomial_by_lowest))
heap = trees.down(trees.complete(2))
scatter = trees.scattered(trees.binomial_by_lowest, share)

TABLE: dict[str, tuple[Algorithm, ...]] = {
    "allreduce": (
        Algorithm("recursive_doubling", "recursive_doubling", folding.recursive_doubling),
        Algorithm(
            "rabenseifner",
            "reduce_scatter_allgather",
            folding.fold(
                folding.halving_and_doubling, folding.lower_to_upper, folding.upper_to_lower
            ),
        ),
        Algorithm("ring", "ring", together(around(share), cut(around(share), PIECE))),
        Algorithm(
            "binomial",
            "tree",
            up_and_down(trees.down(trees.binomial_preorder)),
            settings={"TREE_TYPE": "knomial_1", "TREE_KVAL": "2"},
        ),
    ),
    "bcast": (
        Algorithm("binomial", "binomial", trees.down(trees.binomial_by_lowest)),
        Algorithm("binary", "tree", heap, settings=BINARY),
        Algorithm(
            "pipelined_binary",
            "pipelined_tree",
            cut(heap, CHUNK),
            settings=BINARY | {"TREE_PIPELINE_CHUNK_SIZE": str(CHUNK)},
        ),
        Algorithm(
            "scatter_allgather",
            "scatter_recursive_doubling_allgather",
            on_powers_of_two(together(scatter, exchanges(doubled_shares))),
        ),
        Algorithm("scatter_ring", "scatter_ring_allgather", together(scatter, around(share))),
    ),
    "reduce": (
        Algorithm("binomial", "binomial", to_root),
        Algorithm(
            "rabenseifner",
            "reduce_scatter_gather",
            folding.fold(folding.halving_and_gather, folding.upper_to_lower, keep=0),
        ),
    ),
    "allgather": (
        Algorithm("bruck", "brucks", backwards(dissemination(bruck_blocks))),
        Algorithm("recursive_doubling", "recursive_doubling", on_powers_of_two(exchanges(doubled))),
        Algorithm("ring", "ring", around(whole)),
    ),
    "allgatherv": (
        Algorithm("bruck", "brucks", backwards(dissemination(bruck_blocks))),
        Algorithm("recursive_doubling", "recursive_doubling", on_powers_of_two(exchanges(doubled))),
        Algorithm(
            "ring", "ring", cut(around(whole), PIECE), settings={"PIPELINE_MSG_SIZE": str(PIECE)}
        ),
    ),
    "alltoall": (
        Algorithm("bruck", "brucks", dissemination(bruck_digits)),
        Algorithm("pairwise", "pairwise", everyone(whole)),
        Algorithm("linear", "scattered", everyone(whole)),
    ),
    "alltoallv": (Algorithm("linear", "scattered", everyone(whole)),),
    "alltoallw": (Algorithm("linear", "scattered", everyone(whole)),),
    "barrier": (
        Algorithm(
            "dissemination",
            "k_dissemination",
            dissemination(no_data),
            settings={"DISSEM_KVAL": "2"},
        ),
        Algorithm(
            "recursive_doubling",
            "recexch",
            folding.doubling_barrier,
            settings={"RECEXCH_KVAL": "2"},
        ),
    ),
    "gather": (
        Algorithm(
            "binomial", "binomial", backwards(trees.scattered(trees.binomial_by_lowest, whole))
        ),
    ),
    "scatter": (
        Algorithm("binomial", "binomial", trees.scattered(trees.binomial_by_lowest, whole)),
    ),
    "reduce_scatter": (
        Algorithm("pairwise", "pairwise", everyone(share)),
        Algorithm(
            "recursive_doubling", "recursive_doubling", on_powers_of_two(exchanges(all_but_done))
        ),
        Algorithm("recursive_halving", "recursive_halving", folding.recursive_halving),
    ),
    "reduce_scatter_block": (
        Algorithm("pairwise", "pairwise", everyone(share)),
        Algorithm(
            "recursive_doubling", "recursive_doubling", on_powers_of_two(exchanges(all_but_done))
        ),
        Algorithm("recursive_halving", "recursive_halving", folding.recursive_halving),
    ),
    "scan": (Algorithm("recursive_doubling", "recursive_doubling", exchanges(all_data)),),
    "exscan": (Algorithm("recursive_doubling", "recursive_doubling", exchanges(all_data)),),
}

LIBRARY = Library("MPICH", TABLE, variables, refuses_by_error=True)
