"""The sum of an array and its transpose: its input, reference, check, metric and growth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.apps import transpose_sum
from omb_py.apps.runtime.distribution import random_numbers
from omb_py.apps.transpose_sum import MAX_COMPARED, Square
from omb_py.core.errors import UsageError
from tests.helpers.refusals import refuses

SQUARE = Square(size=20)


@given(st.lists(st.integers(0, 40), min_size=1), st.integers(0, 5))
def test_generated_numbers_do_not_depend_on_ranks(lengths: list[int], seed: int) -> None:
    ends = np.cumsum(lengths)
    parts = [
        random_numbers((seed,), end - length, end)
        for length, end in zip(lengths, map(int, ends), strict=True)
    ]
    whole = random_numbers((seed,), 0, int(ends[-1]))
    assert np.array_equal(np.concatenate(parts), whole)
    assert np.all((whole >= 0) & (whole < 1))


def test_generated_numbers_depend_on_the_seed() -> None:
    assert not np.array_equal(random_numbers((1,), 0, 9), random_numbers((2,), 0, 9))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_sum_is_exactly_twice_that_of_the_array(dtype: str) -> None:
    problem = replace(SQUARE, dtype=dtype)
    rows = transpose_sum.generate(problem, 0, problem.size)
    assert rows.dtype == dtype
    assert set(np.unique(rows)) > {0, 255}
    total, sums = transpose_sum.sequential(problem).solve()
    assert total == 2 * rows.astype("int64").sum()
    assert np.array_equal(sums, sums.T)


def test_a_sum_that_is_off_by_one_is_found() -> None:
    total, sums = transpose_sum.sequential(SQUARE).solve()
    parts = [sums[:7].reshape(-1), sums[7:].reshape(-1)]
    assert transpose_sum.compare(SQUARE, (total, parts), (total, sums)).passed
    assert not transpose_sum.compare(SQUARE, (total + 1, parts), (total, sums)).passed
    parts[1] = parts[1] + np.eye(1, parts[1].size)[0]
    assert not transpose_sum.compare(SQUARE, (total, parts), (total, sums)).passed


def test_too_large_an_array_is_compared_by_its_sum() -> None:
    check = transpose_sum.compare(SQUARE, (8.0, None), (8.0, np.zeros(1)))
    assert check.passed
    assert str(math.isqrt(MAX_COMPARED)) in check.text
    assert not transpose_sum.compare(SQUARE, (8.0, None), (9.0, np.zeros(1))).passed


@given(st.integers(1, 10_000), st.integers(1, 600))
def test_weak_scaling_of_a_square_has_equal_parts(size: int, ranks: int) -> None:
    found = transpose_sum.weak_scaled(Square(size=size), ranks).size
    assert found % ranks == 0
    assert abs(found - size * math.sqrt(ranks)) <= ranks


def test_the_bytes_of_the_array_count() -> None:
    application = transpose_sum.APPLICATION
    assert application.metric(Square(size=1000), 1e-3) == 8
    assert application.metric(Square(size=1000, dtype="float32"), 1e-3) == 4


def test_a_rank_without_a_row_is_refused_in_words() -> None:
    transpose_sum.check_ranks(Square(size=8), 8)
    with refuses(UsageError, "--size 7 8 ranks"):
        transpose_sum.check_ranks(Square(size=7), 8)
