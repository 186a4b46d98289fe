"""The state of a run at a time, and the changes from one snapshot to the next."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np

from omb_py.tracing.records.layout import Communicator
from omb_py.tracing.records.reading import MAIN, NS, RankRecord, ThreadRecord
from omb_py.tracing.records.routines import (
    READ,
    STARTED,
    WRITTEN,
    begins_collective,
    file_direction,
)

KILLED_AFTER = 1.0
"""Seconds for which a rank whose process is gone may have said nothing, while it ends."""


STOPPED = ("T", "t")
GONE = ("Z", "X", "x")
"""States in /proc of a process that a signal or a debugger stopped, and of one that has ended."""


class Process(Enum):
    """The state of a rank's process by the system; unknown on another host."""

    THERE = "there"
    STOPPED = "stopped"
    GONE = "gone"
    UNKNOWN = "unknown"


class RankState(Enum):
    """The state of a rank."""

    RUNS = "runs"
    ENDED = "ended"
    KILLED = "killed"
    STOPPED = "stopped"
    SILENT = "not heard of"


@dataclass(frozen=True)
class ObservationTime:
    """The host of an observation, and ns of that host's monotonic clock."""

    host: str
    monotonic: int


@dataclass(frozen=True)
class ThreadSnapshot:
    """The observed state of one thread: for ``seconds`` it has been where it is ``now``.

    ``mpi_ns`` includes the part of a call under way.
    """

    now: ThreadRecord
    seconds: float
    mpi_ns: int


@dataclass(frozen=True)
class RankSnapshot:
    """The observed state of one rank.

    ``at`` and ``began`` are ns of its clock, ``at`` the time of this state. ``nbytes`` are those of
    messages, ``read`` and ``written`` those of files. ``since_update_s`` are the seconds since its
    last update. ``threads`` are those that have called MPI, in the order of their places in the
    record. ``collectives`` are the calls begun on each of its ``communicators``, both by key.
    """

    rank: int
    host: str
    began: int
    at: int
    ended: bool
    process: Process
    since_update_s: float
    calls: int
    nbytes: int
    read: int
    written: int
    memory: int
    threads: tuple[ThreadSnapshot, ...]
    communicators: Mapping[str, Communicator]
    collectives: Mapping[str, int]

    @property
    def elapsed_s(self) -> float:
        """Seconds since its beginning."""
        return (self.at - self.began) * NS

    @property
    def living(self) -> tuple[ThreadSnapshot, ...]:
        """The threads that have called MPI and not ended; the main one if there is no other."""
        outside = ThreadRecord(MAIN, False, 0, 0, 0, "", "", None, 0, 0, ())
        living = tuple(one for one in self.threads if not one.now.ended)
        return living or (ThreadSnapshot(outside, self.elapsed_s, 0),)

    def state(self, stale_after_s: float) -> RankState:
        """Return the state, silent if the last update is older than ``stale_after_s``."""
        if self.ended:
            return RankState.ENDED
        if self.process is Process.GONE and self.since_update_s > KILLED_AFTER:
            return RankState.KILLED
        if self.process is Process.STOPPED:
            return RankState.STOPPED
        if self.since_update_s > stale_after_s:
            return RankState.SILENT
        return RankState.RUNS


@dataclass(frozen=True)
class Snapshot:
    """All ranks that have records, in order; the job has ``size`` ranks, and runs ``program``."""

    size: int
    program: str
    ranks: tuple[RankSnapshot, ...]

    @property
    def missing(self) -> list[int]:
        """Ranks that have no record."""
        there = {one.rank for one in self.ranks}
        return [rank for rank in range(self.size) if rank not in there]


@dataclass(frozen=True)
class Change:
    """The work of a rank over a period: ``mpi_shares`` are the parts of it that each of its living
    threads spent in MPI.

    Bytes are as in `RankSnapshot`.
    """

    calls_per_s: float
    bytes_per_s: float
    files_read_per_s: float
    files_written_per_s: float
    mpi_shares: tuple[float, ...]


def current_time() -> ObservationTime:
    """Here and now."""
    return ObservationTime(os.uname().nodename, time.monotonic_ns())


def processes_of(records: Iterable[RankRecord], host: str) -> dict[int, Process]:
    """Return the processes of ranks, by rank; those of other hosts are left out."""
    return {
        record.rank: process(int(record.header["pid"]))
        for record in records
        if record.host == host and not record.complete
    }


def process(pid: int) -> Process:
    """Return the state of a process, by its number."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except FileNotFoundError:
        return Process.GONE if Path("/proc/self").exists() else Process.UNKNOWN
    except OSError:
        return Process.UNKNOWN
    state = told.rpartition(")")[2].split()[:1]
    if state and state[0] in GONE:
        return Process.GONE
    return Process.STOPPED if state and state[0] in STOPPED else Process.THERE


def take_snapshot(
    records: Sequence[RankRecord], seen_at: ObservationTime, processes: Mapping[int, Process]
) -> Snapshot | None:
    """Return the state in records; those of an earlier run, which had other ranks, are left out.

    A rank of the observing host is compared with that host's clock, others with the rank of the
    last update. ``processes`` has the state of processes by rank, as far as known. None if no
    record is left.
    """
    if not records:
        return None
    last = max(records, key=lambda record: record.header["began_epoch"])
    ours = sorted(
        (one for one in records if one.ranks == last.ranks and one.rank < last.ranks),
        key=lambda one: one.rank,
    )
    newest = max(map(last_update, ours))
    snapshots = [
        rank_snapshot(one, seen_at, newest, processes.get(one.rank, Process.UNKNOWN))
        for one in ours
    ]
    return Snapshot(last.ranks, str(last.about.get("command", "")), tuple(snapshots))


def last_update(record: RankRecord) -> int:
    """Return the time of a rank's last update, ns since 1970 of its host's clock."""
    header = record.header
    said = max(int(header["updated"]), int(header["ended"]), record.began)
    return int(header["began_epoch"]) + said - record.began


def rank_snapshot(
    record: RankRecord, seen_at: ObservationTime, newest: int, process: Process
) -> RankSnapshot:
    """Return the state in one record; ``newest`` is the last update of any record
    (`last_update`)."""
    header, cells, communicators = record.header, record.cells, record.communicators
    at, quiet = clock(record, seen_at, newest, process)
    of_files = file_bytes(record)
    return RankSnapshot(
        rank=record.rank,
        host=record.host,
        began=record.began,
        at=at,
        ended=record.complete,
        process=process,
        since_update_s=max(0, quiet) * NS,
        calls=calls_made(record) + int(header["cells_lost"]),
        nbytes=int(cells["nbytes"].sum()) - sum(of_files.values()),
        read=of_files[READ],
        written=of_files[WRITTEN],
        memory=int(header["memory_bytes"]),
        threads=tuple(activity(one, at, record.complete) for one in record.threads),
        communicators={one.key: one for one in communicators.values()},
        collectives=collective_calls(record, communicators),
    )


def clock(
    record: RankRecord, seen_at: ObservationTime, newest: int, process: Process
) -> tuple[int, int]:
    """Return the time of a record's state (ns of its clock), and ns since its last update."""
    said = max(int(record.header["updated"]), record.began)
    here = record.host == seen_at.host and said <= seen_at.monotonic
    quiet = seen_at.monotonic - said if here else newest - last_update(record)
    if record.complete:
        return record.ended, quiet
    return seen_at.monotonic if here and process is not Process.GONE else said, quiet


def activity(thread: ThreadRecord, at: int, complete: bool) -> ThreadSnapshot:
    """Return the state of a thread at a time, ``complete`` if the rank has ended."""
    since = max(0, at - thread.began)
    going_on = since if thread.routine and not complete else 0
    return ThreadSnapshot(thread, since * NS, thread.ns + going_on)


def calls_made(record: RankRecord) -> int:
    """Return the number of calls of MPI that a rank has made, without operations that these
    started."""
    cells = record.cells
    started = [number for number, name in enumerate(record.names) if name.endswith(STARTED)]
    return int(cells["calls"][~np.isin(cells["routine"], started)].sum())


def file_bytes(record: RankRecord) -> dict[str, int]:
    """Return the bytes of files that a rank has `READ` and `WRITTEN`."""
    cells, found = record.cells, {READ: 0, WRITTEN: 0}
    for number, name in enumerate(record.names):
        if (way := file_direction(name)) is not None:
            found[way] += int(cells["nbytes"][cells["routine"] == number].sum())
    return found


def collective_calls(
    record: RankRecord, communicators: Mapping[int, Communicator]
) -> dict[str, int]:
    """Return the collective calls that a rank has completed or begun on each communicator, by
    key."""
    cells, found = record.cells, dict.fromkeys((one.key for one in communicators.values()), 0)
    for number in np.unique(cells["routine"]).tolist():
        name = record.name(number)
        if not begins_collective(name):
            continue
        of_routine = cells[cells["routine"] == number]
        for comm in np.unique(of_routine["communicator"]).tolist():
            if comm in communicators:
                calls = of_routine["calls"][of_routine["communicator"] == comm].sum()
                found[communicators[comm].key] += int(calls)
    for now in record.threads:
        if now.communicator and begins_collective(now.awaited):
            key = now.communicator.key
            found[key] = max(found.get(key, 0), now.collectives)
    return found


def changes(before: Snapshot | None, after: Snapshot) -> dict[int, Change]:
    """Return each rank's work between two snapshots, or since its beginning."""
    known = {one.rank: one for one in before.ranks} if before else {}
    found = {one.rank: change(known.get(one.rank), one) for one in after.ranks}
    return {rank: one for rank, one in found.items() if one is not None}


def change(before: RankSnapshot | None, after: RankSnapshot) -> Change | None:
    """Return a rank's work since ``before``, or its beginning; None if no time has passed."""
    base = before if before is not None and before.began == after.began else None
    seconds = (after.at - (base.at if base else after.began)) * NS
    if seconds <= 0:
        return None
    calls, nbytes, read, written = (
        max(0, getattr(after, name) - (getattr(base, name) if base else 0)) / seconds
        for name in ("calls", "nbytes", "read", "written")
    )
    known = [one.mpi_ns for one in base.threads] if base else []
    spent = zip(after.threads, [*known, *[0] * len(after.threads)], strict=False)
    shares = [
        min(1.0, max(0, one.mpi_ns - before) * NS / seconds)
        for one, before in spent
        if not one.now.ended
    ]
    return Change(calls, nbytes, read, written, tuple(shares) or (0.0,))
