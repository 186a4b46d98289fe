"""Files of rules: which collective algorithm a library takes for which sizes.

A module of this folder has the format of one library, as `MODULES` names it. The sizes of a `Rule`
are those of the benchmarks; what a library compares with its thresholds differs by collective.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from omb_py.algorithms import MODULES, Algorithm
from omb_py.core.dataclass import dataclass
from omb_py.core.errors import UsageError

Choice: TypeAlias = Callable[[str, int, int], str | None]
"""The library's own name of the algorithm that rules take for a function, a number of ranks and a
message size in bytes; None where they leave the choice to the library."""


@dataclass(frozen=True)
class Rule:
    """An algorithm of a function on communicators of ``ranks``, for messages of some sizes.

    ``first`` and ``last`` are the smallest and the largest message size in bytes, as the benchmark
    of the function has it.
    """

    function: str
    ranks: int
    first: int
    last: int
    algorithm: Algorithm


@dataclass(frozen=True)
class LibraryBuild:
    """The library that obeys: its name, its version, and the file of its code if that is known."""

    name: str
    version: tuple[int, ...]
    file: Path | None = None

    @property
    def text(self) -> str:
        """The name and the version."""
        return f"{self.name} {'.'.join(map(str, self.version))}".rstrip()


@dataclass(frozen=True)
class RulesFormat:
    """The files of rules of one library.

    ``files`` are their names; ``write`` returns their texts, with lines ``about`` them as comments
    where the format has comments; ``read`` returns what texts make the library choose, or raises
    `UsageError` if the library refuses them. ``environment`` has the variables that make it take
    files, ``forced`` those by which a user has chosen an algorithm of a function, which rules would
    not change, and ``unforced`` their values without a choice. ``sized`` are the functions whose
    rules tell message sizes apart.
    """

    library: str
    files: tuple[str, ...]
    sized: frozenset[str]
    write: Callable[[Sequence[Rule], Sequence[str], LibraryBuild], tuple[str, ...]]
    read: Callable[[Sequence[str]], Choice]
    environment: Callable[[Sequence[Path]], dict[str, str]]
    unforced: Callable[[str], dict[str, str]]

    def forced(self, functions: Iterable[str], present: Mapping[str, str]) -> dict[str, str]:
        """Return what takes back the choices that variables ``present`` force on functions."""
        return {
            name: value
            for function in functions
            for name, value in self.unforced(function).items()
            if present.get(name, value) != value
        }


def rules_format(library: str) -> RulesFormat:
    """Return the format of a library's rules; raise `UsageError` for a library without one."""
    if library not in MODULES:
        raise UsageError(
            f"{library} has no file of rules that omb-py knows: it writes those of "
            f"{', '.join(MODULES)}"
        )
    found: RulesFormat = import_module(f"omb_py.algorithms.rules.{MODULES[library]}").FORMAT
    return found


def by_ranks(rules: Iterable[Rule]) -> dict[str, dict[int, list[Rule]]]:
    """Return rules by function and number of ranks, both ascending, each by message size."""
    found: dict[str, dict[int, list[Rule]]] = {}
    for rule in sorted(rules, key=lambda one: (one.function, one.ranks, one.first)):
        found.setdefault(rule.function, {}).setdefault(rule.ranks, []).append(rule)
    return found
