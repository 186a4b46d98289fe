"""Rules that find wrong or misleading results."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from omb_py.analysis.impossible import impossible, judged
from omb_py.analysis.points import SERIES, at_size, distinctions, group_ids, label
from omb_py.analysis.values import STOPPED, faults, spoilt
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits, duration, value_text
from omb_py.core.text.words import count
from omb_py.results.metadata import TCP, Runs, crowded_hosts, slow_transport

SEVERITIES = {"error": "are wrong", "warning": "may mislead"}
"""The effect of an anomaly on the numbers, by its severity."""


FAILED = "failed validation"
"""The kind of rows whose data was wrong."""

KINDS = {
    FAILED: ("error", "Find the link, library or device that changed the data, and measure again."),
    "stopped job": ("error", "Measure again in a job that nobody suspends."),
    "impossible": ("error", "Check the file and its units, and measure again."),
    "ran alone": ("error", "Start all ranks as one job, with the launcher of their MPI library."),
    "slow size": ("warning", "Let omb-py tune look for an algorithm that is faster at this size."),
    "one rank": ("warning", "Build nccl-tests with MPI=1, or give it more devices (-g)."),
    "oversubscribed": ("warning", "Start at most one rank per core."),
    "busy machine": ("warning", "Measure again on a node that runs nothing else."),
    "slow transport": ("warning", "Choose the MPI library's transport for this network."),
    "uncertain": ("warning", "Measure more iterations (-i, --precision), or repeat the launches."),
    "slow rank": ("warning", "Bind each rank to a core of its own, and measure with omb-py pairs."),
}
"""The severity of each kind of anomaly, and what to do about it."""


@dataclass(frozen=True)
class Anomaly:
    """One reason not to believe a number.

    ``kind`` is one of `KINDS`, ``where`` the columns that name the line (`SERIES`) with the
    ``bytes`` that it is worst at, ``text`` a sentence with the numbers. ``row`` is the worst row's
    index, None for whole runs.
    """

    kind: str
    where: Mapping[str, object]
    text: str
    row: Hashable = None

    @property
    def severity(self) -> str:
        """One of `SEVERITIES`."""
        return KINDS[self.kind][0]

    def __str__(self) -> str:
        return f"{self.kind}: {self.where.get('benchmark', '')}: {self.text}"


WIDE_INTERVAL = 0.2
"""Width of the median's 95 % interval over the median: beyond it a change of a tenth, which people
look for, cannot be seen."""

SLOW_RANK = 2.0
"""Slowest over fastest rank's mean: ranks of a tree leave it at different times by themselves, but
seldom that much."""

ONE_SIDED = re.compile(r"i?(bcast|reduce|gatherv?|scatterv?|scan|exscan)(_persistent)?")
"""Collectives in which ranks do different things, so that their times differ by nature."""

SHARES = re.compile(r"(?P<others>[\d.]+)% of \d+ cores of (?P<host>\S+), steal (?P<steal>[\d.]+)%")
BUSY_PERCENT = 5.0
"""Percentage of a host's cores taken by other programs, by metadata, that makes a run doubtful."""

MAX_OF_A_KIND = 30
"""Anomalies of one kind that a table lists."""


def anomalies(values: pd.DataFrame, runs: Runs, rows: pd.DataFrame) -> list[Anomaly]:
    """Return the anomalies of benchmark rows and of the metadata of their runs, worst first.

    ``values`` are the rows with their numbers (`value_column`).
    """
    found = [
        *spoilt_rows(rows),
        *cannot_be(values),
        *alone(values, runs),
        *oversubscribed(runs),
        *busy_hosts(runs),
        *by_sockets(runs),
    ]
    width = (values["high"] - values["low"]) / values["value"]
    ranks = values["latency_max_us"] / values["latency_min_us"]
    ranks = ranks.where(~values["benchmark"].astype(str).str.fullmatch(ONE_SIDED))
    found += by_line("uncertain", values, width.where(width > WIDE_INTERVAL), wide)
    found += by_line("slow rank", values, ranks.where(ranks >= SLOW_RANK), slow)
    return found


def cannot_be(values: pd.DataFrame) -> Iterator[Anomaly]:
    """Yield numbers that no machine has, and sizes that are slower than much larger ones."""
    for one in impossible(values):
        row = values.loc[one.row]
        at = at_size(row["bytes"], "At ", " ")
        kind = "slow size" if one.possible else "impossible"
        yield Anomaly(kind, where_of(row), f"{at}{one.sentence}.", one.row)


def alone(values: pd.DataFrame, runs: Runs) -> Iterator[Anomaly]:
    """Yield nccl-tests' tables of processes that ran alone, and tables of one rank.

    Its reader knows how many processes were started. A bus bandwidth of 0 is one rank's.
    """
    for run in dict.fromkeys(values["run"]):
        if reason := runs.get(run, {}).get("alone"):
            yield Anomaly("ran alone", {"run": run}, f"{reason[0].upper()}{reason[1:]}.")
    certain = values["run"].map(lambda run: "alone" in runs.get(run, {})).astype(bool)
    single = values["suite"].astype("string").str.contains("ccl-tests").fillna(False).astype(bool)
    single &= ~certain & (values["busbw_GBps"] == 0) & (values["algbw_GBps"] >= 1)
    for file, rows in values[single].groupby("file", sort=False):
        tables = count(rows["run"].nunique(), "table")
        text = f"{tables} of 1 rank in {file}: each process ran alone, and nothing was sent."
        yield Anomaly("one rank", {"run": rows["run"].iloc[0]}, text)


def by_line(
    kind: str, values: pd.DataFrame, badness: pd.Series, sentence: Callable[[pd.Series], str]
) -> Iterator[Anomaly]:
    """Yield one anomaly for each line with a badness, about its worst row; worst line first."""
    badness = badness.astype("float64")
    badness = badness[np.isfinite(badness)].sort_values(ascending=False, kind="stable")
    if badness.empty:
        return
    odd = values.loc[badness.index]
    line = group_ids(odd[name] for name in SERIES if name in odd)
    for _, rows in odd.groupby(line, sort=False):
        others = rows["bytes"].nunique() - 1
        more = f" (and at {count(others, 'more size')})" if others > 0 else ""
        row = rows.iloc[0]
        at = at_size(row["bytes"], "At ", " ")
        yield Anomaly(kind, where_of(row), f"{at}{sentence(row)}{more}.", row.name)


def where_of(row: pd.Series) -> dict[str, object]:
    """Return the columns that name a row, those that it has."""
    names = [name for name in (*SERIES, "bytes") if name in row.index]
    return {name: row[name] for name in names if not pd.isna(row[name])}


def wide(row: pd.Series) -> str:
    value, low, high = (value_text(row[name], row["unit"]) for name in ("value", "low", "high"))
    return f"the median {value} is only known to lie between {low} and {high}"


def slow(row: pd.Series) -> str:
    least, most = row["latency_min_us"], row["latency_max_us"]
    return (
        f"the slowest rank's mean {value_text(most, 'us')} is {digits(most / least)} times the "
        f"fastest rank's {value_text(least, 'us')}"
    )


def spoilt_rows(rows: pd.DataFrame) -> Iterator[Anomaly]:
    """Yield rows with `faults`, whether or not they have a number."""
    wrong = rows[spoilt(rows)]
    for (_, row), fault in zip(wrong.iterrows(), faults(wrong), strict=True):
        kind, size = FAILED, at_size(row["bytes"])
        text = f"Data that arrived{size} was not the data that was sent"
        if fault == STOPPED:
            kind, text = (
                "stopped job",
                f"The job was stopped for {duration(row['stopped_s'])}{size}",
            )
        yield Anomaly(kind, where_of(row), f"{text} (run {row['run']}).", row.name)


def oversubscribed(runs: Runs) -> Iterator[Anomaly]:
    """Yield hosts with more ranks than logical cores, by the metadata; each host once."""
    hosts: dict[tuple[str, int, int], list[str]] = {}
    for run, data in runs.items():
        for host in crowded_hosts(data):
            hosts.setdefault(host, []).append(run)
    for (name, ranks, cores), members in hosts.items():
        text = (
            f"{ranks} ranks shared {cores} logical cores of {name} in "
            f"{count(len(members), 'run')}: times include waiting for a core."
        )
        yield Anomaly("oversubscribed", {"run": members[0], "hosts": name}, text)


def busy_hosts(runs: Runs) -> Iterator[Anomaly]:
    """Find runs with other processes on the cores, by their metadata; name the worst."""
    found = []
    for run, data in runs.items():
        if shares := SHARES.match(data.get("other_processes", "")):
            found.append((float(shares["others"]) + float(shares["steal"]), run, shares["host"]))
    busy = [one for one in found if one[0] >= BUSY_PERCENT]
    if busy:
        percent, run, host = max(busy)
        text = (
            f"Other programs used up to {percent:.0f} % of the cores in {count(len(busy), 'run')} "
            f"(most in run {run}): its times may include waiting for a core."
        )
        yield Anomaly("busy machine", {"run": run, "hosts": host}, text)


def by_sockets(runs: Runs) -> Iterator[Anomaly]:
    """Yield network devices that runs left alone for TCP, by the metadata."""
    alike: dict[str, list[str]] = {}
    for run, data in runs.items():
        if devices := slow_transport(data):
            alike.setdefault(devices, []).append(run)
    for devices, members in alike.items():
        text = (
            f"Messages between hosts went over TCP in {count(len(members), 'run')}, and no rank "
            f"opened {devices}: the numbers are those of sockets."
        )
        yield Anomaly("slow transport", {"run": members[0]}, text)


def sheets(found: Sequence[Anomaly], values: pd.DataFrame) -> Iterator[Sheet]:
    """Yield a table of each kind of anomaly, with what to do; ``values`` are rows with numbers."""
    telling = {name: distinctions(rows) for name, rows in values.groupby("benchmark")}
    for kind in dict.fromkeys(one.kind for one in found):
        members = [one for one in found if one.kind == kind]
        rows = []
        for one in members[:MAX_OF_A_KIND]:
            benchmark = one.where.get("benchmark", "")
            names = [name for name in telling.get(benchmark, []) if name in one.where]
            rows.append((str(benchmark), label([one.where[n] for n in names], names), one.text))
        more = len(members) - len(rows)
        yield Sheet(
            kind.capitalize(),
            ("benchmark", "measured with", "finding"),
            tuple(rows),
            (f"and {more} more",) * (more > 0),
            left=3,
            above=f"{members[0].severity}, {len(members)}. {KINDS[kind][1]}",
            keys=tuple(one.row for one in members[:MAX_OF_A_KIND]),
        )


def trust(found: Sequence[Anomaly], values: pd.DataFrame, runs: Runs, rows: pd.DataFrame) -> str:
    """Return the effect of anomalies on all numbers, or without any the checks and their row
    counts."""
    for severity, meaning in SEVERITIES.items():
        kinds = [one.kind for one in found if one.severity == severity]
        if kinds:
            named = (f"{kind} ({kinds.count(kind)})" for kind in dict.fromkeys(kinds))
            return f"Some numbers {meaning}: {', '.join(named)}."
    looked = {
        "impossible numbers": (judged(values), "row"),
        "failed validations": (int(rows["validation"].notna().sum()), "row"),
        "crowded hosts": (sum("hosts" in data for data in runs.values()), "run"),
        "busy hosts": (sum("other_processes" in data for data in runs.values()), "run"),
        "slow transports": (sum(TCP in data.get("transport", "") for data in runs.values()), "run"),
        "uncertain medians": (int(values["high"].notna().sum()), "row"),
        "slow ranks": (int(values["latency_max_us"].notna().sum()), "row"),
    }
    where = [f"{what} in {count(*of)}" for what, of in looked.items() if of[0]]
    if not where:
        return "These numbers have no evidence: no validation, interval or host."
    return f"Looked for, and not found: {', '.join(where)}."
