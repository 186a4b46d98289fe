"""Records made by hand, for tests whose answer is known."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omb_py.tracing.recorder.record_file import RecordFile
from omb_py.tracing.records import reading
from omb_py.tracing.records.layout import (
    CELL_FORMAT,
    EVENT_FORMAT,
    FNV_PRIME,
    FNV_START,
    NOBODY,
    PEERS,
    PREFIX,
    THREAD,
    THREAD_FORMAT,
    Communicator,
    EventKind,
    path_in,
    size_bin,
)

START = 1_000_000_000


def communicator_line(communicator: Communicator) -> str:
    """The name that stands for a communicator."""
    return PREFIX + json.dumps([communicator.key, communicator.size, communicator.label])


def communicator_key(members: Sequence[int], instance: int) -> str:
    """The key of a communicator, as `omb_py.tracing.records.layout.WORLD` defines it."""
    found = FNV_START
    for byte in ",".join(map(str, members)).encode():
        found = (found ^ byte) * FNV_PRIME & 0xFFFFFFFFFFFFFFFF
    return f"{found:016x}#{instance}"


class WrittenFile(RecordFile):
    """A record whose names, cells and events are written from Python."""

    def __init__(self, path: str, rank: int, ranks: int, events: int, about: Mapping[str, Any]):
        super().__init__(path, rank, ranks, events, about)
        self._numbers = {"": 0}
        self._events = events

    def name(self, text: str) -> int:
        """The number of a name, which is written when it is new."""
        if text not in self._numbers:
            used = self.get("names_used")
            line = f"\n{text}".encode()
            at = self.get("names_at") + used
            self.memory[at : at + len(line)] = line
            self.set("names_used", used + len(line))
            self._numbers[text] = len(self._numbers)
        return self._numbers[text]

    def event(self, *fields: int) -> None:
        """Write an event, with the fields of `layout.EVENT`; the oldest makes room."""
        if self._events:
            written = self.get("events_written")
            at = self.get("events_at") + written % self._events * EVENT_FORMAT.size
            EVENT_FORMAT.pack_into(self.memory, at, *fields)
            self.set("events_written", written + 1)

    def write_cells(self, cells: Iterable[tuple[int, ...]]) -> None:
        """Write all cells, each with the fields of `layout.CELL`."""
        packed = b"".join(CELL_FORMAT.pack(*cell) for cell in cells)
        at = self.get("cells_at")
        self.memory[at : at + len(packed)] = packed
        self.set("cells_used", len(packed) // CELL_FORMAT.size)

    def thread(self, number: int = 0, *peers: int, **fields: int) -> None:
        """Write a thread, with fields of `layout.THREAD`; by its number, 0: the main one."""
        used = self.get("threads_used")
        number = number or self.get("pid")
        values = {"number": number, "threads": 1, "now_peers": len(peers), **fields}
        waits = struct.pack(f"={PEERS}i", *peers, *[NOBODY] * (PEERS - len(peers)))
        packed = [values.get(name, 0) for name, _ in THREAD[:-1]]
        at = self.get("threads_at") + used * THREAD_FORMAT.size
        THREAD_FORMAT.pack_into(self.memory, at, *packed, waits)
        self.set("threads_used", used + 1)

    def close(self) -> None:
        """Unmap the file."""
        self.memory.release()
        self._map.close()


class MadeRecord:
    """One rank's record; times are ns after the beginning of the record."""

    def __init__(self, folder: Path, rank: int, ranks: int, *, events: int = 1000, host: str = "a"):
        path = path_in(str(folder), rank)
        Path(path).unlink(missing_ok=True)
        self.file = WrittenFile(path, rank, ranks, events, {"program": "made.py"})
        self.world = Communicator("world", ranks, "world")
        self._cells: dict[tuple[int, int, int, int], list[int]] = {}
        self.file.set("began", START)
        self.file.set("host", host)
        self.file.set("clock", 7)

    def call(
        self,
        routine: str,
        began: int,
        ended: int,
        *,
        kind: EventKind = EventKind.CALL,
        peer: int = NOBODY,
        nbytes: int = 0,
        tag: int = 0,
        sequence: int = 0,
        request: int = 0,
        communicator: Communicator | None = None,
        order: int = 0,
    ) -> None:
        """An event and, for a call, its cell."""
        file = self.file
        comm = file.name(communicator_line(communicator or self.world))
        name = file.name(routine)
        times = (START + began, START + ended)
        file.event(kind, name, comm, peer, tag, order, *times, nbytes, request, sequence)
        if kind is not EventKind.CALL:
            return
        cell = self._cells.setdefault((name, comm, peer, size_bin(nbytes)), [0, 0, 0, 1 << 62, 0])
        spent = ended - began
        cell[:] = [
            cell[0] + 1,
            cell[1] + max(0, nbytes),
            cell[2] + spent,
            min(cell[3], spent),
            max(cell[4], spent),
        ]

    def finish(self, ended: int | None, **header: Any) -> reading.RankRecord:
        """Write the cells and fields of the header; ``ended`` None leaves the rank unfinished.

        Fields of a thread are those of the main one.
        """
        now = {name: header.pop(name) for name in list(header) if name.startswith("now_")}
        if now or self._cells:
            cells = self._cells.values()
            of_cells = {"calls": sum(one[0] for one in cells), "ns": sum(one[2] for one in cells)}
            self.file.thread(0, *now.pop("now_peer", [NOBODY]), **{**of_cells, **now})
        self.file.write_cells([(*key, 0, 0, *cell) for key, cell in self._cells.items()])
        self.file.set("updated", START + (ended or 0))
        if ended is not None:
            self.file.set("ended", START + ended)
        for name, value in header.items():
            self.file.set(name, value)
        return reading.read(self.file.path)
