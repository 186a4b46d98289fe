"""The tables of Intel MPI Benchmarks (IMB), of any of its programs and versions.

A benchmark has our name if one iteration, the clocks and the mean are those of
``docs/definitions.md``. The sources, and the calls that version 2021.11 makes, show what differs:
Sendrecv, Exchange, Barrier's non-blocking form and Biband have no barrier between iterations
(Biband another handshake besides), and the non-blocking collectives without ``_pure`` print the
times of the rank that overlapped worst. They are called ``imb_`` and their own name, as all are of
versions before `SINCE`, whose defaults and sizes were others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from omb_py.results.readers import Reader, Reading, Source, form_of, typed

COUNT, HUNDREDTHS = r"\d{1,12}", r"\d{1,15}\.\d\d"
COLUMNS = {
    "Group": ("group", COUNT),
    "#bytes": ("bytes", COUNT),
    "#repetitions": ("iterations", r"[1-9]\d{0,11}"),
    "t[usec]": ("latency_us", HUNDREDTHS),
    "t_min[usec]": ("latency_min_us", HUNDREDTHS),
    "t_max[usec]": ("latency_max_us", HUNDREDTHS),
    "t_avg[usec]": ("latency_us", HUNDREDTHS),
    "Mbytes/sec": ("megabytes", HUNDREDTHS),
    "Msg/sec": ("messages_per_s", COUNT),
    "t_ovrl[usec]": ("overall_us", HUNDREDTHS),
    "t_pure[usec]": ("latency_us", HUNDREDTHS),
    "t_CPU[usec]": ("compute_us", HUNDREDTHS),
    "overlap[%]": ("overlap_percent", HUNDREDTHS),
    "defects": ("defects", HUNDREDTHS),
}
"""Each heading's column, and what its cells look like."""

REFUSED = re.compile(r"\s*(?:\d+ +)?(\d+) (out-of-mem|time-out|int-overflow)\.")

SINCE = (2019, 6)
FIRST_WINDOW, WINDOW, WINDOW_SINCE = 64, 256, (2021, 2)
"""Messages in flight of Uniband without an option: the number changed with a version."""

BINARY_MEGABYTE = 1.048576
"""Bytes of the megabyte, in decimal ones, in rates of versions before 2018."""

COLLECTIVES = frozenset(
    "allgather allgatherv allreduce alltoall alltoallv bcast gather gatherv reduce reduce_scatter "
    "reduce_scatter_block scatter scatterv".split()
)
ROOTED = frozenset("bcast gather gatherv reduce scatter scatterv".split())
DIVIDED = frozenset("reduce_scatter reduce_scatter_block ireduce_scatter".split())
REDUCED = frozenset(
    "allreduce reduce reduce_local reduce_scatter reduce_scatter_block "
    "accumulate get_accumulate fetch_and_op".split()
)
ONE_SIDED = {
    "unidir_put": ("put_latency", "flush"),
    "unidir_get": ("get_latency", "flush"),
    "put_local": ("put_latency", "flush_local"),
    "get_local": ("get_latency", "flush_local"),
    "accumulate": ("acc_latency", "flush"),
    "get_accumulate": ("get_acc_latency", "flush"),
    "fetch_and_op": ("fop_latency", "flush"),
    "compare_and_swap": ("cas_latency", "flush"),
}
"""One-sided benchmarks, and ours with the synchronisation that ends an iteration of theirs."""

MODES = {*ONE_SIDED, "bidir_put", "bidir_get"}
"""Benchmarks of IMB-RMA and IMB-EXT that say in a line of their own whether they aggregate."""

PREFIXES = {
    **dict.fromkeys(("MPI-2", "MPI-EXT", "EXT"), "ext_"),
    **dict.fromkeys(("MPI-IO", "IO"), "io_"),
    "IMB-P2P": "p2p_",
}
"""Prefixes of benchmarks' names that distinguish those of two parts."""

DATATYPES = {
    "MPI_CHAR": "int8",
    "MPI_INT": "int32",
    "MPI_FLOAT": "float32",
    "MPI_DOUBLE": "float64",
    "MPIX_C_FLOAT16": "float16",
    "MPIX_C_BF16": "bfloat16",
}
PLACES = {"device": "D", "shared": "M", "host": "H", "cpu": "H"}
ON = ("on", "1", "enable", "yes")
BANNER = re.compile(
    r"#\s+(?:Intel ?\(R\)|PALLAS) MPI Benchmarks?(?: Suite)? "
    r"(?P<version>V?\d[\w.]*(?: [Uu]pdate \d+)?), (?P<part>\S+) part(?P<gpu> \(GPU\))?\s*"
)
RULE = re.compile(r"#-{20,}\s*")
NAME = re.compile(r"# Benchmarking (?P<multi>Multi-)?(?P<name>\w+)(?: \([\dx ]+\))?\s*")
ABOVE = re.compile(
    r"# #processes = (?P<ranks>\d{1,6})(?:; rank order .*| \(threads: (?P<threads>\d{1,6})\))?\s*"
    r"|# \( (?P<groups>\d{1,6}) groups of (?P<each>\d{1,6}) processes each running .*"
    r"|#\s+MODE: (?P<mode>(?:NON-)?AGGREGATE)\s*|# window_size = (?P<window>\d{1,9})\s*"
)
"""Lines between the name of a benchmark and its table."""

FACT = re.compile(r"# ([A-Z][\w ]{0,40}?) {0,40}: *(\S.*)")
COMMAND = re.compile(r"# Calling sequence was:\s*")
END_OF_COMMAND = re.compile(
    r"# (?:Minimum message length in bytes:.*|(?P<chosen>Message lengths were user defined)\s*"
    r"|List of Benchmarks to run:.*)"
)
LIBRARY = re.compile(r"MPI startup\(\): Intel\(R\) MPI Library, Version (\d+\.\d+)")
"""Intel MPI's line on itself before the banner when I_MPI_DEBUG is set."""


@dataclass
class ImbRun:
    """The facts in a banner and the lines below it.

    ``command`` is its options, None until all of them were read; ``chosen`` if the user gave a list
    of sizes.
    """

    name: str
    version: str = ""
    part: str = ""
    gpu: bool = False
    mpi: str | None = None
    said: dict[str, str] = field(default_factory=dict)
    command: dict[str, str] | None = None
    chosen: bool = False

    @property
    def suite(self) -> str:
        """Name and version of the suite."""
        return f"IMB {self.version}".rstrip()

    @property
    def release(self) -> tuple[int, int]:
        """A version that can be compared, as in (2019, 6) for ``2019 Update 6``."""
        found = re.match(r"V?(\d+)(?:[.](\d+)| [Uu]pdate (\d+))?", self.version)
        return (int(found[1]), int(found[2] or found[3] or 0)) if found else (0, 0)

    def option(self, name: str, default: str = "") -> str:
        """Return the value of an option of the command line that the text has."""
        return (self.command or {}).get(name, default)

    def is_on(self, name: str, default: str = "") -> bool:
        """Return whether an option is switched on."""
        return self.option(name, default).lower() in ON


def describe(run: ImbRun, name: str, above: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that all rows of a table share: benchmark, ranks, and options.

    ``name`` is IMB's of the benchmark, in lower case; ``above`` what the lines before the table
    state: the ``ranks`` of a group, its ``groups``, ``mode``, ``threads`` and ``window``.
    """
    groups, mode, threads = above.get("groups", 1), above.get("mode"), above.get("threads")
    multi = "multi_" if groups > 1 else ""
    row = {"run": run.name, "suite": run.suite, "mpi": run.mpi, "binding": "C"} | {
        "benchmark": f"imb_{multi}{PREFIXES.get(run.part, '')}{name}",
        "ranks": above["ranks"] * groups,
        "threads": f"{threads}:{threads}" if threads else None,
        "window": above.get("window"),
        **elements(run, name),
    }
    parts = [f"{groups} groups {mode or ''}".strip() if multi else mode]
    known = run.command is not None and run.release >= SINCE
    if known and run.gpu:
        row["placement"] = PLACES.get(run.option("mem_alloc_type", "device"))
    if known and not multi:
        row |= ours(run, name, above["ranks"], mode)
        if "window_sync" in row:
            parts = []  # not aggregate, as all of ours
        chosen = {name: run.option(name, "base") for name in ("off_cache", "contig_type", "map")}
        parts += [f"{name} {value}" for name, value in chosen.items() if value != "base"]
    return row | {"part": ", ".join(filter(None, parts)) or None}


def elements(run: ImbRun, name: str) -> dict[str, Any]:
    """Return the columns of the element type that the run's heading states for a benchmark.

    Empty for MPI_BYTE, which names no element, and for benchmarks without data.
    """
    if "barrier" in name or name == "window":
        return {}
    adds = {name, name.removesuffix("_pure").removeprefix("i")} & REDUCED
    said = run.said.get("MPI_Datatype for reductions" if adds else "MPI_Datatype")
    if name == "compare_and_swap":
        said = "MPI_INT"
    return {"mpi_type": said, "dtype": DATATYPES[said]} if said in DATATYPES else {}


def ours(run: ImbRun, name: str, ranks: int, mode: str | None) -> dict[str, Any]:
    """Return our equivalent of a benchmark: the name, if it measures the same, and its options."""
    found: dict[str, Any] = {}
    bare = name.removesuffix("_pure")
    blocking = {"MPI-1": name, "MPI-NBC": bare[1:] if bare != name else ""}.get(run.part, "")
    if run.part == "MPI-RMA" and name in ONE_SIDED and mode == "non-aggregate":
        # one call and its completion at a time, in a window over memory that was there
        benchmark, sync = ONE_SIDED[name]
        return {"benchmark": benchmark, "window_kind": "create", "window_sync": sync}
    if run.part == "MPI-1" and name in ("pingpong", "pingpongspecificsource", "barrier"):
        return {"benchmark": "barrier" if name == "barrier" else "latency"}
    if run.part == "MPI-1" and name in ("uniband", "biband"):
        size = run.option("window_size")
        window = WINDOW if run.release >= WINDOW_SINCE else FIRST_WINDOW
        found["window"] = int(size) if re.fullmatch(r"\d{1,6}", size) else window
        found["pairs"] = ranks // 2
        return found | ({"benchmark": "bw"} if (name, ranks) == ("uniband", 2) else {})
    if blocking not in COLLECTIVES:
        return {}
    rotates = blocking in ROOTED and run.is_on("root_shift")
    if rotates or blocking in ROOTED - {"bcast"}:
        found["root"] = "rotate" if rotates else "0"
    if run.is_on("sync", "on"):
        found["sync"] = "imb_barrier" if run.is_on("imb_barrier") else "barrier"
        if not (rotates and blocking == "bcast"):  # whose root ours cannot change
            found["benchmark"] = bare
    return found


class ImbReading(Reading):
    """The state of the reader: the run, the lines above the next table, and the table.

    ``shared`` are the columns of all its rows, and sizes are multiplied by ``factor``. ``words``
    are of a command line that goes on.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.run = ImbRun(f"{source.path}:1")
        self.mpi: str | None = None
        self.words: list[str] | None = None
        self.factor, self.any_order = 1, False
        self.shared: dict[str, Any] = {}
        self.name, self.above = "", dict[str, Any]()

    def line(self, line: str, index: int) -> None:
        """Take the next line: a header, a parameter, or a row of the open table."""
        if "startup()" in line and (match := LIBRARY.search(line)):
            self.mpi = f"Intel MPI {match[1]}"
        elif "#repetitions" in line and COLUMNS.keys() >= set(line.split()):
            self.start_table(line, index)
        elif line.lstrip().startswith("#"):
            self.comment(line.strip(), index)
        elif self.form is not None and (match := REFUSED.match(line)):
            text = f"{match[1]} bytes: {match[2]}, not measured"
            self.notes.add(index, text, lost=False)
        elif cells := self.cells(line, index):
            at = (cells.get("group"), int(cells.get("bytes", 0)))
            if self.any_order or self.follows(index, at[1], at[0]):
                self.add(index, self.shared | self.values_of(cells), at)

    def comment(self, line: str, index: int) -> None:
        """Read a line with #: the banner, its continuation, or a line above a table."""
        run = self.run
        if match := BANNER.fullmatch(line):
            self.finish(index)
            name = f"{self.source.path}:{index + 1}"
            self.run = ImbRun(name, match["version"], match["part"], bool(match["gpu"]), self.mpi)
            self.found.runs[name] = self.run.said
            self.mpi = self.words = None
            self.name, self.above = "", {}
            self.begin(index, self.run.suite)
        elif RULE.fullmatch(line):
            self.words = None
            if self.form:
                self.end_table()
        elif match := NAME.fullmatch(line):
            self.end_table()
            self.name, self.above = match["name"], {"multi": bool(match["multi"])}
            if self.begun is not None and self.begun[1] == run.suite:
                self.begun = None
            self.begin(index, f"{match['name']} of {run.suite}")
        elif match := ABOVE.fullmatch(line):
            above = {key: value for key, value in match.groupdict().items() if value}
            self.above |= {k: v.lower() if k == "mode" else int(v) for k, v in above.items()}
        elif self.name:
            pass
        elif COMMAND.fullmatch(line):
            self.words, run.command = [], None
        elif match := END_OF_COMMAND.fullmatch(line):
            run.chosen |= match["chosen"] is not None
            if words := self.words:
                run.said["command"] = " ".join(words)
                followed = zip(words, [*words[1:], ""], strict=True)
                run.command = {w.lstrip("-").lower(): v for w, v in followed if w[:1] == "-"}
            self.words = None
        elif self.words is not None:
            self.words += line[1:].split()
        elif match := FACT.fullmatch(line.rstrip()):
            run.said.setdefault(match[1], match[2])

    def start_table(self, line: str, index: int) -> None:
        """Read a header: rows follow, unless their benchmark is unknown."""
        run, name, above, reason = self.run, self.name, self.above, None
        self.end_table()
        self.name, self.above = "", {}
        above["ranks"] = above.get("each") or above.get("ranks")
        if not name:
            reason = "no benchmark is named above this table"
        elif not above["ranks"] or above["multi"] is not (above.get("groups", 1) > 1):
            reason = f"this table of {name} has no number of processes"
        elif name.lower() in MODES and "mode" not in above:
            reason = f"this table of {name} has no mode, aggregate or not"
        if reason:
            self.notes.add(index, f"{reason}; it is left out")
            return
        headings = line.split()
        self.form = form_of(line, [COLUMNS[heading] for heading in headings])
        self.any_order = run.chosen or name.endswith("MT")
        if not run.part and {"t[usec]", "Msg/sec"} <= {*headings} and "MT" not in name:
            run = replace(run, part="IMB-P2P")  # no other part prints both
        self.shared = describe(run, name.lower(), above)
        # the size of a reduce-scatter is that of one rank's part
        self.factor = above["ranks"] if self.shared["benchmark"] in DIVIDED else 1

    def values_of(self, row: dict[str, str]) -> dict[str, Any]:
        """Return a row's columns in our words and units."""
        values = typed(row)
        group = values.pop("group", None)
        if "bytes" in values:
            values["bytes"] *= self.factor
        if "messages_per_s" in row and "latency_us" not in row:
            binary = (0, 0) < self.run.release < (2018, 0)
            values["bandwidth_MBps"] = float(row["megabytes"]) * (BINARY_MEGABYTE if binary else 1)
        if "defects" in row:
            values["validation"] = "Pass" if float(row["defects"]) == 0 else "Fail"
        if group is not None and "multi" in self.shared["benchmark"]:
            values["part"] = f"{self.shared['part']}, group {group}"
        return values


READER = Reader("Intel MPI Benchmarks", (b"#repetitions", b"MPI Benchmark"), ImbReading.read)
