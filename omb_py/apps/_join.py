"""The join of two tables by sorting: what pandas does by hashing, with functions CuPy has too."""

from __future__ import annotations

from typing import Any

DIGIT_BITS = 16
"""Of a digit of the radix sort: NumPy sorts numbers so short by counting them."""


def join(
    xp: Any, left_key: Any, left_value: Any, right_key: Any, right_value: Any
) -> tuple[Any, Any, Any]:
    """Key, left value and right value of every pair of rows with the same key, in key order.

    The inner join of two tables in columns. Keys are whole numbers, not negative; each may stand
    in many rows of both tables.
    """
    left_key, order = sorted_keys(xp, left_key)
    left_value = left_value[order]
    right_key, order = sorted_keys(xp, right_key)
    right_value = right_value[order]
    first = xp.searchsorted(right_key, left_key, side="left")
    matches = xp.searchsorted(right_key, left_key, side="right") - first
    left, right = pairs(xp, first, matches)
    return left_key[left], left_value[left], right_value[right]


def sorted_keys(xp: Any, keys: Any) -> tuple[Any, Any]:
    """The keys in order, and the places that they had: a radix sort from the last digit on."""
    rest = int(keys.max()) if keys.size else 0
    order = xp.argsort(keys.astype("uint16"), kind="stable")
    keys = keys[order]
    shift = DIGIT_BITS
    while rest >> shift:
        step = xp.argsort((keys >> shift).astype("uint16"), kind="stable")
        keys, order = keys[step], order[step]
        shift += DIGIT_BITS
    return keys, order


def pairs(xp: Any, first: Any, matches: Any) -> tuple[Any, Any]:
    """The rows of each pair, left and right, where a left row has ``matches`` from ``first`` on."""
    left = xp.flatnonzero(matches)
    lengths = matches[left]
    return runs(xp, left, lengths, 0), runs(xp, first[left], lengths, 1)


def runs(xp: Any, starts: Any, lengths: Any, step: int) -> Any:
    """Whole numbers in runs: from each start on so many, each greater by ``step`` than the last.

    The sum over what each adds to the one before; CuPy cannot repeat by an array of lengths.
    """
    ends = xp.cumsum(lengths)
    added = xp.full(int(ends[-1]) if ends.size else 0, step, "int64")
    added[:1] = starts[:1]
    last = starts[:-1] + step * (lengths[:-1] - 1)
    added[ends[:-1]] = starts[1:] - last
    return xp.cumsum(added, out=added)
