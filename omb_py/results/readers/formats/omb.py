"""The words of native OMB's output: headings, titles, command lines; and what they stand for."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

from omb_py.benchmarks import Ranks, all_benchmarks

HUNDREDTHS = r"\d{1,15}\.\d\d"
THOUSANDTHS = r"\d{1,15}\.\d\d\d|-"
COUNT = r"\d{1,18}"
COUNT_OR_NONE = r"\d{1,18}|-"
NUMBER = re.compile(r"\d{1,9}")
WORD = r"[Pp]ass(?:ed)?|[Ff]ail(?:ed)?"

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
    "Validation": ("validation", f"{WORD}|-"),
    "Transmit Size": ("payload_bytes", COUNT),
    "Algbw(GB/s)": ("algbw_GBps", THOUSANDTHS),
    "Busbw(GB/s)": ("busbw_GBps", THOUSANDTHS),
    "Late Starts": ("late_starts", COUNT_OR_NONE),
    "Completion(us)": ("completion_p50_us", THOUSANDTHS),
    "Median(us)": ("sample_p50_us", THOUSANDTHS),
    "95% from(us)": ("median_low_us", THOUSANDTHS),
    "95% to(us)": ("median_high_us", THOUSANDTHS),
    "Mean(us)": ("sample_mean_us", THOUSANDTHS),
    "Std Dev(us)": ("sample_stddev_us", THOUSANDTHS),
    "Min(us)": ("sample_min_us", THOUSANDTHS),
    "Max(us)": ("sample_max_us", THOUSANDTHS),
    "Slowest Mean(us)": ("slowest_mean_us", THOUSANDTHS),
    "Slowest P50(us)": ("slowest_p50_us", THOUSANDTHS),
}
"""Each heading's column of `Row`, and what its cells look like: native OMB's have two decimals."""

TAIL = re.compile(r"P(\d+(?:\.\d+)?) Tail (?:Lat\(us\)|BW\(MB/s\))")
HEADING = re.compile(
    "|".join([TAIL.pattern, *map(re.escape, sorted(HEADINGS, key=len, reverse=True))])
)
HEADER = re.compile(r"(?:# (?:Size(?: \(B\)| \[B\])?\s+)?| *(?=Overall))(?=\S)(?P<names>.*\S)\s*$")

TAILS_AS_SAMPLES = {"50": "sample_p50_us", "90": "sample_p90_us", "95": "sample_p95_us"} | {
    "99": "sample_p99_us"
}
"""Percentiles of latencies that have columns of their own."""

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

START_PART = re.compile(
    r"(?P<part>\S+) +(\d{1,12}\.\d\d) +(\d{1,12}\.\d\d) +(\d{1,12}\.\d\d)"
    r" +(\d{1,9}|-) +(\d{1,9}\.\d|-) +(\d{1,9}|-)"
)
"""A part of the start: milliseconds, then files; minimum, mean and maximum of each."""

START_WIDTHS = (14, 12, 12, 12, 12, 9, 9)

FAILURE_PART = re.compile(
    r"(?P<part>\S+(?: \S+)?) +(\d{1,9}) +(\d{1,9})"
    r" +(\d{1,12}\.\d\d) +(\d{1,12}\.\d\d) +(\d{1,12}\.\d\d) +(\d{1,9})"
)
"""A part of a failure: ranks, those that failed, minimum, mean and maximum, iterations."""

FAILURE_WIDTHS = (24, 8, 8, 14, 14, 14, 12)

MILLISECONDS = r"(\d{1,12}(?:\.\d\d)?) ms"
INIT = re.compile(
    rf"nprocs: (\d{{1,9}}), min: {MILLISECONDS}, max: {MILLISECONDS}, avg: {MILLISECONDS}"
)
HELLO = re.compile(r"This is a test with (\d{1,9}) processes")
ENDS = re.compile(r"# Send Buffer on \w+ \((\w)\) and Receive Buffer on \w+ \((\w)\)")
DETAILS = (
    (re.compile(r"# Datatype: (MPI_\w+)\."), "mpi_type"),
    (re.compile(r"# Window creation: MPI_Win_(\w+)"), "window_kind"),
    (re.compile(r"# Synchronization: MPI_Win_([\w/]+)"), "window_sync"),
    (re.compile(r"# Sync: (MPI_File_sync|none)\b"), "file_sync"),
    (re.compile(r"# Partitions: (\d{1,9})\b"), "partitions"),
    (re.compile(r"# Number of (?:Sender threads|forked processes in sender): (\d+)"), "senders"),
    (re.compile(r"# Number of (?:Receiver threads|forked processes in receiver): (\d+)"), "takers"),
    (re.compile(r"# \[ pairs: (\d{1,9}) \]"), "pairs"),
)
WINDOW_SIZE = re.compile(r"\[ window size: (\d{1,9}) \]")
SYNCHRONIZATIONS = {"lock/unlock": "lock", "lock_all/unlock_all": "lock_all"} | {
    "post/start/complete/wait": "pscw"
}
NUMBERS = ("partitions", "pairs")
OLD_SYNCHRONIZATIONS = {" passive": "lock", " with flush": "flush"}
"""Words of the one-sided titles of versions 3 to 4.2."""

DEMO_TITLES = {"latency": "latency", "bandwidth": "bw", "multi latency": "multi_lat"}
"""Those of mpi4py's demo programs that measure as ours do."""

SIZE_WIDTH, VARIED_SIZE_WIDTH, VARIED_WIDTH = 10, 7, 10
"""Of the message size's column, in tables over windows too, and of these tables' other columns."""

ODD_TITLES = {
    "neighborhood all-to-allv latency": "neighbor_alltoallv",
    "non-blocking all-to-allv personalized exchange latency": "ialltoallv",
    "non-blocking all-to-allw personalized exchange latency": "ialltoallw",
    "_put multiple bandwidth / message rate": "put_mr",
}
"""Titles of native OMB that are not the ones that we print, with the benchmark they are of."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its column of `Row`, or its percentile; what its cells look like."""

    name: str
    cells: str
    percentile: str | None = None


@lru_cache(256)
def columns_of(header: str) -> tuple[Column, ...] | None:
    """The columns that a header names; None when it has a word that is not known."""
    match = HEADER.match(header)
    if match is None:
        return None
    text = match["names"]
    found: list[Column] = []
    place = 0
    for heading in HEADING.finditer(text):
        if text[place : heading.start()].strip():
            return None
        place = heading.end()
        tail = TAIL.fullmatch(heading[0])
        if tail:
            found.append(Column("percentiles", HUNDREDTHS, tail[1]))
        else:
            found.append(Column(*HEADINGS[heading[0]]))
    names = [column.name for column in found if column.percentile is None]
    if names.count("iterations") == 2:  # of -f and of --stats, which was printed twice once
        names.remove("iterations")
    return tuple(found) if not text[place:].strip() and len(set(names)) == len(names) else None


@lru_cache(256)
def cells_of(columns: tuple[Column, ...]) -> re.Pattern[str]:
    """What the cells below some columns look like, with a blank between them."""
    return re.compile(" ".join(f"(?:{column.cells})" for column in columns))


@lru_cache(256)
def widths_of(header: str) -> tuple[int, ...] | None:
    """How many characters wide the columns below a header are, a message size's being the first.

    None where somebody has pressed the blanks together.
    """
    match = HEADER.match(header)
    if match is None or "  " not in header.strip():
        return None
    begin = match.start("names")
    ends = [begin + heading.end() for heading in HEADING.finditer(match["names"])]
    first = SIZE_WIDTH if is_sized(header) else 0
    return (first, *(end - before for before, end in pairwise([first, *ends])))


def laid_out(cells: list[str], widths: tuple[int, ...]) -> str:
    """Cells as a line of a table with such columns; one that is too wide pushes those after it."""
    size = cells[0].ljust(widths[0]) if widths[0] else ""
    rest = cells[1:] if widths[0] else cells
    return size + "".join(c.rjust(width) for c, width in zip(rest, widths[1:], strict=False))


def is_sized(header: str) -> bool:
    """Whether the table's first column is the message size."""
    return header.startswith("# Size")


@cache
def benchmarks_by_title() -> dict[str, tuple[str, ...]]:
    """The benchmarks that a title in small letters may mean; native OMB gives some to several."""
    found: dict[str, tuple[str, ...]] = {}
    for benchmark in all_benchmarks():
        title = benchmark.title.lower()
        found[title] = (*found.get(title, ()), benchmark.name)
    return found | {title: (name,) for title, name in ODD_TITLES.items()}


@cache
def of_failures() -> frozenset[str]:
    """Benchmarks of jobs whose ranks fail."""
    return frozenset(item.name for item in all_benchmarks() if item.recovery is not None)


@cache
def pairs_only() -> frozenset[str]:
    """Benchmarks that run on two ranks and no other number."""
    return frozenset(item.name for item in all_benchmarks() if item.ranks is Ranks.TWO)


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


def fits(title: str, columns: tuple[Column, ...]) -> bool:
    """Whether a heading can be that of a benchmark, as far as its title tells what it measures.

    >>> fits("Allreduce Latency", columns_of("# Size      Bandwidth (MB/s)"))
    False
    """
    words, first = title.lower(), columns[0].name
    if first == "bandwidth_MBps":
        return "bandwidth" in words or not re.search("latency|persistent", words)
    if first == "overall_us":
        return not re.search("bandwidth|latency", words) or "non-blocking" in words
    return not re.search("bandwidth|non-blocking", words)


def program_in(text: str) -> str | None:
    """The last ``osu_`` program that a line or a file's name mentions."""
    names = re.findall(r"(?<![A-Za-z0-9])osu_([a-z_]*[a-z])", text)
    return names[-1] if names else None


QUOTING = frozenset("'\"\\")


def options_of_command(line: str) -> dict[str, Any]:
    """Columns of `Row` that a command line with a launcher and an ``osu_`` program tells."""
    text = line.lstrip("$# ")
    try:
        words = shlex.split(text) if QUOTING.intersection(text) else text.split()
    except ValueError:
        return {}
    program = next((i for i, word in enumerate(words) if program_in(word)), None)
    if program is None:
        return {}
    found: dict[str, Any] = {}
    for option, value in options_in(words[:program]):
        if option in ("-n", "-np", "--np", "--ntasks", "-ntasks") and NUMBER.fullmatch(value):
            found["ranks"] = int(value)
    for option, value in options_in(words[program + 1 :]):
        if option in ("-W", "--window-size") and NUMBER.fullmatch(value):
            found["window"] = int(value)
        elif option in ("-l", "--in-place"):
            found["in_place"] = True
        elif option in ("-k", "--root-rank"):
            found["root"] = value.removeprefix("fixed:")
        elif option in ("-D", "--ddt"):
            found["layout"] = value
        elif option in ("-t", "--num-test-calls") and NUMBER.fullmatch(value):
            found["test_calls"] = int(value)
    return found


def options_in(words: list[str]) -> list[tuple[str, str]]:
    """Options with what follows them, be it their value or not: ``-n 2``, ``--ntasks=2``."""
    found = []
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        following = words[place + 1] if place + 1 < len(words) else ""
        if option.startswith("-"):
            found.append((option, value if equals else following))
    return found


def detail_of(line: str, table: dict[str, Any]) -> bool:
    """Whether a comment line tells a column of all rows; it is then kept in ``table``."""
    if not line.startswith("#"):
        return False
    if match := ENDS.match(line):
        table["placement"] = f"{match[1]} {match[2]}"
        return True
    for pattern, name in DETAILS:
        if match := pattern.match(line):
            table[name] = int(match[1]) if name in NUMBERS else match[1]
            if name == "window_sync":
                table[name] = SYNCHRONIZATIONS.get(match[1], match[1])
            if name == "file_sync":
                table[name] = match[1] != "none"
            if name == "pairs":
                if window := WINDOW_SIZE.search(line):
                    table["window"] = int(window[1])
                table.setdefault("ranks", 2 * int(match[1]))
            if "senders" in table and "takers" in table:
                table["threads"] = f"{table.pop('senders')}:{table.pop('takers')}"
            return True
    return False


def options_of_banner(words: str) -> dict[str, Any]:
    """Columns of `Row` that the parenthesis of our own banner tells; what is unknown is a variant.

    >>> options_of_banner("buffer numpy, binding native, own algorithm ring, variant a, b")
    {'variant': 'a, b', 'buffer': 'numpy', 'binding': 'native', 'algorithm': 'ring'}
    """
    found: dict[str, Any] = {}
    words, _, variant = words.partition(", variant ")
    if variant:
        found["variant"] = variant
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


def part_of_line(line: str) -> dict[str, Any] | None:
    """The row of a line of `import_time` whose cells stand below their headings, or None."""
    match = START_PART.fullmatch(line)
    if match is None or line != laid_out(line.split(), START_WIDTHS):
        return None
    minimum, mean, maximum = (1e3 * float(text) for text in match.groups()[1:4])
    found: dict[str, Any] = {"part": match["part"], "latency_us": mean}
    found |= {"latency_min_us": minimum, "latency_max_us": maximum}
    for name, text in zip(("files_min", "files", "files_max"), match.groups()[4:], strict=True):
        if text != "-":
            found[name] = float(text)
    return found


def start_of_line(line: str) -> dict[str, Any] | None:
    """The row of a line of osu_init or osu_hello, or None."""
    if match := HELLO.fullmatch(line):
        return {"ranks": int(match[1])}
    if match := INIT.fullmatch(line):
        minimum, maximum, mean = (float(text) * 1e3 for text in match.groups()[1:])
        names = ("ranks", "latency_us", "latency_min_us", "latency_max_us")
        return dict(zip(names, (int(match[1]), mean, minimum, maximum), strict=True))
    return None


def failure_part_of_line(line: str) -> dict[str, Any] | None:
    """The columns of a part of a failure; None for another line, or one that lost a digit."""
    match = FAILURE_PART.fullmatch(line)
    if match is None or line != laid_out([*match.groups()], FAILURE_WIDTHS):
        return None
    part, ranks, failed, lowest, mean, highest, iterations = match.groups()
    return {
        "part": part,
        "ranks": int(ranks),
        "failed": int(failed),
        "latency_us": float(mean),
        "latency_min_us": float(lowest),
        "latency_max_us": float(highest),
        "iterations": int(iterations),
    }
