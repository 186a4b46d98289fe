"""``omb-py convert``: results of any suite as one file of ours."""

from __future__ import annotations

from pathlib import Path

import click

from omb_py.cli.analysis_options import name_option, note, read, row_options
from omb_py.core.errors import UsageError, needing
from omb_py.core.text import files
from omb_py.core.text.words import count

FORMATS = (".csv", ".json", ".parquet")


@click.command("convert")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True)
@click.option("--output", "-o", required=True, metavar="FILE", help=f"{', '.join(FORMATS)} file.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@name_option
@row_options
def command(
    paths: tuple[str, ...],
    output: str,
    force: bool,
    names: tuple[str, ...],
    where: tuple[str, ...],
    assume: tuple[str, ...],
) -> None:
    """Convert results of any suite to CSV, JSON or Parquet.

    FILE is a file or a folder, compressed or not; - is standard input. The columns are omb-py's
    own: python3 -c 'import omb_py; help(omb_py.load)' describes them.
    """
    kind = Path(output).suffix
    if kind not in FORMATS:
        raise UsageError(f"--output {output}: name a file that ends in {', '.join(FORMATS)}")
    if Path(output).exists() and not force:
        raise UsageError(f"{output} exists: name another file, or overwrite it with --force")
    with needing("analysis"):
        from omb_py.analysis import export

    results = read(paths, where, assume, names or None)
    content = export.content(results, kind)
    files.write(output, content)
    rows = sum(map(len, (results.rows, results.overhead, results.pairs)))
    note(f"{output}: {count(rows, 'row')}")
