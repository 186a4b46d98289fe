"""Slow links are found in matrices made up of known ones, and nothing in those that have none."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from omb_py.analysis.pairs.findings import ALARMS, FACTOR, MOST_NAMED, judge
from omb_py.analysis.pairs.matrix import Matrix, Numbers
from omb_py.measure.pairs import tournament

Change = Callable[[Numbers], None]

WITHIN, BETWEEN = 0.5, 1.0
"""Times of pairs on one host, and on two."""


def made(
    hosts: int, per_host: int = 1, *changes: Change, noise: float = 0.03, seed: int = 0
) -> Matrix:
    """Times with normal noise of their logarithms, changed by ``changes``."""
    chance = np.random.default_rng(seed)
    names = [f"n{number + 1}" for number in range(hosts) for _ in range(per_host)]
    place = np.array(names)
    values = np.where(place[:, None] == place[None, :], WITHIN, BETWEEN)
    values = values * np.exp(noise * chance.standard_normal(values.shape))
    for change in changes:
        change(values)
    np.fill_diagonal(values, np.nan)
    return Matrix("latency", 8, "us", tuple(range(len(names))), tuple(names), values)


def link(first: int, second: int, factor: float = 2.0, back: bool = True) -> Change:
    """A slow link from one rank to another, and back."""

    def change(values: Numbers) -> None:
        values[first, second] *= factor
        if back:
            values[second, first] *= factor

    return change


def ranks(
    members: slice, factor: float = 1.5, sends: bool = True, receives: bool = True, own: bool = True
) -> Change:
    """Some ranks that are slow towards all others, and among themselves if ``own``."""

    def change(values: Numbers) -> None:
        among = values[members, members].copy()
        if sends:
            values[members] *= factor
        if receives:
            values[:, members] *= factor
        values[members, members] = among * (factor if own else 1)

    return change


def block(first: slice, second: slice, factor: float) -> Change:
    """Slow links between some ranks and others, or within some."""

    def change(values: Numbers) -> None:
        values[first, second] *= factor
        if first != second:
            values[second, first] *= factor

    return change


def subjects_of(matrix: Matrix) -> list[str]:
    """What is found slow, largest factor first."""
    return [finding.subject for finding in judge(matrix).findings]


def tiers(*groups: slice, factor: float = 1.4) -> Change:
    """Groups between which everything takes longer."""

    def change(values: Numbers) -> None:
        group = np.zeros(len(values))
        for number, members in enumerate(groups):
            group[members] = number
        values[group[:, None] != group[None, :]] *= factor

    return change


HALVES = tiers(slice(0, 4), slice(4, 8))


@pytest.mark.parametrize(
    ("matrix", "subjects"),
    [
        pytest.param(made(8), [], id="nothing"),
        pytest.param(made(8, 1, link(1, 4)), ["the pair n2 and n5"], id="one link"),
        pytest.param(
            made(8, 1, link(1, 4, back=False)), ["the direction from n2 to n5"], id="one direction"
        ),
        pytest.param(made(4, 1, link(0, 3, 3)), ["the pair n1 and n4"], id="of four hosts"),
        pytest.param(made(4, 1, ranks(slice(2, 3), 2)), ["all pairs with n3"], id="one of four"),
        pytest.param(made(8, 1, ranks(slice(5, 6))), ["all pairs with n6"], id="one host"),
        pytest.param(
            made(8, 1, ranks(slice(5, 6), receives=False)),
            ["all pairs that n6 sends to"],
            id="one sender",
        ),
        pytest.param(
            made(8, 1, ranks(slice(5, 6), sends=False)),
            ["all pairs that n6 receives from"],
            id="one receiver",
        ),
        pytest.param(
            made(4, 4, ranks(slice(4, 8), own=False)),
            ["all pairs with host n2"],
            id="a network card",
        ),
        pytest.param(
            made(4, 4, ranks(slice(4, 8)), block(slice(4, 8), slice(4, 8), 1.5)),
            ["all pairs within host n2", "all pairs with host n2"],
            id="a node",
        ),
        pytest.param(
            made(16, 1, ranks(slice(3, 4)), ranks(slice(5, 6), 2)),
            ["all pairs with n6", "all pairs with n4"],
            id="two hosts",
        ),
        pytest.param(
            made(8, 1, ranks(slice(5, 6)), link(5, 1, 1 / 1.5)), ["most pairs with n6"], id="most"
        ),
        pytest.param(made(8, 1, HALVES), [], id="two switches"),
        pytest.param(made(64, 1, tiers(slice(0, 32), slice(32, 64))), [], id="halves of 64"),
        pytest.param(made(8, 1, HALVES, link(1, 2, 3)), ["the pair n2 and n3"], id="switch, link"),
        pytest.param(
            made(8, 1, tiers(slice(0, 7), slice(7, 8))), ["all pairs with n8"], id="far away"
        ),
        pytest.param(
            made(4, 1, link(0, 1, 1000), link(2, 3, 900), noise=0.01),
            ["the pair n1 and n2", "the pair n3 and n4"],
            id="two of six links",
        ),
        pytest.param(
            made(4, 4, block(slice(0, 4), slice(8, 12), 2)),
            ["all pairs between n1 and n3"],
            id="all links of two hosts",
        ),
        pytest.param(made(64, 1, link(3, 60, 1.5)), ["the pair n4 and n61"], id="one of thousands"),
        pytest.param(made(200, 1, ranks(slice(17, 18), 1.4)), ["all pairs with n18"], id="of 200"),
    ],
)
def test_what_is_slow_is_named_and_nothing_else(matrix: Matrix, subjects: list[str]) -> None:
    assert subjects_of(matrix) == subjects


def test_a_pair_is_slow_in_both_directions_where_noise_hides_one_of_them() -> None:
    there = made(6, 1, link(1, 4, 4.0, back=False), noise=0.15)
    assert subjects_of(there) == ["the direction from n2 to n5"]
    both = made(6, 1, link(1, 4, 4.0, back=False), link(4, 1, 2.1, back=False), noise=0.15)
    assert subjects_of(both) == ["the pair n2 and n5"]


@pytest.mark.parametrize("factor", [1.5, 3.0])
def test_the_factor_is_that_of_the_link(factor: float) -> None:
    (finding,) = judge(made(8, 1, link(1, 4, factor))).findings
    assert finding.factor == pytest.approx(factor, rel=0.1)


def test_bandwidths_are_slow_where_they_are_low() -> None:
    slow = made(8, 1, link(1, 4))
    rates = Matrix("bw", 8, "MB/s", slow.ranks, slow.hosts, 1e4 / slow.values)
    (found,), (expected,) = judge(rates).findings, judge(slow).findings
    assert found.subject == expected.subject
    assert found.factor == pytest.approx(expected.factor)


def test_pairs_that_were_not_measured_are_nobody_s_fault() -> None:
    matrix = made(12, 1, ranks(slice(4, 5)))
    chance = np.random.default_rng(5)
    hidden = chance.random(matrix.values.shape) < 0.4
    matrix.values[hidden] = np.nan
    assert [one.subject for one in judge(matrix).findings] == ["all pairs with n5"]


def only(rounds: int) -> Change:
    """Pairs of the first so many rounds of a tournament."""

    def change(values: Numbers) -> None:
        measured = np.zeros(values.shape, bool)
        for one in tournament(len(values))[:rounds]:
            for pair in one:
                measured[pair] = measured[pair[::-1]] = True
        values[~measured] = np.nan

    return change


@pytest.mark.parametrize(
    ("hosts", "per_host", "pair", "rounds"),
    [
        (2, 2, (0, 2), None),
        *((2, 3, pair, None) for pair in ((0, 1), (2, 4))),
        *((4, 2, pair, None) for pair in ((2, 3), (1, 6))),
        (5, 2, (2, 3), None),
        (3, 1, (0, 1), None),
        (1, 3, (1, 2), None),
        (5, 1, (0, 1), None),
        (4, 1, (0, 2), 2),
        *((12, 1, (0, 11), rounds) for rounds in (1, 2, 5)),
        (30, 1, (0, 29), 2),
    ],
)
@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_link_1000_times_as_slow_is_found_in_any_matrix(
    hosts: int, per_host: int, pair: tuple[int, int], rounds: int | None, noise: float
) -> None:
    changes = [link(*pair, 1000.0), *([] if rounds is None else [only(rounds)])]
    matrix = made(hosts, per_host, *changes, noise=noise)
    names = " and ".join(map(matrix.name, pair))
    assert subjects_of(matrix) == [f"the pair {names}"]


def needed_of(sentence: str) -> float:
    """How slow a pair would have to be, by a sentence."""
    return float(re.findall(r"a pair would have to take ([\d.]+) times", sentence)[0])


@pytest.mark.parametrize(("hosts", "noise"), [(3, 0.05), (4, 0.03), (4, 0.1), (8, 0.03), (32, 0.1)])
def test_what_would_be_found_is_stated_and_found(hosts: int, noise: float) -> None:
    (said,) = judge(made(hosts, noise=noise)).sentences()
    assert said.startswith("no pair is slow: ")
    factor = needed_of(said)
    assert FACTOR <= factor < 100
    assert judge(made(hosts, 1, link(0, 1, 2 * factor), noise=noise)).findings
    assert not judge(made(hosts, 1, link(0, 1, factor**0.3), noise=noise)).findings


def test_tiers_raise_what_a_pair_would_have_to_take() -> None:
    even, halves = (judge(made(8, 1, *change)).sentences() for change in ([], [HALVES]))
    assert needed_of(even[0]) < needed_of(halves[0])


def test_too_few_pairs_are_not_judged() -> None:
    assert judge(made(2)).sentences() == ["1 pair: too few to be judged"]
    matrix = made(3)
    hosts = Matrix("latency", 8, "us", matrix.ranks, ("a", "a", "b"), matrix.values)
    assert judge(hosts).sentences() == [
        "within hosts, 1 pair: too few to be judged",
        "between hosts, 2 pairs: too few to be judged",
    ]


def test_of_many_findings_the_largest_are_printed() -> None:
    slow = [link(2 * number, 2 * number + 1, 2.0 + number) for number in range(12)]
    judged = judge(made(24, 1, *slow))
    assert len(judged.findings) == 12
    assert judged.sentences()[0].startswith("slow: the pair n23 and n24 takes ")
    assert judged.sentences()[MOST_NAMED:] == ["slow: 2 more findings"]


def test_pairs_that_were_not_measured_are_counted() -> None:
    assert judge(made(8, 1, only(2))).sentences()[-1] == "20 pairs were not measured"


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
