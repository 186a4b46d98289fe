"""``omb-py completion SHELL``: commands, options and their values, completed by the shell.

The scripts and what they exchange with the command are click's. What click cannot know is added
here, and only while something is completed: values that are names of ours, arguments that are
files, and the names of commands without loading one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from omb_py.core.errors import UsageError
from omb_py.options.types import Graphs, Parameter

VARIABLE = "_OMB_PY_COMPLETE"
"""The environment variable by which click's scripts ask for completions."""

FILES = {"FILE", "DIR", "PATH", "RUN", "PROFILE", "PROGRAM", "BASE", "SCRIPT"}
FOLDERS = {"FOLDER"}
"""Words in the metavar of what is a file or folder, or either."""


@click.command("completion", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
def command(shell: str, debug: bool) -> None:
    """Print the script by which a shell completes omb-py.

    bash: eval "$(omb-py completion bash)" in ~/.bashrc

    zsh: eval "$(omb-py completion zsh)" in ~/.zshrc, after compinit

    fish: omb-py completion fish > ~/.config/fish/completions/omb-py.fish
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"this version of click has no completion for {shell}")
    group = click.Group("omb-py")
    click.echo(kind(group, {}, "omb-py", VARIABLE).source())


class Names(Parameter):
    """A value that is one of some names, or several of them separated by commas.

    ``names`` gives them for a command's name.
    """

    name = "name"

    def __init__(self, names: Callable[[str], Iterable[str]]) -> None:
        self._names = names

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        before, comma, begun = incomplete.rpartition(",")
        return [
            CompletionItem(f"{before}{comma}{name}")
            for name in self._names(ctx.command.name or "")
            if name.startswith(begun)
        ]


def buffers(command: str) -> list[str]:
    """The names of buffers, none of which is loaded."""
    from omb_py.buffers import BUFFERS

    return BUFFERS.names()


def bindings(command: str) -> list[str]:
    """The names of bindings, none of which is loaded."""
    from omb_py.bindings import BINDINGS

    return BINDINGS.names()


def own_algorithms(command: str) -> Sequence[str]:
    """The algorithms of a benchmark that are made of point-to-point messages."""
    from omb_py.benchmarks.algorithms import words

    return words(command)


def sweeps(command: str) -> list[str]:
    """The sweeps that come with omb-py, then those in this folder."""
    from omb_py.sweeps import catalog

    return [*catalog.names("sweeps"), *configurations(of_sweeps=True)]


def machines(command: str) -> list[str]:
    """The machines that come with omb-py, then those in this folder."""
    from omb_py.sweeps import catalog

    return [*catalog.names("machines"), *configurations(of_sweeps=False)]


def configurations(of_sweeps: bool) -> list[str]:
    """The TOML files of this folder that plan experiments, or all others."""
    found = []
    for path in sorted(Path().glob("*.toml")):
        with suppress(OSError):
            if (b"[[experiments]]" in path.read_bytes()) == of_sweeps:
                found.append(path.name)
    return found


VALUES: Mapping[str, Callable[[str], Iterable[str]]] = {
    "algorithm": own_algorithms,
    "buffer": buffers,
    "binding": bindings,
    "bindings": bindings,
    "graph": lambda _: Graphs.kinds,
    "machine": machines,
    "sweep": sweeps,
    "config": sweeps,
}
"""The values of parameters, by the parameters' names."""


def join_words() -> None:
    """Undo that bash takes ``--buffer=numpy`` for three words."""
    words = os.environ.get("COMP_WORDS", "").split("\n")
    place = os.environ.get("COMP_CWORD", "")
    if "=" in words and place.isdigit():
        before = [word for word in words[: int(place)] if word != "="]
        os.environ["COMP_WORDS"] = "\n".join([*before, *words[int(place) :]])
        os.environ["COMP_CWORD"] = str(len(before))


def prepare(command: click.Command) -> click.Command:
    """Give the parameters of a command, and of a group's commands, types that can be completed."""
    if isinstance(command, click.Group):
        for member in command.commands.values():
            prepare(member)
    for parameter in command.params:
        words = {*(parameter.metavar or "").replace("|", " ").replace("...", "").split()}
        words = {word.strip("[]…").partition(".")[0] for word in words}
        if parameter.name in VALUES:
            parameter.type = Names(VALUES[parameter.name])
        elif (command.name, parameter.name) == ("show", "name"):
            parameter.type = Names(machines)
        elif parameter.type in (click.STRING, click.UNPROCESSED) and words & {*FILES, *FOLDERS}:
            parameter.type = click.Path(file_okay=not words <= FOLDERS)
    return command


def measured() -> dict[str, str]:
    """The names of benchmarks, each with its family."""
    from omb_py.benchmarks import all_benchmarks

    return {one.name: one.family for one in all_benchmarks()}


def complete(
    group: click.Group, names: Mapping[str, str], ctx: click.Context, incomplete: str
) -> list[CompletionItem]:
    """What completes the name of a group's command: of ``names``, each with a word on it."""
    items = [
        CompletionItem(name, help=text or None)
        for name, text in names.items()
        if name.startswith(incomplete)
    ]
    return [*items, *click.Command.shell_complete(group, ctx, incomplete)]
