"""Options and environment variables of points: combined, written as words, and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import NamedTuple

from omb_py.benchmarks import Benchmark
from omb_py.core.datatypes import find_types
from omb_py.core.errors import UsageError
from omb_py.core.options import Options
from omb_py.measure.sizes import asked_sizes, message_sizes
from omb_py.options.parse import long_names
from omb_py.options.table import rows
from omb_py.sweeps.targets import parameters_of
from omb_py.sweeps.toml import suggestion

PLACEMENT = "placement"
"""The words ``D H`` after a benchmark's name, as an option."""


class Setting(NamedTuple):
    """An option by its long name, and its value; True for one without a value."""

    name: str
    value: bool | int | float | str

    def words(self) -> list[str]:
        """Return the words of the command line."""
        if self.name == PLACEMENT:
            return str(self.value).split()
        if self.value is False:
            return []
        return [f"--{self.name}" if self.value is True else f"--{self.name}={self.value}"]


def combinations(
    axes: Mapping[str, tuple[bool | int | float | str, ...]],
) -> list[tuple[Setting, ...]]:
    """Return every choice of one value from each list; one empty choice if there is no list."""
    names = sorted(axes)
    return [
        tuple(map(Setting, names, values)) for values in product(*(axes[name] for name in names))
    ]


@cache
def options_of(subject: str) -> dict[str, str]:
    """Return the long names of a subject's options, and why a configuration may not set each."""
    return {
        name: getattr(one, "refused", "")
        for one in parameters_of(subject)
        for name in sorted(long_names([one]))
    }


def check(settings: tuple[Setting, ...], benchmark: str) -> None:
    """Raise `UsageError` for an option that the benchmark has not or a sweep may not set."""
    known = options_of(benchmark)
    others = {row.long.removeprefix("--"): row.refused for _, row in rows()}
    allowed = sorted(name for name, refused in known.items() if not refused)
    for setting in settings:
        if refused := known.get(setting.name, others.get(setting.name)):
            raise UsageError(f"option {setting.name!r} is not a configuration's: {refused}")
        if setting.value is False and f"no-{setting.name}" in allowed:
            raise UsageError(f"write no_{setting.name} = true instead of {setting.name} = false")
        if setting.name == "validation" and not isinstance(setting.value, bool):
            raise UsageError("option 'validation' is true or false in a sweep")
        if setting.name == PLACEMENT and not set(str(setting.value)) <= set("DHM "):
            raise UsageError("option 'placement' is two of H, D, MH and MD, as in 'D H'")
        if setting.name not in allowed:
            raise UsageError(
                f"{benchmark} has no option {setting.name!r}{suggestion(setting.name, allowed)}"
            )


OVER_MEMORY = "they need more than the memory limit (option mem_limit)"
NOT_WHOLE = "they are not whole elements, or too few for the benchmark, its ranks or its layout"


def planned_sizes(
    benchmark: Benchmark,
    options: Options,
    asked: str | None,
    ranks: int,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the sizes in bytes of a benchmark's rows, and why it would leave out others.

    ``asked`` are the sizes as the configuration has them, which the options have as well. Of a
    range, sizes below the smallest that can be measured are left out without a word. Raises
    `UsageError` when none is left.
    """
    types = find_types(options.types or (benchmark.usual_type,))
    if len(types) != 1:
        raise UsageError("name element types one by one, as in type = ['mpi_int', 'mpi_float']")
    if benchmark.elements is not None:
        return message_sizes(benchmark, options, types[0], ranks).sizes, ()
    wanted = list(asked_sizes(benchmark, options, types[0].itemsize))
    fitting = [
        size for size in wanted if benchmark.memory(options, size, ranks) <= options.memory_limit
    ]
    if not fitting:
        raise UsageError(
            f"no size of {asked or 'its own'} fits the memory limit (option mem-limit)"
        )
    chosen = replace(options, sizes=tuple(fitting), smallest=None, largest=None)
    found = message_sizes(benchmark, options if asked is None else chosen, types[0], ranks)
    if not found.sizes:
        raise UsageError(found.refusal)
    listed = asked is not None and ":" not in asked
    ragged = listed and len(found.sizes) < len(fitting)
    why = [(len(fitting) < len(wanted), OVER_MEMORY), (ragged, NOT_WHOLE)]
    return found.sizes, tuple(reason for holds, reason in why if holds)
