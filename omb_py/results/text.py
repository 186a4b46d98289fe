"""Native OMB's text output, to the column, so that what reads it reads ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from omb_py.benchmarks import Benchmark, Metric, StartUp
from omb_py.core import VERSION
from omb_py.core.datatypes import Datatype
from omb_py.core.options import VARIED_WINDOWS, Options
from omb_py.results.row import Row, percent_text
from omb_py.results.writer import Writer

PART_WIDTH = 14
PART_NAME_WIDTH = 24
NUMBER_WIDTHS = (12, 12, 12, 12, 9, 9)
"""Of minimum, mean and maximum time, and of minimum, mean and maximum number of files."""


class LineWriter(Writer[Row]):
    """Lines below a banner, each written at once."""

    def __init__(self, stream: TextIO, benchmark: Benchmark, options: Options) -> None:
        self._stream = stream
        self._benchmark = benchmark
        self._options = options

    def start(self, metadata: dict[str, str]) -> None:
        self._line(banner(self._benchmark, self._options, metadata))

    def _line(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


class StartUpWriter(LineWriter):
    """A line for each row."""

    def section(self, datatype: Datatype | None) -> None:
        if self._benchmark.start_up is StartUp.PARTS:
            heads = ("Min(ms)", "Avg(ms)", "Max(ms)", "Min files", "Avg", "Max")
            self._line("# Part".ljust(PART_WIDTH) + align(heads))

    def row(self, row: Row) -> None:
        if self._benchmark.start_up is StartUp.HELLO:
            self._line(f"This is a test with {row.ranks} processes")
            return
        minimum, mean, maximum = times(row)
        if self._benchmark.start_up is StartUp.INIT:
            self._line(f"nprocs: {row.ranks}, min: {minimum} ms, max: {maximum} ms, avg: {mean} ms")
        else:
            cells = (minimum, mean, maximum, *counts(row))
            self._line(f"{row.part:<{PART_WIDTH}}{align(cells)}")


class RecoveryWriter(LineWriter):
    """A line for each part: its ranks, those of them that failed, and times in microseconds."""

    def section(self, datatype: Datatype | None) -> None:
        heads = ("Ranks", "Failed", "Min(us)", "Avg(us)", "Max(us)", "Iterations")
        self._cells("# Part", heads)

    def row(self, row: Row) -> None:
        numbers = (
            f"{value:.2f}" for value in (row.latency_min_us, row.latency_us, row.latency_max_us)
        )
        counted = (str(row.ranks), str(row.failed), *numbers, str(row.iterations))
        self._cells(str(row.part), counted)

    def _cells(self, part: str, cells: tuple[str, ...]) -> None:
        widths = (8, 8, 14, 14, 14, 12)
        text = "".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        self._line(f"{part:<{PART_NAME_WIDTH}}{text}")


def align(cells: tuple[str, ...]) -> str:
    """Cells under their heads."""
    return "".join(cell.rjust(width) for cell, width in zip(cells, NUMBER_WIDTHS, strict=True))


def times(row: Row) -> tuple[str, ...]:
    """Minimum, mean and maximum time of a rank in milliseconds."""
    values = (row.latency_min_us, row.latency_us, row.latency_max_us)
    return tuple("-" if value is None else f"{value / 1e3:.2f}" for value in values)


def counts(row: Row) -> tuple[str, ...]:
    """Minimum, mean and maximum number of files that a rank opened; dashes where not counted."""
    if row.files is None:
        return ("-",) * 3
    return f"{row.files_min}", f"{row.files:.1f}", f"{row.files_max}"


NATIVE_VERSION = "7.4"
"""The release of native OMB whose layout and definitions these are."""

TITLED_AS_BW = ("bw_fan_in", "bw_fan_out")
"""Benchmarks that native OMB gives the title of `bw`."""


class TextWriter(LineWriter):
    """One table for each element type."""

    def start(self, metadata: dict[str, str]) -> None:
        benchmark = self._benchmark
        if benchmark.leading_blank:
            self._line("")
        self._line(banner(benchmark, self._options, metadata))
        for text in benchmark.heading(self._options, int(metadata["ranks"])):
            self._line(text)

    def section(self, datatype: Datatype | None) -> None:
        if datatype is not None:
            self._line(f"# Datatype: MPI_{datatype.mpi}.")
        self._line(header(self._benchmark, self._options))

    def row(self, row: Row) -> None:
        if row.part is not None:
            self._line(part_line(row))
        else:
            self._line(line(row, self._benchmark, self._options))


class VariedWindowWriter(TextWriter):
    """``-V``: a row per message size with a column per window; bandwidth, then message rate."""

    def __init__(self, stream: TextIO, benchmark: Benchmark, options: Options) -> None:
        super().__init__(stream, benchmark, options)
        self._rates: dict[int, list[float]] = {}

    def section(self, datatype: Datatype | None) -> None:
        self._finish_section()
        self._line("\n# Uni-directional Bandwidth (MB/sec)")
        if datatype is not None:
            self._line(f"# Datatype: MPI_{datatype.mpi}.")
        self._windows()

    def row(self, row: Row) -> None:
        assert row.bytes is not None
        assert row.messages_per_s is not None
        first = row.bytes not in self._rates
        rates = self._rates.setdefault(row.bytes, [])
        rates.append(row.messages_per_s)
        cell = f"  {row.bandwidth_MBps:10.2f}"
        self._stream.write(f"{row.bytes:<7d}{cell}" if first else cell)
        self._stream.write("\n" if len(rates) == len(VARIED_WINDOWS) else "")
        self._stream.flush()

    def finish(self) -> None:
        self._finish_section()

    def _finish_section(self) -> None:
        if self._rates and self._options.print_rate:
            self._line("\n# Message Rate Profile")
            self._windows()
            for size, rates in self._rates.items():
                self._line(f"{size:<7d}" + "".join(f"  {rate:10.2f}" for rate in rates))
        self._rates = {}

    def _windows(self) -> None:
        self._line("#      " + "".join(f"  {window:10d}" for window in VARIED_WINDOWS))


def banner(benchmark: Benchmark, options: Options, metadata: Mapping[str, str]) -> str:
    """The line that names the benchmark; a title that native OMB has not is not given its name.

    ``metadata`` has the number of ``ranks`` and, where messages lie on devices, ``accelerator``,
    native OMB's word for them.
    """
    accelerator = metadata.get("accelerator")
    ours = [f"omb-py {VERSION}: buffer {options.buffer}"]
    ours += [f"benchmark {benchmark.name}"] if benchmark.name in TITLED_AS_BW else []
    ours += [f"binding {options.binding}"] if benchmark.planned else []
    ours += [f"ranks {metadata['ranks']}"]
    ours += [" ".join(place.value for place in options.placement)] if options.placement else []
    ours += [f"algorithm {options.library_algorithm}"] if options.library_algorithm else []
    ours += own_words(benchmark, options)
    ours += [f"split {options.split}"] if options.split else []
    ours += ["session"] if options.session else []
    ours += ["staged"] if options.staging else []
    ours += ["with stream sync"] if options.stream_sync else []
    ours += ["cold"] if options.cold else []
    ours += [f"variant {options.variant}"] if options.variant else []  # any text, so it is last
    return f"{title_line(benchmark, accelerator)} ({', '.join(ours)})"


def title_line(benchmark: Benchmark, accelerator: str | None = None) -> str:
    """The line that names the benchmark, with no more than native OMB says."""
    mpi = f"MPI-{accelerator}" if accelerator else "MPI"
    name, version = ("OSU", NATIVE_VERSION) if benchmark.native else ("OMB-Py", VERSION)
    space = "" if benchmark.title.startswith("_") else " "
    return f"# {name} {mpi}{space}{benchmark.title} Test v{version}"


def own_words(benchmark: Benchmark, options: Options) -> list[str]:
    """What a banner says of an algorithm of ours."""
    if options.own_algorithm is None:
        return []
    from omb_py.benchmarks.algorithms import segment_of

    segment = segment_of(benchmark.name, options)
    cut = [] if segment is None else [f"segments of {segment} bytes"]
    return [f"own algorithm {options.own_algorithm}", *cut]


def header(benchmark: Benchmark, options: Options) -> str:
    """The line that names the columns."""
    names = list(values_of(benchmark, options))
    cells = [f"{name:>18}" for name in names]
    if options.full and "overlap" not in benchmark.options:
        cells += [f"{'Min Latency(us)':>18}", f"{'Max Latency(us)':>18}", f"{'Iterations':>12}"]
    if options.bus:
        cells += [f"{'Algbw(GB/s)':>18}", f"{'Busbw(GB/s)':>18}"]
    if options.validate:
        cells.append(f"{'Validation':>18}")
    if options.sync == "clock":
        cells += [f"{'Late Starts':>18}", f"{'Completion(us)':>18}"]
    if options.statistics:
        cells += [f" {name:>17}" for name in statistics_of(benchmark, options)]
    cells += [f" {label:>17}" for label in tail_labels(benchmark, options)]
    if not options.layout.contiguous:
        cells.append(f"{'Transmit Size':>18}")
    if benchmark.sized:
        return "# Size    " + "".join(cells)
    return "# " + "".join(cells).lstrip()


def tail_labels(benchmark: Benchmark, options: Options) -> list[str]:
    """The headings of the percentiles; those of more than 17 characters widen their column."""
    unit = "Lat(us)" if benchmark.metric is Metric.LATENCY else "BW(MB/s)"
    return [f"P{percent_text(percent)} Tail {unit}" for percent in options.percentiles]


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


def part_line(row: Row) -> str:
    """The line of a part: its name and its minimum, mean and maximum time of a rank."""
    minimum, maximum = row.latency_min_us, row.latency_max_us
    return f"# {row.part}: {row.latency_us:.2f} us (of the ranks {minimum:.2f} to {maximum:.2f})"


def statistics_of(benchmark: Benchmark, options: Options) -> dict[str, str]:
    """What ``--stats`` adds: the headings, and the columns of `Row` that they stand for.

    ``-f`` has the iterations already, but where calls overlap with computing.
    """
    found = {
        "Median(us)": "sample_p50_us",
        "95% from(us)": "median_low_us",
        "95% to(us)": "median_high_us",
        "Mean(us)": "sample_mean_us",
        "Std Dev(us)": "sample_stddev_us",
        "Min(us)": "sample_min_us",
        "Max(us)": "sample_max_us",
        "Iterations": "iterations",
    }
    if options.full and "overlap" not in benchmark.options:
        del found["Iterations"]
    if benchmark.collective:
        found |= {"Slowest Mean(us)": "slowest_mean_us", "Slowest P50(us)": "slowest_p50_us"}
    return found


def number(value: float | int | None) -> str:
    """A cell of a statistic: a count, a time to the nanosecond, or a dash for none."""
    if value is None:
        return f"{'-':>18}"
    return f"{value:18d}" if isinstance(value, int) else f"{value:18.3f}"


def line(row: Row, benchmark: Benchmark, options: Options) -> str:
    """The line of one message size."""
    columns = values_of(benchmark, options)
    cells = [f"{getattr(row, column):18.2f}" for column in columns.values()]
    if options.full and "overlap" not in benchmark.options:
        cells += [f"{row.latency_min_us:18.2f}", f"{row.latency_max_us:18.2f}"]
        cells.append(f"{row.iterations:12d}")
    if options.bus:
        cells += [number(row.algbw_GBps), number(row.busbw_GBps)]
    if options.validate:
        cells.append(f"{row.validation or '-':>18}")
    if options.sync == "clock":
        cells += [number(row.late_starts), number(row.completion_p50_us)]
    if options.statistics:
        cells += [number(getattr(row, name)) for name in statistics_of(benchmark, options).values()]
    labels = tail_labels(benchmark, options)
    for label, (_, value) in zip(labels, row.percentiles or (), strict=True):
        cells.append(f"{value:{max(18, len(label) + 1)}.2f}")
    if not options.layout.contiguous:
        cells.append(f"{row.payload_bytes:18d}")
    if benchmark.sized:
        return f"{row.bytes:<10d}" + "".join(cells)
    width = len(f"# {next(iter(columns))}")
    return cells[0].strip().rjust(width) + "".join(cells[1:])
