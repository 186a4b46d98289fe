"""What the cluster around this process is: its scheduler, nodes, cores, GPUs, and launcher."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from omb_py.core.errors import OmbError
from omb_py.sweeps import launchers
from omb_py.sweeps.answers import clock_seconds
from omb_py.sweeps.machine import NO_SCHEDULER

PATIENCE = 30.0
"""Seconds that a command of a scheduler may take to answer."""

UNUSABLE = ("down", "offline", "unknown", "unavail", "unreach", "drain", "fail", "maint")
"""In what schedulers call the state of a node that runs no jobs."""


class Node(NamedTuple):
    """What a node has."""

    cores: int
    gpus: int = 0


@dataclass(frozen=True)
class Cluster:
    """What a scheduler tells; ``source`` is how, as in "by sinfo".

    ``nodes`` are those of the most common kind, None where it tells nothing of nodes, and
    ``others`` how many there are beside them. ``queue`` is the default one, ``walltime`` the
    longest that it takes, in seconds.
    """

    scheduler: str
    source: str
    nodes: int | None = None
    cores: int | None = None
    gpus: int = 0
    others: int = 0
    queue: str | None = None
    walltime: float | None = None


def answer(*words: str) -> str | None:
    """What a command prints on both streams; None if it is not there, fails or hangs."""
    program = shutil.which(words[0])
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, *words[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout + done.stderr if done.returncode == 0 else None


def cluster(
    scheduler: str, source: str, nodes: Iterable[Node], limit: int | None = None, **more: object
) -> Cluster:
    """A cluster by its most common kind of node, at most ``limit`` of them in one job."""
    kinds = Counter(node for node in nodes if node.cores > 0)
    if not kinds:
        return Cluster(scheduler, source, **more)  # type: ignore[arg-type]
    kind, number = max(kinds.items(), key=lambda item: (item[1], item[0]))
    most = number if limit is None else min(number, limit)
    return Cluster(
        scheduler,
        source,
        nodes=most,
        cores=kind.cores,
        gpus=kind.gpus,
        others=kinds.total() - number,
        **more,  # type: ignore[arg-type]
    )


SINFO = ("sinfo", "--noheader", "--Node", "--format=%N|%c|%X|%Y|%G|%T|%P|%s|%l")


def slurm() -> Cluster | None:
    """Slurm's default partition, by `sinfo`."""
    text = answer(*SINFO)
    lines = [line.strip().split("|") for line in (text or "").splitlines()]
    lines = [fields for fields in lines if len(fields) == 9]
    if not lines:
        return None
    chosen = next((fields[6] for fields in lines if fields[6].endswith("*")), lines[0][6])
    in_queue = [fields for fields in lines if fields[6] == chosen]
    nodes = {
        name: Node(min(int(cpus), int(sockets) * int(cores)), gpus_of_slurm(resources))
        for name, cpus, sockets, cores, resources, state, *_ in in_queue
        if usable(state)
    }
    *_, sizes, time = in_queue[0]
    most = sizes.partition("-")[2]
    return cluster(
        "slurm",
        "by sinfo",
        nodes.values(),
        int(most) if most.isdigit() else None,
        queue=chosen.rstrip("*"),
        walltime=clock_seconds(time),
    )


def gpus_of_slurm(resources: str) -> int:
    """GPUs among generic resources, as in ``gpu:a100:4(S:0-1),nic:1``."""
    found = re.findall(r"(?:^|,)gpu(?::[^:,()]+)?:(\d+)", resources)
    return sum(map(int, found))


def lsf() -> Cluster | None:
    """LSF, by `lsid`; job slots of hosts by `bhosts`, which are their cores by default."""
    if "LSF" not in (answer("lsid") or ""):
        return None
    lines = [line.split() for line in (answer("bhosts", "-w") or "").splitlines()[1:]]
    nodes = [
        Node(int(fields[3]))
        for fields in lines
        if len(fields) > 3 and fields[3].isdigit() and usable(fields[1])
    ]
    return cluster("lsf", "by bhosts", nodes)


def flux() -> Cluster | None:
    """The Flux instance around this process, by `flux resource list`."""
    words = ("resource", "list", "--states=up", "--no-header", "--format={nnodes} {ncores} {ngpus}")
    fields = (answer("flux", *words) or "").split()
    if len(fields) != 3 or not all(map(str.isdigit, fields)):
        return None
    nodes, cores, gpus = map(int, fields)
    kind = [Node(cores // nodes, gpus // nodes)] * nodes if nodes else []
    return cluster("flux", "by flux resource list", kind)


def pbs_family() -> Cluster | None:
    """PBS, Torque or Cobalt, all of which have a `qsub` and a `qstat`.

    `qstat --version` says ``pbs_version = 23.06.06`` for PBS, ``Version: 6.1.2`` for Torque, and a
    line with Cobalt's name for that. An old Cobalt may not answer: only that has a `cqstat`.
    """
    version = answer("qstat", "--version") or ""
    if "pbs_version" in version.lower():
        return cluster("pbs", "by pbsnodes", pbs_nodes(answer("pbsnodes", "-a") or ""))
    if "cobalt" in version.lower():
        return Cluster("cobalt", "by qstat")
    if re.match(r"\s*version:", version, re.IGNORECASE):
        return cluster("torque", "by pbsnodes", torque_nodes(answer("pbsnodes", "-a") or ""))
    return Cluster("cobalt", "by cqstat") if shutil.which("cqstat") else None


def stanzas(text: str) -> dict[str, dict[str, str]]:
    """What `pbsnodes -a` says of each node: indented lines of ``key = value`` below its name."""
    found: dict[str, dict[str, str]] = {}
    name = ""
    for line in text.splitlines():
        key, equals, value = (part.strip() for part in line.partition(" = "))
        if line[:1].strip():
            name = line.strip()
            found[name] = {}
        elif equals and name:
            found[name][key] = value
    return found


def pbs_nodes(text: str) -> list[Node]:
    """PBS's hosts; the virtual nodes of one are added up."""
    hosts: dict[str, list[Node]] = {}
    for name, values in stanzas(text).items():
        if usable(values.get("state", "")):
            have = [number(values.get(f"resources_available.{key}")) for key in ("ncpus", "ngpus")]
            hosts.setdefault(values.get("resources_available.host", name), []).append(Node(*have))
    return [
        Node(sum(node.cores for node in nodes), sum(node.gpus for node in nodes))
        for nodes in hosts.values()
    ]


def torque_nodes(text: str) -> list[Node]:
    """Torque's nodes, by their processors (``np``)."""
    return [
        Node(number(values.get("np")), number(values.get("gpus")))
        for values in stanzas(text).values()
        if usable(values.get("state", ""))
    ]


def number(text: str | None) -> int:
    """A whole number; 0 for what is none."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else 0


def usable(state: str) -> bool:
    """Whether a node in this state runs jobs, now or later."""
    return not any(word in state.lower() for word in UNUSABLE)


def this_computer() -> Cluster:
    """No scheduler: the cores and GPUs that this process sees."""
    gpus = len(list(Path("/proc/driver/nvidia/gpus").glob("*")))
    return Cluster(
        NO_SCHEDULER, "on this computer", nodes=1, cores=len(os.sched_getaffinity(0)), gpus=gpus
    )


PROBES = {"slurm": slurm, "lsf": lsf, "flux": flux, "pbs": pbs_family}
"""In this order, since Slurm and LSF may bring a `qsub` and a `qstat` of their own."""


def detect(scheduler: str | None = None) -> Cluster:
    """The cluster here, or what there is of one with this scheduler."""
    if scheduler == NO_SCHEDULER:
        return this_computer()
    name = "pbs" if scheduler in ("pbs", "torque", "cobalt") else scheduler
    probes = PROBES.values() if name is None else [PROBES[name]]
    found = next((found for probe in probes if (found := probe()) is not None), None)
    if scheduler is None:
        return found or this_computer()
    return found if found and found.scheduler == scheduler else Cluster(scheduler, "")


def launcher(scheduler: str) -> str:
    """The launcher for jobs: the scheduler's own where MPI is started by it, else `mpiexec`'s."""
    own = {"lsf": "jsrun", "flux": "flux"}.get(scheduler)
    if own and shutil.which(own):
        return own
    try:
        return launchers.detect()
    except OmbError:
        others = ["srun"] if scheduler == "slurm" else ["aprun"]
        return next((name for name in others if shutil.which(name)), launchers.AUTO)
