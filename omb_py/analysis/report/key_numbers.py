"""The few numbers at the head of the page that people know a machine by."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

import numpy as np
import pandas as pd

from omb_py.analysis.points import SERIES, distinctions, group_ids, label, points_of
from omb_py.analysis.values import ENDS, measured
from omb_py.core.text.units import size_text, value_text
from omb_py.core.text.words import count
from omb_py.results.columns import EXPERIMENT

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


@dataclass(frozen=True)
class Line:
    """A line's value in words, how well it is known, and the length of its bar, 100 of the best."""

    name: str
    value: str
    spread: str
    length: float


@dataclass(frozen=True)
class KeyNumber:
    """A number that people know a machine by: of ``count`` lines up to `MAX_LINES`, best first."""

    title: str
    lines: tuple[Line, ...]
    count: int


def key_numbers(values: pd.DataFrame) -> list[KeyNumber]:
    """Return the numbers of `KNOWN` that rows have; if they have none, those of other
    benchmarks.

    ``values`` are rows with their numbers (`value_column`).
    """
    there = values["benchmark"].value_counts().index
    known: list[tuple[str, str, int | None]] = [item for item in KNOWN if item[1] in there]
    known = known or [(str(name), str(name), None) for name in there[: len(KNOWN)]]
    return [best_lines(name, size, values[values["benchmark"] == of]) for name, of, size in known]


def best_lines(name: str, size: int | None, frame: pd.DataFrame) -> KeyNumber:
    """Return the best lines of one benchmark, at ``size`` or the nearest that they have."""
    if name == "Message rate" and frame["messages_per_s"].notna().all():
        frame = measured(frame, "rate", str(frame["statistic"].iloc[0]))
    unit = str(frame["unit"].iloc[0])
    lower = unit == "us"
    frame = at_nearest_size(frame[frame["unit"] == unit], size or (SMALL if lower else LARGE))
    frame = points_of(frame, [*(column for column in SERIES if column in frame), "bytes"])
    # no others than points of one experiment can be ranked: most lines, then most ranks
    groups = [part for _, part in frame.groupby(group_ids(frame[name] for name in EXPERIMENT))]
    frame = max(groups, key=lambda part: (len(part), part["ranks"].fillna(0).max()))
    frame = frame.sort_values("value", ascending=lower, kind="stable")
    named = distinctions(frame) or ["binding", "buffer", "mpi"]
    title = name
    if not pd.isna(frame["bytes"].iloc[0]):
        title += f" at {size_text(frame['bytes'].iloc[0])}"
    if not pd.isna(frame["ranks"].iloc[0]):
        title += f", {count(int(frame['ranks'].iloc[0]), 'rank')}"
    best = frame["value"].iloc[0]
    lines = tuple(
        Line(
            label(point[named], named),
            value_text(point["value"], unit),
            spread(point),
            100 * min(best / point["value"], point["value"] / best),
        )
        for _, point in frame.head(MAX_LINES).iterrows()
    )
    return KeyNumber(title, lines, len(frame))


def at_nearest_size(frame: pd.DataFrame, wanted: int) -> pd.DataFrame:
    """Return the rows of the size nearest to the wanted one, by their ratio; all if none has a
    size."""
    sizes = pd.to_numeric(frame["bytes"]).astype("float64")
    if sizes.isna().all():
        return frame
    distance = (np.log2(sizes.clip(lower=0.5)) - log2(wanted)).abs()
    return frame[sizes == sizes[distance.idxmin()]]


def spread(point: pd.Series) -> str:
    """Return the spread or the interval of a point's value in words."""
    several = point["runs"] > 1
    low, high = (point[name] for name in (ENDS[2:] if several else ENDS[:2]))
    if pd.isna(low):
        return "one run, no interval known"
    of = f"{point['runs']} runs:" if several else "95 % interval"
    ends = value_text(low, point["unit"]), value_text(high, point["unit"])
    if ends[0] == ends[1]:
        return f"{of} within {max(0.1, 100 * (high / low - 1)):.1f} %"
    return f"{of} {ends[0]} to {ends[1]}"
