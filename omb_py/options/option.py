"""An option as one row of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import click

if TYPE_CHECKING:
    from omb_py.benchmarks import Benchmark

Kind: TypeAlias = "click.ParamType[Any, Any] | tuple[str, ...] | str | type[bool]"


class Option(click.Option):
    """An option of click's, the heading under which the help shows it, and its row's facts."""

    def __init__(
        self,
        *arguments: Any,
        group: str = "",
        scope: frozenset[str] = frozenset(),
        refused: str = "",
        **settings: Any,
    ) -> None:
        """``scope`` and ``refused`` are those of its `Row`."""
        super().__init__(*arguments, **settings)
        self.group = group
        self.scope = scope
        self.refused = refused


class Row:
    """An option: its names, what it takes, the default, who has it, and click's other settings.

    ``kind`` is `bool` for a flag, words to choose from, a type, or for any text its metavar.
    ``who`` are words that `traits` must give for a benchmark, or must not give after ``!``; a run
    of one binding has the word ``single``, one of pairs ``pairwise``.

    ``scope`` has ``launch`` if all benchmarks of a launch have the same value, ``alone`` if several
    of them cannot share one; ``rank`` if ranks may have different values, because only rank 0
    writes and prints, each is watched by a process of its own, or a host has names of its own;
    ``application`` if applications have the option, too. ``refused`` is why a sweep may not set it.
    """

    def __init__(
        self,
        names: str,
        kind: Kind,
        default: Any,
        who: str,
        help: str = "",
        scope: str = "",
        refused: str = "",
        **settings: Any,
    ) -> None:
        self.names = names.split()
        self.who = who.split()
        self.scope = frozenset(scope.split())
        self.refused = refused
        self.settings = settings | {"help": help}
        if default is not None:
            self.settings["default"] = default
        if kind is bool:
            self.settings["is_flag"] = True
        elif isinstance(kind, str):
            self.settings["metavar"] = kind
        else:
            self.settings["type"] = click.Choice(kind) if isinstance(kind, tuple) else kind

    @property
    def long(self) -> str:
        """The long name, with dashes."""
        return max((one.split("/")[0] for one in self.names if one[0] == "-"), key=len)

    @property
    def name(self) -> str:
        """The name of its value: the word without dashes behind its names, or the long name."""
        return self.names[-1] if self.names[-1][0] != "-" else self.long[2:].replace("-", "_")

    def applies(self, words: frozenset[str]) -> bool:
        """Return whether an owner of these words has this option."""
        return all((word.strip("!") in words) != word.startswith("!") for word in self.who)

    def option(self, group: str, preset: Mapping[str, Any] | None = None) -> Option:
        """Return the option under a heading of the help, with its default of ``preset``, if any."""
        facts: dict[str, Any] = {"group": group, "scope": self.scope, "refused": self.refused}
        made = Option(self.names, **facts, **self.settings)
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
