"""Results of simulations as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits, is_time, size_text, slowdown, value_text
from omb_py.core.text.words import count
from omb_py.results.columns import Row


@dataclass(frozen=True)
class Result:
    """A simulated point of a configuration: its row, and the bottleneck."""

    configuration: str
    row: Row
    regime: str

    @property
    def unit(self) -> str:
        """Unit of the value: us or MB/s."""
        return "us" if self.row.latency_us is not None else "MB/s"

    @property
    def value(self) -> float:
        """The value that the benchmark is about."""
        return float(self.row.latency_us if is_time(self.unit) else self.row.bandwidth_MBps)

    def times_worse(self, best: Result) -> float:
        """Return the factor by which it is slower than another result."""
        return slowdown(self.value / best.value, self.unit)


def sheets(results: Sequence[Result], remarks: Sequence[str]) -> Iterator[Sheet]:
    """Yield values by message size: of each number of ranks, or of each configuration.

    Several configurations have a last table: the best one at each size on each number of ranks.
    """
    configurations = tuple(dict.fromkeys(one.configuration for one in results))
    name = results[0].row.benchmark
    by_place = {(one.row.bytes, one.row.ranks, one.configuration): one for one in results}
    sizes = tuple(dict.fromkeys(one.row.bytes for one in results))
    ranks = tuple(dict.fromkeys(one.row.ranks for one in results))
    columns: tuple[str, ...] = ("size", *(count(number, "rank") for number in ranks))
    lines: list[tuple[str, ...]]
    if len(configurations) == 1:
        (only,) = configurations
        lines = [
            (size_word(size), *(cell(by_place.get((size, number, only))) for number in ranks))
            for size in sizes
        ]
        above = f"{only}" if only else ""
        yield Sheet(f"{name}, simulated", columns, tuple(lines), tuple(remarks), 1, above)
        return
    winners: dict[tuple[int | None, int], str] = {}
    for number in ranks:
        lines = []
        for size in sizes:
            found = {one: by_place.get((size, number, one)) for one in configurations}
            winners[size, number] = best_of(found)
            cells = (compared(found[one], found[configurations[0]]) for one in configurations)
            lines.append((size_word(size), *cells, winners[size, number]))
        title = f"{name} on {count(number, 'rank')}, simulated"
        said: tuple[str, ...] = (f"In brackets: how many times worse than {configurations[0]}.",)
        yield Sheet(title, ("size", *configurations, "best"), tuple(lines), said)
    lines = [(size_word(size), *(winners[size, number] for number in ranks)) for size in sizes]
    said = ("The best, and how many times worse the second best is.", *remarks)
    yield Sheet(f"{name}: the best, simulated", columns, tuple(lines), said)


def size_word(size: int | None) -> str:
    """Write a message size; empty without one."""
    return "" if size is None else size_text(size)


def cell(one: Result | None) -> str:
    """Return a value and its bottleneck."""
    return "-" if one is None else f"{value_text(one.value, one.unit)}, {one.regime}"


def compared(one: Result | None, base: Result | None) -> str:
    """Return a value, and its ratio to that of another configuration."""
    if one is None:
        return "-"
    text = value_text(one.value, one.unit)
    return text if base in (None, one) else f"{text} ({digits(one.times_worse(base))}x)"


def best_of(found: Mapping[str, Result | None]) -> str:
    """Return the best of some configurations, and how far it leads."""
    known = {name: one for name, one in found.items() if one is not None}
    ordered = sorted(known, key=lambda name: known[name].times_worse(next(iter(known.values()))))
    if len(ordered) < 2:
        return ordered[0] if ordered else "-"
    lead = known[ordered[1]].times_worse(known[ordered[0]])
    return f"{ordered[0]} {digits(lead)}x"
