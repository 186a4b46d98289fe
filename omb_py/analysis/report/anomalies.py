"""What is wrong with results or may mislead, by rules that are written down here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from omb_py.analysis.guidelines.check import ALIKE, OPEN, VIOLATED, check
from omb_py.analysis.guidelines.text import sentence
from omb_py.analysis.points import SERIES, group_ids
from omb_py.core.text.units import digits, size_text, value_text
from omb_py.core.text.words import count
from omb_py.results.metadata import crowded_hosts

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Anomaly:
    """One thing that is odd.

    ``kind`` is one word or two, ``where`` the columns that name the line (`SERIES`) with the
    ``bytes`` that it is worst at, ``text`` a sentence with the numbers, ``severity`` one of
    `SEVERITIES`: the numbers are wrong, may mislead, or are worth knowing.
    """

    kind: str
    where: Mapping[str, object]
    text: str
    severity: str


WIDE_INTERVAL = 0.2
"""Width of the median's 95 % interval over the median: beyond it a change of a tenth, which people
look for, cannot be seen."""

MIN_RUNS = 4
"""Runs of one point without which no guideline can be called violated."""

SLOW_RANK = 2.0
"""Slowest over fastest rank's mean: ranks of a tree leave it at different times by themselves, but
seldom that much."""

LATE_STARTS = 0.05
"""Share of iterations that a rank came too late to: what is left is still a fair sample."""

ONE_SIDED = re.compile(r"i?(bcast|reduce|gatherv?|scatterv?|scan|exscan)(_persistent)?")
"""Collectives in which ranks do different things, so that their times differ by nature."""

SHARES = re.compile(r"(?P<others>[\d.]+)% of \d+ cores of (?P<host>\S+), steal (?P<steal>[\d.]+)%")
BUSY_PERCENT = 5.0
"""What other programs took of a host's cores, by a run's metadata, from which a run is doubtful."""


def anomalies(
    values: pd.DataFrame, runs: Mapping[str, Mapping[str, str]], rows: pd.DataFrame
) -> list[Anomaly]:
    """What is wrong or may mislead in benchmark rows and the metadata of their runs, worst first.

    ``values`` are the rows with their numbers (`value_column`).
    """
    found = [*failed_validations(rows), *oversubscribed(runs), *busy_hosts(runs)]
    if len(values):
        found += of_samples(values)
        names = [name for name in (*SERIES, "bytes") if name in values]
        if np.bincount(group_ids(values[name] for name in names)).max() >= MIN_RUNS:
            found += violated_guidelines(rows)
    return sorted(found, key=lambda anomaly: SEVERITIES.index(anomaly.severity))


def violated_guidelines(rows: pd.DataFrame) -> Iterator[Anomaly]:
    """Calls that are slower than others that do the same, by more than noise."""
    points = check(rows)
    for _, row in points[points["verdict"] == VIOLATED].iterrows():
        where = where_of(row, ("benchmark", *ALIKE, *OPEN, "bytes"))
        yield Anomaly("guideline violated", where, f"{sentence(row.to_dict())}.", "note")


def of_samples(values: pd.DataFrame) -> Iterator[Anomaly]:
    """What single rows tell: intervals, ranks and starts."""
    width = (values["high"] - values["low"]) / values["value"]
    alike = ~values["benchmark"].astype(str).str.fullmatch(ONE_SIDED)
    ranks = (values["latency_max_us"] / values["latency_min_us"]).where(alike)
    behind = (values["slowest_p50_us"] / values["sample_p50_us"]).where(alike)
    behind = behind.where(~(ranks >= SLOW_RANK))
    late = values["late_starts"] / values["iterations"]
    yield from by_line("uncertain", "warning", values, width.where(width > WIDE_INTERVAL), wide)
    yield from by_line("slow rank", "warning", values, ranks.where(ranks >= SLOW_RANK), slow)
    yield from by_line("slow rank", "note", values, behind.where(behind >= SLOW_RANK), often_slow)
    yield from by_line(
        "late starts", "warning", values, late.where(late > LATE_STARTS), late_starts
    )


def by_line(
    kind: str,
    severity: str,
    values: pd.DataFrame,
    badness: pd.Series,
    sentence: Callable[[pd.Series], str],
) -> Iterator[Anomaly]:
    """One anomaly for each line with a badness, about its worst row; the worst line first."""
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
        at = "" if pd.isna(row["bytes"]) else f"At {size_text(row['bytes'])} "
        yield Anomaly(kind, where_of(row), f"{at}{sentence(row)}{more}.", severity)


def where_of(row: pd.Series, names: Iterable[str] = (*SERIES, "bytes")) -> dict[str, object]:
    """The columns that name a row, those that it has, with Python's own numbers."""
    found = {name: row[name] for name in names if name in row.index and not pd.isna(row[name])}
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in found.items()
    }


def wide(row: pd.Series) -> str:
    value, low, high = (value_text(row[name], row["unit"]) for name in ("value", "low", "high"))
    return f"the median {value} is only known to lie between {low} and {high}"


def slow(row: pd.Series) -> str:
    least, most = row["latency_min_us"], row["latency_max_us"]
    return (
        f"the slowest rank's mean {value_text(most, 'us')} is {digits(most / least)} times the "
        f"fastest rank's {value_text(least, 'us')}"
    )


def often_slow(row: pd.Series) -> str:
    usual, slowest = row["sample_p50_us"], row["slowest_p50_us"]
    return (
        f"the slowest rank of an iteration takes {value_text(slowest, 'us')}, "
        f"{digits(slowest / usual)} times the mean of all ranks {value_text(usual, 'us')}"
    )


def late_starts(row: pd.Series) -> str:
    late, of = row["late_starts"], row["iterations"]
    return f"a rank came too late to {late} of {of} iterations: the others waited for it"


def failed_validations(rows: pd.DataFrame) -> Iterator[Anomaly]:
    """Rows whose data was wrong, whether or not they have a number."""
    for _, row in rows[rows["validation"] == "Fail"].iterrows():
        size = "" if pd.isna(row["bytes"]) else f" at {size_text(row['bytes'])}"
        text = f"Data that arrived{size} was not the data that was sent (run {row['run']})."
        yield Anomaly("failed validation", where_of(row), text, "error")


def oversubscribed(runs: Mapping[str, Mapping[str, str]]) -> Iterator[Anomaly]:
    """Hosts with more ranks than logical cores, as metadata has it; each such host said once."""
    hosts: dict[tuple[str, int, int], list[str]] = {}
    for run, data in runs.items():
        for host in crowded_hosts(data):
            hosts.setdefault(host, []).append(run)
    for (name, ranks, cores), members in hosts.items():
        text = (
            f"{ranks} ranks shared {cores} logical cores of {name} in "
            f"{count(len(members), 'run')}: times include waiting for a core."
        )
        yield Anomaly("oversubscribed", {"run": members[0], "hosts": name}, text, "warning")


def busy_hosts(runs: Mapping[str, Mapping[str, str]]) -> Iterator[Anomaly]:
    """Runs during which other processes used the cores, as metadata has it; the worst is named."""
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
        yield Anomaly("busy machine", {"run": run, "hosts": host}, text, "warning")
