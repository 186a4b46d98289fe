"""Records of a gate from rows of results, and what these rows do not have."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from omb_py.analysis.gate.limits import Point
from omb_py.analysis.gate.points import HALVES, Record
from omb_py.analysis.points import at_size, distinctions, group_ids, line_name, plain_values
from omb_py.analysis.table import Results
from omb_py.core.text.units import is_time
from omb_py.core.text.words import first_of
from omb_py.results.columns import IDENTITY
from omb_py.results.metadata import COMPLETE, TURN, hosts_of_nodes

WHERE = {"node": " on the node", "pairs": " in pairs", HALVES: " in halves"}
"""Words for the column ``split``."""

NOT_A_POINT = ("group", "source", "variant")
"""Columns in which rows of one point may differ."""


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
