"""Ranks and texts of files, in words that fit into a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MAX_RANGES = 8
"""Ranges of ranks that are named; of more the others are counted."""

Range = tuple[int, int]
"""The first and the last rank of some that follow each other."""


def some_ranks(ranks: Iterable[int]) -> str:
    """Return ranks in words.

    >>> some_ranks([3, 1, 2, 7])
    'ranks 1-3, 7'
    """
    found: list[Range] = []
    for rank in sorted(set(ranks)):
        if found and found[-1][1] == rank - 1:
            found[-1] = (found[-1][0], rank)
        else:
            found.append((rank, rank))
    return in_words(found)


def other_ranks(ranks: int, known: Iterable[int]) -> str:
    """Return the ranks of a job other than those known, in words; an empty text if there are none.

    >>> other_ranks(6, [1, 2])
    'ranks 0, 3-5'
    """
    found, first = [], 0
    for rank in [*sorted(set(known)), ranks]:
        if rank > first:
            found.append((first, rank - 1))
        first = rank + 1
    return in_words(found)


def in_words(ranges: Sequence[Range]) -> str:
    """Return ranges of ranks in words; those beyond the first few are counted."""
    if not ranges:
        return ""
    named = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges[:MAX_RANGES])
    others = sum(b - a + 1 for a, b in ranges[MAX_RANGES:])
    one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    return f"rank{'' if one else 's'} {named}" + (f" and {others} more" if others else "")


def one_line(text: str) -> str:
    """Return a text without characters that would break the line it is in."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def one_word(text: str | None) -> str:
    """Return a text on one line and without spaces; ``-`` for none."""
    return "_".join(one_line(text or "").split()) or "-"
