"""Helpers that put facts into words for people: counts, lists, ranks, texts on one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

UNCHANGED = ("series",)
"""Nouns whose plural is the singular."""


def count(number: int, noun: str) -> str:
    """Return a number of things.

    >>> count(2, "rank"), count(2, "series")
    ('2 ranks', '2 series')
    """
    return f"{number} {noun}{'' if number == 1 or noun in UNCHANGED else 's'}"


def first_of(things: Sequence[object], most: int = 12, between: str = ", ") -> str:
    """Return the first few things of a list, with a text ``between`` them, and how many more.

    >>> first_of(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(things) - most} more" if len(things) > most else ""
    return between.join(map(str, things[:most])) + more


SHORTEST_PART = 3
"""Characters of the shortest word that counts as a part of a name."""


def nearest(word: str, names: Iterable[str], most: int = 1) -> list[str]:
    """Return the names that were probably meant by ``word``, at most ``most``, best first.

    Names that begin with it come first, the shortest before others, then misspelt ones, then names
    that share a word with it. Case, hyphens and underscores do not matter.

    >>> nearest("cores", ["binding", "cores_per_node"])
    ['cores_per_node']
    """
    from difflib import get_close_matches  # which no rank needs at its start

    spelt = {name: name.lower().replace("-", "_") for name in sorted(names, key=len)}
    wanted = word.lower().replace("-", "_")
    joined = wanted.replace("_", "")
    long = len(joined) >= SHORTEST_PART
    begun = [name for name in spelt if long and spelt[name].replace("_", "").startswith(joined)]
    close = get_close_matches(wanted, spelt.values(), n=max(most, 1))
    misspelt = [name for match in close for name in spelt if spelt[name] == match]
    related = [name for name in spelt if shared_words(wanted, spelt[name])]
    return list(dict.fromkeys([*begun, *misspelt, *related]))[:most]


def shared_words(first: str, second: str) -> set[str]:
    """Return the words that two names in lower case have in common, singular or plural."""
    parts = ({part.rstrip("s") for part in name.split("_")} for name in (first, second))
    return {part for part in set.intersection(*parts) if len(part) > SHORTEST_PART}


MAX_RANGES = 8
"""Ranges that are named; of more the others are counted."""

Range = tuple[int, int]
"""The first and the last number of some that follow each other."""


def some_ranks(ranks: Iterable[int]) -> str:
    """Return ranks in words.

    >>> some_ranks([3, 1, 2, 7])
    'ranks 1-3, 7'
    """
    return in_words(ranges_of(ranks))


def ranges_of(numbers: Iterable[int]) -> list[Range]:
    """Return the ranges of numbers that follow each other, in order."""
    found: list[Range] = []
    for number in sorted(set(numbers)):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


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
    one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
    return f"rank{'' if one else 's'} {first_ranges(ranges)}"


def first_ranges(ranges: Sequence[Range]) -> str:
    """Return ranges of numbers as text; those beyond the first few are counted.

    >>> first_ranges([(1, 3), (7, 7)])
    '1-3, 7'
    """
    named = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges[:MAX_RANGES])
    others = sum(b - a + 1 for a, b in ranges[MAX_RANGES:])
    return named + (f" and {others} more" if others else "")


def printable(text: str) -> str:
    """Return a text with JSON's escapes for what a terminal may obey.

    Newlines, tabs and other spaces stay.
    """
    if text.replace("\n", "").replace("\t", "").replace("\xa0", "").isprintable():
        return text
    from unicodedata import category

    kept = (c.isprintable() or c in "\n\t" or category(c) == "Zs" for c in text)
    return "".join(c if keep else f"\\u{ord(c):04x}" for c, keep in zip(text, kept, strict=True))


class Screen:
    """A stream whose texts are `printable`, for files, names and programs are strangers."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        self.stream.write(printable(text))
        return len(text)


def behind(stream: Any) -> Any:
    """Return the stream behind a `Screen`, for escape sequences of omb-py's own."""
    return getattr(stream, "stream", stream)


IN_CSV = re.compile(r"[\x00-\x1f#\x7f-\x9f]|^[=+@-]|%(?=[0-9A-F]{2})")
"""What a cell has as ``%`` and two digits: comments and control characters, and what spreadsheets
run at its beginning."""


def csv_cell(text: str) -> str:
    """Return a text as a cell of a CSV file, as in ``%3D1+1`` for ``=1+1``."""
    return IN_CSV.sub(lambda found: f"%{ord(found[0]):02X}", text)


def from_csv_cell(cell: str) -> str:
    """Return the text of a cell that `csv_cell` made."""
    return re.sub("%([0189][0-9A-F]|2[35BD]|3D|40|7F)", lambda one: chr(int(one[1], 16)), cell)


def one_line(text: str) -> str:
    """Return a text without characters that would break the line it is in."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def one_word(text: str | None) -> str:
    """Return a text on one line and without spaces; ``-`` for none."""
    return "_".join(one_line(text or "").split()) or "-"
