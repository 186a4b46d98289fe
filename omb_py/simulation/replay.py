"""A recorded run as a program: the same messages and collectives, with the computing between them.

Messages are matched as they are for a timeline. Which algorithm a collective took is not recorded:
the textbook's is simulated. The number of ranks is the recorded one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from omb_py.apps.replay import ANSWERS, Plan, partner, plan_of, rank_profile
from omb_py.core.errors import UnsupportedError, UsageError
from omb_py.core.text.words import first_of
from omb_py.simulation.collectives import by_textbook
from omb_py.simulation.engine import Outcome, Run
from omb_py.simulation.program import (
    Background,
    Compute,
    Operation,
    Program,
    Receive,
    Send,
    Wait,
)
from omb_py.simulation.workers import Task
from omb_py.tracing.efficiency.intervals import Intervals, aligned, intervals_of
from omb_py.tracing.records import NS, Kind, Record, missing_ranks, read_folder
from omb_py.tracing.records.messages import partners, sides_of, unique
from omb_py.tracing.records.routines import (
    PICKLED,
    Dependence,
    Role,
    base,
    dependence,
    nonblocking,
    prepares,
    role,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

Where: TypeAlias = tuple[int, int, int]
"""An interval in MPI, a time in it (ns), and a place among the events of that time."""

Placed: TypeAlias = tuple[int, int, int, Operation]
"""An operation, after where it is made."""


@dataclass(frozen=True)
class Replayed:
    """The program of a recorded run; ``left_out`` counts calls, by routine, that it lacks.

    These are one-sided communication, files, other programs that were started, collectives without
    an algorithm or of which some ranks' calls were lost, and messages of which one side was.

    ``recorded_s`` is how long the run took.
    """

    program: Program
    left_out: Counter[str]
    recorded_s: float


def program_of(records: Sequence[Record], name: str, compute_scale: float = 1.0) -> Replayed:
    """The program of all ranks of a run; computing takes ``compute_scale`` as long as recorded.

    Raises `UsageError` for records that are not those of all ranks, without events, or of clocks
    that nobody has compared.
    """
    if missing := missing_ranks(list(records)):
        raise UsageError(f"{name} lacks the records of ranks {first_of(missing)}")
    if not any(len(record.packed_events) for record in records):
        raise UsageError(f"{name} has no events: record with omb-py profile --timeline")
    if not aligned(records):
        raise UsageError(f"{name} has clocks that were never compared: its ranks have no order")
    reader = _Reader(intervals_of(records))
    made = [reader.placed(index) for index in range(len(records))]
    starts = [one.start for one in reader.every]
    seconds = (max(one.end for one in reader.every) - min(starts)) * NS

    def operations(rank: int) -> Iterator[Operation]:
        mine = reader.every[rank]
        before = (mine.start - min(starts)) * NS
        computed = [*mine.computed().tolist(), mine.outside]
        done, last = 0, -1
        for interval, _, _, operation in made[rank]:
            if interval != last:
                seconds = (computed[max(0, interval)] - done) * NS * compute_scale
                if seconds + before > 0:
                    yield Compute(seconds + before)
                done, last, before = computed[max(0, interval)], interval, 0.0
            yield operation
        yield Compute((computed[-1] - done) * NS * compute_scale)

    return Replayed(Program(len(records), operations, name), reader.left_out, seconds)


def program_of_plan(plan: Plan, ranks: int, name: str) -> Program:
    """The calls of a profile that was only counted, as ``omb-py replay`` makes them.

    Calls of two ranks are made in pairs. Raises `UnsupportedError` where a collective has no
    algorithm.
    """
    together = {
        index: by_textbook(item.function, ranks, item.nbytes)
        for index, item in enumerate(plan.items)
        if item.function not in ANSWERS
    }

    def operations(rank: int) -> Iterator[Operation]:
        peer = partner(rank, ranks)
        for index in plan.order:
            item = plan.items[index]
            if index in together:
                yield from together[index].operations(rank)
            elif peer is not None:
                function = item.function if rank % 2 == 0 else ANSWERS[item.function]
                waits = []
                if "recv" in function:
                    yield Receive(peer, 0)
                    waits.append(0)
                if "send" in function:
                    yield Send(peer, item.nbytes, 1)
                    waits.append(1)
                yield Wait(tuple(waits))

    return Program(ranks, operations, name)


def tags_by_event(
    sides: NDArray[Any], tags: dict[tuple[int, int], int]
) -> dict[tuple[int, int], int]:
    """The tag of each message by rank and event: one for each communicator and recorded tag."""
    names = ("rank", "event", "communicator", "tag")
    return {
        (rank, event): tags.setdefault((communicator, tag), len(tags))
        for rank, event, communicator, tag in sides[list(names)].tolist()
    }


def size_of(routine: str, counted: Mapping[int, int], root: int) -> int:
    """The message size of a collective as algorithms have it, from what each rank counted.

    Of blocks that differ it is the mean. A root's own block is not sent, and it counts the objects
    of all ranks that it pickles as one message; those of an alltoall are one, too.
    """
    known = [nbytes for rank, nbytes in counted.items() if nbytes >= 0 and rank != root]
    nbytes = fmean(known) if known else 0.0
    name = base(routine)
    if name == "alltoall" and routine.endswith(PICKLED):
        nbytes /= len(counted)
    elif name == "reduce_scatter_block":  # counted is the block, and algorithms have the vector
        nbytes *= len(counted)
    return round(nbytes)


def is_beyond(routine: str) -> bool:
    """Whether a call does what no operation stands for: one-sided communication, files, and
    waiting for processes that a record says nothing of."""
    what = role(routine)
    if what is Role.MANAGEMENT:
        return dependence(routine) is Dependence.OTHERS
    return what in (Role.ONE_SIDED, Role.FILE)


def request_of_receive(event: int) -> int:
    """The number of the request of a receive, from that of its event."""
    return 3 * event


def request_of_send(event: int) -> int:
    """The number of the request of a send."""
    return 3 * event + 1


def request_of_collective(event: int) -> int:
    """The number of the request of a non-blocking collective."""
    return 3 * event + 2


def on_members(
    program: Program, members: Sequence[int], rank: int, tag: int
) -> Iterator[Operation]:
    """What a rank does in a program of the members of a communicator, with requests below 0."""

    def own(request: int) -> int:
        return -1 - (2 * abs(request) + (request < 0))

    for one in program.operations(members.index(rank)):
        if isinstance(one, Send | Receive):
            request = None if one.request is None else own(one.request)
            yield replace(one, peer=members[one.peer], request=request, tag=tag)
        elif isinstance(one, Wait):
            yield Wait(tuple(map(own, one.requests)))
        else:
            yield one


@dataclass(frozen=True)
class Recorded:
    """The recorded run of a folder, to be simulated."""

    folder: str
    compute_scale: float

    def on(self, ranks: int) -> Task:
        """The task: on as many ranks as were recorded."""
        return self.simulate

    def simulate(self, run: Run) -> Outcome:
        """What comes of it."""
        return run(program_of(read_folder(self.folder), self.folder, self.compute_scale).program)


@dataclass(frozen=True)
class Counted:
    """Calls like those of a profile, to be simulated on some ``ranks``."""

    path: str
    ranks: int = 0

    def on(self, ranks: int) -> Task:
        """The task on so many ranks."""
        return replace(self, ranks=ranks).simulate

    def simulate(self, run: Run) -> Outcome:
        """What comes of it."""
        return run(
            program_of_plan(plan_of(rank_profile(self.path), 1.0, ()), self.ranks, self.path)
        )


class _Reader:
    """Turns events into operations, rank by rank."""

    def __init__(self, every: Sequence[Intervals]) -> None:
        self.every = every
        self.left_out: Counter[str] = Counter()
        self.begun: list[set[int]] = [set() for _ in every]
        self.programs: dict[tuple[str, int], Program] = {}
        self.collective_tags: dict[tuple[str, int], int] = {}
        self.counted: dict[tuple[str, int], dict[int, int]] = {}
        keys: dict[str, int] = {}
        sides = [
            sides_of(
                index,
                one.record.rank,
                one.record.events,
                one.record.names,
                one.record.communicators,
                keys,
            )
            for index, one in enumerate(every)
        ]
        sends = unique(np.concatenate([one.sends for one in sides]))
        receives = np.concatenate([one.receives for one in sides])
        kept = partners(receives, sends)
        tags: dict[tuple[int, int], int] = {}
        sent = np.unique(kept[kept >= 0])
        self.sends = tags_by_event(sends[sent], tags)
        self.receives = tags_by_event(receives[kept >= 0], tags)
        for side in chain(np.delete(sends, sent), receives[kept < 0]):
            record = every[side["rank"]].record
            self.left_out[record.name(int(record.events[side["event"]]["name"]))] += 1
        for one in every:
            self._count_bytes(one.record)

    def _count_bytes(self, record: Record) -> None:
        """Which ranks take part in each collective call, and the bytes that each counts."""
        events = record.events
        for event in events[(events["kind"] == Kind.CALL) & (events["sequence"] > 0)]:
            name = record.name(int(event["name"]))
            if role(name) is Role.COLLECTIVE and not prepares(name):
                key = self._key(record, int(event["communicator"]), int(event["sequence"]))
                self.counted.setdefault(key, {})[record.rank] = int(event["nbytes"])

    def _key(self, record: Record, communicator: int, sequence: int) -> tuple[str, int]:
        found = record.communicators.get(communicator)
        return ("" if found is None else found.key), sequence

    def placed(self, index: int) -> list[Placed]:
        """The operations of a rank in order."""
        one = self.every[index]
        record, events = one.record, one.record.events
        begun_in = one.with_begin(record.common(events["began"])).tolist()
        ended_in = one.with_end(record.common(events["ended"])).tolist()
        calls = {
            row["request"]: number
            for number, row in enumerate(events)
            if row["kind"] == Kind.CALL and row["request"]
        }
        found: list[Placed] = []
        for number, event in enumerate(events):
            name = record.name(int(event["name"]))
            what, side = role(name), (index, number)
            where = (begun_in[number], int(event["began"]), number)
            until = (ended_in[number], int(event["ended"]), number)
            is_done = event["kind"] == Kind.DONE
            begin = calls.get(event["request"], number)
            if side in self.sends:
                waits = nonblocking(name) or what is Role.SENDRECV
                sent = max(0, int(event["nbytes"]))
                request = request_of_send(number) if waits else None
                found.append((*where, Send(int(event["peer"]), sent, request, self.sends[side])))
                if what is Role.SENDRECV:
                    found.append((*until, Wait((request_of_send(number),))))
            if side in self.receives:
                peer, tag = int(event["peer"]), self.receives[side]
                if event["kind"] == Kind.CALL and not nonblocking(name):
                    found.append((*where, Receive(peer, None, tag)))
                else:  # posted when its call began, complete where this event ends
                    found.append((*where[:2], -1, Receive(peer, request_of_receive(number), tag)))
                    found.append((*until, Wait((request_of_receive(number),))))
            elif is_done and what is Role.SEND and (index, begin) in self.sends:
                found.append((*until, Wait((request_of_send(begin),))))
            elif what is Role.COLLECTIVE and not prepares(name):
                found += self._collective(record, number, begin, where, until)
            elif event["kind"] == Kind.CALL and is_beyond(name):
                self.left_out[name] += 1
        return sorted(found, key=lambda one: one[:3])

    def _collective(
        self, record: Record, number: int, begin: int, where: Where, until: Where
    ) -> Iterator[Placed]:
        """What a rank does in a collective call, or where it waits for one."""
        event = record.events[number]
        name = record.name(int(event["name"]))
        if event["kind"] == Kind.DONE:
            if begin in self.begun[record.rank]:
                yield *until, Wait((request_of_collective(begin),))
            return
        if event["kind"] != Kind.CALL:
            return
        key = self._key(record, int(event["communicator"]), int(event["sequence"]))
        counted = self.counted.get(key, {})
        members = sorted(counted)
        communicator = record.communicators.get(int(event["communicator"]))
        if communicator is None or len(members) != communicator.size:
            self.left_out[name] += 1
            return
        if len(members) == 1:
            return
        root = members.index(event["peer"]) if event["peer"] in members else 0
        program = self.programs.get(key)
        if program is None:
            nbytes = size_of(name, counted, int(event["peer"]))
            try:
                program = by_textbook(base(name), len(members), nbytes, root)
            except UnsupportedError:
                self.left_out[name] += 1
                return
            self.programs[key] = program
        tag = self.collective_tags.setdefault(key, -1 - len(self.collective_tags))
        mine = on_members(program, members, record.rank, tag)
        if nonblocking(name):
            self.begun[record.rank].add(number)
            yield *where, Background(tuple(mine), request_of_collective(number), name)
        else:
            for operation in mine:
                yield *where, operation
