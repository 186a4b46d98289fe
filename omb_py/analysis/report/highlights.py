"""The few numbers at the head of the page."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from omb_py.analysis.grouping import distinguishing_columns, group_ids
from omb_py.analysis.values import label
from omb_py.core.text.units import size_text, value_text

MAX_BARS = 5
"""Ways of measuring that one card compares."""

WANTED = (
    ("latency", None),
    ("bw", None),
    ("allreduce", 8),
    ("allreduce", 1 << 20),
    ("put_latency", None),
    ("alltoall", None),
    ("mbw_mr", None),
)
"""What is worth a card: a benchmark at a size, or at its best one."""

MAX_CARDS = 4


@dataclass(frozen=True)
class Bar:
    """One way of measuring: its name, its best value, and its length of 100."""

    name: str
    value: str
    length: int


@dataclass(frozen=True)
class Card:
    """A number to know: what it is, the best value, how that was measured, and all others.

    ``left_out`` counts ways of measuring beyond `MAX_BARS`.
    """

    title: str
    value: str
    how: str
    bars: tuple[Bar, ...]
    left_out: int


def cards(values: pd.DataFrame, most: int = MAX_CARDS) -> list[Card]:
    """Up to ``most`` cards, of benchmarks that people look for first."""
    there = set(values["benchmark"])
    wanted = [*WANTED, *((name, None) for name in values["benchmark"].value_counts().index)]
    found: list[Card] = []
    for benchmark, size in dict.fromkeys(wanted):
        if len(found) == most:
            break
        known = any(card.title.startswith(f"{benchmark},") for card in found)
        if benchmark not in there or (size is None and known):
            continue
        rows = values[values["benchmark"] == benchmark]
        rows = rows if size is None else rows[rows["bytes"] == size]
        if not rows.empty:
            found.append(card(str(benchmark), size, rows))
    return found


def card(benchmark: str, size: int | None, rows: pd.DataFrame) -> Card:
    """The best value of each way of measuring, each the median over its runs."""
    unit = rows["unit"].iloc[0]
    rows = rows[rows["unit"] == unit]
    lower = bool(rows["lower_is_better"].iloc[0])
    names = distinguishing_columns(rows)
    shown = names or ["binding", "buffer", "mpi"]
    ways = group_ids(rows[name] for name in (names or ["benchmark"]))
    sizes = rows["bytes"].fillna(-1).to_numpy()
    by_size = rows["value"].groupby([ways, sizes]).median()
    best = by_size.groupby(level=0).idxmin() if lower else by_size.groupby(level=0).idxmax()
    first = pd.Series(range(len(rows))).groupby(ways).first()
    found = sorted(
        ((float(by_size[key]), int(first[way]), key[1]) for way, key in best.items()),
        key=lambda item: item[0] if lower else -item[0],
    )
    named = [
        (value, label(rows[shown].iloc[index], shown), at) for value, index, at in found[:MAX_BARS]
    ]
    value, how, at = named[0]
    maximum = max(item[0] for item in named)
    if size is not None:
        place = size_text(size)
    elif at >= 0:
        place = f"{'smallest' if lower else 'maximum'} at {size_text(at)}"
    else:
        place = "best"
    return Card(
        title=f"{benchmark}, {place}",
        value=value_text(value, unit),
        how=how,
        bars=tuple(
            Bar(name, value_text(number, unit), max(1, round(100 * number / maximum)))
            for number, name, _ in named
        )
        if len(found) > 1
        else (),
        left_out=max(0, len(found) - MAX_BARS),
    )
