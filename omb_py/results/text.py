"""The text that people read: native OMB's, to the column, so that what reads it reads ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TextIO

from omb_py.benchmarks import Benchmark, Metric, StartUp
from omb_py.core import VERSION
from omb_py.core.datatypes import Datatype
from omb_py.core.options import VARIED_WINDOWS, Options
from omb_py.core.text.words import count
from omb_py.results.row import OverheadRow, Row, percent_text
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


class LineWriter(StreamWriter):
    """Lines below a banner and, for each element type, below headings."""

    def __init__(self, stream: TextIO, benchmark: Benchmark, options: Options) -> None:
        super().__init__(stream)
        self._benchmark = benchmark
        self._options = options

    def start(self, metadata: dict[str, str]) -> None:
        self._line(banner(self._benchmark, self._options, metadata))

    def section(self, datatype: Datatype | None) -> None:
        if datatype is not None:
            self._line(f"# Datatype: MPI_{datatype.mpi}.")
        for text in self._headings():
            self._line(text)

    def _headings(self) -> Iterable[str]:
        """The lines above the rows of an element type."""
        raise NotImplementedError


class StartUpWriter(LineWriter):
    """A line for each row: native OMB's sentence, or times and files of a part."""

    WIDTHS = (12, 12, 12, 12, 9, 9)

    def _headings(self) -> Iterable[str]:
        if self._benchmark.start_up is StartUp.PARTS:
            heads = ("Min(ms)", "Avg(ms)", "Max(ms)", "Min files", "Avg", "Max")
            yield f"{'# Part':<14}{aligned(heads, self.WIDTHS)}"

    def row(self, row: Row) -> None:
        if self._benchmark.start_up is StartUp.HELLO:
            self._line(f"This is a test with {row.ranks} processes")
            return
        values = (row.latency_min_us, row.latency_us, row.latency_max_us)
        low, mean, high = ("-" if value is None else f"{value / 1e3:.2f}" for value in values)
        if self._benchmark.start_up is StartUp.INIT:
            self._line(f"nprocs: {row.ranks}, min: {low} ms, max: {high} ms, avg: {mean} ms")
            return
        files = ["-"] * 3
        if row.files is not None:
            files = [f"{row.files_min}", f"{row.files:.1f}", f"{row.files_max}"]
        self._line(f"{row.part:<14}{aligned([low, mean, high, *files], self.WIDTHS)}")


class RecoveryWriter(LineWriter):
    """A line for each part: its ranks, those of them that failed, and times in microseconds."""

    WIDTHS = (8, 8, 14, 14, 14, 12)

    def _headings(self) -> Iterable[str]:
        heads = ("Ranks", "Failed", "Min(us)", "Avg(us)", "Max(us)", "Iterations")
        yield f"{'# Part':<24}{aligned(heads, self.WIDTHS)}"

    def row(self, row: Row) -> None:
        times = (row.latency_min_us, row.latency_us, row.latency_max_us)
        cells = [row.ranks, row.failed, *(f"{time:.2f}" for time in times), row.iterations]
        self._line(f"{row.part:<24}{aligned(map(str, cells), self.WIDTHS)}")


class TextWriter(LineWriter):
    """One table for each element type."""

    def start(self, metadata: dict[str, str]) -> None:
        if self._benchmark.leading_blank:
            self._line("")
        super().start(metadata)
        for text in self._benchmark.heading(self._options, int(metadata["ranks"])):
            self._line(text)

    def _headings(self) -> Iterable[str]:
        yield header(self._benchmark, self._options)

    def row(self, row: Row) -> None:
        self._line(line(row, self._benchmark, self._options))


class VariedWindowWriter(TextWriter):
    """``-V``: a row per message size with a column per window; bandwidth, then message rate."""

    def __init__(self, stream: TextIO, benchmark: Benchmark, options: Options) -> None:
        super().__init__(stream, benchmark, options)
        self._rates: dict[int, list[float]] = {}

    def section(self, datatype: Datatype | None) -> None:
        self.finish()
        self._line("\n# Uni-directional Bandwidth (MB/sec)")
        super().section(datatype)

    def _headings(self) -> Iterable[str]:
        yield "#      " + "".join(f"  {window:10d}" for window in VARIED_WINDOWS)

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
        super().__init__(stream, benchmark, options)
        self._hosts = hosts
        self._width = max(map(len, [*hosts, "Group"])) + 4
        self._slowest = Counter(dict.fromkeys(hosts, 0))
        self._clearly = Counter(dict.fromkeys(hosts, 0))
        self._ranks: dict[str, int] = {}

    def start(self, metadata: dict[str, str]) -> None:
        super().start(metadata)
        for name, hosts in self._hosts.items():
            self._line(f"# Group {name}: {hosts}")

    def _headings(self) -> Iterable[str]:
        yield header(self._benchmark, self._options) + "Group".rjust(self._width)

    def together(self, rows: Iterable[Row]) -> None:
        measured = []
        for row in rows:
            if row.part is None:
                measured.append(row)
            else:
                self._line(f"{line(row, self._benchmark, self._options)}, group {row.group}")
        if not measured:
            return
        self._ranks = {row.group: row.ranks for row in measured}
        compared = [row for row in measured if row.ranks == self._usual_ranks()]
        last = max(compared, key=cost)
        for row in measured:
            text = line(row, self._benchmark, self._options) + row.group.rjust(self._width)
            if row is last and len(compared) > 1:
                text += f"  slowest, {cost(row) / min(map(cost, compared)):.2f} x"
            self._line(text)
        if len(compared) > 1:
            self._slowest[last.group] += 1
            ends = [row.median_high_us or float("inf") for row in compared if row is not last]
            self._clearly[last.group] += (last.median_low_us or 0.0) > max(ends)

    def _usual_ranks(self) -> int:
        """The number of ranks that most groups have."""
        ((ranks, _),) = Counter(self._ranks.values()).most_common(1)
        return ranks

    def finish(self) -> None:
        others = [name for name, ranks in self._ranks.items() if ranks != self._usual_ranks()]
        if not (sizes := self._slowest.total()):
            if others:
                self._line("# The groups are not compared: they differ in their number of ranks")
            return
        if others:
            reason = f"for their number of ranks is not {self._usual_ranks()}"
            self._line(f"# Not compared, {reason}: {', '.join(others)}")
        ((name, times),) = self._slowest.most_common(1)
        clearly = self._clearly[name]
        text, beyond = name, "" if clearly else "not "
        if self._benchmark.sized:
            text += f" at {times} of {count(sizes, 'size')}"
            beyond = f"at {clearly} of them "
        self._line(
            f"# Slowest of {len(self._ranks) - len(others)} groups: {text}, {beyond}beyond the "
            "95 % intervals of all others"
        )


class CongestionWriter(LineWriter):
    """A victim and its congestors: for each size times alone and congested, and their quotients.

    First medians, then 99th percentiles.
    """

    WIDTHS = (14, 14, 10, 10, 10) * 2
    HEADS = ("Alone(us)", "Congested(us)", "Impact", "95% from", "95% to") * 2

    def __init__(
        self,
        stream: TextIO,
        benchmark: Benchmark,
        options: Options,
        congestor: str,
        victim: str,
        others: Sequence[str],
    ) -> None:
        """``victim`` and ``others`` are the ranks of each group."""
        super().__init__(stream, benchmark, options)
        self._groups = f"# Victim: ranks {victim}; congestor {congestor}: ranks {', '.join(others)}"

    def start(self, metadata: dict[str, str]) -> None:
        super().start(metadata)
        self._line(self._groups)

    def _headings(self) -> Iterable[str]:
        yield f"{'#':<10}{aligned(('Median', '', '', '', '', 'P99'), self.WIDTHS)}"
        yield f"{'# Size':<10}{aligned(self.HEADS, self.WIDTHS)}  Congestor iterations"

    def together(self, rows: Iterable[Row]) -> None:
        alone, congested = rows
        texts: list[str] = []
        for column, factor in (("sample_p50_us", "impact"), ("sample_p99_us", "impact_p99")):
            texts += [f"{getattr(row, column):.2f}" for row in (alone, congested)]
            for name in (factor, f"{factor}_low", f"{factor}_high"):
                value = getattr(congested, name)
                texts.append("-" if value is None else f"{value:.2f}")
        size = "-" if congested.bytes is None else str(congested.bytes)
        cells = f"{aligned(texts, self.WIDTHS)}{congested.congestor_iterations:>22}"
        self._line(f"{size:<10}{cells}")

    def row(self, row: Row) -> None:
        raise NotImplementedError


class OverheadWriter(LineWriter):
    """`omb-py overhead`: for each size a line for each binding, then one for each named part."""

    def __init__(self, stream: TextIO, benchmark: Benchmark, options: Options, rounds: int) -> None:
        super().__init__(stream, benchmark, options)
        self._rounds = rounds
        self._thread_level = options.thread_level
        self._named: set[str] = set()

    def start(self, metadata: dict[str, str]) -> None:
        latency = self._benchmark.metric is Metric.LATENCY
        unit = "of a call" if latency else "of one message of a window"
        self._line(
            f"# OMB-Py Overhead of {self._benchmark.title} v{VERSION} "
            f"(buffer {self._options.buffer}, {count(self._rounds, 'round')}, time {unit})"
        )
        self._line(
            "# Median: over the rounds. Added and Ratio: medians of the differences and ratios "
            "within each round."
        )

    def _headings(self) -> Iterable[str]:
        yield (
            f"# {'Size':<10}{'Binding':<16}{'Median(us)':>12}{'Added(us)':>12}"
            f"{'95% interval':>21}{'Ratio':>10}{'95% interval':>19}"
        )

    def row(self, row: OverheadRow) -> None:
        self._thread_level = row.thread_level
        added = interval(row.added_low_us, row.added_high_us)
        ratio = interval(row.ratio_low, row.ratio_high, sign="")
        if row.split is not None:
            self._line(
                f"#   {row.split} ({row.binding} - {row.base}): {row.added_us:+.3f} us {added}, "
                f"x {row.ratio:.2f} {ratio}"
            )
            return
        size = "-" if row.bytes is None else str(row.bytes)
        text = f"{size:<12}{row.binding:<16}{row.median_us:12.3f}"
        if row.binding != row.base:
            text += f"{row.added_us:+12.3f} {added:>20}{row.ratio:10.2f} {ratio:>18}"
        self._line(text)
        if row.algorithm is not None and row.binding not in self._named:
            self._named.add(row.binding)
            self._line(f"#   {row.binding}: by own algorithm {row.algorithm}")
        quotient = row.median_us / row.base_us
        low, high = row.ratio_low or row.ratio, row.ratio_high or row.ratio
        if not low * (1 - SLACK) <= quotient <= high * (1 + SLACK):
            self._line(
                f"#   {row.binding}: the quotient of the medians is {quotient:.2f}: the speed of "
                "the machine changed between rounds, which the ratio within rounds is free of"
            )

    def finish(self) -> None:
        self._line(
            f"# Thread level {self._thread_level}. What another adds needs jobs of its own: run "
            "this with --thread-level, by turns."
        )


def aligned(cells: Iterable[str], widths: Iterable[int]) -> str:
    """Cells below their headings, each at the right end of its width."""
    return "".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=False))


def interval(low: float | None, high: float | None, sign: str = "+") -> str:
    """An interval in brackets; empty where there were too few rounds for one."""
    return "" if low is None or high is None else f"[{low:{sign}.3f}, {high:{sign}.3f}]"


def cost(row: Row) -> float:
    """What is higher for a slower group: the time, or the inverse of the bandwidth."""
    if row.latency_us is not None:
        return float(row.latency_us)
    return 1 / row.bandwidth_MBps if row.bandwidth_MBps else float("inf")


def banner(benchmark: Benchmark, options: Options, metadata: Mapping[str, str]) -> str:
    """The line that names the benchmark; a title that native OMB has not is not given its name.

    ``metadata`` has the number of ``ranks`` and, where messages lie on devices, ``accelerator``,
    native OMB's word for them.
    """
    ours = [f"omb-py {VERSION}: buffer {options.buffer}"]
    ours += [f"benchmark {benchmark.name}"] if benchmark.name in TITLED_AS_BW else []
    ours += [f"binding {options.binding}"] if benchmark.planned else []
    ours += [f"ranks {metadata['ranks']}"]
    ours += [" ".join(place.value for place in options.placement)] if options.placement else []
    ours += [f"algorithm {options.library_algorithm}"] if options.library_algorithm else []
    if options.own_algorithm is not None:
        from omb_py.benchmarks.algorithms import segment_of

        segment = segment_of(benchmark.name, options)
        ours += [f"own algorithm {options.own_algorithm}"]
        ours += [] if segment is None else [f"segments of {segment} bytes"]
    ours += [f"split {options.split}"] if options.split else []
    ours += ["session"] if options.session else []
    ours += ["staged"] if options.staging else []
    ours += ["with stream sync"] if options.stream_sync else []
    ours += ["cold"] if options.cold else []
    ours += [f"variant {options.variant}"] if options.variant else []  # any text, so it is last
    return f"{title_line(benchmark, metadata.get('accelerator'))} ({', '.join(ours)})"


def title_line(benchmark: Benchmark, accelerator: str | None = None) -> str:
    """The line that names the benchmark, with no more than native OMB says."""
    mpi = f"MPI-{accelerator}" if accelerator else "MPI"
    name, version = ("OSU", NATIVE_VERSION) if benchmark.native else ("OMB-Py", VERSION)
    space = "" if benchmark.title.startswith("_") else " "
    return f"# {name} {mpi}{space}{benchmark.title} Test v{version}"


class Cell(NamedTuple):
    """A column of a table: heading, column of `Row` or percentage, decimals, least width.

    ``decimals`` is None for what is no number, or a whole one.
    """

    heading: str
    column: str | float
    decimals: int | None = 2
    least: int = 18

    @property
    def width(self) -> int:
        """Characters of the column: headings of more than 17 characters widen it."""
        return max(self.least, len(self.heading) + 1)

    def text(self, row: Row) -> str:
        """The cell of a row: a dash where it has no value."""
        if isinstance(self.column, str):
            value = getattr(row, self.column)
        else:
            value = dict(row.percentiles)[self.column]
        if value is not None and self.decimals is not None:
            value = f"{value:.{self.decimals}f}"
        return ("-" if value is None else str(value)).rjust(self.width)


def thousandths(columns: Mapping[str, str]) -> list[Cell]:
    """Columns with three decimals."""
    return [Cell(heading, column, 3) for heading, column in columns.items()]


def cells(benchmark: Benchmark, options: Options) -> list[Cell]:
    """The columns of a benchmark's table, but for the message size."""
    overlap = "overlap" in benchmark.options
    found = [Cell(heading, name) for heading, name in values_of(benchmark, options).items()]
    if options.full and not overlap:
        found += [Cell("Min Latency(us)", "latency_min_us")]
        found += [
            Cell("Max Latency(us)", "latency_max_us"),
            Cell("Iterations", "iterations", None, 12),
        ]
    if options.bus:
        found += thousandths(BUS)
    if options.validate:
        found += [Cell("Validation", "validation", None)]
    if options.sync == "clock":
        found += [Cell("Late Starts", "late_starts", None), *thousandths(CLOCK)]
    if options.statistics:
        found += thousandths(STATISTICS)
        if overlap or not options.full:
            found += [Cell("Iterations", "iterations", None)]
        found += thousandths(SLOWEST) if benchmark.collective else []
    unit = "Lat(us)" if benchmark.metric is Metric.LATENCY else "BW(MB/s)"
    found += [Cell(f"P{percent_text(one)} Tail {unit}", one) for one in options.percentiles]
    if not options.layout.contiguous:
        found += [Cell("Transmit Size", "payload_bytes", None)]
    return found


def values_of(benchmark: Benchmark, options: Options) -> dict[str, str]:
    """A benchmark's own values: their headings, and the columns of `Row` that they stand for."""
    if "overlap" in benchmark.options:
        full = {"Min Comm.(us)": "latency_min_us", "Max Comm.(us)": "latency_max_us"}
        parts = {"Coll. Init(us)": "start_us", "MPI_Test(us)": "test_us", "MPI_Wait(us)": "wait_us"}
        return {
            "Overall(us)": "overall_us",
            "Compute(us)": "compute_us",
            **(parts if options.full else {}),
            "Pure Comm.(us)": "latency_us",
            **(full if options.full else {}),
            "Overlap(%)": "overlap_percent",
        }
    if benchmark.metric is Metric.LATENCY:
        return {benchmark.value: "latency_us"}
    if benchmark.metric is Metric.BANDWIDTH:
        return {"Bandwidth (MB/s)": "bandwidth_MBps"}
    rate = {"Messages/s": "messages_per_s"} if options.print_rate else {}
    return {"MB/s": "bandwidth_MBps"} | rate


def header(benchmark: Benchmark, options: Options) -> str:
    """The line that names the columns."""
    heads = "".join(one.heading.rjust(one.width) for one in cells(benchmark, options))
    return f"# Size    {heads}" if benchmark.sized else f"# {heads.lstrip()}"


def line(row: Row, benchmark: Benchmark, options: Options) -> str:
    """The line of one message size, or of a part, which is a comment."""
    if row.part is not None:
        low, high = row.latency_min_us, row.latency_max_us
        return f"# {row.part}: {row.latency_us:.2f} us (of the ranks {low:.2f} to {high:.2f})"
    first, *others = cells(benchmark, options)
    rest = "".join(one.text(row) for one in others)
    if benchmark.sized:
        return f"{row.bytes:<10d}{first.text(row)}{rest}"
    return f"{first.text(row).strip().rjust(len(f'# {first.heading}'))}{rest}"
