"""The words of nccl-tests and rccl-tests, and what their rows must fulfil.

Sizes: nccl-tests prints the whole of what a rank holds, we the block that goes to each other rank
(``docs/definitions.md``); its ``count`` is the elements of that block for every collective but
the reductions and broadcasts. Times: it starts all iterations one after another and waits once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, floor
from statistics import median
from typing import Any

from omb_py.results.readers.formats.fixed_width import (
    Notes,
    Shown,
    columns_kept,
    shown,
    word_ends,
)


@dataclass(frozen=True)
class Program:
    """One of its programs: our name, whether its size is of all blocks, and bus bandwidth.

    ``factor`` is what algorithm bandwidth is multiplied by: ``twice`` is 2 (P - 1) / P, ``others``
    (P - 1) / P. ``adds`` if it is a reduction, ``parts`` if its count is of a part of the size.
    ``uneven`` if ranks send messages of several sizes, which together are the size.
    """

    benchmark: str
    blocks: bool
    factor: str
    adds: bool = False
    parts: bool = False
    uneven: bool = False


PROGRAMS = {
    "all_reduce": Program("allreduce", False, "twice", adds=True),
    "all_gather": Program("allgather", True, "others", parts=True),
    "broadcast": Program("bcast", False, "one"),
    "reduce": Program("reduce", False, "one", adds=True),
    "reduce_scatter": Program("reduce_scatter_block", False, "others", adds=True, parts=True),
    "alltoall": Program("alltoall", True, "others", parts=True),
    "alltoallv": Program("nccl_alltoallv", False, "others", uneven=True),
    "gather": Program("gather", True, "others", parts=True),
    "scatter": Program("scatter", True, "others", parts=True),
    "sendrecv": Program("sendrecv", False, "one"),
    "hypercube": Program("nccl_hypercube", False, "others", parts=True),
}
ROOTED = frozenset(("broadcast", "reduce", "gather", "scatter"))
NAMES = "|".join(sorted(PROGRAMS, key=len, reverse=True))
MENTION = re.compile(rf"(?<![A-Za-z0-9])({NAMES})_perf(?![A-Za-z0-9])")
WORDS = {
    **{name.replace("_", ""): name for name in PROGRAMS},
    **{what.benchmark.replace("_", ""): name for name, what in PROGRAMS.items()},
    "reducescatter": "reduce_scatter",
    "all2all": "alltoall",
}
"""Programs by their names and by ours, without underscores: how people name files."""

NAMED_FILE = re.compile(
    r"(?<![A-Za-z0-9])("
    + "|".join("[_-]?".join(word) for word in sorted(WORDS, key=len, reverse=True))
    + r")(?:_?perf)?(?![A-Za-z0-9])"
)

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

    ``devices`` are those of each process, ``ranks`` the host of each rank by its group and number;
    ``numbers`` are of ranks in a group and of groups, where those are said without their hosts.
    """

    name: str
    suite: str = ""
    program: str | None = None
    unknown: str | None = None
    settings: dict[str, int] = field(default_factory=dict)
    devices: int = 1
    blocking: str | None = None
    ranks: dict[tuple[int, int], str] = field(default_factory=dict)
    numbers: tuple[int, int] | None = None
    said: dict[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int | None:
        """Ranks of a communicator, if all of them are there, each once, in groups alike."""
        if self.numbers:
            return self.numbers[0]
        members = sorted(rank for _, rank in self.ranks)
        if not members or members != list(range(len(members))) or len(members) % self.devices:
            return None
        sizes = set(Counter(group for group, _ in self.ranks).values())
        return sizes.pop() if len(sizes) == 1 else None

    @property
    def groups(self) -> int:
        """Communicators that measure at the same time."""
        return self.numbers[1] if self.numbers else len({group for group, _ in self.ranks})

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
    if run.size and run.ranks:
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


def program_of(benchmark: str | None) -> str | None:
    """The program of a benchmark in our words or in nccl-tests'; None for what it does not have."""
    return WORDS.get((benchmark or "").replace("_", "").lower())


def program_of_file(name: str) -> str | None:
    """The program that a file is named after, if it is one alone."""
    words = NAMED_FILE.findall(name.lower())
    found = {WORDS[word.replace("_", "").replace("-", "")] for word in words}
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


NUMBER = r"\d{1,15}(?:\.\d\d?)?(?:e[+-]\d\d)?"
FINER = r"\d{1,15}\.\d{3}"
"""A number of a build that prints three decimals, in all columns then."""
SHORT = r"\d{1,15}(?:\.\d{1,5})?(?:e[+-]\d\d)?"
"""A number of up to six digits, as ``%g`` prints wrong elements and bits."""

WRONG = re.compile(rf"N/A|-?nan|inf|{SHORT}")
TELLING = 1.0
"""GB/s from which on a printed bandwidth has digits enough to tell numbers of ranks apart."""

TWICE = "copies of a program built without MPI print side by side, or two runs do"

TOLERANCE = 0.01
"""How far the quotient of two such bandwidths may be from what it was before they were rounded."""


@dataclass(frozen=True)
class Layout:
    """The columns that a header of text names, and where their headings end."""

    redop: bool
    root: bool
    bits: bool
    each: bool
    stamp: bool
    ends: tuple[int, ...]
    longer: frozenset[int]


@dataclass
class NcclTable:
    """What rows share, and the rows so far, whose program may not be known yet.

    ``errors`` if their last column is an error of the result, not a number of wrong elements.
    """

    index: int
    run: Run
    program: str | None
    errors: bool = False
    rows: list[NcclRow] = field(default_factory=list)
    last: dict[tuple[object, ...], int] = field(default_factory=dict)

    def add(self, row: NcclRow, notes: Notes) -> None:
        """Add a row, unless its size cannot follow the one before."""
        key = row.key
        if row.nbytes == 0:
            notes.add(row.index, "a size of no bytes, for fewer elements than ranks, left out")
        elif row.nbytes == self.last.get(key):
            text = f"size {row.nbytes} is there twice, so both are left out: {TWICE}"
            notes.add(row.index, text, rows=2)
            self.rows = [one for one in self.rows if (one.key, one.nbytes) != (key, row.nbytes)]
        elif row.nbytes <= self.last.get(key, 0):
            text = f"size {row.nbytes} after {self.last[key]}: rows of two tables? left out"
            notes.add(row.index, text)
        elif not self.run.settings.get("largest", row.nbytes) >= row.nbytes:
            notes.add(row.index, f"size {row.nbytes}, which was not requested, left out")
        else:
            self.last[key] = row.nbytes
            self.rows.append(row)


@dataclass(frozen=True)
class NcclRow:
    """One size: the cells of a measurement out of place (False), in place (True), or of both.

    ``samples`` are columns from the times of single iterations, where those are known.
    """

    index: int
    nbytes: int
    count: int
    dtype: str
    redop: str
    root: str
    halves: Mapping[bool, tuple[str, ...]]
    samples: Mapping[bool, dict[str, Any]] = field(default_factory=dict)

    @property
    def key(self) -> tuple[object, ...]:
        """What rows of ascending sizes share."""
        return (self.dtype, self.redop, self.root, *self.halves)

    @property
    def block(self) -> int:
        """Bytes of the elements that are counted."""
        return self.count * TYPES[self.dtype][0]


def row_of(layout: Layout, line: str, index: int) -> NcclRow | None:
    """A line taken apart, or None when it does not have what the header names."""
    cells = line.split()
    if layout.stamp:
        if not re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", " ".join(cells[-2:])):
            return None
        del cells[-2:]
    redop, root = "none", "-1"
    before = 3 + layout.redop + layout.root
    half = 4 + layout.bits + 4 * layout.each
    if len(cells) == before - 1 + 2 * half and layout.redop:
        before -= 1  # programs that add nothing left the operation blank once
    elif layout.redop and len(cells) > 3:
        redop = cells[3]
    if len(cells) != before + 2 * half or not re.fullmatch(r"[a-z]{2,8}", redop):
        return None
    if layout.root:
        root = cells[before - 1]
    if not re.fullmatch(r"-1|\d{1,7}", root) or cells[2] not in TYPES:
        return None
    if not all(re.fullmatch(r"\d{1,18}", cell) for cell in cells[:2]):
        return None
    halves = []
    for start in (before, before + half):
        numbers, wrong = cells[start : start + 3], cells[start + 3 : start + 4 + layout.bits]
        rest = cells[start + 4 + layout.bits : start + half]
        shapes = (
            all(re.fullmatch(shape, cell) for cell in (*numbers, *rest))
            for shape in (NUMBER, FINER)
        )
        if not any(shapes) or not all(WRONG.fullmatch(cell) for cell in wrong):
            return None
        if layout.each and not float(rest[0]) <= float(rest[2]) <= float(rest[1]):
            return None  # minimum, maximum, 99th percentile of single iterations
        halves.append((*numbers, wrong[0]))
    both = dict(zip((False, True), halves, strict=True))
    return NcclRow(index, int(cells[0]), int(cells[1]), cells[2], redop, root, both)


def in_columns(layout: Layout, line: str) -> bool:
    """Whether a row's numbers stand below their headings."""
    ends, headings = word_ends(line), layout.ends
    if layout.stamp:  # two words below one heading
        ends = (*ends[:-2], ends[-1])
    if len(ends) == len(headings) - 1:  # no operation
        headings = (*headings[:3], *headings[4:])
    return columns_kept(line, ends, headings, layout.longer)


def contradiction(row: NcclRow, program: str, ranks: int | None) -> str | None:
    """What does not agree in size, count and type."""
    if PROGRAMS[program].uneven:
        whole = not row.nbytes % TYPES[row.dtype][0]
        fits = not (row.count and ranks) or row.nbytes <= row.block * ranks
        return None if whole and fits else "a size that is not that of the elements of all ranks"
    if not PROGRAMS[program].parts:
        return None if row.nbytes == row.block else "a size that is not that of the elements"
    if not row.block or row.nbytes % row.block or (ranks and row.nbytes != row.block * ranks):
        return "a size that is not that of the elements of all ranks"
    return None


def values_of(
    row: NcclRow, half: tuple[str, ...], program: str, factor: Shown, errors: bool
) -> dict[str, Any] | None:
    """The columns of one measurement, or None when its numbers contradict each other."""
    time, algorithm, bus = map(number, half[:3])
    agree, twice = bandwidths_agree(row.nbytes, time, algorithm, bus, factor)
    if not agree or float(half[0]) <= 0:
        return None
    values: dict[str, Any] = {
        "bytes": row.block if PROGRAMS[program].blocks else row.nbytes,
        "dtype": TYPES[row.dtype][1],
        "mpi_type": TYPES[row.dtype][2],
        "latency_us": float(half[0]),
        "algbw_GBps": None if twice else float(half[1]),
        "busbw_GBps": float(half[2]),
    }
    if program in ROOTED and row.root != "-1":
        values["root"] = row.root
    if PROGRAMS[program].adds and row.redop not in ("sum", "none"):
        values["part"] = row.redop
    if re.fullmatch(SHORT, half[3]):
        none = float(half[3]) == 0
        # an error of old versions may be rounding: how much was allowed is not printed
        values["validation"] = "Pass" if none else (None if errors else "Fail")
    return values


def number(text: str) -> Shown:
    """A number as it was printed, with an exponent or without."""
    if "e" not in text:
        return shown(text)
    digits, _, exponent = text.partition("e")
    return shown(digits).times(10.0 ** int(exponent))


def ratio(table: NcclTable) -> float | None:
    """How many times the algorithm bandwidth the bus bandwidth is, in most of the fast rows."""
    ratios = [
        float(half[2]) / float(half[1])
        for row in table.rows
        for half in row.halves.values()
        if float(half[1]) >= TELLING and float(half[2]) >= TELLING
    ]
    return median(ratios) if ratios else None


def ranks_told(table: NcclTable, program: str | None) -> int | None:
    """The ranks: from sizes of all blocks and counts of one, or from the factor of allreduce.

    None where its digits allow several numbers.
    """
    if program is None or not (PROGRAMS[program].parts or PROGRAMS[program].factor == "twice"):
        return None
    if PROGRAMS[program].parts:
        told = {row.nbytes // row.block for row in table.rows if row.block}
        return told.pop() if len(told) == 1 else None
    low, high = 0.0, 2.0
    for row in table.rows:
        for _, algorithm, bus, _ in row.halves.values():
            if float(algorithm) >= TELLING and float(bus) >= TELLING:
                low = max(low, shown(bus).minimum / shown(algorithm).maximum)
                high = min(high, shown(bus).maximum / shown(algorithm).minimum)
    if not 1 < low <= high < 2:  # factor = 2 (P - 1) / P, so P = 2 / (2 - factor)
        return None
    fewest, most = ceil(2 / (2 - low)), floor(2 / (2 - high))
    return fewest if fewest == most else None


def ranks_fit(table: NcclTable, program: str, ranks: int) -> bool:
    """Whether most rows whose bandwidths tell the number of ranks have that number."""
    fit = [
        contradiction(row, program, ranks) is None
        and values_of(row, half, program, factors(program, ranks), table.errors) is not None
        for row in table.rows
        for half in row.halves.values()
        if float(half[2]) >= TELLING
    ]
    return not fit or 2 * sum(fit) > len(fit)


def factor_of(table: NcclTable, program: str, ranks: int | None) -> Shown:
    """The factor of bus bandwidth; of an unknown number of ranks the one that most rows have."""
    possible, usual = factors(program, ranks), ratio(table)
    if ranks or possible.minimum == possible.maximum or usual is None:
        return possible
    if not possible.meets(Shown(usual * (1 - TOLERANCE), usual)):
        return possible
    return Shown(usual * (1 - TOLERANCE), usual * (1 + TOLERANCE))


def measurements(table: NcclTable, notes: Notes) -> Iterator[dict[str, Any]]:
    """The rows of a whole table, once it is known of what; problems with others become notes."""
    if not table.rows:
        return
    program = table.program
    if program is None and (ratio(table) or 0) > 1 + TOLERANCE:
        program = "all_reduce"  # the only one whose factor is above 1
    if program is None:
        text = "neither this file nor its name tells which program printed this table"
        advice = "--assume benchmark=allreduce (or another) does"
        notes.add(table.index, f"{text}, so it is left out; {advice}", rows=len(table.rows))
        return
    ranks = table.run.size or ranks_told(table, program)
    if ranks and not ranks_fit(table, program, ranks):
        text = f"bandwidths that are not those of {program} on {ranks} ranks; the table is left out"
        notes.add(table.index, text, rows=len(table.rows))
        return
    factor = factor_of(table, program, ranks)
    shared = describe(table.run, program)
    if ranks:
        shared["ranks"] = ranks
    for row in table.rows:
        if reason := contradiction(row, program, ranks):
            notes.add(row.index, f"{reason}, left out")
            continue
        halves = {
            in_place: values_of(row, half, program, factor, table.errors)
            for in_place, half in row.halves.items()
        }
        if None in halves.values():
            notes.add(row.index, "bandwidths that do not fit size and time, left out")
            continue
        for in_place, values in halves.items():
            place = {"in_place": in_place, "line": row.index + 1}
            yield join(shared, values or {}) | row.samples.get(in_place, {}) | place


def join(shared: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """A row's columns; what is unusual of it beside what is of all."""
    parts = [text for text in (shared.get("part"), values.pop("part", None)) if text]
    return shared | values | ({"part": ", ".join(parts)} if parts else {})
