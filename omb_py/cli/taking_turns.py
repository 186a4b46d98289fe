"""What the commands have in common whose pools or methods take turns: ``tasks``, ``checkpoint``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import click

from omb_py.core.errors import UsageError
from omb_py.options.types import WholeNumber

Command = TypeVar("Command", bound=Callable[..., Any])


def rounds_option(members: str) -> Callable[[Command], Command]:
    """``--rounds``, in which ``members`` take turns."""
    return click.option(
        "--rounds",
        type=WholeNumber(min=1),
        default=7,
        show_default=True,
        metavar="N",
        help=f"Rounds, in which {members} take turns.",
    )


def rows_options(command: Command) -> Command:
    """``--output`` and ``--force`` of rows."""
    for option in (
        click.option("--force", is_flag=True, help="Overwrite that file."),
        click.option(
            "-o", "--output", metavar="FILE", help="Append rows to this .csv or .json file."
        ),
    ):
        command = option(command)
    return command


def check_names(option: str, names: Sequence[str], known: Collection[str]) -> None:
    """Raise `UsageError` where an option names what is not ``known``."""
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"{option}: there is no {unknown[0]}: choose from {', '.join(known)}")
