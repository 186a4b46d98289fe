"""NCCL's algorithms and protocols: ``NCCL_ALGO`` and ``NCCL_PROTO`` (documented since 2.5).

NCCL takes them for all functions when it makes a communicator. Since 2.24 it fails if a function
has no such algorithm here; before, it takes another one and says nothing. Which algorithm a
function can have is that of ``src/graph/tuning.cc`` of 2.30. None was seen on a device yet.
"""

from __future__ import annotations

from collections.abc import Iterator

from omb_py.algorithms import Algorithm, AlgorithmLibrary
from omb_py.algorithms.patterns import CollectiveShape, Round

NAMES = {
    "ring": "Ring",
    "tree": "Tree",
    "collnet_direct": "CollNetDirect",
    "collnet_chain": "CollNetChain",
    "nvls": "NVLS",
    "nvls_tree": "NVLSTree",
    "pat": "PAT",
}
"""Words, and NCCL's names."""

PROTOCOLS = {"simple": "Simple", "ll": "LL", "ll128": "LL128"}

PARTS = ("ring", "collnet_direct", "nvls", "pat")
WORDS = {
    "allreduce": ("ring", "tree", "collnet_direct", "collnet_chain", "nvls", "nvls_tree"),
    **dict.fromkeys(("allgather", "reduce_scatter", "reduce_scatter_block"), PARTS),
    **dict.fromkeys(("bcast", "reduce"), ("ring",)),
}
"""The algorithms of each function."""


def messages(shape: CollectiveShape) -> Iterator[Round]:
    """Raise `NotImplementedError`: NCCL's messages depend on channels that it chooses itself."""
    raise NotImplementedError("the messages of NCCL's algorithms are not known")


def algorithms(words: tuple[str, ...]) -> tuple[Algorithm, ...]:
    """Return algorithms as NCCL chooses their protocol, and each with each protocol."""
    plain = tuple(Algorithm(word, NAMES[word], messages) for word in words)
    with_protocol = tuple(
        Algorithm(f"{word}_{end}", NAMES[word], messages, settings={"NCCL_PROTO": protocol})
        for word in words
        for end, protocol in PROTOCOLS.items()
    )
    return plain + with_protocol


def variables(function: str, algorithm: Algorithm) -> dict[str, str]:
    """Return the variables that make NCCL use an algorithm, for all functions."""
    return {"NCCL_ALGO": algorithm.value, **algorithm.settings}


LIBRARY = AlgorithmLibrary(
    "NCCL", {function: algorithms(words) for function, words in WORDS.items()}, variables
)
