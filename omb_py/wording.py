"""Words in which people are told of things."""

from __future__ import annotations


def count(number: int, noun: str) -> str:
    """A number of things.

    >>> count(2, "rank")
    '2 ranks'
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"
