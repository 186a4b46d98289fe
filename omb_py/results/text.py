"""The text that people read: native OMB's, to the column, so that what reads it reads ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TextIO

from omb_py.benchmarks import Benchmark, Metric, StartUp
from omb_py.core import VERSION
from omb_py.core.datatypes import Datatype
from omb_py.core.options import VARIED_WINDOWS, Options
from omb_py.core.text.words import count
from omb_py.results.columns import OverheadRow, Row, percent_text
from omb_py.results.writer import StreamWriter

NATIVE_VERSION = "7.4"
"""The release of native OMB whose layout and definitions these are."""

TITLED_AS_BW = ("bw_fan_in", "bw_fan_out")
"""Benchmarks that native OMB gives the title of `bw`."""

SLACK = 0.02
"""By which the quotient of two medians may leave the ratio's interval: a tick of the clock."""


BUS = {"Algbw(GB/s)": "algbw_GBps", "Busbw(GB/s)": "busbw_GBps"}
CLOCK = {"Completion(us)": "completion_p50_us"}
STATISTICS = {
    "Median(us)": "sample_p50_us",
    "95% from(us)": "median_low_us",
    "95% to(us)": "median_high_us",
    "Mean(us)": "sample_mean_us",
    "Std Dev(us)": "sample_stddev_us",
    "Min(us)": "sample_min_us",
    "Max(us)": "sample_max_us",
}
SLOWEST = {"Slowest Mean(us)": "slowest_mean_us", "Slowest P50(us)": "slowest_p50_us"}
THOUSANDTHS = BUS | CLOCK | STATISTICS | SLOWEST
"""Headings of columns with three decimals, and the columns of `Row` that they stand for."""

HEADINGS = {
    heading: column
    for column, headings in {
        "latency_us": "Latency (us)|Avg Latency(us)|Pure Comm.(us)",
        "latency_min_us": "Min Latency(us)|Min Comm.(us)",
        "latency_max_us": "Max Latency(us)|Max Comm.(us)",
        "bandwidth_MBps": "Bandwidth (MB/s)|Bi-Bandwidth (MB/s)|MB/s",
        "messages_per_s": "Messages/s",
        "overall_us": "Overall(us)",
        "compute_us": "Compute(us)",
        "start_us": "Coll. Init(us)",
        "test_us": "MPI_Test(us)",
        "wait_us": "MPI_Wait(us)",
        "overlap_percent": "Overlap(%)",
        "iterations": "Iterations",
        "validation": "Validation",
        "payload_bytes": "Transmit Size",
        "late_starts": "Late Starts",
    }.items()
    for heading in headings.split("|")
} | THOUSANDTHS
"""The column of `Row` of each heading, native OMB's of all versions and ours."""


class Cell(NamedTuple):
    """A column of a table: heading, column of a row or percentage, decimals, least width.

    ``decimals`` is None for a text or a whole number; values are divided by ``unit``. A width below
    0 puts the column's texts at its left end.
    """

    heading: str
    column: str | float
    decimals: int | None = 2
    least: int = 18
    unit: float = 1

    def placed(self, text: str) -> str:
        """Return a text in the column, which a heading of more than 17 characters widens."""
        if self.least < 0:
            return text.ljust(-self.least)
        return text.rjust(max(self.least, len(self.heading) + 1))

    def text(self, row: Any) -> str:
        """Return the value of a row; a dash for a missing value."""
        if isinstance(self.column, str):
            value = getattr(row, self.column)
        else:
            value = dict(row.percentiles)[self.column]
        if value is not None and self.decimals is not None:
            value = f"{value / self.unit:.{self.decimals}f}"
        return "-" if value is None else str(value)


PARTS = (
    Cell("Part", "part", None, -14),
    Cell("Min(ms)", "latency_min_us", 2, 12, 1e3),
    Cell("Avg(ms)", "latency_us", 2, 12, 1e3),
    Cell("Max(ms)", "latency_max_us", 2, 12, 1e3),
)
FAILURES = (
    Cell("Part", "part", None, -24),
    Cell("Ranks", "ranks", None, 8),
    Cell("Failed", "failed", None, 8),
    Cell("Min(us)", "latency_min_us", 2, 14),
    Cell("Avg(us)", "latency_us", 2, 14),
    Cell("Max(us)", "latency_max_us", 2, 14),
    Cell("Iterations", "iterations", None, 12),
)
CONGESTION = (
    Cell("Size", "bytes", None, -10),
    Cell("Congestor", "congestor", None, -20),
    Cell("Median(us)", "sample_p50_us", 2, 12),
    Cell("Impact", "impact", 2, 9),
    Cell("95% from", "impact_low", 2, 9),
    Cell("95% to", "impact_high", 2, 9),
    Cell("P99(us)", "sample_p99_us", 2, 14),
    Cell("Impact", "impact_p99", 2, 9),
    Cell("95% from", "impact_p99_low", 2, 9),
    Cell("95% to", "impact_p99_high", 2, 9),
    Cell("Congestor iterations", "congestor_iterations", None, 22),
)
OVERHEAD = (
    Cell("Size", "bytes", None, -10),
    Cell("Binding", "binding", None, -17),
    Cell("Base", "base", None, -17),
    Cell("Median(us)", "median_us", 3, 11),
    Cell("Added(us)", "added_us", 3, 11),
    Cell("95% from", "added_low_us", 3, 11),
    Cell("95% to", "added_high_us", 3, 11),
    Cell("Ratio", "ratio", 2, 9),
    Cell("95% from", "ratio_low", 2, 9),
    Cell("95% to", "ratio_high", 2, 9),
)
"""The columns of tables that are not native OMB's: parts of the start, failures, and so on."""


class TableWriter(StreamWriter):
    """A line for each row, of a table's ``cells``: below a banner, the lines that stand ``above``
    the table, and headings for each element type."""

    def __init__(
        self,
        stream: TextIO,
        benchmark: Benchmark,
        options: Options,
        cells: Sequence[Cell],
        above: Sequence[str] = (),
    ) -> None:
        super().__init__(stream)
        self._benchmark = benchmark
        self._options = options
        self._cells = cells
        self._above = above

    def start(self, metadata: dict[str, str]) -> None:
        for text in (banner(self._benchmark, self._options, metadata), *self._above):
            self._line(text)

    def section(self, datatype: Datatype | None) -> None:
        if datatype is not None:
            elements = f", elements {datatype.narrow}" if datatype.narrow else ""
            self._line(f"# Datatype: {datatype.mpi_type}{elements}.")
        if headings := self.headings():
            self._line(headings)

    def headings(self) -> str:
        """Return the line above the rows of an element type."""
        first, *others = self._cells
        heads = (one.placed(one.heading) for one in others)
        return first.placed(f"# {first.heading}") + "".join(heads)

    def row(self, row: Any) -> None:
        self._line(self.text(row))

    def text(self, row: Any) -> str:
        """Return the line of a row, each cell in its column."""
        return "".join(one.placed(one.text(row)) for one in self._cells)


class StartUpWriter(TableWriter):
    """A line for each row: native OMB's sentence, or the times of a part."""

    def headings(self) -> str:
        return super().headings() if self._benchmark.start_up is StartUp.PARTS else ""

    def text(self, row: Row) -> str:
        low, mean, high = (one.text(row) for one in PARTS[1:4])
        if self._benchmark.start_up is StartUp.HELLO:
            return f"This is a test with {row.ranks} processes"
        if self._benchmark.start_up is StartUp.INIT:
            return f"nprocs: {row.ranks}, min: {low} ms, max: {high} ms, avg: {mean} ms"
        return super().text(row)


class OverheadWriter(TableWriter):
    """`omb-py overhead`: for each size a line for each binding, then one for each named part.

    Its heading begins with the thread level that MPI granted, on which a call's time depends.
    """

    def __init__(
        self,
        stream: TextIO,
        benchmark: Benchmark,
        options: Options,
        thread_level: str,
        above: Sequence[str] = (),
    ) -> None:
        super().__init__(stream, benchmark, options, OVERHEAD, above)
        self._thread_level = thread_level

    def start(self, metadata: dict[str, str]) -> None:
        latency = self._benchmark.metric is Metric.LATENCY
        unit = "of a call" if latency else "of one message of a window"
        self._line(
            f"# OMB-Py Overhead of {self._benchmark.title} v{VERSION} "
            f"(thread level {self._thread_level}, buffer {self._options.buffer}, time {unit})"
        )
        self._line(
            "# Median: over the rounds. Added and Ratio: medians of the differences and ratios "
            "within each round."
        )
        for text in self._above:
            self._line(text)

    def row(self, row: OverheadRow) -> None:
        name = row.split or (f"own algorithm {row.algorithm}" if row.algorithm else "")
        self._line(f"{self.text(row)}  {name}".rstrip())
        quotient = row.median_us / row.base_us
        low, high = row.ratio_low or row.ratio, row.ratio_high or row.ratio
        if row.split is None and not low * (1 - SLACK) <= quotient <= high * (1 + SLACK):
            self._line(
                f"#   {row.binding}: the quotient of the medians is {quotient:.2f}: the speed of "
                "the machine changed between rounds, which the ratio within rounds is free of"
            )

    def finish(self) -> None:
        self._line(
            "# These intervals hold for this launch alone: --launches 8 gives those over launches"
        )


class TextWriter(TableWriter):
    """Native OMB's table, one for each element type."""

    def __init__(
        self, stream: TextIO, benchmark: Benchmark, options: Options, above: Sequence[str] = ()
    ) -> None:
        first, *others = cells_of(benchmark, options)
        if benchmark.sized:
            cells = [Cell("Size", "bytes", None, -10), first, *others]
        else:
            cells = [first._replace(least=len(f"# {first.heading}")), *others]
        super().__init__(stream, benchmark, options, cells, above)

    def start(self, metadata: dict[str, str]) -> None:
        if self._benchmark.leading_blank:
            self._line("")
        super().start(metadata)
        if "part" in metadata:
            self._line(f"# On {metadata['part']}.")
        for text in self._benchmark.heading(self._options, int(metadata["ranks"])):
            self._line(text)

    def text(self, row: Row) -> str:
        if row.part is None:
            return super().text(row)
        low, high = row.latency_min_us, row.latency_max_us
        return f"# {row.part}: {row.latency_us:.2f} us (of the ranks {low:.2f} to {high:.2f})"


class VariedWindowWriter(TextWriter):
    """``-V``: a row per message size with a column per window; bandwidth, then message rate."""

    def __init__(self, stream: TextIO, benchmark: Benchmark, options: Options) -> None:
        super().__init__(stream, benchmark, options)
        self._rates: dict[int, list[float]] = {}

    def section(self, datatype: Datatype | None) -> None:
        self.finish()
        self._line("\n# Uni-directional Bandwidth (MB/sec)")
        super().section(datatype)

    def headings(self) -> str:
        return "#      " + "".join(f"  {window:10d}" for window in VARIED_WINDOWS)

    def row(self, row: Row) -> None:
        first = row.bytes not in self._rates
        rates = self._rates.setdefault(row.bytes, [])
        rates.append(row.messages_per_s)
        cell = f"  {row.bandwidth_MBps:10.2f}"
        self._stream.write(f"{row.bytes:<7d}{cell}" if first else cell)
        self._stream.write("\n" if len(rates) == len(VARIED_WINDOWS) else "")
        self._stream.flush()

    def finish(self) -> None:
        if self._rates and self._options.print_rate:
            self._line("\n# Message Rate Profile")
            super().section(None)
            for size, rates in self._rates.items():
                self._line(f"{size:<7d}" + "".join(f"  {rate:10.2f}" for rate in rates))
        self._rates = {}


class GroupsWriter(TextWriter):
    """The lines of groups of ranks, those of a size together, with the slowest group marked.

    Only groups with the same number of ranks are compared: a collective's time depends on it.
    """

    def __init__(
        self, stream: TextIO, benchmark: Benchmark, options: Options, hosts: Mapping[str, str]
    ) -> None:
        """``hosts`` are those of each group, by its name."""
        above = [f"# Group {name}: {on}" for name, on in hosts.items()]
        super().__init__(stream, benchmark, options, above)
        width = max(map(len, [*hosts, "Group"])) + 4
        self._cells = [*self._cells, Cell("Group", "group", None, width)]
        self._slowest: list[tuple[str, bool]] = []  # of each size, and whether clearly
        self._compared = 0
        self._others: list[str] = []

    def together(self, rows: Iterable[Row]) -> None:
        found = list(rows)
        for row in found:
            if row.part is not None:
                self._line(f"{self.text(row)}, group {row.group}")
        if not (measured := [row for row in found if row.part is None]):
            return
        usual, _ = Counter(row.ranks for row in measured).most_common(1)[0]
        compared = sorted((row for row in measured if row.ranks == usual), key=cost)
        self._compared = len(compared)
        self._others = [row.group for row in measured if row.ranks != usual]
        *faster, last = compared
        for row in measured:
            marked = row is last and faster
            mark = f"  slowest, {cost(row) / cost(faster[0]):.2f} x" if marked else ""
            self._line(self.text(row) + mark)
        if faster:
            ends = max(row.median_high_us or float("inf") for row in faster)
            self._slowest.append((last.group, (last.median_low_us or 0.0) > ends))

    def finish(self) -> None:
        if self._others and not self._slowest:
            self._line("# The groups are not compared: they differ in their number of ranks")
        elif self._others:
            self._line(
                f"# Not compared, for they have another number of ranks: {', '.join(self._others)}"
            )
        if not self._slowest:
            return
        ((name, times),) = Counter(name for name, _ in self._slowest).most_common(1)
        text, clearly = name, self._slowest.count((name, True))
        beyond = "" if clearly else "not "
        if self._benchmark.sized:
            text += f" at {times} of {count(len(self._slowest), 'size')}"
            beyond = f"at {clearly} of them "
        self._line(
            f"# Slowest of {self._compared} groups: {text}, {beyond}beyond the 95 % intervals of "
            "all others"
        )


def cost(row: Row) -> float:
    """Return a number that is higher for a slower group: the time, or the inverse bandwidth."""
    if row.latency_us is not None:
        return float(row.latency_us)
    return 1 / row.bandwidth_MBps if row.bandwidth_MBps else float("inf")


def banner(benchmark: Benchmark, options: Options, metadata: Mapping[str, str]) -> str:
    """Return the line that names the benchmark; a title is native OMB's only if native OMB has it.

    ``metadata`` has the number of ``ranks`` and, if messages lie on devices, ``accelerator``,
    native OMB's word for them.
    """
    ours = [f"omb-py {VERSION}: buffer {options.buffer}"]
    ours += [f"benchmark {benchmark.name}"] if benchmark.name in TITLED_AS_BW else []
    ours += [f"binding {options.binding}"] if benchmark.planned else []
    ours += [f"ranks {metadata['ranks']}"]
    ours += [" ".join(place.value for place in options.placement)] if options.placement else []
    ours += [f"algorithm {options.library_algorithm}"] if options.library_algorithm else []
    ours += [f"own algorithm {options.own_algorithm}"] if options.own_algorithm else []
    ours += [f"segments of {options.own_segment} bytes"] if options.own_segment else []
    ours += [f"target busy {options.target_busy:g} us"] if options.target_busy else []
    ours += [f"offset {options.offset}"] if options.offset else []
    ours += [f"skew {options.skew.text}"] if options.skew is not None else []
    ours += [f"split {options.split}"] if options.split else []
    ours += ["session"] if options.session else []
    ours += ["staged"] if options.staging else []
    ours += ["with stream sync"] if options.stream_sync else []
    ours += ["cold"] if options.cold else []
    ours += [f"variant {options.variant}"] if options.variant else []  # any text, so it is last
    return f"{title_line(benchmark, metadata.get('accelerator'))} ({', '.join(ours)})"


def title_line(benchmark: Benchmark, accelerator: str | None = None) -> str:
    """Return the line that names the benchmark, with native OMB's facts only."""
    mpi = f"MPI-{accelerator}" if accelerator else "MPI"
    name, version = ("OSU", NATIVE_VERSION) if benchmark.native else ("OMB-Py", VERSION)
    space = "" if benchmark.title.startswith("_") else " "
    return f"# {name} {mpi}{space}{benchmark.title} Test v{version}"


def cells_of(benchmark: Benchmark, options: Options) -> list[Cell]:
    """Return the columns of a benchmark's table, without the message size."""

    def columns(headings: Iterable[str], decimals: int | None = 2) -> list[Cell]:
        return [Cell(heading, HEADINGS[heading], decimals) for heading in headings]

    overlap = "overlap" in benchmark.options
    found = columns(values_of(benchmark, options))
    if options.full and not overlap:
        found += columns(["Min Latency(us)", "Max Latency(us)"])
        found += [Cell("Iterations", "iterations", None, 12)]
    if options.bus:
        found += columns(BUS, 3)
    if options.validate:
        found += columns(["Validation"], None)
    if options.sync == "clock":
        found += columns(["Late Starts"], None) + columns(CLOCK, 3)
    if options.statistics:
        found += columns(STATISTICS, 3)
        if overlap or not options.full:
            found += columns(["Iterations"], None)
        found += columns(SLOWEST, 3) if benchmark.collective else []
    unit = "Lat(us)" if benchmark.metric is Metric.LATENCY else "BW(MB/s)"
    found += [Cell(f"P{percent_text(one)} Tail {unit}", one) for one in options.percentiles]
    if not options.layout.contiguous:
        found += columns(["Transmit Size"], None)
    return found


def values_of(benchmark: Benchmark, options: Options) -> list[str]:
    """Return the headings of a benchmark's own values."""
    if "overlap" in benchmark.options:
        calls = ["Coll. Init(us)", "MPI_Test(us)", "MPI_Wait(us)"] if options.full else []
        ends = ["Min Comm.(us)", "Max Comm.(us)"] if options.full else []
        return ["Overall(us)", "Compute(us)", *calls, "Pure Comm.(us)", *ends, "Overlap(%)"]
    if benchmark.metric is Metric.LATENCY:
        return [benchmark.value]
    if benchmark.metric is Metric.BANDWIDTH:
        return ["Bandwidth (MB/s)"]
    return ["MB/s", "Messages/s"] if options.print_rate else ["MB/s"]
