"""A check passes only if everything that was asked was judged, and held."""

from __future__ import annotations

import pytest

from omb_py.analysis.conclusion import Conclusion, conclude, facts
from omb_py.analysis.failures import Failure

SLOW = Failure("latency, 8 B: 2.0 µs, allowed is 1.0 µs")


def concluded(
    judged: int,
    failed: tuple[Failure, ...] = (),
    undecided: tuple[str, ...] = (),
    missing: tuple[str, ...] = (),
) -> Conclusion:
    """A conclusion about points."""
    return conclude(judged, failed, undecided, missing, held="within the limit")


@pytest.mark.parametrize(
    ("found", "code", "sentence"),
    [
        (concluded(3), 0, "PASS: 3 of 3 points within the limit"),
        (concluded(0), 7, "CANNOT TELL: there is no point to judge"),
        (concluded(3, (SLOW,)), 4, "FAIL: 2 of 3 points within the limit"),
        (
            concluded(2, undecided=("bw",)),
            7,
            "CANNOT TELL: 2 of 3 points within the limit, 1 cannot be judged (bw)",
        ),
        (
            concluded(1, missing=("a", "b", "c", "d")),
            7,
            "CANNOT TELL: 1 of 5 points within the limit, 4 not measured (a; b; c and 1 more)",
        ),
        (
            concluded(1, (SLOW,), ("a",), ("b",)),
            4,
            "FAIL: 0 of 3 points within the limit, 1 cannot be judged (a), 1 not measured (b)",
        ),
        (
            concluded(2, (Failure("r.txt: the data was wrong", on_top=True),)),
            4,
            "FAIL: 2 of 2 points within the limit",
        ),
    ],
)
def test_conclusion_passes_only_what_was_all_judged_and_held(
    found: Conclusion, code: int, sentence: str
) -> None:
    assert (found.exit_code, found.sentence) == (code, sentence)
    assert list(found.lines())[-1] == sentence


def test_reasons_beyond_twenty_are_counted() -> None:
    found = concluded(22, (SLOW,) * 22)
    lines = list(found.lines())
    assert lines[-2:] == ["FAIL: and 2 more reasons", "FAIL: 0 of 22 points within the limit"]
    assert len(lines) == 22


def test_document_has_the_same_keys_with_and_without_a_limit() -> None:
    assert facts(None, ["all"]).keys() == facts(concluded(1), ["all"]).keys()
