"""Pairs of ranks: who meets whom, and in which round."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.benchmarks import Ranks, all_benchmarks, find_benchmark
from omb_py.core.calls import Call, Window, addressed
from omb_py.measure.pairs import MOST_ROUNDS, chosen_rounds, for_pairs, has_pairs, tournament


@given(st.integers(2, 40))
def test_tournament_has_every_pair_once(units: int) -> None:
    rounds = tournament(units)
    assert len(rounds) == units - 1 + units % 2
    for one in rounds:
        members = [unit for pair in one for unit in pair]
        assert len(members) == len(set(members))
    met = [tuple(sorted(pair)) for one in rounds for pair in one]
    assert sorted(met) == list(combinations(range(units), 2))


@given(st.integers(2, 20), st.booleans())
def test_each_pair_is_measured_in_both_directions(units: int, alone: bool) -> None:
    rounds = chosen_rounds(units, None, alone)
    assert sorted(pair for one in rounds for pair in one) == sorted(permutations(range(units), 2))
    assert not alone or all(len(one) == 1 for one in rounds)


@given(st.integers(2, 40), st.integers(1, 60))
def test_of_some_rounds_every_unit_has_so_many_partners(units: int, rounds: int) -> None:
    chosen = chosen_rounds(units, rounds, alone=False)
    partners = [{b for one in chosen for a, b in one if a == unit} for unit in range(units)]
    number = min(rounds, len(tournament(units)))
    assert {len(found) for found in partners} <= {number, number - units % 2}


def test_the_number_of_rounds_is_limited_by_default() -> None:
    assert len(chosen_rounds(1000, None, alone=False)) == 2 * MOST_ROUNDS
    assert len(chosen_rounds(1000, 999, alone=False)) == 2 * 999


def test_peers_are_replaced_by_ranks_of_the_job() -> None:
    send, wait = Call("isend", (), peer=1, tag=7), Call("waitall")
    window = Window(((send, send), (wait,)))
    assert addressed(send, (4, 9)) == Call("isend", (), peer=9, tag=7)
    assert addressed(wait, (4, 9)) == wait
    moved = addressed(window, (4, 9))
    assert isinstance(moved, Window)
    assert [[call.peer for call in group] for group in moved.groups] == [[9, 9], [None]]


def test_benchmarks_of_two_ranks_have_pairs() -> None:
    names = {one.name for one in all_benchmarks() if has_pairs(one)}
    assert names >= {"latency", "bw", "bibw"}
    assert names.isdisjoint({"allreduce", "mbw_mr", "put_latency", "latency_mt"})


@pytest.mark.parametrize("name", ["latency", "bw", "bibw"])
def test_as_pairs_they_run_on_any_number_of_ranks(name: str) -> None:
    assert for_pairs(find_benchmark(name)).ranks is Ranks.SEVERAL
