"""Values that may only be attached to their option, as for native OMB's getopt: ``-z50,90``."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from omb_py.errors import UsageError
from omb_py.options import DEFAULT_PERCENTILES

ATTACHED = {"c": "--validation", "z": "--tail-lat"}
"""The options that are so, short and long."""

VALUES = {"c": re.compile("log(:.*)?"), "z": re.compile(r"[\d.]+(,[\d.]+)*")}
"""What their values look like."""


def detach_values(arguments: list[str], takes_value: Callable[[str], bool]) -> list[str]:
    """Rewrite ``-c`` and ``-z``, whose value may only be attached, as long options with a value.

    ``takes_value`` tells whether a letter is an option that consumes what follows it. Everything
    else, and all after ``--``, stays as it is.
    """
    rewritten: list[str] = []
    check_attached(arguments)
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return [*rewritten, argument, *rest]
        if argument in ATTACHED.values():
            rewritten.append(f"{argument}={default_value(argument)}")
            continue
        if argument.startswith("--") or not argument.startswith("-") or argument == "-":
            rewritten.append(argument)
            continue
        for position, letter in enumerate(argument[1:], start=1):
            if letter in ATTACHED:
                if position > 1:
                    rewritten.append(argument[:position])
                name = ATTACHED[letter]
                rewritten.append(f"{name}={argument[position + 1 :] or default_value(name)}")
                break
            if takes_value(letter):
                rewritten.append(argument)
                if position == len(argument) - 1:
                    rewritten += [value for value in [next(rest, None)] if value is not None]
                break
        else:
            rewritten.append(argument)
    return rewritten


def check_attached(arguments: list[str]) -> None:
    """Raise `UsageError` where a value of ``-c`` or ``-z`` stands apart, as a word of its own."""
    for option, value in pairwise(arguments):
        if option == "--":
            return
        for letter, name in ATTACHED.items():
            short = option.startswith("-") and not option.startswith("--") and option[-1] == letter
            if (short or option == name) and VALUES[letter].fullmatch(value):
                written = f"{option}{value}" if short else f"{name}={value}"
                raise UsageError(f"{option} takes its value without a blank between: {written}")


def default_value(name: str) -> str:
    """What an option with an optional value means without one."""
    if name == "--tail-lat":
        return ",".join(f"{percent:g}" for percent in DEFAULT_PERCENTILES)
    return ""
