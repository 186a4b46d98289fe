"""The nodes that a job really has, which may be fewer than a sweep needs."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress

from omb_py.core.errors import OmbError
from omb_py.core.text.words import count
from omb_py.sweeps.batch import BatchJob
from omb_py.sweeps.commands import hosts
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.points import SweepPoint
from omb_py.sweeps.schedulers import ask


def nodes_here(machine: Machine) -> int | None:
    """Return the number of nodes of the machine's host file or of the job of this process.

    None if it is unknown, as outside a job. Raises `OmbError` when a host file cannot be read or
    names no host.
    """
    names = hosts(machine)
    if names is not None:
        return len(names)
    scheduler = machine.batch_scheduler
    if scheduler is None:
        return None
    values = (os.environ.get(name, "") for name in scheduler.node_count_variables)
    said = next((value for value in values if value.isdecimal()), "")
    if not said and scheduler.node_count_command:
        with suppress(OmbError, OSError):
            said = ask(scheduler.in_job, scheduler.node_count_command).stdout.strip()
    return int(said) if said.isdecimal() and int(said) > 0 else None


def shortage(larger: Sequence[SweepPoint], nodes: int | None, job: BatchJob) -> str:
    """Return why points that need more nodes than ``nodes`` cannot run here, with the remedy.

    Empty without such a point.
    """
    if not larger:
        return ""
    machine, words = job.machine, shlex.join(job.words)
    counts = sorted({point.nodes for point in larger})
    needed = f"{' and '.join(map(str, counts))} nodes needed"
    have = count(nodes or 0, "node")
    if machine.host_file:
        return f"{needed}, {machine.host_file} names {have}: add hosts to it"
    choice = f"--nodes {counts[0]}" if len(counts) == 1 else "--one-job"
    return f"{needed}, this job has {have}: ask for more by omb-py job submit {words} {choice}"


def split(
    points: Iterable[SweepPoint], nodes: int | None
) -> tuple[list[SweepPoint], list[SweepPoint]]:
    """Return the points that fit on ``nodes`` nodes, and those that need more; None fits all."""
    fitting: list[SweepPoint] = []
    larger: list[SweepPoint] = []
    for point in points:
        (fitting if nodes is None or point.nodes <= nodes else larger).append(point)
    return fitting, larger
