"""Options that all ranks of a job must have alike: all but those that are named with a reason."""

from __future__ import annotations

import click
import pytest

from omb_py.benchmarks import all_benchmarks
from omb_py.core.dataclass import values
from omb_py.core.options import NAMES, OF_ONE_RANK, Options, alike
from omb_py.options.table import parameters

FIELDS = values(Options())


def option_names() -> set[str]:
    """All names of options of benchmarks, and of their argument."""
    found = (one for benchmark in all_benchmarks() for one in parameters(benchmark))
    return {
        name
        for one in found
        for name in (one.opts if isinstance(one, click.Option) else ["SOURCE DESTINATION"])
    }


@pytest.mark.parametrize("field", FIELDS)
def test_option_is_compared_or_has_a_reason_not_to_be(field: str) -> None:
    compared = NAMES.get(field, f"--{field.replace('_', '-')}") in alike(Options())
    assert compared != bool(OF_ONE_RANK.get(field))


def test_only_options_are_named() -> None:
    assert {*OF_ONE_RANK, *NAMES} <= set(FIELDS)
    assert not set(OF_ONE_RANK) & set(NAMES)


def test_compared_options_have_their_names_on_the_command_line() -> None:
    named = {name.removeprefix("factor of ") for name in alike(Options())}
    assert named <= option_names()
