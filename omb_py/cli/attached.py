"""Values that may only be attached to their option, as for native OMB's getopt: ``-z50,90``."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence

from omb_py.core.errors import UsageError
from omb_py.core.options import DEFAULT_PERCENTILES

ATTACHED = {"c": "--validation", "z": "--tail-lat"}
"""The options that are so, short and long."""

VALUES = {
    "--validation": re.compile("log(:.*)?"),
    "--tail-lat": re.compile(r"[\d.]+(,[\d.]+)*"),
}
"""What their values look like."""


def detach_values(arguments: list[str], takes_value: Callable[[str], bool]) -> list[str]:
    """Rewrite ``-c`` and ``-z``, whose value may only be attached, as long options with a value.

    ``takes_value`` tells whether a letter is an option that consumes what follows it. Everything
    else, and all after ``--``, stays as it is. Raises `UsageError` where their value stands apart.
    """
    rewritten: list[str] = []
    rest = deque(arguments)
    while rest:
        argument = rest.popleft()
        if argument == "--":
            return [*rewritten, argument, *rest]
        if argument in ATTACHED.values():
            rewritten.append(f"{argument}={default_value(argument, f'{argument}=', rest)}")
            continue
        if argument.startswith("--") or not argument.startswith("-") or argument == "-":
            rewritten.append(argument)
            continue
        for position, letter in enumerate(argument[1:], start=1):
            if letter in ATTACHED:
                if position > 1:
                    rewritten.append(argument[:position])
                name = ATTACHED[letter]
                value = argument[position + 1 :] or default_value(name, argument, rest)
                rewritten.append(f"{name}={value}")
                break
            if takes_value(letter):
                rewritten.append(argument)
                if position == len(argument) - 1 and rest:
                    rewritten.append(rest.popleft())
                break
        else:
            rewritten.append(argument)
    return rewritten


def default_value(name: str, written: str, following: Sequence[str]) -> str:
    """What an option with an optional value means without one.

    Raises `UsageError` where the word after it, as ``written``, looks like its value.
    """
    if following and VALUES[name].fullmatch(following[0]):
        option, joined = written.rstrip("="), f"{written}{following[0]}"
        raise UsageError(f"{option} takes its value without a blank between: {joined}")
    if name == "--tail-lat":
        return ",".join(f"{percent:g}" for percent in DEFAULT_PERCENTILES)
    return ""
