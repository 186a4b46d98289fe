"""What NCCL's inspector plugin wrote: which rank was late, and the bus bandwidth by size.

Each process of a job writes an object of JSON for each collective and communicator (NCCL 2.28 and
later, ext-profiler/inspector/README.md). The time of a rank is that of its kernel, which waits for
the rank that comes last: the shortest kernel of an operation is the latest rank's, and what the
others take longer is the time that they waited for it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import size_text, value_text
from omb_py.core.text.words import count

MARK = b'"inspector_output_format_version"'
"""What the metadata of each object has."""

MARK_WITHIN = 4096
"""Bytes of a file in which the mark of its first object is."""

BLOCK = 1 << 20
"""Characters that are read in one go; no object is as long."""

FOLLOWING = re.compile(r"\n|,(?=\{)")
"""The end of a damaged object."""

DAMAGED = (ValueError, LookupError, TypeError, AttributeError, OverflowError)
"""Errors that objects raise which a killed job left in part, or something else changed."""


class Operation(NamedTuple):
    """A collective of a communicator, by its number among all of that communicator."""

    communicator: str
    name: str
    number: int
    nbytes: int
    ranks: int


@dataclass(frozen=True)
class Share:
    """One rank's part in an operation: the microseconds of its kernel, and its bus bandwidth in
    10^9 bytes per second."""

    rank: int
    host: str
    microseconds: float
    busbw: float


@dataclass(frozen=True)
class Inspected:
    """The operations of a job with the ranks' shares, and the number of objects left out."""

    operations: dict[Operation, list[Share]]
    damaged: int = 0


def inspector_files(path: Path) -> list[Path]:
    """Return the files that the inspector wrote, in a folder or as the path itself."""
    candidates = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [one for one in candidates if one.is_file() and MARK in head(one)]


def head(path: Path) -> bytes:
    """Return the beginning of a file; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(MARK_WITHIN)
    except OSError:
        return b""


def load(paths: Iterable[Path]) -> Inspected:
    """Return the operations in files of the inspector, each rank's part of one once.

    Raises `UsageError` for a file that cannot be read, and if none has a whole object.
    """
    operations: dict[Operation, dict[int, Share]] = defaultdict(dict)
    damaged = 0
    for path in paths:
        for item in objects(path):
            try:
                operation, share = parsed(item)
            except DAMAGED:
                damaged += 1
            else:
                operations[operation][share.rank] = share
    if not operations:
        raise UsageError("no file of NCCL's inspector has a whole object: name the folder of a run")
    return Inspected({one: [*shares.values()] for one, shares in operations.items()}, damaged)


def objects(path: Path) -> Iterator[Any]:
    """Yield the objects of a file one after the other; None for one that is damaged.

    Raises `UsageError` if the file cannot be read.
    """
    decoder, rest, more = json.JSONDecoder(), "", True
    files.check(path, UsageError, inf)
    with files.failing("read", path, UsageError), path.open("r", -1, "utf-8", "replace") as file:
        while more:
            block = file.read(BLOCK)
            text, place, more = rest + block, 0, bool(block)
            while (begin := text.find("{", place)) >= 0:
                try:
                    item, place = decoder.raw_decode(text, begin)
                except (ValueError, RecursionError):
                    if more and len(text) - begin < BLOCK:
                        break
                    following = FOLLOWING.search(text, begin)
                    item, place = None, following.end() if following else len(text)
                yield item
            rest = text[begin:] if begin >= 0 else ""


def parsed(item: Any) -> tuple[Operation, Share]:
    """Return an object as a rank's share in an operation; raises one of `DAMAGED` for others."""
    header, performance = item["header"], item["coll_perf"]
    operation = Operation(
        str(header["id"]),
        str(performance["coll"]),
        int(performance["coll_sn"]),
        int(performance["coll_msg_size_bytes"]),
        int(header["n_ranks"]),
    )
    host = str(item.get("metadata", {}).get("hostname", ""))
    took, busbw = (float(performance[name]) for name in ("coll_exec_time_us", "coll_busbw_gbs"))
    share = Share(int(header["rank"]), host, took, busbw)
    if not (0 < took < inf and 0 <= busbw < inf and 0 <= share.rank < operation.ranks):
        raise ValueError("a rank's part takes time, and is of a rank of the communicator")
    if operation.nbytes < 0 or not f"{operation.name}{host}".isprintable():
        raise ValueError("sizes are not below 0, and names are text")
    return operation, share


def sheets(inspected: Inspected) -> Iterator[Sheet]:
    """Yield a table of collectives by size, and one of the ranks that came late."""
    whole = {
        operation: shares
        for operation, shares in inspected.operations.items()
        if len({share.rank for share in shares}) == operation.ranks > 1
    }
    alike: dict[tuple[str, int, int], list[Sequence[Share]]] = defaultdict(list)
    for operation, shares in inspected.operations.items():
        alike[operation.name, operation.ranks, operation.nbytes].append(shares)
    part = len(inspected.operations) - len(whole)
    remarks = []
    if part:
        remarks.append(f"{count(part, 'operation')} without the objects of all ranks")
    if inspected.damaged:
        remarks.append(f"{count(inspected.damaged, 'object')} damaged, left out")
    yield Sheet(
        "NCCL's collectives",
        ("collective", "ranks", "size", "operations", "slowest", "latest", "busbw", "of latest"),
        tuple(by_size(key, members) for key, members in sorted(alike.items())),
        tuple(remarks),
        above="times of kernels and bus bandwidths: medians; those of the latest rank have no wait",
    )
    if whole:
        yield late_ranks(whole)


def by_size(key: tuple[str, int, int], members: Sequence[Sequence[Share]]) -> tuple[str, ...]:
    """Return the cells of a collective at one size."""
    name, ranks, nbytes = key
    slowest = median(max(share.microseconds for share in shares) for shares in members)
    shortest = [min(shares, key=lambda share: share.microseconds) for shares in members]
    latest = median(share.microseconds for share in shortest)
    each = median(share.busbw for shares in members for share in shares)
    return (
        *(name, str(ranks), size_text(nbytes), str(len(members))),
        *(value_text(slowest, "us"), value_text(latest, "us")),
        *(bandwidth(each), bandwidth(median(share.busbw for share in shortest))),
    )


def bandwidth(gigabytes: float) -> str:
    """Return 10^9 bytes per second as text."""
    return value_text(1000 * gigabytes, "MB/s")


def late_ranks(whole: dict[Operation, list[Share]]) -> Sheet:
    """Return a table of the ranks by the time that others waited for each as the latest."""
    times: dict[tuple[str, int], int] = defaultdict(int)
    waited: dict[tuple[str, int], float] = defaultdict(float)
    for shares in whole.values():
        latest = min(shares, key=lambda share: share.microseconds)
        others = sum(share.microseconds - latest.microseconds for share in shares)
        times[latest.host, latest.rank] += 1
        waited[latest.host, latest.rank] += others / (len(shares) - 1)
    order = sorted(waited, key=lambda one: -waited[one])
    return Sheet(
        "Late ranks",
        ("host", "rank", "latest in", "others waited", "each time"),
        tuple(
            (
                *(one[0], str(one[1]), f"{times[one]} of {len(whole)}"),
                *(value_text(waited[one], "us"), value_text(waited[one] / times[one], "us")),
            )
            for one in order
        ),
        above="ranks of a communicator; the mean wait of the others, summed over the operations",
    )
