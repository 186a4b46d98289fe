"""Impossible numbers: rules, each with the physical limit or the definition behind it.

A rule reports only numbers that no machine of today explains. Caches, protocol switches and busy
cores can explain a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from omb_py.analysis.points import SERIES, group_ids, points_of
from omb_py.analysis.values import travelling
from omb_py.benchmarks.collective import TABLE, Collective
from omb_py.core.options import Options
from omb_py.core.text.units import digits, is_time, size_text, value_text

CORE_GBPS = 200.0
"""GB/s that no core copies, and so no two ranks exchange in host memory. A core loads at most two
64-byte vectors a cycle from its own cache, and stores one: 64 B x 5.7 GHz would be 365 GB/s out of
a first-level cache of 48 KiB; from there to the other core's buffer, the fastest measured copies of
larger blocks are below 100 GB/s."""

LARGE = 1 << 16
"""Bytes above which a block does not fit a first-level cache twice."""

FIRST_LEVEL_GBPS = 400.0
"""The same for smaller blocks: above the 365 GB/s out of a first-level cache."""

MEMORY_GBPS = 10_600.0
"""GB/s that the memory of a node copies at most: half of the 4 x 5.3 TB/s of four APUs (AMD MI300A
data sheet), since a copy reads and writes each byte."""

CACHES = 4 << 30
"""Bytes that no node's caches hold: two AMD EPYC 9684X have 2.3 GB in their third level."""

EXCHANGE_US = 0.02
"""Microseconds in which no message of MPI gets from one rank to another. The two threads of one
core pass a cache line on in 5 ns, two cores of one die in 15 to 30 ns
(github.com/nviennot/core-to-core-latency); the call that sends and the one that receives come on
top, and the clock is read in between. The shortest latency known to us is 0.1 us."""

CALL_US = 0.002
"""Microseconds that a message's call takes at least. The leanest MPI_Put has 44 instructions, the
leanest MPI_Isend 59 (Raffenetti et al., "Why is MPI so slow?", SC17): 2 ns at 4 instructions a
cycle and 5.7 GHz. Twenty million messages a second are usual for a core, 500 million the limit."""

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

COLLECTIVES = {row.name: row for row in TABLE}

SYMMETRIC = frozenset(
    row.name for row in TABLE if not (row.rooted or row.divided) and row.adds in ("", "all")
)
"""Collectives in which every rank waits for all others."""

EXCHANGED = {"alltoall": 1, "alltoallv": 1, "alltoallw": 1, "allgather": 0, "allgatherv": 0}
"""Collectives in which each node receives data of all ranks elsewhere: whether each of its ranks
gets data of its own."""

RINGS = {"sendrecv": 1, "sendrecv_mt": 1, "exchange": 2}
"""Exchanges along a ring, and the messages that a rank receives."""

ONE_WAY = frozenset(
    "latency latency_mt latency_mp multi_lat probe mprobe partitioned_latency pingpong "
    "pingping".split()
)
ONE_SIDED = frozenset(
    "put_latency get_latency acc_latency get_acc_latency rput_latency rget_latency".split()
)
LOCAL = frozenset(("pack", "unpack"))
"""Benchmarks whose time is that of one message: between two ranks, into or out of another rank's
memory, within one rank."""

ATOMICS = frozenset(("fop_latency", "cas_latency"))

STREAMS = dict.fromkeys("bw put_bw get_bw rput_bw rget_bw partitioned_bw".split(), 1.0)
STREAMS |= dict.fromkeys(("bibw", "put_bibw"), 2.0)
"""Bandwidths of one pair, and the directions that they add up."""

OF_PAIRS = frozenset(("mbw_mr", "put_mr", "get_mr"))
OF_PAIR = frozenset((*ONE_WAY, *ONE_SIDED, *STREAMS))


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
    values = with_rates(values)
    found: dict[object, Impossible] = {}
    for rule in rules(values):
        if rule.broken.any():  # seldom, and taking no row of a wide table costs as much as one
            for index, row in values[rule.broken].iterrows():
                found.setdefault(index, Impossible(index, rule.sentence(row)))
    sized = values[values["bytes"] > 0]
    line = group_ids(sized[name] for name in SERIES if name in sized)
    for one in (*along_lines(sized, line), *slower_than_larger(sized, line)):
        found.setdefault(one.row, one)
    return list(found.values())


def judged(values: pd.DataFrame) -> int:
    """Return how many rows a rule can accuse."""
    values = with_rates(values)
    line = group_ids(values[name] for name in SERIES if name in values)
    others = values["bytes"].groupby(line).transform("nunique") > 1
    able = others & is_time(values["unit"])
    for rule in rules(values):
        able |= rule.applies
    return int(able.sum())


@dataclass(frozen=True)
class Rule:
    """A rule about single rows: those that it ``applies`` to, those by which it is ``broken``, and
    the sentence about one of these."""

    applies: pd.Series
    broken: pd.Series
    sentence: Callable[[pd.Series], str]


def rules(values: pd.DataFrame) -> list[Rule]:
    """Return the rules about single rows (`with_rates`), definitions before limits."""
    return [
        *ends_of_ranks(values),
        *(ascending(values, names) for names in ASCENDING),
        overlap(values),
        rate_of_messages(values),
        algorithm_bandwidth(values),
        bus_bandwidth(values),
        slowest_call(values),
        network(values),
        links(values),
    ]


def along_lines(sized: pd.DataFrame, line: np.ndarray) -> Iterator[Impossible]:
    """Yield findings of `flat` and `falling` in lines that are faster than a core copies."""
    fast = sized["plain"].isin(OF_PAIR) & (sized["rate"] > CORE_GBPS)
    suspected = np.isin(line, np.unique(line[fast.to_numpy(bool)]))
    for _, rows in sized[suspected].groupby(line[suspected], sort=False):
        points = points_of(rows, ["bytes", "unit", "placement", "buffer"], ["rate"])
        points = points.set_index("bytes").sort_index()
        for check in (flat, falling):
            for size, sentence in check(points):
                yield Impossible(rows.index[rows["bytes"] == size][0], sentence)


@cache
def plain_name(benchmark: str) -> str:
    """Return the benchmark that another one is a form of: non-blocking, persistent, or of IMB.

    >>> [plain_name(name) for name in ("iallreduce", "bw_persistent", "imb_ibcast_pure", "init")]
    ['allreduce', 'bw', 'bcast', 'init']
    """
    name = benchmark.removeprefix("imb_").removesuffix("_pure").removesuffix("_persistent")
    bare = name.removeprefix("i")
    return bare if bare in COLLECTIVES or bare.startswith("neighbor_") else name


def with_rates(values: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of whole benchmarks with columns about what their numbers imply.

    ``plain`` is the benchmark that theirs is a form of, ``size`` the bytes of a message that
    travel, ``peers`` the ranks, ``rate`` the GB/s that a rank sends or receives at least, and
    ``gap`` the microseconds from one message to the next. A rate and a gap are missing if they are
    unknown: of one rank, of unequal blocks, of no bytes.
    """
    values = values[values["part"].isna() | values["busbw_GBps"].notna()]
    ranks = values["ranks"].astype("Float64").astype("float64")
    # native OMB's collectives refuse to run on fewer than two ranks
    native = values["suite"].astype("string").str.startswith("OSU").fillna(False).astype(bool)
    values = values.assign(
        plain=values["benchmark"].astype(object).map(plain_name, na_action="ignore"),
        size=travelling(values).where(lambda size: size > 0),
        peers=ranks.where(ranks.notna() | ~native, 2.0),
    )
    timed = is_time(values["unit"])
    total = (values["value"] / 1e3).where(values["unit"] == "MB/s")
    total = total.where(values["unit"] != "msg/s", values["size"] * values["value"] / 1e9)
    rate = (moved(values) / values["value"] / 1e3).where(timed, total / streams(values))
    rate = rate.where((rate > 0) & values["skew"].isna())
    return values.assign(rate=rate, gap=values["value"].where(timed, values["size"] / rate / 1e3))


def moved(values: pd.DataFrame) -> pd.Series:
    """Return the bytes that a rank sends or receives at least while a time runs, a mean of all
    ranks.

    Those of collectives are nccl-tests' (`Collective.traffic`) but for two: a network that adds up
    spares an allreduce half of them, and only the root of a gather or scatter has all blocks.
    """
    name, size, ranks = values["plain"], values["size"], values["peers"]
    several = size.where(ranks > 1)
    found = several.where(name.isin(ONE_WAY | ONE_SIDED)) * name.map(lambda one: 1.0)
    found = found.fillna(several * name.map(RINGS).astype("float64"))
    local = name.isin(LOCAL) & ~on_device(values)
    found = found.where(~local, size)
    # the grid of a neighbourhood gives each of several ranks a neighbour, a graph may not
    grid = name.astype("string").str.startswith("neighbor_").fillna(False).astype(bool)
    grid &= values["topology"].astype("string").str.startswith("cart").fillna(False).astype(bool)
    found = found.where(~grid, several)
    for row in COLLECTIVES.values():
        own = name == row.name
        if own.any() and row.name != "barrier":
            whole, factor = traffic_of(row, several[own], ranks[own])
            least = np.minimum(whole, whole * factor)
            if row.rooted in ("send", "recv") and not row.adds:
                least = least * 2 / ranks[own]
            found[own] = least
    return found


def traffic_of(row: Collective, size: Any, ranks: Any) -> tuple[Any, Any]:
    """Return a collective's `Collective.traffic` of whole columns of sizes and ranks."""
    return row.traffic(Options(), size, ranks)


def streams(values: pd.DataFrame) -> pd.Series:
    """Return the streams of messages, each in one direction, that a bandwidth or rate adds up.

    A rank has one of them; of an unknown benchmark it counts what it sends and what it receives.
    """
    name, ranks = values["plain"], values["peers"].where(values["peers"] > 1)
    pairs = values["pairs"].astype("Float64").astype("float64").fillna(ranks / 2)
    sending = values["threads"].astype("string").str.extract(r"^(\d+):", expand=False)
    other = (2 * ranks).where(values["threads"].isna())
    found = name.map(STREAMS).astype("float64").where(name.isin(list(STREAMS)), other)
    found = found.where(~name.isin(OF_PAIRS), pairs)
    return found.where(name != "mbw_mr_mt", pd.to_numeric(sending).astype("float64"))


def on_device(values: pd.DataFrame) -> pd.Series:
    """Return whether messages are on a device."""
    device = values["placement"].astype("string").str.contains("[DM]")
    return device.fillna(values["buffer"].isin(ON_A_DEVICE)).astype(bool)


def ends_of_ranks(values: pd.DataFrame) -> Iterator[Rule]:
    """Yield rules on means over ranks: not above the slowest rank's, not below the fastest's."""

    def rule(sign: int, name: str, word: str) -> Rule:
        return Rule(
            values[name].notna() & values["latency_us"].notna(),
            sign * (values["latency_us"] - values[name]) > 2 * ROUNDING,
            lambda row: (
                f"the average {value_text(row['latency_us'], 'us')} is {word} rank's "
                f"{value_text(row[name], 'us')}"
            ),
        )

    yield rule(1, "latency_max_us", "above the slowest")
    yield rule(-1, "latency_min_us", "below the fastest")


ASCENDING = (
    tuple(f"sample_{name}_us" for name in "min p50 p90 p95 p99 p999 max".split()),
    ("sample_min_us", "sample_mean_us", "sample_max_us"),
    ("median_low_us", "sample_p50_us", "median_high_us"),
    ("slowest_p50_us", "slowest_p99_us", "slowest_max_us"),
)
"""Columns of a row that never fall, those that are there."""


def ascending(values: pd.DataFrame, names: Sequence[str]) -> Rule:
    """Return the rule on columns that never fall: a median is not above the maximum."""
    ordered = values[list(names)].astype("float64")
    before = ordered.cummax(axis=1).ffill(axis=1).shift(axis=1)
    falls = ordered < before - 2 * ROUNDING - 1e-6 * before

    def sentence(row: pd.Series) -> str:
        there = row[list(names)].astype("float64").dropna()
        low = next(n for n in there.index if falls.loc[row.name, n])
        high = there[: there.index.get_loc(low)].idxmax()
        above, below = value_text(there[high], "us"), value_text(there[low], "us")
        return f"{high} {above} is above {low} {below}"

    return Rule(ordered.notna().sum(axis=1) > 1, falls.any(axis=1), sentence)


def overlap(values: pd.DataFrame) -> Rule:
    """Return the rule on overlap: computing hides between nothing and all of a communication."""
    percent = values["overlap_percent"]
    return Rule(
        percent.notna(),
        (percent < -ROUNDING) | (percent > 100 + ROUNDING),
        lambda row: f"an overlap of {row['overlap_percent']:g} % is not between 0 and 100 %",
    )


def rate_of_messages(values: pd.DataFrame) -> Rule:
    """Return the rule on a bandwidth: messages a second times their bytes."""
    with_gaps = values["layout"].notna() & (values["layout"] != "cont")
    known = values["messages_per_s"].notna() & ~(with_gaps & values["payload_bytes"].isna())
    size, printed = values["size"], values["bandwidth_MBps"]
    product = values["messages_per_s"] * size / 1e6
    # IMB prints whole messages a second
    error = 0.01 * printed + ROUNDING + 0.51 * size / 1e6
    return Rule(
        known & size.notna() & printed.notna(),
        known & ((printed - product).abs() > error),
        lambda row: (
            f"{value_text(row['bandwidth_MBps'], 'MB/s')} are not "
            f"{value_text(row['messages_per_s'], 'msg/s')} of {size_text(row['size'])}: these "
            f"would be {value_text(row['messages_per_s'] * row['size'] / 1e6, 'MB/s')}"
        ),
    )


def traffic(values: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Return nccl-tests' size and factor of collectives of equal blocks; missing for others."""
    size = pd.Series(np.nan, values.index)
    factor = size.copy()
    for row in COLLECTIVES.values():
        own = (values["plain"] == row.name) & values["skew"].isna()
        if own.any() and row.name != "barrier":
            bytes_of = values["bytes"][own].astype("float64")
            size[own], factor[own] = traffic_of(row, bytes_of, values["peers"][own])
    return size, factor


def algorithm_bandwidth(values: pd.DataFrame) -> Rule:
    """Return the rule on an algorithm bandwidth: nccl-tests' size over the time."""
    size, _ = traffic(values)
    printed, time = values["algbw_GBps"], values["latency_us"]
    implied = printed * time * 1e3
    digit = (ROUNDING / time).where(time < 1e6, 0.05)  # from a second on it prints two digits
    error = size * (0.01 + digit) + ROUNDING * time * 1e3
    return Rule(
        implied.notna() & size.notna(),
        (implied - size).abs() > error,
        lambda row: (
            f"{digits(row['algbw_GBps'])} GB/s of algorithm bandwidth in "
            f"{value_text(row['latency_us'], 'us')} would be "
            f"{digits(row['algbw_GBps'] * row['latency_us'] * 1e3)} bytes"
        ),
    )


def bus_bandwidth(values: pd.DataFrame) -> Rule:
    """Return the rule on a bus bandwidth: nccl-tests' factor times the algorithm bandwidth."""
    _, factor = traffic(values)
    whole, bus = values["algbw_GBps"], values["busbw_GBps"]
    implied = whole * factor
    return Rule(
        implied.notna() & bus.notna(),
        (bus - implied).abs() > 0.01 * implied + ROUNDING * (1 + factor),
        lambda row: (
            f"a bus bandwidth of {digits(row['busbw_GBps'])} GB/s does not follow from "
            f"{digits(row['algbw_GBps'])} GB/s on {row['peers']:g} ranks"
        ),
    )


def slowest_call(values: pd.DataFrame) -> Rule:
    """Return the rule on times: those of an exchange between two ranks, and of a call."""
    name, timed = values["plain"], is_time(values["unit"])
    exchange = timed & (values["peers"] != 1) & name.isin(ONE_WAY | SYMMETRIC | RINGS.keys())
    exchange &= (values["size"] > 0) | (name == "barrier")
    exchange &= ((values["peers"] > 1) | name.isin(ONE_WAY)) & values["skew"].isna()
    call = values["rate"].notna() | (timed & name.isin(ATOMICS))
    least = pd.Series(CALL_US, values.index).where(~exchange, EXCHANGE_US)

    def sentence(row: pd.Series) -> str:
        time, floor = value_text(row["gap"], "us"), least[row.name]
        what = "an exchange of two ranks" if floor == EXCHANGE_US else "the call for a message"
        each = "" if is_time(row["unit"]) else " a message"
        return f"{time}{each}: {what} takes {value_text(floor, 'us')} at least"

    return Rule(exchange | call, (exchange | call) & (values["gap"] < least), sentence)


def links(values: pd.DataFrame) -> Rule:
    """Return the rule on rates of a rank: what its core, its device or its share of the node's
    memory carries."""
    device, rate = on_device(values), values["rate"]
    limit = pd.Series(CORE_GBPS, values.index).where(values["size"] >= LARGE, FIRST_LEVEL_GBPS)
    limit = limit.where(~device, DEVICE_GBPS)
    together = values["peers"].where(~values["plain"].isin(OF_PAIRS), streams(values))
    shared = (values["hosts"] == 1).fillna(False).astype(bool) & ~device
    shared &= (values["size"] * together > CACHES) & ~values["plain"].isin(OF_PAIR)
    memory = (MEMORY_GBPS / together).where(shared)
    memory = memory.where(memory < limit)
    limit = memory.fillna(limit)

    def sentence(row: pd.Series) -> str:
        most = limit[row.name]
        what = "one core copies" if not device[row.name] else "all links of a device carry"
        if not pd.isna(memory[row.name]):
            what = f"the memory of a node copies, for each of {together[row.name]:g}"
        whose = "" if row["plain"] in OF_PAIR else ", of each rank"
        rate = digits(row["rate"])
        return f"{rate} GB/s in one direction{whose}: {what} at most {digits(most)} GB/s"

    return Rule(rate.notna(), rate > limit, sentence)


def network(values: pd.DataFrame) -> Rule:
    """Return the rule on collectives between nodes: a node's data passes its network cards."""
    own = values["plain"].map(EXCHANGED).astype("float64")
    nodes = values["hosts"].astype("Float64").astype("float64")
    each = values["peers"] / nodes
    received = (values["peers"] - each) * values["size"]
    received = received.where(own == 0, received * each)
    rate = (received / values["value"] / 1e3).where((nodes > 1) & is_time(values["unit"]))
    rate = rate.where(own.notna() & values["skew"].isna())
    limit = (each * DEVICE_GBPS).where(on_device(values), NODE_GBPS)
    return Rule(
        rate.notna(),
        rate > limit,
        lambda row: (
            f"each node would receive {digits(rate[row.name])} GB/s: all links of a node carry at "
            f"most {limit[row.name]:g} GB/s"
        ),
    )


Points = Iterator[tuple[float, str]]


def flat(points: pd.DataFrame) -> Points:
    """Find times that do not grow over a doubling, which implies a link that carries more soon.

    t(s) >= s / B holds for a link of B bytes a second; if t(2s) = t(s), B is 2s / t at least, and
    the next n bytes take n / B.
    """
    if not is_time(points["unit"].iloc[0]):
        return
    sizes, times = points.index.to_numpy(float), points["value"].to_numpy(float)
    for one in np.flatnonzero(sizes >= LARGE):
        for two in np.flatnonzero((sizes >= 2 * sizes[one]) & (times <= FLAT * times[one])):
            rate = sizes[two] / times[two] / 1e3
            later = np.flatnonzero(sizes >= 2 * sizes[two])
            if rate < CORE_GBPS or not len(later):
                continue
            after = later[0]
            if times[after] <= times[two]:
                continue
            rest = (sizes[after] - sizes[two]) / (times[after] - times[two]) / 1e3
            if rest < rate / STEEPER:
                yield (
                    sizes[two],
                    f"{value_text(times[two], 'us')} is the time of {size_text(sizes[one])}, too, "
                    f"and would be {digits(rate)} GB/s; the bytes beyond it have {digits(rest)} "
                    "GB/s",
                )
                return


def falling(points: pd.DataFrame) -> Points:
    """Find bandwidths between devices that fall by a third from their peak."""
    points = points[(points.index >= LARGE) & on_device(points)]
    rates = points["rate"].astype("float64")
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
    timed = sized.assign(line=line)[is_time(sized["unit"])]
    points = points_of(timed, ["line", "bytes"]).set_index(["line", "bytes"])["value"].sort_index()
    larger = points[::-1].groupby(level="line").cummin()[::-1].groupby(level="line").shift(-1)
    ratios = points / larger
    for (name, size), ratio in ratios[ratios > SLOWER_THAN_LARGER].items():
        row = timed.index[(timed["line"] == name) & (timed["bytes"] == size)][0]
        text = f"{value_text(points[name, size], 'us')} is {digits(ratio)} times the time of a "
        yield Impossible(row, f"{text}larger message", possible=True)
