"""A network from measurements: latencies and bandwidths of two ranks, by the model's fit.

A message of n bytes takes 2 o + L + h + n (c + 1 / b): the overhead o of its sender and its
receiver, the latency L of its route, the handshake h of its protocol, and its bytes at the
bandwidth b of the links and at c, which keeps no link busy (LogGP with the ranges of
`omb_py.analysis.model.lines`). Latency gives 2 o + L + h and c + 1 / b. A window of small messages
gives o, since each leaves after the previous one; a window of large ones gives b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, sqrt
from statistics import median

import pandas as pd

from omb_py.analysis.model.fit import Curve, Model
from omb_py.analysis.model.lines import Fit
from omb_py.core.errors import UsageError
from omb_py.core.text.units import size_text
from omb_py.simulation.network import ROUND_FIGURES, Network, Path, Protocol

LATENCY, WINDOWS = "latency", ("bw", "mbw_mr")
BROADCAST = "bcast"
COLLECTIVE, EXCHANGE = "allreduce", "recursive_doubling"

MOST = 1000.0
"""The largest ratio of the smallest latency to an overhead."""

STEP = 1.5
"""The factor from which an increase of alpha, the time of an empty message, is a switch of
protocols."""

LEFT_BEHIND = 0.5
"""The largest share of the receiver's time that an eager message takes its sender."""

USUAL_WINDOW = 64
"""The window of measurements that do not say theirs."""

LARGE = 64 << 10
"""Bytes from which additions are looked for in an allreduce."""


@dataclass(frozen=True)
class Calibrated:
    """A network, a comment for each of its numbers by key, and the benchmarks that are missing."""

    network: Network
    comments: dict[str, str]
    missing: tuple[str, ...]


def calibrate(model: Model, topology: str, origin: str) -> Calibrated:
    """Return the network of a model's curves of two ranks.

    Numbers without a measurement are round figures, and their comments say so. Raises `UsageError`
    if no latency of two ranks was measured.
    """
    comments: dict[str, str] = {}
    missing: list[str] = []
    paths = {}
    lacking = 0
    for name, hosts, where in (
        ("between", 2, "of two hosts"),
        ("within", 1, "of one host"),
    ):
        curve = curve_of(model, LATENCY, hosts)
        if curve is None:
            lacking += 1
            missing.append(f"latency between ranks {where}")
            comments[f"{name}.latency_us"] = f"a round figure: no latency {where} was measured"
            paths[name] = getattr(ROUND_FIGURES, name)
            continue
        if not any(curve_of(model, window, hosts) for window in WINDOWS):
            missing.append(f"bw between ranks {where}")
        paths[name] = path_of(model, curve, hosts, f"{name}.", comments)
    if lacking == 2:
        raise UsageError(
            "a network needs latencies: measure omb-py latency on two ranks of different hosts, "
            "and on two of one host"
        )
    memory = memory_of(model, paths["within"], comments, missing)
    add = addition_of(model, comments, missing)
    network = Network(topology, paths["between"], paths["within"], memory, add, origin)
    return Calibrated(network, comments, tuple(missing))


def with_pairs(rows: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return rows of benchmarks, and those that pairs of ranks stand for: medians over the pairs.

    Pairs of one host and of two are apart.
    """
    if pairs.empty:
        return rows
    hosts = 1 + (pairs["sender_host"] != pairs["receiver_host"]).astype(int)
    values = ["latency_us", "bandwidth_MBps", "window"]
    found = pairs.groupby(["benchmark", "buffer", "bytes", hosts.rename("hosts")], dropna=False)[
        values
    ].median()
    more = found.reset_index().assign(ranks=2, run="pairs")
    more["payload_bytes"] = more["bytes"]
    more = more.reindex(columns=rows.columns).astype(rows.dtypes)
    return more if rows.empty else pd.concat([rows, more], ignore_index=True)


def curve_of(model: Model, benchmark: str, hosts: int) -> Curve | None:
    """Return a benchmark's curve on two ranks of ``hosts`` hosts; of several the one of most
    points."""
    found = [
        curve
        for curve in model.curves
        if curve.benchmark == benchmark and curve.ranks == 2 and (curve.hosts or 1) == hosts
    ]
    return max(found, key=lambda curve: len(curve.points.sizes), default=None)


def eager_of(
    model: Model, hosts: int, fitted: Sequence[Fit], prefix: str, comments: dict[str, str]
) -> float:
    """Return the largest eager message: the first switch to a much longer handshake.

    If latency shows none, the sender of a broadcast to one rank decides: with an eager message it
    goes on long before the message has arrived. Else the default is returned.
    """
    for before, after in pairwise(fitted):
        if before.alpha > 0 and after.alpha > STEP * before.alpha:
            comments[f"{prefix}eager"] = (
                f"latency's switch between {size_text(before.last)} and {size_text(after.first)}"
            )
            return before.last
    rows = model.rows
    sends = rows[
        (rows["benchmark"] == BROADCAST)
        & (rows["ranks"] == 2)
        & (rows["hosts"] == hosts)
        & (rows["latency_min_us"] < rows["latency_max_us"] * LEFT_BEHIND)
    ]
    if len(sends):
        limit = float(sends["bytes"].max())
        comments[f"{prefix}eager"] = f"{BROADCAST} to one rank: its sender goes on at once up to it"
        return limit
    comments[f"{prefix}eager"] = "the usual limit: latency shows no switch"
    return ROUND_FIGURES.between.eager


def memory_of(model: Model, within: Path, comments: dict[str, str], missing: list[str]) -> float:
    """Return the bandwidth that all messages through the memory of a node share."""
    rows = model.rows
    several = rows[
        (rows["benchmark"] == "mbw_mr") & (rows["hosts"] == 1) & rows["pairs"].gt(1).fillna(False)
    ]
    if several.empty:
        missing.append("mbw_mr of several pairs on one host")
        comments["memory_MBps"] = "that of one pair: mbw_mr of several was not measured"
        return within.bandwidth_MBps
    best = several.loc[several["value"].idxmax()]
    comments["memory_MBps"] = (
        f"mbw_mr, {int(best['pairs'])} pairs, {size_text(float(best['bytes']))}"
    )
    return max(within.bandwidth_MBps, float(best["value"]))


def addition_of(model: Model, comments: dict[str, str], missing: list[str]) -> float:
    """Return the time of adding a byte: an allreduce on two ranks beyond the latency of its
    message."""
    rows = model.rows[model.rows["ranks"] == 2]
    is_exchange = (rows["library_algorithm"] == EXCHANGE) | (rows["algorithm"] == EXCHANGE)
    sums = rows[(rows["benchmark"] == COLLECTIVE) & is_exchange & rows["bytes"].ge(LARGE)]
    found = []
    for _, row in sums.iterrows():
        curve = curve_of(model, LATENCY, 1 if pd.isna(row["hosts"]) else int(row["hosts"]))
        if curve is not None:
            sizes, times = curve.points.sizes, curve.points.times
            alone = times[sizes == float(row["bytes"])]
            if len(alone):
                found.append(max(0.0, float(row["time_us"]) - float(alone[0])) / row["bytes"])
    if not found:
        missing.append(f"{COLLECTIVE} by {EXCHANGE} on two ranks, from {size_text(LARGE)}")
        comments["add_us_per_byte"] = f"a round figure: no {missing[-1]} was measured"
        return ROUND_FIGURES.add_us_per_byte
    comments["add_us_per_byte"] = f"{COLLECTIVE} by {EXCHANGE} on two ranks less latency"
    return float(median(found))


def path_of(model: Model, curve: Curve, hosts: int, prefix: str, comments: dict[str, str]) -> Path:
    """Return the costs of messages between two ranks."""
    fitted = curve.fits
    windows = next(filter(None, (curve_of(model, name, hosts) for name in WINDOWS)), None)
    first = fitted[0].alpha if fitted[0].alpha > 0 else smallest(curve)
    overhead, comments[f"{prefix}latency_us"] = overhead_of(first, windows)
    bandwidth, comments[f"{prefix}bandwidth_MBps"] = bandwidth_of(fitted, windows)
    protocols = []
    for number, one in enumerate(fitted):
        protocols.append(protocol_of(one, first, overhead, bandwidth))
        comments[f"{prefix}protocols.{number}.up_to"] = (
            f"latency, {size_text(one.first)} to {size_text(one.last)}: {one.alpha:.4g} us + "
            "bytes / " + (f"{1 / one.beta:.4g} MB/s" if one.beta > 0 else "infinity")
        )
    eager = eager_of(model, hosts, fitted, prefix, comments)
    protocols[-1] = replace(protocols[-1], up_to=inf)
    return Path(first - 2 * overhead, bandwidth, eager, tuple(protocols))


def smallest(curve: Curve) -> float:
    """Return the time of the smallest message."""
    return float(curve.points.times[curve.points.sizes == curve.points.sizes.min()].min())


def overhead_of(first: float, windows: Curve | None) -> tuple[float, str]:
    """Return each rank's overhead in a smallest message of latency ``first``, and its source."""
    if windows is None:
        return first / 4, "half of the smallest latency: no window was measured"
    each = smallest(windows)
    # a window ends with the last message's latency and that of its answer
    gap = each - 2 * first / (windows.window or USUAL_WINDOW)
    overhead = min(max(first / MOST, gap), first / 2)
    return overhead, (
        f"latency {first:.4g} us less two overheads of {overhead:.4g} us ({windows.benchmark}, "
        f"{size_text(float(windows.points.sizes.min()))}: {each:.4g} us each)"
    )


def bandwidth_of(fitted: Sequence[Fit], windows: Curve | None) -> tuple[float, str]:
    """Return the bandwidth of windows, or else of ``fitted`` latencies, and its source."""
    if windows is None:
        slope = min(one.beta for one in fitted if one.beta > 0)
        return 1 / slope, "latency's slope, since no window was measured"
    end, points = windows.fits[-1], windows.points
    source = f"{windows.benchmark}, {size_text(end.first)} to {size_text(end.last)}"
    return 1 / end.beta if end.beta > 0 else float((points.sizes / points.times).max()), source


def protocol_of(one: Fit, first: float, overhead: float, bandwidth: float) -> Protocol:
    """Return the costs of the messages of a range of latencies."""
    # where the fit's alpha is less than any message takes, the middle of the range is kept
    middle = sqrt(max(1.0, one.first) * one.last)
    per_byte = one.beta + min(0.0, one.alpha - first) / middle
    handshake = max(0.0, one.alpha - first)
    return Protocol(one.last, overhead, handshake, max(0.0, per_byte - 1 / bandwidth))
