"""``omb-py watch``: a run in the terminal, while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from omb_py.core.errors import needing
from omb_py.options.types import Seconds

if TYPE_CHECKING:
    from omb_py.tracing.monitor.lines import Seen

FOLDER = "omb-profile"
SECONDS = Seconds(min=0)


@click.command("watch", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", default=FOLDER, metavar="[FOLDER]")
@click.option(
    "--interval",
    "-i",
    type=Seconds(min=0.1),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two looks.",
)
@click.option("--once", is_flag=True, help="Look once, at a stretch of one interval.")
@click.option("--json", "as_json", is_flag=True, help="A line of JSON for each look.")
@click.option(
    "--wait",
    type=SECONDS,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="For a run to begin.",
)
@click.option(
    "--patience",
    type=SECONDS,
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="From when on a wait is worth telling.",
)
@click.option(
    "--silence",
    type=SECONDS,
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="From when on a rank that says nothing is told.",
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks of errors.")
def command(
    folder: str,
    interval: float,
    once: bool,
    as_json: bool,
    wait: float,
    patience: float,
    silence: float,
) -> None:
    """Watch a run of omb-py profile.

    FOLDER is where the run is recorded [default: omb-profile]. Shown are what each rank does, who
    waits for whom, slow ranks, and ranks that were killed. Nothing is asked of the ranks: all of
    this is read from their records. It ends when all ranks have ended, or with Ctrl-C; where there
    is no terminal, it prints lines.
    """
    on_terminal = sys.stdout.isatty()
    with needing("analysis"):
        from omb_py.tracing.monitor import following

        if not as_json and (once or on_terminal):
            from omb_py.tracing.monitor import view  # noqa: F401 - needs rich, which is said now

    watcher = following.Watcher(folder, following.Habits(interval, patience, silence))
    try:
        seen = following.first(watcher, folder, wait, lambda text: click.echo(text, err=True))
        if once:
            if not seen.over:
                time.sleep(interval)
                seen = watcher.look() or seen
            show_once(seen, as_json)
            return
        if as_json or not on_terminal:
            for one in following.followed(watcher, seen, interval):
                show_lines(one, as_json)
            return
        draw(following.followed(watcher, seen, interval))
    except KeyboardInterrupt:
        return


def show_once(seen: Seen, as_json: bool) -> None:
    """A look with all ranks."""
    from omb_py.core.text.tables import UNLIMITED
    from omb_py.tracing.monitor.lines import json_line
    from omb_py.tracing.monitor.view import Picture

    if as_json:
        click.echo(json_line(seen, time.time()))
        return
    from rich.console import Console

    width = None if sys.stdout.isatty() else UNLIMITED
    Console(file=sys.stdout, highlight=False, width=width).print(Picture(seen, whole=True))


def show_lines(seen: Seen, as_json: bool) -> None:
    """A look where there is no terminal."""
    from omb_py.tracing.monitor.lines import json_line, lines

    for line in [json_line(seen, time.time())] if as_json else lines(seen):
        click.echo(line)
    sys.stdout.flush()


def draw(every: Iterator[Seen]) -> None:
    """Looks on a terminal, each over the one before; the last one stays."""
    from rich.console import Console
    from rich.live import Live

    from omb_py.tracing.monitor.view import Picture

    console = Console(file=sys.stdout, highlight=False)
    last: Seen | None = None
    try:
        with Live(console=console, screen=True, auto_refresh=True, refresh_per_second=2) as live:
            for last in every:
                live.update(Picture(last), refresh=True)
    finally:
        if last is not None:
            console.print(Picture(last))
