"""The text output of native OMB (versions 3 to 8), of the original OMB-Py, and our own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from omb_py.core.mpi.startup_timer import INIT, SESSION
from omb_py.results.readers import LineReader, Reading, Source
from omb_py.results.readers.formats.omb import (
    DEMO_TITLES,
    HUNDREDTHS,
    OLD_SYNCHRONIZATIONS,
    TAILS_AS_SAMPLES,
    Column,
    benchmark_of,
    cells_of,
    columns_of,
    detail_of,
    fits,
    options_of_banner,
    options_of_command,
    pairs_only,
    part_of_line,
    parts_of_lines,
    program_in,
)

BANNER = re.compile(
    r"# (?P<who>OSU|OMB Python|OMB-Py) (?P<old>(?:MPI )?One Sided )?(?P<api>MPI|NCCL|RCCL)"
    r"(?:-(?P<device>[A-Z]+))?(?P<title>[ _].*?) Test(?: v(?P<version>\d[\w.]*))?"
    r"(?: \(omb-py (?P<ours>[^:()]+): (?P<how>.*)\))?\s*$"
)
DEMO = re.compile(r"# MPI (?P<title>[A-Z][\w -]*) Test\s*$")
"""The title of mpi4py's demo programs, which are of an early native OMB."""

NEARLY = re.compile(
    r"(?P<before>.*?)(?P<hash># ?)?(?:OSU|OMB Python|OMB-Py) (?:One Sided )?(?:MPI|NCCL|RCCL)[-_ ]"
)
"""What is no title but was one, or stands behind something."""

TOPOLOGY = re.compile(r"Time took to create topology graph:(\d{1,12}\.\d\d) us\.")
TIME = r"(\d+\.\d\d)"
PART = re.compile(rf"# (?P<part>[a-z ]+): {TIME} us \(of the ranks {TIME} to {TIME}\)")
TELLING = ("#", "osu_", "Time took", "OSU ")
"""What lines have in them that matter outside a table."""

MESSAGE = re.compile(r"osu_\w+: \S")
"""What a program itself says, between its rows."""

HASHES = re.compile(r"^#[# ]*(?=# )")
HEADINGS_BEGIN = ("# Size", "# Avg Latency", "# Overall(us)", "# Latency (us)")
LONGEST_TITLE = 60
DEMO_SUITE = "mpi4py demo"

LOOKS_LIKE_A_ROW = re.compile(r"\s*\d+(?:\s+(?:[-\d.]|nan|inf)|\s*$)")
LOOKS_LIKE_A_TIME = re.compile(r"\s*\d+\.\d")
LOOKS_LIKE_A_PART = re.compile(r"\s*\S+(?: \S+)?\s+(?:\d+\s+\d+\s+)?\d+\.\d*\s")
LOST_ROW = re.compile(r"\s*(?:\d+\s+)?\d+\.\d\d(?:\s|$)")
"""A row of which it is not known what it is of."""

WHOLE = re.compile(r".*(?:\.\d{2,}|ss|ssed|l|led)")
"""A last cell that does not go on where a file ends within its line."""

SIZE = re.compile(r"0|[1-9]\d{0,17}")
FULL = columns_of("# Avg Latency(us) Min Latency(us) Max Latency(us) Iterations") or ()
"""Columns of ``-f`` that some headings of 7.3 lack."""

VARIED = re.compile(r"#(?:\s+\d{1,9}){2,}\s*")


class OmbReading(Reading):
    """Where the reader stands: what it knows of the table that it is in, which is empty for none.

    ``headings`` are what was known of it at each heading, ``counted`` is its number of rows.
    ``lost`` are rows of no known benchmark: the line that is why, the reason, and their lines.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.program = program_in(PurePath(source.path).name)
        self.said: dict[str, Any] = {}
        self.before: dict[str, Any] = {}
        self.graph_us: float | None = None
        self.lost: tuple[int, str, list[int]] | None = None
        self.start({}, "", 0)

    def start(self, table: dict[str, Any], title: str, index: int) -> None:
        """Begin a table, or none."""
        self.table, self.title, self.top, self.counted, self.rates = table, title, index, 0, False
        self.rows: list[dict[str, Any]] = []
        self.headings: list[dict[str, Any]] = []
        self.under("", ())

    def under(
        self, heading: str, columns: tuple[Column, ...], windows: tuple[int, ...] = ()
    ) -> None:
        """Rows of such columns follow, or none."""
        self.columns, self.windows = columns, windows
        self.sized = bool(windows) or heading.startswith("# Size")
        self.spaced, self.last = "  " in heading.strip(), -1

    def line(self, line: str, index: int) -> None:
        """Take a line."""
        if not (self.table or self.lost or any(word in line for word in TELLING)):
            return
        text = line.lstrip()
        if text.startswith("#"):
            text = HASHES.sub("", text)
        if self.is_title(text, index):
            return
        if not self.table or ("osu_" in text and program_in(text) and not MESSAGE.match(text)):
            self.look_ahead(text, index)
        elif text.startswith(("#", "Overall(us)")):
            self.comment(text if text.startswith("#") else line, index)
        else:
            self.row(line, index)

    def is_title(self, text: str, index: int) -> bool:
        """Whether a line is a title, or was one before it was damaged: another table begins."""
        if "OSU " not in text and "OMB" not in text and not text.startswith("# MPI "):
            return False
        if index == self.source.torn:
            return False
        if match := BANNER.match(text) or DEMO.match(text):
            self.banner(match.groupdict(), index)
            return True
        nearly = NEARLY.match(text)
        if nearly is None or not (nearly["hash"] or (not nearly["before"] and " Test" in text)):
            return False
        self.finish(index)
        if nearly["before"]:
            title = text[nearly.end("before") :][:LONGEST_TITLE]
            reason = f"{title!r} stands behind {nearly['before']!r}, which is not known as a label"
            self.notes.add(index, f"{reason}; its table is left out")
        else:
            self.lose(index, f"a title that is damaged: {text[:LONGEST_TITLE]!r}")
        return True

    def lose(self, index: int, reason: str) -> None:
        """Until the next title nothing is known to be of a benchmark, for a reason."""
        self.begun = None
        self.finish(index)
        self.lost = (index, reason, [])

    def look_ahead(self, text: str, index: int) -> None:
        """Outside a table: what a command, or what stands before a banner, tells of the next."""
        if (program := program_in(text)) is not None:
            self.finish(index)
            self.program, self.said, self.before = program, options_of_command(text), {}
            self.lost = (index, f"osu_{program} is named, and no title follows", [])
        elif self.lost is not None and LOST_ROW.match(text):
            self.lost[2].append(index)
        elif self.lost is None and columns_of(text):
            self.lose(index, "no title of a benchmark is above this heading")
        elif match := TOPOLOGY.match(text):
            self.graph_us = float(match[1])
        else:
            detail_of(text, self.before)

    def banner(self, said: Mapping[str, str | None], index: int) -> None:
        """A banner: what it says, and what was said before it."""
        self.finish(index)
        title = (said["title"] or "").strip()
        table: dict[str, Any] = {"run": f"{self.source.path}:{index + 1}", "suite": suite(said)}
        table |= {"binding": "C"} | self.said | self.before
        if "who" not in said:
            name = DEMO_TITLES.get(title.lower()) or f"mpi4py_{benchmark_of(title, None, False)}"
        else:
            name = benchmark_of(title, self.program, self.graph_us is not None)
        if said.get("who") != "OSU" or said["ours"]:
            table["binding"] = None
        if said.get("api", "MPI") != "MPI":
            table["binding"] = "nccl"
        if device := said.get("device"):
            table["buffer"] = device.lower()
        if said.get("old"):
            table["window_kind"] = "create"
            for words, sync in OLD_SYNCHRONIZATIONS.items():
                if words in title.lower():
                    table["window_sync"] = sync
        table |= {"benchmark": name} | options_of_banner(said.get("how") or "")
        if table["benchmark"] in pairs_only():
            table["ranks"] = 2
        if table["benchmark"] == "init":
            table["part"] = SESSION if "session" in (said["how"] or "").split(", ") else INIT
        self.start(table, title, index)
        if table["suite"] != DEMO_SUITE:  # option -v prints a title and nothing else
            self.begin(index, f"{program_of(table)} of {table['suite']}", "mpi_type" in table)
        self.before = {}
        if self.graph_us is not None:
            self.add(index, part="topology creation", latency_us=self.graph_us)
            self.graph_us = None

    def finish(self, index: int | None) -> None:
        """The end of a table, or of the file: its rows are as whole as they will be."""
        self.found_again()
        self.found.rows.extend(self.rows)
        self.begin(index)
        self.start({}, "", 0)

    def found_again(self) -> None:
        """What follows is known again; what was lost is named."""
        if self.lost is not None:
            self.notes.left_out(*self.lost)
            self.lost = None

    def comment(self, text: str, index: int) -> None:
        """A line of a table that says something of it: headings, element types, windows."""
        if text.startswith(("# Uni-directional", "# Message Rate Profile")):
            self.rates, self.last = text.startswith("# Message"), -1
        elif text.startswith("#") and detail_of(text, self.table):
            self.last = -1
            self.goes_on(index)
        elif VARIED.fullmatch(text):
            self.under(text, (), tuple(map(int, text[1:].split())))
        elif match := PART.match(text):
            mean, low, high = map(float, match.groups()[1:])
            times = {"latency_us": mean, "latency_min_us": low, "latency_max_us": high}
            self.add(index, part=match["part"], **times)
        elif (columns := columns_of(text)) or text.startswith(HEADINGS_BEGIN):
            self.columns_begin(text, columns, index)

    def columns_begin(self, text: str, columns: tuple[Column, ...] | None, index: int) -> None:
        """A heading: rows follow, unless they cannot be of the benchmark above it."""
        words = repr(text.strip()[:LONGEST_TITLE])
        if not columns:
            self.lose(index, f"headings that are not known: {words}")
        elif not fits(self.title, columns):
            self.lose(index, f"headings that are not those of {program_of(self.table)}: {words}")
        elif self.counted and self.table in self.headings:
            reason = f"a second heading below one title, that of line {self.top + 1}"
            self.lose(index, f"{reason}: another benchmark's, whose title is missing")
        else:
            self.found_again()
            self.headings.append(dict(self.table))
            self.goes_on(index)
            self.under(text, columns)

    def row(self, line: str, index: int) -> None:
        """A line below a header: a whole row, a broken one, or something of no interest."""
        name = self.table["benchmark"]
        if part := part_of_line(name, line.strip()):
            if index != self.source.torn or name not in parts_of_lines():
                self.add(index, **part)
            else:
                self.notes.add(index, "an incomplete row, left out")
        elif name in parts_of_lines():
            if LOOKS_LIKE_A_PART.match(line):
                self.notes.add(index, "not a whole row, left out")
        elif not self.columns and not self.windows:
            if LOST_ROW.match(line):
                reason = f"no heading is above these rows of {program_of(self.table)}"
                self.lost = self.lost or (index, reason, [])
                self.lost[2].append(index)
        elif (LOOKS_LIKE_A_ROW if self.sized else LOOKS_LIKE_A_TIME).match(line):
            self.cells(line.split(), line, index)

    def cells(self, cells: list[str], line: str, index: int) -> None:
        """The cells of a line that looks like a row."""
        if index == self.source.torn and not WHOLE.fullmatch(cells[-1]):
            self.notes.add(index, "an incomplete row, left out")
            return
        first = cells.pop(0) if self.sized else "0"
        values = self.values_of(cells)
        if values is None or not SIZE.fullmatch(first) or (self.spaced and "  " not in line):
            self.notes.add(index, "not a whole row, left out")
            return
        size = int(first)
        if size <= self.last:
            text = f"size {size} after {self.last}: rows of two tables? left out"
            self.notes.add(index, text if self.sized else "not a whole row, left out")
            if self.sized and size == self.last:
                self.rows = [one for one in self.rows if not self.is_beside(one, size)]
            return
        self.last = size
        if not self.windows:
            self.add(index, **({"bytes": size} if self.sized else {}), **values)
            return
        for window, value in zip(self.windows, values.values(), strict=True):
            if not self.rates:
                self.add(index, bytes=size, window=window, bandwidth_MBps=value)
            for one in self.rows:
                if self.rates and self.is_beside(one, size) and one.get("window") == window:
                    one["messages_per_s"] = value

    def is_beside(self, row: dict[str, Any], size: int) -> bool:
        """Whether a row of the table has a size, and the element type that is measured now."""
        return (row.get("bytes"), row.get("mpi_type")) == (size, self.table.get("mpi_type"))

    def values_of(self, cells: list[str]) -> dict[str, Any] | None:
        """A row's cells by column, or None unless they are what the header says."""
        columns = self.columns
        if self.windows:
            columns = tuple(Column(str(window), HUNDREDTHS) for window in self.windows)
        if self.table["benchmark"] == "multi_lat" and len(cells) < len(columns):
            # native OMB prints no percentiles there, whatever its header says
            columns = tuple(column for column in columns if column.percentile is None)
        if columns == FULL[:1] and len(cells) == len(FULL) and in_order(cells):
            columns = self.columns = FULL
        if not cells_of(columns).fullmatch(" ".join(cells)):
            return None
        found: dict[str, Any] = {}
        percentiles = []
        for column, cell in zip(columns, cells, strict=True):
            if column.percentile is not None:
                percentiles.append(f"p{column.percentile}={cell}")
                own = TAILS_AS_SAMPLES.get(column.percentile)
                if own and columns[0].name == "latency_us":
                    found.setdefault(own, float(cell))  # --stats has more digits
            elif column.name == "validation" and cell != "-":
                found[column.name] = "Pass" if cell.lower().startswith("pass") else "Fail"
            elif cell != "-":
                found[column.name] = float(cell)
        return found | ({"percentiles": " ".join(percentiles)} if percentiles else {})

    def add(self, index: int, **values: Any) -> None:
        """A row of the table."""
        self.counted, self.begun = self.counted + 1, None
        self.rows.append(self.table | values | {"line": index + 1})


def in_order(cells: list[str]) -> bool:
    """Whether cells are a mean, a minimum, a maximum and a number of iterations."""
    if not cells_of(FULL).fullmatch(" ".join(cells)):
        return False
    mean, low, high = map(float, cells[:3])
    return low <= mean <= high


def suite(said: Mapping[str, str | None]) -> str:
    """Who measured."""
    if "who" not in said:
        return DEMO_SUITE
    if said["ours"]:
        return f"omb-py {said['ours']}"
    name = "OSU" if said["who"] == "OSU" else "OMB-Py"
    return f"{name} {said['version']}" if said["version"] else name


def program_of(table: Mapping[str, Any]) -> str:
    """What people call the program of a table."""
    native = str(table["suite"]).startswith("OSU")
    return f"osu_{table['benchmark']}" if native else str(table["benchmark"])


READER = LineReader(
    "native OMB's text and OMB-Py's",
    (
        *(b"OSU MPI", b"OSU One Sided", b"OSU NCCL", b"OSU RCCL"),
        *(b"# OMB Python MPI", b"# OMB-Py MPI", b"# Size [B]"),
    ),
    OmbReading,
)
