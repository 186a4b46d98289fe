"""The few numbers at the head of the page that people know a machine by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
import pandas as pd

from omb_py.analysis.points import ENDS, SERIES, distinctions, group_ids, label, points_of
from omb_py.analysis.values import measured
from omb_py.core.text.units import digits, size_text, value_text
from omb_py.core.text.words import count
from omb_py.results.columns import CONFIGURATION, EXPERIMENT

MAX_LINES = 5
"""Lines of one number."""

SMALL, LARGE = 8, 4 << 20

KNOWN = (
    ("Latency", "latency", SMALL),
    ("Bandwidth", "bw", LARGE),
    ("Message rate", "mbw_mr", SMALL),
    ("Allreduce", "allreduce", SMALL),
)
"""Numbers that people know: their name, benchmark and message size in bytes."""

SETUP = ("source", "suite", "mpi", "binding", "buffer")
"""Columns of a setup: the commonest one decides what is the same for lines by named columns."""


@dataclass(frozen=True)
class Line:
    """A line's value in words, how well it is known, and how it compares with the base.

    ``length`` is that of its bar, 100 of the best line.
    """

    name: str
    value: str
    spread: str
    change: str
    length: float


@dataclass(frozen=True)
class KeyNumber:
    """A number that people know a machine by: of ``count`` lines up to `MAX_LINES`, best first."""

    title: str
    lines: tuple[Line, ...]
    count: int


def key_numbers(
    values: pd.DataFrame, columns: Sequence[str] = (), compared: pd.DataFrame | None = None
) -> list[KeyNumber]:
    """The numbers of `KNOWN` that rows have; where they have none, those of other benchmarks.

    ``values`` are rows with their numbers (`value_column`), ``columns`` those that distinguish
    lines, none for all of `CONFIGURATION`, ``compared`` is what `compare` found.
    """
    setups = pd.Series(group_ids(values[name] for name in SETUP), index=values.index)
    every = values.assign(common=setups.map(setups.value_counts()))
    there = every["benchmark"].value_counts().index
    known: list[tuple[str, str, int | None]] = [item for item in KNOWN if item[1] in there]
    known = known or [(str(name), str(name), None) for name in there[: len(KNOWN)]]
    return [
        best_lines(name, size, every[every["benchmark"] == of], columns, compared)
        for name, of, size in known
    ]


def best_lines(
    name: str,
    size: int | None,
    frame: pd.DataFrame,
    columns: Sequence[str],
    compared: pd.DataFrame | None,
) -> KeyNumber:
    """The best lines of one benchmark, at ``size`` or the nearest that they have."""
    if name == "Message rate" and frame["messages_per_s"].notna().all():
        frame = measured(frame, "rate", str(frame["statistic"].iloc[0]))
    unit = str(frame["unit"].iloc[0])
    frame = frame[frame["unit"] == unit]
    lower = unit == "us"
    frame = at_nearest_size(frame, size or (SMALL if lower else LARGE))
    frame = points_of(frame, [*(column for column in SERIES if column in frame), "bytes", "common"])
    frame = comparable(frame, columns)
    frame = frame.sort_values("value", ascending=lower, kind="stable")
    named = distinctions(frame) or ["binding", "buffer", "mpi"]
    ranks = frame["ranks"].dropna().unique()
    title = name
    if not pd.isna(frame["bytes"].iloc[0]):
        title += f" at {size_text(frame['bytes'].iloc[0])}"
    title += f", {count(int(ranks[0]), 'rank')}" if len(ranks) == 1 else ""
    best = frame["value"].iloc[0]
    lines = tuple(
        Line(
            label(point[named], named),
            value_text(point["value"], unit),
            spread(point),
            "" if compared is None else change(point, compared),
            100 * min(best / point["value"], point["value"] / best),
        )
        for _, point in frame.head(MAX_LINES).iterrows()
    )
    return KeyNumber(title, lines, len(frame))


def at_nearest_size(frame: pd.DataFrame, wanted: int) -> pd.DataFrame:
    """The rows of the size nearest to the wanted one, by their ratio; all if none has a size."""
    sizes = pd.to_numeric(frame["bytes"]).astype("float64")
    if sizes.isna().all():
        return frame
    distance = (np.log2(sizes.clip(lower=0.5)) - log2(wanted)).abs()
    return frame[sizes == sizes[distance.idxmin()]]


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


def spread(point: pd.Series) -> str:
    """How well a point's value is known, in words."""
    several = point["runs"] > 1
    low, high = (point[name] for name in (ENDS[2:] if several else ENDS[:2]))
    if pd.isna(low):
        return "one run, no interval known"
    of = f"{point['runs']} runs:" if several else "95 % interval"
    ends = value_text(low, point["unit"]), value_text(high, point["unit"])
    if ends[0] == ends[1]:
        return f"{of} within {max(0.1, 100 * (high / low - 1)):.1f} %"
    return f"{of} {ends[0]} to {ends[1]}"


def change(point: pd.Series, compared: pd.DataFrame) -> str:
    """How a point compares with its base; empty where it has none."""
    beside = compared[compared["slowdown"].notna()]
    for name in (*EXPERIMENT, *CONFIGURATION, "bytes"):
        known = beside[f"other_{name}" if name in CONFIGURATION else name]
        same = known.isna() if pd.isna(point[name]) else known == point[name]
        beside = beside[same.fillna(False).astype(bool)]
    found = beside[["verdict", "slowdown"]].head(1).itertuples(index=False)
    return "".join(f"{word}, slowdown {digits(by)}\u00d7" for word, by in found)
