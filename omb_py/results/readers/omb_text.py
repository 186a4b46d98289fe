"""The text output of native OMB (versions 3 to 8), of the original OMB-Py, and our own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import PurePath
from typing import Any

from omb_py.benchmarks import Ranks, all_benchmarks
from omb_py.core.mpi.startup_timer import INIT, SESSION
from omb_py.core.options import Options
from omb_py.results.readers import LineReader, Reading, Source
from omb_py.results.text import THOUSANDTHS, values_of

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

DEMO_SUITE = "mpi4py demo"
DEMO_TITLES = {"latency": "latency", "bandwidth": "bw", "multi latency": "multi_lat"}
"""Those of mpi4py's demo programs that measure as ours do."""

ODD_TITLES = {
    "neighborhood all-to-allv latency": "neighbor_alltoallv",
    "non-blocking all-to-allv personalized exchange latency": "ialltoallv",
    "non-blocking all-to-allw personalized exchange latency": "ialltoallw",
    "_put multiple bandwidth / message rate": "put_mr",
}
"""Titles of native OMB that are not the ones that we print, with the benchmark they are of."""

OLD_SYNCHRONIZATIONS = {" passive": "lock", " with flush": "flush"}
"""Words of the one-sided titles of versions 3 to 4.2."""

HUNDREDTHS = r"\d{1,15}\.\d\d"
COUNT = r"\d{1,18}"
HEADINGS = {
    "Latency (us)": ("latency_us", HUNDREDTHS),
    "Latency [us]": ("latency_us", HUNDREDTHS),
    "Avg Latency(us)": ("latency_us", HUNDREDTHS),
    "Min Latency(us)": ("latency_min_us", HUNDREDTHS),
    "Max Latency(us)": ("latency_max_us", HUNDREDTHS),
    "Iterations": ("iterations", COUNT),
    "Bandwidth (MB/s)": ("bandwidth_MBps", HUNDREDTHS),
    "Bi-Bandwidth (MB/s)": ("bandwidth_MBps", HUNDREDTHS),
    "Bandwidth [MB/s]": ("bandwidth_MBps", HUNDREDTHS),
    "MB/s": ("bandwidth_MBps", HUNDREDTHS),
    "Messages/s": ("messages_per_s", HUNDREDTHS),
    "Overall(us)": ("overall_us", HUNDREDTHS),
    "Compute(us)": ("compute_us", HUNDREDTHS),
    "Coll. Init(us)": ("start_us", HUNDREDTHS),
    "MPI_Test(us)": ("test_us", HUNDREDTHS),
    "MPI_Wait(us)": ("wait_us", HUNDREDTHS),
    "Pure Comm.(us)": ("latency_us", HUNDREDTHS),
    "Min Comm.(us)": ("latency_min_us", HUNDREDTHS),
    "Max Comm.(us)": ("latency_max_us", HUNDREDTHS),
    "Overlap(%)": ("overlap_percent", HUNDREDTHS),
    "Validation": ("validation", r"[Pp]ass(?:ed)?|[Ff]ail(?:ed)?|-"),
    "Transmit Size": ("payload_bytes", COUNT),
    "Late Starts": ("late_starts", rf"{COUNT}|-"),
    **{heading: (column, r"\d{1,15}\.\d\d\d|-") for heading, column in THOUSANDTHS.items()},
}
"""Each heading's column of `Row`, and what its cells look like: native OMB's have two decimals."""

TAIL = re.compile(r"P(\d+(?:\.\d+)?) Tail (?:Lat\(us\)|BW\(MB/s\))")
HEADING = re.compile(
    "|".join([TAIL.pattern, *map(re.escape, sorted(HEADINGS, key=len, reverse=True))])
)
HEADER = re.compile(
    r"(?:# (?P<size>Size(?: \(B\)| \[B\])?\s+)?| *(?=Overall))(?=\S)(?P<names>.*\S)\s*$"
)
HEADINGS_BEGIN = ("# Size", "# Avg Latency", "# Overall(us)", "# Latency (us)")
VARIED = re.compile(r"#(?P<windows>(?:\s+\d{1,9}){2,})\s*")

TAILS_AS_SAMPLES = ("50", "90", "95", "99")
"""Percentiles of latencies that have columns of their own."""

TIME = r"\d{1,12}(?:\.\d\d)?"
FAILURES = re.compile(
    r"(?P<part>\S+(?: \S+)?) +(?P<ranks>\d{1,9}) +(?P<failed>\d{1,9}) +"
    rf"(?P<latency_min_us>{TIME}) +(?P<latency_us>{TIME}) +(?P<latency_max_us>{TIME})"
    r" +(?P<iterations>\d{1,9})"
)
PARTS_OF_START = re.compile(
    rf"(?P<part>\S+) +(?P<latency_min_ms>{TIME}) +(?P<latency_ms>{TIME})"
    rf" +(?P<latency_max_ms>{TIME})"
)
START = re.compile(
    rf"(?:This is a test with |nprocs: )(?P<ranks>\d{{1,9}})(?: processes|, min: "
    rf"(?P<latency_min_ms>{TIME}) ms, max: (?P<latency_max_ms>{TIME}) ms, "
    rf"avg: (?P<latency_ms>{TIME}) ms)"
)
"""What stands for a row where there are no sizes: a failure's, `import_time`'s, osu_init's."""

TOPOLOGY = re.compile(r"Time took to create topology graph:(\d{1,12}\.\d\d) us\.")
PART = re.compile(
    r"# (?P<part>[a-z ]+): (?P<latency_us>\d+\.\d\d) us "
    r"\(of the ranks (?P<latency_min_us>\d+\.\d\d) to (?P<latency_max_us>\d+\.\d\d)\)"
)

TELLING = ("#", "osu_", "Time took", "OSU ")
"""What lines have in them that matter outside a table."""

MESSAGE = re.compile(r"osu_\w+: \S")
"""What a program itself says, between its rows."""

HASHES = re.compile(r"^#[# ]*(?=# )")
LONGEST_TITLE = 60
NUMBER = re.compile(r"\d{1,9}")
BLANKS = r"\s+"

LOOKS_LIKE_A_ROW = re.compile(r"\s*\d+(?:\s+(?:[-\d.]|nan|inf)|\s*$)")
LOOKS_LIKE_A_TIME = re.compile(r"\s*\d+\.\d")
LOOKS_LIKE_A_PART = re.compile(r"\s*\S+(?: \S+)?\s+(?:\d+\s+\d+\s+)?\d+\.\d*\s")
LOST_ROW = re.compile(r"\s*(?:\d+\s+)?\d+\.\d\d(?:\s|$)")
"""A row of which it is not known what it is of."""

WHOLE = re.compile(r".*(?:\.\d{2,}|ss|ssed|l|led)")
NEVER = re.compile("(?!)")
"""A line that does not go on where a file ends within it; those of parts may."""

ENDS = re.compile(r"# Send Buffer on \w+ \((\w)\) and Receive Buffer on \w+ \((\w)\)")
SYNCHRONIZATIONS = {"lock/unlock": "lock", "lock_all/unlock_all": "lock_all"} | {
    "post/start/complete/wait": "pscw"
}
DETAILS = (
    (re.compile(r"# Datatype: (MPI_\w+)\."), "mpi_type", str),
    (re.compile(r"# Window creation: MPI_Win_(\w+)"), "window_kind", str),
    (
        re.compile(r"# Synchronization: MPI_Win_([\w/]+)"),
        "window_sync",
        lambda text: SYNCHRONIZATIONS.get(text, text),
    ),
    (re.compile(r"# Sync: (MPI_File_sync|none)\b"), "file_sync", "none".__ne__),
    (re.compile(r"# Partitions: (\d{1,9})\b"), "partitions", int),
    (re.compile(r"# Number of (?:Sender threads|forked processes in sender): (\d+)"), "from", str),
    (
        re.compile(r"# Number of (?:Receiver threads|forked processes in receiver): (\d+)"),
        "to",
        str,
    ),
    (re.compile(r"# \[ pairs: (\d{1,9}) \]"), "pairs", int),
)
"""Comments that tell a column of all rows below them."""

WINDOW_SIZE = re.compile(r"\[ window size: (\d{1,9}) \]")

LAUNCHERS = dict.fromkeys(("-n", "-np", "--np", "--ntasks", "-ntasks"), "ranks")
PROGRAMS = {
    "-W": "window",
    "--window-size": "window",
    "-l": "in_place",
    "--in-place": "in_place",
    "-k": "root",
    "--root-rank": "root",
    "-D": "layout",
    "--ddt": "layout",
    "-t": "test_calls",
    "--num-test-calls": "test_calls",
}
"""Options of launchers and of programs, and the columns that they tell."""

LETTERS = re.compile(r"M?[HD](?: M?[HD])?")
"""Where messages lie, as a banner has it."""

BANNER_COLUMNS = {
    "buffer": "buffer",
    "binding": "binding",
    "benchmark": "benchmark",
    "algorithm": "library_algorithm",
    "own algorithm": "algorithm",
}
"""Words of our banner that a value follows, and the columns of `Row` that they stand for."""

SEGMENT = re.compile(r"segments of (\d{1,18}) bytes")
FLAGS = {"staged": "staged", "with stream sync": "stream_sync", "cold": "cold"}


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
        self.pattern = unsized_patterns().get(table.get("benchmark", ""))
        self.last = -1

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
        elif self.lost is None and row_pattern(text):
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
        elif match := PART.match(text):
            self.add(index, **values_in(match))
        elif VARIED.fullmatch(text):
            self.pattern, self.last = row_pattern(text), -1
        elif (pattern := row_pattern(text, self.table["benchmark"] == "multi_lat")) or (
            text.startswith(HEADINGS_BEGIN)
        ):
            self.heading(text.strip()[:LONGEST_TITLE], pattern, index)

    def heading(self, words: str, pattern: re.Pattern[str] | None, index: int) -> None:
        """A heading: rows follow, unless they cannot be of the benchmark above it."""
        if pattern is None:
            self.lose(index, f"headings that are not known: {words!r}")
        elif first_columns().get(self.table["benchmark"]) not in (None, first_column(pattern)):
            self.lose(index, f"headings that are not those of {program_of(self.table)}: {words!r}")
        elif self.counted and self.table in self.headings:
            reason = f"a second heading below one title, that of line {self.top + 1}"
            self.lose(index, f"{reason}: another benchmark's, whose title is missing")
        else:
            self.found_again()
            self.headings.append(dict(self.table))
            self.goes_on(index)
            self.pattern, self.last = pattern, -1

    def row(self, line: str, index: int) -> None:
        """A line below a header: a whole row, a broken one, or something of no interest."""
        if self.pattern is None:
            if LOST_ROW.match(line):
                reason = f"no heading is above these rows of {program_of(self.table)}"
                self.lost = self.lost or (index, reason, [])
                self.lost[2].append(index)
            return
        text, torn = line.strip(), index == self.source.torn
        match = self.pattern.fullmatch(text)
        looks, whole = LOOKS_LIKE_A_TIME, WHOLE
        if self.pattern in (START, FAILURES, PARTS_OF_START):
            looks, whole = LOOKS_LIKE_A_PART, NEVER
        elif "bytes" in self.pattern.groupindex:
            looks = LOOKS_LIKE_A_ROW
        if match is None and (self.pattern is START or not looks.match(line)):
            return
        if torn and self.pattern is not START and not whole.fullmatch(text):
            self.notes.add(index, "an incomplete row, left out")
        elif match is None or not in_order(match):
            self.notes.add(index, "not a whole row, left out")
        elif whole is NEVER:
            self.add(index, **values_in(match))
        else:
            self.cells(values_in(match), index)

    def cells(self, values: dict[str, Any], index: int) -> None:
        """The values of a whole row."""
        sized = "bytes" in values
        size = values.get("bytes", 0)
        if size <= self.last:
            text = f"size {size} after {self.last}: rows of two tables? left out"
            self.notes.add(index, text if sized else "not a whole row, left out")
            if sized and size == self.last:
                self.rows = [one for one in self.rows if not self.is_beside(one, size)]
            return
        self.last = size
        windows = {int(name[1:]): value for name, value in values.items() if name[1:].isdigit()}
        for window, value in windows.items():
            if not self.rates:
                self.add(index, bytes=size, window=window, bandwidth_MBps=value)
            for one in self.rows:
                if self.rates and self.is_beside(one, size) and one.get("window") == window:
                    one["messages_per_s"] = value
        if not windows:
            self.add(index, **values)

    def is_beside(self, row: dict[str, Any], size: int) -> bool:
        """Whether a row of the table has a size, and the element type that is measured now."""
        return (row.get("bytes"), row.get("mpi_type")) == (size, self.table.get("mpi_type"))

    def add(self, index: int, **values: Any) -> None:
        """A row of the table."""
        self.counted, self.begun = self.counted + 1, None
        self.rows.append(self.table | values | {"line": index + 1})


UNNAMED = "unnamed"
WITHOUT_HEADINGS = (
    rf"(?:{BLANKS}(?P<{UNNAMED}>)(?P<latency_min_us>{HUNDREDTHS})"
    rf"{BLANKS}(?P<latency_max_us>{HUNDREDTHS}){BLANKS}(?P<iterations>{COUNT}))?"
)
"""Cells of -f below a heading of version 7.3 that lacks theirs; `UNNAMED` is then there."""


@lru_cache(256)
def row_pattern(header: str, lenient: bool = False) -> re.Pattern[str] | None:
    """What the rows below a header look like; None when it has a word that is not known.

    Groups are columns of `Row`, percentiles as in ``tail_99_9``, and windows as in ``w64``.
    ``lenient`` is of programs that print headings of percentiles, and no values.
    """
    columns: dict[str, str] = {}
    if varied := VARIED.fullmatch(header):
        columns = {f"w{window}": HUNDREDTHS for window in varied["windows"].split()}
    elif (match := HEADER.match(header)) and not HEADING.sub("", match["names"]).strip():
        for heading in HEADING.finditer(match["names"]):
            tail = f"tail_{heading[1].replace('.', '_')}" if heading[1] else ""
            name, cells = HEADINGS.get(heading[0], (tail, HUNDREDTHS))
            if name == "iterations" and name in columns:
                name = "again"  # of -f and of --stats, which was printed twice once
            if name in columns:
                return None
            columns[name] = cells
    if not columns:
        return None
    names = list(columns)
    if varied or header.startswith("# Size"):
        columns = {"bytes": r"0|[1-9]\d{0,17}"} | columns
    text = r"(?=.*\s\s)" if "  " in header.strip() else ""
    for place, (name, cells) in enumerate(columns.items()):
        text += rf"(?:{BLANKS if place else ''}(?P<{name}>{cells}))"
        text += "?" if lenient and name.startswith("tail_") else ""
    text += WITHOUT_HEADINGS if names == ["latency_us"] else ""
    return re.compile(text)


def in_order(match: re.Match[str]) -> bool:
    """Whether cells that no heading names can be a minimum and a maximum of their mean."""
    if match.groupdict().get(UNNAMED) is None:
        return True
    mean, low, high = (float(match[f"latency{end}_us"]) for end in ("", "_min", "_max"))
    return low <= mean <= high


def values_in(match: re.Match[str]) -> dict[str, Any]:
    """The columns of `Row` that a line has, by the groups of its pattern."""
    found: dict[str, Any] = {}
    percentiles = []
    for name, cell in match.groupdict().items():
        if cell in (None, "-") or name in ("again", UNNAMED):
            continue
        if name == "part":
            found[name] = cell
        elif name == "validation":
            found[name] = "Pass" if cell.lower().startswith("pass") else "Fail"
        elif name.startswith("tail_"):
            percent = name.removeprefix("tail_").replace("_", ".")
            percentiles.append(f"p{percent}={cell}")
            if percent in TAILS_AS_SAMPLES and first_column(match.re) == "latency_us":
                found.setdefault(f"sample_p{percent}_us", float(cell))  # --stats has more digits
        elif name.endswith("_ms"):
            found[name.replace("_ms", "_us")] = 1e3 * float(cell)
        else:
            found[name] = float(cell) if "." in cell else int(cell)
    return found | ({"percentiles": " ".join(percentiles)} if percentiles else {})


def first_column(pattern: re.Pattern[str]) -> str:
    """What the first column after the size is."""
    return next(name for name in pattern.groupindex if name != "bytes")


@cache
def first_columns() -> dict[str, str]:
    """The first column of each benchmark's own table."""
    return {one.name: next(iter(values_of(one, Options()).values())) for one in all_benchmarks()}


@cache
def unsized_patterns() -> dict[str, re.Pattern[str]]:
    """Benchmarks whose rows have no headings of numbers, and what these rows look like."""
    starts = {one.name: START for one in all_benchmarks() if one.start_up is not None}
    failures = {one.name: FAILURES for one in all_benchmarks() if one.recovery is not None}
    return starts | failures | {"import_time": PARTS_OF_START}


@cache
def pairs_only() -> frozenset[str]:
    """Benchmarks that run on two ranks and no other number."""
    return frozenset(item.name for item in all_benchmarks() if item.ranks is Ranks.TWO)


@cache
def benchmarks_by_title() -> dict[str, tuple[str, ...]]:
    """The benchmarks that a title in small letters may mean; native OMB gives some to several."""
    found: dict[str, tuple[str, ...]] = {}
    for benchmark in all_benchmarks():
        title = benchmark.title.lower()
        found[title] = (*found.get(title, ()), benchmark.name)
    return found | {title: (name,) for title, name in ODD_TITLES.items()}


def benchmark_of(title: str, mentioned: str | None, graph: bool) -> str:
    """The benchmark of a title, given the last program named before it, and whether a topology
    was made: native OMB has titles of several programs. A title that nobody knows is a name."""
    known = title.lower().strip()
    for words in OLD_SYNCHRONIZATIONS:
        known = known.replace(words, "")
    while known.endswith(" test"):
        known = known.removesuffix(" test")
    candidates = benchmarks_by_title().get(known, ())
    if mentioned in candidates:
        return str(mentioned)
    if graph and candidates == ("alltoallw",):
        return "neighbor_alltoallw"
    if candidates:
        return candidates[0]
    return re.sub(r"[^a-z0-9]+", "_", known).strip("_") or "unknown"


def program_in(text: str) -> str | None:
    """The last ``osu_`` program that a line or a file's name mentions."""
    names = re.findall(r"(?<![A-Za-z0-9])osu_([a-z_]*[a-z])", text)
    return names[-1] if names else None


def options_of_command(line: str) -> dict[str, Any]:
    """Columns of `Row` that a command line with a launcher and an ``osu_`` program tells."""
    text = line.lstrip("$# ")
    try:
        words = shlex.split(text) if re.search(r"['\"\\]", text) else text.split()
    except ValueError:
        return {}
    found: dict[str, Any] = {}
    options = LAUNCHERS
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        value = value if equals else following
        if program_in(word):
            options = PROGRAMS
        elif name := options.get(option):
            if name == "in_place":
                found[name] = True
            elif name in ("root", "layout"):
                found[name] = value.removeprefix("fixed:")
            elif NUMBER.fullmatch(value):
                found[name] = int(value)
    return found


def detail_of(line: str, table: dict[str, Any]) -> bool:
    """Whether a comment line tells a column of all rows; it is then kept in ``table``."""
    if match := ENDS.match(line):
        table["placement"] = f"{match[1]} {match[2]}"
        return True
    for pattern, name, value_of in DETAILS:
        if match := pattern.match(line):
            table[name] = value_of(match[1])
            if "from" in table and "to" in table:
                table["threads"] = f"{table.pop('from')}:{table.pop('to')}"
            if name == "pairs":
                table.setdefault("ranks", 2 * int(match[1]))
                if window := WINDOW_SIZE.search(line):
                    table["window"] = int(window[1])
            return True
    return False


def options_of_banner(words: str) -> dict[str, Any]:
    """Columns of `Row` that the parenthesis of our own banner tells; what is unknown is a variant.

    >>> options_of_banner("buffer numpy, binding native, own algorithm ring, variant a, b")
    {'variant': 'a, b', 'buffer': 'numpy', 'binding': 'native', 'algorithm': 'ring'}
    """
    words, _, variant = words.partition(", variant ")
    found: dict[str, Any] = {"variant": variant} if variant else {}
    for text in filter(None, words.split(", ")):
        key, _, value = text.rpartition(" ")
        if key == "ranks" and NUMBER.fullmatch(value):
            found["ranks"] = int(value)
        elif key in BANNER_COLUMNS:
            found[BANNER_COLUMNS[key]] = value
        elif match := SEGMENT.fullmatch(text):
            found["segment"] = int(match[1])
        elif text in FLAGS:
            found[FLAGS[text]] = True
        elif LETTERS.fullmatch(text):
            found["placement"] = text
        elif text != "session":
            found["variant"] = text  # which once had no name
    return found


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
