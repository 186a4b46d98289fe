"""What a row of Intel MPI Benchmarks must fulfil: numbers that follow from each other do so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from omb_py.results.readers.formats.fixed_width import Shown, shown

BINARY_MEGABYTE = 1.048576
LARGEST_ELEMENT = 16
"""Bytes of an element, of which there is one however small the largest size is."""
MEGABYTES = (1.0, BINARY_MEGABYTE)
TRANSFERS = {"sendrecv": (2,), "exchange": (4,), "pingpong": (1,), "pingping": (1,)}
"""Messages that the rate of a benchmark counts in one time; of others any plausible number."""


@dataclass
class ImbTable:
    """A header with what all of its rows share."""

    columns: tuple[str, ...]
    ends: tuple[int, ...] | None
    shared: dict[str, Any]
    benchmark: str
    ranks: int
    factor: int
    sizes: range | None
    any_order: bool
    last: dict[int, int] = field(default_factory=dict)


def contradiction(row: dict[str, str], table: ImbTable) -> str | None:
    """What in a row does not agree with itself: order of times, rates, overlap."""
    if int(row["iterations"]) < 1:
        return "no repetitions"
    mean = float(row.get("latency_us", 0))
    low, high = (float(row.get(f"latency_{end}_us", mean)) for end in ("min", "max"))
    if not low - 0.015 <= mean <= high + 0.015:
        return "a mean that is not between minimum and maximum"
    if "overlap_percent" in row and not overlap_agrees(row):
        return "an overlap that the times do not give"
    if "megabytes" in row and not rate_agrees(row, table):
        return "Mbytes/sec that do not fit the other columns"
    return None


def rate_agrees(row: dict[str, str], table: ImbTable) -> bool:
    """Whether the rate is what size and time give, in megabytes of 10^6 bytes or 2^20."""
    size, rate = int(row.get("bytes", 0)), shown(row["megabytes"])
    if "messages_per_s" in row:
        told = shown(row["messages_per_s"]).times(size / 1e6)
        threaded = table.benchmark.endswith("mt")  # each thread has its own time and its own part
        return threaded or any(rate.times(unit).meets(told) for unit in MEGABYTES)
    name = "latency_max_us" if "latency_max_us" in row else "latency_us"
    if name not in row:
        return True
    time, ranks = shown(row[name]), table.ranks
    # bytes = rate * time: a product, since a time may have been printed as 0.00
    moved = rate.times(time.minimum, time.maximum)
    counts = TRANSFERS.get(table.benchmark, (1, 2, 4, ranks - 1, ranks))
    return any(
        moved.times(unit).meets(Shown(size * count, size * count))
        for unit in MEGABYTES
        for count in counts
    )


def overlap_agrees(row: dict[str, str]) -> bool:
    """Whether the overlap follows from the times: of the longer of the two, or the shorter."""
    overall, pure, work = (shown(row[f"{name}_us"]) for name in ("overall", "latency", "compute"))
    percent = shown(row["overlap_percent"])
    hidden = Shown(
        pure.minimum + work.minimum - overall.maximum, pure.maximum + work.maximum - overall.minimum
    )
    for choose in (max, min):
        whole = Shown(choose(pure.minimum, work.minimum), choose(pure.maximum, work.maximum))
        if (
            percent.times(whole.minimum / 100, whole.maximum / 100).meets(hidden)
            or (percent.minimum == 0 and hidden.minimum <= 0)
            or (percent.maximum >= 100 and hidden.maximum >= whole.minimum)
        ):
            return True
    return False


def out_of_place(row: dict[str, str], table: ImbTable) -> str | None:
    """Why a row cannot stand where it stands: a size that IMB would not have measured there."""
    size, group = int(row.get("bytes", 0)), int(row.get("group", 0))
    last = table.last.get(group)
    if last is not None and ("bytes" not in row or (size <= last and not table.any_order)):
        return f"size {size} after {last}: rows of two tables?"
    if "bytes" in row and table.sizes is not None and size:
        largest = max(table.sizes.stop - 1, LARGEST_ELEMENT)
        if size & (size - 1) or size > largest:
            return f"size {size}, which was not requested"
    table.last[group] = size
    return None


def decimal_megabytes(row: dict[str, str]) -> float:
    """A rate in 10^6 bytes per second, which versions before 2018 print in 2^20."""
    rate, size = float(row["megabytes"]), int(row["bytes"])
    told = shown(row["messages_per_s"]).times(size / 1e6)
    return rate if shown(row["megabytes"]).meets(told) else rate * BINARY_MEGABYTE
