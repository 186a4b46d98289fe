"""A value for each pair of ranks, as a matrix."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omb_py.core.dataclass import dataclass
from omb_py.core.text.units import is_time

Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]

ALIKE = (
    *("benchmark", "buffer", "placement", "binding", "mpi_type", "window", "by", "alone", "ranks"),
    *("elements", "variant", "bytes"),
)
"""Columns in which all pairs of a matrix agree."""


@dataclass(frozen=True)
class Matrix:
    """Pairs at one message size. ``values[i, j]`` is from unit i to unit j, nan where none was.

    ``ranks`` are the ranks that stand for the units, ``hosts`` where they are, in the same order;
    ``unit`` is that of the values, ``us`` or ``MB/s``.
    """

    benchmark: str
    bytes: int
    unit: str
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    values: Numbers

    @property
    def costs(self) -> Numbers:
        """Natural logarithms of times: slower pairs have larger values."""
        logarithms: Numbers = np.log(self.values)
        return logarithms if is_time(self.unit) else -logarithms

    @property
    def pairs(self) -> int:
        """The number of values, one for each direction."""
        return int(np.isfinite(self.values).sum())

    def name(self, unit: int) -> str:
        """Return a unit's name: its host if it is the only unit there, else its rank."""
        if self.hosts.count(self.hosts[unit]) == 1 and len(set(self.hosts)) > 1:
            return self.hosts[unit]
        return f"rank {self.ranks[unit]}"


def matrix(rows: Sequence[Mapping[str, Any]]) -> Matrix:
    """Return the matrix of rows of `PairRow` that are of one benchmark and size, ordered by host.

    Of several values of a pair, as from several runs, the median counts, as in
    `analysis.points.points_of`: that needs pandas, which is not loaded under ``mpiexec``.
    """
    latencies = np.array([row.get("latency_us") for row in rows], float)
    timed = bool(np.isfinite(latencies[0]))
    rates = [row.get("bandwidth_MBps") for row in rows]
    hosts: dict[int, str] = {}
    several = defaultdict(list)
    for row, value in zip(rows, latencies if timed else np.array(rates, float), strict=True):
        pair = int(row["sender"]), int(row["receiver"])
        hosts |= zip(pair, (row["sender_host"], row["receiver_host"]), strict=True)
        if value > 0:
            several[pair].append(value)
    first = {hosts[rank]: rank for rank in sorted(hosts, reverse=True)}
    ranks = sorted(hosts, key=lambda rank: (first[hosts[rank]], rank))
    places = {rank: place for place, rank in enumerate(ranks)}
    found = np.full((len(ranks), len(ranks)), np.nan)
    for (sender, receiver), values in several.items():
        found[places[sender], places[receiver]] = np.median(values)
    return Matrix(
        str(rows[0]["benchmark"]),
        int(rows[0]["bytes"]),
        "us" if timed else "MB/s",
        tuple(ranks),
        tuple(hosts[rank] for rank in ranks),
        found,
    )


def matrices(rows: Iterable[Mapping[str, Any]]) -> list[Matrix]:
    """Return a matrix for each benchmark, size and way in which its rows were measured."""
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(str(row.get(name)) for name in ALIKE)].append(row)
    return [matrix(members) for members in groups.values()]
