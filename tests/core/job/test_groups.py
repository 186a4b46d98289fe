"""How ranks are divided into groups, and how groups are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import UsageError
from omb_py.core.job.groups import Groups, parse_split, ranks_text
from tests.helpers.refusals import refuses


@pytest.mark.parametrize(
    ("text", "ranks", "groups"),
    [
        ("1", 3, ((0, 1, 2),)),
        ("2", 4, ((0, 1), (2, 3))),
        ("mod:2", 5, ((0, 2, 4), (1, 3))),
        ("0-1,3+4", 5, ((0, 1), (3, 4))),
        ("0-4:2,1+3", 6, ((0, 2, 4), (1, 3))),
        ("node", 4, ((0, 2), (1, 3))),
    ],
)
def test_ranks_are_divided(text: str, ranks: int, groups: Groups) -> None:
    assert parse_split(text).groups(ranks, [0, 1, 0, 1]) == groups


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("0", ValueError, "at least 1 group"),
        ("mod:0", ValueError, "at least 1 group"),
        ("0-3,3-4", ValueError, "rank 3 twice"),
        *(
            (text, ValueError, "N, mod:N, node")
            for text in ("3-1", "0-3,", "mod:two", "0-6:0", "0-99999999999", "-1")
        ),
        ("3", UsageError, "7 ranks 3 groups equal"),
        ("4", UsageError, "7 ranks at most 3 groups"),
        ("mod:4", UsageError, "7 ranks at most 3 groups"),
        ("0-3,4", UsageError, "group 2 of 2 rank 4 alone"),
        ("node", UsageError, "group 2 of 2 rank 6 alone"),
        ("0-3,4+7", UsageError, "no rank 7; last of 7 ranks 6"),
    ],
)
def test_impossible_division_refused(text: str, error: type[Exception], words: str) -> None:
    with refuses(error, words):
        parse_split(text).groups(7, [0, 0, 0, 0, 0, 0, 1])


@given(st.sets(st.integers(0, 60), min_size=1))
def test_a_group_is_read_as_it_is_written(ranks: set[int]) -> None:
    text = ranks_text(sorted(ranks))
    assert parse_split(f"{text},99").named == (tuple(sorted(ranks)), (99,))
