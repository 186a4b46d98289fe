"""The choice among the library's own collective algorithms, by words.

A module of this folder with ``TABLE`` has the algorithms of one library: for each collective those
that can be asked for, by the library's own environment variables. A word means the same algorithm
in every library; `omb_py.algorithms.patterns` defines each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from re import Pattern
from types import MappingProxyType
from typing import TypeAlias

from omb_py.algorithms import patterns
from omb_py.core.dataclass import dataclass, field, replace
from omb_py.core.errors import UnsupportedError, UsageError
from omb_py.core.text.words import nearest

DEFAULT = "default"
"""The word for the library's own choice."""

MODULES = {"MPICH": "mpich", "Open MPI": "openmpi", "NCCL": "nccl"}
"""Libraries, MPI's by mpi4py's names for them, and the modules with their tables."""

Requirement: TypeAlias = Callable[[patterns.CollectiveShape], str | None]
"""The reason why the library would quietly take another algorithm for a call, or None."""


@dataclass(frozen=True)
class Algorithm:
    """An algorithm of one collective in one library.

    ``word`` is its name here, ``value`` the library's own. ``rounds`` has the messages of one call
    by the algorithm's definition. ``requires`` returns the reason why the library would take
    another without a warning; ``settings`` are further variables that it needs. ``with_segment``
    returns the algorithm with another segment size in bytes, if it cuts messages.
    """

    word: str
    value: str
    rounds: patterns.Pattern
    requires: tuple[Requirement, ...] = ()
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    with_segment: Callable[[int], Algorithm] | None = None

    def refusal(self, shape: patterns.CollectiveShape) -> str | None:
        """Return why the library would refuse it for this call, if that is known beforehand."""
        reasons = (requirement(shape) for requirement in self.requires)
        return next((reason for reason in reasons if reason is not None), None)


@dataclass(frozen=True)
class AlgorithmLibrary:
    """The environment variables by which a library is made to use an algorithm.

    ``table`` has the algorithms of each function, by MPI's name in lower case; ``variables`` are
    those that make the library use one for a function. ``rivals`` are the names of variables with
    which users choose otherwise, so that ours would have no effect. ``in_effect`` are MPI_T's
    control variables of the started library, with the values that they then have.
    ``refusal`` is part of the error by which it refuses a call that the algorithm cannot serve,
    from version ``refuses_since`` on; none if it always takes another algorithm quietly.
    ``refusing`` are MPI_T's control variables without which it does so, too. ``is_mpi`` is False if
    a binding calls the library itself, which then reads its variables for each communicator.
    """

    name: str
    table: Mapping[str, tuple[Algorithm, ...]]
    variables: Callable[[str, Algorithm], dict[str, str]]
    rivals: Pattern[str] = re.compile("(?!)")
    in_effect: Callable[[str, Algorithm], dict[str, int]] = lambda function, algorithm: {}
    refusal: str = ""
    refuses_since: tuple[int, ...] = ()
    refusing: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    is_mpi: bool = True

    def words(self, function: str) -> tuple[str, ...]:
        """Return the words for a function's algorithms; none if there is no choice."""
        return tuple(algorithm.word for algorithm in self.table.get(function, ()))

    def algorithm(self, function: str, word: str) -> Algorithm:
        """Return the algorithm of a function called ``word``, as ``pipeline`` or ``pipeline:8192``.

        Raises `UsageError`, which lists the known words, if there is none; `UnsupportedError` if
        only another library has it.
        """
        known = {algorithm.word: algorithm for algorithm in self.table.get(function, ())}
        meant = without_segment(word).lower().replace("-", "_")
        found = known.get(meant)
        if found is not None:
            return with_segment_of(found, word) if word != without_segment(word) else found
        if not known:
            raise UsageError(
                f"--coll-algorithm {word}: {self.name} has no choice of algorithms for "
                f"MPI_{function.capitalize()}: leave it out, or ask for {DEFAULT}"
            )
        near = nearest(word, known)
        hint = f"did you mean {near[0]}? " if near else ""
        elsewhere = any(meant in library(name).words(function) for name in MODULES)
        kind = UnsupportedError if elsewhere else UsageError
        raise kind(
            f"{self.name} has no algorithm {word!r} for MPI_{function.capitalize()}: {hint}choose "
            f"from {', '.join((DEFAULT, *known))}"
        )

    def environment(
        self, function: str, algorithm: Algorithm, present: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the environment variables to set before the library reads them.

        Raises `UsageError` if one of those ``present`` has another value, or may go before them.
        """
        wanted = self.variables(function, algorithm)
        for name, value in wanted.items():
            if present.get(name, value) != value:
                raise UsageError(
                    f"{name}={present[name]} is set, but --coll-algorithm {algorithm.word} "
                    f"needs {name}={value}: unset it, or leave out the option"
                )
        for name in sorted(present.keys() - wanted.keys()):
            if self.rivals.fullmatch(name) and present[name]:
                raise UsageError(
                    f"{name}={present[name]} is set, which may go before --coll-algorithm "
                    f"{algorithm.word}: unset it, or leave out the option"
                )
        return wanted


def without_segment(word: str) -> str:
    """Return an algorithm's word without the bytes of a segment, as of ``pipeline:8192``."""
    return word.partition(":")[0]


def with_segment_of(algorithm: Algorithm, word: str) -> Algorithm:
    """Return an algorithm with the segment size of a word; raise `UsageError` if it has none."""
    _, _, segment = word.partition(":")
    if algorithm.with_segment is None:
        raise UsageError(
            f"--coll-algorithm {algorithm.word}:{segment}: {algorithm.word} does not cut messages "
            "into segments: leave out the size"
        )
    if not segment.isdecimal() or int(segment) == 0:
        raise UsageError(
            f"--coll-algorithm {algorithm.word}:{segment}: name the bytes of a segment, as in "
            f"{algorithm.word}:8192"
        )
    return replace(algorithm.with_segment(int(segment)), word=f"{algorithm.word}:{int(segment)}")


def library(name: str) -> AlgorithmLibrary:
    """Return the library of this name, an MPI library as mpi4py calls it.

    Raises `UsageError` if its algorithms are not known here.
    """
    if (module := MODULES.get(name)) is not None:
        found: AlgorithmLibrary = import_module(f"omb_py.algorithms.{module}").LIBRARY
        return found
    raise UsageError(
        f"--coll-algorithm: the algorithms of {name} are not known here, only those of "
        f"{', '.join(MODULES)}: leave it out, or set the library's own variables and name them "
        "with --label"
    )


def function_of(benchmark: str) -> str:
    """Return MPI's name of a collective benchmark's function, in lower case."""
    name = benchmark.removesuffix("_persistent")
    return name if name == benchmark else f"{name}_init"
