"""The plan of a sweep as a table, before anything is measured."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.table import Table

from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text.units import duration
from omb_py.core.text.words import count
from omb_py.sweeps import allocation, commands, launchers
from omb_py.sweeps.config import Sweep
from omb_py.sweeps.estimate import guess, remaining
from omb_py.sweeps.folder import Folder
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.points import Plan, Point, in_order


def show(sweep: Sweep, machine: Machine, plan: Plan, folder: Folder, words: str) -> None:
    """Print what would be measured, what is there, and how long the rest may take.

    ``words`` are as in `allocation.shortage`. Raises `OmbError` when a host file cannot be read.
    """
    table = Table(title=f"sweep {sweep.name} on {machine.name}", title_justify="left", box=None)
    for name in ("benchmark", "buffers", "bindings", "nodes x ranks", "variants"):
        table.add_column(name, overflow="fold")
    for name in ("points", "rows", "there", "about"):
        table.add_column(name, justify="right")
    missing = {point.name: len(folder.missing(point)) for point in plan.points}
    by_benchmark: dict[str, list[Point]] = {}
    for point in plan.points:
        by_benchmark.setdefault(point.benchmark, []).append(point)
    for name, points in by_benchmark.items():
        rows = sum(point.rows for point in points)
        there = sum(map(folder.there, points))
        table.add_row(
            name,
            several(point.buffer for point in points),
            several(point.binding for point in points),
            several(f"{point.nodes}x{point.ranks_per_node}" for point in points),
            several(word for p in points for word in (p.library_algorithm, p.variant) if word),
            str(len(points)),
            str(rows),
            str(there),
            duration(sum(guess(point, machine) for point in points)),
        )
    console = Console()
    console.print(table)
    here = allocation.nodes_here(machine)
    larger = allocation.split((p for p in plan.points if missing[p.name]), here)[1]
    left, backed = remaining(allocation.without(plan.points, larger), folder, machine)
    basis = "from what is there already" if backed else "a guess; better once something is there"
    console.print(
        f"{count(len(plan.points), 'point')}, {count(plan.rows, 'row')}; "
        f"{rounds(sweep)}about {duration(left)} to go ({basis})",
        highlight=False,
    )
    for left_out in plan.left_out:
        console.print(left_out.describe(), markup=False, highlight=False)
    if larger:
        short = allocation.shortage(larger, here, machine, words)
        console.print(
            f"left out {count(len(larger), 'point')}: {short}", markup=False, highlight=False
        )


def rounds(sweep: Sweep) -> str:
    """How the launches of a sweep's points follow each other."""
    if sweep.launches == 1:
        return ""
    how = f", each shuffled (seed {sweep.seed})" if sweep.order == "shuffled" else ""
    return f"{sweep.launches} rounds{how}; "


def show_commands(sweep: Sweep, machine: Machine, plan: Plan, folder: Folder) -> None:
    """Print the command line of each point of which something is missing, in order, for a shell.

    A launcher that the machine names need not be here. Raises `OmbError` when there is none to ask
    for `auto`, `UsageError` when the one here is another library's.
    """
    launcher, installed = machine.launcher, True
    try:
        launcher = launchers.select(launcher, machine.name)
    except OmbError as error:
        if isinstance(error, UsageError) or launcher == launchers.AUTO:
            raise
        installed = False
    for point in in_order(plan.points, sweep):
        sizes = folder.missing(point)
        if sizes:
            values = commands.environment(point, machine, launcher)
            where = commands.Where(machine, launcher, None, folder.profile(point), installed)
            words = commands.command(point, sizes, where, folder.csv(point))
            print(shlex.join([*(["env"] if values else []), *assigned(values), *words]))


def assigned(values: Mapping[str, str]) -> list[str]:
    """Environment variables as words of `env`."""
    return [f"{name}={value}" for name, value in values.items()]


def several(words: Iterable[str]) -> str:
    """Different words, each once."""
    return ", ".join(dict.fromkeys(words))
