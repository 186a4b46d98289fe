"""What the page draws: columns of numbers, as short as they can be said."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.points import MEDIANS, Points
from omb_py.benchmarks import by_family

DIGITS = 5
"""Significant digits of a number: more than any measurement has."""

TITLES = {
    "source": "File",
    "binding": "Binding",
    "buffer": "Buffer",
    "mpi": "MPI library",
    "ranks": "Ranks",
    "part": "Part",
    "suite": "Suite",
    "hosts": "Hosts",
    "placement": "Placement",
    "staged": "Staged through the host",
    "stream_sync": "Stream synchronised",
    "mpi_type": "MPI type",
    "window": "Window",
    "pairs": "Pairs",
    "root": "Root",
    "in_place": "In place",
    "layout": "Layout",
    "topology": "Topology",
    "window_kind": "Window kind",
    "window_sync": "Synchronisation",
    "test_calls": "MPI_Test calls",
    "compute_target": "Computing on",
    "partitions": "Partitions",
    "failed": "Failed ranks",
    "threads": "Threads",
    "nodes": "Nodes",
    "split": "Divided by",
    "group": "Group of ranks",
    "congestor": "Congestor",
    "file_sync": "File synchronised",
    "send_mode": "Send mode",
    "sync": "Kept together by",
    "cold": "Cold caches",
    "validated": "Data checked",
    "library_algorithm": "Algorithm of the library",
    "algorithm": "Own algorithm",
    "segment": "Segment in bytes",
    "variant": "Variant",
    "base": "Compared with",
}
"""The columns that lines may differ in, in the order in which the page offers them."""

METRICS = (
    "value",
    "mean",
    "p99",
    "slowest",
    "overall",
    "overlap",
    "rate",
    "busbw",
    "algbw",
    "ratio",
    "slowdown",
)
"""What may be on the vertical axis."""


def page_data(
    points: Points, statistic: Mapping[str, str], lines: Sequence[str] = ()
) -> dict[str, Any]:
    """Lines and points as columns, each benchmark's lines together, in the order of families.

    ``statistic`` says of each benchmark whether its values are medians; ``lines`` are the columns
    that distinguish the lines of a figure at first, none for all in which they differ.
    """
    names = [str(name) for name in points.series["benchmark"].unique()]
    families = family_of(names)
    rank = {name: place for place, name in enumerate(families)}
    order = np.argsort(points.series["benchmark"].map(rank).to_numpy(), kind="stable")
    series = points.series.iloc[order]
    placed = np.empty(len(order), dtype="int64")
    placed[order] = np.arange(len(order))
    line = placed[points.points["series"].to_numpy()]
    sorting = np.argsort(line, kind="stable")
    frame, line = points.points.iloc[sorting], line[sorting]
    first = np.searchsorted(line, np.arange(len(order) + 1))
    benchmark = series["benchmark"].map(rank).to_numpy()
    bounds = np.searchsorted(benchmark, np.arange(len(families) + 1))
    dimensions = [dimension(series, name) for name in TITLES if series[name].notna().any()]
    return {
        "benchmarks": [
            {
                "name": name,
                "family": family,
                "series": [int(bounds[place]), int(bounds[place + 1])],
                "statistic": statistic.get(name, "median"),
                "metrics": metrics_of(frame.iloc[first[bounds[place]] : first[bounds[place + 1]]]),
            }
            for place, (name, family) in enumerate(families.items())
        ],
        "dimensions": dimensions,
        "lines": list(lines),
        "unit": series["unit"].tolist(),
        "first": first.tolist(),
        "points": columns_of(frame),
        **{name: name_of(frame[name]) for name in ("file", "run")},
    }


def family_of(names: Iterable[str]) -> dict[str, str]:
    """Each benchmark's family; ours in the order of ``omb-py list``, others behind them."""
    present = set(names)
    found = {
        member.name: family
        for family, members in by_family().items()
        for member in members
        if member.name in present
    }
    others = sorted(present - set(found))
    overhead = [name for name in others if name.startswith("overhead ")]
    return (
        found
        | {name: "other" for name in others if name not in overhead}
        | dict.fromkeys(overhead, "what Python adds")
    )


def dimension(series: pd.DataFrame, name: str) -> dict[str, Any]:
    """A column of lines as numbers of its values; -1 where it does not apply."""
    numbers, values = pd.factorize(series[name], sort=True)
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    return {"name": name, "title": TITLES[name], "values": plain, "of": numbers.tolist()}


def metrics_of(frame: pd.DataFrame) -> list[str]:
    """The metrics that any point of a benchmark has; the mean only where it is not the value."""
    there = [name for name in METRICS if name in frame and frame[name].notna().any()]
    if "mean" in there and bool(np.allclose(frame["mean"], frame["value"], equal_nan=True)):
        there.remove("mean")
    return there


def columns_of(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """Columns of points that hold anything. Bounds that are the value itself are left out."""
    numbers = {
        name: frame[name]
        for name in (*MEDIANS, "base_value", "slowdown", "slowdown_low", "slowdown_high")
        if name in frame and frame[name].notna().any()
    }
    found: dict[str, list[Any]] = {
        name: shorten(column.to_numpy("float64")) for name, column in numbers.items()
    }
    for name in ("minimum", "maximum"):
        bound = frame[name].where(frame["runs"] > 1)
        if bound.notna().any():
            found[name] = shorten(bound.to_numpy("float64"))
    sizes = frame["bytes"].astype("Int64")
    found["bytes"] = [None if size is pd.NA else size for size in sizes.tolist()]
    for name in ("runs", "files"):
        found[name] = frame[name].tolist()
    if "verdict" in frame:
        found["verdict"] = [
            str(text) if isinstance(text, str) else None for text in frame["verdict"]
        ]
    return found


def name_of(column: pd.Series) -> dict[str, Any]:
    """A column of names as the names once and their numbers; -1 for none."""
    numbers, names = pd.factorize(column)
    return {"names": [str(name) for name in names], "of": numbers.tolist()}


def shorten(values: np.ndarray) -> list[float | None]:
    """Numbers of `DIGITS` significant digits; None for what is none.

    >>> shorten(np.array([1.23456789, 123456789.0, np.nan, 0.0]))
    [1.2346, 123460000, None, 0]
    """
    known = np.isfinite(values) & (values != 0)
    rounded = np.zeros_like(values)
    exponents = np.zeros(len(values), dtype="int64")
    exponents[known] = np.floor(np.log10(np.abs(values[known])))
    with np.errstate(over="ignore", invalid="ignore"):
        for exponent in np.unique(exponents[known]):
            here = known & (exponents == exponent)
            rounded[here] = np.round(values[here], int(DIGITS - 1 - exponent))
    rounded = np.where(np.isfinite(rounded), rounded, values)  # rounding may overflow at the ends
    lost = ~np.isfinite(values)
    return [
        None if missing else int(value) if value.is_integer() and abs(value) < 1e15 else value
        for value, missing in zip(rounded.tolist(), lost.tolist(), strict=True)
    ]


def in_script(data: object) -> str:
    """JSON that can stand in a ``script`` element whatever texts are in it.

    The element ends at ``</script``, and ``<!--`` changes how it is read; neither can occur, for
    JSON may write ``<`` as an escape.
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
