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
    places: dict[tuple[int | None, int], dict[str, Result]] = {}
    for one in results:
        places.setdefault((one.row.bytes, one.row.ranks), {})[one.configuration] = one
    configurations = tuple(dict.fromkeys(one.configuration for one in results))
    name, first = results[0].row.benchmark, configurations[0]
    if len(configurations) == 1:
        cells = {place: cell(found[first]) for place, found in places.items()}
        yield over_ranks(f"{name}, simulated", cells, remarks, first)
        return
    sizes = dict.fromkeys(size for size, _ in places)
    for number in dict.fromkeys(ranks for _, ranks in places):
        title = f"{name} on {count(number, 'rank')}, simulated"
        yield over_configurations(
            title, configurations, {size: places.get((size, number), {}) for size in sizes}
        )
    cells = {place: best_of(found) for place, found in places.items()}
    said = ("The best, and how many times worse the second best is.", *remarks)
    yield over_ranks(f"{name}: the best, simulated", cells, said)


def over_ranks(
    title: str,
    cells: Mapping[tuple[int | None, int], str],
    remarks: Sequence[str],
    above: str = "",
) -> Sheet:
    """Return cells by size and number of ranks as a table with a column for each such number."""
    sizes, ranks = (tuple(dict.fromkeys(place)) for place in zip(*cells, strict=True))
    columns = ("size", *(count(number, "rank") for number in ranks))
    lines = (
        (size_word(size), *(cells.get((size, number), "-") for number in ranks)) for size in sizes
    )
    return Sheet(title, columns, tuple(lines), tuple(remarks), 1, above)


def over_configurations(
    title: str, names: Sequence[str], found: Mapping[int | None, Mapping[str, Result]]
) -> Sheet:
    """Return the results of each size as a table with a column for each configuration."""
    lines = (
        (
            size_word(size),
            *(compared(own.get(name), own.get(names[0])) for name in names),
            best_of(own),
        )
        for size, own in found.items()
    )
    said = (f"In brackets: how many times worse than {names[0]}.",)
    return Sheet(title, ("size", *names, "best"), tuple(lines), said)


def size_word(size: int | None) -> str:
    """Write a message size; empty without one."""
    return "" if size is None else size_text(size)


def cell(one: Result) -> str:
    """Return a value and its bottleneck."""
    return f"{value_text(one.value, one.unit)}, {one.regime}"


def compared(one: Result | None, base: Result | None) -> str:
    """Return a value, and its ratio to that of another configuration."""
    if one is None:
        return "-"
    text = value_text(one.value, one.unit)
    return text if base in (None, one) else f"{text} ({digits(one.times_worse(base))}x)"


def best_of(known: Mapping[str, Result]) -> str:
    """Return the best of some configurations, and how far it leads."""
    ordered = sorted(known, key=lambda name: known[name].times_worse(next(iter(known.values()))))
    if len(ordered) < 2:
        return ordered[0] if ordered else "-"
    lead = known[ordered[1]].times_worse(known[ordered[0]])
    return f"{ordered[0]} {digits(lead)}x"
