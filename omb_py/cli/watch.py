"""``omb-py watch``: a run in the terminal, while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from omb_py.cli import debug_option
from omb_py.core.errors import needing
from omb_py.options.types import Seconds

if TYPE_CHECKING:
    from omb_py.tracing.monitor.lines import Observation

FOLDER = "omb-profile"
SECONDS = Seconds(min=0)


@click.command("watch")
@click.argument("folder", default=FOLDER, metavar="[FOLDER]", type=click.Path())
@click.option(
    "--interval",
    type=Seconds(min=0.1),
    default=1.0,
    show_default=True,
    help="Time between two updates.",
)
@click.option("--once", is_flag=True, help="Show one interval, then exit.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON per update.")
@click.option(
    "--wait",
    type=SECONDS,
    default=60.0,
    show_default=True,
    help="How long to wait for a run to begin.",
)
@click.option(
    "--min-wait",
    type=SECONDS,
    default=1.0,
    show_default=True,
    help="Report waits longer than SECONDS.",
)
@click.option(
    "--stale-after",
    type=SECONDS,
    default=5.0,
    show_default=True,
    help="Report a rank as unresponsive after SECONDS without an update.",
)
@debug_option
def command(
    folder: str,
    interval: float,
    once: bool,
    as_json: bool,
    wait: float,
    min_wait: float,
    stale_after: float,
) -> None:
    """Watch a profiled run while it runs.

    FOLDER is where the run is recorded [default: omb-profile]. Shows what each rank does, which
    ranks wait for which, slow ranks, and ranks that were killed. It reads the records of the ranks
    and does not disturb them. It ends with the last rank, or with Ctrl-C; without a terminal it
    prints lines.
    """
    on_terminal = sys.stdout.isatty()
    with needing("analysis"):
        from omb_py.tracing.monitor import following

        if not as_json and (once or on_terminal):
            from omb_py.tracing.monitor import view  # noqa: F401 - needs rich: fail now

    watcher = following.Watcher(folder, following.WatchSettings(interval, min_wait, stale_after))
    try:
        seen = following.wait_for_run(
            watcher, folder, wait, lambda text: click.echo(text, err=True)
        )
        if once:
            if not seen.over:
                time.sleep(interval)
                seen = watcher.observe() or seen
            show_once(seen, as_json)
            return
        if as_json or not on_terminal:
            for one in following.follow(watcher, seen, interval):
                show_lines(one, as_json)
            return
        draw(following.follow(watcher, seen, interval))
    except KeyboardInterrupt:
        return


def show_once(seen: Observation, as_json: bool) -> None:
    """Print one snapshot of all ranks, as a table or as JSON."""
    from omb_py.core.text.tables import UNLIMITED
    from omb_py.tracing.monitor.lines import json_line
    from omb_py.tracing.monitor.view import Picture

    if as_json:
        click.echo(json_line(seen, time.time()))
        return
    from rich.console import Console

    width = None if sys.stdout.isatty() else UNLIMITED
    Console(file=sys.stdout, highlight=False, width=width).print(Picture(seen, whole=True))


def show_lines(seen: Observation, as_json: bool) -> None:
    """Print snapshots as lines, if there is no terminal."""
    from omb_py.tracing.monitor.lines import json_line, lines

    for line in [json_line(seen, time.time())] if as_json else lines(seen):
        click.echo(line)
    sys.stdout.flush()


def draw(every: Iterator[Observation]) -> None:
    """Draw snapshots on a terminal, each over the one before; the last one stays."""
    from rich.console import Console
    from rich.live import Live

    from omb_py.tracing.monitor.view import Picture

    console = Console(file=sys.stdout, highlight=False)
    last: Observation | None = None
    try:
        with Live(console=console, screen=True, auto_refresh=True, refresh_per_second=2) as live:
            for last in every:
                live.update(Picture(last), refresh=True)
    finally:
        if last is not None:
            console.print(Picture(last))
