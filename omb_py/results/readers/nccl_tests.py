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
from functools import cached_property
from math import ceil, floor
from pathlib import PurePath
from typing import Any

from omb_py.core.text.words import count
from omb_py.results.nccl import ADDING, OF_BLOCKS, OF_PARTS, PROGRAMS, ROOTED, TYPES
from omb_py.results.readers import Reader, Reading, Source, form_of, processes_of

NAMES = "|".join(sorted(PROGRAMS, key=len, reverse=True))
MENTION = re.compile(rf"(?<![A-Za-z0-9])({NAMES})_perf(?![A-Za-z0-9])")
WORDS = {name.replace("_", ""): name for name in PROGRAMS}
WORDS |= {ours.replace("_", ""): name for name, ours in PROGRAMS.items()}
WORDS |= {"reducescatter": "reduce_scatter", "all2all": "alltoall"}
"""Programs by their names and by ours, without underscores: how people name files."""

NAMED_FILE = re.compile(
    r"(?<![A-Za-z0-9])("
    + "|".join("[_-]?".join(word) for word in sorted(WORDS, key=len, reverse=True))
    + r")(?:_?perf)?(?![A-Za-z0-9])"
)

NUMBER = r"\d{1,15}(?:\.\d{1,6})?(?:e[+-]\d\d)?"
CELLS = {
    "size": r"\d{1,18}",
    "count": r"\d{1,18}",
    "type": "|".join(TYPES),
    "redop": "[a-z]{2,8}",
    "root": r"-1|\d{1,7}",
    "time": NUMBER,
    "algbw": NUMBER,
    "busbw": NUMBER,
    "wrong": rf"N/A|-?nan|inf|{NUMBER}",
    "timestamp": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
}
"""Each column that text may have, and what its cells look like."""

HEADER = re.compile(
    r"(?:#\s*)?(?P<first>size\s+count\s+type(?:\s+redop)?(?:\s+root)?)\s+"
    r"(?P<half>(?:cpu)?time\s+algbw\s+busbw\s+(?:#wrong|error)\b.*?)\s+(?P=half)"
    r"(?P<last>\s+timestamp)?\s*"
)
"""Above rows of numbers out of place, then in place; older versions call wrong elements errors.
Blanks are one each: the halves may differ in them."""

HALF = ("time", "algbw", "busbw", "wrong")
TAILS = {"i_max": "slowest_max_us", "i_p99": "slowest_p99_us"}
"""Columns of single iterations (``-I 1``), each that of the slowest process."""

FEWEST_OF_TAIL = 100
"""Iterations below which the 99th percentile is the maximum."""

IN_PLACE = {False: "", True: "_in"}
"""Suffixes of the names of a half's cells."""

ROW = re.compile(r"\s*\d+\s+\d+\s+[a-z]")
LOST_ROW = re.compile(
    rf"\s*\d+\s+\d+\s+(?:{CELLS['type']})(?:\s+[a-z]+)?(?:\s+-?\d+)?(?:\s+{NUMBER}){{3}}\s"
)
NO_HEADING = "no heading is above this row: left out; keep the lines that begin with #"

VERSION = re.compile(r"# (?P<who>n|r)ccl-tests version (?P<version>\S+)(?: (?P<rest>.*\S))?\s*")
OURS = re.compile(r"# omb-py in place of nccl-tests \S+: (?P<facts>.*\S)\s*")
STARTING = re.compile(r"# Collective test starting: (?P<program>\S+)\s*")
SETTINGS = re.compile(r"# nThread (?P<threads>\d{1,9}) nGpus (?P<gpus>\d{1,9}) (?P<rest>.*)")
RANK = re.compile(
    r"#\s+Rank\s+(?P<rank>\d{1,7})\s(?:Group\s+(?P<group>\d{1,7})\s)?\s*Pid\s+\d+ on\s+"
    r"(?P<host>\S+) device\s+\d+ \[(?P<bus>[\w:.]+)\] (?P<device>.*\S)\s*"
)
ABOVE = (VERSION, OURS, STARTING, SETTINGS, RANK)
"""Lines above a table in their order; one that is out of it is of another run."""

RCCL_VERSION = re.compile(r"rccl-tests: Version (\S+)\s*")
SKIPPED = re.compile(r"# Per-Iteration Report: .*; summary skips first (\d{1,9}) iterations\s*")
BLOCKING = re.compile(r"# Blocking Enabled: (.*\S)\s*")
LIBRARY = re.compile(r"(?:NCCL|RCCL) version ?:? ?(\d\S*)\s*")
END = re.compile(r"# (?:Out of bounds values|Avg bus bandwidth|Collective test concluded)\b")

SETTING = re.compile(r"\b((?:warmup |agg )?[a-z]+): (\d{1,9})\b")
NAMES_OF_SETTINGS = {"warmup iters": "warmup", "iters": "iterations"}
USUAL = {"agg iters": 1, "graph": 0, "unalign": 0}
"""Settings that rows mention only if they differ from these."""

IN_COLUMNS = ("binding", "buffer", "placement")
"""Facts that omb-py prints in place of nccl-tests and that are columns."""

CONTINUED = "\\"
"""End of a command's line that the next one continues."""

ALONE = "each process ran alone, and nothing was sent between them: build nccl-tests with MPI=1"

TELLING = 1.0
"""GB/s from which on a printed bandwidth has digits enough to tell numbers of ranks apart."""


@dataclass
class NcclRun:
    """The facts above a table: program, settings and devices of a run.

    ``devices`` are those of each process, ``ranks`` the host of each rank by its group and number.
    ``launched`` is the number of processes that were started, 0 if it is not known. ``skipped``
    are the first iterations, which statistics of single ones leave out. ``ours`` is what omb-py
    says of itself if it measured in place of nccl-tests.
    """

    name: str
    suite: str = ""
    program: str | None = None
    settings: dict[str, int] = field(default_factory=dict)
    skipped: int = 0
    devices: int = 1
    launched: int = 0
    blocking: str | None = None
    ranks: dict[tuple[int, int], str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    ours: dict[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int | None:
        """Ranks of a communicator, if all of them are there, each once, in groups alike."""
        members = sorted(rank for _, rank in self.ranks)
        if not members or members != list(range(len(members))) or len(members) % self.devices:
            return None
        sizes = set(Counter(group for group, _ in self.ranks).values())
        return sizes.pop() if len(sizes) == 1 else None

    def describe(self, program: str) -> dict[str, Any]:
        """Return the columns that all rows of a table share."""
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
        if self.ours:
            row["suite"] = f"omb-py {self.ours.get('version', '')}".strip()
            row |= {key: self.ours[key] for key in IN_COLUMNS if key in self.ours}
            self.said |= {key: text for key, text in self.ours.items() if key not in IN_COLUMNS}
        if self.size:
            hosts = Counter(self.ranks.values())
            row |= {"ranks": self.size, "hosts": len(hosts)}
            self.said["hosts"] = " ".join(f"{host}:{ranks}" for host, ranks in hosts.items())
        row |= {name: value for name, value in self.settings.items() if name not in USUAL}
        unusual = [f"{n} {v}" for n, v in self.settings.items() if USUAL.get(n, v) != v]
        groups = len({group for group, _ in self.ranks})
        unusual += [f"{groups} groups"] if groups > 1 else []
        unusual += [f"blocking: {self.blocking}"] if self.blocking else []
        return row | ({"part": ", ".join(unusual)} if unusual else {})


class NcclTables(Reading):
    """The tables of a run: rows of cells, which are results once it is known of what.

    ``top`` is the index of a table's header; ``errors`` if the last column is an error of the
    result, not a number of wrong elements.
    """

    whole = re.compile(".*")  # a number of wrong elements is missing or whole
    like = ROW

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.run = NcclRun(f"{source.path}:1")
        self.program: str | None = None
        self.top, self.errors = 0, False

    def take(self, index: int, cells: dict[str, Any]) -> None:
        """Take a row's cells, each as text; ``samples`` are columns about its iterations."""
        size = int(cells["size"])
        key = tuple(cells.get(name) for name in ("type", "redop", "root"))
        if size == 0:
            text = "a size of no bytes, for fewer elements than ranks, left out"
            self.notes.add(index, text, lost=False)
        elif is_alone(cells) and size <= self.sizes.get(key, -1):
            self.run.said["alone"] = ALONE
            self.notes.add(index, f"several processes print their tables here: {ALONE}")
        elif self.follows(index, size, key):
            self.add(index, cells, (key, size))

    def end_table(self) -> None:
        """End a table: only here its program is known, or remains unknown."""
        rows, self.rows = [row for _, row in self.rows], []
        halves = [(row, half) for row in rows for half in IN_PLACE.values() if "time" + half in row]
        pairs = [(row["algbw" + half], row["busbw" + half]) for row, half in halves]
        # rounding leaves the order of two numbers as it is, so small ones tell this, too
        doubled = sum(float(bus) for _, bus in pairs) > 1.01 * sum(float(one) for one, _ in pairs)
        pairs = [both for both in pairs if min(map(float, both)) >= TELLING]
        program, reason = self.program, ""
        if program is None and doubled:
            program = "all_reduce"  # which alone has a factor above 1
        if program is None:
            reason = (
                "neither this file nor its name tells which program printed this table, so it is "
                "left out; --assume benchmark=allreduce (or another) does"
            )
        elif program not in PROGRAMS:
            reason = f"{program} is no program that is known; the table is left out"
        elif doubled and program != "all_reduce":
            reason = f"bandwidths of all_reduce, not of {program}; the table is left out"
        elif results := list(self.results(program, rows, pairs)):
            self.found.rows.extend(results)
            self.found.runs[self.run.name] = self.run.said
        if rows and reason:
            self.notes.add(self.top, reason, rows=len(rows))
        super().end_table()

    def results(
        self, program: str, rows: list[dict[str, Any]], pairs: list[tuple[str, str]]
    ) -> Iterator[dict[str, Any]]:
        """Yield the results of a known program: of each row out of place, then in place."""
        ranks = self.run.size or ranks_of(program, rows, pairs)
        together = len(self.run.ranks) or ranks
        if rows and self.run.launched > 1 and together == self.run.devices:
            started = f"{self.run.launched} processes were started, and the table has "
            self.run.said["alone"] = f"{started}{count(together, 'rank')}: {ALONE}"
            self.notes.add(self.top, self.run.said["alone"], rows=0)
        shared = self.run.describe(program) | ({"ranks": ranks} if ranks else {})
        # hypercube and some programs before 2.0.1 print the bus bandwidth twice; lower ones than
        # this may be equal when they are rounded
        equal = 0.0 if program == "hypercube" else 0.01 * (ranks or 0)
        for row in rows:
            size, block = int(row["size"]), block_of(row)
            parts = (ranks or size // max(block, 1)) if program in OF_PARTS else 1
            if size != block * parts and program != "alltoallv":
                text = "a size that is not that of the elements, left out"
                self.notes.add(row["line"] - 1, text)
                continue
            values = shared | {"line": row["line"]}
            values["bytes"] = block if program in OF_BLOCKS else size
            _, values["dtype"], values["mpi_type"] = TYPES[row["type"]]
            if program in ROOTED and row.get("root", "-1") != "-1":
                values["root"] = row["root"]
            if program in ADDING and row.get("redop", "none") not in ("sum", "none"):
                values["part"] = ", ".join(filter(None, (shared.get("part"), row["redop"])))
            for in_place, half in IN_PLACE.items():
                if "time" + half in row:
                    time, algorithm, bus, wrong = (row[name + half] for name in HALF)
                    twice = program in OF_PARTS and algorithm == bus and float(bus) >= equal
                    times: dict[str, Any] = {"in_place": in_place, "latency_us": float(time)}
                    times["algbw_GBps"] = None if twice else float(algorithm)
                    times |= {"busbw_GBps": float(bus)} | row.get("samples" + half, {})
                    yield values | times | self.validation(wrong)

    def tails(self, values: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, float]:
        """Return the columns of single iterations; none of those of several operations (``-m``)."""
        if self.run.settings.get("agg iters") != 1:
            return {}
        few = self.run.settings.get("iterations", 0) - self.run.skipped < FEWEST_OF_TAIL
        numbers = {own: str(values.get(name)) for name, own in columns.items()}
        numbers = {own: number for own, number in numbers.items() if not (few and "p99" in own)}
        return {own: float(one) for own, one in numbers.items() if re.fullmatch(NUMBER, one)}

    def validation(self, wrong: str) -> dict[str, str | None]:
        """Return the meaning of the last column; errors of old versions may come from rounding."""
        if not re.fullmatch(NUMBER, wrong):
            return {}
        return {"validation": "Pass" if float(wrong) == 0 else None if self.errors else "Fail"}


def is_alone(row: Mapping[str, Any]) -> bool:
    """Return whether a row is of one rank: what it has, and none of it goes over a link."""
    ends = [end for end in IN_PLACE.values() if "time" + end in row]
    return any(float(row["algbw" + end]) >= TELLING for end in ends) and all(
        float(row["busbw" + end]) == 0 for end in ends
    )


def fits(program: str, row: Mapping[str, Any]) -> bool:
    """Return whether a row's operation, root and part of the size are those of a program."""
    found = (row.get("redop", "none") != "none", row.get("root", "-1") != "-1")
    known = (program in ADDING, program in ROOTED, program in OF_PARTS)
    return (*found, block_of(row) != int(row["size"])) == known


def block_of(row: Mapping[str, Any]) -> int:
    """Return the bytes of the elements that are counted."""
    return int(row["count"]) * TYPES[row["type"]][0]


def ranks_of(program: str, rows: list[dict[str, Any]], pairs: list[tuple[str, str]]) -> int | None:
    """Return the number of ranks, or None if several numbers are possible: from sizes of all parts
    and counts of one, or from algorithm and bus bandwidths of an allreduce."""
    if program in OF_PARTS:
        several = {int(row["size"]) // block_of(row) for row in rows if block_of(row)}
        return several.pop() if len(several) == 1 else None
    if any(map(is_alone, rows)):
        return 1
    low, high = 0.0, 2.0
    for algorithm, bus in pairs if program == "all_reduce" else ():
        half = 0.5 * 10.0 ** -len(algorithm.partition(".")[2])  # of the last digit
        low = max(low, (float(bus) - half) / (float(algorithm) + half))
        high = min(high, (float(bus) + half) / (float(algorithm) - half))
    if not 1 < low <= high < 2:
        return None
    fewest, most = ceil(2 / (2 - low)), floor(2 / (2 - high))  # the factor is 2 (P - 1) / P
    return fewest if fewest == most else None


def program_of_file(path: str) -> str | None:
    """Return the program that a file is named after, if there is exactly one."""
    words = NAMED_FILE.findall(PurePath(path).name.lower())
    found = {WORDS[word.replace("_", "").replace("-", "")] for word in words}
    return found.pop() if len(found) == 1 else None


def form_below(header: re.Match[str], line: str) -> re.Pattern[str]:
    """Return the pattern of rows below a header's ``line``; columns of single iterations have no
    names."""
    cells = [(name, CELLS[name]) for name in header["first"].split()]
    for end in IN_PLACE.values():
        cells += [(name + end, CELLS[name]) for name in HALF]
        others = enumerate(header["half"].split()[len(HALF) :])
        cells += [(f"{n if n in TAILS else f'other_{at}'}{end}", NUMBER) for at, n in others]
    cells += [("timestamp", CELLS["timestamp"])] if header["last"] else []
    # programs that add nothing left the operation blank once
    return form_of(line, cells, ("redop",))


class NcclReading(NcclTables):
    """The state of the reader; ``mentions`` are programs named since the last table.

    ``stage`` is the place in `ABOVE` of the last line of these, beyond them below a header.
    ``command`` is the beginning of a command that the next line continues. The last one started
    ``launched`` processes, whose tables are not there yet. ``named`` is the last program with a
    name, and its settings; ``again`` if the table is of that name. ``why`` is the reason why rows
    here are left out.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.mentions: set[str] = set()
        self.stage = -1
        self.command = ""
        self.launched = 0
        self.named: tuple[str, str] | None = None
        self.again, self.setting, self.why = False, "", NO_HEADING

    def line(self, line: str, index: int) -> None:
        """Take the next line: a header, a row, or what stands around a table."""
        if "algbw" in line and "busbw" in line:
            self.start_table(line, index)
        elif self.form is None and self.why and LOST_ROW.match(line):
            self.begun = None
            self.notes.add(index, self.why)
        elif cells := self.cells(line, index):
            tails = [(end, {n + end: own for n, own in TAILS.items()}) for end in IN_PLACE.values()]
            samples = {f"samples{end}": self.tails(cells, names) for end, names in tails}
            self.take(index, cells | samples)
        elif "#" in line or "_perf" in line or "ccl" in line or "CCL" in line:
            self.comment(line.lstrip(), index)
        if line.endswith(CONTINUED):
            self.command += f"{line.removesuffix(CONTINUED)} "
        elif self.command or "_perf" in line:
            self.launch(self.command + line)
            self.command = ""

    def launch(self, command: str) -> None:
        """Take the number of processes from the command of a program, if it has one."""
        program = MENTION.search(command)
        if program and not command.startswith("#"):
            self.launched = processes_of(command[: program.start()].split()) or 0

    def end_table(self) -> None:
        """End a table; if it has the ranks of all processes, the command has no other one."""
        rows, self.why = bool(self.rows), NO_HEADING
        if self.again and not all(fits(str(self.program), row) for _, row in self.rows):
            self.program = None
        super().end_table()
        if rows and "alone" not in self.run.said:
            self.launched = 0

    def comment(self, line: str, index: int) -> None:
        """Read a line that is neither header nor row, for the facts of the run in it."""
        if END.match(line):
            self.end_table()
            return
        for stage, pattern in enumerate(ABOVE):
            if match := pattern.fullmatch(line):
                if stage < self.stage or stage == self.stage < ABOVE.index(RANK):
                    self.finish(index)
                self.stage = stage
                self.above(match, index)
                return
        if match := BLOCKING.fullmatch(line):
            self.run.blocking = match[1]
        elif match := SKIPPED.fullmatch(line):
            self.run.skipped = int(match[1])
        elif match := RCCL_VERSION.fullmatch(line):
            self.run.suite = f"rccl-tests {match[1]}"
        elif match := LIBRARY.fullmatch(line):
            self.run.said["library"] = match[1]
        else:
            self.mentions |= set(MENTION.findall(line))

    def above(self, match: re.Match[str], index: int) -> None:
        """Read one of the lines above a table."""
        run = self.run
        if match.re is OURS:
            run.ours = dict(word.partition("=")[::2] for word in match["facts"].split())
        elif match.re is VERSION:
            run.suite = f"{match['who']}ccl-tests {match['version']}"
            run.said |= {word.partition("=")[::2] for word in (match["rest"] or "").split()}
        elif match.re is STARTING:
            known = MENTION.search(match["program"])
            run.program = known[1] if known else match["program"]
        elif match.re is SETTINGS:
            program = run.program or next(iter(self.mentions), None)
            name = f"{program}_perf" if program else "a program"
            self.begin(index, f"{name} of {run.suite or 'nccl-tests'}")
            run.launched, self.setting = self.launched, match[0]
            run.devices = max(1, int(match["threads"]) * int(match["gpus"]))
            settings = [(NAMES_OF_SETTINGS.get(n, n), v) for n, v in SETTING.findall(match["rest"])]
            known_names = {*NAMES_OF_SETTINGS.values(), *USUAL}
            run.settings = {name: int(value) for name, value in settings if name in known_names}
        else:
            run.ranks.setdefault((int(match["group"] or 0), int(match["rank"])), match["host"])
            run.said["device"] = match["device"]

    def finish(self, index: int | None) -> None:
        """Finish at another program's output, or at the end of the file."""
        super().finish(index)
        self.run = NcclRun(f"{self.source.path}:{(index or 0) + 1}")
        self.stage = -1

    def start_table(self, line: str, index: int) -> None:
        """Begin a table with its header; rows of columns that do not count are left out."""
        self.end_table()
        self.top, self.stage = index, len(ABOVE)
        header = HEADER.fullmatch(" ".join(line.split()))
        if header is None or header["half"].startswith("cpu"):
            self.mentions = set()
            self.why = f"headings that are not known are above: {line.strip()!r}: left out"
            if line.startswith("size(B)"):
                self.why = ""  # of NVSHMEM's perftest
            if header:
                self.why = "the processor's time (-C) stands for the time: left out"
            return
        assumed = (self.source.benchmark or "").replace("_", "").lower()
        mentioned = next(iter(self.mentions)) if len(self.mentions) == 1 else None
        self.program = self.run.program or mentioned or WORDS.get(assumed)
        if not self.mentions:
            self.program = self.program or program_of_file(self.source.path)
        same = bool(self.setting) and self.named == (self.only, self.setting)
        self.again = same and self.program is None
        if self.again:
            self.program = self.only
        elif self.program:
            self.named = (self.program, self.setting)
        self.mentions, self.setting = set(), ""
        self.errors = "error" in header["half"]
        self.form = form_below(header, line)

    @cached_property
    def only(self) -> str | None:
        """The program that a file names, if it names one: a command may run it several times."""
        names = set(MENTION.findall(self.source.content.decode(errors="replace")))
        return names.pop() if len(names) == 1 else None


READER = Reader(
    "nccl-tests",
    (b" algbw", b"\talgbw", b"# nThread ", b" sum ", b" none "),
    NcclReading.read,
)
