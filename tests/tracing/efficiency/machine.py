"""A simulated machine that runs small programs and writes the records that a real one would.

Time passes only as the programs and the network say, so that all answers are known.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from omb_py.tracing.records.layout import NOBODY, Communicator, EventKind
from omb_py.tracing.records.reading import RankRecord
from tests.tracing.made_records import MadeRecord

CALL = 2
"""What every call costs at least on a network that is not ideal (ns)."""


class Request:
    """A non-blocking operation: when it can be complete, and how it is told."""

    def __init__(self, number: int, ready: int, told: dict[str, Any], began: int) -> None:
        self.number, self.ready, self.told, self.began = number, ready, told, began


class Machine:
    """Ranks with clocks (ns), and a network of some latency (ns) and time per byte (ns)."""

    def __init__(
        self,
        folder: Path,
        ranks: int,
        latency: int = 0,
        per_byte: int = 0,
        *,
        events: int = 2000,
        starts: Iterable[int] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.latency, self.per_byte = latency, per_byte
        self.cost = CALL if latency or per_byte else 0
        self.ranks = range(ranks)
        self.records = [MadeRecord(folder, rank, ranks, events=events) for rank in self.ranks]
        self.clocks = list(starts) or [0] * ranks
        self.starts = tuple(self.clocks)
        self.outside = [0] * ranks
        self.numbers: dict[tuple[object, ...], int] = {}
        self.requests = 0
        self.slow: list[int] = []

    def compute(self, rank: int, time: int) -> None:
        """A rank computes."""
        self.clocks[rank] += time
        self.outside[rank] += time

    def send(
        self, source: int, dest: int, nbytes: int = 8, tag: int = 0, routine: str = "MPI_Send"
    ) -> Request:
        """A blocking send that does not wait; its request stands for the message."""
        began = self.clocks[source]
        ended = began + self.cost
        told = self._message(source, dest, nbytes, tag)
        self.records[source].call(routine, began, ended, peer=dest, **told)
        self.clocks[source] = ended
        return Request(0, began + self.latency + self.per_byte * nbytes, told, began)

    def receive(self, dest: int, source: int, message: Request, routine: str = "MPI_Recv") -> None:
        """A blocking receive of a message that was sent."""
        began = self.clocks[dest]
        ended = max(began + self.cost, message.ready)
        self.records[dest].call(routine, began, ended, peer=source, **message.told)
        self.clocks[dest] = ended

    def synchronous(self, source: int, dest: int, nbytes: int = 8, tag: int = 0) -> None:
        """A synchronous send that meets its receive at once."""
        told = self._message(source, dest, nbytes, tag)
        began = [self.clocks[source], self.clocks[dest]]
        ended = max(began) + max(self.cost, self.latency + self.per_byte * nbytes)
        self.records[source].call("MPI_Ssend", began[0], ended, peer=dest, **told)
        self.records[dest].call("MPI_Recv", began[1], ended, peer=source, **told)
        self.clocks[source] = self.clocks[dest] = ended

    def exchange(self, one: int, other: int, nbytes: int = 8, tag: int = 0) -> None:
        """Two ranks call Sendrecv with each other."""
        began = [self.clocks[one], self.clocks[other]]
        arrives = [at + self.latency + self.per_byte * nbytes for at in began]
        told = [self._message(one, other, nbytes, tag), self._message(other, one, nbytes, tag)]
        for index, (rank, peer) in enumerate(((one, other), (other, one))):
            ended = max(began[index] + self.cost, arrives[1 - index])
            times = (began[index], ended)
            record = self.records[rank]
            record.call("MPI_Sendrecv", *times, peer=peer, **told[index])
            record.call(
                "MPI_Sendrecv", *times, kind=EventKind.ARRIVED, peer=peer, **told[1 - index]
            )
            self.clocks[rank] = ended

    def post(
        self, source: int, dest: int, nbytes: int = 8, tag: int = 0
    ) -> tuple[tuple[int, Request], tuple[int, Request]]:
        """Isend and Irecv of a message; both ranks' requests."""
        told = self._message(source, dest, nbytes, tag)
        made = []
        for routine, rank, peer in (("MPI_Isend", source, dest), ("MPI_Irecv", dest, source)):
            self.requests += 1
            began = self.clocks[rank]
            shown = dict(told, sequence=told["sequence"] if rank == source else 0)
            ended = began + self.cost
            self.records[rank].call(
                routine, began, ended, peer=peer, request=self.requests, **shown
            )
            self.clocks[rank] = ended
            made.append(
                Request(self.requests, ended, dict(told, routine=routine, peer=peer), began)
            )
        made[1].ready = max(made[0].began + self.latency + self.per_byte * nbytes, made[1].ready)
        return (source, made[0]), (dest, made[1])

    def wait(self, rank: int, *requests: Request, routine: str = "MPI_Waitall") -> None:
        """A rank waits for its requests."""
        began = self.clocks[rank]
        ended = max([began + self.cost, *(request.ready for request in requests)])
        record = self.records[rank]
        record.call(routine, began, ended, nbytes=-1)
        for request in requests:
            told = dict(request.told)
            name = str(told.pop("routine"))
            record.call(
                name, request.began, ended, kind=EventKind.DONE, request=request.number, **told
            )
        self.clocks[rank] = ended

    def collective(
        self,
        routine: str,
        members: Iterable[int] | None = None,
        root: int = NOBODY,
        nbytes: int = 8,
        key: str = "",
    ) -> None:
        """Ranks (all where None are named) call a collective routine, and leave when they may."""
        there = list(self.ranks if members is None else members)
        comm = Communicator(key or "world", len(there), key) if key else None
        number = self._number("collective", key)
        began = {rank: self.clocks[rank] for rank in there}
        for rank in there:
            if routine in ("MPI_Bcast", "MPI_Scatter"):
                waits = [root]
            elif routine in ("MPI_Reduce", "MPI_Gather"):
                waits = there if rank == root else []
            elif routine in ("MPI_Scan", "MPI_Exscan"):
                waits = [other for other in there if other < rank]
            else:
                waits = there
            arrive = [
                began[other] + self.latency + self.per_byte * nbytes
                for other in waits
                if other != rank
            ]
            ended = max([began[rank] + self.cost, *arrive])
            self.records[rank].call(
                routine,
                began[rank],
                ended,
                peer=root,
                nbytes=nbytes,
                sequence=number,
                communicator=comm,
            )
            self.clocks[rank] = ended

    def start_collective(self, routine: str, nbytes: int = 8) -> list[tuple[int, Request]]:
        """All ranks begin a non-blocking collective call that waits for all of them."""
        number = self._number("collective", "")
        last = max(self.clocks)
        made = []
        for rank in self.ranks:
            self.requests += 1
            began = self.clocks[rank]
            told: dict[str, Any] = {"nbytes": nbytes, "sequence": number}
            ended = began + self.cost
            self.records[rank].call(routine, began, ended, request=self.requests, **told)
            self.clocks[rank] = ended
            ready = max(ended, last + self.latency + self.per_byte * nbytes)
            made.append((rank, Request(self.requests, ready, {"routine": routine, **told}, began)))
        return made

    def finish(self) -> list[RankRecord]:
        """The records; each rank begins when the machine said."""
        made = []
        for rank, record in enumerate(self.records):
            began = record.file.get("began") + self.starts[rank]
            made.append(record.finish(self.clocks[rank], began=began))
            record.file.close()
        return made

    @property
    def elapsed(self) -> int:
        """From the first rank's start to the last one's end."""
        return max(self.clocks) - min(self.starts)

    def _message(self, source: int, dest: int, nbytes: int, tag: int) -> dict[str, Any]:
        return {
            "nbytes": nbytes,
            "tag": tag,
            "sequence": self._number("message", source, dest, tag),
        }

    def _number(self, *key: object) -> int:
        self.numbers[key] = self.numbers.get(key, 0) + 1
        return self.numbers[key]
