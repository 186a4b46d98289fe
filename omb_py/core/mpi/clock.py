"""One time for all ranks: how far this rank's clock is from rank 0's, and starts in common.

Clocks of different hosts are compared by ping-pongs whose fastest round trip bounds the error
(F. Cristian, Probabilistic clock synchronization, Distributed Computing 3, 1989), along a binomial
tree, so that the cost grows with the logarithm of the number of hosts (S. Hunold and
A. Carpen-Amarie, Hierarchical clock synchronization in MPI, CLUSTER 2018). Ranks that share a
clock are not compared: their offset is exactly 0.
"""

from __future__ import annotations

import os
import zlib
from array import array
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from omb_py.core.dataclass import dataclass

if TYPE_CHECKING:
    from mpi4py import MPI

ROUND_TRIPS = 100
"""Ping-pongs of one comparison; the fastest decides."""

SECONDS_FOR_DRIFT = 1.0
"""Minimum time between two comparisons that a drift is computed from."""

BROADCASTS = 20
"""Broadcasts from which `CommonStart` learns how long the news of a start takes."""

SPIN_SECONDS = 5e-6
"""Time before a start when a rank stops offering its core to others, which may return it late."""

LATE_SECONDS = 1e-6
"""A rank that begins later than this after a start is late: in time it is by some 0.1 us."""

SLACK = 2.0
"""A start is announced this many times as early as most broadcasts need."""

ANNOUNCEMENT_TAG = 200


@dataclass(frozen=True)
class Offset:
    """Rank 0's clock minus this rank's, both ``time.perf_counter``, in seconds.

    ``seconds`` holds at this rank's time ``reference`` and changes by ``drift`` seconds a second;
    ``error`` bounds how wrong ``seconds`` is.
    """

    seconds: float = 0.0
    error: float = 0.0
    drift: float = 0.0
    reference: float = 0.0

    def local(self, root_time: float) -> float:
        """Return this rank's time at rank 0's ``root_time``."""
        local = root_time - self.seconds
        return local - self.drift * (local - self.reference)


def offset_of(round_trips: list[tuple[float, float, float]]) -> Offset:
    """Return the offset that the fastest of some round trips shows.

    Each is this side's time of sending, the other side's time, this side's time of receiving. The
    other side's clock was read somewhere between the other two: in the middle, or off by at
    most half of the round trip.
    """
    sent, theirs, received = min(round_trips, key=lambda trip: trip[2] - trip[0])
    middle = (sent + received) / 2
    return Offset(theirs - middle, (received - sent) / 2, reference=middle)


class SharedClock:
    """Keeps this rank's offset from rank 0; collective over the communicator."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        """Find the ranks that read the same clock, and their leaders; collective."""
        from mpi4py import MPI

        host = comm.Split_type(MPI.COMM_TYPE_SHARED)
        self._sharers = host.Split(clock_key(), comm.rank)
        host.Free()
        leads = self._sharers.rank == 0
        self._leaders = comm.Split(0 if leads else MPI.UNDEFINED, comm.rank)
        self._leads = leads
        self._double = MPI.DOUBLE
        self._first: Offset | None = None

    def free(self) -> None:
        """Free the communicators of sharers and leaders; collective."""
        if self._leads:
            self._leaders.Free()
        self._sharers.Free()

    def align(self) -> Offset:
        """Measure this rank's offset from rank 0 and return it; collective."""
        cells = array("d", bytes(8 * 4))
        if self._leads:
            found = self._with_drift(self._compare())
            cells = array("d", [found.seconds, found.error, found.drift, found.reference])
        self._sharers.Bcast([cells, 4, self._double])
        return Offset(*cells)

    def _compare(self) -> Offset:
        """Go down a binomial tree: each leader gets its offset, then serves those below it."""
        comm = self._leaders
        mine = Offset(reference=perf_counter())
        distance = 1
        while distance < comm.size:
            if comm.rank < distance and comm.rank + distance < comm.size:
                self._serve(comm.rank + distance, mine)
            elif distance <= comm.rank < 2 * distance:
                mine = self._ask(comm.rank - distance)
            distance *= 2
        return mine

    def _serve(self, peer: int, mine: Offset) -> None:
        cell = array("d", [0.0])
        message = [cell, 1, self._double]
        for _ in range(ROUND_TRIPS):
            self._leaders.Recv(message, peer, ANNOUNCEMENT_TAG)
            cell[0] = perf_counter() + mine.seconds
            self._leaders.Send(message, peer, ANNOUNCEMENT_TAG)
        cell[0] = mine.error
        self._leaders.Send(message, peer, ANNOUNCEMENT_TAG)

    def _ask(self, peer: int) -> Offset:
        cell = array("d", [0.0])
        message = [cell, 1, self._double]
        trips = []
        for _ in range(ROUND_TRIPS):
            sent = perf_counter()
            self._leaders.Send(message, peer, ANNOUNCEMENT_TAG)
            self._leaders.Recv(message, peer, ANNOUNCEMENT_TAG)
            trips.append((sent, cell[0], perf_counter()))
        self._leaders.Recv(message, peer, ANNOUNCEMENT_TAG)
        found = offset_of(trips)
        return Offset(found.seconds, found.error + cell[0], reference=found.reference)

    def _with_drift(self, found: Offset) -> Offset:
        first = self._first = self._first or found
        elapsed = found.reference - first.reference
        if elapsed < SECONDS_FOR_DRIFT:
            return found
        drift = (found.seconds - first.seconds) / elapsed
        return Offset(found.seconds, found.error, drift, found.reference)


class CommonStart:
    """Starts every iteration at a time that rank 0 announces, the same for all ranks.

    The time is drawn anew for each iteration (the round-time scheme of S. Hunold and
    A. Carpen-Amarie, CLUSTER 2018), so that one late start does not make those after it late.
    ``lateness`` has the seconds from each start to when this rank began, because it came too late
    or woke too late; ``cells`` holds the time announced.
    """

    def __init__(self, comm: MPI.Intracomm, offset: Offset) -> None:
        """Measure how early a start must be announced; collective."""
        from mpi4py import MPI

        self.offset = offset
        self.leads = comm.rank == 0
        self.slack = 0.0
        self.cells = array("d", [0.0])
        self.lateness = array("d")
        self._announce: Callable[[], Any] = lambda: comm.Bcast([self.cells, 1, MPI.DOUBLE], 0)
        late = array("d", [0.0])
        worst = array("d", [0.0])
        delays = []
        for _ in range(BROADCASTS):
            self.wait()
            late[0] = self.lateness[-1] + offset.error
            comm.Allreduce([late, 1, MPI.DOUBLE], [worst, 1, MPI.DOUBLE], MPI.MAX)
            delays.append(worst[0])
        self.slack = SLACK * sorted(delays)[BROADCASTS * 9 // 10]
        del self.lateness[:]

    def wait(self) -> None:
        """Return at the start of the next iteration, or at once if it has passed."""
        if self.leads:
            self.cells[0] = perf_counter() + self.slack
        self._announce()
        start = self.offset.local(self.cells[0])
        now = perf_counter()
        while now < start:
            if start - now > SPIN_SECONDS:
                os.sched_yield()
            now = perf_counter()
        self.lateness.append(now - start)


def clock_key() -> int:
    """Return a number that processes of one host share if and only if they share a clock."""
    try:
        identity = os.readlink("/proc/self/ns/time")
    except OSError:
        identity = ""
    return zlib.crc32(identity.encode()) >> 1
