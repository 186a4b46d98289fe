"""Rounds are a possible order: played with data, every rank ends with what its collective promises.

A rank sends only what it has when a round begins, and no more of it than a message has room for.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TypeAlias

import pytest

from omb_py.algorithms import Algorithm, library
from omb_py.algorithms.folding import staying
from omb_py.algorithms.patterns import CollectiveShape, Round, Send, along, pipelined
from omb_py.core.dataclass import replace
from tests.algorithms.test_patterns import EVERY, IDS

SHORT, LONG = 1 << 10, 64 << 10
"""Bytes for each rank: no segments, and segments."""

Played: TypeAlias = Sequence[Sequence[Send]]
"""The messages of each round; a repeated one is there as often."""

Held: TypeAlias = list[dict[int, frozenset[int]]]
"""The blocks of each rank, and whose contributions each one has."""

COPIED = {"recursive_doubling"}
"""Algorithms whose reductions exchange sums that both keep, so that no block has one place."""


def played(rounds: Sequence[Round]) -> Played:
    """The messages of each round, in order."""
    return [list(one.sends) for one in rounds for _ in range(one.times)]


def backwards(rounds: Played) -> Played:
    """The last round first, every message the other way."""
    return [[(target, source, size) for source, target, size in one] for one in reversed(rounds)]


def known_in_the_end(rounds: Played, ranks: int) -> list[set[int]]:
    """Whose data reaches each rank if a message tells all that its sender knows."""
    known = [{rank} for rank in range(ranks)]
    for sends in rounds:
        before = [set(one) for one in known]
        for source, target, _ in sends:
            known[target] |= before[source]
    return known


def distances(rounds: Played, ranks: int) -> list[list[dict[int, int]]]:
    """Where data of each rank can still get to, and by how many messages: before each round."""
    found = [[{rank: 0} for rank in range(ranks)]]
    for sends in reversed(rounds):
        later = found[-1]
        now = [dict(one) for one in later]
        for source, target, _ in sends:
            for home, number in later[target].items():
                now[source][home] = min(number + 1, now[source].get(home, ranks))
        found.append(now)
    return found[::-1]


def moved(rounds: Played, held: Held, homes: Sequence[int], block: float) -> Held:
    """What ranks hold after all rounds, if blocks of so many bytes want to get to their homes.

    A message takes what could not get home later, then what it brings nearer to its home. Blocks
    move, and two parts of a sum become one: no contribution may be in both.
    """
    never = len(held)
    for sends, later in zip(rounds, distances(rounds, len(held))[1:], strict=True):
        arriving = []
        for source, target, nbytes in sends:
            there, here = later[target], later[source]
            possible = [number for number in held[source] if homes[number] in there]
            possible.sort(reverse=source > target)  # other ones than in the other direction
            gain = [(there[homes[n]] - here.get(homes[n], never), n) for n in possible]
            gain.sort(key=itemgetter(0))
            for _, number in gain[: round(nbytes / block)]:
                arriving.append((target, number, held[source].pop(number)))
        for target, number, parts in arriving:
            before = held[target].get(number, frozenset())
            assert not parts & before
            held[target][number] = parts | before
    return held


def spread(places: Sequence[int], blocks: int) -> list[int]:
    """The place of each block where each of these has as many, the first ones first."""
    return [places[number * len(places) // blocks] for number in range(blocks)]


def adds_up(rounds: Played, ranks: int, homes: Sequence[int], block: float) -> bool:
    """Whether every block has all ranks' contributions, each once, at its home and nowhere else."""
    all_ranks = frozenset(range(ranks))
    held: Held = [dict.fromkeys(range(len(homes)), frozenset([rank])) for rank in range(ranks)]
    try:
        held = moved(rounds, held, homes, block)
    except AssertionError:
        return False
    return held == [
        {number: all_ranks for number, home in enumerate(homes) if home == rank}
        for rank in range(ranks)
    ]


def delivers(rounds: Played, ranks: int, pairs: Sequence[tuple[int, int]], block: float) -> bool:
    """Whether the block of each pair of ranks gets from the one to the other."""
    held: Held = [{} for _ in range(ranks)]
    for number, (source, _) in enumerate(pairs):
        held[source][number] = frozenset([source])
    homes = [target for _, target in pairs]
    return all(
        home == rank
        for rank, blocks in enumerate(moved(rounds, held, homes, block))
        for home in (homes[number] for number in blocks)
    )


def split(rounds: Sequence[Round], function: str, ranks: int) -> tuple[Played, Played]:
    """The rounds until all is added up, or scattered, and those after that."""
    if function == "bcast":
        first = played(rounds)
        number = next(i for i in range(len(first) + 1) if sum(map(len, first[:i])) >= ranks - 1)
        return first[:number], first[number:]
    number = max((i + 1 for i, one in enumerate(rounds) if one.added), default=0)
    return played(rounds[:number]), played(rounds[number:])


def shape_of(function: str, algorithm: Algorithm, ranks: int) -> CollectiveShape:
    """A call in segments down or up a tree, or where nothing else can be; otherwise in none."""
    if function == "barrier":
        return CollectiveShape(ranks, 0)
    short, long = (CollectiveShape(ranks, length * ranks, 4) for length in (SHORT, LONG))
    return long if function in ("bcast", "reduce") or algorithm.refusal(short) else short


def keeps_its_promise(function: str, algorithm: Algorithm, shape: CollectiveShape) -> bool:
    """Whether blocks can move as the collective wants, by messages as long as they are."""
    ranks, rounds = shape.ranks, list(algorithm.rounds(shape))
    everyone = range(ranks)
    every = played(rounds)
    if function in ("gather", "scatter"):
        pairs = [(rank, 0) if function == "gather" else (0, rank) for rank in everyone]
        return delivers(every, ranks, pairs, shape.nbytes)
    if function.startswith("alltoall"):
        pairs = [(source, target) for source in everyone for target in everyone]
        return delivers(every, ranks, pairs, shape.nbytes)
    if function.startswith("allgather"):
        return adds_up(backwards(every), ranks, everyone, shape.nbytes)
    number = round(shape.nbytes / min(size for one in every for _, _, size in one))
    block = shape.nbytes / number
    if function.startswith("reduce_scatter"):
        first, second = split(rounds, function, ranks)
        before = {target: source for sends in second for source, target, _ in sends}
        homes = [before.get(home, home) for home in spread(everyone, number)]
        return adds_up(first, ranks, homes, block)
    if function == "reduce":
        return adds_up(every, ranks, [0] * number, block)
    if function == "bcast" and "scatter" not in algorithm.word:
        return adds_up(backwards(every), ranks, [0] * number, block)
    first, second = split(rounds, function, ranks)
    if function == "bcast":
        homes = spread(everyone, number)
        scattered = delivers(first, ranks, [(0, home) for home in homes], block)
        return scattered and adds_up(backwards(second), ranks, homes, block)
    return any(
        adds_up(first, ranks, homes, block) and adds_up(backwards(second), ranks, homes, block)
        for homes in (
            [0] * number,
            spread(everyone, number),
            spread(staying(ranks, 0), number),
            spread(staying(ranks, 1), number),
        )
    )


@pytest.mark.parametrize(("name", "function", "algorithm"), EVERY, ids=IDS)
def test_algorithm_gives_each_rank_its_part(name: str, function: str, algorithm: Algorithm) -> None:
    for ranks in range(2, 18):
        shape = shape_of(function, algorithm, ranks)
        if algorithm.refusal(shape):
            continue
        try:
            rounds = played(list(algorithm.rounds(shape)))
        except NotImplementedError:
            continue
        known, everyone = known_in_the_end(rounds, ranks), set(range(ranks))
        if function in ("gather", "reduce"):
            assert known[0] == everyone
        elif function in ("bcast", "scatter"):
            assert all(0 in one for one in known)
        elif function in ("scan", "exscan"):
            assert all(set(range(rank)) <= one for rank, one in enumerate(known))
        else:
            assert all(one == everyone for one in known)
        if function in ("barrier", "scan", "exscan"):
            continue
        if "reduce" in function and algorithm.word in COPIED:
            continue
        assert keeps_its_promise(function, algorithm, shape), ranks


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (function, algorithm.word)
        for name, function, algorithm in EVERY
        if name == "MPICH" and algorithm.word in ("binomial", "recursive_halving", "bruck")
        if function != "alltoall"  # Bruck's digits may come in any order
    ],
)
def test_rounds_in_the_opposite_order_do_not(function: str, word: str) -> None:
    algorithm = library("MPICH").algorithm(function, word)
    wrong = replace(algorithm, rounds=lambda shape: reversed(list(algorithm.rounds(shape))))
    shape = shape_of(function, algorithm, 8)
    assert keeps_its_promise(function, algorithm, shape)
    assert not keeps_its_promise(function, wrong, shape)


def test_a_ring_is_one_round_however_many_its_ranks() -> None:
    (first, second) = (
        library("MPICH").algorithm("allreduce", "ring").rounds(CollectiveShape(16384, 1 << 20))
    )
    assert (first.times, second.times) == (16383, 16383)
    assert (first.added, second.added) == (True, False)


def test_a_pipeline_is_full_for_a_while() -> None:
    """On 4 ranks, 3 messages are under way at once, of different segments."""
    rounds = list(pipelined(along, 10)(CollectiveShape(4, 100)))
    assert [(list(one.sends), one.times) for one in rounds] == [
        ([(0, 1, 10)], 1),
        ([(0, 1, 10), (1, 2, 10)], 1),
        ([(0, 1, 10), (1, 2, 10), (2, 3, 10)], 8),
        ([(1, 2, 10), (2, 3, 10)], 1),
        ([(2, 3, 10)], 1),
    ]


@pytest.mark.parametrize(("word", "sent"), [("linear", [12]), ("pairwise", [4, 4, 4])])
def test_pairwise_differs_from_linear_in_its_order(word: str, sent: list[int]) -> None:
    rounds = library("Open MPI").algorithm("alltoall", word).rounds(CollectiveShape(4, 8))
    assert [len(list(one.sends)) for one in rounds] == sent
