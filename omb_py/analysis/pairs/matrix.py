"""A value for each pair of ranks, as a matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omb_py.core.dataclass import dataclass

Numbers = NDArray[np.float64]


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
        """Natural logarithms of times: what is slower is larger."""
        logarithms: Numbers = np.log(self.values)
        return logarithms if self.unit == "us" else -logarithms

    @property
    def pairs(self) -> int:
        """How many values there are, each direction being one."""
        return int(np.isfinite(self.values).sum())

    @property
    def middle(self) -> float:
        """The median of all values."""
        return float(np.nanmedian(self.values))

    def name(self, unit: int) -> str:
        """What people call a unit: its host where it is the only one there, else its rank."""
        if self.hosts.count(self.hosts[unit]) == 1 and len(set(self.hosts)) > 1:
            return self.hosts[unit]
        return f"rank {self.ranks[unit]}"


def matrix(rows: Sequence[Mapping[str, Any]]) -> Matrix:
    """The matrix of rows of `PairRow` that are of one benchmark and size, ordered by host.

    Of several values of a pair, as from several runs, the median counts.
    """
    hosts: dict[int, str] = {}
    values: dict[tuple[int, int], list[float]] = {}
    unit = "us" if of(rows[0], "latency_us") is not None else "MB/s"
    name = "latency_us" if unit == "us" else "bandwidth_MBps"
    for row in rows:
        sender, receiver = int(row["sender"]), int(row["receiver"])
        hosts[sender], hosts[receiver] = row["sender_host"], row["receiver_host"]
        value = of(row, name)
        if value is not None and value > 0:
            values.setdefault((sender, receiver), []).append(value)
    first = {hosts[rank]: rank for rank in sorted(hosts, reverse=True)}
    ranks = sorted(hosts, key=lambda rank: (first[hosts[rank]], rank))
    places = {rank: place for place, rank in enumerate(ranks)}
    found = np.full((len(ranks), len(ranks)), np.nan)
    for (sender, receiver), several in values.items():
        found[places[sender], places[receiver]] = np.median(several)
    return Matrix(
        str(rows[0]["benchmark"]),
        int(rows[0]["bytes"]),
        unit,
        tuple(ranks),
        tuple(hosts[rank] for rank in ranks),
        found,
    )


def of(row: Mapping[str, Any], name: str) -> float | None:
    """A number of a row; None where there is none."""
    value = row.get(name)
    return None if value is None or value != value else float(value)


def matrices(rows: Iterable[Mapping[str, Any]]) -> list[Matrix]:
    """A matrix for each benchmark, size and way in which its rows were measured."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    names = ("benchmark", "buffer", "placement", "binding", "mpi_type", "window", "by", "alone")
    for row in rows:
        key = (*(str(row.get(name)) for name in (*names, "ranks", "variant")), int(row["bytes"]))
        groups.setdefault(key, []).append(row)
    return [matrix(members) for members in groups.values()]
