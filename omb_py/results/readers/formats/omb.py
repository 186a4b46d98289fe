"""The words of native OMB's output: headings, titles, command lines; and what they stand for."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from omb_py.benchmarks import Ranks, all_benchmarks

HUNDREDTHS = r"\d{1,15}\.\d\d"
THOUSANDTHS = r"\d{1,15}\.\d\d\d|-"
COUNT = r"\d{1,18}"
NUMBER = re.compile(r"\d{1,9}")

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
    "Algbw(GB/s)": ("algbw_GBps", THOUSANDTHS),
    "Busbw(GB/s)": ("busbw_GBps", THOUSANDTHS),
    "Late Starts": ("late_starts", rf"{COUNT}|-"),
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

TAILS_AS_SAMPLES = {percent: f"sample_p{percent}_us" for percent in ("50", "90", "95", "99")}
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

MEAN = r"(?P<latency_us>\d{1,12}(?:\.\d\d)?)"
LOW = MEAN.replace("latency", "latency_min")
HIGH = MEAN.replace("latency", "latency_max")
PARTS_OF_FAILURES = re.compile(
    r"(?P<part>\S+(?: \S+)?) +(?P<ranks>\d{1,9}) +(?P<failed>\d{1,9})"
    rf" +{LOW} +{MEAN} +{HIGH} +(?P<iterations>\d{{1,9}})"
)
PARTS_OF_START = re.compile(
    rf"(?P<part>\S+) +{LOW} +{MEAN} +{HIGH}"
    r" +(?P<files_min>\d{1,9}|-) +(?P<files>\d{1,9}\.\d|-) +(?P<files_max>\d{1,9}|-)"
)
INIT = re.compile(
    rf"nprocs: (?P<ranks>\d{{1,9}}), min: {LOW} ms, max: {HIGH} ms, avg: {MEAN} ms"
    r"|This is a test with (?P<processes>\d{1,9}) processes"
)
"""What stands for a row where there are no sizes: a failure's, `import_time`'s, osu_init's."""

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
WINDOW_SIZE = re.compile(r"\[ window size: (\d{1,9}) \]")
OLD_SYNCHRONIZATIONS = {" passive": "lock", " with flush": "flush"}
"""Words of the one-sided titles of versions 3 to 4.2."""

DEMO_TITLES = {"latency": "latency", "bandwidth": "bw", "multi latency": "multi_lat"}
"""Those of mpi4py's demo programs that measure as ours do."""

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
    if match is None or HEADING.sub("", match["names"]).strip():
        return None
    found = tuple(
        Column("percentiles", HUNDREDTHS, heading[1])
        if heading[1]
        else Column(*HEADINGS[heading[0]])
        for heading in HEADING.finditer(match["names"])
    )
    names = [column.name for column in found if column.percentile is None]
    if names.count("iterations") == 2:  # of -f and of --stats, which was printed twice once
        names.remove("iterations")
    return found if len(set(names)) == len(names) else None


@lru_cache(256)
def cells_of(columns: tuple[Column, ...]) -> re.Pattern[str]:
    """What the cells below some columns look like, with a blank between them."""
    return re.compile(" ".join(f"(?:{column.cells})" for column in columns))


@cache
def benchmarks_by_title() -> dict[str, tuple[str, ...]]:
    """The benchmarks that a title in small letters may mean; native OMB gives some to several."""
    found: dict[str, tuple[str, ...]] = {}
    for benchmark in all_benchmarks():
        title = benchmark.title.lower()
        found[title] = (*found.get(title, ()), benchmark.name)
    return found | {title: (name,) for title, name in ODD_TITLES.items()}


@cache
def parts_of_lines() -> dict[str, re.Pattern[str]]:
    """Benchmarks whose rows have the names of parts instead of sizes, and what these look like."""
    failures = [item.name for item in all_benchmarks() if item.recovery is not None]
    return dict.fromkeys(failures, PARTS_OF_FAILURES) | {"import_time": PARTS_OF_START}


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


def options_of_command(line: str) -> dict[str, Any]:
    """Columns of `Row` that a command line with a launcher and an ``osu_`` program tells."""
    text = line.lstrip("$# ")
    try:
        words = shlex.split(text) if re.search(r"['\"\\]", text) else text.split()
    except ValueError:
        return {}
    program = next((i for i, word in enumerate(words) if program_in(word)), len(words))
    found: dict[str, Any] = {}
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        value = value if equals else "".join(words[place + 1 : place + 2])
        count = int(value) if NUMBER.fullmatch(value) else None
        if place < program:
            if option in ("-n", "-np", "--np", "--ntasks", "-ntasks") and count is not None:
                found["ranks"] = count
        elif option in ("-W", "--window-size") and count is not None:
            found["window"] = count
        elif option in ("-l", "--in-place"):
            found["in_place"] = True
        elif option in ("-k", "--root-rank"):
            found["root"] = value.removeprefix("fixed:")
        elif option in ("-D", "--ddt"):
            found["layout"] = value
        elif option in ("-t", "--num-test-calls") and count is not None:
            found["test_calls"] = count
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


def part_of_line(benchmark: str, line: str) -> dict[str, Any] | None:
    """The columns of a line without a size, of a failure or of a start; None for another line."""
    pattern = parts_of_lines().get(benchmark, INIT)
    match = pattern.fullmatch(line)
    if match is None:
        return None
    found: dict[str, Any] = {}
    for name, text in match.groupdict().items():
        if name == "part":
            found[name] = text
        elif name in ("ranks", "processes", "failed", "iterations"):
            found |= {} if text is None else {name.replace("processes", "ranks"): int(text)}
        elif text not in (None, "-"):
            milliseconds = name.endswith("_us") and pattern is not PARTS_OF_FAILURES
            found[name] = float(text) * (1e3 if milliseconds else 1)
    return found
