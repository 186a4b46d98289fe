"""Facts to believe and to repeat a run, as plain text by name."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

from omb_py.core import VERSION
from omb_py.core.errors import UsageError
from omb_py.core.job import Node
from omb_py.core.job.groups import parse_ranks
from omb_py.core.mpi.launcher import PROFILER

TELLING_PREFIXES = tuple(
    "OMPI_MCA_ PRTE_MCA_ PMIX_MCA_ MPICH_ MPIR_CVAR_ I_MPI_ MV2_ UCX_ FI_ OMP_ "
    "CUDA_VISIBLE_DEVICES NCCL_ GLOO_ TORCH_".split()
)
"""Environment variables that change what MPI does, by how their names begin."""

SET_BY_LAUNCHER = ("PREFIXES", "initial_wdir", "num_procs", "cpu_type")
"""Ends of variables that Open MPI's launcher sets by itself: a user did not choose them."""

SET_BY_INTEL = tuple(
    "I_MPI_INFO_ I_MPI_HYDRA_ I_MPI_PIN_INFO I_MPI_PIN_MAPPING I_MPI_BIND_WIN I_MPI_INTERNAL_ "
    "I_MPI_RETURN_ I_MPI_ROOT".split()
)
"""Beginnings of those that Intel MPI's launcher sets, or its installation."""

Runs: TypeAlias = Mapping[str, Mapping[str, str]]
"""The metadata of runs by their names."""

IN_BLOCKS = "in blocks"
"""The ``placement`` of ranks that fill one host after the other."""

TURN, COMPLETE = "turn", "complete"
"""The key for a gate's turn, a number and its ``split``, and its value after the last one."""

TCP = "TCP to other hosts"
NOT_OPENED = "not opened: "
"""Words of a run's ``transport``: connections that ranks had, and network devices that they left
alone."""


def process_metadata(run: str) -> dict[str, str]:
    """Return facts known without MPI: versions, machine, command, environment, profiler."""
    import platform  # here and below: ranks load this module for its words, and few need these
    import shlex

    return {
        "run": run,
        "omb_py": VERSION,
        "command": shlex.join(["omb-py", *sys.argv[1:]]),
        "python": interpreter(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": processor(),
        "environment": shlex.join(
            f"{name}={value}"
            for name, value in sorted(os.environ.items())
            if name.startswith(TELLING_PREFIXES)
            and not name.endswith(SET_BY_LAUNCHER)
            and not name.startswith(SET_BY_INTEL)
        ),
        **({"profiler": os.environ[PROFILER]} if PROFILER in os.environ else {}),
    }


def interpreter() -> str:
    """Return Python's name and version, and of a free-threaded build whether its lock is on.

    An extension module that does not say that it needs no lock switches it on (PEP 703).
    """
    import platform

    text = f"{platform.python_implementation()} {platform.python_version()}"
    if "t" not in sys.abiflags:
        return text
    lock = "on" if vars(sys)["_is_gil_enabled"]() else "off"
    return f"{text} free-threaded, GIL {lock}"


def processor() -> str:
    """Return the processor's name and its number of logical cores."""
    import platform

    found = None
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            found = re.search(r"(?m)^model name[^:]*: *(.*\S)", file.read())
    except OSError:
        pass
    # platform starts a program to find it
    name = found[1] if found else platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} logical cores"


def describe_nodes(nodes: Iterable[Node]) -> str:
    """Return hosts with their numbers of ranks: ``node1:8 node2:8``."""
    return " ".join(f"{node.host}:{node.ranks}" for node in nodes)


def describe_placement(nodes: Sequence[Node]) -> str:
    """Return where ranks are, if the numbers of `describe_nodes` do not tell: ``in blocks``, one
    node filled after the other, or the place in that list of each rank's node: ``0,1,0,1``.
    """
    if max(node.ranks for node in nodes) == 1 or len(nodes) == 1:
        return ""
    places = {rank: place for place, node in enumerate(nodes) for rank in node.numbers}
    of_ranks = [places[rank] for rank in range(len(places))]
    return IN_BLOCKS if of_ranks == sorted(of_ranks) else ",".join(map(str, of_ranks))


def placed_ranks(data: Mapping[str, str], ranks: int) -> tuple[int, ...]:
    """Return the node of each rank of a run; raise `UsageError` if it does not report them."""
    counts = [int(number) for number in re.findall(r"\S:(\d+)(?=\s|$)", data.get("hosts", ""))]
    blocks = [node for node, number in enumerate(counts) for _ in range(number)]
    words = data.get("placement", IN_BLOCKS if len(counts) == 1 or set(counts) == {1} else "")
    places = blocks if words == IN_BLOCKS else [int(one) for one in re.findall(r"\d+", words)]
    if len(places) != ranks or sorted(places) != blocks:
        raise UsageError("results that do not say which host each rank was on: measure again")
    return tuple(places)


def hosts_of_nodes(data: Mapping[str, str]) -> list[str]:
    """Return the names of a run's nodes; a second node of a name is told apart.

    >>> hosts_of_nodes({"hosts": "a:2 a:2 b:2"})
    ['a', 'a#2', 'b']
    """
    names = [one.rpartition(":")[0] or one for one in data.get("hosts", "").split()]
    seen = Counter[str]()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return found


def hosts_of_groups(data: Mapping[str, str], groups: Iterable[str]) -> dict[str, list[str]]:
    """Return the hosts of each group of a run's ranks, in order; none if the run does not tell."""
    try:
        nodes = placed_ranks(data, int(data.get("ranks", 0)))
    except (ValueError, UsageError):
        return {}
    names, found = hosts_of_nodes(data), {}
    for group in groups:
        with suppress(ValueError, IndexError):
            found[group] = list(dict.fromkeys(names[nodes[rank]] for rank in parse_ranks(group)))
    return found


def describe_devices(nodes: Iterable[Node]) -> str:
    """Return the device of each rank, node by node: ``node1:0=5a5a5a5a,1=6b6b6b6b``."""
    return " ".join(f"{node.host}:{','.join(node.words)}" for node in nodes)


def slow_transport(data: Mapping[str, str]) -> str:
    """Return the network devices that a run left alone for TCP; empty where it did not.

    >>> slow_transport({"transport": "pml ob1, TCP to other hosts, not opened: mlx5_0"})
    'mlx5_0'
    """
    return data.get("transport", "").partition(NOT_OPENED)[2]


def crowded_hosts(data: Mapping[str, str]) -> list[tuple[str, int, int]]:
    """Return the hosts of a run that had more ranks than logical cores, with both numbers.

    >>> crowded_hosts({"hosts": "a:4 b:2", "processor": "AMD EPYC, 2 logical cores"})
    [('a', 4, 2)]
    """
    cores = re.search(r"(\d+) logical cores?", data.get("processor", ""))
    hosts = re.findall(r"(\S+):(\d+)(?=\s|,|$)", data.get("hosts", ""))
    available = int(cores[1]) if cores else 0
    return [
        (host, int(ranks), available) for host, ranks in hosts if cores and int(ranks) > available
    ]
