"""Examples in the help of commands."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from omb_py.cli import command

EXAMPLE = re.compile(r"^ *((?:mpiexec -n \w+ )?omb-py [a-z].*?)(?:   .*)?$", re.MULTILINE)


def examples() -> list[str]:
    """Return the command lines in the help of all commands, in their order, each once."""
    return list(dict.fromkeys(_examples(command, "omb-py")))


def _examples(one: click.Command, path: str) -> Iterator[str]:
    ctx = click.Context(one, info_name=path, terminal_width=500, max_content_width=500)
    if isinstance(one, click.Group):
        for name in one.list_commands(ctx):
            child = one.get_command(ctx, name)
            assert child is not None
            yield from _examples(child, f"{path} {name}")
    _, _, text = one.get_help(ctx).partition("\n")
    yield from EXAMPLE.findall(text.partition("\nOptions:")[0])
