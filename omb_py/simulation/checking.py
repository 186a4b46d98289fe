"""Simulations compared with measurements: the errors of a network's file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import pandas as pd

from omb_py.analysis.values import value_column
from omb_py.benchmarks import find_benchmark
from omb_py.core.errors import UsageError
from omb_py.core.options import Options
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import size_text, slowdown, value_text
from omb_py.core.text.words import first_of
from omb_py.measure.measurement import knows_nodes
from omb_py.results.metadata import Runs, placed_ranks
from omb_py.simulation.engine import SimulatedOutcome
from omb_py.simulation.network import Checked, Network
from omb_py.simulation.points import SimulatedPoint
from omb_py.simulation.report import Result

SIMULATED = "simulated"
"""The binding of rows that no machine was measured for."""


@dataclass(frozen=True)
class MeasuredPoint:
    """A measured value of a point, and the node of each rank."""

    point: SimulatedPoint
    nodes: tuple[int, ...]
    value: float
    unit: str


def points(rows: pd.DataFrame, runs: Runs) -> tuple[list[MeasuredPoint], list[str]]:
    """Return the points of measured rows that can be simulated, and why others cannot.

    Of repeated runs the median counts. Equal points are equal `SimulatedPoint` on equal nodes, not
    rows with equal columns (`analysis.points.points_of`).
    """
    whole = value_column(rows[rows["part"].isna() & (rows["binding"] != SIMULATED)])
    found: dict[tuple[SimulatedPoint, tuple[int, ...], str], list[float]] = {}
    reasons: list[str] = []
    for row in whole.to_dict("records"):
        try:
            nodes = placed_ranks(runs.get(row["run"], {}), int(row["ranks"]))
            point = point_of(row, nodes)
            if (refusal := point.refusal) is not None:
                raise UsageError(refusal)
        except UsageError as error:
            reasons.append(str(error))
            continue
        found.setdefault((point, nodes, row["unit"]), []).append(row["value"])
    measured = [
        MeasuredPoint(point, nodes, float(median(values)), unit)
        for (point, nodes, unit), values in found.items()
    ]
    return measured, list(dict.fromkeys(reasons))


def point_of(row: Mapping[str, Any], nodes: tuple[int, ...]) -> SimulatedPoint:
    """Return the point of a row; ``nodes`` has the node of each rank.

    Raises `UsageError` if the messages of the row are unknown.
    """
    name = str(row["benchmark"])
    theirs, own = (text(row[column]) for column in ("library_algorithm", "algorithm"))
    window = row["window"]
    options = Options(
        binding=SIMULATED,
        library_algorithm=None if theirs == "default" else theirs,
        algorithm=own,
        segment=None if pd.isna(row["segment"]) else int(row["segment"]),
        window=64 if pd.isna(window) else int(window),
        types=(text(row["mpi_type"]) or "mpi_char",),
    )
    if knows_nodes(find_benchmark(name), options):
        options = replace(options, node_map=nodes)
    size = 0 if pd.isna(row["bytes"]) else int(row["bytes"])
    mpi = re.match(r"[A-Za-z ]+", text(row["mpi"]) or "MPICH")
    assert mpi is not None
    library = "NCCL" if row["binding"] in ("nccl", "torch") else mpi[0].strip()
    point = SimulatedPoint(name, options, library, int(row["ranks"]), size)
    if point.benchmark.collective and not (options.library_algorithm or options.own_algorithm):
        raise UsageError(
            f"{name} by an algorithm of the library's own choice: measure with --coll-algorithm or "
            "--p2p-algorithm"
        )
    return point


def text(value: Any) -> str | None:
    """Return a cell as text; None for an empty one."""
    return None if pd.isna(value) else str(value)


def compared(
    measured: Sequence[MeasuredPoint], outcomes: Sequence[SimulatedOutcome]
) -> pd.DataFrame:
    """Return measured values next to simulated ones, in ``unit``: a row for each point.

    ``error`` is that of the simulation, positive if it is slower than measured: 0.1 for 10 %.
    """
    rows = []
    for one, outcome in zip(measured, outcomes, strict=True):
        point = one.point
        simulated = Result(point.title, point.row(outcome, ""), outcome.regime).value
        rows.append(
            {
                "benchmark": point.name,
                "algorithm": point.algorithm,
                "ranks": point.ranks,
                "bytes": point.size if point.benchmark.sized else None,
                "regime": outcome.regime,
                "unit": one.unit,
                "measured": one.value,
                "simulated": simulated,
                "error": slowdown(simulated / one.value, one.unit) - 1,
            }
        )
    return pd.DataFrame(rows)


def summaries(found: pd.DataFrame) -> Iterator[Checked]:
    """Yield the errors of each benchmark and regime, of rows of `compared`."""
    for (benchmark, regime), rows in found.groupby(["benchmark", "regime"]):
        errors, ranks = rows["error"].abs(), rows["ranks"]
        ends = int(ranks.min()), int(ranks.max())
        worst = float(errors.median()), float(errors.max())
        yield Checked(benchmark, regime, *ends, len(rows), *worst)


def sheets(found: pd.DataFrame, checked: Sequence[Checked]) -> Iterator[Sheet]:
    """Yield the table of every point, and that of the errors of each regime."""
    lines = tuple(
        (
            f"{row['benchmark']} {row['algorithm']}".rstrip(),
            str(row["ranks"]),
            "" if pd.isna(row["bytes"]) else size_text(row["bytes"]),
            row["regime"],
            value_text(row["measured"], row["unit"]),
            value_text(row["simulated"], row["unit"]),
            f"{row['error']:+.0%}",
        )
        for row in found.to_dict("records")
    )
    columns = ("benchmark", "ranks", "size", "limited by", "measured", "simulated", "error")
    yield Sheet("Simulated and measured", columns, lines)
    rows = tuple(
        (
            one.benchmark,
            one.regime,
            f"{one.first_ranks} to {one.last_ranks}",
            str(one.points),
            f"{one.median_error:.0%}",
            f"{one.worst_error:.0%}",
        )
        for one in checked
    )
    names = ("benchmark", "limited by", "ranks", "points", "median error", "worst error")
    yield Sheet("Errors", names, rows, (), 2)


def remarks(networks: Iterable[Network], benchmark: str) -> list[str]:
    """Return descriptions of networks, and the known errors of simulating a benchmark on them."""
    found = list(dict.fromkeys(networks))
    return [
        *dict.fromkeys(one.description for one in found),
        *dict.fromkeys(remark(one.checked, benchmark) for one in found),
    ]


def remark(checked: Sequence[Checked], benchmark: str) -> str:
    """Return a sentence on how far simulations of a benchmark are to be believed."""
    mine = [one for one in checked if one.benchmark == benchmark] or list(checked)
    if not mine:
        return (
            "Nothing of this network was compared with a measurement (--check): take ratios, not "
            "times."
        )
    of = "" if mine[0].benchmark == benchmark else f" ({first_of([one.benchmark for one in mine])})"
    parts = "; ".join(
        f"{one.regime} within {one.worst_error:.0%} (median {one.median_error:.0%})" for one in mine
    )
    first, last = min(one.first_ranks for one in mine), max(one.last_ranks for one in mine)
    return (
        f"Compared with measurements{of} on {first} to {last} ranks: {parts}. Beyond is "
        "extrapolation."
    )
