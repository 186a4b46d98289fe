"""Points of a gate: what was measured on each host, in pairs and in halves, alternately."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from omb_py.analysis.gate.limits import Point
from omb_py.core.dataclass import dataclass, replace

HALVES = "halves"
"""The column ``split`` of rows of halves."""


@dataclass(frozen=True)
class Record:
    """A cost, the logarithm of a time, of ``hosts`` at the ``point`` of this name.

    ``members`` tells several pairs of ranks of two hosts apart, ``again`` is true if it measured
    what had been suspected, ``split`` as the column has it. ``fastest`` is the cost of the fastest
    iteration, NaN if it is unknown.
    """

    point: str
    hosts: tuple[str, ...]
    cost: float
    members: str = ""
    again: bool = False
    split: str = ""
    fastest: float = math.nan


def points(records: Iterable[Record]) -> list[Point]:
    """Return a point for each name, number of hosts in a group, and split.

    Of several pairs of ranks of two hosts in a turn the slowest counts: a host is as slow as its
    slowest card. Hosts that measured together count as one, unless they are halves of all.
    """
    by_point: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        kind = record.split if record.split == HALVES else str(min(len(record.hosts), 3))
        by_point[record.point, kind].append(record)
    found = []
    for (name, kind), members in by_point.items():
        if kind == "3" and len({record.hosts for record in members}) == 1:
            continue  # all hosts together: there is nothing to compare them with
        build = {HALVES: of_halves, "2": of_pairs}.get(kind, of_hosts)
        point = build(name, members)
        if all(math.isfinite(one.fastest) for one in members):
            fastest = [replace(one, cost=one.fastest) for one in members]
            point = replace(point, fastest=build(name, fastest).costs)
        found.append(point)
    return found


def of_hosts(name: str, records: Sequence[Record]) -> Point:
    """Return a point of hosts that measured by themselves, or of sets of hosts as one."""
    columns: dict[str, dict[bool, dict[str, list[float]]]] = {}
    for record in records:
        host = " ".join(record.hosts)
        own = columns.setdefault(host, {False: defaultdict(list), True: defaultdict(list)})
        own[record.again][record.members].append(record.cost)
    turns = {
        again: max(len(costs) for own in columns.values() for costs in [[], *own[again].values()])
        for again in (False, True)
    }
    matrix = np.full((len(columns), turns[False] + turns[True]), np.nan)
    for place, own in enumerate(columns.values()):
        for again, start in ((False, 0), (True, turns[False])):
            for costs in own[again].values():
                part = matrix[place, start : start + len(costs)]
                matrix[place, start : start + len(costs)] = np.fmax(part, costs)
    return Point(name, tuple(columns), matrix, again=turns[True])


def of_pairs(name: str, records: Sequence[Record]) -> Point:
    """Return a point of pairs: in each column a host has one partner at most."""
    hosts = tuple(dict.fromkeys(host for record in records for host in record.hosts))
    places = {host: place for place, host in enumerate(hosts)}
    cells: list[tuple[int, int, int, float]] = []
    width = before = 0
    for again in (False, True):
        before, free = width, [width] * len(hosts)
        taken: dict[tuple[int, int, str], int] = defaultdict(int)
        costs: dict[tuple[int, int, int], float] = {}
        for record in records:
            if record.again is not again:
                continue
            first, second = sorted(places[host] for host in record.hosts)
            number = taken[first, second, record.members]
            taken[first, second, record.members] += 1
            key = first, second, number
            costs[key] = max(record.cost, costs.get(key, -np.inf))
        for (first, second, _), cost in costs.items():
            column = max(free[first], free[second])
            free[first] = free[second] = column + 1
            cells.append((first, second, column, cost))
            width = max(width, column + 1)
    matrix = np.full((len(hosts), width), np.nan)
    partners = np.full((len(hosts), width), -1)
    for first, second, column, cost in cells:
        matrix[[first, second], column] = cost
        partners[first, column], partners[second, column] = second, first
    return Point(name, hosts, matrix, partners, width - before)


def of_halves(name: str, records: Sequence[Record]) -> Point:
    """Return a point of halves: two that follow each other are those of a split."""
    hosts = tuple(dict.fromkeys(host for record in records for host in record.hosts))
    places = {host: place for place, host in enumerate(hosts)}
    columns, again = [], 0
    for repeated in (False, True):
        own = [record for record in records if record.again is repeated]
        while len(own) > 1:
            one, other, *own = own
            if {*one.hosts} & {*other.hosts}:  # the other half of the first one was not measured
                own = [other, *own]
                continue
            column = np.full(len(hosts), np.nan)
            column[[places[host] for host in one.hosts]] = one.cost - other.cost
            column[[places[host] for host in other.hosts]] = other.cost - one.cost
            columns.append(column)
            again += repeated
    matrix = np.array(columns).T if columns else np.full((len(hosts), 0), np.nan)
    return Point(name, hosts, matrix, again=again, halves=True)
