"""What became of a sweep's jobs as a table, for people."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from omb_py.sweeps.reasons import MOST_LISTED
from omb_py.sweeps.scheduler import ACTIVE
from omb_py.sweeps.status import INCOMPLETE, JobStatus, SweepStatus
from omb_py.wording import count

WIDEST = 1000
"""Columns where the output is no terminal: lines are not broken there."""


def show(found: SweepStatus, submit: str) -> None:
    """Print the jobs, the rows that are there, and why points failed.

    Where no job goes on, ``submit`` is the command that does.
    """
    console = Console(width=None if sys.stdout.isatty() else WIDEST)
    if found.jobs:
        table = Table(box=None, pad_edge=False)
        for name in ("job", "script", "state"):
            table.add_column(name, overflow="fold")
        table.add_column("rows", justify="right")
        table.add_column("output", overflow="fold")
        for job in found.jobs:
            rows = f"{job.rows} of {job.planned}"
            table.add_row(job.number, job.script, str(job), rows, output(job))
        with console.capture() as lines:
            console.print(table)
        for line in lines.get().splitlines():
            say(console, line.rstrip())
    else:
        say(console, f"no job has been submitted or begun in {found.folder}")
    never = found.planned - found.rows - found.missing
    but = f", {never} cannot be measured here" if never else ""
    say(console, f"{found.rows} of {count(found.planned, 'row')} there{but}, in {found.folder}")
    if found.failures:
        points = sum(len(reason.points) for reason in found.failures)
        say(console, f"{count(points, 'point')} failed:")
        for reason in found.failures[:MOST_LISTED]:
            say(console, f"  {reason}")
        if len(found.failures) > MOST_LISTED:
            say(console, f"  and {len(found.failures) - MOST_LISTED} other reasons, in --json")
    if found.jobs and found.exit_code == INCOMPLETE:
        say(console, f"no job waits or runs; to go on: {submit}")


def say(console: Console, text: str) -> None:
    """Print a line as it is."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def output(job: JobStatus) -> str:
    """Where the output is, and whether it is there."""
    if job.output_is_there:
        return str(job.output)
    return f"{job.output} (not there{' yet' if job.state in ACTIVE else ''})"
