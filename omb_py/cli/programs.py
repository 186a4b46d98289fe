"""``omb-py programs DIR``: programs with native OMB's names, for tools that start those."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import click

from omb_py.benchmarks import all_benchmarks
from omb_py.cli import PROGRAM, debug_option
from omb_py.core.errors import OmbError
from omb_py.core.text.files import failing
from omb_py.core.text.words import count
from omb_py.options.native import has_program
from omb_py.options.types import NewFolder


@click.command("programs")
@click.argument("folder", metavar="DIR", type=NewFolder())
@debug_option
def command(folder: Path) -> None:
    """Link native OMB's names to omb-py.

    osu_latency and the others go into DIR. Put it on the PATH where ReFrame, Ramble or a script of
    yours expects native OMB. They have native OMB's options, and those of omb-py.
    """
    program = Path(sysconfig.get_path("scripts"), "omb-py")
    if not program.is_file():
        raise OmbError(f"there is no {program} to link to: install omb-py with pip")
    names = [f"{PROGRAM}{one.name}" for one in all_benchmarks() if has_program(one)]
    with failing("write", folder):
        folder.mkdir(exist_ok=True)
        for name in names:
            link(folder / name, program)
    click.echo(f"{count(len(names), 'program')} in {folder}: put it on the PATH")


def link(path: Path, program: Path) -> None:
    """Link a name to omb-py's ``program``; raises `OmbError` if something else has it."""
    if path.is_symlink() and path.readlink().name == "omb-py":
        path.unlink()
    elif path.exists() or path.is_symlink():
        raise OmbError(f"{path} is there and not omb-py's: choose another folder")
    path.symlink_to(program)
