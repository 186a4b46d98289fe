"""``omb-py completion SHELL``: commands, options and their values, completed by the shell.

The scripts and their protocol are click's. This module adds, only during completion, values that
are omb-py's names, arguments that are files, and the names of commands without loading one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from importlib import resources
from pathlib import Path

import click
from click.shell_completion import CompletionItem, get_completion_class

from omb_py.cli import debug_option
from omb_py.options.types import FIGURES

VARIABLE = "_OMB_PY_COMPLETE"
"""The environment variable by which click's scripts ask for completions."""

FILES = {"FILE", "DIR", "PATH", "RUN", "PROFILE", "PROGRAM", "BASE", "SCRIPT"}
FOLDERS = {"FOLDER"}
"""Words in the metavar of a parameter that is a file or folder, or either."""


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@debug_option
def command(shell: str) -> None:
    """Print the script by which a shell completes omb-py.

    bash: eval "$(omb-py completion bash)" in ~/.bashrc

    zsh: eval "$(omb-py completion zsh)" in ~/.zshrc, after compinit

    fish: omb-py completion fish > ~/.config/fish/completions/omb-py.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click has had these three since version 8"
    group = click.Group("omb-py")
    click.echo(kind(group, {}, "omb-py", VARIABLE).source())


def names_of(parameter: click.Parameter, command: str) -> Sequence[str] | None:
    """Return the values of a command's parameter, if they are omb-py's names; nothing is loaded."""
    if parameter.name == "buffer":
        from omb_py.buffers import BUFFERS

        return BUFFERS.names()
    if parameter.name in ("binding", "bindings"):
        from omb_py.bindings import BINDINGS

        return BINDINGS.names()
    if parameter.name == "algorithm":
        from omb_py.benchmarks.algorithms import words

        return words(command)
    if parameter.name in ("sweep", "config"):
        return configurations("sweeps")
    if parameter.name == "expected":
        return references()
    if parameter.name == "machine" or (command, parameter.name) == ("show", "name"):
        return configurations("machines")
    return FIGURES if parameter.name == "graph" else None


def configurations(kind: str) -> list[str]:
    """Return the sweeps or machines that come with omb-py, then those in this folder."""
    from omb_py.sweeps import catalog

    found = catalog.names(kind)
    for path in sorted(Path().glob("*.toml")):
        with suppress(OSError):
            if (b"[[experiments]]" in path.read_bytes()) == (kind == "sweeps"):
                found.append(path.name)
    return found


def references() -> list[str]:
    """Return the systems with references in omb-py, then the files of tables in this folder."""
    there = (file.name for file in (resources.files("omb_py") / "references").iterdir())
    own = (path.name for kind in ("*.csv", "*.json") for path in sorted(Path().glob(kind)))
    return [*sorted(name.removesuffix(".csv") for name in there), *own]


def join_words() -> None:
    """Undo that bash takes ``--buffer=numpy`` for three words."""
    words = os.environ.get("COMP_WORDS", "").split("\n")
    place = os.environ.get("COMP_CWORD", "")
    if "=" in words and place.isdigit():
        before = [word for word in words[: int(place)] if word != "="]
        os.environ["COMP_WORDS"] = "\n".join([*before, *words[int(place) :]])
        os.environ["COMP_CWORD"] = str(len(before))


def prepare(command: click.Command) -> click.Command:
    """Let the parameters of a command, and of a group's commands, be completed."""
    if isinstance(command, click.Group):
        for member in command.commands.values():
            prepare(member)
    for parameter in command.params:
        words = set(re.findall("[A-Z]+", parameter.metavar or ""))
        names = names_of(parameter, command.name or "")
        if names is not None:
            setattr(parameter, "shell_complete", partial(complete, names))  # noqa: B010
        elif parameter.type in (click.STRING, click.UNPROCESSED) and words & {*FILES, *FOLDERS}:
            parameter.type = click.Path(file_okay=not words <= FOLDERS)
    return command


def complete(names: Iterable[str], ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Return the names that complete a value, or the last value of a list with commas."""
    before, comma, begun = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{name}") for name in names if name.startswith(begun)]
