"""The conditions under which a host measures: clocks, power, threads of cores, what is bound where.

They are read before anything is timed, from what Linux says below /sys (Documentation/ABI/testing).
What it does not say, as in a container or on another system, is left out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise

from omb_py.core.dataclass import dataclass
from omb_py.core.job import Job
from omb_py.measure.host_load import core_mask, cores_in

SYS = "/sys"
CPU = "devices/system/cpu"

METADATA = "conditions"
"""The key of the host's conditions in metadata."""

SAVING = ("powersave", "conservative", "ondemand", "schedutil")
"""Governors that let a core that waits slow down."""

ACTIVE_DRIVERS = ("intel_pstate", "amd-pstate-epp")
"""Drivers whose hardware chooses the frequency: ``powersave`` is no slow clock there."""

AND = " and "

CLOCK_READINGS = 500

COARSE = 0.05
"""Part of an iteration from which a tick of the clock makes percentiles steps."""


@dataclass(frozen=True)
class Conditions:
    """What a host says; empty where it does not. ``turbo`` and ``smt`` are ``on`` or ``off``."""

    governor: str = ""
    driver: str = ""
    turbo: str = ""
    smt: str = ""
    huge_pages: str = ""
    numa_nodes: int = 0

    def describe(self) -> list[str]:
        """Each in words."""
        numa = f"{self.numa_nodes} NUMA node{'s' * (self.numa_nodes != 1)}"
        found = (
            ("governor", self.governor),
            ("turbo", self.turbo),
            ("SMT", self.smt),
            ("transparent huge pages", self.huge_pages),
        )
        words = [f"{name} {value}" for name, value in found if value]
        return [*words, numa] if self.numa_nodes else words

    def note(self, host: str) -> str | None:
        """A sentence where the clock of the cores may be slow."""
        slow = [name for name in self.governor.split(AND) if name in SAVING]
        if self.driver in ACTIVE_DRIVERS:
            slow = [name for name in slow if name != "powersave"]
        if not slow:
            return None
        which = "the cores" if slow == [self.governor] else "some cores"
        return (
            f"governor {slow[0]} lets {which} of {host} slow down while they wait: choose "
            "performance, as with cpupower frequency-set -g performance"
        )


@dataclass(frozen=True)
class CorePlacement:
    """Where the ranks of a host run: in words, and a sentence where some share a core."""

    words: str
    note: str | None = None


def read(cores: Iterable[int], root: str = SYS) -> Conditions:
    """What the system says of itself, and of the cores that ranks use."""
    scaling = [f"{root}/{CPU}/cpu{core}/cpufreq/scaling" for core in cores]
    governors, drivers = (
        sorted({content(f"{one}_{name}") for one in scaling} - {""})
        for name in ("governor", "driver")
    )
    no_turbo = content(f"{root}/{CPU}/intel_pstate/no_turbo")
    boost = content(f"{root}/{CPU}/cpufreq/boost")
    pages = content(f"{root}/kernel/mm/transparent_hugepage/enabled")
    nodes = cores_of(content(f"{root}/devices/system/node/online"))
    return Conditions(
        governor=AND.join(governors),
        driver=AND.join(drivers),
        turbo={"0": "on", "1": "off"}.get(no_turbo, {"0": "off", "1": "on"}.get(boost, "")),
        smt={"0": "off", "1": "on"}.get(content(f"{root}/{CPU}/smt/active"), ""),
        huge_pages=pages.partition("[")[2].partition("]")[0],
        numa_nodes=len(nodes),
    )


def content(path: str | os.PathLike[str]) -> str:
    """A file of the kernel's; empty where there is none."""
    try:
        with open(path, errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def cores_of(text: str) -> frozenset[int]:
    """The numbers of a list of the kernel's, as in ``0-3,8``; none of what is no list.

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


def placement(
    host: str,
    ranks: Sequence[int],
    masks: Sequence[frozenset[int]],
    cores: int,
    root: str = SYS,
) -> CorePlacement:
    """Where ``ranks`` run, of which each may use the cores of its mask, on a host of ``cores``."""
    if not all(masks):
        return CorePlacement("")
    every = frozenset().union(*masks)
    counts = sorted(map(len, masks))
    if set(masks) == {every} and len(every) == cores > 1:
        return CorePlacement(f"ranks not bound within {cores} cores")
    words = f"each rank bound to {counts[0]}"
    words += (
        f" core{'s' * (counts[-1] > 1)}" if counts[0] == counts[-1] else f" to {counts[-1]} cores"
    )
    numa = on_numa_nodes(masks, root)
    words += f", {numa}" if numa else ""
    threads = {
        core: cores_of(content(f"{root}/{CPU}/cpu{core}/topology/thread_siblings_list"))
        or frozenset({core})
        for core in every
    }
    of_a_core = max(map(len, threads.values()))
    for number, what, parts in (
        (cores, "core", masks),
        (
            cores // of_a_core,
            "the physical core of core",
            [frozenset(min(threads[core]) for core in mask) for mask in masks],
        ),
    ):
        users: dict[frozenset[int], list[int]] = {}
        for rank, own in zip(ranks, parts, strict=True):
            users.setdefault(own, []).append(rank)
        shared = next((own for own, by in users.items() if len(own) == 1 and len(by) > 1), None)
        # with more ranks than cores they have to share, which is said elsewhere
        if shared is not None and len(ranks) <= number:
            from omb_py.core.text.ranks import some_ranks

            return CorePlacement(
                words,
                f"{some_ranks(users[shared])} share {what} {min(shared)} of {host}, which has "
                f"{number}: bind each rank to a core of its own, as with --bind-to core",
            )
    return CorePlacement(words)


def on_numa_nodes(masks: Sequence[frozenset[int]], root: str = SYS) -> str:
    """How many ranks each of several NUMA nodes has, in words; empty where there is but one."""
    folder = f"{root}/devices/system/node"
    nodes = sorted(cores_of(content(f"{folder}/online")))
    if len(nodes) < 2:
        return ""
    cores = {node: cores_of(content(f"{folder}/node{node}/cpulist")) for node in nodes}
    homes = [[node for node in nodes if mask & cores[node]] for mask in masks]
    counts = {node: homes.count([node]) for node in nodes}
    bound = ", ".join(f"{count} on NUMA node {node}" for node, count in counts.items() if count)
    several = sum(len(home) > 1 for home in homes)
    return ", ".join(filter(None, [bound, f"{several} on several NUMA nodes" if several else ""]))


def examine(job: Job) -> tuple[dict[str, str], list[str]]:
    """Metadata on the conditions of the host that is worst, and sentences to be said; collective.

    Both are the same on all ranks.
    """
    name = os.uname().nodename
    host = job.on_host()
    gathered = host.gather(job.rank.to_bytes(8, "little") + core_mask())
    host.free()
    told, score = "", 0.0
    if gathered:
        ranks = [int.from_bytes(data[:8], "little") for data in gathered]
        masks = [frozenset(cores_in(data[8:])) for data in gathered]
        found = read(sorted(frozenset().union(*masks)))
        placed = placement(name, ranks, masks, os.cpu_count() or 1)
        said = [note for note in (placed.note, found.note(name)) if note]
        score = 1.0 + len(said)
        words = ", ".join(filter(None, [*found.describe(), placed.words]))
        told = "\n".join([words, *said])
    worst = job.rank_of_greatest(score)
    words, *said = job.text_of(told, worst).split("\n")
    return ({METADATA: words} if words else {}), said


def clock_tick(readings: Sequence[float]) -> float:
    """The tick in seconds of a clock that was read again and again.

    A clock that never shows the same twice ticks at most as slowly as it is read: then 0 is
    returned, for its tick does not matter.
    """
    steps = [after - before for before, after in pairwise(readings)]
    forward = sorted(step for step in steps if step > 0)
    return forward[0] if forward and len(forward) < len(steps) else 0.0


def tick() -> float:
    """The tick of the clock that iterations are timed by."""
    return clock_tick([time.perf_counter() for _ in range(CLOCK_READINGS)])


def coarse(tick_seconds: float, iterations: Sequence[tuple[int, float]]) -> str | None:
    """A sentence for message sizes whose median iteration, in seconds, has few ticks."""
    sizes = [size for size, seconds in iterations if tick_seconds > COARSE * seconds]
    if not sizes:
        return None
    return (
        f"a tick of the clock, {tick_seconds * 1e9:.0f} ns, is over {COARSE:.0%} of an iteration "
        f"at {', '.join(map(str, sizes))} bytes: medians and percentiles are steps of it there, "
        "means hold"
    )
