"""Numbers as values of options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from omb_py.core.text.numbers import parse_decimal, parse_whole

LONGEST_SECONDS = 1e9
"""Some 30 years: beyond that, the system's waits overflow."""


def number_of(
    kind: click.ParamType[Any, Any], parse: Callable[[str], Any], value: Any, *where: Any
) -> Any:
    """A text as ``parse`` reads it, or what a value of ``kind`` is already; fails as click does."""
    try:
        return parse(value) if isinstance(value, str) else value
    except ValueError as error:
        kind.fail(str(error), *where)


class WholeNumber(click.IntRange):
    """A whole number in a range."""

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        number = number_of(self, parse_whole, value, param, ctx)
        return int(super().convert(number, param, ctx))


class Number(click.FloatRange):
    """A finite number in a range."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        number = number_of(self, parse_decimal, value, param, ctx)
        return float(super().convert(number, param, ctx))


class Seconds(Number):
    """A duration in seconds, in a range."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        seconds = super().convert(value, param, ctx)
        if seconds > LONGEST_SECONDS:
            self.fail(f"{seconds:g} is too long: use up to {LONGEST_SECONDS:g} s", param, ctx)
        return seconds
