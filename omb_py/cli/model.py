"""``omb-py model``: parameters of communication costs, and predictions."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from omb_py.cli.analysis_options import input_options, note_overheads, read
from omb_py.core.errors import UsageError, needing
from omb_py.core.text import files as atomic
from omb_py.core.text.numbers import parse_bytes, parse_whole
from omb_py.options.option import Option

FORMATS = {".txt": "text", ".csv": "csv", ".md": "markdown", ".json": "json"}
FARTHEST = (2, 4, 16)
"""Without ``--predict-ranks``, times the maximum number of ranks measured."""


@click.command("model", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@input_options
@click.option(
    "--predict-ranks",
    "ranks",
    cls=Option,
    old_names=["--ranks"],
    metavar="N[,...]",
    help="Numbers of ranks to predict for.  [default: 2, 4 and 16 times the maximum measured]",
)
@click.option(
    "--sizes",
    default="8,1K,64K,1M",
    show_default=True,
    metavar="BYTES[,...]",
    help="Message sizes to predict for, as in 8,64K,1M.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(sorted(FORMATS.values())),
    help="Format; by default that of the suffix of --output, else text.",
)
@click.option("--output", "-o", metavar="FILE", help="File to write instead of standard output.")
def command(
    files: tuple[str, ...],
    where: tuple[str, ...],
    assume: tuple[str, ...],
    statistic: str,
    ranks: str | None,
    sizes: str,
    kind: str | None,
    output: str | None,
) -> None:
    """Fit cost models to results; predict other ranks and sizes.

    FILE is a file of results or a folder of them. Latency and bandwidth (alpha and beta) of each
    curve, by Hockney and LogGP, with the sizes at which protocols switch; for collectives on
    several numbers of ranks the textbook formula that fits best. Every prediction has a 95 % band,
    and the check shows how often such bands held for values that were left out.
    """
    asked_ranks = None if ranks is None else numbers(ranks, "--predict-ranks", parse_whole)
    asked_sizes = numbers(sizes, "--sizes", parse_bytes)
    kind = kind or (FORMATS.get(Path(output).suffix, "text") if output else "text")
    results = read(files, where, assume)
    note_overheads(results, "model")
    with needing("analysis"):
        from omb_py.analysis.model import fit
        from omb_py.analysis.model import text as model_text

    fitted = fit.model(results.rows, results.runs, statistic)
    if asked_ranks is None:
        most = int(fitted.rows["ranks"].max())
        asked_ranks = [most * factor for factor in FARTHEST]
    written: dict[str, Any] = {"model": fitted, "ranks": asked_ranks, "sizes": asked_sizes}
    if output is None:
        model_text.write(**written, kind=kind, out=sys.stdout)
        return
    out = io.StringIO()
    model_text.write(**written, kind=kind, out=out)
    atomic.write(output, out.getvalue())


def numbers(text: str, option: str, parse: Callable[[str], int]) -> list[int]:
    """The whole numbers of a list with commas, sorted, each once.

    Raises `UsageError` when there is none or one is not a number.
    """
    try:
        found = sorted({parse(part) for part in text.split(",") if part})
    except ValueError as error:
        raise UsageError(f"{option} {text!r} is not a list of numbers such as 8,64,1024") from error
    if not found:
        raise UsageError(f"{option} needs a number, such as 1024")
    if option == "--predict-ranks" and found[0] < 2:
        raise UsageError(f"{option} {text!r}: communication takes 2 ranks or more")
    return found
