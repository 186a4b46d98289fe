"""Numbers as they were printed, and lines as wide as their headings."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from omb_py.results.readers import Problem, source_of
from omb_py.results.readers.formats.fixed_width import (
    LONGEST_LINE,
    MAX_PROBLEMS,
    Notes,
    Shown,
    columns_kept,
    lines_of,
    shown,
    word_ends,
)


@given(st.floats(0, 1e9), st.integers(0, 4))
def test_what_was_printed_may_be_the_number(number: float, decimals: int) -> None:
    text = f"{number:.{decimals}f}"
    assert shown(text).meets(Shown(number, number))
    assert shown(text).maximum - shown(text).minimum <= 1.001 * 10.0**-decimals + 1e-11


@given(st.floats(1e-6, 1e12), st.floats(1e-6, 1))
def test_numbers_that_differ_do_not_meet(number: float, part: float) -> None:
    one, other = Shown(number, number), Shown(number * (1 + part), number * (1 + part))
    assume(part > 1e-8)
    assert one.meets(one)
    assert not one.meets(other)
    assert not other.meets(one)


def test_nothing_meets_nothing() -> None:
    assert Shown(0.0, 0.0).meets(Shown(0.0, 0.0))
    assert not Shown(0.0, 0.0).meets(Shown(0.1, 0.2))
    assert shown("0.00") == Shown(0.0, 0.005)


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6))
def test_a_product_lies_between_those_of_the_ends(minimum: float, by: float, more: float) -> None:
    number = Shown(minimum, minimum + 1)
    assert number.times(by) == Shown(minimum * by, (minimum + 1) * by)
    assert number.times(by, by + more) == Shown(minimum * by, (minimum + 1) * (by + more))


def test_the_first_thousand_problems_are_named_and_the_rest_counted() -> None:
    source = source_of("file", b"x\n" * 2000)
    problems: list[Problem] = []
    notes = Notes(source, problems)
    for index in range(MAX_PROBLEMS):
        notes.add(index, "wrong")
    notes.finish()
    assert len(problems) == MAX_PROBLEMS
    assert str(problems[-1]) == "file:1000: wrong"
    notes.add(1000, "wrong")
    notes.add(1001, "wrong")
    notes.finish()
    assert [str(problem) for problem in problems[MAX_PROBLEMS:]] == [
        "file: 2 more lines that cannot be used"
    ]


def test_lines_that_are_empty_or_too_long_are_of_no_table() -> None:
    longest = "9" * LONGEST_LINE
    source = source_of("file", f"a\n\n{longest}\n{longest}9\nb\n".encode())
    assert list(lines_of(source)) == [(0, "a"), (2, longest), (4, "b")]


@pytest.mark.parametrize(
    ("labelled", "bare"),
    [
        (["0: # x", "0:  8  1.0", "1:", "no label"], ["# x", " 8  1.0", "", "no label"]),
        (["0:# x", "0:  8  1.0"], ["# x", "  8  1.0"]),
        (["[0] # x", "[0]  8 [0]  1.0"], ["# x", " 8  1.0"]),
        (["[1,0]<stdout>:# x", "[1,0]<stdout>:  8"], ["# x", "  8"]),
        (["[node-1.a:0] # x"], ["# x"]),
        (["0: # x", "0: at 0: 5"], ["# x", "at 0: 5"]),
        (["8  1.0", "0: 9"], ["8  1.0", "0: 9"]),
    ],
)
def test_labels_of_launchers_go_and_indents_stay(labelled: list[str], bare: list[str]) -> None:
    assert list(source_of("job.log", "\n".join(labelled).encode())) == bare


HEADINGS = "#bytes     t[usec]   Mbytes/sec"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("     8        1.00         8.00", True),
        ("     8        1.00        8.00", False),
        ("     8       1.00         8.00", False),
        ("     8        1.00          8.00", False),
        ("     8        1.00", False),
        ("     8 12345678901.00         8.00", True),
        ("     8 12345678901.00        8.00", False),
        ("     8  12345678901.00         8.00", True),
        ("     8   1234567890.00         8.00", False),
    ],
)
def test_words_end_where_headings_do_or_right_of_one_too_wide(line: str, kept: bool) -> None:
    assert columns_kept(line, word_ends(line), word_ends(HEADINGS)) is kept


def test_a_column_may_be_a_character_narrower_where_versions_differ() -> None:
    ends = word_ends(HEADINGS)
    one, two = "     8       1.00         8.00", "     8      1.00         8.00"
    longer = frozenset([ends[1]])
    assert columns_kept(one, word_ends(one), ends, longer)
    assert not columns_kept(two, word_ends(two), ends, longer)
