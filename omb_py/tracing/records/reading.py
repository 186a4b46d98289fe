"""Reading of records: calls of every rank of a run, when, for how long, with how many bytes.

A record can be read while its rank still writes it, and after the rank was killed. NumPy is loaded
only for events and for arrays of cells: a profile is written without it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.tracing.records import layout
from omb_py.tracing.records.layout import NS_PER_SECOND, Communicator

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_RANKS = 1 << 24
"""Most ranks of a record; one with more is damaged."""

NS = 1e-9
MAIN = "thread main"

NUMPY_TYPES = {"i": "i4", "q": "i8", "d": "f8"}


def array_of(packed: bytes, fields: tuple[tuple[str, str], ...]) -> NDArray[Any]:
    """Packed rows of a record as a structured array."""
    import numpy as np

    return np.frombuffer(packed, [(name, NUMPY_TYPES[kind]) for name, kind in fields])


@dataclass(frozen=True)
class ClockComparison:
    """Rank 0's clock minus this rank's at this rank's time ``at`` (ns): seconds, error bound."""

    at: int
    offset: float
    error: float


@dataclass(frozen=True)
class ThreadRecord:
    """A thread of a rank, at its last update in a ``routine`` (empty: outside MPI) since ``began``.

    ``name`` has the system's number. ``calls`` and their ``ns`` include those of ``threads`` - 1
    threads that ended before it began. ``operation`` is the routine that began the requests that it
    waits for, empty without any and for different ones. Of several ``peers`` one or more are
    awaited: ranks, `layout.ANYONE`, and `layout.NOBODY` for unknown ones. ``collectives`` counts
    collective calls begun on the communicator, up to the one that it is in or waits for.
    """

    name: str
    ended: bool
    threads: int
    calls: int
    ns: int
    routine: str
    operation: str
    communicator: Communicator | None
    began: int
    collectives: int
    peers: tuple[int, ...]

    @property
    def peer(self) -> int:
        """The only peer, `layout.NOBODY` without one."""
        return self.peers[0] if len(self.peers) == 1 else layout.NOBODY

    @property
    def awaited(self) -> str:
        """The routine whose end it waits for."""
        return self.operation or self.routine


@dataclass(frozen=True)
class RankRecord:
    """The record of one rank.

    ``packed_cells`` and ``packed_events`` are rows with the fields of `layout.CELL` and
    `layout.EVENT`, events in the order in which they were written; numbers in them refer to
    ``names``. Times are ns of the rank's own clock: `common` turns them into rank 0's.
    """

    path: str
    header: dict[str, Any]
    about: dict[str, Any]
    names: list[str]
    packed_cells: bytes
    packed_events: bytes
    packed_threads: bytes

    @cached_property
    def cells(self) -> NDArray[Any]:
        """The cells as a structured array."""
        return array_of(self.packed_cells, layout.CELL)

    @cached_property
    def events(self) -> NDArray[Any]:
        """The events as a structured array."""
        return array_of(self.packed_events, layout.EVENT)

    def cell_values(self) -> Iterator[tuple[Any, ...]]:
        """Yield the fields of each cell."""
        return layout.CELL_FORMAT.iter_unpack(self.packed_cells)

    @property
    def rank(self) -> int:
        """In MPI_COMM_WORLD."""
        return int(self.header["rank"])

    @property
    def ranks(self) -> int:
        """The number of ranks of the job."""
        return int(self.header["ranks"])

    @property
    def host(self) -> str:
        """Name of the host it ran on."""
        return str(self.header["host"])

    @property
    def complete(self) -> bool:
        """Return whether the rank came to its end."""
        return int(self.header["ended"]) != 0

    @property
    def lost_events(self) -> int:
        """Events that were written over by later ones."""
        return max(0, int(self.header["events_written"]) - int(self.header["events_capacity"]))

    @property
    def began(self) -> int:
        """The beginning of the recording, ns."""
        return int(self.header["began"])

    @property
    def ended(self) -> int:
        """The time of the rank's end, or of its last update, ns."""
        if self.complete:
            return int(self.header["ended"])
        last = int(self.events["ended"].max()) if self.packed_events else 0
        return max(int(self.header["updated"]), last, self.began)

    @property
    def elapsed_s(self) -> float:
        """Seconds from beginning to end."""
        return (self.ended - self.began) * NS

    @property
    def communicators(self) -> dict[int, Communicator]:
        """Communicators by the number of their name."""
        found = ((i, layout.communicator_of(name)) for i, name in enumerate(self.names))
        return {i: communicator for i, communicator in found if communicator is not None}

    @property
    def comparisons(self) -> tuple[ClockComparison, ...]:
        """The comparisons of clocks that were made."""
        kinds = [kind for kind in ("first", "last") if self.header[f"{kind}_at"]]
        return tuple(
            ClockComparison(*(self.header[f"{kind}_{name}"] for name in ("at", "offset", "error")))
            for kind in kinds
        )

    @property
    def threads(self) -> tuple[ThreadRecord, ...]:
        """The threads that have called MPI, and what they do."""
        found = []
        for fields in layout.THREAD_FORMAT.iter_unpack(self.packed_threads):
            number, threads, calls, ns, *names, began, begun, count, peers = fields
            routine, operation, communicator = map(self.name, names)
            found.append(
                ThreadRecord(
                    MAIN if abs(number) == self.header["pid"] else f"thread {abs(number)}",
                    number < 0,
                    threads,
                    calls,
                    ns,
                    routine,
                    operation,
                    layout.communicator_of(communicator),
                    began,
                    begun,
                    tuple(memoryview(peers).cast("i")[: max(0, count)]),
                )
            )
        return tuple(found)

    def stays(self) -> tuple[tuple[str, int], ...]:
        """Return the calls that its threads are in, with their beginnings; empty unless all are.

        A main thread that has made no call is not.
        """
        living = [one for one in self.threads if not one.ended]
        within = all(one.routine for one in living) and MAIN in (one.name for one in living)
        return tuple((one.routine, one.began) for one in living) if within else ()

    def name(self, number: int) -> str:
        """Return the name of a number, empty when it is not there."""
        return self.names[number] if 0 <= number < len(self.names) else ""

    def common(self, times: Any) -> Any:
        """Return times of this rank's clock (ns, also arrays) as those of rank 0's.

        Between two comparisons the offset is interpolated, so that drift is taken out.
        """
        import numpy as np

        made = self.comparisons
        if not made:
            return times
        first, last = made[0], made[-1]
        drift = (last.offset - first.offset) / (last.at - first.at) if last.at > first.at else 0.0
        offset = first.offset * NS_PER_SECOND + drift * NS_PER_SECOND * (times - first.at)
        return times + np.rint(offset).astype(np.int64)


def read(path: str | Path, events: bool = True) -> RankRecord:
    """Return the record in a file; raises `UsageError` if it is not a record or cannot be read.

    Without ``events`` only the small part that a rank keeps changing is read.
    """
    files.check(path, UsageError, math.inf)
    if not os.path.isfile(path):
        raise UsageError(f"{path} is no record of omb-py profile")
    try:
        with files.failing("read", path, UsageError), open(path, "rb") as file:
            return _record(file, str(path), events)
    except (ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise UsageError(f"{path} is damaged: {error}") from error


def _record(file: BinaryIO, path: str, with_events: bool) -> RankRecord:
    first = file.read(layout.HEADER_BYTES)
    if len(first) < layout.HEADER_BYTES or first[:8] != layout.MAGIC:
        raise UsageError(f"{path} is no record of omb-py profile")
    values = layout.HEADER_FORMAT.unpack_from(first)
    header = {
        name: value.rstrip(b"\0").decode(errors="replace") if kind == "64s" else value
        for (name, kind), value in zip(layout.HEADER, values, strict=True)
    }
    if header["version"] != layout.VERSION:
        raise UsageError(f"{path} is a record of another version of omb-py: read it with that one")
    used = (header[f"{part}_used"] for part in ("names", "cells", "text", "threads"))
    if min(used) < 0 or not 0 <= header["rank"] < header["ranks"] <= MAX_RANKS:
        raise UsageError(f"{path} is damaged: its header says so")
    text = _part(file, path, "text", header, header["text_used"])
    cells = _part(file, path, "cells", header, header["cells_used"] * layout.CELL_FORMAT.size)
    names = _part(file, path, "names", header, header["names_used"])
    return RankRecord(
        path,
        header,
        _about(text),
        names.decode(errors="replace").split("\n"),
        cells,
        _events(file, path, header) if with_events else b"",
        _part(file, path, "threads", header, header["threads_used"] * layout.THREAD_FORMAT.size),
    )


def _part(file: BinaryIO, path: str, part: str, header: dict[str, Any], nbytes: int) -> bytes:
    """Return a section, as far as it is used."""
    at = header[f"{part}_at"]
    if 0 <= at <= os.fstat(file.fileno()).st_size - nbytes:
        file.seek(at)
        content = file.read(nbytes)
        if len(content) == nbytes:
            return content
    raise UsageError(f"{path} is damaged: its {part} are not there")


def _about(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _events(file: BinaryIO, path: str, header: dict[str, Any]) -> bytes:
    """Return the events of the ring, the oldest first."""
    capacity, written = header["events_capacity"], header["events_written"]
    if capacity <= 0:
        return b""
    size = layout.EVENT_FORMAT.size
    ring = _part(file, path, "events", header, capacity * size)
    if written <= capacity:
        return ring[: max(0, written) * size]
    start = written % capacity * size
    return ring[start:] + ring[:start]
