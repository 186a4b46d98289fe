"""Options that all ranks of a job must have alike: all but those whose row lets ranks differ."""

from __future__ import annotations

from typing import Any

import click
import pytest

from omb_py.benchmarks import all_benchmarks
from omb_py.core.dataclass import values
from omb_py.core.options import Options
from omb_py.options.option import Row
from omb_py.options.table import alike, parameters, rows

FIELDS = values(Options())
OF_ONE_RANK = {
    *("output", "force", "format", "quiet", "graph", "statistics", "full", "bus", "percentiles"),
    *("print_rate", "variant", "devices", "interface", "timeout", "debug"),
}
"""Only rank 0 writes and prints, each rank is watched by a process of its own, hosts have names of
their own for devices and interfaces: all other options decide what is called."""


def option_names() -> set[str]:
    """All names of options of benchmarks, and of their argument."""
    found = (one for benchmark in all_benchmarks() for one in parameters(benchmark))
    return {
        name
        for one in found
        for name in (one.opts if isinstance(one, click.Option) else ["SOURCE DESTINATION"])
    }


def test_options_of_one_rank_are_these() -> None:
    assert {row.name for _, row in rows() if "rank" in row.scope} == OF_ONE_RANK


@pytest.mark.parametrize("field", FIELDS)
def test_field_is_compared_unless_it_is_of_one_rank(field: str) -> None:
    compared = sum(map(len, alike(Options()).values()))
    assert compared == len(FIELDS) - len(OF_ONE_RANK)
    another: dict[str, Any] = {field: ("another value",)}
    marked = Options(**another)
    assert (alike(marked) != alike(Options())) == (field not in OF_ONE_RANK)


def test_compared_options_have_their_names_on_the_command_line() -> None:
    named = {name.removeprefix("factor of ") for name in alike(Options())}
    assert named <= option_names()


def test_row_has_the_long_name_and_the_name_of_its_value() -> None:
    cases = {
        "-m --message-size": ("--message-size", "message_size"),
        "-W --window-size window": ("--window-size", "window"),
        "--file-sync/--no-file-sync": ("--file-sync", "file_sync"),
    }
    for names, expected in cases.items():
        row = Row(names, bool, None, "")
        assert (row.long, row.name) == expected
