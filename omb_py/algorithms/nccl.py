"""NCCL's algorithms and protocols: ``NCCL_ALGO`` and ``NCCL_PROTO`` (``tuning.cc`` of 2.30.7).

NCCL reads both whenever it makes a communicator. Values without a function's name hold for all
functions and are known to every version. From 2.24 on, a call whose algorithm is not available
fails; before that, NCCL quietly takes its ring.

A protocol is how data is handed over. Simple sends large pieces and then a flag, LL a flag with
every 4 bytes, LL128 one with every 120. NCCL chooses it if a word has none. Algorithms other than
ring and tree have Simple only. Alltoall is made of messages between two ranks, without a choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from omb_py.algorithms import Algorithm, AlgorithmLibrary
from omb_py.algorithms.patterns import (
    CollectiveShape,
    Pattern,
    Round,
    added,
    around,
    share,
    together,
    whole,
)

ALGORITHM = "NCCL_ALGO"
PROTOCOL = "NCCL_PROTO"

ALGORITHMS = {
    "ring": "Ring",
    "tree": "Tree",
    "collnet_direct": "CollNetDirect",
    "collnet_chain": "CollNetChain",
    "nvls": "NVLS",
    "nvls_tree": "NVLSTree",
    "pat": "PAT",
}
"""NCCL's names of algorithms, by words."""

PROTOCOLS = {"simple": "Simple", "ll": "LL", "ll128": "LL128"}
"""NCCL's names of protocols, by ends of words."""


def several_ranks(shape: CollectiveShape) -> str | None:
    return "one rank alone copies" if shape.ranks == 1 else None


def unknown(shape: CollectiveShape) -> Iterator[Round]:
    """Raise `NotImplementedError`: the messages depend on the machine's links."""
    raise NotImplementedError("NCCL fits its messages to the machine, so they are not known here")


def with_protocols(word: str, rounds: Pattern = unknown) -> tuple[Algorithm, ...]:
    """Return an algorithm with the protocol that NCCL chooses, and with each.

    ``rounds`` are those of protocols whose messages have no further flags.
    """
    value, requires = ALGORITHMS[word], (several_ranks,)
    found = [Algorithm(word, value, rounds, requires)]
    for end, protocol in PROTOCOLS.items():
        known = rounds if end == "simple" else unknown
        found.append(Algorithm(f"{word}_{end}", f"{value} {protocol}", known, requires))
    return tuple(found)


def by_simple(*words: str) -> tuple[Algorithm, ...]:
    """Return algorithms that have protocol Simple only."""
    return tuple(
        Algorithm(word, f"{ALGORITHMS[word]} Simple", unknown, (several_ranks,)) for word in words
    )


FROM_OR_TO_ROOT = with_protocols("ring")
OF_BLOCKS = by_simple("collnet_direct", "nvls", "pat")
REDUCE_SCATTER = (*with_protocols("ring", added(around(share))), *OF_BLOCKS)

TABLE: dict[str, tuple[Algorithm, ...]] = {
    "allreduce": (
        *with_protocols("ring", together(added(around(share)), around(share))),
        *with_protocols("tree"),
        *by_simple("collnet_direct", "collnet_chain", "nvls", "nvls_tree"),
    ),
    "bcast": FROM_OR_TO_ROOT,
    "reduce": FROM_OR_TO_ROOT,
    "allgather": (*with_protocols("ring", around(whole)), *OF_BLOCKS),
    "reduce_scatter": REDUCE_SCATTER,
    "reduce_scatter_block": REDUCE_SCATTER,
}


def variables(function: str, algorithm: Algorithm) -> dict[str, str]:
    """Return NCCL's variables for an algorithm and, if it names one, a protocol."""
    return dict(zip((ALGORITHM, PROTOCOL), algorithm.value.split(), strict=False))


LIBRARY = AlgorithmLibrary(
    "NCCL",
    TABLE,
    variables,
    rivals=re.compile(PROTOCOL),
    refusal="invalid usage",
    refuses_since=(2, 24),
    is_mpi=False,
)
