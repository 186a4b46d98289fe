"""The table of formulas: small cases by hand, and what its rows have in common."""

from __future__ import annotations

import numpy as np
import pytest

from omb_py.analysis.model.costs import TABLE, TERMS, AlgorithmCost, algorithms, lg
from omb_py.benchmarks import all_benchmarks

ALPHA, BETA, GAMMA = 10.0, 0.5, 0.25

BY_HAND: dict[tuple[str, str], dict[int, float]] = {
    ("barrier", "dissemination"): {2: 10, 4: 20, 5: 30, 8: 30},
    ("barrier", "linear"): {2: 20, 3: 40, 8: 140},
    ("bcast", "binomial tree"): {2: 60, 3: 120, 4: 120, 8: 180},
    ("bcast", "scatter, recursive doubling allgather"): {2: 70, 4: 115},
    ("bcast", "scatter, ring allgather (van de Geijn)"): {2: 70, 4: 125, 5: 150},
    ("bcast", "chain of segments (alpha: one segment's hop)"): {2: 60, 4: 80},
    ("bcast", "linear"): {2: 60, 5: 240},
    ("reduce", "binomial tree"): {2: 85, 8: 255},
    ("allreduce", "recursive doubling"): {2: 85, 4: 170, 6: 255},
    ("allreduce", "binomial reduce, bcast"): {2: 145, 4: 290},
    ("allreduce", "reduce-scatter, allgather (Rabenseifner)"): {2: 82.5, 4: 133.75},
    ("allreduce", "ring"): {2: 82.5, 4: 153.75},
    ("allgather", "recursive doubling"): {2: 60, 4: 170, 8: 380},
    ("allgather", "ring"): {2: 60, 4: 180, 8: 420},
    ("alltoall", "Bruck"): {2: 60, 4: 220, 8: 630},
    ("alltoall", "pairwise exchange"): {2: 60, 4: 180, 8: 420},
    ("gather", "binomial tree"): {2: 60, 8: 380},
    ("gather", "linear"): {2: 60, 8: 420},
    ("reduce_scatter", "recursive halving"): {2: 47.5, 4: 76.25},
    ("reduce_scatter", "pairwise exchange"): {2: 47.5, 4: 86.25},
    ("scan", "recursive doubling"): {2: 110, 4: 220},
    ("scan", "one rank after another"): {2: 85, 4: 255},
}
"""Times for 100 bytes with alpha 10, beta 1/2 and gamma 1/4, by number of ranks."""


def row(collective: str, name: str) -> AlgorithmCost:
    (found,) = (row for row in TABLE if (row.collective, row.name) == (collective, name))
    return found


def time(algorithm: AlgorithmCost, ranks: float, size: float) -> float:
    p, n = np.array([ranks]), np.array([size])
    terms = (algorithm.messages, algorithm.traffic, algorithm.added)
    costs = (ALPHA, BETA, GAMMA)
    parts = [TERMS[term](p, n) * cost for term, cost in zip(terms, costs, strict=True)]
    return float(np.sum(parts))


@pytest.mark.parametrize(("collective", "name"), BY_HAND)
def test_formulas_give_what_one_counts_by_hand(collective: str, name: str) -> None:
    algorithm = row(collective, name)
    for ranks, expected in BY_HAND[collective, name].items():
        assert time(algorithm, ranks, 100) == pytest.approx(expected)


def test_steps_are_the_logarithm_rounded_up() -> None:
    assert lg(np.array([1.0, 2, 3, 4, 5, 7, 8, 9, 1024, 1025])).tolist() == [
        0, 1, 2, 2, 3, 3, 3, 4, 10, 11,
    ]  # fmt: skip


@pytest.mark.parametrize("algorithm", TABLE, ids=lambda row: f"{row.collective}, {row.name}")
def test_cost_grows_with_ranks_and_bytes(algorithm: AlgorithmCost) -> None:
    assert time(algorithm, 1, 1000) == 0
    times = [[time(algorithm, ranks, size) for size in (0, 1, 1000)] for ranks in range(2, 40)]
    assert np.all(np.diff(times, axis=0) >= 0)
    assert np.all(np.diff(times, axis=1) >= 0)
    assert algorithm.source


def test_a_formula_is_written_in_one_line() -> None:
    assert row("bcast", "binomial tree").formula == "lg p alpha + n lg p beta"
    assert row("reduce", "linear").formula == "(p-1) alpha + n (p-1) beta + n (p-1) gamma"


@pytest.mark.parametrize("algorithm", TABLE, ids=lambda row: f"{row.collective}, {row.name}")
def test_bytes_added_up_are_a_constant_part_of_the_traffic(algorithm: AlgorithmCost) -> None:
    """So that beta and gamma cannot be told apart, whatever is measured, and need not be."""
    if not algorithm.added:
        return
    p, n = (grid.ravel() for grid in np.meshgrid(np.arange(2.0, 50), [1.0, 7, 4096]))
    quotient = TERMS[algorithm.added](p, n) / TERMS[algorithm.traffic](p, n)
    assert np.ptp(quotient) < 1e-12


def test_every_collective_benchmark_has_formulas() -> None:
    families = {"collective", "non-blocking collective", "persistent collective"}
    for benchmark in all_benchmarks():
        is_collective = benchmark.family in families and "neighbor" not in benchmark.name
        assert bool(algorithms(benchmark.name)) is is_collective, benchmark.name
