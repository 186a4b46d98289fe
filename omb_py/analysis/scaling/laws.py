"""Laws of scaling: what speed-up follows from which part of a program cannot be divided.

S is the speed-up on p ranks, s the part of the time that stays, whatever p. With strong scaling
that is a part of one rank's time (G. Amdahl, *Validity of the single processor approach*, 1967);
with weak scaling a part of the time on p ranks (J. Gustafson, *Reevaluating Amdahl's law*, 1988).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from omb_py.analysis.scaling.series import Point

Array: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Law:
    """S by a few parameters, which are the factors of terms in p.

    ``target`` is the quantity, of p and S, that the terms add up to, ``speedup`` the S that
    follows from p and such a sum. ``weight`` makes an error of the sum one relative to S. A
    parameter is at least 0 and at most ``most``.
    """

    name: str
    formula: str
    parameters: tuple[str, ...]
    terms: Callable[[Array], Array]
    target: Callable[[Array, Array], Array]
    weight: Callable[[Array], Array]
    speedup: Callable[[Array, Array], Array]
    most: tuple[float, ...]


def amdahl_terms(ranks: Array) -> Array:
    """What the serial fraction is multiplied with in 1/S."""
    return np.stack([1 - 1 / ranks], axis=-1)


def amdahl_log_terms(ranks: Array) -> Array:
    """Amdahl's terms, and what grows as calls do whose messages go along trees of ranks."""
    return np.stack([1 - 1 / ranks, np.log2(ranks)], axis=-1)


def gustafson_terms(ranks: Array) -> Array:
    """What the serial fraction takes away from p."""
    return np.stack([ranks - 1], axis=-1)


AMDAHL = Law(
    name="Amdahl",
    formula="1/S = s + (1 - s)/p",
    parameters=("s",),
    terms=amdahl_terms,
    target=lambda ranks, speedup: 1 / speedup - 1 / ranks,
    weight=lambda speedup: speedup,
    speedup=lambda ranks, total: 1 / (1 / ranks + total),
    most=(1.0,),
)
AMDAHL_LOG = Law(
    name="Amdahl + log2 p",
    formula="1/S = s + (1 - s)/p + c log2 p",
    parameters=("s", "c"),
    terms=amdahl_log_terms,
    target=AMDAHL.target,
    weight=AMDAHL.weight,
    speedup=AMDAHL.speedup,
    most=(1.0, np.inf),
)
GUSTAFSON = Law(
    name="Gustafson",
    formula="S = p - s (p - 1)",
    parameters=("s",),
    terms=gustafson_terms,
    target=lambda ranks, speedup: ranks - speedup,
    weight=lambda speedup: 1 / speedup,
    speedup=lambda ranks, total: ranks - total,
    most=(1.0,),
)


def laws_of(scaling: str, points: int) -> tuple[Law, ...]:
    """The laws that so many points, of two ranks and more, can tell something of."""
    if not points:
        return ()
    if scaling == "weak":
        return (GUSTAFSON,)
    return (AMDAHL, AMDAHL_LOG) if points >= len(AMDAHL_LOG.parameters) else (AMDAHL,)


def serial_fraction(point: Point, scaling: str) -> float | None:
    """The part that stays by one point alone; below 0 where it is faster than divided work.

    With strong scaling the experimentally determined one of A. Karp and H. Flatt (*Measuring
    parallel processor performance*, 1990), (1/S - 1/p) / (1 - 1/p); with weak scaling Gustafson's.
    """
    if point.speedup is None or point.ranks == 1:
        return None
    ranks, speedup = point.ranks, point.speedup.value
    if scaling == "weak":
        return (ranks - speedup) / (ranks - 1)
    return (1 / speedup - 1 / ranks) / (1 - 1 / ranks)
