"""What one rank has called so far, kept by Python: tallies, communicators, events."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from mpi4py import MPI

from omb_py.observe.record_file import RecordFile
from omb_py.records.keys import BETWEEN, ELSEWHERE, WORLD, communicator_key, self_key
from omb_py.records.layout import (
    EVENT_FORMAT,
    HEADER_OFFSETS,
    NOBODY,
    Communicator,
    Kind,
    communicator_line,
    size_bin,
)

MOST_TALLIES = 20_000
"""Tallies of distinct sizes and peers that are kept at a time; then they are put together."""

FOREVER = 1 << 62
CALL = int(Kind.CALL)
EVENT_BYTES = EVENT_FORMAT.size
pack = EVENT_FORMAT.pack_into

OBSERVERS = __file__.rpartition("/")[0]
"""Where code is that no program has written."""

Key = tuple[int, int, int, int, int]
"""Routine, communicator, the peer's rank in it, bytes, site."""


class PythonRecorder:
    """Keeps what `observe.wrapping` sees.

    ``tallies`` has, for each `Key`, the calls, their ns, the least and the greatest ns. A tally is
    changed without a call in between, so that no other thread can come between under CPython's
    lock.
    """

    def __init__(self, sites: bool = False, timeline: bool = False) -> None:
        """``sites``: also record from which line of the program a call was made."""
        self.sites = sites
        self.timeline = timeline
        self.tallies: dict[Key, list[int]] = {}
        self.collectives: dict[int, int] = {}
        self.inside_ns = 0
        self.names = [""]
        self._by_name = {"": 0}
        self._file: RecordFile | None = None
        self._known: dict[int, tuple[Sequence[int], Sequence[int], int]] = {}
        self._folded: dict[Key, list[int]] = {}
        self._kept: tuple[dict[Key, list[int]], dict[Key, list[int]]] | None = None
        self._numbers: dict[Any, int] = {}
        self._met: dict[tuple[int, ...], int] = {}
        self._sites: dict[tuple[Any, int], int] = {}
        self._sequences: dict[tuple[int, ...], int] = {}
        self._requests = 0
        self._written = -1
        self._resumes_at = -1
        self._world: Any = None

    def attach(self, file: RecordFile, world: MPI.Intracomm) -> None:
        """From now on, keep events and names in a file; ``world`` has all ranks of the job."""
        for name in self.names:
            file.name(name)
        at = HEADER_OFFSETS["events_written"]
        self._counter = file.memory[at : at + 8].cast("q")
        self._memory, self._events_at = file.memory, file.events_at
        self._capacity = file.get("events_capacity")
        if self._capacity:
            self._written = 0
        self._world = world.Get_group()
        self._file = file
        self.new_communicator(world)

    def name(self, text: str) -> int:
        """The number of a name, the same as in the file."""
        number = self._by_name.get(text)
        if number is None:
            file = self._file
            number = len(self.names) if file is None else file.name(text)
            if number == len(self.names):
                self.names.append(text)
            self._by_name[text] = number
        return number

    # Tallies

    def tally(self, key: Key) -> list[int]:
        """The tally of a key, a new one if there is none yet."""
        found = self.tallies.get(key)
        if found is None:
            if len(self.tallies) >= MOST_TALLIES:
                self._fold()
            found = self.tallies.setdefault(key, [0, 0, FOREVER, 0])
        return found

    def count(self, key: Key, spent: int) -> None:
        """Count a call that took ``spent`` ns."""
        tally = self.tally(key)
        tally[0] += 1
        tally[1] += spent
        if spent < tally[2]:
            tally[2] = spent
        if spent > tally[3]:
            tally[3] = spent

    def called(
        self, number: int, communicator: int, peer: int, nbytes: int, began: int, ended: int
    ) -> None:
        """Count a call of the routine with this number, at its site where those are asked for."""
        site = self.site_of_program() if self.sites else 0
        self.count((number, communicator, peer, nbytes, site), ended - began)

    def pause(self) -> None:
        """Forget what is counted from now on until `resume`."""
        if self._kept is None:
            copies = ({key: list(t) for key, t in d.items()} for d in (self.tallies, self._folded))
            self._kept = next(copies), next(copies)
            self._resumes_at, self._written = self._written, -1

    def resume(self) -> None:
        """Go on from where `pause` was called."""
        if self._kept is not None:
            tallies, folded = self._kept
            self._kept = None
            for key, tally in self.tallies.items():
                tally[:] = tallies.get(key, [0, 0, FOREVER, 0])
            self._folded = folded
            self._written = self._resumes_at

    def cells(self) -> list[tuple[int, ...]]:
        """All that was counted, as rows of `layout.CELL`."""
        source = (self.tallies, self._folded) if self._kept is None else self._kept
        cells: dict[tuple[int, ...], list[int]] = {}
        for key, tally in (item for tallies in source for item in list(tallies.items())):
            calls, spent, least, greatest = tally[:4]
            if calls:
                routine, communicator, peer, nbytes, site = key
                world = self.world_rank(communicator, peer)
                total = tally[4] if len(tally) > 4 else calls * max(0, nbytes)
                into = cells.setdefault(
                    (routine, communicator, world, size_bin(nbytes), site),
                    [0, 0, 0, FOREVER, 0],
                )
                into[0] += calls
                into[1] += total
                into[2] += spent
                into[3] = min(into[3], least)
                into[4] = max(into[4], greatest)
        return [(*key, 0, *values) for key, values in cells.items()]

    def _fold(self) -> None:
        """Put tallies together whose sizes are in the same bin, under the bin's greatest size."""
        tallies = list(self.tallies.items())
        self.tallies.clear()
        for (routine, communicator, peer, nbytes, site), tally in tallies:
            size = nbytes if nbytes <= 0 else 1 << (size_bin(nbytes) + 1)
            into = self._folded.setdefault(
                (routine, communicator, peer, size, site), [0, 0, FOREVER, 0, 0]
            )
            into[0] += tally[0]
            into[1] += tally[1]
            into[2] = min(into[2], tally[2])
            into[3] = max(into[3], tally[3])
            into[4] += tally[0] * max(0, nbytes)

    def site(self, frame: FrameType | None) -> int:
        """The number of the line of a program that a frame is at."""
        if frame is None:
            return 0
        place = (frame.f_code, frame.f_lineno)
        found = self._sites.get(place)
        if found is None:
            code, line = place
            text = f"{code.co_filename}:{line} {getattr(code, 'co_qualname', code.co_name)}"
            found = self._sites[place] = self.name(text)
        return found

    def site_of_program(self) -> int:
        """The number of the line of the program that made the call which is being recorded."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(OBSERVERS):
            frame = frame.f_back
        return self.site(frame)

    # Communicators

    def communicator(self, comm: Any) -> int:
        """The number of a communicator's name; one that is met first gets a name."""
        try:
            handle = MPI._handleof(comm)
        except Exception:
            return 0
        number = self._numbers.get(handle)
        return self.new_communicator(comm) if number is None else number

    def met(self, comm: Any) -> int:
        """The number of a communicator that has one, 0 for all else; calls nothing of MPI."""
        try:
            return self._numbers.get(MPI._handleof(comm), 0)
        except Exception:
            return 0

    def new_communicator(self, comm: Any, alike: int | None = None) -> int:
        """The same for one that has just been made, whose handle may have been another's.

        ``alike`` is the number of the one that it is a duplicate of, where it must not be asked
        itself, for it is still being made.
        """
        handle = MPI._handleof(comm)
        if comm == MPI.COMM_NULL or self._world is None:
            return 0
        if alike is None:
            peers, everybody = self._groups(comm)
            label, size = label_of(comm.Get_name()), comm.Get_size()
        else:
            peers, everybody, size = self._known[alike]
            label = ""
        if comm == MPI.COMM_WORLD:
            key = WORLD
        elif comm == MPI.COMM_SELF:
            key = self_key(everybody[0])
        else:
            instance = self._met[tuple(everybody)] = self._met.get(tuple(everybody), 0) + 1
            key = communicator_key(everybody, instance)
        label = label or f"{sum(rank >= 0 for rank in everybody)} ranks"
        number = self.name(communicator_line(Communicator(key, size, label)))
        self._numbers[handle] = number
        self._known[number] = peers, everybody, size
        return number

    def _groups(self, comm: Any) -> tuple[Sequence[int], Sequence[int]]:
        """World ranks of whom a rank can send to, and of all that belong to a communicator."""
        members = self._world_ranks(comm.Get_group())
        if not comm.Is_inter():
            return members, members
        remote = self._world_ranks(comm.Get_remote_group())
        first, second = sorted((members, remote), key=lambda group: group[0])
        return remote, [*first, BETWEEN, *second]

    def forget(self, comm: Any) -> None:
        """A communicator is about to be freed; its handle may become another's."""
        self._numbers.pop(MPI._handleof(comm), None)

    def world_rank(self, communicator: int, peer: int) -> int:
        """The rank in MPI_COMM_WORLD of a communicator's rank, `NOBODY` for none."""
        members = self._known[communicator][0] if communicator in self._known else ()
        return max(NOBODY, members[peer]) if 0 <= peer < len(members) else NOBODY

    def _world_ranks(self, group: Any) -> Sequence[int]:
        ranks: list[int] = group.Translate_ranks(None, self._world)
        group.Free()
        return [rank if rank >= 0 else ELSEWHERE for rank in ranks]

    # Events

    def event(
        self,
        kind: int,
        name: int,
        communicator: int,
        peer: int,
        tag: int,
        lane: int,
        began: int,
        ended: int,
        nbytes: int,
        request: int,
        sequence: int,
    ) -> None:
        """Write an event over the oldest; nothing while paused or where there is no timeline."""
        slot = self._written
        if slot < 0:
            return
        self._written = slot + 1
        at = self._events_at + slot % self._capacity * EVENT_BYTES
        fields = kind, name, communicator, peer, tag, lane, began, ended, nbytes, request, sequence
        pack(self._memory, at, *fields)
        self._counter[0] = slot + 1

    def message_event(
        self,
        received: bool,
        number: int,
        communicator: int,
        peer: int,
        tag: int,
        began: int,
        ended: int,
        nbytes: int,
    ) -> None:
        """The event of a blocking message; ``peer`` is a rank of the communicator."""
        world = self.world_rank(communicator, peer)
        sequence = self.message(received, communicator, world, tag)
        self.event(CALL, number, communicator, world, tag, 0, began, ended, nbytes, 0, sequence)

    def collective_event(
        self, number: int, communicator: int, root: int, began: int, ended: int, nbytes: int
    ) -> None:
        """The event of a blocking collective call; ``root`` is a rank of the communicator."""
        world = self.world_rank(communicator, root)
        sequence = self.collective(communicator)
        self.event(CALL, number, communicator, world, 0, 0, began, ended, nbytes, 0, sequence)

    def message(self, received: bool, communicator: int, peer: int, tag: int) -> int:
        """The number of one more message of this direction, peer (in the world) and tag."""
        if peer == NOBODY:
            return 0
        key = (int(received), communicator, peer, tag)
        number = self._sequences[key] = self._sequences.get(key, 0) + 1
        return number

    def collective(self, communicator: int) -> int:
        """The number of one more collective call on a communicator."""
        number = self.collectives[communicator] = self.collectives.get(communicator, 0) + 1
        return number

    def request(self) -> int:
        """A number for one more request."""
        self._requests += 1
        return self._requests


def label_of(name: str) -> str:
    """A communicator's name for people: ``world`` for MPI_COMM_WORLD."""
    return name.removeprefix("MPI_COMM_").lower() if name.startswith("MPI_COMM_") else name
