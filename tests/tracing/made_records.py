"""Records made by hand, for tests whose answer is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omb_py.tracing import records
from omb_py.tracing.recorder.record_file import RecordFile
from omb_py.tracing.records.layout import (
    NOBODY,
    Communicator,
    Kind,
    communicator_line,
    path_in,
    size_bin,
)

START = 1_000_000_000


class MadeRecord:
    """One rank's record; times are ns after the beginning of the record."""

    def __init__(self, folder: Path, rank: int, ranks: int, *, events: int = 1000, host: str = "a"):
        path = path_in(str(folder), rank)
        Path(path).unlink(missing_ok=True)
        self.file = RecordFile(path, rank, ranks, events, {"program": "made.py"})
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
        kind: Kind = Kind.CALL,
        peer: int = NOBODY,
        nbytes: int = 0,
        tag: int = 0,
        sequence: int = 0,
        request: int = 0,
        communicator: Communicator | None = None,
        lane: str = "",
    ) -> None:
        """An event and, for a call, its cell."""
        file = self.file
        comm = file.name(communicator_line(communicator or self.world))
        name = file.name(routine)
        times = (START + began, START + ended)
        lane_number = file.name(lane)
        file.event(kind, name, comm, peer, tag, lane_number, *times, nbytes, request, sequence)
        if kind is not Kind.CALL:
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

    def finish(self, ended: int | None, **header: Any) -> records.Record:
        """Write the cells and fields of the header; ``ended`` None leaves the rank unfinished."""
        self.file.write_cells([(*key, 0, 0, *cell) for key, cell in self._cells.items()], 0)
        self.file.set("updated", START + (ended or 0))
        if ended is not None:
            self.file.set("ended", START + ended)
        for name, value in header.items():
            self.file.set(name, value)
        return records.read(self.file.path)
