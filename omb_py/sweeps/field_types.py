"""Values that configurations are made of, each with the characters that it may have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, StringConstraints, WithJsonSchema
from pydantic.annotated_handlers import GetJsonSchemaHandler
from pydantic_core import CoreSchema

DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)?", re.ASCII)
SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

RUNS_CODE = frozenset(
    "BASH_ENV ENV IFS LD_AUDIT LD_PRELOAD PATH PROMPT_COMMAND PS4 PYTHONHOME PYTHONINSPECT "
    "PYTHONSTARTUP SHELLOPTS".split()
)
"""Environment variables by which a configuration could start programs."""


def seconds(value: Any) -> Any:
    """Seconds from ``90``, ``"90s"``, ``"1.5m"``, ``"2h"`` or ``"0:30:00"``.

    Raises `ValueError` when it is no duration above 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("write a duration such as '90s', '10m', '2h' or '0:30:00'")
    text = str(value)
    parts = text.split(":")
    total = 0.0
    if len(parts) in (2, 3) and all(part.isascii() and part.isdigit() for part in parts):
        for part in parts if len(parts) == 3 else ["0", *parts]:
            total = total * 60 + int(part)
    elif match := DURATION.fullmatch(text):
        total = float(match[1]) * SECONDS[match[2]]
    if not 0 < total < 1e9:
        raise ValueError(f"{text!r} is no duration such as '90s', '10m', '2h' or '0:30:00'")
    return total


def clock(duration: float) -> str:
    """Seconds as schedulers write them.

    >>> clock(5400)
    '01:30:00'
    """
    whole = round(duration)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def shortest(duration: float) -> str:
    """Seconds as configurations write them, in the largest unit that divides them.

    >>> shortest(1800)
    '30m'
    """
    units = {"h": 3600, "m": 60} if duration > 60 else {}
    unit = next((unit for unit, length in units.items() if duration % length == 0), "s")
    return f"{duration / units.get(unit, 1):g}{unit}"


def harmless(name: str) -> str:
    """The name of an environment variable that by itself starts no program."""
    if name in RUNS_CODE:
        hint = "use preload" if name == "LD_PRELOAD" else "set it before omb-py is started"
        raise ValueError(f"{name} may not be set by a configuration: {hint}")
    return name


def listed(value: Any) -> Any:
    """A single value as a list of one, so that both can be written."""
    return [value] if isinstance(value, str | int | float | bool) else value


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values of an axis: at least one, and none twice, since a point is measured once."""
    if not values:
        raise ValueError("the list is empty: leave out the key, or name a value")
    twice = {str(value) for value in values if values.count(value) > 1}
    if twice:
        raise ValueError(f"{', '.join(sorted(twice))} stands there twice")
    return values


class OneOrMany:
    """Tells editors that a list may also be one of its items."""

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        many = handler(core)
        return {"anyOf": [many["items"], many]}


class Suggested:
    """Tells editors which words there are; others may stand there too."""

    def __init__(self, words: Callable[[], Iterable[str]]) -> None:
        self.words = words

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [{"enum": sorted(self.words())}, handler(core)]}


Item = TypeVar("Item")

Several = Annotated[
    tuple[Item, ...], BeforeValidator(listed), AfterValidator(distinct), OneOrMany()
]
"""One value, or a list of different ones."""

Duration = Annotated[
    float,
    BeforeValidator(seconds),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {
                    "type": "string",
                    "pattern": rf"^({DURATION.pattern}|\d+:\d+(:\d+)?)$",
                    "examples": ["90s", "30m", "2h", "0:30:00"],
                },
            ]
        }
    ),
]
"""Seconds above 0."""

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
"""For each pattern, what finds a character that it does not permit, and what it does permit."""

Name = Annotated[str, StringConstraints(pattern=NAME)]
"""What files and jobs are named after."""

Word = Annotated[str, StringConstraints(pattern=WORD, max_length=300)]
"""What a scheduler or a module system takes: no blank, no quote, nothing a shell expands."""

Line = Annotated[str, StringConstraints(pattern=LINE)]
"""Any text on one line."""

EnvironmentName = Annotated[str, StringConstraints(pattern=VARIABLE), AfterValidator(harmless)]


def unfitting(text: str, pattern: str) -> str:
    """Why a text does not fit one of the patterns here: the character, and what may stand there."""
    forbidden, permitted = PERMITTED[pattern]
    found = forbidden.search(text)
    if found:
        return f"{character(found[0])} is not permitted in {text!r}, only {permitted}"
    return f"{text!r} does not fit: write {permitted}"


def character(text: str) -> str:
    """A character in a sentence."""
    return "a blank" if text == " " else repr(text)
