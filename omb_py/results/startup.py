"""Text of the start's benchmarks: native OMB's lines, and our table of parts."""

from __future__ import annotations

from typing import TextIO

from omb_py.benchmarks import Benchmark, StartUp
from omb_py.core.datatypes import Datatype
from omb_py.core.options import Options
from omb_py.results.row import Row
from omb_py.results.text import banner
from omb_py.results.writer import Writer

PART_WIDTH = 14
NUMBER_WIDTHS = (12, 12, 12, 12, 9, 9)
"""Of minimum, mean and maximum time, and of minimum, mean and maximum number of files."""


class StartUpWriter(Writer[Row]):
    """A line for each row."""

    def __init__(self, stream: TextIO, benchmark: Benchmark, options: Options) -> None:
        self._stream = stream
        self._benchmark = benchmark
        self._options = options

    def start(self, metadata: dict[str, str]) -> None:
        self._line(banner(self._benchmark, self._options, metadata))

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

    def _line(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


def align(cells: tuple[str, ...]) -> str:
    """Cells under their heads."""
    return "".join(cell.rjust(width) for cell, width in zip(cells, NUMBER_WIDTHS, strict=True))


def times(row: Row) -> tuple[str, ...]:
    """Least, mean and maximum time of a rank in milliseconds."""
    values = (row.latency_min_us, row.latency_us, row.latency_max_us)
    return tuple("-" if value is None else f"{value / 1e3:.2f}" for value in values)


def counts(row: Row) -> tuple[str, ...]:
    """Least, mean and maximum number of files that a rank opened; dashes where not counted."""
    if row.files is None:
        return ("-",) * 3
    return f"{row.files_min}", f"{row.files:.1f}", f"{row.files_max}"
