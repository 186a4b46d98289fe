"""``omb-py watch``: a run in the terminal, while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from omb_py.cli import debug_option
from omb_py.core.errors import needing
from omb_py.core.text import tables
from omb_py.core.text.words import behind
from omb_py.options.types import Seconds

if TYPE_CHECKING:
    from omb_py.tracing.monitor.observations import Observation

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
    ranks wait for which, and ranks that were killed. It reads the records of the ranks and does not
    disturb them. It ends with the last rank, or with Ctrl-C; without a terminal it prints lines.
    """
    live = sys.stdout.isatty() and not once and not as_json
    with needing("tables"):
        from omb_py.tracing.monitor import observations

        if live:
            import rich  # noqa: F401 - draw needs it: fail now

    watcher = observations.Watcher(folder, min_wait, stale_after)
    try:
        seen = observations.wait_for_run(
            watcher, folder, wait, lambda text: click.echo(text, err=True)
        )
        if once:
            if not seen.over:
                time.sleep(interval)
                seen = watcher.observe() or seen
            if not as_json:
                tables.on_console([observations.sheet(seen)], (), sys.stdout)
                return
        every = [seen] if once else observations.follow(watcher, seen, interval)
        if live:
            draw(every)
            return
        for one in every:
            if as_json:
                click.echo(observations.json_line(one, time.time()))
            else:
                click.echo("\n".join(observations.lines(one)))
            sys.stdout.flush()
    except KeyboardInterrupt:
        return


def draw(every: Iterable[Observation]) -> None:
    """Draw tables on a terminal, each over the one before; the last one stays."""
    from rich.console import Console
    from rich.live import Live

    from omb_py.tracing.monitor.observations import sheet

    console = Console(file=behind(sys.stdout), highlight=False)
    with Live(console=console, auto_refresh=False) as live:
        for seen in every:
            live.update(tables.rendered([sheet(seen)]), refresh=True)
