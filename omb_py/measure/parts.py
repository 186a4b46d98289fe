"""Some ranks of a job measure while the others sleep.

The rows are written by rank 0 of the job, wherever the part's first rank is: it then sends each
row, and waits until that is on disk.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from omb_py.core.datatypes import Datatype, find_types
from omb_py.core.errors import OmbError, SharedError
from omb_py.core.job import Job
from omb_py.core.job.by_mpi import MPIJob
from omb_py.core.job.groups import ranks_text
from omb_py.measure.groups import row_of
from omb_py.measure.writers import Opening
from omb_py.results.columns import Row
from omb_py.results.writer import Writer

if TYPE_CHECKING:
    from mpi4py import MPI

    from omb_py.measure.sampling import Report

ROWS = 51
"""The tag of messages with rows."""

SHORTEST_SLEEP, LONGEST_SLEEP = 0.001, 0.05
"""Seconds between two looks of a rank that waits, first and at most.

Each look takes a core for some 10 us: at most 0.02 % of it.
"""


class PartJob(MPIJob):
    """The ranks of a job that take part; the first of them is rank 0."""

    def __init__(self, comm: MPI.Intracomm, whole: Job, ranks: Sequence[int]) -> None:
        """``ranks`` are those of the ``whole`` job that ``comm`` consists of."""
        super().__init__(comm)
        self.whole = whole
        self.name = ranks_text(sorted(ranks))
        self.thread_level = whole.thread_level
        self.noted = whole.noted

    def check_launcher(self) -> None:
        self.whole.check_launcher()

    def writers(self, opened: Opening) -> list[Writer[Any]]:
        """Return the writers of rows on the part's first rank: they name the part in each row."""
        writers = opened() if self.whole.rank == 0 else [SendingWriter(self.whole)]
        return [PartWriter(writer, self.name, self.whole.ranks) for writer in writers]


def on_part(
    whole: Job,
    ranks: Sequence[int],
    work: Callable[[PartJob], None],
    opened: Opening,
    report: Report | None,
) -> None:
    """Do ``work`` on ``ranks`` of a job while the others sleep; collective.

    ``opened`` opens the writers on rank 0; ``report`` is called by ranks that wait. Raises
    `SharedError` on all ranks if the part agrees on a failure.
    """
    from mpi4py import MPI

    takes_part = whole.rank in ranks
    color, key = (0, ranks.index(whole.rank)) if takes_part else (MPI.UNDEFINED, 0)
    comm: Any = whole.comm.Split(color, key)
    failure = None
    if takes_part:
        part = PartJob(comm, whole, ranks)
        try:
            with part.scope():
                work(part)
        except OmbError as error:
            if not error.shared:
                raise
            failure = error
        part.free()
    receiver = None
    if whole.rank == 0 and ranks[0] != 0:
        receiver = RowReceiver(whole.comm, ranks[0], opened)
    everyone = whole.comm.Ibarrier()
    pause = SHORTEST_SLEEP
    while not everyone.Test():
        time.sleep(pause)
        pause = min(1.5 * pause, LONGEST_SLEEP)
        if receiver is not None and receiver.serve():
            pause = SHORTEST_SLEEP
        if report is not None:
            report(0, 0)
    whole.agree(failure)


class PartWriter(Writer[Row]):
    """Names the ranks of a part in its rows."""

    def __init__(self, writer: Writer[Row], name: str, ranks: int) -> None:
        """``name`` has the ranks of the part, of so many ``ranks`` of the job."""
        self._writer = writer
        self._name = name
        self._ranks = ranks

    def start(self, metadata: dict[str, str]) -> None:
        self._writer.start(metadata | {"part": f"ranks {self._name} of {self._ranks}"})

    def section(self, datatype: Datatype | None) -> None:
        self._writer.section(datatype)

    def row(self, row: Row) -> None:
        self._writer.row(row.replace(group=self._name))

    def amend(self, run: str, metadata: dict[str, str]) -> None:
        self._writer.amend(run, metadata)

    def finish(self) -> None:
        self._writer.finish()


class SendingWriter(Writer[Row]):
    """Sends what it gets to rank 0 of a job, and raises what happens there."""

    def __init__(self, whole: Job) -> None:
        self._comm = whole.comm

    def start(self, metadata: dict[str, str]) -> None:
        self._send("start", metadata)

    def section(self, datatype: Datatype | None) -> None:
        self._send("section", None if datatype is None else datatype.name)

    def row(self, row: Row) -> None:
        self._send("row", vars(row))

    def amend(self, run: str, metadata: dict[str, str]) -> None:
        self._send("amend", run, metadata)

    def finish(self) -> None:
        self._send("finish")

    def _send(self, method: str, *arguments: object) -> None:
        send_bytes(self._comm, json.dumps([method, *arguments]).encode(), 0)
        answer = receive_bytes(self._comm, 0).decode()
        if answer:
            code, _, text = answer.partition(" ")
            raise SharedError(text, int(code))


class RowReceiver:
    """Writes, on rank 0 of a job, what a `SendingWriter` of rank ``source`` sends."""

    def __init__(self, comm: MPI.Intracomm, source: int, opened: Opening) -> None:
        self._comm = comm
        self._source = source
        self._opened = opened
        self._writers: list[Writer[Any]] = []

    def serve(self) -> bool:
        """Write received rows, and answer; return whether there were any."""
        if not self._comm.Iprobe(self._source, ROWS):
            return False
        method, *arguments = json.loads(receive_bytes(self._comm, self._source))
        answer = ""
        try:
            self._write(method, arguments)
        except OmbError as error:
            answer = f"{error.exit_code} {error}"
        send_bytes(self._comm, answer.encode(), self._source)
        return True

    def _write(self, method: str, arguments: list[Any]) -> None:
        """Call a method of each writer with the arguments that were sent."""
        if method == "start":
            self._writers = self._opened()
        elif method == "section" and arguments != [None]:
            arguments = list(find_types(arguments))
        elif method == "row":
            arguments = list(map(row_of, arguments))
        for writer in self._writers:
            getattr(writer, method)(*arguments)


def send_bytes(comm: MPI.Intracomm, data: bytes, rank: int) -> None:
    """Send bytes of any number to a rank, which asks for their number."""
    comm.Send(bytearray(data), rank, ROWS)


def receive_bytes(comm: MPI.Intracomm, rank: int) -> bytes:
    """Return the bytes that a rank sends, of any number."""
    from mpi4py import MPI

    status = MPI.Status()
    comm.Probe(rank, ROWS, status)
    data = bytearray(status.Get_count(MPI.BYTE))
    comm.Recv(data, rank, ROWS, status)
    return bytes(data)
