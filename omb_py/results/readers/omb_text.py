"""The text output of native OMB (versions 3 to 8), of the original OMB-Py, and our own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import PurePath
from typing import Any

from omb_py.benchmarks import Benchmark, Ranks, all_benchmarks
from omb_py.benchmarks.onesided import WINDOW_CALLS
from omb_py.core.mpi.startup_timer import INIT, SESSION
from omb_py.core.options import Options
from omb_py.results.readers import (
    BLANKS,
    LIKE,
    NUMBER,
    Reader,
    Reading,
    Source,
    form_of,
    processes_of,
    typed,
)
from omb_py.results.text import (
    FAILURES,
    HEADINGS,
    PARTS,
    THOUSANDTHS,
    TITLED_AS_BW,
    Cell,
    values_of,
)

TITLE = re.compile(
    r"# (?P<who>OSU|OMB Python|OMB-Py) (?P<old>(?:MPI )?One Sided )?(?P<api>MPI|NCCL|RCCL)"
    r"(?:-(?P<device>[A-Z]+))?(?P<title>[ _].*?) Test(?: v(?P<version>\d[\w.]*))?"
    r"(?: \(omb-py (?P<ours>[^:()]+): (?P<how>.*)\))?\s*$"
)
NEARLY = re.compile(
    r"(?:.*# ?|(?=.* Test))(?:OSU|OMB Python|OMB-Py) (?:One Sided )?(?:MPI|NCCL|RCCL)[-_ ]"
)
"""Text that was a title before it was damaged, or that follows an unknown label."""

ODD_TITLES = {
    "neighborhood all-to-allv latency": "neighbor_alltoallv",
    "non-blocking all-to-allv personalized exchange latency": "ialltoallv",
    "non-blocking all-to-allw personalized exchange latency": "ialltoallw",
    "_put multiple bandwidth / message rate": "put_mr",
}
"""Titles of native OMB that are not the ones that we print, with the benchmark they are of."""

OLD_SYNCHRONIZATIONS = {" passive": "lock", " with flush": "flush"}
"""Words of the one-sided titles of versions 3 to 4.2."""

HUNDREDTHS, THOUSANDTH = r"\d{1,15}\.\d\d", r"\d{1,15}\.\d\d\d|-"
COUNT, SIZE = r"\d{1,18}", r"0|[1-9]\d{0,17}"
CELLS = {
    "iterations": COUNT,
    "payload_bytes": COUNT,
    "late_starts": rf"{COUNT}|-",
    "validation": r"[Pp]ass(?:ed)?|[Ff]ail(?:ed)?|-",
} | dict.fromkeys(THOUSANDTHS.values(), THOUSANDTH)
"""Patterns of the cells of columns; all others have two decimals."""

HEADING = re.compile(
    r"P(\d+(?:\.\d+)?) Tail (?:Lat\(us\)|BW\(MB/s\))|"
    + "|".join(map(re.escape, sorted(HEADINGS, key=len, reverse=True)))
)
HEADER = re.compile(r"(?:# (?P<size>Size(?: \(B\))?\s+)?| *(?=Overall))(?=\S)(?P<names>.*\S)\s*$")
GLUED = re.compile(rf"# Size(?: \(B\))?(?:\s*(?:{HEADING.pattern}))+(?=\S)")
"""Headings with something glued to them, which another process wrote."""

HEADINGS_BEGIN = ("# Size", "# Avg Latency", "# Overall(us)", "# Latency (us)")
VARIED = re.compile(r"#(?P<windows>(?:\s+\d{1,9}){2,})\s*")
"""A header of option -V: a column for each window."""

WITHOUT_HEADINGS = (
    rf"(?:{BLANKS}(?P<latency_min_us>{HUNDREDTHS}){BLANKS}(?P<latency_max_us>{HUNDREDTHS})"
    rf"{BLANKS}(?P<iterations>{COUNT}))?"
)
"""Cells of -f below a heading of version 7.3 that lacks theirs."""

TAILS_AS_SAMPLES = ("50", "90", "95", "99")
"""Percentiles of latencies that have columns of their own."""

OF_PART = re.compile(r"\s*\S+(?: \S+)?\s+(?:\d+\s+\d+\s+)?\d+\.\d*\s")
LOST_ROW = re.compile(r"\s*(?:\d+\s+)?\d+\.\d\d(?:\s|$)")
"""Beginning of rows of parts, and of rows of an unknown kind."""

TIME = r"\d{1,12}(?:\.\d\d)?"
START = re.compile(
    rf"(?:This is a test with |nprocs: )(?P<ranks>\d{{1,9}})(?: processes|, min: "
    rf"(?P<latency_min_ms>{TIME}) ms, max: (?P<latency_max_ms>{TIME}) ms, "
    rf"avg: (?P<latency_ms>{TIME}) ms)"
)
"""Native OMB's lines on the start of a job."""

ONE_TYPE = {"get_acc_latency": "MPI_CHAR"}
"""The types of native OMB's programs that have one and print none (osu_get_acc_latency.c:63)."""

TOPOLOGY = re.compile(r"Time took to create topology graph:(?P<latency_us>\d{1,12}\.\d\d) us\.")
PART = re.compile(
    r"# (?P<part>[a-z ]+): (?P<latency_us>\d+\.\d\d) us "
    r"\(of the ranks (?P<latency_min_us>\d+\.\d\d) to (?P<latency_max_us>\d+\.\d\d)\)"
)
DETAIL = re.compile(
    r"# Datatype: (?P<mpi_type>MPI_\w+)(?:, elements (?P<elements>\w+))?\."
    r"|# Window creation: MPI_Win_(?P<window_kind>\w+)"
    r"|# Synchronization: MPI_Win_(?P<window_sync>[\w/]+)"
    r"|# Sync: (?P<file_sync>MPI_File_sync|none)\b"
    r"|# Files: one for (?P<per_rank>each rank|all ranks)"
    r"|# Partitions: (?P<partitions>\d{1,9})\b"
    r"|# Number of (?:Sender threads|forked processes in sender): (?P<sending>\d+)"
    r"|# Number of (?:Receiver threads|forked processes in receiver): (?P<receiving>\d+)"
    r"|# \[ pairs: (?P<pairs>\d{1,9}) \](?:.*\[ window size: (?P<window>\d{1,9}) \])?"
    r"|# Send Buffer on \w+ \((?P<from>\w)\) and Receive Buffer on \w+ \((?P<to>\w)\)"
)
"""Comments that tell columns of all rows below them."""

OF_WINDOWS = {call.removeprefix("MPI_Win_"): name for name, call in WINDOW_CALLS.items()}
"""The words of ``-w`` and ``-s`` for what titles say of windows; others are the words."""

TELLING = ("#", "osu_", "Time took", "OSU ")
"""Parts of the lines that matter outside a table."""

MESSAGE = re.compile(r"osu_\w+: \S")
"""A program's own message between its rows."""

HASHES = re.compile(r"^#[# ]*(?=# )")
LONGEST_TITLE = 60
PROGRAMS = {
    **dict.fromkeys(("-W", "--window-size"), "window"),
    **dict.fromkeys(("-l", "--in-place"), "in_place"),
    **dict.fromkeys(("-k", "--root-rank"), "root"),
    **dict.fromkeys(("-D", "--ddt"), "layout"),
    **dict.fromkeys(("-t", "--num-test-calls"), "test_calls"),
}
"""Options of programs, and the columns that they tell."""

BANNER = (
    re.compile(r"ranks (?P<ranks>\d{1,9})"),
    re.compile(r"(?P<placement>M?[HD](?: M?[HD])?)"),
    re.compile(r"buffer (?P<buffer>.*)|binding (?P<binding>.*)|benchmark (?P<benchmark>.*)"),
    re.compile(r"target busy (?P<target_busy_us>[\d.e+-]+) us"),
    re.compile(r"skew (?P<skew>.*)|offset (?P<offset>\d{1,18})"),
    re.compile(r"segments of (?P<segment>\d{1,18}) bytes"),
    re.compile(r"own algorithm (?P<algorithm>.*)|algorithm (?P<library_algorithm>.*)"),
    re.compile(r"(?P<staged>staged)|with (?P<stream_sync>stream sync)|(?P<cold>cold)|session"),
    re.compile(r"(?P<variant>.*)"),  # which once had no name
)
"""Words between the commas of our own titles' parentheses."""


class OmbReading(Reading):
    """The state of the reader: columns that all rows of the table share; empty outside a table.

    ``said`` are the columns from a command before the next title, ``before`` those from comments
    there, ``types`` the element types that had a heading, ``rates`` if a table of rates goes on,
    ``unsized`` if the benchmark's rows have no headings of numbers, and ``why`` is the reason why
    rows here are left out, if any are expected.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.program = program_in(PurePath(source.path).name)
        self.said: dict[str, Any] = {}
        self.before: dict[str, Any] = {}
        self.graph: dict[str, Any] = {}
        self.table: dict[str, Any] = {}
        self.types: set[tuple[str | None, str | None]] = set()
        self.rates = self.unsized = False
        self.why = ""

    def line(self, line: str, index: int) -> None:
        """Take the next line: a title, a header, a row of the open table, or a command."""
        if not (self.table or self.why or any(word in line for word in TELLING)):
            return
        text = HASHES.sub("", line.lstrip())
        program = program_in(text) if "osu_" in text else None
        maybe_title = ("OSU " in text or "OMB" in text) and index != self.source.torn
        if maybe_title and (match := TITLE.match(text)):
            self.title(match, index)
        elif maybe_title and NEARLY.match(text):
            self.finish(index)
            title = repr(text[:LONGEST_TITLE])
            self.why = f"{title} above is no title that is known"
            self.begin(index, f"{title}, which is no title that is known,")
        elif program and (not self.table or not MESSAGE.match(text)):
            self.finish(index)
            self.why = f"osu_{program} is named above, and no title follows"
            self.program, self.said, self.before = program, options_of_command(text), {}
        elif self.table and text.startswith(("#", "Overall(us)")):
            self.comment(text, index)
        elif self.form is not None:
            self.row(line, index)
        elif self.why and LOST_ROW.match(text):
            self.begun = None
            self.notes.add(index, f"{self.why}: left out")
        elif not self.table:
            self.between(text)

    def between(self, text: str) -> None:
        """Read a line outside a table: lines before a title describe the next table."""
        if not self.why and form_below(text):
            self.why = "no title of a benchmark is above this table"
        elif match := TOPOLOGY.match(text):
            self.graph = typed(match.groupdict())
        else:
            details(text, self.before)

    def title(self, said: re.Match[str], index: int) -> None:
        """Read a title, with the facts from the lines before it."""
        self.finish(index)
        title = said["title"].strip()
        name = benchmark_of(title, self.program, bool(self.graph))
        table: dict[str, Any] = {"run": f"{self.source.path}:{index + 1}", "suite": suite(said)}
        table |= {"binding": None} | self.said | self.before | {"benchmark": name}
        if said["api"] != "MPI":
            table["binding"] = "nccl"
        elif said["who"] == "OSU" and not said["ours"]:
            table["binding"] = "C"
            if name in ONE_TYPE:
                table["mpi_type"] = ONE_TYPE[name]
        if said["device"]:
            table["buffer"] = said["device"].lower()
        if said["old"]:
            table["window_kind"] = "create"
            for words, sync in OLD_SYNCHRONIZATIONS.items():
                if words in title.lower():
                    table["window_sync"] = sync
        table |= options_of_banner(said["how"] or "")
        name = table["benchmark"]
        if (benchmark := known_benchmarks().get(name)) and benchmark.ranks is Ranks.TWO:
            table["ranks"] = 2
        if name == "init":
            table["part"] = SESSION if "session" in (said["how"] or "").split(", ") else INIT
        self.table, self.form = table, unsized_forms().get(name)
        self.unsized = self.form is not None
        self.like = OF_PART if self.form not in (None, START) else LIKE
        self.why = f"no heading is above these rows of {program_of(table)}"
        if self.graph:
            self.add(index, table | {"part": "topology creation"} | self.graph)
        self.before, self.graph = {}, {}

    def finish(self, index: int | None) -> None:
        """End a table, at the end of the file, too."""
        super().finish(index)
        self.table, self.types, self.rates, self.why = {}, set(), False, ""

    def comment(self, text: str, index: int) -> None:
        """Read a line of a table that describes it: headings, element types, windows."""
        if text.startswith(("# Uni-directional", "# Message Rate Profile")):
            self.rates, self.sizes = text.startswith("# Message"), {}
        elif details(text, self.table):
            self.goes_on(index)
        elif match := PART.match(text):
            self.add(index, self.table | typed(match.groupdict()))
        elif VARIED.fullmatch(text):
            self.form = form_below(text)
        elif form := form_below(self.headings(text), self.table["benchmark"] == "multi_lat"):
            self.heading(form, text, index)
        elif text.startswith(HEADINGS_BEGIN):
            self.lose("headings that are not known", text, index)

    def headings(self, text: str) -> str:
        """Return headings as what they stand for.

        Native OMB prints the fans' bandwidths under headings of latencies: osu_bw_fan_in.c:152
        calls a function that knows no family of theirs (osu_util_mpi.c:584).
        """
        if form_below(text) is None and (glued := GLUED.match(text)):
            text = glued[0]
        if self.table["benchmark"] in TITLED_AS_BW:
            text = text.replace("Avg Latency(us)", "Bandwidth (MB/s)")
            text = text.replace("Tail Lat(us)", "Tail BW(MB/s)")
        return text

    def heading(self, form: re.Pattern[str], text: str, index: int) -> None:
        """Read headings, which may be of another benchmark whose title is missing."""
        first = next(name for name in form.groupindex if name != "bytes")
        benchmark = known_benchmarks().get(self.table["benchmark"])
        if benchmark and HEADINGS[values_of(benchmark, Options())[0]] != first:
            self.lose(f"headings that are not those of {program_of(self.table)}", text, index)
        elif self.elements in self.types:
            self.lose("a second heading below one title", text, index)
        else:
            self.types.add(self.elements)
            self.form = form
            self.goes_on(index)

    @property
    def elements(self) -> tuple[str | None, str | None]:
        """The element type of the rows that follow."""
        return self.table.get("mpi_type"), self.table.get("elements")

    def lose(self, reason: str, text: str, index: int) -> None:
        """Leave out the rows below headings, until the next title."""
        what = "" if self.rows else f"{program_of(self.table)} of {self.table['suite']}"
        self.begun = None
        self.finish(None)
        self.begin(index, what)
        self.why = f"{reason} are above: {text.strip()[:LONGEST_TITLE]!r}"

    def goes_on(self, index: int) -> None:
        """Expect rows: option -v prints only a title."""
        self.begun = None
        self.begin(index, f"{program_of(self.table)} of {self.table['suite']}")

    def row(self, line: str, index: int) -> None:
        """Read a line below a header: a whole row, a broken one, or something of no interest."""
        if (cells := self.cells(line, index)) is None:
            return
        values = self.table | values_in(cells)
        windows = {int(name[1:]): float(cells[name]) for name in cells if name[1:].isdigit()}
        at = (self.elements, values.get("bytes", 0))
        if self.unsized:
            self.add(index, values)
        elif not self.follows(index, at[1], at[0]):
            return
        elif self.rates:
            for other, row in self.rows:
                if other == at and row.get("window") in windows:
                    row["messages_per_s"] = windows[row["window"]]
        else:
            bandwidths = [{"window": one, "bandwidth_MBps": windows[one]} for one in windows]
            for varied in bandwidths or [{}]:
                self.add(index, values | varied, at)


@lru_cache(256)
def form_below(header: str, lenient: bool = False) -> re.Pattern[str] | None:
    """Return the pattern of the rows below a header; None when it has an unknown word.

    Groups are columns of `Row`, percentiles as in ``tail_99_9``, and windows as in ``w64``.
    ``lenient`` is of programs that print headings of percentiles, and no values.
    """
    cells: dict[str, str] = {}
    if varied := VARIED.fullmatch(header):
        cells = {"bytes": SIZE} | {f"w{one}": HUNDREDTHS for one in varied["windows"].split()}
    elif (match := HEADER.match(header)) and not HEADING.sub("", match["names"]).strip():
        cells = {"bytes": SIZE} if match["size"] else {}
        for heading in HEADING.finditer(match["names"]):
            name = HEADINGS.get(heading[0]) or f"tail_{heading[1].replace('.', '_')}"
            if name in cells:
                return None
            cells[name] = CELLS.get(name, HUNDREDTHS)
    if not cells:
        return None
    optional = [name for name in cells if lenient and name.startswith("tail_")]
    rest = WITHOUT_HEADINGS if cells.keys() - {"bytes"} == {"latency_us"} else ""
    return form_of(header, cells.items(), optional, rest)


def values_in(cells: Mapping[str, str]) -> dict[str, Any]:
    """Return the columns of `Row` that a line contains, by the groups of its pattern."""
    found = typed(cells)
    percentiles = []
    for name, cell in cells.items():
        if name.startswith("tail_"):
            percent = name.removeprefix("tail_").replace("_", ".")
            percentiles.append(f"p{percent}={cell}")
            of_latency = "latency_us" in cells and "overall_us" not in cells
            if percent in TAILS_AS_SAMPLES and of_latency:
                found.setdefault(f"sample_p{percent}_us", float(cell))  # --stats has more digits
        elif name == "validation":
            found[name] = "Pass" if cell.lower().startswith("pass") else "Fail"
        elif name.endswith("_ms"):
            found[name.replace("_ms", "_us")] = 1e3 * float(cell)
    return found | ({"percentiles": " ".join(percentiles)} if percentiles else {})


def details(line: str, table: dict[str, Any]) -> bool:
    """Return whether a comment line has columns of all rows; they are then kept in ``table``."""
    if not (match := DETAIL.match(line)):
        return False
    found = match.groupdict()
    table |= typed(found)
    for name in ("window_kind", "window_sync"):
        if found[name]:
            table[name] = OF_WINDOWS.get(found[name], found[name])
    if found["file_sync"]:
        table["file_sync"] = found["file_sync"] != "none"
    if found["per_rank"]:
        table["per_rank"] = found["per_rank"] == "each rank"
    if found["from"]:
        table["placement"] = f"{found['from']} {found['to']}"
    if found["sending"]:
        table["sending"] = found["sending"]
    if found["receiving"] and "sending" in table:
        table["threads"] = f"{table.pop('sending')}:{found['receiving']}"
    if found["pairs"]:
        table.setdefault("ranks", 2 * table["pairs"])
    return True


@cache
def unsized_forms() -> dict[str, re.Pattern[str]]:
    """Return benchmarks whose rows have no headings of numbers, and the pattern of these rows."""
    starts = {one.name: START for one in all_benchmarks() if one.start_up is not None}
    failures = [one.name for one in all_benchmarks() if one.recovery is not None]
    ours = dict.fromkeys(failures, FAILURES) | {"import_time": PARTS}
    return starts | {name: form_of_table(cells) for name, cells in ours.items()}


def form_of_table(cells: Iterable[Cell]) -> re.Pattern[str]:
    """Return the pattern of rows of our own text; times in milliseconds are called ``_ms``."""
    found = []
    for one in cells:
        pattern = r"\d{1,9}|-" if one.decimals is None else rf"\d{{1,12}}\.\d{{{one.decimals}}}|-"
        column = str(one.column).replace("_us", "_us" if one.unit == 1 else "_ms")
        found.append((column, r"\S+(?: \S+)?" if one.least < 0 else pattern))
    return form_of("", found)


@cache
def known_benchmarks() -> dict[str, Benchmark]:
    """Return the benchmarks of omb-py by name."""
    return {one.name: one for one in all_benchmarks()}


@cache
def benchmarks_by_title() -> dict[str, tuple[str, ...]]:
    """Return the benchmarks that a lower-case title may mean; native OMB gives some to several."""
    found: dict[str, tuple[str, ...]] = {}
    for benchmark in all_benchmarks():
        title = benchmark.title.lower()
        found[title] = (*found.get(title, ()), benchmark.name)
    return found | {title: (name,) for title, name in ODD_TITLES.items()}


def benchmark_of(title: str, mentioned: str | None, graph: bool) -> str:
    """Return the benchmark of a title, given the last program named before it, and whether a
    topology was made: native OMB has titles of several programs. An unknown title is a name."""
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
    """Return the last ``osu_`` program that a line or a file's name mentions."""
    names = re.findall(r"(?<![A-Za-z0-9])osu_([a-z_]*[a-z])", text)
    return names[-1] if names else None


def options_of_command(line: str) -> dict[str, Any]:
    """Return columns of `Row` from a command line with a launcher and an ``osu_`` program."""
    text = line.lstrip("$# ")
    try:
        words = shlex.split(text)
    except ValueError:
        return {}
    place = next((at for at, word in enumerate(words) if program_in(word)), len(words))
    ranks = processes_of(words[:place])
    found: dict[str, Any] = {} if ranks is None else {"ranks": ranks}
    own = words[place + 1 :]
    for word, following in zip(own, [*own[1:], ""], strict=False):
        option, equals, value = word.partition("=")
        value = value if equals else following
        if name := PROGRAMS.get(option):
            if name == "in_place":
                found[name] = True
            elif name in ("root", "layout"):
                found[name] = value.removeprefix("fixed:")
            elif NUMBER.fullmatch(value):
                found[name] = int(value)
    return found


def options_of_banner(words: str) -> dict[str, Any]:
    """Return columns of `Row` from the parenthesis of our own title; unknown words are a variant.

    >>> options_of_banner("buffer numpy, binding native, own algorithm ring, variant a, b")
    {'variant': 'a, b', 'buffer': 'numpy', 'binding': 'native', 'algorithm': 'ring'}
    """
    words, _, variant = words.partition(", variant ")
    found: dict[str, Any] = {"variant": variant} if variant else {}
    for text in filter(None, words.split(", ")):
        match = next(filter(None, (pattern.fullmatch(text) for pattern in BANNER)))
        found |= typed(match.groupdict())
    return found


def suite(said: re.Match[str]) -> str:
    """Return name and version of the suite that a title names."""
    if said["ours"]:
        return f"omb-py {said['ours']}"
    name = "OSU" if said["who"] == "OSU" else "OMB-Py"
    return f"{name} {said['version']}" if said["version"] else name


def program_of(table: Mapping[str, Any]) -> str:
    """Return the name of a table's program for people."""
    native = str(table["suite"]).startswith("OSU")
    return f"osu_{table['benchmark']}" if native else str(table["benchmark"])


READER = Reader(
    "native OMB's text and OMB-Py's",
    (
        *(b"OSU MPI", b"OSU One Sided", b"OSU NCCL", b"OSU RCCL"),
        *(b"# OMB Python MPI", b"# OMB-Py MPI"),
    ),
    OmbReading.read,
)
