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
STARTING = re.compile(r"# Collective test starting: (?P<program>\S+)\s*")
SETTINGS = re.compile(r"# nThread (?P<threads>\d{1,9}) nGpus (?P<gpus>\d{1,9}) (?P<rest>.*)")
RANK = re.compile(
    r"#\s+Rank\s+(?P<rank>\d{1,7})\s(?:Group\s+(?P<group>\d{1,7})\s)?\s*Pid\s+\d+ on\s+"
    r"(?P<host>\S+) device\s+\d+ \[(?P<bus>[\w:.]+)\] (?P<device>.*\S)\s*"
)
ABOVE = (VERSION, STARTING, SETTINGS, RANK)
"""Lines above a table in their order; one that is out of it is of another run."""

RCCL_VERSION = re.compile(r"rccl-tests: Version (\S+)\s*")
BLOCKING = re.compile(r"# Blocking Enabled: (.*\S)\s*")
LIBRARY = re.compile(r"(?:NCCL|RCCL) version ?:? ?(\d\S*)\s*")
SETTING = re.compile(r"\b((?:warmup |agg )?[a-z]+): (\d{1,9})\b")
NAMES_OF_SETTINGS = {"warmup iters": "warmup", "iters": "iterations"}
USUAL = {"agg iters": 1, "graph": 0, "unalign": 0}
"""Settings that are said where they are others."""

END = re.compile(r"# (?:Out of bounds values|Avg bus bandwidth|Collective test concluded)\b")

HALF = ["time", "algbw", "busbw", "#wrong"]
"""What each half of a header begins with; older versions call the last column ``error``."""

NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,6})?(?:e[+-]\d\d)?")
LOOKS_LIKE_A_ROW = re.compile(r"\s*\d+\s+\d+\s+[a-z]")
SHAPES = {
    "size": re.compile(r"\d{1,18}"),
    "count": re.compile(r"\d{1,18}"),
    "type": re.compile("|".join(TYPES)),
    "redop": re.compile(r"[a-z]{2,8}"),
    "root": re.compile(r"-1|\d{1,7}"),
    "#wrong": re.compile(rf"N/A|-?nan|inf|{NUMBER.pattern}"),
    "timestamp": re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"),
}
"""What cells look like; those of all other columns are numbers."""

TELLING = 1.0
"""GB/s from which on a printed bandwidth has digits enough to tell numbers of ranks apart."""

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
        row |= {name: value for name, value in self.settings.items() if name not in USUAL}
        unusual = [
            f"{name} {value}"
            for name, value in self.settings.items()
            if USUAL.get(name, value) != value
        ]
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
            notes.add(row.index, f"size {row.nbytes} after {last}: rows of two tables? left out")
        else:
            self.last[key] = row.nbytes
            self.rows.append(row)

    def bandwidths(self) -> list[tuple[str, str]]:
        """Algorithm and bus bandwidth wherever both have digits enough to be compared."""
        halves = [half for row in self.rows for half in row.halves.values()]
        return [(a, b) for _, a, b, _ in halves if min(float(a), float(b)) >= TELLING]

    def ranks(self, program: str) -> int | None:
        """The ranks: from their list, from sizes of all blocks and counts of one, or, of an
        allreduce, from its bandwidths. None where these allow several numbers."""
        if self.run.size:
            return self.run.size
        if program in OF_PARTS:
            several = {row.nbytes // row.block for row in self.rows if row.block}
            return several.pop() if len(several) == 1 else None
        low, high = 0.0, 2.0
        for algorithm, bus in self.bandwidths() if program == "all_reduce" else ():
            half = 0.5 * 10.0 ** -len(algorithm.partition(".")[2])  # of the last digit
            low = max(low, (float(bus) - half) / (float(algorithm) + half))
            high = min(high, (float(bus) + half) / (float(algorithm) - half))
        if not 1 < low <= high < 2:
            return None
        fewest, most = ceil(2 / (2 - low)), floor(2 / (2 - high))  # the factor is 2 (P - 1) / P
        return fewest if fewest == most else None

    def measurements(self, notes: Notes) -> Iterator[dict[str, Any]]:
        """The rows of a whole table, once it is known of what; else a note."""
        program, pairs = self.program, self.bandwidths()
        doubled = sum(float(bus) for _, bus in pairs) > 1.01 * sum(float(one) for one, _ in pairs)
        program = program or ("all_reduce" if doubled else None)
        if program is None:
            reason = (
                "neither this file nor its name tells which program printed this table, so it is "
                "left out; --assume benchmark=allreduce (or another) does"
            )
        elif program not in PROGRAMS:
            reason = f"{program} is no program that is known; the table is left out"
        elif doubled and program != "all_reduce":
            reason = f"bandwidths of all_reduce, not of {program}; the table is left out"
        else:
            yield from self._rows_of(program, notes)
            return
        if self.rows:
            notes.add(self.index, reason, rows=len(self.rows))

    def _rows_of(self, program: str, notes: Notes) -> Iterator[dict[str, Any]]:
        """The rows of a program that is known."""
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
                values["part"] = ", ".join(filter(None, (shared.get("part"), row.redop)))
            for in_place, (time, algorithm, bus, wrong) in row.halves.items():
                twice = program in OF_PARTS and algorithm == bus and float(bus) >= equal
                one: dict[str, Any] = {
                    "in_place": in_place,
                    "line": row.index + 1,
                    "latency_us": float(time),
                }
                one |= {"algbw_GBps": None if twice else float(algorithm), "busbw_GBps": float(bus)}
                if NUMBER.fullmatch(wrong):
                    # an error of old versions may be rounding: how much was allowed it hides
                    failed = None if self.errors else "Fail"
                    one["validation"] = "Pass" if float(wrong) == 0 else failed
                yield values | row.samples.get(in_place, {}) | one


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
    if len(cells) != len(names) or not all(
        SHAPES.get(name, NUMBER).fullmatch(cell) for name, cell in zip(names, cells, strict=True)
    ):
        return None
    first, second = (place for place, name in enumerate(names) if name == "time")
    said = {"redop": "none", "root": "-1"} | dict(zip(names[:first], cells, strict=False))
    halves = {False: tuple(cells[first : first + 4]), True: tuple(cells[second : second + 4])}
    what = (said["type"], said["redop"], said["root"])
    return NcclRow(index, int(said["size"]), int(said["count"]), *what, halves)


class NcclReading(Reading):
    """Where the reader stands; ``mentions`` are programs named since the last table.

    ``stage`` is the place in `ABOVE` of the last line of these, beyond them below a header.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.run = Run(f"{source.path}:1")
        self.mentions: set[str] = set()
        self.stage = -1
        self.table: NcclTable | None = None
        self.names: list[str] = []

    def line(self, line: str, index: int) -> None:
        """Take a line."""
        if "#" in line:
            self.goes_on(index)
        if "algbw" in line and (names := columns_of(line)):
            self.start_table(line, names, index)
        elif self.table and LOOKS_LIKE_A_ROW.match(line):
            if row := row_of(self.names, line, index):
                self.begun = None
                self.table.add(row, self.notes)
            else:
                self.notes.add(index, "not a whole row, left out")
        elif "#" in line or "_perf" in line or "ccl" in line or "CCL" in line:
            self.comment(line.lstrip(), index)

    def comment(self, line: str, index: int) -> None:
        """A line that is neither header nor row: what it tells of the run, if anything."""
        if END.match(line):
            self.finish_table()
            return
        for stage, pattern in enumerate(ABOVE):
            if match := pattern.fullmatch(line):
                if not stage or stage < self.stage or stage == self.stage < ABOVE.index(RANK):
                    self.finish(index)
                self.stage = stage
                self.above(match, index)
                return
        if match := BLOCKING.fullmatch(line):
            self.run.blocking = match[1]
        elif match := RCCL_VERSION.fullmatch(line):
            self.run.suite = f"rccl-tests {match[1]}"
        elif match := LIBRARY.fullmatch(line):
            self.run.said["library"] = match[1]
        else:
            self.mentions |= set(MENTION.findall(line))

    def above(self, match: re.Match[str], index: int) -> None:
        """One of the lines above a table."""
        run = self.run
        if match.re is VERSION:
            run.suite = f"{match['who']}ccl-tests {match['version']}"
            run.said |= {word.partition("=")[::2] for word in (match["rest"] or "").split()}
        elif match.re is STARTING:
            known = MENTION.search(match["program"])
            run.program = known[1] if known else match["program"]
        elif match.re is SETTINGS:
            program = run.program or next(iter(self.mentions), None)
            name = f"{program}_perf" if program else "a program"
            self.begin(index, f"{name} of {run.suite or 'nccl-tests'}")
            run.devices = max(1, int(match["threads"]) * int(match["gpus"]))
            settings = [(NAMES_OF_SETTINGS.get(n, n), v) for n, v in SETTING.findall(match["rest"])]
            known_names = {*NAMES_OF_SETTINGS.values(), *USUAL}
            run.settings = {name: int(value) for name, value in settings if name in known_names}
        else:
            run.ranks.setdefault((int(match["group"] or 0), int(match["rank"])), match["host"])
            run.said["device"] = match["device"]

    def finish(self, index: int | None) -> None:
        """Another program begins to speak, or the file ends."""
        self.finish_table()
        self.begin(index)
        self.run = Run(f"{self.source.path}:{(index or 0) + 1}", self.run.suite)
        self.stage = -1

    def start_table(self, line: str, names: list[str], index: int) -> None:
        """A header: rows follow."""
        self.finish_table()
        self.stage = len(ABOVE)
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
        self.names = names

    def finish_table(self) -> None:
        """The end of a table: now it is known of what, or it is not."""
        table, self.table = self.table, None
        if table is not None and (rows := list(table.measurements(self.notes))):
            self.found.runs[table.run.name] = table.run.said
            self.found.rows.extend(rows)


READER = LineReader("nccl-tests", (b" algbw", b"\talgbw", b"# nThread "), NcclReading)
