"""The join of two tables: pairs of rows, checksums, and the program to compare with."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from omb_py.apps import share
from omb_py.apps.merge import (
    LEFT,
    RIGHT,
    Tables,
    checksums,
    compare,
    generate,
    join,
    pairs,
    sequential,
    shuffled,
    sorted_keys,
    weak_scaled,
)
from omb_py.core.errors import UsageError
from tests.helpers.refusals import refuses

SMALL = Tables(rows_left=100, rows_right=70, keys=30)

KEYS = st.lists(
    st.one_of(st.integers(0, 5), st.sampled_from([65535, 65536, 2**32, 2**32 + 5, 2**62])),
    max_size=30,
)


@given(KEYS, KEYS)
def test_each_pair_of_rows_of_a_key_is_found_once(left: list[int], right: list[int]) -> None:
    """The values are the rows' numbers."""
    columns = [np.array(left, "int64"), np.arange(len(left))]
    columns += [np.array(right, "int64"), np.arange(len(right))]
    found = sorted(zip(*(column.tolist() for column in join(np, *columns)), strict=True))
    assert found == sorted(
        (key, row, other)
        for row, key in enumerate(left)
        for other, same in enumerate(right)
        if key == same
    )


@given(st.lists(st.integers(0, 2**63 - 1)))
def test_keys_of_any_size_are_sorted_and_their_places_known(keys: list[int]) -> None:
    given_keys = np.array(keys, "int64")
    found, places = sorted_keys(np, given_keys)
    assert found.tolist() == sorted(keys)
    assert given_keys[places].tolist() == found.tolist()


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4))))
def test_pairs_are_those_of_each_row_with_its_matches(matches: list[tuple[int, int]]) -> None:
    first, many = (np.array([one[which] for one in matches], "int64") for which in (0, 1))
    left, right = pairs(np, first, many)
    expected = [
        (row, begin + match) for row, (begin, count) in enumerate(matches) for match in range(count)
    ]
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == expected


def test_the_sequential_program_and_the_join_find_the_same_rows() -> None:
    columns = [column for side in (LEFT, RIGHT) for column in generate(SMALL, side)]
    program = sequential(SMALL)
    assert program is not None
    assert program.name == "pandas"
    found = checksums(np, *join(np, *columns))
    assert compare(SMALL, found, program.solve()).passed


def test_without_pandas_the_sequential_program_is_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "__import__", _without("pandas"))
    program = sequential(SMALL)
    assert program is not None
    assert program.name == "NumPy"
    monkeypatch.undo()
    with_pandas = sequential(SMALL)
    assert with_pandas is not None
    assert compare(SMALL, checksums(np, *program.solve()), with_pandas.solve()).passed


def test_checksums_depend_on_pairs_and_not_on_their_order() -> None:
    key, left, right = np.array([1, 1, 2]), np.array([5, 6, 7]), np.array([2**31, 9, 10])
    sums = checksums(np, key, left, right)
    order = [2, 0, 1]
    assert np.array_equal(sums, checksums(np, key[order], left[order], right[order]))
    assert not np.array_equal(sums, checksums(np, key, left, right[order]))
    assert not np.array_equal(sums, checksums(np, key[:2], left[:2], right[:2]))
    assert compare(SMALL, sums, (key, left, right)).passed
    assert not compare(SMALL, sums, (key, left, right[order])).passed


@given(st.integers(1, 9), st.integers(0, 50))
def test_tables_are_the_same_however_many_ranks_generate_them(ranks: int, rows: int) -> None:
    problem = replace(SMALL, rows_left=rows)
    whole = generate(problem, LEFT)
    parts = [generate(problem, LEFT, ranks, rank) for rank in range(ranks)]
    assert [len(keys) for keys, _ in parts] == [
        end - begin for begin, end in (share(rows, ranks, rank) for rank in range(ranks))
    ]
    for column in (0, 1):
        assert np.array_equal(np.concatenate([part[column] for part in parts]), whole[column])


def test_tables_that_grow_match_as_often_as_before() -> None:
    assert weak_scaled(SMALL, 3) == Tables(rows_left=300, rows_right=210, keys=90)


UNIQUE = replace(SMALL, keys=0, matching=0.3)


@given(st.integers(1, 60), st.integers(1, 60), st.floats(0, 1), st.integers(0, 9))
def test_number_of_rows_matches(left: int, right: int, matching: float, seed: int) -> None:
    assume(round(matching * right) <= left)
    problem = Tables(left, right, keys=0, matching=matching, seed=seed)
    keys = [generate(problem, side)[0] for side in (LEFT, RIGHT)]
    assert [len(set(one.tolist())) for one in keys] == [left, right]
    matches = set(keys[LEFT].tolist()) & set(keys[RIGHT].tolist())
    assert len(matches) == round(matching * right)


@pytest.mark.parametrize("problem", [UNIQUE, replace(SMALL, matching=0.3)])
def test_fewer_rows_match_however_many_ranks_generate_them(problem: Tables) -> None:
    whole = generate(problem, RIGHT)[0]
    parts = [generate(problem, RIGHT, 3, rank)[0] for rank in range(3)]
    assert np.array_equal(np.concatenate(parts), whole)
    all_matching = (whole < (problem.keys or problem.rows_left)).mean()
    assert all_matching == pytest.approx(0.3, abs=0.1)


def test_neighbours_in_a_table_have_distant_keys() -> None:
    keys = shuffled(1, 1000, 0, 1000)
    assert sorted(keys) == list(range(1000))
    assert abs(np.diff(keys)).min() > 300


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"matching": 1.5}, "--matching 1.5"),
        ({"keys": 0, "rows_left": 10}, "70 right rows keys 10 left"),
    ],
)
def test_impossible_join_refused(values: dict[str, Any], words: str) -> None:
    with refuses(UsageError, words):
        replace(SMALL, **values)


def _without(package: str) -> Callable[..., Any]:
    """The import statement where a package is not installed."""
    found = builtins.__import__

    def imported(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found(name, *rest)

    return imported
