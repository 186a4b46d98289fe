"""Slow links are found in matrices made up of known ones, and nothing in those that have none."""

from __future__ import annotations

import re

import numpy as np
import pytest

from omb_py.analysis.pairs.findings import ALARMS, FACTOR, MOST_NAMED, judge
from omb_py.analysis.pairs.matrix import Matrix
from omb_py.measure.pairs import tournament
from tests.helpers.refusals import assert_names

WITHIN, BETWEEN = 0.5, 1.0
"""Times of pairs on one host, and on two."""

Slow = tuple[range, range, float]
"""From which ranks, to which, how many times as long."""


def made(
    hosts: int, per_host: int = 1, *slow: Slow, noise: float = 0.03, seed: int = 0, rounds: int = 0
) -> Matrix:
    """Times with normal noise of their logarithms, some slow; of the first or all rounds."""
    chance = np.random.default_rng(seed)
    names = [f"n{number + 1}" for number in range(hosts) for _ in range(per_host)]
    place = np.array(names)
    values = np.where(place[:, None] == place[None, :], WITHIN, BETWEEN)
    values = values * np.exp(noise * chance.standard_normal(values.shape))
    for senders, receivers, factor in slow:
        values[np.ix_(senders, receivers)] *= factor
    np.fill_diagonal(values, np.nan)
    measured = np.full(values.shape, not rounds)
    for one in tournament(len(values))[:rounds]:
        for pair in one:
            measured[pair] = measured[pair[::-1]] = True
    values[~measured] = np.nan
    return Matrix("latency", 8, "us", tuple(range(len(names))), tuple(names), values)


def link(first: int, second: int, factor: float = 2.0) -> tuple[Slow, Slow]:
    """A slow link in both directions."""
    one, other = range(first, first + 1), range(second, second + 1)
    return (one, other, factor), (other, one, factor)


def both(first: range, second: range, factor: float) -> tuple[Slow, Slow]:
    """All links between some ranks and others."""
    return (first, second, factor), (second, first, factor)


def all_of(rank: int, ranks: int, factor: float) -> tuple[Slow, Slow]:
    """All links of a rank."""
    return both(range(rank, rank + 1), range(ranks), factor)


HALVES = both(range(4), range(4, 8), 1.4)
CARD = (*both(range(4, 8), range(4), 1.5), *both(range(4, 8), range(8, 16), 1.5))


def subjects_of(matrix: Matrix) -> list[str]:
    """What is found slow, largest factor first."""
    return [finding.subject for finding in judge(matrix).findings]


@pytest.mark.parametrize(
    ("matrix", "subjects"),
    [
        (made(8), []),
        (made(8, 1, *link(1, 4)), ["the pair n2 and n5"]),
        (made(8, 1, link(1, 4)[0]), ["the direction from n2 to n5"]),
        (made(4, 1, *link(0, 3, 3)), ["the pair n1 and n4"]),
        (
            made(4, 1, *link(0, 1, 1000), *link(2, 3, 900)),
            ["the pair n1 and n2", "the pair n3 and n4"],
        ),
        (made(64, 1, *link(3, 60, 1.5)), ["the pair n4 and n61"]),
        (made(4, 1, *all_of(2, 4, 2.0)), ["all pairs with n3"]),
        (made(8, 1, *all_of(5, 8, 1.5)), ["all pairs with n6"]),
        (made(8, 1, all_of(5, 8, 1.5)[0]), ["all pairs that n6 sends to"]),
        (made(8, 1, all_of(5, 8, 1.5)[1]), ["all pairs that n6 receives from"]),
        (made(8, 1, *all_of(5, 8, 1.5), *link(5, 1, 1 / 1.5)), ["most pairs with n6"]),
        (
            made(16, 1, *all_of(3, 16, 1.5), *all_of(5, 16, 2.0)),
            ["all pairs with n6", "all pairs with n4"],
        ),
        (made(200, 1, *all_of(17, 200, 1.4)), ["all pairs with n18"]),
        (
            made(4, 4, *all_of(5, 16, 1.5), *both(range(5, 6), range(4, 8), 1.5)),
            ["all pairs with rank 5 on its host", "all pairs with rank 5"],
        ),
        (
            made(2, 4, *both(range(1, 2), range(4), 1.5)),
            ["all pairs with rank 1 on its host"],
        ),
        (made(1, 8, *all_of(1, 8, 1.5)), ["all pairs with rank 1"]),
        (made(4, 4, *CARD), ["all pairs with host n2"]),
        (
            made(4, 4, *CARD, (range(4, 8), range(4, 8), 2.0)),
            ["all pairs within host n2", "all pairs with host n2"],
        ),
        (made(4, 4, *both(range(4), range(8, 12), 2.0)), ["all pairs between n1 and n3"]),
        (made(8, 1, *HALVES), []),
        (made(8, 1, *HALVES, *link(1, 2, 3.0)), ["the pair n2 and n3"]),
        (made(64, 1, *both(range(32), range(32, 64), 1.4)), []),
        (made(8, 1, *all_of(7, 8, 1.4)), ["all pairs with n8"]),
    ],
)
def test_planted_slow_pairs_are_found(matrix: Matrix, subjects: list[str]) -> None:
    assert subjects_of(matrix) == subjects


def test_pair_with_one_noisy_direction_is_slow_in_both() -> None:
    there, back = link(1, 4, 4.0)
    assert subjects_of(made(6, 1, there, noise=0.15)) == ["the direction from n2 to n5"]
    hidden = made(6, 1, there, (*back[:2], 2.1), noise=0.15)
    assert subjects_of(hidden) == ["the pair n2 and n5"]


@pytest.mark.parametrize("factor", [1.5, 3.0])
def test_the_factor_is_that_of_the_link_in_times_and_bandwidths(factor: float) -> None:
    slow = made(8, 1, *link(1, 4, factor))
    rates = Matrix("bw", 8, "MB/s", slow.ranks, slow.hosts, 1e4 / slow.values)
    (finding,), (other,) = judge(slow).findings, judge(rates).findings
    assert finding.factor == pytest.approx(factor, rel=0.1)
    assert other.subject == finding.subject
    assert other.factor == pytest.approx(finding.factor)


def test_unmeasured_pairs_are_counted() -> None:
    matrix = made(12, 1, *all_of(4, 12, 1.5))
    matrix.values[np.random.default_rng(5).random(matrix.values.shape) < 0.4] = np.nan
    assert subjects_of(matrix) == ["all pairs with n5"]
    assert judge(made(8, rounds=2)).sentences()[-1] == "20 pairs were not measured"


@pytest.mark.parametrize(
    ("hosts", "per_host", "pair", "rounds"),
    [
        *((2, 2, (0, 2), 0), (2, 3, (0, 1), 0), (2, 3, (2, 4), 0), (4, 2, (2, 3), 0)),
        *((4, 2, (1, 6), 0), (5, 2, (2, 3), 0), (3, 1, (0, 1), 0), (1, 3, (1, 2), 0)),
        *((5, 1, (0, 1), 0), (4, 1, (0, 2), 2), (12, 1, (0, 11), 1), (12, 1, (0, 11), 5)),
        (30, 1, (0, 29), 2),
    ],
)
@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_link_1000_times_as_slow_is_found_in_any_matrix(
    hosts: int, per_host: int, pair: tuple[int, int], rounds: int, noise: float
) -> None:
    matrix = made(hosts, per_host, *link(*pair, 1000.0), noise=noise, rounds=rounds)
    assert subjects_of(matrix) == [f"the pair {' and '.join(map(matrix.name, pair))}"]


def needed_of(sentence: str) -> float:
    """How slow a pair would have to be, by a sentence."""
    return float(re.findall(r"a pair would have to take ([\d.]+) times", sentence)[0])


@pytest.mark.parametrize(("hosts", "noise"), [(3, 0.05), (4, 0.03), (4, 0.1), (8, 0.03), (32, 0.1)])
def test_what_would_be_found_is_stated_and_found(hosts: int, noise: float) -> None:
    (said,) = judge(made(hosts, noise=noise)).sentences()
    assert said.startswith("no pair is slow: ")
    factor = needed_of(said)
    assert FACTOR <= factor < 100
    assert judge(made(hosts, 1, *link(0, 1, 2 * factor), noise=noise)).findings
    assert not judge(made(hosts, 1, *link(0, 1, factor**0.3), noise=noise)).findings


def test_two_levels_of_distance_raise_the_threshold() -> None:
    even, halves = (judge(made(8, 1, *slow)).sentences() for slow in ((), HALVES))
    assert needed_of(even[0]) < needed_of(halves[0])


def test_too_few_pairs_are_not_judged() -> None:
    matrix = made(3)
    hosts = Matrix("latency", 8, "us", matrix.ranks, ("a", "a", "b"), matrix.values)
    for judged, groups in (
        (made(2), ["1 pair: too few"]),
        (hosts, ["within hosts, 1 pair: too few", "between hosts, 2 pairs: too few"]),
    ):
        for sentence, words in zip(judge(judged).sentences(), groups, strict=True):
            assert_names(sentence, words)


def test_of_many_findings_the_largest_are_printed() -> None:
    slow = [one for at in range(12) for one in link(2 * at, 2 * at + 1, 2.0 + at)]
    judged = judge(made(24, 1, *slow))
    assert len(judged.findings) == 12
    assert judged.sentences()[0].startswith("slow: the pair n23 and n24 takes ")
    assert judged.sentences()[MOST_NAMED:] == ["slow: 2 more findings"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hosts", "per_host"), [(3, 1), (4, 1), (6, 1), (16, 1), (1, 8), (4, 4), (2, 2)]
)
def test_noise_alone_is_slow_as_rarely_as_is_said(hosts: int, per_host: int) -> None:
    matrices = 600
    alarms = sum(
        bool(judge(made(hosts, per_host, noise=0.2, seed=seed)).findings)
        for seed in range(matrices)
    )
    assert ALARMS == 0.01
    assert alarms <= 15  # all but 1 in 1000 of the binomial distribution of 6
