"""How ranks are divided into groups, and how groups are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.core.errors import UsageError
from omb_py.core.job.groups import Groups, parse_split, ranks_text


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
    ("text", "sentence"),
    [
        ("0", "at least 1 group"),
        ("mod:0", "at least 1 group"),
        ("0-3,3-4", "rank 3 is named twice"),
        ("3-1", "neither N, mod:N, node nor"),
        ("0-3,", "neither N, mod:N, node nor"),
        ("mod:two", "neither N, mod:N, node nor"),
        ("0-6:0", "neither N, mod:N, node nor"),
        ("0-99999999999", "neither N, mod:N, node nor"),
        ("-1", "neither N, mod:N, node nor"),
    ],
)
def test_what_names_no_groups_is_said(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse_split(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("3", "7 ranks make no 3 groups of equal size"),
        ("4", "7 ranks make at most 3 groups"),
        ("mod:4", "7 ranks make at most 3 groups"),
        ("0-3,4", "group 2 of 2 is rank 4 alone"),
        ("node", "group 2 of 2 is rank 6 alone"),
        ("0-3,4+7", "there is no rank 7; the last of 7 ranks is 6"),
    ],
)
def test_ranks_that_cannot_be_divided_so_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        parse_split(text).groups(7, [0, 0, 0, 0, 0, 0, 1])


@given(st.sets(st.integers(0, 60), min_size=1))
def test_a_group_is_read_as_it_is_written(ranks: set[int]) -> None:
    text = ranks_text(sorted(ranks))
    assert parse_split(f"{text},99").named == (tuple(sorted(ranks)), (99,))
