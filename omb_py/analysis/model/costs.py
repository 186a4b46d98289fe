"""What collectives cost by the textbook: one row for each algorithm, and which times tell apart.

A message of n bytes takes alpha + n beta, and adding up a byte takes gamma (R. W. Hockney, *The
communication challenge for MPP: Intel Paragon and Meiko CS-2*, Parallel Computing 20, 1994). ``n``
is omb-py's message size: the block of a rank for gather, scatter, allgather and alltoall, the
whole vector for broadcasts, reductions and scans (docs/definitions.md). ``lg`` is the logarithm to
base two, rounded up: algorithms that need a power of two treat other numbers of ranks in ways of
their own, by up to two more steps, which these formulas leave out. They count the longest path;
omb-py's times are means over the ranks.

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

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def lg(ranks: Array) -> Array:
    """Steps in which the number of ranks that know something can double: log2, rounded up."""
    steps: Array = np.ceil(np.log2(np.maximum(ranks, 1.0)) - 1e-9)
    return steps


TERMS: dict[str, Callable[[Array, Array], Array]] = {
    "": lambda p, n: 0 * p * n,
    "1": lambda p, n: (p > 1) + 0 * n,
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
"""What alpha, beta and gamma are multiplied with, for p ranks and n bytes."""


@dataclass(frozen=True)
class Algorithm:
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
        """How much of gamma is in beta: bytes added up for each byte of traffic, a constant."""
        ones = np.array([2.0]), np.array([1.0])
        return float(TERMS[self.added](*ones)[0] / (TERMS[self.traffic](*ones)[0] or 1.0))

    @property
    def formula(self) -> str:
        """The time in one line."""
        parts = ((self.messages, "alpha"), (self.traffic, "beta"), (self.added, "gamma"))
        return " + ".join(f"{term} {cost}".removeprefix("1 ") for term, cost in parts if term)


A = Algorithm
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
    A("neighbours", "a message for each neighbour", "1", "n", "", "Hockney"),
    A("growth", "constant", "1", "", "", "a shape, not an algorithm"),
    A("growth", "logarithmic", "lg p", "", "", "a shape, not an algorithm"),
    A("growth", "linear", "(p-1)", "", "", "a shape, not an algorithm"),
)
"""Of ``neighbours``, alpha and beta are of one of a rank's neighbours. ``growth`` is for what has
no messages of its own: start-up and the making of communicators."""

PARENTS = {
    name: parent
    for parent, names in {
        "allgather": "allgatherv",
        "alltoall": "alltoallv alltoallw",
        "scan": "exscan",
        "gather": "gatherv scatter scatterv",
        "reduce_scatter": "reduce_scatter_block",
        "neighbours": "sendrecv exchange",
        "growth": "comm_dup comm_split graph_create init hello import_time",
    }.items()
    for name in names.split()
}
"""Benchmarks that share another's formulas."""

COLLECTIVES = frozenset(algorithm.collective for algorithm in TABLE)


def collective_of(benchmark: str) -> str | None:
    """The collective of the table whose formulas are a benchmark's; None where there are none.

    Non-blocking and persistent forms send what the blocking one does.

    >>> collective_of("iallgatherv"), collective_of("bcast_persistent"), collective_of("latency")
    ('allgather', 'bcast', None)
    """
    name = benchmark.removesuffix("_persistent")
    for candidate in (name, name.removeprefix("i")):
        if candidate.startswith("neighbor_"):
            return "neighbours"
        if candidate in PARENTS or candidate in COLLECTIVES:
            return PARENTS.get(candidate, candidate)
    return None


def neighbours_of(benchmark: str, topology: object) -> int:
    """How many neighbours a rank has, by the option ``-N`` that ``topology`` spells.

    1 where that is in a file: alpha and beta are then of the messages to all neighbours together.

    >>> neighbours_of("neighbor_alltoall", "cart:2:1"), neighbours_of("exchange", None)
    (8, 2)
    """
    grid = re.fullmatch(r"cart:(\d+):(\d+)", str(topology))
    if grid and collective_of(benchmark) == "neighbours":
        return int((2 * int(grid[2]) + 1) ** int(grid[1])) - 1
    return 2 if benchmark == "exchange" else 1


@dataclass(frozen=True)
class Shape:
    """Algorithms whose formulas are multiples of each other: no times tell them apart.

    Parameters are those of the first, ``algorithm``; ``same`` are the others' names.
    ``neighbours`` multiplies both alpha and beta.
    """

    algorithm: Algorithm
    same: tuple[str, ...]
    neighbours: int = 1

    @property
    def formula(self) -> str:
        """The time in one line."""
        formula = self.algorithm.formula
        return formula if self.neighbours == 1 else f"{self.neighbours} ({formula})"

    def x(self, ranks: Array, sizes: Array) -> Array:
        """Return what alpha is multiplied with."""
        return self.neighbours * TERMS[self.algorithm.messages](ranks, sizes)

    def y(self, ranks: Array, sizes: Array) -> Array:
        """Return what beta, with its share of gamma, is multiplied with."""
        return self.neighbours * TERMS[self.algorithm.traffic](ranks, sizes)


RANKS, SIZES = (grid.ravel() for grid in np.meshgrid([2.0, 3, 4, 5, 8, 12, 17, 64], [1.0, 1000.0]))
"""Where formulas are compared."""


@cache
def shapes(collective: str, neighbours: int = 1) -> tuple[Shape, ...]:
    """Return the different shapes of a collective's formulas."""

    def multiple(term: str) -> tuple[float, ...]:
        values = TERMS[term](RANKS, SIZES)
        return tuple((values / (values[0] or 1.0)).round(9).tolist())

    groups: dict[object, list[Algorithm]] = {}
    for one in TABLE:
        if one.collective == collective:
            groups.setdefault((multiple(one.messages), multiple(one.traffic)), []).append(one)
    return tuple(
        Shape(first, tuple(other.name for other in others), neighbours)
        for first, *others in groups.values()
    )
