"""The text of a victim and its congestors: times alone and congested, and their quotients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from omb_py.benchmarks import Benchmark
from omb_py.core.datatypes import Datatype
from omb_py.core.options import Options
from omb_py.results.row import Row
from omb_py.results.text import LineWriter

WIDTHS = (14, 14, 10, 10, 10)
HEADS = ("Alone(us)", "Congested(us)", "Impact", "95% from", "95% to")


class CongestionWriter(LineWriter):
    """A line for each message size: medians, then 99th percentiles."""

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
        self._impact: list[float] = []

    def start(self, metadata: dict[str, str]) -> None:
        super().start(metadata)
        self._line(self._groups)

    def section(self, datatype: Datatype | None) -> None:
        if datatype is not None:
            self._line(f"# Datatype: MPI_{datatype.mpi}.")
        self._line(f"{'#':<10}{cells(('Median', '', '', '', '', 'P99'))}")
        self._line(f"{'# Size':<10}{cells((*HEADS, *HEADS))}  Congestor iterations")

    def together(self, rows: Iterable[Row]) -> None:
        alone, congested = rows
        texts: list[str] = []
        for column, factor in (("sample_p50_us", "impact"), ("sample_p99_us", "impact_p99")):
            texts += [f"{getattr(row, column):.2f}" for row in (alone, congested)]
            for name in (factor, f"{factor}_low", f"{factor}_high"):
                value = getattr(congested, name)
                texts.append("-" if value is None else f"{value:.2f}")
        size = "-" if congested.bytes is None else str(congested.bytes)
        self._line(f"{size:<10}{cells(texts)}{congested.congestor_iterations:>22}")

    def row(self, row: Row) -> None:
        raise NotImplementedError


def cells(texts: Iterable[str]) -> str:
    """Cells below their headings."""
    return "".join(text.rjust(width) for text, width in zip(texts, WIDTHS * 2, strict=False))
