"""Slow links between hosts that are fine otherwise, and what slow hosts share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from omb_py.analysis.gate.findings import Slow, stands, worst
from omb_py.analysis.gate.limits import (
    FEWEST,
    HostCosts,
    Point,
    inside_costs,
    limit_of_tail,
    spread,
    typical_costs,
)
from omb_py.analysis.pairs.findings import slow_limit
from omb_py.core.text.words import count, first_of

MOST_OF_A_GROUP = 0.75
"""The part of a group's hosts that are slow if the group is."""

WHICH = "which of the two ends cannot be told: both are fine with others"


def pairs_of(point: Point) -> dict[tuple[int, int], list[tuple[float, bool]]]:
    """Return the costs of each pair of hosts, and whether a turn measured again."""
    found: dict[tuple[int, int], list[tuple[float, bool]]] = defaultdict(list)
    assert point.partners is not None
    first = point.costs.shape[1] - point.again
    for host, turn in np.argwhere(np.isfinite(point.costs) & (point.partners >= 0)).tolist():
        partner = int(point.partners[host, turn])
        if host < partner:
            found[host, partner].append((float(point.costs[host, turn]), turn >= first))
    return found


def slow_links(
    costs: Iterable[HostCosts], slow: Iterable[str], tolerance: float, alarms: float
) -> tuple[list[Slow], list[Slow]]:
    """Return the slow links between hosts that are not ``slow``, and those not confirmed."""
    besides, found = set(slow), defaultdict(list)
    for one in costs:
        point = one.point
        if point.partners is None:
            continue
        whole = typical_costs(point, point.costs)
        pairs = {
            (a, b): values
            for (a, b), values in pairs_of(point).items()
            if not {point.hosts[a], point.hosts[b]} & besides
        }
        if len(pairs) < 2 * FEWEST:
            continue
        # a pair is as slow as its slower end
        ends = np.array([max(whole[a], whole[b]) for a, b in pairs])
        first = [
            np.median([v for v, again in values if not again] or [np.nan])
            for values in pairs.values()
        ]
        left = np.array(first) - ends
        known = left[np.isfinite(left)]
        limit = slow_limit(spread(known), len(known), alarms, 1 + tolerance)
        limit = max(limit, limit_of_tail(known, alarms))
        for (pair, values), excess, end in zip(pairs.items(), left, ends, strict=True):
            if not excess > limit:
                continue
            again = [value - end for value, repeated in values if repeated]
            confirmed = sum(value > limit for value in again)
            first_host, second_host = sorted(point.hosts[one] for one in pair)
            names = (first_host, second_host)
            every = np.median([value for value, _ in values])
            factor = float(np.exp(every - np.median(whole[np.isfinite(whole)])))
            turns = confirmed, len(again)
            link = Slow(names, point.name, factor, len(pairs) - 1, 1, *turns, "link", WHICH)
            found[names].append(link)
    every = [worst(members) for members in found.values()]
    stood = [one for one in every if stands(one)]
    return sorted(stood, key=lambda one: -one.factor), [one for one in every if not stands(one)]


def shared_by(
    costs: Iterable[HostCosts], slow: Sequence[Slow], groups: Mapping[str, str]
) -> Iterator[str]:
    """Yield sentences on what slow hosts share: a group, or a connection to all others."""
    names = {one.hosts[0] for one in slow}
    of_group: dict[str, set[str]] = defaultdict(set)
    for host, group in groups.items():
        of_group[group].add(host)
    for group, members in of_group.items():
        both = names & members
        if len(both) >= max(2, MOST_OF_A_GROUP * len(members)) and len(of_group) > 1:
            yield f"group {group}: {len(both)} of its {count(len(members), 'host')} are slow"
    for one in costs:
        places = np.array([p for p, host in enumerate(one.point.hosts) if host in names], np.intp)
        inside = inside_costs(one.point, places) if len(places) > 1 else np.empty(0)
        if len(inside):
            usual = typical_costs(one.point, one.point.costs)
            middle = float(
                np.median(usual[np.isfinite(usual) & ~np.isin(np.arange(len(usual)), places)])
            )
            own = float(np.median(usual[places]))
            if np.median(inside) - middle < (own - middle) / 2:
                listed = first_of([one.point.hosts[place] for place in places], 6)
                yield (
                    f"{listed} are as fast as others among themselves ({one.point.name}): what "
                    "they share is slow, as a switch"
                )
                return
