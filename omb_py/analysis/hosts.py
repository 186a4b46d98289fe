"""Slow hosts of results, as `omb-py gate` judges them, for reports, comparisons and checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from omb_py.analysis.gate.judging import judge
from omb_py.analysis.gate.points import points
from omb_py.analysis.gate.records import records_of
from omb_py.analysis.points import group_ids
from omb_py.analysis.values import value_column
from omb_py.analysis.verdict import factor
from omb_py.core.errors import UsageError
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import is_time
from omb_py.core.text.words import count, first_of
from omb_py.results.columns import IDENTITY
from omb_py.results.metadata import Runs

MOST_NAMED = 30
"""Slow hosts that a table has."""

MACHINE = ("processor", "device")
"""Metadata in which hosts of one machine agree."""


@dataclass(frozen=True)
class SlowHost:
    """A slow host, or a set of hosts of one run.

    ``worst`` is how many times slower than the median host it is at ``where``, the benchmark and
    size at which that is most; ``slow`` of its ``points`` are beyond the limit.
    """

    name: str
    worst: float
    where: str
    slow: int
    points: int
    benchmarks: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the finding as a sentence without its end."""
        return (
            f"{self.name} takes {factor(self.worst)} as long as the median host at {self.where}, "
            f"and is slow in {self.slow} of {count(self.points, 'point')}"
        )


@dataclass(frozen=True)
class Hosts:
    """The slow hosts of results, worst first, of how many ``hosts``; ``remarks`` are sentences."""

    slow: tuple[SlowHost, ...]
    hosts: int
    remarks: tuple[str, ...]


def slow_hosts(values: pd.DataFrame) -> Hosts:
    """Find the slow hosts of rows with values (`value_column`), as `gate.judging.judge` does."""
    known = values[values["host_names"].notna()]
    names = known["host_names"].dropna().unique()
    if len(names) < 2:
        return Hosts((), len(names), ())
    found = judge(points(records_of(known)))
    slow = [
        SlowHost(
            one.hosts[0],
            one.factor,
            one.point,
            one.points,
            sum(one.hosts[0] in other.point.hosts for other in found.costs),
            tuple(dict.fromkeys(name.split()[0] for name in one.every)),
        )
        for one in found.slow
    ]
    remarks = [*incomplete(excesses(known)), *(one.text for one in found.classes), *found.remarks]
    if found.needed and not slow:
        needed = f"{factor(found.needed[-1][0])} as long"
        remarks.insert(0, f"no host is slow: one would have to take up to {needed}")
    return Hosts(tuple(slow), len(names), tuple(remarks))


def excesses(values: pd.DataFrame) -> pd.DataFrame:
    """Return how far each host is above the median host at each point.

    That is a logarithm of times, or of rates' inverses. A host's number is the median of its
    launches' logarithms, unlike that of `points_of`.
    """
    point = group_ids(values[name] for name in (*IDENTITY, "bytes", "unit") if name in values)
    logs = np.log(values["value"])
    costs = logs.where(is_time(values["unit"]), -logs)
    medians = costs.groupby([point, values["host_names"].to_numpy()]).median().unstack()
    return medians.sub(medians.median(axis=1), axis=0)


def newly_slow(base: pd.DataFrame, other: pd.DataFrame, allowed: float) -> list[str]:
    """Return a sentence for each host that is slow among those of ``other``, unless it was in base.

    A comparison takes hosts for launches, and their median hides one. A host counts if it is more
    than ``allowed`` times slower than the median host, and than in ``base``.
    """
    before = {one.name: one.worst for one in slow_hosts(value_column(base)).slow}
    return [
        f"{one.text}: compare it with --where 'host_names={one.name}'"
        for one in slow_hosts(value_column(other)).slow
        if one.worst > allowed * before.get(one.name, 1.0)
    ]


def incomplete(medians: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence about hosts that lack points that most hosts have."""
    usual = medians.index[medians.notna().mean(axis=1) > 0.5]
    lacking = medians.loc[usual].isna().sum()
    hosts = [f"{name} ({number})" for name, number in lacking[lacking > 0].items()]
    if hosts:
        yield f"{count(len(hosts), 'host')} without points that most hosts have: {first_of(hosts)}"


def apart(rows: pd.DataFrame, slow: Sequence[SlowHost]) -> pd.DataFrame:
    """Return rows whose ``source`` is the slow host, so that it has lines and points of its own."""
    names = {one.name: f"{one.name} (slow)" for one in slow}
    of = rows["host_names"].astype(object).map(names)
    return rows.assign(source=of.where(of.notna(), rows["source"].astype(object)))


def sheets(found: Hosts) -> Iterator[Sheet]:
    """Yield the table of slow hosts, if there are some."""
    rows = [
        (
            one.name,
            f"{factor(one.worst)}",
            one.where,
            f"{one.slow} of {one.points}",
            first_of(one.benchmarks),
        )
        for one in found.slow[:MOST_NAMED]
    ]
    if rows:
        more = len(found.slow) - len(rows)
        yield Sheet(
            "Slow hosts",
            ("host", "slower", "worst at", "slow points", "benchmarks"),
            tuple(rows),
            (f"and {more} more",) * (more > 0),
            left=1,
            above=f"{len(found.slow)} of {count(found.hosts, 'host')}; slower than the median host",
        )


def summary(found: Hosts) -> str:
    """Return how many hosts are slow, and the worst, in a sentence without its end."""
    if not found.slow:
        return f"no slow host found among {found.hosts}"
    names = first_of([one.name for one in found.slow], 1)
    return f"{len(found.slow)} of {count(found.hosts, 'host')} slow: {names}"


def refuse_mixture(values: pd.DataFrame, runs: Runs) -> None:
    """Raise `UsageError` if rows are of a mixture from which no limits can be learned.

    A mixture has several machines by their metadata (`MACHINE`), or slow hosts.
    """
    for name in MACHINE:
        present = (runs.get(str(run), {}).get(name) for run in values["run"].unique())
        if len(kinds := list(dict.fromkeys(filter(None, present)))) > 1:
            raise UsageError(
                f"--update: these results are of several machines ({name}: {first_of(kinds, 3)}): "
                "learn the limits of each from its own files"
            )
    if slow := slow_hosts(values).slow:
        raise UsageError(
            f"--update: {slow[0].text}"
            + (f", and {len(slow) - 1} more hosts are" if len(slow) > 1 else "")
            + ": learn limits from healthy hosts, and leave out the files of the others"
        )
