"""Command lines in documents name commands and options that there are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import click
import pytest

from omb_py.cli import command
from omb_py.core.errors import OmbError
from tests import ROOT
from tests.docs.pages import command_lines, pages

ADDED = {"handover": "latency"}
"""Benchmarks that extending.md adds, and one that has the same options."""


def parse(words: list[str]) -> None:
    """Look a command and its options up; raises click's or our error where one is not there.

    Values are not converted: files of examples need not exist.
    """
    found: click.Command = command
    ctx = click.Context(found, info_name="omb-py")
    while isinstance(found, click.Group):
        _, rest, _ = found.make_parser(ctx).parse_args(list(words))
        if not rest or rest[0].isupper():  # a word for any benchmark
            return
        name, *words = rest
        child = found.get_command(ctx, name)
        if child is None:
            raise click.UsageError(f"no command {name}")
        found = child
        ctx = click.Context(found, parent=ctx, info_name=name, **found.context_settings)
    with mock.patch.object(click.Parameter, "handle_parse_result", unconverted):
        found.parse_args(ctx, list(words))


def unconverted(
    parameter: click.Parameter, ctx: click.Context, options: Mapping[str, Any], words: list[str]
) -> tuple[Any, list[str]]:
    """What click does with a parsed value, but not to convert it nor to call what it calls."""
    return None, words


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages()]
)
def test_commands_and_options_of_command_lines_exist(page: Path) -> None:
    for words in command_lines(page.read_text(encoding="utf-8")):
        try:
            parse([ADDED.get(word, word) for word in words])
        except (click.ClickException, OmbError) as error:
            pytest.fail(f"omb-py {' '.join(words)}: {error}")


def test_command_lines_are_found_however_they_are_started() -> None:
    text = """
```
$ mpiexec -n 2 omb-py latency -m 8     # a comment
UCX_TLS=tcp mpirun -n 2 .venv/bin/omb-py bw && omb-py show a.csv | head
omb-py list                           what there is
mpiexec -n 4 omb-py profile --events 1000 omb-py train
for n in 1 2; do mpiexec -n $n omb-py halo \\
    --steps 9; done
omb-py sweep … --dry-run
omb-py: note: no command
```
"""
    assert list(command_lines(text)) == [
        ["latency", "-m", "8"],
        ["bw"],
        ["show", "a.csv"],
        ["list"],
        ["profile", "--events", "1000", "omb-py", "train"],
        ["train"],
        ["halo", "--steps", "9"],
    ]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["latency", "--no-such-option"], "--no-such-option"),
        (["no_such_benchmark"], "no_such_benchmark"),
        (["job", "watch"], "watch"),
        (["overhead", "latency", "--round", "3"], "--round"),
    ],
)
def test_what_does_not_exist_is_found(words: list[str], named: str) -> None:
    with pytest.raises((click.ClickException, OmbError), match=named):
        parse(words)
