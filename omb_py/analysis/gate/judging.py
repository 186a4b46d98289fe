"""Slow hosts, slow links and slow groups of hosts, each judged against all others.

A host is slow if it takes longer than the typical host by more than noise explains (`limits`), and
by more than a tolerance. What is left of a slow pair belongs to the link (`links`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from omb_py.analysis.gate.findings import Slow, slow_host, stands, worst
from omb_py.analysis.gate.limits import (
    FEWEST,
    Classes,
    HostCosts,
    Point,
    classes_of,
    costs_of,
    fast_inside,
    usual_noise,
)
from omb_py.analysis.gate.links import shared_by, slow_links
from omb_py.analysis.pairs.findings import ALARMS
from omb_py.core.dataclass import dataclass
from omb_py.core.text.words import count

TOLERANCE = 0.1
"""The part by which a host may be slower by default, however small the noise is."""

FALSE_ALARMS = ALARMS / 2
"""Rate of false alarms among all hosts and points: half of `ALARMS`, as limits are estimates."""


@dataclass(frozen=True)
class Judgement:
    """What was found among hosts.

    ``slow`` hosts, worst first, ``links`` and ``groups`` of them; ``classes`` of hosts that are
    apart. ``suspected`` ones were not confirmed. ``judged`` are the hosts that have a verdict;
    ``costs`` those of each point. ``remarks`` are sentences on what could not be judged, ``noisy``
    names points at which noise hides everything.
    """

    slow: tuple[Slow, ...]
    links: tuple[Slow, ...]
    groups: tuple[str, ...]
    classes: tuple[Classes, ...]
    suspected: tuple[Slow, ...]
    costs: tuple[HostCosts, ...]
    remarks: tuple[str, ...]
    noisy: tuple[str, ...] = ()

    @property
    def judged(self) -> frozenset[str]:
        """The hosts that were judged at a point at least."""
        return frozenset(
            host
            for one in self.costs
            for host, known in zip(one.point.hosts, one.judged, strict=True)
            if known
        )

    @property
    def needed(self) -> list[tuple[float, str]]:
        """How many times slower a host would have been named, and at which point, least first."""
        return sorted(
            (float(np.exp(np.median(one.limits[one.judged]))), one.point.name)
            for one in self.costs
            if one.judged.any()
        )


def judge(
    points: Sequence[Point],
    tolerance: float = TOLERANCE,
    groups: Mapping[str, str] | None = None,
    apart: bool = False,
    confirm: bool = False,
) -> Judgement:
    """Find the slow hosts, links and groups of some points.

    A false alarm is as rare as in a matrix of pairs (`ALARMS`), whatever the number of hosts and
    points (Bonferroni). ``tolerance`` is the difference that does not matter. ``groups`` name what
    hosts share, as a switch; with ``apart`` they are different hardware, and each is judged by
    itself. With ``confirm``, what no turn measured again is only suspected.
    """
    known = groups or by_name(dict.fromkeys(host for point in points for host in point.hosts))
    if apart:
        points = [part for point in points for part in parts(point, known)]
    alarms = FALSE_ALARMS / max(1, len(points))
    several = [one for one in points if np.isfinite(one.first).any(axis=1).sum() >= FEWEST]
    few = len(points) - len(several)
    text = f"{count(few, 'point')} of fewer than {FEWEST} hosts: which is slow cannot be told"
    remarks = [text] if few else []
    usual = usual_noise((one for one in several if not one.halves), tolerance)
    costs = [one for point in several for one in costs_of(point, tolerance, alarms, usual)]
    classes: list[Classes] = []
    found: dict[str, list[Slow]] = defaultdict(list)
    for one in costs:
        sharing = np.flatnonzero(one.classes == 1)
        if len(sharing) and not fast_inside(one, sharing):
            classes.append(classes_of(one))
            sharing = sharing[:0]
        for place in dict.fromkeys([*np.flatnonzero(one.slow).tolist(), *sharing.tolist()]):
            found[one.point.hosts[place]].append(slow_host(one, place))
    every = [worst(members) for members in found.values()]
    stood = [one for one in every if stands(one) and (one.repeats or not confirm)]
    slow = sorted(stood, key=lambda one: -one.factor)
    links, lost = slow_links(costs, {one.hosts[0] for one in every}, tolerance, alarms)
    lost += [one for one in links if confirm and not one.repeats]
    links = [one for one in links if one not in lost]
    return Judgement(
        tuple(slow),
        tuple(links),
        tuple(shared_by(costs, slow, known)),
        tuple(classes),
        (*(one for one in every if one not in stood), *lost),
        tuple(costs),
        tuple(remarks),
        tuple(one.point.name for one in costs if one.is_too_noisy and not one.point.halves),
    )


def parts(point: Point, groups: Mapping[str, str]) -> Iterator[Point]:
    """Yield a point of each group of hosts; pairs of two groups are in none."""
    names = [groups.get(host, "") for host in point.hosts]
    for name in dict.fromkeys(names):
        places = np.array([place for place, one in enumerate(names) if one == name])
        costs, partners = point.costs[places], point.partners
        if partners is not None:
            new = np.full(len(names) + 1, -1)
            new[places] = np.arange(len(places))
            partners = new[partners[places]]
            costs = np.where(partners >= 0, costs, np.nan)
        hosts = tuple(point.hosts[place] for place in places)
        label = f"{point.name}, {name}" if name else point.name
        fastest = point.fastest
        if fastest is not None:
            fastest = np.where(np.isfinite(costs), fastest[places], np.nan)
        yield Point(label, hosts, costs, partners, point.again, point.halves, fastest)


def by_name(hosts: Iterable[str]) -> dict[str, str]:
    """Return the group of hosts that their names show: all before the last number.

    >>> by_name(["r1n1", "r1n2", "r2n1"])
    {'r1n1': 'r1n', 'r1n2': 'r1n', 'r2n1': 'r2n'}
    """
    return {host: re.sub(r"\d+\D*$", "", host) or host for host in hosts}
