"""Helpers that put facts into words for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def count(number: int, noun: str) -> str:
    """Return a number of things.

    >>> count(2, "rank")
    '2 ranks'
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def first_of(things: Sequence[object], most: int = 12) -> str:
    """Return the first few things of a list, and how many more there are.

    >>> first_of(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(things) - most} more" if len(things) > most else ""
    return ", ".join(map(str, things[:most])) + more


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
