"""The conclusion of a check: PASS, FAIL or CANNOT TELL, and the exit code that a script acts on.

A site drains a node, or merges an upgrade, by this code. So a check passes only if everything that
was asked was judged, and held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from omb_py.analysis.failures import Failure
from omb_py.core.text.words import count, first_of

PASSED = 0

FAILED = 4
"""Exit code of a check that found something worse than allowed, or data that was wrong."""

UNDECIDED = 7
"""Exit code of a check in which something could not be judged, and nothing failed."""

WORDS = {PASSED: "PASS", FAILED: "FAIL", UNDECIDED: "CANNOT TELL"}

MOST_NAMED = 3
"""Points without a judgement that a sentence names."""

MAX_REASONS = 20
"""Reasons to fail that are printed; of the others only their number."""


@dataclass(frozen=True)
class Conclusion:
    """The outcome of a check, with its exit code and its sentence.

    ``judged`` counts the things that held or failed, ``failed`` are the reasons to fail.
    ``undecided`` names what was measured and could not be judged, ``missing`` what was asked for
    and not measured. ``what`` is the noun of the things, ``held`` the words for those that held.
    ``besides`` are sentences on what else could not be judged, which is none of the things.
    """

    judged: int
    failed: tuple[Failure, ...]
    undecided: tuple[str, ...]
    missing: tuple[str, ...]
    what: str
    held: str
    besides: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """`PASSED`, `FAILED` or `UNDECIDED`."""
        if self.failed:
            return FAILED
        unjudged = self.undecided or self.missing or self.besides
        return PASSED if self.judged and not unjudged else UNDECIDED

    @property
    def reasons(self) -> tuple[str, ...]:
        """A sentence for each failure."""
        return tuple(one.reason for one in self.failed)

    @property
    def sentence(self) -> str:
        """The conclusion in a sentence: how many of how many, and what was not judged."""
        asked = self.judged + len(self.undecided) + len(self.missing)
        if not asked:
            return f"{WORDS[self.exit_code]}: there is no {self.what} to judge"
        held = max(0, self.judged - sum(not one.on_top for one in self.failed))
        parts = [f"{held} of {count(asked, self.what)} {self.held}"]
        for names, why in ((self.undecided, "cannot be judged"), (self.missing, "not measured")):
            if names:  # which have commas
                parts.append(f"{len(names)} {why} ({first_of(names, MOST_NAMED, '; ')})")
        if self.besides:
            parts.append(f"not judged: {first_of(self.besides, MOST_NAMED, '; ')}")
        return f"{WORDS[self.exit_code]}: {', '.join(parts)}"

    def lines(self) -> Iterator[str]:
        """Yield the first `MAX_REASONS` reasons to fail, then the conclusion."""
        yield from (f"FAIL: {reason}" for reason in self.reasons[:MAX_REASONS])
        if len(self.failed) > MAX_REASONS:
            yield f"FAIL: and {len(self.failed) - MAX_REASONS} more reasons"
        yield self.sentence


def facts(
    conclusion: Conclusion | None, summary: Iterable[str], remarks: Sequence[str] = ()
) -> dict[str, Any]:
    """Return what is said of a check for JSON, in the same keys for every command.

    All are lists of sentences or names but ``conclusion``, a sentence, or None if no limit was
    asked for. ``summary`` is what text has below its tables about all that was judged.
    """
    said = {"summary": list(summary), "remarks": list(remarks)}
    if conclusion is None:
        return {**said, "conclusion": None, "failures": [], "undecided": [], "missing": []}
    return {
        **said,
        "conclusion": conclusion.sentence,
        "failures": list(conclusion.reasons),
        "undecided": [*conclusion.undecided, *conclusion.besides],
        "missing": list(conclusion.missing),
    }


def conclude(
    judged: int,
    failed: Sequence[Failure],
    undecided: Sequence[str],
    missing: Sequence[str],
    *,
    what: str = "point",
    held: str,
    besides: Sequence[str] = (),
) -> Conclusion:
    """Return PASS only if everything that was asked was judged and held, else FAIL or CANNOT TELL.

    ``judged`` is the number of things that held or failed. FAIL: there are ``failed`` ones.
    CANNOT TELL: nothing failed, and there are ``undecided`` or ``missing`` ones, or something
    ``besides``, or nothing was judged at all. This is the only place that decides that.
    """
    return Conclusion(
        judged, tuple(failed), tuple(undecided), tuple(missing), what, held, tuple(besides)
    )


def within(allowed: float) -> str:
    """Return the words for points that are not more than ``allowed`` times slower.

    >>> within(1.05)
    'at most 1.050x slower'
    """
    from omb_py.analysis.verdict import factor

    return f"at most {factor(allowed)} slower"
