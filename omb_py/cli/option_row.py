"""An option of benchmarks as one row of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from omb_py.benchmarks import Benchmark
from omb_py.cli.number_types import WholeNumber

CALLS, RESULTS, CHECKING, BINDING = "calls", "results", "checking", "binding"
"""Purposes of options: how calls are made and how often, one benchmark's own table, its data, and
the choice of one binding."""


@dataclass(frozen=True)
class OptionRow:
    """An option: the names click knows it by, what click needs beside, and who has it.

    ``feature`` is what a benchmark lists in `Benchmark.options` to have it; options without one
    belong to all benchmarks, or to all that move data where ``sized`` is set, of messages of more
    than one size where ``varied`` is. ``purpose`` is what the option is for: commands that do
    something else with a benchmark leave it out, and benchmarks of the start, which make no calls,
    have none that has a purpose.
    """

    names: tuple[str, ...]
    settings: dict[str, Any]
    feature: str | None = None
    sized: bool = False
    varied: bool = False
    purpose: str = ""

    def applies(self, benchmark: Benchmark) -> bool:
        """Whether ``benchmark`` has this option."""
        if self.purpose and benchmark.start_up is not None:
            return False
        if self.feature is not None:
            return self.feature in benchmark.options
        if self.varied and benchmark.elements is not None:
            return False
        return benchmark.sized or not self.sized

    def option(self, benchmark: Benchmark) -> click.Option:
        """The option as click wants it, with the default that ``benchmark`` presets."""
        option = click.Option(self.names, **self.settings)
        if option.name in benchmark.preset:
            option.default = benchmark.preset[option.name]
        return option


def count(least: int) -> dict[str, Any]:
    """Settings of an option that takes a whole number from ``least`` on."""
    return {"type": WholeNumber(min=least), "metavar": "N"}


FLAG: dict[str, Any] = {"is_flag": True}
