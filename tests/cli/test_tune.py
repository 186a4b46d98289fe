"""The conclusion of a tuning, by what was chosen and what was measured again."""

from __future__ import annotations

import pytest

from omb_py.analysis.conclusion import FAILED, PASSED, UNDECIDED
from omb_py.analysis.tuning import KEPT, Chosen, Compared, Place, Proved
from omb_py.analysis.verdict import EQUAL, FASTER, SLOWER, UNCLEAR
from omb_py.cli.tune import conclusion_of, conclusion_of_check

BETTER = Compared(0.5, 0.4, 0.6, FASTER)
WORSE = Compared(2.0, 1.9, 2.1, SLOWER)
SAME = Compared(1.0, 0.99, 1.01, EQUAL)
UNKNOWN = Compared(1.0, 0.2, 5.0, UNCLEAR)


def chosen(size: int, word: str, lost: bool = False) -> Chosen:
    return Chosen(Place("bcast", 4, size), 10.0, word, "ring", BETTER, SAME, lost)


def proved(size: int, word: str, rules: Compared) -> Proved:
    return Proved(Place("bcast", 4, size), word, 10.0, 5.0, rules, SAME)


@pytest.mark.parametrize(
    ("other", "code"), [(SAME, PASSED), (BETTER, PASSED), (WORSE, FAILED), (UNKNOWN, UNDECIDED)]
)
def test_rules_pass_where_no_size_is_slower(other: Compared, code: int) -> None:
    found = conclusion_of(
        [chosen(8, KEPT), chosen(64, "ring")],
        [proved(8, KEPT, other), proved(64, "ring", BETTER)],
        [],
        0.05,
    )
    assert found.exit_code == code
    assert "1 with an algorithm that is proved faster" in found.sentence


def test_without_any_rule_left_the_library_is_what_it_was() -> None:
    place = Place("bcast", 4, 8)
    found = conclusion_of([chosen(8, KEPT)], [proved(8, "ring", UNKNOWN)], [place], 0.05)
    assert found.exit_code == PASSED


def test_default_that_no_file_can_keep_fails() -> None:
    found = conclusion_of([chosen(8, KEPT, lost=True)], [], [], 0.05)
    assert found.exit_code == FAILED
    assert found.reasons == (
        "bcast 8 B on 4 ranks, without a rule: slower than the library as it is",
    )


@pytest.mark.parametrize(
    ("rules", "code"), [(BETTER, PASSED), (SAME, PASSED), (WORSE, FAILED), (UNKNOWN, UNDECIDED)]
)
def test_check_of_a_file_fails_by_a_rule_that_is_slower(rules: Compared, code: int) -> None:
    assert conclusion_of_check([proved(8, "ring", rules)], 0.05).exit_code == code


def test_check_of_a_file_fails_by_a_rule_that_is_not_obeyed() -> None:
    one = Proved(Place("bcast", 4, 8), "ring", 10.0, 10.0, SAME, WORSE)
    found = conclusion_of_check([one], 0.05)
    assert found.exit_code == FAILED
    assert found.reasons == ("bcast 8 B on 4 ranks, ring: not obeyed",)
