"""What one rank has called so far, kept by Python: tallies, communicators, events."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from time import monotonic, monotonic_ns
from types import FrameType
from typing import Any

from mpi4py import MPI

from omb_py.tracing.recorder.record_file import RecordFile
from omb_py.tracing.recorder.tallies import Tallies, Tally
from omb_py.tracing.records.layout import (
    BETWEEN,
    ELSEWHERE,
    EVENT_FORMAT,
    HEADER_OFFSETS,
    NOBODY,
    NS_PER_SECOND,
    WORLD,
    Communicator,
    Kind,
    communicator_key,
    communicator_line,
    self_key,
)

CALL = int(Kind.CALL)
EVENT_BYTES = EVENT_FORMAT.size
pack = EVENT_FORMAT.pack_into

OBSERVERS = __file__.rpartition("/")[0]
"""Where code is that no program has written."""


class CallInProgress:
    """The call that a rank is in: observed methods write it, the publisher's thread reads it.

    ``call`` is the tally of its routine, communicator and peer, None outside MPI, and ``began`` is
    in the recorder's ticks. Methods write ``call`` last, right after they have read the clock, and
    None when the call has returned or failed. Of calls that several threads are in, it is the one
    that began last, until any of them ends, as from C.
    """

    __slots__ = ("began", "call")

    def __init__(self) -> None:
        self.call: Tally | None = None
        self.began: float = 0


class PythonRecorder:
    """Keeps what observed methods see.

    Times are read from ``clock``, in ticks of ``tick`` ns each: ns where a timeline needs them,
    else seconds, because adding those takes less time. Both are of CLOCK_MONOTONIC.
    """

    def __init__(self, sites: bool = False, timeline: bool = False) -> None:
        """``sites``: also record from which line of the program a call was made."""
        self.sites = sites
        self.timeline = timeline
        self.clock: Callable[[], Any] = monotonic_ns if timeline else monotonic
        self.tick = 1 if timeline else NS_PER_SECOND
        self.now = CallInProgress()
        self.tallies = Tallies(self.world_rank, self.tick)
        self.collectives: dict[int, int] = {}
        self.inside_ns = 0
        self.names = [""]
        self._by_name = {"": 0}
        self._file: RecordFile | None = None
        self._members: dict[int, tuple[Sequence[int], Sequence[int], int]] = {}
        self._numbers: dict[Any, int] = {}
        self._instances: dict[tuple[int, ...], int] = {}
        self._sites: dict[tuple[Any, int], int] = {}
        self._messages: dict[tuple[bool, int, int, int], list[int]] = {}
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

    # Calls

    def called(
        self, number: int, communicator: int, peer: int, nbytes: int, began: Any, ended: Any
    ) -> None:
        """Count a call of the routine with this number, at its site where those are asked for."""
        site = self.site_of_program() if self.sites else 0
        self.tallies.count(number, communicator, peer, nbytes, site, ended - began)

    def record(
        self, number: int, communicator: int, peer: int, nbytes: int, began: Any, ended: Any
    ) -> None:
        """Count a call that is no message and no collective one, and keep its event."""
        self.called(number, communicator, peer, nbytes, began, ended)
        if self.timeline:
            world = self.world_rank(communicator, peer)
            self.event(CALL, number, communicator, world, 0, 0, began, ended, nbytes, 0, 0)

    def pause(self) -> None:
        """Forget what is called from now on until `resume`."""
        if not self.tallies.paused:
            self.tallies.pause()
            self._resumes_at, self._written = self._written, -1

    def resume(self) -> None:
        """Go on from where `pause` was called."""
        if self.tallies.paused:
            self.tallies.resume()
            self._written = self._resumes_at

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

    def new_communicator(self, comm: Any, alike: int | None = None) -> int:
        """The number of one that has just been made, whose handle may have been another's.

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
            peers, everybody, size = self._members[alike]
            label = ""
        if comm == MPI.COMM_WORLD:
            key = WORLD
        elif comm == MPI.COMM_SELF:
            key = self_key(everybody[0])
        else:
            instance = self._instances[tuple(everybody)] = (
                self._instances.get(tuple(everybody), 0) + 1
            )
            key = communicator_key(everybody, instance)
        label = label or f"{sum(rank >= 0 for rank in everybody)} ranks"
        number = self.name(communicator_line(Communicator(key, size, label)))
        self._numbers[handle] = number
        self._members[number] = peers, everybody, size
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
        members = self._members[communicator][0] if communicator in self._members else ()
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
        self, received: bool, number: int, tally: Tally, tag: int, began: int, ended: int
    ) -> None:
        """The event of a blocking message that was counted in a tally."""
        nbytes, communicator, world = tally.nbytes, tally.communicator, tally.peer
        sequence = self.message(received, communicator, world, tag)
        self.event(CALL, number, communicator, world, tag, 0, began, ended, nbytes, 0, sequence)

    def collective_event(self, number: int, tally: Tally, began: int, ended: int) -> None:
        """The event of a blocking collective call that was counted in a tally."""
        nbytes, communicator, world = tally.nbytes, tally.communicator, tally.peer
        sequence = self.collective(communicator)
        self.event(CALL, number, communicator, world, 0, 0, began, ended, nbytes, 0, sequence)

    def message(self, received: bool, communicator: int, peer: int, tag: int) -> int:
        """The number of one more message of this direction, peer (in the world) and tag."""
        if peer == NOBODY:
            return 0
        key = received, communicator, peer, tag
        try:
            count = self._messages[key]
        except KeyError:
            count = self._messages.setdefault(key, [0])
        count[0] += 1
        return count[0]

    def no_message(
        self, received: bool, communicator: int, peer: int, tag: int, number: int
    ) -> None:
        """The message of this number was none; if it is the last, the next one takes its number."""
        count = self._messages[received, communicator, peer, tag]
        if count[0] == number:
            count[0] = number - 1

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
