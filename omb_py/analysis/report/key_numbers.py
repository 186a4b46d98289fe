"""The few numbers at the head of the page that people know a machine by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
import pandas as pd

from omb_py.analysis.points import ENDS, SERIES, distinctions, group_ids, label, points_of
from omb_py.analysis.report.comparison import VERDICTS, column
from omb_py.core.text.units import digits, size_text, value_text
from omb_py.core.text.words import count
from omb_py.results.columns import CONFIGURATION, EXPERIMENT

MAX_LINES = 5
"""Lines that one card compares."""

SMALL, LARGE = 8, 4 << 20

KNOWN = (
    ("Latency", "latency", SMALL),
    ("Bandwidth", "bw", LARGE),
    ("Message rate", "mbw_mr", SMALL),
    ("Allreduce", "allreduce", SMALL),
)
"""Numbers that people know: their name, benchmark and message size in bytes."""

MAX_CARDS = len(KNOWN)

SETUP = ("source", "suite", "mpi", "binding", "buffer")
"""Columns of a setup: the commonest one decides what is the same for lines by named columns."""


@dataclass(frozen=True)
class Line:
    """One line's value as text; ``length`` of 100 is that of the best line."""

    name: str
    value: str
    length: int


@dataclass(frozen=True)
class KeyNumber:
    """The best line's value at one message size.

    ``title`` says what, at which size and on how many ranks, ``nearest`` that the usual size was
    not measured, ``how`` which line it is, ``spread`` how well the value is known, ``place`` that
    it is the best of how many lines, ``change`` how it compares with the base.
    ``lines`` has up to `MAX_LINES` of them, the best first, and is empty where there is only one;
    ``left_out`` counts the others.
    """

    title: str
    nearest: str
    value: str
    how: str
    spread: str
    place: str
    change: str
    lines: tuple[Line, ...]
    left_out: int


def key_numbers(
    values: pd.DataFrame, lines: Sequence[str] = (), compared: pd.DataFrame | None = None
) -> list[KeyNumber]:
    """The numbers of `KNOWN` that rows have; where they have none, those of other benchmarks.

    ``values`` are rows with their numbers (`value_column`), ``lines`` the columns that distinguish
    the lines beside each, none for all of `CONFIGURATION`, ``compared`` is what `compare` found.
    Each number is that of its best line.
    """
    if values.empty:
        return []
    setups = pd.Series(group_ids(values[name] for name in SETUP), index=values.index)
    every = values.assign(common=setups.map(setups.value_counts()))
    there = every["benchmark"].value_counts().index
    known: list[tuple[str, str, int | None]] = [item for item in KNOWN if item[1] in there]
    known = known or [(str(name), str(name), None) for name in there[:MAX_CARDS]]
    return [
        key_number(name, size, every[every["benchmark"] == of], lines, compared)
        for name, of, size in known
    ]


def key_number(
    name: str,
    size: int | None,
    frame: pd.DataFrame,
    columns: Sequence[str],
    compared: pd.DataFrame | None,
) -> KeyNumber:
    """A card about rows of one benchmark, at ``size`` or the nearest size that they have."""
    is_rate = name == "Message rate" and bool(frame["messages_per_s"].notna().all())
    frame = as_rates(frame) if is_rate else frame[frame["unit"] == frame["unit"].iloc[0]]
    unit = frame["unit"].iloc[0]
    lower = unit == "us"
    wanted = size or (SMALL if lower else LARGE)
    frame, nearest = at_nearest_size(frame, wanted)
    frame = points_of(frame, [*(column for column in SERIES if column in frame), "bytes", "common"])
    frame = comparable(frame, columns)
    frame = frame.sort_values("value", ascending=lower, kind="stable").reset_index(drop=True)
    names = distinctions(frame)
    named = names or ["binding", "buffer", "mpi"]
    labels = [label(frame[named].iloc[place], named) for place in range(len(frame))]
    row = frame.iloc[0]
    values = [float(value) for value in frame["value"].iloc[:MAX_LINES]]
    best = values[0]
    at = "" if pd.isna(row["bytes"]) else f" at {size_text(row['bytes'])}"
    ranks = frame["ranks"].unique()
    on = f", {count(int(ranks[0]), 'rank')}" if len(ranks) == 1 and not pd.isna(ranks[0]) else ""
    return KeyNumber(
        title=f"{name}{at}{on}",
        nearest=f"{size_text(wanted)} was not measured" if nearest and at else "",
        value=value_text(row["value"], unit),
        how=labels[0],
        spread=spread(row),
        place="" if len(frame) == 1 else f"best of {len(frame)} lines",
        change=change(row, compared),
        lines=tuple(
            Line(
                name, value_text(value, unit), max(1, round(100 * min(best / value, value / best)))
            )
            for name, value in zip(labels[: len(values)], values, strict=True)
        )
        * (len(frame) > 1),
        left_out=len(frame) - len(values),
    )


def as_rates(frame: pd.DataFrame) -> pd.DataFrame:
    """Bandwidths as messages per second, with their intervals."""
    scale = (frame["messages_per_s"] / frame["bandwidth_MBps"]).where(frame["unit"] == "MB/s", 1.0)
    return frame.assign(unit="msg/s", **frame[["value", *ENDS]].mul(scale, axis=0))


def at_nearest_size(frame: pd.DataFrame, wanted: int) -> tuple[pd.DataFrame, bool]:
    """The points of the size nearest to the wanted one, by their ratio; whether it is another."""
    sizes = pd.to_numeric(frame["bytes"]).astype("float64")
    if sizes.isna().all():
        return frame, False
    distance = (np.log2(sizes.clip(lower=0.5)) - log2(wanted)).abs()
    nearest = sizes[distance.idxmin()]
    return frame[sizes == nearest], nearest != wanted


def comparable(frame: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Points of one experiment, for no others can be ranked: most lines, then most ranks.

    Where ``columns`` are given these alone differ, and the rest is as in the commonest setup.
    """
    own = [name for name in EXPERIMENT if name not in columns]
    groups = [part for _, part in frame.groupby(group_ids(frame[name] for name in own))]
    frame = max(groups, key=lambda part: (len(part), part["ranks"].fillna(0).max()))
    if not columns:
        return frame
    others = [name for name in CONFIGURATION if name not in columns]
    group = pd.Series(group_ids(frame[name] for name in others), index=frame.index)
    return frame[group == group[frame["common"].idxmax()]]


def spread(row: pd.Series) -> str:
    """How well a point's value is known, in words."""

    several = row["runs"] > 1
    low, high = (row[name] for name in (ENDS[2:] if several else ENDS[:2]))
    if pd.isna(low):
        return "one run, no interval known"
    of = f"{row['runs']} runs:" if several else "95 % interval"
    return f"{of} {span_text(low, high, row['unit'])}"


def span_text(low: float, high: float, unit: str) -> str:
    """From one value to another; how far apart they are where both look alike.

    >>> span_text(1.7, 1.85, "us"), span_text(900, 1100, "us"), span_text(1.381, 1.384, "us")
    ('1.70 to 1.85 µs', '900 µs to 1.10 ms', 'within 0.2 %')
    """
    first, last = value_text(low, unit), value_text(high, unit)
    if first == last:
        return f"within {max(0.1, 100 * (high / low - 1)):.1f} %"
    number, name = first.split(" ", 1)
    return f"{number if last.endswith(f' {name}') else first} to {last}"


def change(row: pd.Series, compared: pd.DataFrame | None) -> str:
    """How a point compares with its base; empty where it has none."""
    if compared is None:
        return ""
    beside = compared[compared["verdict"].isin(VERDICTS)]
    for name in (*EXPERIMENT, *CONFIGURATION, "unit", "bytes"):
        known = beside[column(name)]
        same = known.isna() if pd.isna(row[name]) else known == row[name]
        beside = beside[same.fillna(False).astype(bool)]
    found = beside[["verdict", "slowdown"]].head(1).itertuples(index=False)
    return "".join(f"{word}, slowdown {digits(by)}\u00d7 against the base" for word, by in found)
