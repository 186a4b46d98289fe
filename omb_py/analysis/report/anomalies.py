"""What is wrong with results or may mislead, by rules that are written down here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.guidelines.check import ALIKE, OPEN, VIOLATED, check
from omb_py.analysis.guidelines.text import sentence
from omb_py.analysis.points import SERIES, group_ids
from omb_py.core.text.units import digits, size_text, value_text

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
        launches = np.bincount(
            group_ids(values[name] for name in (*SERIES, "bytes") if name in values)
        )
        found += violated_guidelines(rows) if launches.max() >= MIN_RUNS else ()
    return sorted(found, key=lambda anomaly: SEVERITIES.index(anomaly.severity))


def violated_guidelines(rows: pd.DataFrame) -> Iterator[Anomaly]:
    """Calls that are slower than others that do the same, by more than noise."""
    points = check(rows)
    names = ("benchmark", *ALIKE, *OPEN, "bytes")
    for row in points[points["verdict"] == VIOLATED].to_dict("records"):
        where = {name: plain(row[name]) for name in names if not pd.isna(row[name])}
        yield Anomaly("guideline violated", where, f"{sentence(row)}.", "note")


def of_samples(values: pd.DataFrame) -> Iterator[Anomaly]:
    """What single rows tell: intervals, ranks and starts."""
    width = (values["high"] - values["low"]) / values["value"]
    alike = ~values["benchmark"].astype(str).str.fullmatch(ONE_SIDED)
    ranks = (values["latency_max_us"] / values["latency_min_us"]).where(alike)
    behind = values["slowest_p50_us"] / values["sample_p50_us"]
    late = values["late_starts"] / values["iterations"]
    rules = (
        ("uncertain", "warning", width, width > WIDE_INTERVAL, wide_interval),
        ("slow rank", "warning", ranks, ranks >= SLOW_RANK, slow_rank_on_average),
        (
            *("slow rank", "note", behind),
            alike & (behind >= SLOW_RANK) & ~(ranks >= SLOW_RANK),
            slow_rank_each_time,
        ),
        ("late starts", "warning", late, late > LATE_STARTS, late_starts),
    )
    for kind, severity, badness, odd, words in rules:
        yield from by_line(kind, severity, values, badness.where(odd), words)


def by_line(
    kind: str,
    severity: str,
    values: pd.DataFrame,
    badness: pd.Series,
    sentence: Callable[[pd.Series], str],
) -> Iterator[Anomaly]:
    """One anomaly for each line with a badness, about its worst row; the worst line first."""
    odd = badness.notna() & np.isfinite(badness.astype("float64"))
    if not odd.any():
        return
    frame = values[odd]
    line = group_ids(frame[name] for name in SERIES if name in frame)
    by_size = badness[odd].astype("float64").groupby(line)
    worst = by_size.idxmax()[by_size.max().sort_values(ascending=False, kind="stable").index]
    others_of = frame["bytes"].groupby(line).nunique() - 1
    for index, others in zip(worst, others_of[worst.index], strict=True):
        row = values.loc[index]
        more = f" (and at {others} more size{'s' * (others > 1)})" if others > 0 else ""
        yield Anomaly(kind, where_of(row), f"{sentence(row)}{more}.", severity)


def where_of(row: pd.Series) -> dict[str, object]:
    """The columns that name a row, those that it has."""
    names = [*(name for name in SERIES if name in row.index), "bytes"]
    return {name: plain(row[name]) for name in names if not pd.isna(row[name])}


def plain(value: Any) -> object:
    """A value as Python has it, whatever kind of number a table keeps it as."""
    return value.item() if isinstance(value, np.generic) else value


def at(row: pd.Series) -> str:
    """The message size of a row, as the beginning of a sentence."""
    return "" if pd.isna(row["bytes"]) else f"At {size_text(row['bytes'])} "


def microseconds(value: float) -> str:
    """A time that is given in microseconds."""
    return value_text(value, "us")


def wide_interval(row: pd.Series) -> str:
    unit = row["unit"]
    return (
        f"{at(row)}the median {value_text(row['value'], unit)} is only known to lie between "
        f"{value_text(row['low'], unit)} and {value_text(row['high'], unit)}"
    )


def slow_rank_on_average(row: pd.Series) -> str:
    return (
        f"{at(row)}the slowest rank's mean {microseconds(row.latency_max_us)} is "
        f"{digits(row.latency_max_us / row.latency_min_us)} times the fastest rank's "
        f"{microseconds(row.latency_min_us)}"
    )


def slow_rank_each_time(row: pd.Series) -> str:
    return (
        f"{at(row)}the slowest rank of an iteration takes {microseconds(row.slowest_p50_us)}, "
        f"{digits(row.slowest_p50_us / row.sample_p50_us)} times the mean of all ranks "
        f"{microseconds(row.sample_p50_us)}"
    )


def late_starts(row: pd.Series) -> str:
    return (
        f"{at(row)}a rank came too late to {row['late_starts']} of {row['iterations']} "
        "iterations: the others waited for it"
    )


def failed_validations(rows: pd.DataFrame) -> Iterator[Anomaly]:
    """Rows whose data was wrong, whether or not they have a number."""
    failed = rows[rows["validation"] == "Fail"]
    for _, row in failed.iterrows():
        size = "" if pd.isna(row["bytes"]) else f" at {size_text(row['bytes'])}"
        text = f"Data that arrived{size} was not the data that was sent (run {row['run']})."
        yield Anomaly("failed validation", where_of(row), text, "error")


def oversubscribed(runs: Mapping[str, Mapping[str, str]]) -> Iterator[Anomaly]:
    """Hosts with more ranks than logical cores, as metadata has it; each such host said once."""
    hosts: dict[tuple[str, int, int], list[str]] = {}
    for run, data in runs.items():
        cores = re.search(r"(\d+) logical cores", data.get("processor", ""))
        for host in data.get("hosts", "").split():
            name, _, ranks = host.rpartition(":")
            if cores and ranks.isdecimal() and int(ranks) > int(cores[1]):
                hosts.setdefault((name, int(ranks), int(cores[1])), []).append(run)
    for (host, number, available), members in hosts.items():
        text = (
            f"{number} ranks shared {available} logical cores of {host} in {len(members)} "
            f"run{'s' * (len(members) > 1)}: times include waiting for a core."
        )
        yield Anomaly("oversubscribed", {"run": members[0], "hosts": host}, text, "warning")


def busy_hosts(runs: Mapping[str, Mapping[str, str]]) -> Iterator[Anomaly]:
    """Runs during which other processes used the cores, as metadata has it; the worst is named."""
    found = []
    for run, data in runs.items():
        shares = SHARES.match(data.get("other_processes", ""))
        if shares and float(shares["others"]) + float(shares["steal"]) >= BUSY_PERCENT:
            found.append((float(shares["others"]) + float(shares["steal"]), run, shares["host"]))
    if found:
        percent, run, host = max(found)
        text = (
            f"Other programs used up to {percent:.0f} % of the cores in {len(found)} "
            f"run{'s' * (len(found) > 1)} (most in run {run}): its times may include waiting for "
            "a core."
        )
        yield Anomaly("busy machine", {"run": run, "hosts": host}, text, "warning")
