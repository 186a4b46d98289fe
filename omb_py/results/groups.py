"""The text of a benchmark on groups of ranks: each one's line, and which is the slowest.

Only groups with the same number of ranks are compared: a collective's time depends on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TextIO

from omb_py.benchmarks import Benchmark
from omb_py.core.datatypes import Datatype
from omb_py.core.options import Options
from omb_py.core.text.words import count
from omb_py.results.row import Row
from omb_py.results.text import TextWriter, header, line, part_line


class GroupsWriter(TextWriter):
    """The lines of each message size together, the slowest group marked."""

    def __init__(
        self, stream: TextIO, benchmark: Benchmark, options: Options, hosts: Mapping[str, str]
    ) -> None:
        """``hosts`` are those of each group, by its name."""
        super().__init__(stream, benchmark, options)
        self._hosts = hosts
        self._width = max(map(len, [*hosts, "Group"])) + 4
        self._slowest = dict.fromkeys(hosts, 0)
        self._clearly = dict.fromkeys(hosts, 0)
        self._sizes = 0
        self._ranks: dict[str, int] = {}

    def start(self, metadata: dict[str, str]) -> None:
        super().start(metadata)
        for name, hosts in self._hosts.items():
            self._line(f"# Group {name}: {hosts}")

    def section(self, datatype: Datatype | None) -> None:
        if datatype is not None:
            self._line(f"# Datatype: MPI_{datatype.mpi}.")
        self._line(header(self._benchmark, self._options) + "Group".rjust(self._width))

    def together(self, rows: Iterable[Row]) -> None:
        found = list(rows)
        for row in found:
            if row.part is not None:
                self._line(f"{part_line(row)}, group {row.group}")
        measured = [row for row in found if row.part is None]
        if not measured:
            return
        self._ranks = {str(row.group): row.ranks for row in measured}
        usual = self._usual_ranks()
        compared = [row for row in measured if row.ranks == usual]
        last = max(compared, key=cost)
        several = len(compared) > 1
        for row in measured:
            text = line(row, self._benchmark, self._options) + str(row.group).rjust(self._width)
            times = cost(row) / min(map(cost, compared))
            self._line(f"{text}  slowest, {times:.2f} x" if several and row is last else text)
        if several:
            self._sizes += 1
            self._slowest[str(last.group)] += 1
            self._clearly[str(last.group)] += is_clear(last, compared)

    def _usual_ranks(self) -> int:
        """The number of ranks that most groups have."""
        ((ranks, _),) = Counter(self._ranks.values()).most_common(1)
        return ranks

    def finish(self) -> None:
        others = [name for name, ranks in self._ranks.items() if ranks != self._usual_ranks()]
        if others and self._sizes:
            self._line(
                f"# Not compared, for their number of ranks is not {self._usual_ranks()}: "
                f"{', '.join(others)}"
            )
        elif others:
            self._line("# The groups are not compared: they differ in their number of ranks")
        if not self._sizes:
            return
        name = max(self._slowest, key=lambda group: self._slowest[group])
        sized = self._benchmark.sized
        of = f" at {self._slowest[name]} of {count(self._sizes, 'size')}" if sized else ""
        clearly = self._clearly[name]
        beyond = f"at {clearly} of them" if sized else "" if clearly else "not"
        self._line(
            f"# Slowest of {len(self._ranks) - len(others)} groups: {name}{of}, "
            + f"{beyond} beyond the 95 % intervals of all others".lstrip()
        )


def cost(row: Row) -> float:
    """What is higher for a slower group: the time, or the inverse of the bandwidth."""
    if row.latency_us is not None:
        return float(row.latency_us)
    return 1 / row.bandwidth_MBps if row.bandwidth_MBps else float("inf")


def is_clear(last: Row, rows: Iterable[Row]) -> bool:
    """Whether the interval of the slowest median lies above those of all other groups."""
    ends = [row.median_high_us for row in rows if row is not last]
    low = last.median_low_us
    return low is not None and all(end is not None and end < low for end in ends)
