"""Conditions under which a host measures: clocks, power, threads of cores, bindings to cores.

They are read before the first timing, from Linux's files below /sys (Documentation/ABI/testing).
Facts that these lack, as in a container or on another system, are left out.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from omb_py.core.dataclass import dataclass
from omb_py.core.job import Job, Node, node_line, node_of

SYS = "/sys"
CPU = "devices/system/cpu"
NUMA = "devices/system/node"
NETWORKS = ("infiniband", "cxi", "hfi1")
"""Classes of network devices below /sys/class: InfiniBand and RoCE, Slingshot, Omni-Path."""
GPUS = "/proc/driver/nvidia/gpus"
"""A folder for each GPU, named by its PCI address; its file `information` has the GPU's UUID."""

CORES_OF_JOB = ("SLURM_CPUS_ON_NODE", "NCPUS")
"""Variables of Slurm and of PBS with the cores that a job has on a node."""

METADATA = "conditions"
"""The key of the host's conditions in metadata."""

PACE = "pace"
"""The key of the cores that ranks ran on, and of their speed, which differ from run to run."""

MAX_CLOCKS = 8
"""Cores of a host whose clocks are read: a reading may take milliseconds."""

LOOP_TURNS = 10_000
"""Turns of the empty loop whose time shows how fast a core is, where no file does."""

SAVING = ("powersave", "conservative", "ondemand", "schedutil")
"""Governors that let a core that waits slow down."""

ACTIVE_DRIVERS = {"intel_pstate", "amd-pstate-epp"}
"""Drivers whose hardware chooses the frequency: ``powersave`` is no slow clock there."""

SEPARATOR = "\t"
"""Between the facts that each rank tells the first one of its host."""

CLOCK_READINGS = 500

COARSE = 0.05
"""Part of an iteration from which a tick of the clock makes percentiles steps."""


@dataclass(frozen=True)
class Condition:
    """Something about a host in words, and a sentence if it spoils what is measured."""

    words: str = ""
    note: str | None = None


def content(path: str | os.PathLike[str]) -> str:
    """Return a file of the kernel's; empty for a missing file."""
    try:
        with open(path, errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def names_in(folder: str) -> list[str]:
    """Return the sorted names in a folder of the kernel's; none for a missing folder."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def cores_of(text: str) -> frozenset[int]:
    """Return the numbers of a list of the kernel's, as in ``0-3,8``; an empty set for other text.

    >>> sorted(cores_of("0-2,8"))
    [0, 1, 2, 8]
    """
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            return frozenset()
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def own_cores() -> str:
    """Return the cores that this process may run on, as `cores_of` reads them."""
    return ",".join(map(str, os.sched_getaffinity(0)))


def clocks(host: str, cores: Iterable[int], root: str = SYS) -> Condition:
    """Return the clocks of the cores that ranks use."""
    scaling = [f"{root}/{CPU}/cpu{core}/cpufreq/scaling" for core in cores]
    governors, drivers = (
        sorted({content(f"{one}_{name}") for one in scaling} - {""})
        for name in ("governor", "driver")
    )
    no_turbo = content(f"{root}/{CPU}/intel_pstate/no_turbo")
    boost = content(f"{root}/{CPU}/cpufreq/boost")
    found = (
        ("governor", " and ".join(governors)),
        ("turbo", {"0": "on", "1": "off"}.get(no_turbo, {"0": "off", "1": "on"}.get(boost))),
        ("SMT", {"0": "off", "1": "on"}.get(content(f"{root}/{CPU}/smt/active"))),
    )
    words = ", ".join(f"{name} {value}" for name, value in found if value)
    slow = [name for name in governors if name in SAVING]
    if {*drivers} <= ACTIVE_DRIVERS and drivers:
        slow = [name for name in slow if name != "powersave"]
    if not slow:
        return Condition(words)
    which = "the cores" if slow == governors else "some cores"
    return Condition(
        words,
        f"governor {slow[0]} lets {which} of {host} slow down while they wait: choose "
        "performance, as with cpupower frequency-set -g performance",
    )


def pace(cores: Iterable[int], root: str = SYS) -> str:
    """Return the cores that ranks run on now, their clocks if known, and the time of a short loop.

    A virtual machine reports no clocks, and a core that is shared with others none that helps: the
    empty loop of `LOOP_TURNS` turns, the fastest of three, takes longer there.
    """
    from omb_py.core.text.words import some_ranks  # only a host's first rank needs it

    used = sorted({*cores})
    files = (f"{root}/{CPU}/cpu{core}/cpufreq/scaling_cur_freq" for core in used[:MAX_CLOCKS])
    clocks_now = sorted(number(text) / 1e6 for text in map(content, files) if text.isdecimal())
    ends = dict.fromkeys(f"{clock:.2f}" for clock in (*clocks_now[:1], *clocks_now[-1:]))
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        for _ in range(LOOP_TURNS):
            pass
        seconds.append(time.perf_counter() - began)
    found = [some_ranks(used).replace("rank", "core")]
    found += [f"{' to '.join(ends)} GHz"] * bool(ends)
    return ", ".join([*filter(None, found), f"a loop takes {min(seconds) * 1e3:.2f} ms"])


def core_now() -> int:
    """Return the core on which this process last ran; -1 if the system does not report it."""
    fields = content("/proc/self/stat").rpartition(")")[2].split()
    return number(fields[36]) if len(fields) > 36 else -1


def placement(
    host: str,
    ranks: Sequence[int],
    masks: Sequence[frozenset[int]],
    cores: int,
    root: str = SYS,
    threads: Sequence[int] = (),
) -> Condition:
    """Return the placement of ``ranks``, each on the cores of its mask, on a host of ``cores``.

    ``threads`` is how many each of them has that call MPI.
    """
    if not all(masks):
        return Condition()
    every = frozenset().union(*masks)
    if set(masks) == {every} and len(every) == cores > 1:
        return Condition(f"ranks not bound within {cores} cores", unbound(host, root))
    low, high = min(map(len, masks)), max(map(len, masks))
    count = f"{low} core{'s' * (high > 1)}" if low == high else f"{low} to {high} cores"
    note = threads_over_mask(host, ranks, masks, cores, threads)
    return Condition(
        f"each rank bound to {count}", note or shared_core(host, ranks, masks, cores, root)
    )


def unbound(host: str, root: str = SYS) -> str | None:
    """Return a sentence if ranks that are not bound may move between NUMA nodes."""
    nodes = len(numa_nodes(root))
    if nodes < 2:
        return None
    return (
        f"ranks of {host} are not bound and may move between its {nodes} NUMA nodes: bind each "
        "rank, as with --bind-to core"
    )


def threads_over_mask(
    host: str,
    ranks: Sequence[int],
    masks: Sequence[frozenset[int]],
    cores: int,
    threads: Sequence[int],
) -> str | None:
    """Return a sentence on the first rank with more threads than it has cores."""
    for rank, mask, number in zip(ranks, masks, threads, strict=False):
        if number > len(mask):
            return (
                f"{number} threads of rank {rank} take turns on {len(mask)} of {cores} cores of "
                f"{host}, to which it is bound: bind ranks to more, as with --bind-to none"
            )
    return None


def shared_core(
    host: str, ranks: Sequence[int], masks: Sequence[frozenset[int]], cores: int, root: str = SYS
) -> str | None:
    """Return a sentence on the first ranks that are bound to one core, or to threads of one.

    With more ranks than cores they have to share, of which there is another sentence.
    """
    siblings = {
        core: cores_of(content(f"{root}/{CPU}/cpu{core}/topology/thread_siblings_list"))
        or frozenset({core})
        for core in frozenset().union(*masks)
    }
    physical = [frozenset(min(siblings[core]) for core in mask) for mask in masks]
    kinds = (
        ("core", cores, masks),
        ("the physical core of core", cores // max(map(len, siblings.values())), physical),
    )
    for what, number, parts in kinds:
        users = Counter(parts)
        shared = next((own for own in users if len(own) == 1 and users[own] > 1), None)
        if shared is not None and len(ranks) <= number:
            from omb_py.core.text.words import some_ranks

            sharing = [rank for rank, own in zip(ranks, parts, strict=True) if own == shared]
            return (
                f"{some_ranks(sharing)} share {what} {min(shared)} of {host}, which has {number}: "
                "bind each rank to a core of its own, as with --bind-to core"
            )
    return None


def largest_cache(root: str = SYS) -> int | None:
    """Return the bytes of the first core's largest cache of data; None if the system has none."""
    import re

    sizes = []
    caches = f"{root}/{CPU}/cpu0/cache"
    for name in names_in(caches):
        number = re.fullmatch(r"(\d+)([KMG]?)", content(f"{caches}/{name}/size"))
        if number and content(f"{caches}/{name}/type") != "Instruction":
            sizes.append(int(number[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[number[2]])
    return max(sizes, default=None)


def numa_nodes(root: str = SYS) -> dict[int, frozenset[int]]:
    """Return the cores of each NUMA node that has some, by the node's number."""
    listed = cores_of(content(f"{root}/{NUMA}/online"))
    nodes = {node: cores_of(content(f"{root}/{NUMA}/node{node}/cpulist")) for node in listed}
    return {node: cores for node, cores in nodes.items() if cores}


def nodes_of_devices(
    identities: Iterable[str], root: str = SYS, gpus: str = GPUS
) -> dict[str, dict[str, int]]:
    """Return the NUMA nodes of network devices, by name, and of GPUs, by their UUID's hex digits.

    The keys are ``network`` and ``GPU``; devices whose node the kernel does not know are left out.
    """
    found: dict[str, dict[str, int]] = {"network": {}, "GPU": {}}
    for kind in NETWORKS:
        folder = f"{root}/class/{kind}"
        for device in names_in(folder):
            found["network"][device] = number(content(f"{folder}/{device}/device/numa_node"))
    wanted = {*identities} - {""}
    for gpu in names_in(gpus) if wanted else ():
        words = content(f"{gpus}/{gpu}/information").replace("-", "").lower()
        identity = next((one for one in wanted if one in words), None)
        if identity is not None:
            where = f"{root}/bus/pci/devices/{gpu.lower()}/numa_node"
            found["GPU"][identity] = number(content(where))
    return {
        kind: {name: node for name, node in nodes.items() if node >= 0}
        for kind, nodes in found.items()
    }


def number(text: str) -> int:
    """Return a whole number of the kernel's; -1, its word for unknown, for other text."""
    return int(text) if text.isdecimal() else -1


def distances(
    host: str,
    ranks: Sequence[int],
    masks: Sequence[frozenset[int]],
    identities: Sequence[str],
    root: str = SYS,
    gpus: str = GPUS,
) -> Condition:
    """Return the NUMA nodes of ranks, of their GPUs and of network devices, on a host of several.

    ``identities`` has the UUID of each rank's GPU, empty without one.
    """
    nodes = numa_nodes(root)
    if len(nodes) < 2 or not all(masks):
        return Condition()
    own = [{node for node, cores in nodes.items() if cores & mask} for mask in masks]
    devices = nodes_of_devices(identities, root, gpus)
    words = [f"ranks on NUMA node {' and '.join(map(str, sorted(set().union(*own))))}"]
    words += [f"{name} on {node}" for name, node in devices["network"].items()]
    words += [f"GPU {name[:8]} on {node}" for name, node in devices["GPU"].items()]
    far = [
        (rank, devices["GPU"][identity])
        for rank, there, identity in zip(ranks, own, identities, strict=True)
        if identity in devices["GPU"] and devices["GPU"][identity] not in there
    ]
    if not far:
        return Condition(", ".join(words))
    rank, node = far[0]
    return Condition(
        ", ".join(words),
        f"rank {rank} on {host} runs on cores far from its GPU, which is on NUMA node {node}: "
        "bind ranks to the cores of their GPUs, or choose GPUs by --device",
    )


def share(cores: int, variables: Mapping[str, str] = os.environ) -> Condition:
    """Return how many of a node's cores its scheduler gave the job, if it tells."""
    given = next((variables[name] for name in CORES_OF_JOB if name in variables), "")
    if not given.isdecimal():
        return Condition()
    part = "all" if int(given) >= cores else f"{given} of"
    return Condition(f"the job has {part} {cores} cores of the node")


@dataclass(frozen=True)
class Examined:
    """The nodes of a job, metadata on the conditions of the worst host, and sentences to print."""

    nodes: list[Node]
    metadata: dict[str, str]
    notes: list[str]


def examine(job: Job, device: str = "-", identity: str = "", threads: int = 1) -> Examined:
    """Return the nodes and their conditions, on rank 0; nothing elsewhere; collective.

    ``device`` is the rank's word on its node, ``identity`` the UUID of its GPU, ``threads`` how
    many of its threads call MPI.
    """
    own = [device, str(job.rank), str(threads), own_cores(), identity, str(core_now())]
    texts = [text.split("\n") for text in job.from_hosts(SEPARATOR.join(own), of_host)]
    nodes = [node_of(line) for line, *_ in texts]
    # the host with most to say; the first of them
    _, words, speed, *notes = max(texts, key=len, default=["", "", ""])
    known = {METADATA: words, PACE: speed}
    return Examined(nodes, {name: text for name, text in known.items() if text}, notes)


def of_host(ranks: Sequence[str]) -> str:
    """Return a line on this host as a node, its conditions in words, its pace, and sentences, a
    line each.

    ``ranks`` has what `examine` knows of each rank here.
    """
    name, cores = os.uname().nodename, os.cpu_count() or 1
    devices, numbers, threads, usable, identities, running = zip(
        *(one.split(SEPARATOR) for one in ranks), strict=True
    )
    masks, members = [*map(cores_of, usable)], [*map(int, numbers)]
    found = (
        clocks(name, sorted(frozenset().union(*masks))),
        placement(name, members, masks, cores, threads=[*map(int, threads)]),
        distances(name, members, masks, identities),
        share(cores),
    )
    words = ", ".join(one.words for one in found if one.words)
    notes = [one.note for one in reversed(found) if one.note]
    speed = pace({*map(int, running)} - {-1})
    line = node_line(map(":".join, zip(numbers, devices, strict=True)))
    return "\n".join([line, words, speed, *notes])


def clock_tick(readings: Sequence[float]) -> float:
    """Return the tick in seconds of a clock that was read again and again.

    A clock that never shows the same twice ticks at most as slowly as it is read: then 0 is
    returned, for its tick does not matter.
    """
    steps = [after - before for before, after in pairwise(readings)]
    forward = sorted(step for step in steps if step > 0)
    return forward[0] if forward and len(forward) < len(steps) else 0.0


def tick() -> float:
    """Return the tick of the clock that iterations are timed by."""
    return clock_tick([time.perf_counter() for _ in range(CLOCK_READINGS)])


def coarse(tick_seconds: float, iterations: Sequence[tuple[int, float]]) -> str | None:
    """Return a sentence for message sizes whose median iteration, in seconds, has few ticks."""
    sizes = [size for size, seconds in iterations if tick_seconds > COARSE * seconds]
    if not sizes:
        return None
    return (
        f"a tick of the clock, {tick_seconds * 1e9:.0f} ns, is over {COARSE:.0%} of an iteration "
        f"at {', '.join(map(str, sizes))} bytes: medians and percentiles are steps of it there, "
        "means hold"
    )
