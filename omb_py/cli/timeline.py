"""``omb-py timeline``: the activity of every rank over time, as a file for Perfetto."""

from __future__ import annotations

from pathlib import Path

import click

from omb_py.cli import debug_option
from omb_py.cli.analysis_options import note
from omb_py.core.text.units import parse_count
from omb_py.core.text.words import count
from omb_py.options.types import TextType


def rank_list(text: str) -> list[int]:
    """Parse a list of ranks and ranges, as in ``0-3,8``."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        try:
            start, stop = parse_count(first), parse_count(last if dash else first)
        except ValueError:
            raise ValueError(f"{text!r} are no ranks: write them as in 0-3,8") from None
        if stop < start or stop > MAX_RANKS:
            raise ValueError(f"{part!r} is no range of ranks")
        found += range(start, stop + 1)
    return found


MAX_RANKS = 10_000_000


@click.command("timeline")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A .json or .json.gz file.  [default: FOLDER/timeline.json]",
)
@click.option(
    "--ranks",
    type=TextType("LIST", rank_list),
    help="Only these ranks, as in 0-3,8.",
)
@click.option("--force", is_flag=True, help="Overwrite the file.")
@debug_option
def command(
    folder: Path,
    output: Path | None,
    ranks: list[int] | None,
    force: bool,
) -> None:
    """Write the timeline of a profiled run, for Perfetto.

    FOLDER is what omb-py profile --events N wrote. Open the file at https://ui.perfetto.dev (it
    stays on your machine) or in chrome://tracing. Every rank is a process with its
    calls of MPI and what it computed between them, its phases, and its non-blocking requests in
    lanes of their own; arrows go from sends to receives. Clocks of hosts are aligned.
    """
    from omb_py.tracing.timeline import assembly, json_trace

    path = folder / "timeline.json" if output is None else output
    json_trace.check(path, force)
    timeline = assembly.read(folder)
    if ranks is not None:
        timeline = assembly.select(timeline, ranks)
    for sentence in assembly.notes(timeline):
        note(sentence)
    nbytes = json_trace.write(timeline, path, force)
    slices = sum(len(rank.slices) for rank in timeline.ranks)
    click.echo(
        f"{path}: {count(len(timeline.ranks), 'rank')}, {count(slices, 'slice')}, "
        f"{count(len(timeline.messages.arrows), 'arrow')}, {nbytes / 1e6:.1f} MB"
    )
