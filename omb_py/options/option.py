"""An option as one row of a table, and options whose older names still work."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from omb_py.core.mpi import launcher

if TYPE_CHECKING:
    from omb_py.benchmarks import Benchmark


@cache
def note_once(text: str) -> None:
    """Print a note on stderr, from rank 0 and only once in a process."""
    launcher.note(text, launcher.rank())


def note_old_name(old: str, new: str) -> None:
    """Say that ``old`` is now ``new``, and for how long it works still."""
    note_once(f"{old} is now {new}; the old name goes with the next release")


class Option(click.Option):
    """An option of click's with ``old_names``, which work with a note and are in no help.

    ``old_values`` has the values that changed with the name. ``group`` is the heading under which
    the help shows it.
    """

    def __init__(
        self,
        *arguments: Any,
        old_names: Sequence[str] = (),
        old_values: Mapping[str, str] | None = None,
        group: str = "",
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self.old_names = tuple(old_names)
        self.old_values = dict(old_values or {})
        self.group = group

    @property
    def new_name(self) -> str:
        """The name to be used: the longest."""
        return max(self.opts, key=len)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        super().add_to_parser(parser, ctx)
        for old in self.old_names:
            alias = copy.copy(self)
            alias.name, alias.opts, alias.secondary_opts = old, [old], []
            click.Option.add_to_parser(alias, parser, ctx)

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        for old in self.old_names:
            if old in opts:
                value = opts[old]
                if isinstance(value, str) and value in self.old_values:
                    note_old_name(f"{old} {value}", f"{self.new_name} {self.old_values[value]}")
                    value = self.old_values[value]
                else:
                    note_old_name(old, self.new_name)
                opts = {str(self.name): value, **opts}
        return super().handle_parse_result(ctx, opts, args)


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
