"""Impossible numbers: rules, each with the physical limit or the definition behind it.

A rule reports only numbers that no machine of today explains. Caches, protocol switches and busy
cores can explain a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from omb_py.analysis.points import SERIES, group_ids
from omb_py.core.text.units import digits, size_text, value_text

CORE_GBPS = 200.0
"""GB/s that no core copies, and so no two ranks exchange in host memory. A core loads at most two
64-byte vectors a cycle from its own cache, and stores one: 64 B x 5.7 GHz would be 365 GB/s out of
a first-level cache of 48 KiB; from there to the other core's buffer, the fastest measured copies of
larger blocks are below 100 GB/s."""

LARGE = 1 << 16
"""Bytes above which a block does not fit a first-level cache twice."""

DEVICE_GBPS = 900.0
"""GB/s in one direction of all NVLinks of a GPU of the Blackwell generation (18 x 50 GB/s, NVIDIA
GB200 data sheet), the most that a GPU has."""

NODE_GBPS = 800.0
"""GB/s in one direction of the network cards of a node: eight of 800 Gbit/s (NVIDIA ConnectX-8 in
DGX B300), the most that a node has. Devices of a rack may share NVLink beyond their node (GB200
NVL72), so theirs is `DEVICE_GBPS` for each rank."""

FLAT = 1.05
"""Ratio of two times from which the second counts as longer."""

STEEPER = 1.5
"""The smallest slowdown of the next bytes over a flat part that is not a coincidence."""

FALL = 2 / 3
"""Share of its peak below which the bandwidth of a link between devices does not fall with size:
devices have no cache between them that large messages would miss."""

SLOWER_THAN_LARGER = 30.0
"""The largest ratio of a message's time to a larger one's by a change of protocol, a first call or
a rank that another process delayed."""

ROUNDING = 0.0051
"""Half of the second decimal of native OMB, with the error of its own rounding."""

ON_A_DEVICE = tuple("cupy dpnp numba pycuda torch cuda managed openacc rocm sycl".split())
"""Buffers of omb-py and native OMB that may be on a device."""

EXCHANGED = {"alltoall": 1, "ialltoall": 1, "allgather": 0, "iallgather": 0}
"""Collectives in which each node receives data of all ranks elsewhere: whether each of its ranks
gets data of its own."""

ONE_WAY = {"latency": 1, "latency_mt": 1, "bw": 1, "bibw": 2}
"""Point-to-point benchmarks of one pair, and the directions in which their number counts bytes."""


@dataclass(frozen=True)
class Impossible:
    """A number that cannot be: the row's index in the table, and a sentence with the numbers.

    ``possible`` numbers are unlikely only: a machine that did something else explains them.
    """

    row: object
    sentence: str
    possible: bool = False


def impossible(values: pd.DataFrame) -> list[Impossible]:
    """Return the numbers of benchmark rows that cannot be, each once, by the first rule that it
    breaks.

    ``values`` are rows with the columns of `values.value_column`.
    """
    values = values[values["part"].isna()]
    sized = values[values["bytes"] > 0]
    line = group_ids(sized[name] for name in SERIES if name in sized)
    found: dict[object, Impossible] = {}
    for rule in (above_maximum, above_links, above_network):
        for one in rule(values):
            found.setdefault(one.row, one)
    for one in (*along_lines(sized, line), *slower_than_larger(sized, line)):
        found.setdefault(one.row, one)
    return list(found.values())


def judged(values: pd.DataFrame) -> int:
    """Return how many rows a rule can accuse: of known ranks, large, or next to another size."""
    ranks = values["latency_max_us"].notna() | values["latency_min_us"].notna()
    names = values["benchmark"].isin([*ONE_WAY, *EXCHANGED])
    line = group_ids(values[name] for name in SERIES if name in values)
    others = values["bytes"].groupby(line).transform("nunique") > 1
    timed = others & (values["unit"] == "us")
    return int((ranks | (names & (values["bytes"] >= LARGE)) | timed).fillna(False).sum())


def along_lines(sized: pd.DataFrame, line: np.ndarray) -> Iterator[Impossible]:
    """Yield findings of `flat` and `falling` in lines that are faster than a core copies."""
    fast = gigabytes_per_second(sized) > CORE_GBPS
    suspected = np.isin(line, np.unique(line[fast.to_numpy(bool)]))
    for _, rows in sized[suspected].groupby(line[suspected], sort=False):
        points = rows.drop_duplicates("bytes").set_index("bytes", drop=False).sort_index()
        points["value"] = rows.groupby("bytes")["value"].median()
        for check in (flat, falling):
            for size, sentence in check(points):
                yield Impossible(rows.index[rows["bytes"] == size][0], sentence)


def above_maximum(values: pd.DataFrame) -> Iterator[Impossible]:
    """Find means over ranks above that of the slowest rank or below that of the fastest."""
    for sign, name, word in ((1, "latency_max_us", "above"), (-1, "latency_min_us", "below")):
        if name not in values:
            continue
        beyond = sign * (values["latency_us"] - values[name]) > 2 * ROUNDING
        for index, row in values[beyond].iterrows():
            end = "slowest" if sign > 0 else "fastest"
            yield Impossible(
                index,
                f"the average {value_text(row['latency_us'], 'us')} is {word} the {end} rank's "
                f"{value_text(row[name], 'us')}",
            )


def gigabytes_per_second(values: pd.DataFrame) -> pd.Series:
    """Return the rate of the bytes of one pair in one direction; missing for other benchmarks."""
    ways = values["benchmark"].astype(object).map(ONE_WAY).astype("float64")
    rate = values["value"].where(values["unit"] == "MB/s") / 1e3 / ways
    timed = (values["unit"] == "us") & ways.notna()
    return rate.where(~timed, values["bytes"] / values["value"] / 1e3)


def limits_of(values: pd.DataFrame) -> pd.Series:
    """Return the GB/s that one pair of messages in memory cannot exceed, from `LARGE` bytes on."""
    device = values["placement"].astype("string").str.contains("[DM]")
    known = device.fillna(values["buffer"].isin(ON_A_DEVICE))
    return known.map({True: DEVICE_GBPS, False: CORE_GBPS}).astype("float64")


def above_links(values: pd.DataFrame) -> Iterator[Impossible]:
    """Find pairs faster than a copy by a core, or than all links of a device."""
    values = values[values["bytes"] >= LARGE]
    rates, limits = gigabytes_per_second(values), limits_of(values)
    for index, rate in rates[rates > limits].items():
        what = "one core copies" if limits[index] == CORE_GBPS else "all links of a device carry"
        yield Impossible(
            index, f"{digits(rate)} GB/s in one direction: {what} at most {limits[index]:g} GB/s"
        )


def above_network(values: pd.DataFrame) -> Iterator[Impossible]:
    """Find collectives faster than a node's data through its network cards."""
    own = values["benchmark"].astype(object).map(EXCHANGED).astype("float64")
    nodes = values["hosts"].astype("Float64")
    each = values["ranks"].astype("Float64") / nodes
    received = (values["ranks"] - each) * values["bytes"].astype("Float64")
    received = received.where(own == 0, received * each)
    rate = received / values["value"] / 1e3
    limit = (each * DEVICE_GBPS).where(limits_of(values) == DEVICE_GBPS, NODE_GBPS)
    for index, one in rate[(nodes > 1) & own.notna() & (rate > limit)].items():
        yield Impossible(
            index,
            f"each node would receive {digits(float(one))} GB/s: all links of a node carry at most "
            f"{float(limit[index]):g} GB/s",
        )


Points = Iterator[tuple[float, str]]


def flat(points: pd.DataFrame) -> Points:
    """Find times that do not grow over a doubling, which implies a link that carries more soon.

    t(s) >= s / B holds for a link of B bytes a second; if t(2s) = t(s), B is 2s / t at least, and
    the next n bytes take n / B.
    """
    if points["unit"].iloc[0] != "us":
        return
    sizes, times = points.index.to_numpy(float), points["value"].to_numpy(float)
    for one in np.flatnonzero(sizes >= LARGE):
        for two in np.flatnonzero((sizes >= 2 * sizes[one]) & (times <= FLAT * times[one])):
            rate = sizes[two] / times[two] / 1e3
            later = np.flatnonzero(sizes >= 2 * sizes[two])
            if rate < CORE_GBPS or not len(later):
                continue
            after = later[0]
            rest = (sizes[after] - sizes[two]) / (times[after] - times[two]) / 1e3
            if 0 < rest < rate / STEEPER:
                yield (
                    sizes[two],
                    f"{value_text(times[two], 'us')} is the time of {size_text(sizes[one])}, too, "
                    f"and would be {digits(rate)} GB/s; the bytes beyond it have {digits(rest)} "
                    "GB/s",
                )
                return


def falling(points: pd.DataFrame) -> Points:
    """Find bandwidths between devices that fall by a third from their peak."""
    points = points[(points.index >= LARGE) & (limits_of(points) == DEVICE_GBPS)]
    rates = gigabytes_per_second(points)
    if rates.empty or rates.max() < CORE_GBPS:
        return
    peak = rates.idxmax()
    after = rates[rates.index > peak]
    if len(after) and after.min() < FALL * rates.max():
        yield (
            float(peak),
            f"{digits(rates.max())} GB/s is the peak, and {size_text(after.idxmin())} has "
            f"{digits(after.min())} GB/s: no link between devices loses a third with size",
        )


def slower_than_larger(sized: pd.DataFrame, line: np.ndarray) -> Iterator[Impossible]:
    """Find messages that take many times longer than a larger one."""
    timed = sized.assign(line=line)[sized["unit"] == "us"]
    points = timed.groupby(["line", "bytes"])["value"].median()
    larger = points[::-1].groupby(level="line").cummin()[::-1].groupby(level="line").shift(-1)
    ratios = points / larger
    for (name, size), ratio in ratios[ratios > SLOWER_THAN_LARGER].items():
        row = timed.index[(timed["line"] == name) & (timed["bytes"] == size)][0]
        text = f"{value_text(points[name, size], 'us')} is {digits(ratio)} times the time of a "
        yield Impossible(row, f"{text}larger message", possible=True)
