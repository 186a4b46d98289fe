"""The text of `omb-py overhead`: for each size the bindings, and the parts that have a name."""

from __future__ import annotations

from typing import TextIO

from omb_py.benchmarks import Benchmark, Metric
from omb_py.core import VERSION
from omb_py.core.datatypes import Datatype
from omb_py.core.options import Options
from omb_py.core.text.words import count
from omb_py.results.row import OverheadRow
from omb_py.results.writer import Writer

HEADINGS = (
    f"# {'Size':<10}{'Binding':<16}{'Median(us)':>12}{'Added(us)':>12}{'95% interval':>21}"
    f"{'Ratio':>10}{'95% interval':>19}"
)

PAIRED = (
    "# Median: over the rounds. Added and Ratio: medians of the differences and ratios within "
    "each round."
)
SLACK = 0.02
"""By which the quotient of two medians may leave the ratio's interval: a tick of the clock."""


class OverheadWriter(Writer[OverheadRow]):
    """A line for each binding, then one for each part."""

    def __init__(self, stream: TextIO, benchmark: Benchmark, options: Options, rounds: int) -> None:
        self._stream = stream
        self._benchmark = benchmark
        self._options = options
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
        self._line(PAIRED)

    def section(self, datatype: Datatype | None) -> None:
        if datatype is not None:
            self._line(f"# Datatype: MPI_{datatype.mpi}.")
        self._line(HEADINGS)

    def row(self, row: OverheadRow) -> None:
        self._thread_level = row.thread_level
        if row.split is not None:
            difference = f"{row.added_us:+.3f} us {interval(row.added_low_us, row.added_high_us)}"
            self._line(
                f"#   {row.split} ({row.binding} - {row.base}): {difference}, "
                f"x {row.ratio:.2f} {interval(row.ratio_low, row.ratio_high, sign='')}"
            )
            return
        size = "-" if row.bytes is None else str(row.bytes)
        text = f"{size:<12}{row.binding:<16}{row.median_us:12.3f}"
        if row.binding != row.base:
            text += (
                f"{row.added_us:+12.3f} {interval(row.added_low_us, row.added_high_us):>20}"
                f"{row.ratio:10.2f} {interval(row.ratio_low, row.ratio_high, sign=''):>18}"
            )
        self._line(text)
        if row.algorithm is not None and row.binding not in self._named:
            self._named.add(row.binding)
            self._line(f"#   {row.binding}: by own algorithm {row.algorithm}")
        if contradicts(row):
            self._line(
                f"#   {row.binding}: the quotient of the medians is "
                f"{row.median_us / row.base_us:.2f}: the speed of the machine changed between "
                "rounds, which the ratio within rounds is free of"
            )

    def finish(self) -> None:
        self._line(
            f"# Thread level {self._thread_level}. What another adds needs jobs of its own: run "
            "this with --thread-level, by turns."
        )

    def _line(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


def contradicts(row: OverheadRow) -> bool:
    """Whether the quotient of both medians is outside the interval of the ratio within rounds."""
    quotient = row.median_us / row.base_us
    low = row.ratio if row.ratio_low is None else row.ratio_low
    high = row.ratio if row.ratio_high is None else row.ratio_high
    return not low * (1 - SLACK) <= quotient <= high * (1 + SLACK)


def interval(low: float | None, high: float | None, sign: str = "+") -> str:
    """An interval in brackets; empty where there were too few rounds for one."""
    return "" if low is None or high is None else f"[{low:{sign}.3f}, {high:{sign}.3f}]"
