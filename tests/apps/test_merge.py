"""The join of two tables, its checksums, and the programs to compare with."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps import transpose_sum
from omb_py.apps.merge import Tables, checksums, compare, generate, join, sequential

SMALL = Tables(rows=100, keys=30, payload=2)
KEYS = st.lists(st.one_of(st.integers(0, 5), st.sampled_from([2**32, 2**62])), max_size=30)


@given(KEYS, KEYS)
def test_each_pair_of_rows_of_a_key_is_found_once(left: list[int], right: list[int]) -> None:
    tables = [np.array([keys, range(len(keys))], "int64").T for keys in (left, right)]
    found = zip(*(rows.tolist() for rows in join(np, *tables)), strict=True)
    assert sorted(found) == sorted(
        ([key, row], [other, place])
        for row, key in enumerate(left)
        for place, other in enumerate(right)
        if key == other
    )


@pytest.mark.parametrize("ranks", [2, 3, 7])
def test_tables_are_the_same_however_many_ranks_generate_them(ranks: int) -> None:
    parts = [generate(SMALL, 1, ranks, rank) for rank in range(ranks)]
    assert np.array_equal(np.concatenate(parts), generate(SMALL, 1))
    assert not np.array_equal(generate(SMALL, 0), generate(SMALL, 1))


def test_checksums_depend_on_pairs_and_columns_and_not_on_order() -> None:
    left, right = join(np, generate(SMALL, 0), generate(SMALL, 1))
    sums = checksums(left, right)
    order = np.arange(len(left))[::-1]
    assert np.array_equal(sums, checksums(left[order], right[order]))
    for other in ((left, right[order]), (left[:, ::-1], right), (left[:-1], right[:-1])):
        assert not np.array_equal(sums, checksums(*other))


@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize("names", ["NumPy and pandas", "NumPy"])
def test_result_is_compared_with_installed_programs(
    monkeypatch: pytest.MonkeyPatch, names: str, wrong: int
) -> None:
    if "pandas" not in names:
        monkeypatch.setitem(sys.modules, "pandas", None)
    program = sequential(SMALL)
    reference = program.solve()
    found: Any = [checksums(*reference), np.array([0, wrong, 0, 0], "uint64")]
    check = compare(SMALL, found, reference)
    assert check.passed is not bool(wrong)
    assert check.text.endswith(f" {names}")


def test_result_without_a_pair_is_compared() -> None:
    few = Tables(rows=2, keys=10**9)
    reference = sequential(few).solve()
    assert compare(few, [checksums(*reference)], reference).text.startswith("0 rows; 0 checksums")


def test_pandas_judges_what_numpy_found() -> None:
    reference = sequential(replace(SMALL, seed=2)).solve()
    check = compare(SMALL, [checksums(*reference)], reference)
    assert not check.passed


@pytest.mark.parametrize(("total", "wrong", "passed"), [(0, 0, True), (1, 0, False), (0, 1, False)])
def test_transpose_sum_fails_for_sum_or_element(total: int, wrong: int, passed: bool) -> None:
    square = transpose_sum.Square(size=20)
    expected = transpose_sum.sequential(square).solve()
    x = transpose_sum.elements((0, 20), (0, 20))
    assert expected == 2 * x.astype("int64").sum()
    assert not np.array_equal(x, x.T)
    found = expected + total, [np.array([0]), np.array([wrong])]
    assert transpose_sum.compare(square, found, expected).passed is passed
