"""Values on their way into a batch script: each passes a filter that fits the place it goes to."""

from __future__ import annotations

import re
import shlex
from typing import Any

from omb_py.core.errors import UsageError
from omb_py.sweeps.field_types import character

PLAIN = re.compile(r"[A-Za-z0-9_./:@=,+~^%][A-Za-z0-9_./:@=,+~^%-]*", re.ASCII)
NOT_PLAIN = re.compile(r"[^A-Za-z0-9_./:@=,+~^%-]", re.ASCII)


class Safe(str):
    """Text that has passed a filter, or that no filter needs."""


def shell(value: object) -> Safe:
    """Return one word of a shell's command, quoted; a leading ``~/`` is the home folder.

    A text that has passed a filter before is returned unchanged.

    >>> print(shell("it's"))
    'it'"'"'s'
    """
    if isinstance(value, Safe):
        return value
    text = comment(value)
    if text.startswith("~/"):
        return Safe(f'"$HOME"/{shlex.quote(text[2:])}')
    return Safe(shlex.quote(text))


def comment(value: object) -> Safe:
    """Return the text of a comment, which ends with its line.

    Raises `UsageError` if it is not one printable line, which a quoted value may not leave either.
    """
    text = str(value)
    if not text.isprintable():  # neither are line breaks
        raise UsageError(f"{text!r} has a line break or another character that no script may have")
    return Safe(text)


def directive(value: object) -> Safe:
    """Return options of a scheduler on one line, as in a machine file; raises `UsageError`."""
    text = comment(value)
    if not text.startswith("-"):
        raise UsageError(f"directive {str(value)!r}: write options of the scheduler, as in -A name")
    return text


def plain(value: object) -> Safe:
    """Return a word that means the same to every shell and every scheduler.

    Raises `UsageError` when there is a character in it that might not.
    """
    text = str(value)
    if not PLAIN.fullmatch(text):
        found = NOT_PLAIN.search(text)
        fault = f"{character(found[0])} is not permitted" if found else "this does not fit"
        raise UsageError(
            f"{text!r} is handed to the scheduler: {fault}; it must be made of letters, digits and "
            "_ . / : @ = , + ~ ^ % - without a dash in front"
        )
    return Safe(text)


def file_name(value: object) -> Safe:
    """Return a plain word that names a file in its own folder, and nothing outside.

    Raises `UsageError`.
    """
    if "/" in str(value) or str(value).startswith("."):
        raise UsageError(f"{str(value)!r} leads out of its folder: choose another name")
    return plain(value)


def check(value: Any) -> Any:
    """Return a value that a template may print: numbers, None, and filtered texts.

    Raises `TypeError` for any other text: the template lacks a filter.
    """
    if value is None or isinstance(value, int | Safe):
        return value
    raise TypeError(f"{value!r} goes into a script without a filter")
