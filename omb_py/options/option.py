"""An option as one row of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from omb_py.benchmarks import Benchmark


class Option(click.Option):
    """An option of click's, and the heading under which the help shows it."""

    def __init__(self, *arguments: Any, group: str = "", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.group = group


class OptionRow:
    """An option: the names click knows it by, `Option`'s other settings, and who has it.

    ``feature`` is what a benchmark lists in `Benchmark.options` to have it; options without one
    belong to all benchmarks, or to all that move data where ``sized`` is set, of messages of more
    than one size where ``varied`` is. Benchmarks without a plan have it where ``unplanned`` is set,
    and comparisons of bindings where ``overhead`` is.
    """

    def __init__(
        self,
        *names: str,
        feature: str | None = None,
        sized: bool = False,
        varied: bool = False,
        unplanned: bool = True,
        overhead: bool = True,
        **settings: Any,
    ) -> None:
        self.names = names
        self.feature = feature
        self.sized = sized
        self.varied = varied
        self.unplanned = unplanned
        self.overhead = overhead
        self.settings = settings

    def applies(self, benchmark: Benchmark) -> bool:
        """Whether ``benchmark`` has this option."""
        if not self.unplanned and not benchmark.planned:
            return False
        if self.feature is not None:
            return self.feature in benchmark.options
        if self.varied and benchmark.elements is not None:
            return False
        return benchmark.sized or not self.sized

    def option(self, group: str, preset: Mapping[str, Any] | None = None) -> Option:
        """The option under a heading of the help, with its default of ``preset`` if that has it."""
        made = Option(self.names, group=group, **self.settings)
        if preset and made.name in preset:
            made.default = preset[made.name]
        return made
