"""Numbers and ranks in words, as short as they can be read."""

from __future__ import annotations

from collections.abc import Iterable

from omb_py.core.text.words import count

MAX_RANGES = 8
"""Of ranks that are named one by one; of more it is said how many they are."""

FACTORS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def ranks_text(ranks: Iterable[int]) -> str:
    """Ranks with the noun, those that follow each other as a range.

    >>> ranks_text([2]), ranks_text([5, 0, 1, 2])
    ('rank 2', 'ranks 0-2 and 5')
    """
    found = sorted(ranks)
    ranges: list[list[int]] = []
    for rank in found:
        if ranges and rank == ranges[-1][-1] + 1:
            ranges[-1][1:] = [rank]
        else:
            ranges.append([rank])
    if len(ranges) > MAX_RANGES:
        return f"{count(len(found), 'rank')}, {found[0]} to {found[-1]}"
    words = [
        f"{one[0]}{'-' if one[-1] > one[0] + 1 else ', '}{one[-1]}" if len(one) > 1 else f"{one[0]}"
        for one in ranges
    ]
    listed = ", ".join(words)
    if len(found) > 1 and ", " in listed:
        before, _, last = listed.rpartition(", ")
        listed = f"{before} and {last}"
    return f"rank{'s' if len(found) > 1 else ''} {listed}"


def scaled(value: float, unit: str = "") -> str:
    """A number with three digits at most before its unit.

    >>> scaled(0), scaled(1234), scaled(56_700_000, "B/s")
    ('0', '1.23 k', '56.7 MB/s')
    """
    for factor, prefix in FACTORS:
        if value >= 0.9995 * factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{round(value, 2):.3g} {unit}".rstrip()


def seconds_text(seconds: float) -> str:
    """A time for people.

    >>> seconds_text(0.25), seconds_text(12.3), seconds_text(75), seconds_text(7300)
    ('0.2 s', '12.3 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{max(0.0, seconds):.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def share_text(share: float | None) -> str:
    """A share in percent."""
    return "" if share is None else f"{100 * share:.0f} %"
