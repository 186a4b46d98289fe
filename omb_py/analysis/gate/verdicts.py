"""The verdict for each host of results, and what is written of it."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.conclusion import Conclusion, conclude
from omb_py.analysis.failures import Failure
from omb_py.analysis.gate.judging import TOLERANCE, Judgement, judge
from omb_py.analysis.gate.limits import HostCosts, Point
from omb_py.analysis.gate.points import HALVES, Record, points
from omb_py.analysis.judging import check_part, rows_to_judge
from omb_py.analysis.points import at_size, distinctions, group_ids, line_name, plain_values
from omb_py.analysis.table import Results, results_of
from omb_py.analysis.values import value_column
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits, is_time
from omb_py.core.text.words import count, first_of
from omb_py.results.columns import IDENTITY
from omb_py.results.metadata import COMPLETE, TURN, hosts_of_nodes

WHERE = {"node": " on the node", "pairs": " in pairs", HALVES: " in halves"}
"""Words for the column ``split``."""

NOT_A_POINT = ("group", "source", "variant")
"""Columns in which rows of one point may differ."""

MOST_LISTED = 30
"""Hosts of a table in text."""

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


def unfinished(results: Results, run: str) -> Iterator[str]:
    """Yield a sentence if a run of a gate ended before its last turn, with the hosts without row.

    In a turn that ended all hosts have a row, but one of an odd number.
    """
    data = results.runs[run]
    turn, _, split = data.get(TURN, "").partition(" ")
    if not turn or turn == COMPLETE:
        return
    rows = results.rows[results.rows["run"] == run]
    of_turn = rows[rows["split"].fillna("") == split]
    numbers = of_turn["host_names"].dropna().str.split().explode().value_counts()
    most = int(numbers.max()) if len(numbers) else 0
    known = hosts_of_nodes(data)
    without = [host for host in known if numbers.get(host, 0) < max(1, most)]
    where = f"turn {turn} of the gate{WHERE.get(split, '')}"
    named = f": no row of {first_of(without, 8)}" if 0 < len(without) < len(known) else ""
    yield f"the job ended in {where}{named}"


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


def lacking(every: Iterable[Point], absent: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence on hosts without some points that most hosts have, and with no others."""
    own: dict[str, set[str]] = defaultdict(set)
    for one in every:
        for place in np.flatnonzero(np.isfinite(one.costs).any(axis=1)):
            own[one.hosts[place]].add(one.name)
    numbers = Counter(name for names in own.values() for name in names)
    usual = {name for name, number in numbers.items() if 2 * number > len(own)}
    less = {host: sorted(usual - names) for host, names in own.items() if names < usual}
    texts = [f"{host} ({first_of(names, 2)})" for host, names in less.items() if host not in absent]
    if texts:
        yield f"hosts without points that most hosts have: {first_of(texts, 3)}"


def records_of(values: pd.DataFrame) -> Iterator[Record]:
    """Yield a record for each row with a value (`value_column`) whose hosts are known."""
    known = values[values["host_names"].notna()]
    if known.empty:
        return
    empty = {"split": None, "group": None, "spread_low": np.nan, "spread_high": np.nan}
    known = known.assign(**{name: none for name, none in empty.items() if name not in known})
    # both halves of a split are of one point, although one may be larger
    in_halves = (known["split"] == HALVES).fillna(False)
    counted = [name for name in ("ranks", "hosts") if name in known]
    known = known.assign(**{name: known[name].mask(in_halves) for name in counted})
    columns = [name for name in IDENTITY if name in known and name not in NOT_A_POINT]
    ids = group_ids(known[name] for name in (*columns, "bytes", "unit"))
    names = names_of(known, ids, columns)
    logs = np.log(known["value"])
    costs = logs.where(is_time(known["unit"]), -logs)
    splits = plain_values(known["split"])
    groups = plain_values(known["group"])
    least = np.log(known["spread_low"].where(is_time(known["unit"]), 1 / known["spread_high"]))
    for number, cost, hosts, split, group, fastest in zip(
        ids, costs, known["host_names"], splits, groups, least, strict=True
    ):
        own = names[number], tuple(hosts.split()), cost, group or "", False, split or "", fastest
        yield Record(*own)


def names_of(values: pd.DataFrame, ids: np.ndarray, columns: Sequence[str]) -> dict[int, str]:
    """Return the name of each point, with what tells it from points of the same benchmark."""
    first = values.groupby(ids).head(1).set_axis(pd.unique(ids))
    plain = first["benchmark"] + first["bytes"].map(lambda size: at_size(size, " ")).astype(str)
    names = plain + first["split"].map(lambda split: WHERE.get(split, "")).astype(str)
    besides = [name for name in columns if name not in ("benchmark", "split")]
    for _, members in first[names.duplicated(keep=False)].groupby(names):
        telling = distinctions(members, besides)
        for number, cells in zip(members.index, members[telling].to_numpy().tolist(), strict=True):
            names[number] += f", {line_name(cells, telling)}"
    return {int(number): str(name) for number, name in names.items()}


def records_of_pairs(rows: pd.DataFrame) -> Iterator[Record]:
    """Yield a record for each direction between two hosts of rows of ``omb-py pairs``."""
    for row in rows.to_dict("records"):
        hosts = (str(row["sender_host"]), str(row["receiver_host"]))
        latency = row["latency_us"]
        value = latency if latency > 0 else row["bandwidth_MBps"]
        if hosts[0] != hosts[1] and value > 0:
            cost = math.log(value) if latency > 0 else -math.log(value)
            name = f"pairs {row['benchmark']}{at_size(row['bytes'], ' ')}"
            yield Record(name, hosts, cost, f"{row['sender']} {row['receiver']}")


def sheets(found: Gated) -> list[Sheet]:
    """Return the table of points, and that of hosts beyond a limit or without a verdict."""
    rows = []
    for one in found.judgement.costs:
        known = np.isfinite(one.excess)
        ordered = np.argsort(-np.where(known, one.excess, -np.inf))
        worst = int(ordered[0])
        limit = float(np.exp(min(700.0, float(np.median(one.limits[known])))))
        known_limit = bool(one.judged.any())
        rows.append(
            (
                one.point.name,
                str(int(known.sum())),
                f"{one.point.hosts[worst]} {math.exp(float(one.excess[worst])):.2f}",
                f"{limit:.2f}" if known_limit else "too noisy",
            )
        )
    title = f"Gate: {count(len(found.hosts), 'host')}"
    columns = ("point", "hosts", "slowest, times the median", "named from")
    return [Sheet(title, columns, tuple(rows), left=1)]


def host_sheet(found: Gated) -> Sheet:
    """Return the table of all hosts: the worst ratio of each, and its verdict."""
    table = found.table()
    rows = []
    for host, members in table.groupby("host", sort=False):
        worst = members.loc[members["ratio"].idxmax()] if members["ratio"].notna().any() else None
        ratio = "-" if worst is None else f"{worst['ratio']:.2f}"
        where = "-" if worst is None else str(worst["point"])
        rows.append((str(host), ratio, where, str(members["verdict"].iloc[0])))
    return Sheet("Hosts", ("host", "times the median", "at", "verdict"), tuple(rows), left=1)


HELP = {
    "omb_py_gate_host_ratio": "Time of the host over the median of all hosts of its class.",
    "omb_py_gate_host_failed": "1 for a host that failed the gate, 0 for one that is fine.",
    "omb_py_gate_hosts": "Hosts of the gate by verdict.",
    "omb_py_gate_exit_code": "0: all judged and fine; 4: some fail; 7: not all could be judged.",
    "omb_py_gate_last_run_timestamp_seconds": "Unix time of the end of the gate.",
}
"""Metrics for Prometheus, by its rules (prometheus.io/docs/practices/naming)."""


def prometheus(found: Gated, now: float | None = None) -> str:
    """Return the verdicts as gauges for node_exporter's textfile collector, and OpenMetrics."""
    table = found.table()
    measured = table[table["ratio"].notna()]
    samples: dict[str, list[tuple[dict[str, str], float]]] = {name: [] for name in HELP}
    for row in measured.to_dict("records"):
        labels = {"host": row["host"], "point": row["point"]}
        samples["omb_py_gate_host_ratio"].append((labels, round(row["ratio"], 6)))
    verdicts = {host: found.verdict(host) for host in found.hosts}
    for host, verdict in verdicts.items():
        if verdict != NOT_JUDGED:
            samples["omb_py_gate_host_failed"].append(({"host": host}, float(verdict != OK)))
    for verdict in (OK, SLOW, ABSENT, NOT_JUDGED):
        number = sum(one == verdict for one in verdicts.values())
        labels = {"verdict": verdict.lower().replace(" ", "_")}
        samples["omb_py_gate_hosts"].append((labels, number))
    samples["omb_py_gate_exit_code"].append(({}, found.conclusion.exit_code))
    moment = time.time() if now is None else now
    samples["omb_py_gate_last_run_timestamp_seconds"].append(({}, round(moment, 3)))
    lines = []
    for name, values in samples.items():
        lines += [f"# HELP {name} {HELP[name]}", f"# TYPE {name} gauge"]
        lines += [f"{name}{labelled(labels)} {value:.16g}" for labels, value in values]
    return "\n".join([*lines, "# EOF", ""])


def labelled(labels: Mapping[str, str]) -> str:
    """Return labels as Prometheus writes them."""
    if not labels:
        return ""
    escaped = {
        name: text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        for name, text in labels.items()
    }
    return "{" + ",".join(f'{name}="{text}"' for name, text in escaped.items()) + "}"
