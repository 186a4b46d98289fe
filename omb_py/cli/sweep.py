"""``omb-py sweep``: measure what a configuration requests, and resume after interruptions."""

from __future__ import annotations

import time
from pathlib import Path

import click

from omb_py.cli import debug_option
from omb_py.cli.analysis_options import note, refuse_options
from omb_py.cli.job import FOLDER, machine_option
from omb_py.core.errors import needing
from omb_py.options.types import TextType, WholeNumber


def seconds_of(text: str) -> float:
    """Return a duration such as ``25m`` in seconds; raise `ValueError` for another text."""
    with needing("sweep"):
        from omb_py.sweeps.field_types import seconds
    return float(seconds(text))


@click.command("sweep")
@click.argument("config", metavar="SWEEP")
@machine_option(default="local", show_default=True)
@click.option("--queue", help="Queue of the machine, whose limits on nodes apply.")
@FOLDER
@click.option("--dry-run", is_flag=True, help="Show the plan.")
@click.option("--commands", is_flag=True, help="With --dry-run, also the command lines.")
@click.option("--nodes", type=WholeNumber(min=1), help="Only points on this number of nodes.")
@click.option(
    "--stop-after",
    type=TextType("DURATION", seconds_of),
    help="Stop after DURATION, as in 25m; exit code 75 if there is more to do.",
)
@click.option("--launch-each", is_flag=True, help="Launch each point by itself.")
@click.option("--mix", is_flag=True, help="Add rows of another MPI library or version.")
@debug_option
def command(
    config: str,
    machine: str,
    queue: str | None,
    folder: Path | None,
    dry_run: bool,
    commands: bool,
    nodes: int | None,
    stop_after: float | None,
    launch_each: bool,
    mix: bool,
) -> int:
    """Measure all points of a configuration; resume after interruptions.

    omb-py sweep quick --machine local

    SWEEP is the name or the path of a configuration. Run the same command again after a crash, a
    full disk or the end of a job: rows are kept, and only missing ones are measured.

    Exit codes: 0 every planned row is there, 1 some points failed, 3 all rows are there that can be
    measured here, 75 stopped with more to do, or what is missing needs more nodes.
    """
    began = time.monotonic()
    with needing("sweep"):
        from omb_py.sweeps import sweep_job

    if not dry_run:
        refuse_options(["commands"], "is for --dry-run: add it")
    job = sweep_job.find(config, machine, folder, scheduled=False, queue=queue)
    if job.machine.unknown_queue:
        note(job.machine.unknown_queue)
    job = job.on(nodes)
    if dry_run:
        from omb_py.sweeps.dry_run import show, show_commands

        show(job)
        if commands:
            show_commands(job, launch_each, note)
        return 0
    from omb_py.sweeps.run import run_sweep

    return run_sweep(job, None if stop_after is None else began + stop_after, mix, launch_each)
