"""The words of nccl-tests (and rccl-tests): programs, element types, factors, what a run says.

Sizes: nccl-tests prints the whole of what a rank holds, we the block that goes to each other rank
(``docs/definitions.md``); its ``count`` is the elements of that block for every collective but
the reductions and broadcasts. Times: it starts all iterations one after another and waits once.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from omb_py.results.readers.formats.fixed_width import Shown


@dataclass(frozen=True)
class Program:
    """One of its programs: our name, whether its size is of all blocks, and bus bandwidth.

    ``factor`` is what algorithm bandwidth is multiplied by: ``twice`` is 2 (P - 1) / P, ``others``
    (P - 1) / P. ``adds`` if it is a reduction, ``parts`` if its count is of a part of the size.
    """

    benchmark: str
    blocks: bool
    factor: str
    adds: bool = False
    parts: bool = False


PROGRAMS = {
    "all_reduce": Program("allreduce", False, "twice", adds=True),
    "all_gather": Program("allgather", True, "others", parts=True),
    "broadcast": Program("bcast", False, "one"),
    "reduce": Program("reduce", False, "one", adds=True),
    "reduce_scatter": Program("reduce_scatter_block", False, "others", adds=True, parts=True),
    "alltoall": Program("alltoall", True, "others", parts=True),
    "gather": Program("gather", True, "others", parts=True),
    "scatter": Program("scatter", True, "others", parts=True),
    "sendrecv": Program("sendrecv", False, "one"),
    "hypercube": Program("nccl_hypercube", False, "others", parts=True),
}
ROOTED = frozenset(("broadcast", "reduce", "gather", "scatter"))
NAMES = "|".join(sorted(PROGRAMS, key=len, reverse=True))
MENTION = re.compile(rf"(?<![A-Za-z0-9])({NAMES})_perf(?![A-Za-z0-9])")
NAMED_FILE = re.compile(rf"(?<![A-Za-z0-9])({NAMES})(?![A-Za-z0-9])")

TYPES = {
    "int8": (1, "int8", "MPI_INT8_T"),
    "char": (1, "int8", "MPI_INT8_T"),
    "uint8": (1, "uint8", "MPI_UINT8_T"),
    "int32": (4, "int32", "MPI_INT32_T"),
    "int": (4, "int32", "MPI_INT32_T"),
    "uint32": (4, "uint32", "MPI_UINT32_T"),
    "int64": (8, "int64", "MPI_INT64_T"),
    "uint64": (8, "uint64", "MPI_UINT64_T"),
    "half": (2, "float16", "half"),
    "bfloat16": (2, "bfloat16", "bfloat16"),
    "float": (4, "float32", "MPI_FLOAT"),
    "double": (8, "float64", "MPI_DOUBLE"),
    "f8e4m3": (1, "float8_e4m3", "f8e4m3"),
    "f8e5m2": (1, "float8_e5m2", "f8e5m2"),
    "fp8_e4m3": (1, "float8_e4m3", "fp8_e4m3"),
    "fp8_e5m2": (1, "float8_e5m2", "fp8_e5m2"),
}
"""Bytes of an element, and its name in NumPy's words and in MPI's, or in NCCL's where MPI has
none: what tells rows of several types apart."""

VERSION = re.compile(r"# (?P<who>n|r)ccl-tests version (?P<version>\S+)(?: (?P<rest>.*\S))?\s*")
RCCL_VERSION = re.compile(r"rccl-tests: Version (\S+)\s*")
STARTING = re.compile(r"# Collective test starting: (?P<program>\S+)\s*")
SETTINGS = re.compile(
    r"# nThread (?P<threads>\d{1,9}) nGpus (?P<gpus>\d{1,9}) "
    r"minBytes \d+ maxBytes (?P<largest>\d{1,18}) step: \d+\(\w+\)(?P<rest>.*)"
)
SETTING = {
    "warmup": re.compile(r"\bwarmup iters: (\d{1,9})\b"),
    "iterations": re.compile(r"(?<!warmup )(?<!agg )\biters: (\d{1,9})\b"),
    "agg iters": re.compile(r"\bagg iters: (\d{1,9})\b"),
    "graph": re.compile(r"\bgraph: (\d{1,9})\b"),
    "unalign": re.compile(r"\bunalign: (\d{1,9})\b"),
}
RANK = re.compile(
    r"#\s+Rank\s+(?P<rank>\d{1,7})\s(?:Group\s+(?P<group>\d{1,7})\s)?\s*Pid\s+\d+ on\s+"
    r"(?P<host>\S+) device\s+\d+ \[(?P<bus>[\w:.]+)\] (?P<device>.*\S)\s*"
)
BLOCKING = re.compile(r"# Blocking Enabled: (.*\S)\s*")
LIBRARY = re.compile(r"(?:NCCL|RCCL) version ?:? ?(\d\S*)\s*")


@dataclass
class Run:
    """What stands above a table: who measures what, with which settings, on which devices.

    ``devices`` are those of each process, ``ranks`` the host of each rank by its group and number.
    """

    name: str
    suite: str = ""
    program: str | None = None
    unknown: str | None = None
    settings: dict[str, int] = field(default_factory=dict)
    devices: int = 1
    blocking: str | None = None
    ranks: dict[tuple[int, int], str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int | None:
        """Ranks of a communicator, if all of them are there, each once, in groups alike."""
        members = sorted(rank for _, rank in self.ranks)
        if not members or members != list(range(len(members))) or len(members) % self.devices:
            return None
        sizes = set(Counter(group for group, _ in self.ranks).values())
        return sizes.pop() if len(sizes) == 1 else None

    @property
    def groups(self) -> int:
        """Communicators that measure at the same time."""
        return len({group for group, _ in self.ranks})

    @property
    def amd(self) -> bool:
        """Whether devices are AMD's, or rccl-tests says so."""
        words = " ".join(self.said.values())
        return self.suite.startswith("rccl") or re.search("AMD|Radeon", words) is not None


def describe(run: Run, program: str) -> dict[str, Any]:
    """The columns that all rows of a table share."""
    amd = run.amd
    row: dict[str, Any] = {
        "run": run.name,
        "suite": run.suite or ("rccl-tests" if amd else "nccl-tests"),
        "benchmark": PROGRAMS[program].benchmark,
        "binding": "rccl" if amd else "nccl",
        "buffer": "hip" if amd else "cuda",
        "placement": "D",
    }
    if run.size:
        row["ranks"] = run.size
        row["hosts"] = len(set(run.ranks.values()))
    for name in ("iterations", "warmup"):
        if name in run.settings:
            row[name] = run.settings[name]
    unusual = [
        f"{name} {run.settings[name]}"
        for name, usual in (("agg iters", 1), ("graph", 0), ("unalign", 0))
        if run.settings.get(name, usual) != usual
    ]
    unusual += [f"{run.groups} groups"] if run.groups > 1 else []
    unusual += [f"blocking: {run.blocking}"] if run.blocking else []
    if unusual:
        row["part"] = ", ".join(unusual)
    return row


def factors(program: str, ranks: int | None) -> Shown:
    """What turns algorithm bandwidth into bus bandwidth: what it may be, if ranks are unknown."""
    others = Shown(0.0, 1.0) if ranks is None else Shown((ranks - 1) / ranks, (ranks - 1) / ranks)
    return {"twice": others.times(2), "others": others, "one": Shown(1.0, 1.0)}[
        PROGRAMS[program].factor
    ]


def program_of_file(name: str) -> str | None:
    """The program that a file is named after, if it is one alone."""
    found = set(MENTION.findall(name)) or set(NAMED_FILE.findall(name))
    return found.pop() if len(found) == 1 else None


def fresh(run: Run, name: str) -> Run:
    """The next run: nothing is known of it but which suite is in use."""
    return replace(Run(name), suite=run.suite)


def bandwidths_agree(
    nbytes: int, time: Shown, algorithm: Shown, bus: Shown, factor: Shown
) -> tuple[bool, bool]:
    """Whether algorithm bandwidth is size by time, and bus bandwidth that times a factor.

    The second value tells whether the first of the two has the factor, too: so do hypercube's,
    and those of some programs before 2.0.1.
    """
    # GB/s * us = 10^3 bytes; products, since a bandwidth may have been printed as 0.00
    by_algorithm, by_bus = (
        rate.times(time.minimum * 1e3, time.maximum * 1e3) for rate in (algorithm, bus)
    )
    whole, part = Shown(nbytes, nbytes), factor.times(nbytes)
    plain, both = by_algorithm.meets(whole), by_algorithm.meets(part)
    return by_bus.meets(part) and (plain or both), both and not plain
