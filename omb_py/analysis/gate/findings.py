"""A slow host or link: how slow, where, and whether measuring again confirmed it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from omb_py.analysis.gate.limits import HostCosts, Numbers, typical_costs
from omb_py.core.dataclass import dataclass, replace


@dataclass(frozen=True)
class Slow:
    """A slow host, link of two hosts, or group, at the point where its ``factor`` is largest.

    ``others`` is the number of hosts, or links, among which it was found, ``points`` that of all
    points at which it is slow. ``confirmed`` of ``repeats`` turns found it again; no ``repeats`` if
    none was asked for. ``why`` is more that is known, in words, ``every`` names all its points.
    """

    hosts: tuple[str, ...]
    point: str
    factor: float
    others: int
    points: int = 1
    confirmed: int = 0
    repeats: int = 0
    kind: str = "host"
    why: str = ""
    every: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The host, both hosts of a link, or the hosts of a group."""
        return f"{self.hosts[0]} - {self.hosts[1]}" if self.kind == "link" else self.hosts[0]

    @property
    def text(self) -> str:
        """The finding as the rest of a line that begins with its name."""
        of = "other links" if self.kind == "link" else "others"
        parts = [f"{self.point}: {self.factor:.2f} times the median of {self.others} {of}"]
        if self.points > 1:
            parts.append(f"slow at {self.points} points")
        if self.repeats:
            parts.append(f"confirmed {self.confirmed} of {self.repeats}")
        return ", ".join([*parts, *([self.why] if self.why else [])])


def stands(one: Slow) -> bool:
    """Return whether most turns that measured again found it again, of a link all, if any did."""
    if one.kind == "link":
        return one.confirmed == one.repeats
    return not one.repeats or 2 * one.confirmed > one.repeats


def slow_host(one: HostCosts, place: int) -> Slow:
    """Return a host that is beyond its limit at a point, with what measuring it again gave."""
    point, limit = one.point, float(one.limits[place])
    excess = float(one.excess[place]) + one.between * int(one.classes[place])
    above = above_healthy(one, place)
    # a single turn is noisier than the median of those that the limit is of
    confirmed = int((above > (limit if point.halves else limit / 2)).sum())
    if len(above):
        whole = typical_costs(point, point.costs)
        members = np.isfinite(whole) & (one.classes == 0)
        excess = float(whole[place] - (0.0 if point.halves else np.median(whole[members])))
        confirmed = confirmed if excess > limit else 0
    others = int(np.isfinite(one.excess).sum()) - 1
    factor = float(np.exp(excess))
    return Slow((point.hosts[place],), point.name, factor, others, 1, confirmed, len(above))


def above_healthy(one: HostCosts, place: int) -> Numbers:
    """Return how far a host was above the others in each turn that measured it again.

    In pairs that is above healthy hosts with healthy partners, and with a healthy partner.
    """
    point, turns = one.point, one.point.repeated
    own: NDArray[np.bool_] = np.isfinite(turns[place])
    if point.halves:
        found: Numbers = turns[place][own]
        return found
    suspects = np.flatnonzero(one.slow | (one.classes == 1))
    fine = np.isfinite(turns)
    fine[suspects] = False
    if point.partners is not None:
        suspected = np.isin(point.partners[:, point.first.shape[1] :], suspects)
        fine &= ~suspected
        own &= ~suspected[place]
    costs = typical_costs(point, point.first)
    usual = float(np.median(costs[np.isfinite(costs) & (one.classes == 0)]))
    middles = [
        float(np.median(turn[known])) if known.any() else usual
        for turn, known in zip(turns.T, fine.T, strict=True)
    ]
    above: Numbers = (turns[place] - middles)[own]
    return above


def worst(members: Sequence[Slow]) -> Slow:
    """Return the point of a host at which it is slowest, of those that were confirmed if any."""
    stood = [one for one in members if stands(one)]
    first = max(stood or members, key=lambda one: one.factor)
    every = tuple(one.point for one in stood) or (first.point,)
    return replace(first, points=len(every), every=every)
