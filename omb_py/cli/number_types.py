"""Numbers as values of options."""

from __future__ import annotations

from typing import Any

import click

from omb_py.numerals import parse_decimal, parse_whole

LONGEST_SECONDS = 1e9
"""Some 30 years: beyond that, the system's waits overflow."""


class WholeNumber(click.IntRange):
    """A whole number in a range."""

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if isinstance(value, str):
            try:
                value = parse_whole(value)
            except ValueError as error:
                self.fail(str(error), param, ctx)
        return int(super().convert(value, param, ctx))


class Number(click.FloatRange):
    """A finite number in a range."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        if isinstance(value, str):
            try:
                value = parse_decimal(value)
            except ValueError as error:
                self.fail(str(error), param, ctx)
        return float(super().convert(value, param, ctx))


class Seconds(Number):
    """A duration in seconds, in a range."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        seconds = super().convert(value, param, ctx)
        if seconds > LONGEST_SECONDS:
            self.fail(f"{seconds:g} is too long: use up to {LONGEST_SECONDS:g} s", param, ctx)
        return seconds
