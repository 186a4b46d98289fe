"""A grid divided over ranks: blocks, neighbours, regions, and the steps of Jacobi's method."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from omb_py.apps import halo as halo_grid
from omb_py.apps.halo import (
    EVERYWHERE,
    Grid,
    Stencil,
    block_of,
    check_fits,
    compare,
    generate,
    regions,
    sequential,
)
from omb_py.core.calls.topology import grid
from omb_py.core.errors import UsageError
from tests.helpers.refusals import refuses

HOST: Any = SimpleNamespace(xp=np, buffer=SimpleNamespace(device=None))
DEVICE: Any = SimpleNamespace(xp=np, buffer=SimpleNamespace(device="a device"))
"""As much of a team as updates need."""

RANKS = st.integers(1, 16)
LENGTHS = st.tuples(st.integers(1, 20), st.integers(1, 20))


@given(LENGTHS, RANKS)
def test_every_cell_belongs_to_one_rank(shape: tuple[int, int], ranks: int) -> None:
    owners = np.zeros(shape, int)
    for rank in range(ranks):
        block = block_of(shape, ranks, rank)
        owners[slice(*block.rows), slice(*block.columns)] += 1
    assert np.all(owners == 1)


@given(RANKS)
def test_neighbours_know_each_other_and_share_an_edge(ranks: int) -> None:
    shape = (40, 40)
    blocks = [block_of(shape, ranks, rank) for rank in range(ranks)]
    for rank, block in enumerate(blocks):
        if block.south is None:
            assert block.rows[1] == shape[0]
        else:
            assert blocks[block.south].north == rank
            assert blocks[block.south].rows[0] == block.rows[1]
            assert blocks[block.south].columns == block.columns
        if block.east is None:
            assert block.columns[1] == shape[1]
        else:
            assert blocks[block.east].west == rank
            assert blocks[block.east].columns[0] == block.columns[1]
            assert blocks[block.east].rows == block.rows


@given(LENGTHS, RANKS, st.data())
def test_overlap_updates_each_once(shape: tuple[int, int], ranks: int, data: st.DataObject) -> None:
    lengths = grid(ranks, 2)
    assume(shape[0] >= lengths[0] and shape[1] >= lengths[1])
    block = block_of(shape, ranks, data.draw(st.integers(0, ranks - 1)))
    before, after = regions(block)
    updates = np.zeros(block.shape, int)
    for region in (*before, *after):
        assert updates[region].size > 0
        updates[region] += 1
    assert np.all(updates == 1)
    for region in before:
        updates[region] = 2
    edges = {
        block.north: updates[0],
        block.south: updates[-1],
        block.west: updates[:, 0],
        block.east: updates[:, -1],
    }
    for neighbor, edge in edges.items():
        assert neighbor is None or np.all(edge == 1)


@pytest.mark.parametrize("team", [HOST, DEVICE], ids=["host", "device"])
@pytest.mark.parametrize("strip", [8, 200, 1 << 20])
def test_cell_is_the_mean_of_neighbours(
    team: Any, strip: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(halo_grid, "STRIP_BYTES", strip)
    old = np.random.default_rng(1).random((9, 12))
    new = np.full_like(old, -1)
    Stencil(team, old, new, *EVERYWHERE).update(np)
    for row in range(1, 8):
        for column in range(1, 11):
            around = old[row - 1, column] + old[row + 1, column]
            around = around + old[row, column - 1] + old[row, column + 1]
            assert new[row, column] == 0.25 * around
    assert np.all(new[[0, -1]] == -1)
    assert np.all(new[:, [0, -1]] == -1)


def test_a_region_is_updated_and_nothing_else() -> None:
    old, new = np.ones((6, 7)), np.zeros((6, 7))
    Stencil(HOST, old, new, slice(1, 3), slice(2, 4)).update(np)
    assert new.sum() == 4
    assert new[2:4, 3:5].sum() == 4


def test_sequential_halo_keeps_a_solution() -> None:
    problem = Grid(rows=8, columns=6, steps=500)
    begin = generate(problem, (0, 8), (0, 6))
    assert begin.shape == (10, 8)
    found = sequential(problem).solve()
    assert found.shape == (8, 6)
    inside = found[1:-1, 1:-1]
    around = found[:-2, 1:-1] + found[2:, 1:-1] + found[1:-1, :-2] + found[1:-1, 2:]
    assert np.abs(inside - around / 4).max() < 1e-12


@given(LENGTHS, RANKS, st.data())
def test_rank_makes_its_block_and_halo(
    shape: tuple[int, int], ranks: int, data: st.DataObject
) -> None:
    problem = Grid(rows=shape[0], columns=shape[1])
    block = block_of(shape, ranks, data.draw(st.integers(0, ranks - 1)))
    whole = generate(problem, (0, shape[0]), (0, shape[1]))
    mine = whole[block.rows[0] : block.rows[1] + 2, block.columns[0] : block.columns[1] + 2]
    assert np.array_equal(generate(problem, block.rows, block.columns), mine)


def test_one_bit_of_one_cell_is_found() -> None:
    problem = Grid(rows=5, columns=5, steps=3)
    reference = sequential(problem).solve()
    found = reference.copy()
    assert compare(problem, found, reference).passed
    found[2, 3] = np.nextafter(found[2, 3], 1)
    assert not compare(problem, found, reference).passed


@pytest.mark.parametrize(
    ("rows", "columns", "words"),
    [(3, 9, "8 ranks 4 x 2, --rows 3"), (9, 1, "--columns 2 fewer ranks")],
)
def test_grid_with_fewer_cells_than_ranks_refused(rows: int, columns: int, words: str) -> None:
    check_fits(Grid(rows=4, columns=2), 8)
    with refuses(UsageError, words):
        check_fits(Grid(rows=rows, columns=columns), 8)
