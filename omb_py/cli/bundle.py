"""``omb-py bundle``: Python and omb-py in one file, which each node of a job reads once."""

from __future__ import annotations

import shlex
from pathlib import Path

import click


@click.command("bundle", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--include",
    multiple=True,
    metavar="NAME",
    help="Also this distribution, as cupy-cuda13x, or this extra of omb-py, as native, with all "
    "that it requires. Repeatable.",
)
@click.option("--force", is_flag=True, help="Replace the bundle in DIR.")
def command(folder: Path, include: tuple[str, ...], force: bool) -> None:
    """Pack Python and omb-py into one file that each node reads once.

    omb-py bundle DIR && mpiexec -n 8 DIR/omb-py allreduce

    Writes DIR/omb-py.tar and the script DIR/omb-py. The first rank of each node extracts the file
    into TMPDIR, or OMB_PY_NODE_DIR; all start from there.
    """
    from omb_py.sweeps import bundle

    written = bundle.write(folder, bundle.gather(include), force)
    title = str(folder / bundle.IMAGE)
    total = bundle.Written(
        title, sum(one.files for one in written), sum(one.nbytes for one in written)
    )
    width = max(len(one.title) for one in (*written, total))
    click.echo(f"{'':<{width}}  files      MB")
    for one in (*written, total):
        click.echo(f"{one.title:<{width}}  {one.files:5d}  {one.nbytes / 1e6:6.1f}")
    script = folder.absolute() / bundle.SCRIPT
    click.echo(f"next: mpiexec -n 8 {shlex.quote(str(script))} allreduce", err=True)
