"""Values that may only be attached to their option, as for native OMB's getopt: ``-z50,90``."""

from __future__ import annotations

from collections.abc import Callable

from omb_py.options import DEFAULT_PERCENTILES

ATTACHED = {"c": "--validation", "z": "--tail-lat"}
"""The options that are so, short and long."""


def detach_values(arguments: list[str], takes_value: Callable[[str], bool]) -> list[str]:
    """Rewrite ``-c`` and ``-z``, whose value may only be attached, as long options with a value.

    ``takes_value`` tells whether a letter is an option that consumes what follows it. Everything
    else, and all after ``--``, stays as it is.
    """
    rewritten: list[str] = []
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


def default_value(name: str) -> str:
    """What an option with an optional value means without one."""
    if name == "--tail-lat":
        return ",".join(f"{percent:g}" for percent in DEFAULT_PERCENTILES)
    return ""
