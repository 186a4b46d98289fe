"""The command line that measures a point."""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from omb_py.buffers import on_device
from omb_py.core.errors import OmbError
from omb_py.core.mpi.launcher import EXPECTED_RANKS
from omb_py.core.text import files
from omb_py.results.metadata import TELLING_PREFIXES
from omb_py.sweeps.folder import Folder
from omb_py.sweeps.launchers import LAUNCHERS, Placement
from omb_py.sweeps.libraries import Installation
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.points import ODD, SweepPoint, selectable
from omb_py.sweeps.schedulers import ask

PASSED_ON = (*TELLING_PREFIXES, "PYTHONPATH", "LD_LIBRARY_PATH", "OMB_PY_")
"""Beginnings of variables that ranks on other nodes need as much as those on this one."""

SSH_PORT, ANSWER_SECONDS = 22, 2.0


def placement(point: SweepPoint, machine: Machine, hosts: Path | None = None) -> Placement:
    """Return the places of a point's ranks, and their environment; ``hosts`` is a file of the
    nodes."""
    return Placement(
        nodes=point.nodes,
        ranks_per_node=point.ranks_per_node,
        cores=machine.cores,
        gpus=machine.gpus,
        binding=machine.binding,
        oversubscribe=machine.oversubscribe,
        host_file=None if hosts is None else str(hosts),
        options=machine.launcher_options,
        environment={
            **machine.environment,
            **(machine.device_environment if on_device(point.buffer) else {}),
            **dict(point.environment),
            EXPECTED_RANKS: str(point.launched),
        },
        inherited=tuple(name for name in sorted(os.environ) if name.startswith(PASSED_ON)),
    )


def hosts(machine: Machine) -> list[str] | None:
    """Return the nodes to run on, each once; None if the launcher knows them by itself.

    They stand in the machine's file, or in the one that its scheduler makes for a job. Raises
    `OmbError` when it cannot be read or names no host.
    """
    variable = getattr(machine.batch_scheduler, "host_file_variable", None)
    name = machine.host_file or (os.environ.get(variable) if variable else None)
    if not name:
        return None
    words = (line.partition("#")[0].split() for line in files.read_text(name).splitlines())
    names = list(dict.fromkeys(word[0].partition(":")[0] for word in words if word))
    if not names:
        raise OmbError(f"the file of hosts {name} names no host: write one name a line")
    return names


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


def silent(hosts: Sequence[str]) -> list[str]:
    """Return the hosts that neither take nor refuse a connection, as a dead one does."""
    found = []
    for host in hosts:
        try:
            socket.create_connection((host, SSH_PORT), ANSWER_SECONDS).close()
        except ConnectionRefusedError:
            pass
        except OSError:
            found.append(host)
    return found


def command(
    points: Sequence[SweepPoint],
    folder: Folder,
    library: Installation,
    hosts: Path | None = None,
    installed: bool = True,
) -> list[str]:
    """Return the words that measure the missing rows of points in one launch with a library.

    ``hosts`` is a file of the nodes if one is needed. Of several points the folder's summary gets
    the outcomes. Raises `OmbError` when the launcher is not there, unless it need not be
    ``installed`` for a command line that is only shown.
    """
    first = points[0]
    if first.part or len(points) > 1:
        summary = str(folder.summary(first).resolve())
        arguments = [*of_launch(first), *(["--summary", summary] if len(points) > 1 else [])]
        for point in points:
            arguments.append(shlex.join(words_for(point, folder)))
    else:
        arguments = [*words_for(first, folder), "--quiet"]
    machine, row = library.machine, LAUNCHERS[library.launcher]
    preload = machine.preload
    return [
        *row.command(placement(first, machine, hosts), installed, library.where),
        *(row.outliving_ranks if first.loses_ranks else ()),
        *(["env", f"LD_PRELOAD={preload}"] if preload is not None else []),
        *(library.python, "-m", "omb_py"),
        *arguments,
    ]


def words_for(point: SweepPoint, folder: Folder) -> list[str]:
    """Return the words that add a point's rows to a file; one without sizes has all rows anew.

    Without a word for sizes a benchmark would measure others than those planned.
    """
    return [
        *point.arguments(folder.missing(point) or point.sizes),
        "--output",
        str(folder.csv(point).resolve()),
        *([] if selectable(point.benchmark) else ["--force"]),
    ]


def of_launch(point: SweepPoint) -> list[str]:
    """Return ``run`` and the options that all points of the launch of a point have."""
    shared = [word for setting in point.of_launch for word in setting.words()]
    part = ["--odd"] if point.part == ODD else ["--pair", point.part] if point.part else []
    return ["run", "--quiet", "--buffer", point.buffer, *shared, *part]


def environment(
    point: SweepPoint, library: Installation, folder: Path | None = None
) -> dict[str, str]:
    """Return the environment of a point's launcher and ranks beyond that of this process.

    With a ``folder`` for files, it includes variables for a launcher in a job of a scheduler.
    """
    row, place = LAUNCHERS[library.launcher], placement(point, library.machine)
    job = row.in_job(place, folder) if folder is not None else {}
    return {**row.environment(place), **job, **place.environment}
