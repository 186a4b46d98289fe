"""Figures of merit, taken out of a text line by line as Ramble takes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A figure of merit: a regular expression for a line, the group that is the value, and the
    expression whose last match tells the message size it belongs to."""

    name: str
    regex: str
    group: str | int
    context: str = ""


def extract(text: str, figures: Iterable[Figure]) -> dict[tuple[str, str], str]:
    """The last value of each figure for each message size; an empty size is none."""
    figures = list(figures)
    contexts = {one.context: "" for one in figures}
    found = {}
    for line in text.splitlines():
        for regex in contexts:
            if regex and (size := re.match(regex, line)):
                contexts[regex] = size[1]
        for one in figures:
            if value := re.match(one.regex, line):
                found[contexts[one.context], one.name] = value[one.group]
    return found
