"""The tables of nccl-tests, and of rccl-tests, which prints the same ones.

Sizes: nccl-tests prints the whole of what a rank holds, we the block that goes to each other rank
(``docs/definitions.md``); its ``count`` is the elements of that block for every collective but
the reductions and broadcasts. Times: it starts all iterations one after another and waits once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil, floor
from pathlib import PurePath
from statistics import median
from typing import Any

from omb_py.results.readers import LineReader, Notes, Reading, Source

PROGRAMS = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "broadcast": "bcast",
    "reduce": "reduce",
    "reduce_scatter": "reduce_scatter_block",
    "alltoall": "alltoall",
    "alltoallv": "nccl_alltoallv",
    "gather": "gather",
    "scatter": "scatter",
    "sendrecv": "sendrecv",
    "hypercube": "nccl_hypercube",
}
"""Its programs, and our names for what they measure."""

ROOTED = frozenset("broadcast reduce gather scatter".split())
ADDING = frozenset("all_reduce reduce reduce_scatter".split())
OF_BLOCKS = frozenset("all_gather alltoall gather scatter".split())
"""Those whose size is of all blocks, ours of one."""

OF_PARTS = OF_BLOCKS | {"reduce_scatter", "hypercube"}
"""Those whose count is of a part of the size."""

NAMES = "|".join(sorted(PROGRAMS, key=len, reverse=True))
MENTION = re.compile(rf"(?<![A-Za-z0-9])({NAMES})_perf(?![A-Za-z0-9])")
WORDS = {
    **{name.replace("_", ""): name for name in PROGRAMS},
    **{ours.replace("_", ""): name for name, ours in PROGRAMS.items()},
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
    "char": (1, "int8", "MPI_INT8_T"),
    "int": (4, "int32", "MPI_INT32_T"),
    "half": (2, "float16", "half"),
    "bfloat16": (2, "bfloat16", "bfloat16"),
    "float": (4, "float32", "MPI_FLOAT"),
    "double": (8, "float64", "MPI_DOUBLE"),
}
TYPES |= {f"int{8 * n}": (n, f"int{8 * n}", f"MPI_INT{8 * n}_T") for n in (1, 4, 8)}
TYPES |= {f"uint{8 * n}": (n, f"uint{8 * n}", f"MPI_UINT{8 * n}_T") for n in (1, 4, 8)}
TYPES |= {f"f8{kind}": (1, f"float8_{kind}", f"f8{kind}") for kind in ("e4m3", "e5m2")}
TYPES |= {f"fp8_{kind}": (1, f"float8_{kind}", f"fp8_{kind}") for kind in ("e4m3", "e5m2")}
"""Bytes of an element, and its name in NumPy's words and in MPI's, or in NCCL's where MPI has
none: what tells rows of several types apart."""

VERSION = re.compile(r"# (?P<who>n|r)ccl-tests version (?P<version>\S+)(?: (?P<rest>.*\S))?\s*")
RCCL_VERSION = re.compile(r"rccl-tests: Version (\S+)\s*")
STARTING = re.compile(r"# Collective test starting: (?P<program>\S+)\s*")
SETTINGS = re.compile(r"# nThread (?P<threads>\d{1,9}) nGpus (?P<gpus>\d{1,9}) (?P<rest>.*)")
SETTING = re.compile(r"\b((?:warmup |agg )?[a-z]+): (\d{1,9})\b")
NAMES_OF_SETTINGS = {"warmup iters": "warmup", "iters": "iterations"} | {
    name: name for name in ("agg iters", "graph", "unalign")
}
RANK = re.compile(
    r"#\s+Rank\s+(?P<rank>\d{1,7})\s(?:Group\s+(?P<group>\d{1,7})\s)?\s*Pid\s+\d+ on\s+"
    r"(?P<host>\S+) device\s+\d+ \[(?P<bus>[\w:.]+)\] (?P<device>.*\S)\s*"
)
BLOCKING = re.compile(r"# Blocking Enabled: (.*\S)\s*")
LIBRARY = re.compile(r"(?:NCCL|RCCL) version ?:? ?(\d\S*)\s*")
END = re.compile(r"# (?:Out of bounds values|Avg bus bandwidth|Collective test concluded)\b")

HALF = ["time", "algbw", "busbw", "#wrong"]
"""What each half of a header begins with; older versions call the last column ``error``."""

NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,6})?(?:e[+-]\d\d)?")
WRONG = re.compile(rf"N/A|-?nan|inf|{NUMBER.pattern}")
LOOKS_LIKE_A_ROW = re.compile(r"\s*\d+\s+\d+\s+[a-z]")
SHAPES = {
    "size": re.compile(r"\d{1,18}"),
    "count": re.compile(r"\d{1,18}"),
    "type": re.compile("|".join(TYPES)),
    "redop": re.compile(r"[a-z]{2,8}"),
    "root": re.compile(r"-1|\d{1,7}"),
}
STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")

TELLING = 1.0
"""GB/s from which on a printed bandwidth has digits enough to tell numbers of ranks apart."""

TOLERANCE = 0.01
"""How far the quotient of two such bandwidths may be from what it was before they were rounded."""

TWICE = "copies of a program built without MPI print side by side, or two runs do"


@dataclass
class Run:
    """What stands above a table: who measures what, with which settings, on which devices.

    ``devices`` are those of each process, ``ranks`` the host of each rank by its group and number.
    """

    name: str
    suite: str = ""
    program: str | None = None
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

    def describe(self, program: str) -> dict[str, Any]:
        """The columns that all rows of a table share."""
        words = " ".join(self.said.values())
        amd = self.suite.startswith("rccl") or re.search("AMD|Radeon", words) is not None
        row: dict[str, Any] = {
            "run": self.name,
            "suite": self.suite or ("rccl-tests" if amd else "nccl-tests"),
            "benchmark": PROGRAMS[program],
            "binding": "rccl" if amd else "nccl",
            "buffer": "hip" if amd else "cuda",
            "placement": "D",
        }
        if self.size:
            row |= {"ranks": self.size, "hosts": len(set(self.ranks.values()))}
        usual = {"agg iters": 1, "graph": 0, "unalign": 0}
        unusual = []
        for name, value in self.settings.items():
            if name not in usual:
                row[name] = value
            elif value != usual[name]:
                unusual.append(f"{name} {value}")
        groups = len({group for group, _ in self.ranks})
        unusual += [f"{groups} groups"] if groups > 1 else []
        unusual += [f"blocking: {self.blocking}"] if self.blocking else []
        return row | ({"part": ", ".join(unusual)} if unusual else {})


@dataclass(frozen=True)
class NcclRow:
    """One size: time, two bandwidths and wrong elements, out of place (False), in place (True).

    ``samples`` are columns about single iterations, where those are known.
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
    def block(self) -> int:
        """Bytes of the elements that are counted."""
        return self.count * TYPES[self.dtype][0]

    def fits(self, program: str, ranks: int | None) -> bool:
        """Whether the size is that of the elements, of all ranks where each counts a part."""
        if program not in OF_PARTS:
            return self.nbytes == self.block or program == "alltoallv"
        whole = self.block > 0 and self.nbytes % self.block == 0
        return whole and (not ranks or self.nbytes == self.block * ranks)


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
        key = (row.dtype, row.redop, row.root, *row.halves)
        last = self.last.get(key, 0)
        if row.nbytes == 0:
            notes.add(row.index, "a size of no bytes, for fewer elements than ranks, left out")
        elif row.nbytes == last:
            text = f"size {row.nbytes} is there twice, so both are left out: {TWICE}"
            notes.add(row.index, text, rows=2)
            same = (row.nbytes, row.dtype, row.redop, row.root)
            self.rows = [o for o in self.rows if (o.nbytes, o.dtype, o.redop, o.root) != same]
        elif row.nbytes < last:
            text = f"size {row.nbytes} after {last}: rows of two tables? left out"
            notes.add(row.index, text)
        else:
            self.last[key] = row.nbytes
            self.rows.append(row)

    def bandwidths(self) -> list[tuple[str, str]]:
        """Algorithm and bus bandwidth wherever both have digits enough to be compared."""
        return [
            (half[1], half[2])
            for row in self.rows
            for half in row.halves.values()
            if float(half[1]) >= TELLING and float(half[2]) >= TELLING
        ]

    def ranks(self, program: str) -> int | None:
        """The ranks: from their list, from sizes of all blocks and counts of one, or, of an
        allreduce, from its bandwidths. None where these allow several numbers."""
        if self.run.size:
            return self.run.size
        if program in OF_PARTS:
            several = {row.nbytes // row.block for row in self.rows if row.block}
            return several.pop() if len(several) == 1 else None
        low, high = 0.0, 2.0
        for pair in self.bandwidths():
            (algorithm, bus), digits = map(float, pair), len(pair[0].partition(".")[2])
            half = 0.5 * 10.0**-digits
            low = max(low, (bus - half) / (algorithm + half))
            high = min(high, (bus + half) / (algorithm - half))
        if program != "all_reduce" or not 1 < low <= high < 2:
            return None
        fewest, most = ceil(2 / (2 - low)), floor(2 / (2 - high))  # the factor is 2 (P - 1) / P
        return fewest if fewest == most else None

    def measurements(self, notes: Notes) -> Iterator[dict[str, Any]]:
        """The rows of a whole table, once it is known of what; else a note."""
        if not self.rows:
            return
        pairs = self.bandwidths()
        doubled = bool(pairs) and median(float(b) / float(a) for a, b in pairs) > 1 + TOLERANCE
        program = self.program or ("all_reduce" if doubled else None)
        reason = None
        if program is None:
            reason = (
                "neither this file nor its name tells which program printed this table, so it is "
                "left out; --assume benchmark=allreduce (or another) does"
            )
        elif program not in PROGRAMS:
            reason = f"{program} is no program that is known; the table is left out"
        elif doubled and program != "all_reduce":
            reason = f"bandwidths of all_reduce, not of {program}; the table is left out"
        if program is None or reason:
            notes.add(self.index, str(reason), rows=len(self.rows))
            return
        ranks = self.ranks(program)
        shared = self.run.describe(program) | ({"ranks": ranks} if ranks else {})
        # hypercube and some programs before 2.0.1 print the bus bandwidth twice; lower ones than
        # this may be equal when they are rounded
        equal = 0.0 if program == "hypercube" else 0.01 * (ranks or 0)
        for row in self.rows:
            if not row.fits(program, ranks):
                notes.add(row.index, "a size that is not that of the elements, left out")
                continue
            values = shared | {"bytes": row.block if program in OF_BLOCKS else row.nbytes}
            _, values["dtype"], values["mpi_type"] = TYPES[row.dtype]
            if program in ROOTED and row.root != "-1":
                values["root"] = row.root
            if program in ADDING and row.redop not in ("sum", "none"):
                parts = [shared["part"]] if "part" in shared else []
                values["part"] = ", ".join([*parts, row.redop])
            for in_place, half in row.halves.items():
                values |= {"latency_us": float(half[0]), "busbw_GBps": float(half[2])}
                twice = program in OF_PARTS and half[1] == half[2] and float(half[1]) >= equal
                values["algbw_GBps"] = None if twice else float(half[1])
                values.pop("validation", None)
                if NUMBER.fullmatch(half[3]):
                    # an error of old versions may be rounding: how much was allowed it hides
                    wrong = None if self.errors else "Fail"
                    values["validation"] = "Pass" if float(half[3]) == 0 else wrong
                place = {"in_place": in_place, "line": row.index + 1}
                yield values | row.samples.get(in_place, {}) | place


def program_of_file(path: str) -> str | None:
    """The program that a file is named after, if it is one alone."""
    words = NAMED_FILE.findall(PurePath(path).name.lower())
    found = {WORDS[word.replace("_", "").replace("-", "")] for word in words}
    return found.pop() if len(found) == 1 else None


def columns_of(line: str) -> list[str] | None:
    """The columns that a header of text names; None for another line."""
    hash_sign, *names = line.replace("cputime", "time").replace("error", "#wrong").split()
    if hash_sign != "#" or names[:3] != ["size", "count", "type"] or "time" not in names:
        return None
    halves = [name for name in names[names.index("time") :] if name != "timestamp"]
    middle = len(halves) // 2
    twice = halves[:middle] == halves[middle:] and halves[:4] == HALF
    return names if twice and set(names[: names.index("time")]) <= SHAPES.keys() else None


def row_of(names: list[str], line: str, index: int) -> NcclRow | None:
    """A line taken apart, or None when it does not have what the header names."""
    cells = line.split()
    if names[-1] == "timestamp":
        cells[-2:] = [" ".join(cells[-2:])]
    if len(cells) == len(names) - 1 and "redop" in names:
        cells.insert(3, "none")  # programs that add nothing left the operation blank once
    if len(cells) != len(names):
        return None
    start = names.index("time")
    second = names.index("time", start + 1)
    halves = {False: tuple(cells[start : start + 4]), True: tuple(cells[second : second + 4])}
    first = {"redop": "none", "root": "-1"} | dict(zip(names[:start], cells, strict=False))
    shapes = SHAPES | dict.fromkeys(names[start:], NUMBER) | {"#wrong": WRONG, "timestamp": STAMP}
    if not all(shapes[name].fullmatch(cell) for name, cell in zip(names, cells, strict=True)):
        return None
    size, count = int(first["size"]), int(first["count"])
    return NcclRow(index, size, count, first["type"], first["redop"], first["root"], halves)


class NcclReading(Reading):
    """Where the reader stands; ``mentions`` are programs named since the last table."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.run = Run(f"{source.path}:1")
        self.mentions: set[str] = set()
        self.used = False
        self.table: NcclTable | None = None
        self.names: list[str] = []
        self.spaced = False

    def line(self, line: str, index: int) -> None:
        """Take a line."""
        if "#" in line:
            self.goes_on(index)
        if "algbw" in line and (names := columns_of(line)):
            self.start_table(line, names, index)
        elif self.table and LOOKS_LIKE_A_ROW.match(line):
            row = row_of(self.names, line, index)
            if row is None or (self.spaced and "  " not in line):
                self.notes.add(index, "not a whole row, left out")
            else:
                self.begun = None
                self.table.add(row, self.notes)
        elif "#" in line or "_perf" in line or "ccl" in line or "CCL" in line:
            self.comment(line.lstrip(), index)

    def comment(self, line: str, index: int) -> None:
        """A line that is neither header nor row: what it tells of the run, if anything."""
        if END.match(line):
            self.finish_table()
        elif match := VERSION.fullmatch(line):
            self.finish(index)
            self.run.suite = f"{match['who']}ccl-tests {match['version']}"
            for word in (match["rest"] or "").split():
                name, _, value = word.partition("=")
                self.run.said[name] = value
        elif match := STARTING.fullmatch(line):
            if self.used or self.run.program or self.run.settings:
                self.finish(index)
            known = MENTION.search(match["program"])
            self.run.program = known[1] if known else match["program"]
        elif match := SETTINGS.fullmatch(line):
            if self.used or self.run.settings:
                self.finish(index)
            program = self.run.program or next(iter(self.mentions), None)
            name = f"{program}_perf" if program else "a program"
            self.begin(index, f"{name} of {self.run.suite or 'nccl-tests'}")
            self.run.devices = max(1, int(match["threads"]) * int(match["gpus"]))
            self.run.settings = {
                NAMES_OF_SETTINGS[name]: int(value)
                for name, value in SETTING.findall(match["rest"])
                if name in NAMES_OF_SETTINGS
            }
        elif match := RANK.fullmatch(line):
            if self.used:
                self.finish(index)
            place = (int(match["group"] or 0), int(match["rank"]))
            self.run.ranks.setdefault(place, match["host"])
            self.run.said["device"] = match["device"]
        elif match := BLOCKING.fullmatch(line):
            self.run.blocking = match[1]
        elif match := RCCL_VERSION.fullmatch(line):
            self.run.suite = f"rccl-tests {match[1]}"
        elif match := LIBRARY.fullmatch(line):
            self.run.said["library"] = match[1]
        else:
            self.mentions |= set(MENTION.findall(line))

    def finish(self, index: int | None) -> None:
        """Another program begins to speak, or the file ends."""
        self.finish_table()
        self.begin(index)
        self.run = Run(f"{self.source.path}:{(index or 0) + 1}", self.run.suite)
        self.used = False

    def start_table(self, line: str, names: list[str], index: int) -> None:
        """A header: rows follow."""
        self.finish_table()
        self.used = True
        if "cputime" in line:
            text = "the processor's time (-C) stands for the time; the table is left out"
            self.notes.add(index, text)
            return
        assumed = (self.source.benchmark or "").replace("_", "").lower()
        mentioned = next(iter(self.mentions)) if len(self.mentions) == 1 else None
        program = self.run.program or mentioned or WORDS.get(assumed)
        if not self.mentions:
            program = program or program_of_file(self.source.path)
        self.mentions = set()
        self.table = NcclTable(index, self.run, program, errors="error" in line.split())
        self.names, self.spaced = names, "  " in line.strip("# ")

    def finish_table(self) -> None:
        """The end of a table: now it is known of what, or it is not."""
        table, self.table = self.table, None
        if table is not None and (rows := list(table.measurements(self.notes))):
            self.found.runs[table.run.name] = table.run.said
            self.found.rows.extend(rows)


READER = LineReader("nccl-tests", (b" algbw", b"\talgbw", b"# nThread "), NcclReading)
