"""The verdict for each host of results, and what is written of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.conclusion import Conclusion, conclude
from omb_py.analysis.failures import Failure
from omb_py.analysis.gate.judging import TOLERANCE, Judgement, judge
from omb_py.analysis.gate.limits import HostCosts
from omb_py.analysis.gate.points import Record, points
from omb_py.analysis.gate.records import lacking, records_of, records_of_pairs, unfinished
from omb_py.analysis.judging import check_part, rows_to_judge
from omb_py.analysis.table import results_of
from omb_py.analysis.values import value_column
from omb_py.core.text.units import digits
from omb_py.core.text.words import first_of

OK, SLOW, NOT_JUDGED, ABSENT = "ok", "SLOW", "not judged", "ABSENT"
"""Verdicts of a host."""


@dataclass(frozen=True)
class Gated:
    """The verdict for each of ``hosts``.

    ``judgement`` is what was found among them. ``absent`` has why a host does not answer,
    ``beyond`` what is worse than expected and ``wrong`` what cannot be or was wrong: failures, too.
    ``compared`` are hosts that were compared with expected values, ``measured`` those that have a
    number. ``unknown`` are sentences on what could not be judged, ``notes`` remarks.
    """

    hosts: tuple[str, ...]
    judgement: Judgement
    absent: Mapping[str, str] = field(default_factory=dict)
    beyond: Mapping[str, str] = field(default_factory=dict)
    wrong: tuple[Failure, ...] = ()
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    compared: frozenset[str] = frozenset()
    measured: frozenset[str] = frozenset()

    @property
    def judged(self) -> frozenset[str]:
        """The hosts that have a verdict: among all others, against expected values, or failed."""
        return self.judgement.judged | self.compared | {*self.drained}

    @property
    def drained(self) -> tuple[str, ...]:
        """The hosts that failed, in the order of all hosts."""
        failed = {one.hosts[0] for one in self.judgement.slow} | {*self.absent, *self.beyond}
        return tuple(host for host in self.hosts if host in failed)

    @property
    def failures(self) -> Iterator[Failure]:
        """A failure for each host, then for each slow link, and rows that were wrong."""
        slow = {one.hosts[0]: one.text for one in self.judgement.slow}
        for host in self.drained:
            reasons = (self.absent.get(host), slow.get(host), self.beyond.get(host))
            yield Failure(f"{host}  {'; '.join(filter(None, reasons))}")
        for link in self.judgement.links:
            yield Failure(f"{link.name}  {link.text}", on_top=True)
        yield from self.wrong

    @property
    def conclusion(self) -> Conclusion:
        """PASS if every host was judged and is fine."""
        judged = self.judged
        unjudged = [host for host in self.hosts if host not in judged]
        noisy = [f"{name}: too noisy" for name in self.judgement.noisy]
        besides = [*(one.text for one in self.judgement.classes), *noisy, *self.unknown]
        return conclude(
            len(judged & {*self.hosts}),
            [*self.failures],
            [host for host in unjudged if host in self.measured],
            [host for host in unjudged if host not in self.measured],
            what="host",
            held="fine",
            besides=besides,
        )

    @property
    def remarks(self) -> list[str]:
        """Sentences on what slow hosts share, on what was not confirmed, and notes."""
        suspected = [
            f"{one.name}  {one.text}: not confirmed" for one in self.judgement.suspected[:3]
        ]
        if more := len(self.judgement.suspected) - len(suspected):
            suspected.append(f"{more} more were not confirmed")
        return [*self.judgement.groups, *suspected, *self.judgement.remarks, *self.notes]

    @property
    def sensitivity(self) -> str:
        """What would have been named, in a sentence; empty if nothing was judged."""
        needed = self.judgement.needed
        if not needed:
            return ""
        (least, where), (most, last) = needed[0], needed[-1]
        text = f"a host {percent(least)} slower would have been named ({where})"
        return text if most < 1.01 * least else f"{text}; at {last}, one {percent(most)} slower"

    def lines(self) -> list[str]:
        """Return the failures, the conclusion, and what would have been named."""
        return [*self.conclusion.lines(), *filter(None, [self.sensitivity])]

    def verdict(self, host: str) -> str:
        """Return the verdict of a host in a word."""
        if host in self.absent:
            return ABSENT
        if host in self.drained:
            return SLOW
        return OK if host in self.judged else NOT_JUDGED

    def table(self) -> pd.DataFrame:
        """Return a row for each host and point, with the columns of `COLUMNS`."""
        found = [row for one in self.judgement.costs for row in self._rows(one)]
        known = {row["host"] for row in found}
        found += [
            {"host": host, "verdict": self.verdict(host)}
            for host in dict.fromkeys((*self.hosts, *self.absent))
            if host not in known
        ]
        return pd.DataFrame(found, columns=list(COLUMNS))

    def _rows(self, one: HostCosts) -> Iterator[dict[str, Any]]:
        slow = one.slow
        for place, host in enumerate(one.point.hosts):
            excess = float(one.excess[place])
            if math.isfinite(excess):
                yield {
                    "host": host,
                    "point": one.point.name,
                    "ratio": math.exp(excess),
                    "limit": math.exp(min(float(one.limits[place]), 700.0)),
                    "turns": int(np.isfinite(one.point.costs[place]).sum()),
                    "beyond": bool(slow[place]),
                    "class": int(one.classes[place]),
                    "verdict": self.verdict(host),
                }


COLUMNS = ("host", "point", "ratio", "limit", "turns", "beyond", "class", "verdict")
"""Columns of `Gated.table`: ``ratio`` is the host's time over the typical host's of its class, and
``limit`` the largest one that noise explains; ``turns`` how often it was measured, ``beyond``
whether the ratio is beyond the limit, ``class`` 1 for the slower of two groups of hosts."""


def percent(factor: float) -> str:
    """Return how much longer a factor is."""
    return f"{100 * (factor - 1):.0f} %" if factor < 10 else f"{digits(factor)} times"


def gate(
    source: Any,
    *,
    tolerance: float = TOLERANCE,
    groups: Mapping[str, str] | None = None,
    apart: bool = False,
    hosts: Sequence[str] = (),
    statistic: str = "auto",
) -> Gated:
    """Judge each host of results against all others.

    ``source`` are files or folders, results of `omb_py.load` or `run`, or a table of their rows.
    ``tolerance`` is the difference that does not matter, ``groups`` the group of each host, as its
    switch; with ``apart`` they are different hardware, each judged by itself. ``hosts`` are those
    that have to be there. ``statistic`` is that of `value_column`. Rows whose data was wrong are
    not judged, and fail.
    """
    check_part("tolerance", tolerance, zero=True)
    results = results_of(source)
    right, wrong = rows_to_judge(results.rows)
    unknown = [*results.lost, *(one for run in results.runs for one in unfinished(results, run))]
    if nameless := [*right.loc[right["host_names"].isna(), "file"].dropna().unique()]:
        unknown.append(f"rows without a host in {first_of(nameless, 3)}: add --assume host_names=")
    records = [*records_of(value_column(right, statistic)), *records_of_pairs(results.pairs)]
    names = results.rows["host_names"].dropna().unique()
    hosts = [*hosts, *(host for one in names for host in one.split())]
    return gated(records, tolerance, groups, apart, hosts, tuple(wrong), unknown)


def gated(
    records: Sequence[Record],
    tolerance: float = TOLERANCE,
    groups: Mapping[str, str] | None = None,
    apart: bool = False,
    hosts: Iterable[str] = (),
    wrong: tuple[Failure, ...] = (),
    unknown: Iterable[str] = (),
    absent: Mapping[str, str] | None = None,
    notes: Iterable[str] = (),
    confirm: bool = False,
) -> Gated:
    """Return the verdicts from records, as `gate` does; ``confirm`` as in `judge`."""
    every = points(records)
    found = judge(every, tolerance, groups, apart, confirm)
    measured = dict.fromkeys(host for one in records for host in one.hosts)
    known = dict.fromkeys([*hosts, *measured])
    return Gated(
        tuple(known),
        found,
        absent or {},
        wrong=wrong,
        unknown=(*unknown, *lacking(every, absent or {})),
        notes=tuple(notes),
        measured=frozenset(measured),
    )
