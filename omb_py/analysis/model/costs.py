"""Textbook formulas of the costs of collectives: one row for each algorithm.

A message of n bytes takes alpha + n beta, and adding up a byte takes gamma (R. W. Hockney, *The
communication challenge for MPP: Intel Paragon and Meiko CS-2*, Parallel Computing 20, 1994). ``n``
is omb-py's message size: the block of a rank for gather, scatter, allgather and alltoall, the whole
vector for broadcasts, reductions and scans (docs/definitions.md). ``lg`` is the logarithm to base
two, rounded up: algorithms that need a power of two treat other numbers of ranks differently, by up
to two more steps, which these formulas leave out. They count the longest path; omb-py's times are
means over the ranks.

Sources: TRG is R. Thakur, R. Rabenseifner, W. Gropp, *Optimization of collective communication
operations in MPICH*, IJHPCA 19, 2005; Chan is E. Chan, M. Heimlich, A. Purkayastha, R. van de
Geijn, *Collective communication: theory, practice, and experience*, CCPE 19, 2007; Rabenseifner is
R. Rabenseifner, *Optimization of collective reduction operations*, ICCS 2004; Bruck is J. Bruck et
al., *Efficient algorithms for all-to-all communications in multiport message-passing systems*,
IEEE TPDS 8, 1997; PG is J. Pjesivac-Grbovic et al., *Performance analysis of MPI collective
operations*, Cluster Computing 10, 2007; HFM is D. Hensgen, R. Finkel, U. Manber, *Two algorithms
for barrier synchronization*, IJPP 17, 1988.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def lg(ranks: Array) -> Array:
    """Return the steps in which the ranks that know something can double: log2, rounded up."""
    steps: Array = np.ceil(np.log2(np.maximum(ranks, 1.0)) - 1e-9)
    return steps


TERMS: dict[str, Callable[[Array, Array], Array]] = {
    "": lambda p, n: 0 * p * n,
    "lg p": lambda p, n: lg(p) + 0 * n,
    "2 lg p": lambda p, n: 2 * lg(p) + 0 * n,
    "(p-1)": lambda p, n: p - 1 + 0 * n,
    "2 (p-1)": lambda p, n: 2 * (p - 1) + 0 * n,
    "(lg p + p-1)": lambda p, n: lg(p) + p - 1 + 0 * n,
    "n": lambda p, n: (p > 1) * n,
    "n lg p": lambda p, n: n * lg(p),
    "2 n lg p": lambda p, n: 2 * n * lg(p),
    "n (p-1)": lambda p, n: n * (p - 1),
    "2 n (p-1)": lambda p, n: 2 * n * (p - 1),
    "n (p-1)/p": lambda p, n: n * (p - 1) / p,
    "2 n (p-1)/p": lambda p, n: 2 * n * (p - 1) / p,
    "n p/2 lg p": lambda p, n: n * p / 2 * lg(p),
}
"""Factors of alpha, beta and gamma, for p ranks and n bytes."""


@dataclass(frozen=True)
class AlgorithmCost:
    """T = messages alpha + traffic beta + added gamma, all of them names of `TERMS`.

    ``messages`` one after another, bytes of ``traffic`` and bytes ``added`` up, on the longest
    path. ``source`` is a key of the module's list.
    """

    collective: str
    name: str
    messages: str
    traffic: str
    added: str
    source: str

    @property
    def gamma(self) -> float:
        """The part of gamma in beta: bytes added up for each byte of traffic, a constant."""
        ones = np.array([2.0]), np.array([1.0])
        return float(TERMS[self.added](*ones)[0] / (TERMS[self.traffic](*ones)[0] or 1.0))

    @property
    def formula(self) -> str:
        """The time as a sum of terms in alpha, beta and gamma."""
        parts = ((self.messages, "alpha"), (self.traffic, "beta"), (self.added, "gamma"))
        return " + ".join(f"{term} {cost}" for term, cost in parts if term)

    def x(self, ranks: Array, sizes: Array) -> Array:
        """Return the factors of alpha."""
        return TERMS[self.messages](ranks, sizes)

    def y(self, ranks: Array, sizes: Array) -> Array:
        """Return the factors of beta with its part of gamma."""
        return TERMS[self.traffic](ranks, sizes)


A = AlgorithmCost
CHAIN = "chain of segments (alpha: one segment's hop)"
BRANCHES = "reduce-scatter, gather (Rabenseifner)"
HALVING = "reduce-scatter, allgather (Rabenseifner)"

TABLE = (
    A("barrier", "dissemination", "lg p", "", "", "HFM, PG"),
    A("barrier", "linear", "2 (p-1)", "", "", "PG"),
    A("bcast", "binomial tree", "lg p", "n lg p", "", "TRG, Chan"),
    A("bcast", "scatter, recursive doubling allgather", "2 lg p", "2 n (p-1)/p", "", "TRG"),
    A("bcast", "scatter, ring allgather (van de Geijn)", "(lg p + p-1)", "2 n (p-1)/p", "", "TRG"),
    A("bcast", CHAIN, "(p-1)", "n", "", "PG"),
    A("bcast", "linear", "(p-1)", "n (p-1)", "", "PG"),
    A("reduce", "binomial tree", "lg p", "n lg p", "n lg p", "TRG, Chan"),
    A("reduce", BRANCHES, "2 lg p", "2 n (p-1)/p", "n (p-1)/p", "Rabenseifner, TRG"),
    A("reduce", CHAIN, "(p-1)", "n", "n", "PG"),
    A("reduce", "linear", "(p-1)", "n (p-1)", "n (p-1)", "PG"),
    A("allreduce", "recursive doubling", "lg p", "n lg p", "n lg p", "TRG"),
    A("allreduce", "binomial reduce, bcast", "2 lg p", "2 n lg p", "n lg p", "Chan"),
    A("allreduce", HALVING, "2 lg p", "2 n (p-1)/p", "n (p-1)/p", "Rabenseifner, TRG"),
    A("allreduce", "ring", "2 (p-1)", "2 n (p-1)/p", "n (p-1)/p", "Chan"),
    A("allreduce", "linear reduce, bcast", "2 (p-1)", "2 n (p-1)", "n (p-1)", "PG"),
    A("allgather", "recursive doubling", "lg p", "n (p-1)", "", "TRG"),
    A("allgather", "Bruck", "lg p", "n (p-1)", "", "Bruck, TRG"),
    A("allgather", "ring", "(p-1)", "n (p-1)", "", "TRG"),
    A("alltoall", "Bruck", "lg p", "n p/2 lg p", "", "Bruck, TRG"),
    A("alltoall", "pairwise exchange", "(p-1)", "n (p-1)", "", "TRG"),
    A("alltoall", "linear", "(p-1)", "n (p-1)", "", "PG"),
    A("gather", "binomial tree", "lg p", "n (p-1)", "", "Chan"),
    A("gather", "linear", "(p-1)", "n (p-1)", "", "PG"),
    A("reduce_scatter", "recursive halving", "lg p", "n (p-1)/p", "n (p-1)/p", "TRG"),
    A("reduce_scatter", "pairwise exchange", "(p-1)", "n (p-1)/p", "n (p-1)/p", "TRG"),
    A("scan", "recursive doubling", "lg p", "n lg p", "2 n lg p", "as TRG's allreduce"),
    A("scan", "one rank after another", "(p-1)", "n (p-1)", "n (p-1)", "Hockney"),
)

PARENTS = {
    name: parent
    for parent, names in {
        "allgather": "allgatherv",
        "alltoall": "alltoallv alltoallw",
        "scan": "exscan",
        "gather": "gatherv scatter scatterv",
        "reduce_scatter": "reduce_scatter_block",
    }.items()
    for name in names.split()
}
"""Benchmarks that share another's formulas."""

COLLECTIVES = frozenset(algorithm.collective for algorithm in TABLE)


def algorithms(benchmark: str) -> tuple[AlgorithmCost, ...]:
    """Return the formulas of a benchmark; non-blocking and persistent forms have the plain call's.

    >>> [algorithms(name)[0].collective for name in ("iallgatherv", "bcast_persistent")]
    ['allgather', 'bcast']
    >>> algorithms("latency")
    ()
    """
    name = benchmark.removesuffix("_persistent")
    plain = name if name in {*PARENTS, *COLLECTIVES} else name.removeprefix("i")
    collective = PARENTS.get(plain, plain)
    return tuple(row for row in TABLE if row.collective == collective)
