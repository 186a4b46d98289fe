"""An option as one row of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import click

if TYPE_CHECKING:
    from omb_py.benchmarks import Benchmark

Kind: TypeAlias = "click.ParamType[Any, Any] | tuple[str, ...] | str | type[bool]"


class Option(click.Option):
    """An option of click's, and the heading under which the help shows it."""

    def __init__(self, *arguments: Any, group: str = "", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.group = group


class Row:
    """An option: its names, what it takes, the default, who has it, and click's other settings.

    ``kind`` is `bool` for a flag, words to choose from, a type, or for any text its metavar.
    ``who`` are words that `traits` must give for a benchmark, or must not give after ``!``.
    """

    def __init__(
        self, names: str, kind: Kind, default: Any, who: str, help: str = "", **settings: Any
    ) -> None:
        self.names = names.split()
        self.who = who.split()
        self.settings = settings | {"help": help}
        if default is not None:
            self.settings["default"] = default
        if kind is bool:
            self.settings["is_flag"] = True
        elif isinstance(kind, str):
            self.settings["metavar"] = kind
        else:
            self.settings["type"] = click.Choice(kind) if isinstance(kind, tuple) else kind

    def applies(self, words: frozenset[str]) -> bool:
        """Return whether an owner of these words has this option."""
        return all((word.strip("!") in words) != word.startswith("!") for word in self.who)

    def option(self, group: str, preset: Mapping[str, Any] | None = None) -> Option:
        """Return the option under a heading of the help, with its default of ``preset``, if any."""
        made = Option(self.names, group=group, **self.settings)
        if preset and made.name in preset:
            made.default = preset[made.name]
        return made


def traits(benchmark: Benchmark) -> frozenset[str]:
    """Return the words that decide which options a benchmark has: its own, and derived ones.

    ``planned`` if it moves data by a plan, ``sized`` if it has messages, ``varied`` if these have
    more than one size.
    """
    also = {
        "planned": benchmark.planned,
        "sized": benchmark.sized,
        "varied": benchmark.sized and benchmark.elements is None,
        "collective": benchmark.collective,
    }
    return benchmark.options | {word for word, holds in also.items() if holds}
