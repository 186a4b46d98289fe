"""``omb-py programs DIR``: native OMB's programs by their names, for what starts those."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from omb_py.benchmarks import all_benchmarks
from omb_py.cli import PROGRAM
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text.files import failing
from omb_py.core.text.words import count
from omb_py.options.native import has_program, program_parameters
from omb_py.options.types import NewFolder

LONGEST_INTERPRETER = 120
"""Characters of a path that every Linux takes after ``#!``."""

SCRIPT = """#!{interpreter}
{guard}# {name} of native OMB, measured by omb-py: omb-py programs
import sys

from omb_py.cli import main

sys.exit(main())
"""
THROUGH_SHELL = """'''exec' "{python}" "$0" "$@"
' '''
"""

LETTERS = "abcdfhiklmpqrstuvwxzDGIMNPRTVW"
"""The single letters of native OMB 7.4 and 7.5; 7.5 no longer has -M, and adds -q."""


@click.command("programs", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", metavar="[DIR]", type=NewFolder(), required=False)
@click.option("--options", is_flag=True, help="Print their options as a table, for documents.")
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
def command(folder: Path | None, options: bool, debug: bool) -> None:
    """Write programs by native OMB's names, which start omb-py.

    osu_latency and the others go into DIR. Put it on the PATH where ReFrame, Ramble or a script of
    yours expects native OMB. They have native OMB's options, and those of omb-py.
    """
    if options:
        click.echo("\n".join(option_table()))
        return
    if folder is None:
        raise UsageError("name the folder DIR that the programs go to")
    names = [f"{PROGRAM}{one.name}" for one in all_benchmarks() if has_program(one)]
    with failing("write", folder):
        folder.mkdir(exist_ok=True)
        for name in names:
            write(folder / name)
    click.echo(f"{count(len(names), 'program')} in {folder}: put it on the PATH")


def write(path: Path) -> None:
    """Write one program; raises `OmbError` where something else has its name."""
    if path.exists() and b"omb_py" not in path.read_bytes():
        raise OmbError(f"{path} is there and not omb-py's: choose another folder")
    path.write_text(script(path.name, sys.executable), encoding="utf-8")
    path.chmod(0o755)


def script(name: str, python: str) -> str:
    """The text of a program for an interpreter, through a shell where a line cannot name it."""
    plain = len(python) <= LONGEST_INTERPRETER and " " not in python
    guard = "" if plain else THROUGH_SHELL.format(python=python)
    return SCRIPT.format(interpreter=python if plain else "/bin/sh", guard=guard, name=name)


def option_table() -> Iterator[str]:
    """Each letter of native OMB with the option that it is here, and the programs that have it."""
    yield "| native OMB | omb-py | programs | |"
    yield "|---|---|---|---|"
    programs = [one for one in all_benchmarks() if has_program(one)]
    known = {one.name: program_parameters(one) for one in programs}
    for letter in LETTERS:
        found: dict[tuple[str, str], list[str]] = {}
        for name, options in known.items():
            for option in options:
                if isinstance(option, click.Option) and f"-{letter}" == option.opts[0]:
                    text = " ".join((option.help or "").split())
                    found.setdefault((max(option.opts, key=len), text), []).append(name)
        if letter == "h":
            found["--help", "Show this message and exit."] = list(known)
        for (long, text), names in found.items():
            many = "all" if len(names) == len(programs) else some(names)
            yield f"| `-{letter}` | `{long}` | {many} | {text} |"


def some(names: list[str]) -> str:
    """A few names, or how many there are."""
    return ", ".join(f"`{name}`" for name in names) if len(names) <= 3 else str(len(names))
