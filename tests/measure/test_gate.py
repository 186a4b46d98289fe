"""The turns of a gate: who meets whom, and how halves name a host."""

from __future__ import annotations

import pytest

from omb_py.measure.gate_turns import HALVES, NODE, NODE_TURNS, PAIRS, halves, stages


@pytest.mark.parametrize("nodes", [2, 4, 5, 12, 33, 1000])
def test_two_nodes_are_in_different_halves_of_one_split_and_halves_are_of_one_size(
    nodes: int,
) -> None:
    splits = list(halves(range(nodes)))
    assert len(splits) == (nodes - 1).bit_length()
    assert {(len(first), len(second)) for first, second in splits} == {(nodes // 2, nodes // 2)}
    without = [{*range(nodes)} - {*first, *second} for first, second in splits]
    assert [len(one) for one in without] == [nodes % 2] * len(splits)
    if nodes % 2 == 0:
        codes = {tuple(node in first for first, _ in splits) for node in range(nodes)}
        assert len(codes) == nodes


@pytest.mark.parametrize(("nodes", "partners", "turns"), [(5, 8, 5), (12, 8, 8)])
def test_in_a_turn_of_pairs_each_node_has_one_partner_and_another_one_in_the_next(
    nodes: int, partners: int, turns: int
) -> None:
    plan = {one.split: one for one in stages(tuple((n,) for n in range(nodes)), (8,), 64, partners)}
    groups = plan[PAIRS].turns
    assert len(groups) == turns
    for pairs in groups:
        members = [node for pair in pairs for node in pair]
        assert len(members) == len({*members}) == nodes // 2 * 2
    every = [tuple(sorted(pair)) for pairs in groups for pair in pairs]
    assert len(every) == len({*every})


def test_nodes_of_one_rank_only_copy_and_fewer_than_four_have_no_halves() -> None:
    alone = stages(((0,), (1,), (2,)), (8, 64), 1024, 8)
    assert [one.split for one in alone] == [NODE, PAIRS, ""]
    assert [(one.benchmark, one.size) for one in alone[0].cases] == [("pack", 1024)]
    assert len(alone[0].turns) == NODE_TURNS
    many = stages(((0, 1), (2, 3), (4, 5), (6, 7)), (8, 64), 1024, 8)
    assert [one.split for one in many] == [NODE, PAIRS, HALVES, ""]
    assert [(one.benchmark, one.size) for one in many[0].cases] == [
        ("pack", 1024),
        ("allreduce", 8),
        ("allreduce", 64),
    ]
