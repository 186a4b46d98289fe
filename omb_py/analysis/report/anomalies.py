"""What is odd about results: said in sentences, found by rules that are written down here.

Files keep percentiles, not samples. What is said of the shape of a distribution is therefore only
likely, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.guidelines.check import ALIKE, OPEN, VIOLATED, check
from omb_py.analysis.guidelines.text import sentence
from omb_py.analysis.points import SERIES, Points, group_ids
from omb_py.core.text.units import digits, size_text, value_text
from omb_py.core.text.words import count

FASTER = 1.1
"""Factor by which a larger message must be faster, besides their intervals being apart."""


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


def larger_is_faster(points: Points) -> Iterator[Anomaly]:
    """Sizes that take less time than a smaller one of their line, each line's worst.

    Of several runs the interval is their range; a point without an interval is one by itself.
    """
    frame = points.points
    frame = frame[(pd.to_numeric(frame["bytes"]).fillna(0) > 0) & (frame["value"] > 0)]
    unit = points.series["unit"].reindex(frame["series"]).to_numpy()
    amount = np.where(unit == "MB/s", frame["bytes"].to_numpy(dtype="float64"), 1.0)
    several = frame["runs"] > 1

    def time(of_runs: str, of_samples: str) -> pd.Series:
        ends = frame[of_runs].where(several, frame[of_samples])
        ends = ends.where(ends > 0, frame["value"]).astype("float64")
        return pd.Series(np.where(unit == "us", ends, amount / ends), frame.index)

    low, high = time("minimum", "low"), time("maximum", "high")
    times = time("value", "value")
    shortest, longest = np.minimum(low, high), np.maximum(low, high)
    before = times.groupby(frame["series"]).shift()
    clear = longest < shortest.groupby(frame["series"]).shift()
    gain = (before / times).where(clear & (before > FASTER * times))
    for number, gains in gain.dropna().groupby(frame["series"]):
        place = gains.idxmax()
        row, previous = frame.loc[place], frame.loc[frame.index[frame.index.get_loc(place) - 1]]
        line = points.series.iloc[int(number)]
        where = {name: plain(line[name]) for name in SERIES if not pd.isna(line[name])}
        more = f" (and at {count(len(gains) - 1, 'more size')})" if len(gains) > 1 else ""
        values = [value_text(float(one["value"]), line["unit"]) for one in (row, previous)]
        text = (
            f"{size_text(row['bytes'])} takes less time than {size_text(previous['bytes'])}, by "
            f"more than their intervals: {values[0]} after {values[1]}{more}."
        )
        yield Anomaly("larger is faster", {**where, "bytes": int(row["bytes"])}, text, "note")


MIN_SAMPLES = 100
"""Iterations below which the outer percentiles are single samples and say nothing of a shape."""

WIDE_INTERVAL = 0.2
"""Width of the median's 95 % interval over the median: beyond it a change of a tenth, which people
look for, cannot be seen."""

LONG_TAIL = 1.25
"""Mean over median: a quarter of all time is then in iterations that a median does not see."""

MODES_APART = 1.5
"""90th percentile over median from which a second mode is worth a word."""

MODES_FLAT = 1.1
"""95th over 90th percentile up to which the upper tenth lies together as a mode does; of one
log-normal mode with the same 90th percentile it is 1.12 or more."""

MODES_FLOOR = 1.2
"""Median over minimum up to which the lower mode is narrow; one wide mode has more than 2."""

MIN_RUNS = 4
"""Runs of one point from which groups of them can be told: two in each."""

GROUPS_APART = 1.15
"""Quotient across the gap between two groups of runs: less is common between two starts."""

GROUPS_GAP = 3.0
"""The gap between two groups over the wider group's range, in logarithms."""

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
    values: pd.DataFrame,
    runs: Mapping[str, Mapping[str, str]],
    points: Points | None,
    rows: pd.DataFrame,
) -> list[Anomaly]:
    """What is wrong or may mislead in benchmark rows and the metadata of their runs, worst first.

    ``values`` are `values_of` the rows, ``points`` `points_of` these, None where there are none.
    """
    found = [*failed_validations(rows), *oversubscribed(runs), *busy_hosts(runs)]
    if points is not None:
        found += [*of_samples(values), *groups_of_runs(values), *larger_is_faster(points)]
        if bool((points.points["runs"] >= MIN_RUNS).any()):
            found += violated_guidelines(rows)
    return sorted(found, key=lambda anomaly: SEVERITIES.index(anomaly.severity))


def violated_guidelines(rows: pd.DataFrame) -> Iterator[Anomaly]:
    """Calls that are slower than others that do the same, by more than noise."""
    points = check(rows)
    names = ("benchmark", *ALIKE, *OPEN, "bytes")
    for row in points[points["verdict"] == VIOLATED].to_dict("records"):
        where = {name: plain(row[name]) for name in names if not pd.isna(row[name])}
        yield Anomaly("guideline violated", where, f"{sentence(row)}.", "note")


def of_samples(values: pd.DataFrame) -> Iterator[Anomaly]:
    """What single rows tell: intervals, shapes of distributions, ranks and starts."""
    many = values["iterations"].fillna(0) >= MIN_SAMPLES
    median, p90 = values["sample_p50_us"], values["sample_p90_us"]
    width = (values["high"] - values["low"]) / values["value"]
    yield from by_line(
        "uncertain", "warning", values, width.where(width > WIDE_INTERVAL), wide_interval
    )
    modes = many & (values["sample_p95_us"] <= MODES_FLAT * p90)
    modes &= median <= MODES_FLOOR * values["sample_min_us"]
    apart = (p90 / median).where(modes & (p90 >= MODES_APART * median))
    yield from by_line("two modes", "note", values, apart, two_modes)
    tail = values["sample_mean_us"] / median
    tail = tail.where(many & (tail >= LONG_TAIL) & apart.isna())
    yield from by_line("long tail", "note", values, tail, long_tail)
    alike = ~values["benchmark"].astype(str).str.fullmatch(ONE_SIDED)
    ranks = (values["latency_max_us"] / values["latency_min_us"]).where(alike)
    yield from by_line(
        "slow rank", "warning", values, ranks.where(ranks >= SLOW_RANK), slow_rank_on_average
    )
    behind = (values["slowest_p50_us"] / median).where(alike & ~(ranks >= SLOW_RANK))
    yield from by_line(
        "slow rank", "note", values, behind.where(behind >= SLOW_RANK), slow_rank_each_time
    )
    late = (values["late_starts"] / values["iterations"]).astype("float64")
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


def two_modes(row: pd.Series) -> str:
    return (
        f"{at(row)}iterations likely have two modes: the median {microseconds(row.sample_p50_us)} "
        f"is close to the minimum {microseconds(row.sample_min_us)}, but one iteration in ten "
        f"takes {microseconds(row.sample_p90_us)} or more"
    )


def long_tail(row: pd.Series) -> str:
    share = next(
        (
            words
            for name, words in (
                ("sample_p999_us", "in a thousand"),
                ("sample_p99_us", "in a hundred"),
                ("sample_p95_us", "in twenty"),
                ("sample_p90_us", "in ten"),
            )
            if row[name] <= 2 * row.sample_p50_us
        ),
        None,
    )
    few = f"likely fewer than one iteration {share} takes" if share else "many iterations take"
    return (
        f"{at(row)}the mean {microseconds(row.sample_mean_us)} is "
        f"{digits(row.sample_mean_us / row.sample_p50_us)} times the median "
        f"{microseconds(row.sample_p50_us)}: {few} very long, up to "
        f"{microseconds(row.sample_max_us)}"
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


def groups_of_runs(values: pd.DataFrame) -> Iterator[Anomaly]:
    """Points whose runs fall into two groups that are far apart."""
    names = [*(name for name in SERIES if name in values), "bytes"]
    place = group_ids(values[name] for name in names)
    order = np.lexsort((values["value"], place))
    place = place[order]
    level = np.log(values["value"].to_numpy(dtype="float64")[order])
    _, first, count = np.unique(place, return_index=True, return_counts=True)
    many = count >= MIN_RUNS
    if not many.any():
        return
    gaps = np.where(place[1:] == place[:-1], np.diff(level), -1.0)
    starts, ends = first[many], first[many] + count[many] - 1
    badness = pd.Series(np.nan, index=values.index)
    split: dict[object, tuple[float, float, int, int]] = {}
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        below = start + 1 + int(np.argmax(gaps[start + 1 : end - 1]))
        gap = gaps[below]
        wider = max(level[below] - level[start], level[end] - level[below + 1])
        if gap >= np.log(GROUPS_APART) and gap >= GROUPS_GAP * wider:
            index = values.index[order[start]]
            badness[index] = gap
            lower, upper = (
                float(np.exp(np.median(level[start : below + 1]))),
                float(np.exp(np.median(level[below + 1 : end + 1]))),
            )
            split[index] = (lower, upper, below + 1 - start, end - below)

    def sentence(row: pd.Series) -> str:
        lower, upper, few, others = split[row.name]
        return (
            f"{at(row)}runs fall into two groups: {few} near {value_text(lower, row['unit'])} and "
            f"{others} near {value_text(upper, row['unit'])}"
        )

    yield from by_line("two groups of runs", "warning", values, badness, sentence)
