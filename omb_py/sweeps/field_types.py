"""Values that configurations are made of, each with the characters that it may have."""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, StringConstraints

NUMBER = r"\d+(?:\.\d+)?"
DURATION = re.compile(rf"{NUMBER}|{NUMBER}\s*[dhms](?:\s*{NUMBER}\s*[dhms])*", re.ASCII)
PART = re.compile(rf"({NUMBER})\s*([dhms]?)", re.ASCII)
SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "": 1.0, "s": 1.0}


def seconds(value: Any) -> Any:
    """Return seconds from ``90``, ``"90s"``, ``"1.5m"``, ``"1h30m"`` or ``"0:30:00"``.

    Raises `ValueError` when it is no duration above 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("write a duration such as '90s', '10m', '1h30m' or '0:30:00'")
    text = str(value)
    parts = text.split(":")
    total = 0.0
    if len(parts) in (2, 3) and all(part.isascii() and part.isdigit() for part in parts):
        for part in parts if len(parts) == 3 else ["0", *parts]:
            total = total * 60 + int(part)
    elif DURATION.fullmatch(text):
        amounts = PART.findall(text)
        lengths = [SECONDS[unit] for _, unit in amounts]
        if lengths == sorted(set(lengths), reverse=True):  # each unit once, the longest first
            total = sum(float(number) * SECONDS[unit] for number, unit in amounts)
    if not 0 < total < 1e9:
        raise ValueError(f"{text!r} is no duration such as '90s', '10m', '1h30m' or '0:30:00'")
    return total


def clock(duration: float) -> str:
    """Return seconds as schedulers write them.

    >>> clock(5400)
    '01:30:00'
    """
    whole = round(duration)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def shortest(duration: float) -> str:
    """Return seconds as configurations write them, in the largest unit that divides them.

    >>> shortest(1800)
    '30m'
    """
    units = {"h": 3600, "m": 60} if duration > 60 else {}
    unit = next((unit for unit, length in units.items() if duration % length == 0), "s")
    return f"{duration / units.get(unit, 1):g}{unit}"


def listed(value: Any) -> Any:
    """Return a single value as a list of one, so that both can be written."""
    return [value] if isinstance(value, str | int | float | bool) else value


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return values of an axis: at least one, and each only once, since a point is measured
    once."""
    if not values:
        raise ValueError("the list is empty: leave out the key, or name a value")
    twice = {str(value) for value in values if values.count(value) > 1}
    if twice:
        raise ValueError(f"{', '.join(sorted(twice))} stands there twice")
    return values


Item = TypeVar("Item")

Several = Annotated[tuple[Item, ...], BeforeValidator(listed), AfterValidator(distinct)]
"""One value, or a list of different ones."""

Duration = Annotated[float, BeforeValidator(seconds)]
"""Seconds above 0."""


def limits_by_nodes(value: Any) -> tuple[tuple[int, float], ...]:
    """Return limits of time from one duration, or from pairs of the most nodes and a duration.

    Raises `ValueError` when it is neither, or the numbers of nodes do not ascend.
    """
    if not isinstance(value, list | tuple):
        return ((sys.maxsize, float(seconds(value))),)
    pairs = [tuple(pair) if isinstance(pair, list | tuple) else () for pair in value]
    if not pairs or any(len(pair) != 2 or type(pair[0]) is not int for pair in pairs):
        raise ValueError("write a duration, or pairs such as [[24, '3h'], [496, '24h']]")
    nodes = [pair[0] for pair in pairs]
    if nodes != sorted(set(nodes)) or nodes[0] < 1:
        raise ValueError(f"numbers of nodes must ascend from 1, not {', '.join(map(str, nodes))}")
    return tuple((most, float(seconds(limit))) for most, limit in pairs)


LimitsByNodes = Annotated[tuple[tuple[int, float], ...], BeforeValidator(limits_by_nodes)]
"""Pairs of the most nodes that a limit holds for, ascending, and seconds."""

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\z"
WORD = r"^[A-Za-z0-9_./:@=,+~^-]+\z"
LINE = r"^[^\x00-\x1f\x7f\x{85}\x{2028}\x{2029}]*\z"
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*\z"

PERMITTED = {
    NAME: (
        re.compile(r"[^A-Za-z0-9_.-]"),
        "letters, digits and _ . - (1 to 64 characters, the first a letter or a digit)",
    ),
    WORD: (
        re.compile(r"[^A-Za-z0-9_./:@=,+~^-]"),
        "letters, digits and _ . / : @ = , + ~ ^ - (at least one)",
    ),
    LINE: (re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]"), "any text on one line"),
    VARIABLE: (
        re.compile(r"[^A-Za-z0-9_]"),
        "letters, digits and _ (at least one, the first no digit)",
    ),
}
"""For each pattern, an expression for characters that it forbids, and words for those permitted."""

Name = Annotated[str, StringConstraints(pattern=NAME)]
"""A name of files and jobs."""

Word = Annotated[str, StringConstraints(pattern=WORD, max_length=300)]
"""A word for a scheduler or a module system: no blank, no quote, nothing that a shell expands."""

Line = Annotated[str, StringConstraints(pattern=LINE)]
"""Any text on one line."""

EnvironmentName = Annotated[str, StringConstraints(pattern=VARIABLE)]


def unfitting(text: str, pattern: str) -> str:
    """Return why a text does not fit a pattern of this module: the character, and those
    permitted."""
    forbidden, permitted = PERMITTED[pattern]
    found = forbidden.search(text)
    if found:
        return f"{character(found[0])} is not permitted in {text!r}, only {permitted}"
    return f"{text!r} does not fit: write {permitted}"


def character(text: str) -> str:
    """Write a character so that it can be seen in a sentence."""
    return "a blank" if text == " " else repr(text)
