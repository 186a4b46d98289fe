"""JSON documents that may be torn or stand among other lines: whatever is whole of them.

Numbers with decimals stay text, since their digits tell how far they were rounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

DECODER = json.JSONDecoder(parse_float=str)
BLANK = re.compile(r"[ \t\n\r]*")


class TornError(ValueError):
    """A document that ends or is damaged at ``place``."""

    def __init__(self, place: int) -> None:
        super().__init__(f"at {place}")
        self.place = place


def value_at(text: str, place: int) -> tuple[Any, int]:
    """The value that begins at a place, and its end; raises `TornError` if it is not whole."""
    try:
        return DECODER.raw_decode(text, blanks(text, place))
    except (ValueError, RecursionError) as error:
        raise TornError(place) from error


def blanks(text: str, place: int) -> int:
    """The place of the next character that is not blank."""
    match = BLANK.match(text, place)
    return match.end() if match else place


def members(text: str, place: int, elements_of: str) -> Iterator[tuple[str, Any, int]]:
    """The members of the object that begins at a place: names, values, and where those begin.

    Of the list ``elements_of``, each element by itself. Raises `TornError` where the object is
    damaged or ends, after what is whole before.
    """
    place = blanks(text, blanks(text, place) + 1)
    if text[place : place + 1] == "}":
        return
    while True:
        name, place = value_at(text, place)
        place = blanks(text, place)
        if not isinstance(name, str) or text[place : place + 1] != ":":
            raise TornError(place)
        place = blanks(text, place + 1)
        if name == elements_of and text[place : place + 1] == "[":
            place = blanks(text, place + 1)
            while text[place : place + 1] != "]":
                value, end = value_at(text, place)
                yield name, value, place
                place = blanks(text, end)
                if text[place : place + 1] == ",":
                    place = blanks(text, place + 1)
                elif text[place : place + 1] != "]":
                    raise TornError(place)
            place += 1
        else:
            value, end = value_at(text, place)
            yield name, value, place
            place = end
        place = blanks(text, place)
        if text[place : place + 1] == "}":
            return
        if text[place : place + 1] != ",":
            raise TornError(place)
        place += 1


@dataclass
class Lines:
    """Indices of the lines in which places of a text lie, asked for in ascending order."""

    text: str
    place: int = 0
    index: int = 0

    def at(self, place: int) -> int:
        """The index of the line of a place."""
        self.index += self.text.count("\n", self.place, place)
        self.place = max(self.place, place)
        return self.index
