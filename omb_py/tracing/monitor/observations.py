"""Observations of a run until all its ranks have ended, as a table, as lines, and as JSON."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from omb_py.core.errors import UsageError
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import duration, scaled, share_text
from omb_py.core.text.words import count
from omb_py.core.waiting import poll
from omb_py.tracing.monitor.findings import MonitorFinding, findings
from omb_py.tracing.monitor.snapshots import (
    Change,
    RankSnapshot,
    RankState,
    Snapshot,
    ThreadSnapshot,
    changes,
    current_time,
    processes_of,
    take_snapshot,
)
from omb_py.tracing.records.layout import ANYONE, NOBODY
from omb_py.tracing.records.reading import MAIN, ThreadRecord
from omb_py.tracing.records.routines import Role, role
from omb_py.tracing.records.run import read_records

RECENT_SECONDS = 5.0
"""Over which the share of time in MPI is taken."""

POLL_SECONDS = 0.2
"""Between two attempts to find something to watch."""


@dataclass(frozen=True)
class Observation:
    """A snapshot with rates and findings.

    ``rates`` are since the previous snapshot, ``recent`` over the last seconds, both by rank.
    """

    snapshot: Snapshot
    rates: Mapping[int, Change]
    recent: Mapping[int, Change]
    findings: Sequence[MonitorFinding]
    stale_after_s: float

    @property
    def elapsed_s(self) -> float:
        """Seconds since the beginning, of the rank that has been there the longest."""
        return max(one.elapsed_s for one in self.snapshot.ranks)

    def state(self, one: RankSnapshot) -> RankState:
        """Return a rank's state."""
        return one.state(self.stale_after_s)

    @property
    def over(self) -> bool:
        """Return whether all ranks have ended, or were killed."""
        states = {self.state(one) for one in self.snapshot.ranks}
        return not self.snapshot.missing and states <= {RankState.ENDED, RankState.KILLED}

    @property
    def calls_per_s(self) -> float:
        """Calls per second of all ranks."""
        return sum((one.calls_per_s for one in self.rates.values()), 0.0)

    @property
    def bytes_per_s(self) -> float:
        """Bytes per second of all ranks."""
        return sum((one.bytes_per_s for one in self.rates.values()), 0.0)

    @property
    def uses_files(self) -> bool:
        """Return whether any rank has read or written a file."""
        return any(one.read or one.written for one in self.snapshot.ranks)

    @property
    def file_bytes_per_s(self) -> tuple[float, float]:
        """The bytes per second that all ranks read from files, and that they write to files."""
        rates = self.rates.values()
        return sum(one.files_read_per_s for one in rates), sum(
            one.files_written_per_s for one in rates
        )

    @property
    def mpi(self) -> float | None:
        """The mean of the shares of time in MPI, None if others than the main threads call it."""
        shares = [share for one in self.recent.values() for share in one.mpi_shares]
        called = {thread.now.name for one in self.snapshot.ranks for thread in one.threads}
        return sum(shares) / len(shares) if shares and called <= {MAIN} else None


def summary(seen: Observation) -> str:
    """Return the whole run in a line."""
    states = [seen.state(one) for one in seen.snapshot.ranks]
    told = [count(seen.snapshot.size, "rank")]
    if seen.over and set(states) == {RankState.ENDED}:
        told.append("all ended")
    elif set(states) != {RankState.RUNS}:
        known = [(states.count(state), state.value) for state in RankState]
        told += [f"{number} {value}" for number, value in known if number]
    whole = "" if seen.mpi is None else f", {share_text(seen.mpi)} in MPI"
    rates = f"{scaled(seen.calls_per_s)} calls/s, {scaled(seen.bytes_per_s, 'B/s')}{whole}"
    if seen.uses_files:
        read, written = seen.file_bytes_per_s
        rates += f"; files: {scaled(read, 'B/s')} read, {scaled(written, 'B/s')} written"
    return f"{duration(seen.elapsed_s)}: {', '.join(told)}; {rates}"


def lines(seen: Observation) -> list[str]:
    """Return a line for the whole run, and below it the findings."""
    return [summary(seen), *(f"  {one.text}" for one in seen.findings)]


COLUMNS = (
    *("rank", "thread", "host", "is in", "with", "for", "calls/s", "data", "read", "written"),
    *("in MPI", "memory"),
)
OF_THREADS, OF_HOSTS, OF_FILES = ("thread",), ("host",), ("read", "written")
"""Columns that are there if a rank calls MPI in other threads, for several hosts, and for files."""


def sheet(seen: Observation) -> Sheet:
    """Return the table of all ranks and their threads; its title has the program, the whole run,
    and the findings."""
    ranks = seen.snapshot.ranks
    hosts = len({one.host for one in ranks}) > 1
    threads = any(thread.now.name != MAIN for one in ranks for thread in _shown(seen, one))
    hidden = [
        *([] if threads else OF_THREADS),
        *([] if hosts else OF_HOSTS),
        *([] if seen.uses_files else OF_FILES),
    ]
    shown = [place for place, name in enumerate(COLUMNS) if name not in hidden]
    rows = []
    for one in ranks:
        for thread in range(len(_shown(seen, one))):
            cells = _cells(seen, one, thread)
            rows.append(tuple(cells[place] for place in shown))
    program = [seen.snapshot.program] if seen.snapshot.program else []
    return Sheet(
        "\n".join([*program, summary(seen), *(one.text for one in seen.findings)]),
        tuple(COLUMNS[place] for place in shown),
        tuple(rows),
        left=3 + hosts + threads,
    )


def _shown(seen: Observation, one: RankSnapshot) -> Sequence[ThreadSnapshot]:
    """Return the threads with rows of their own; one only if the rank does not run."""
    return one.living if seen.state(one) is RankState.RUNS else one.living[:1]


def _cells(seen: Observation, one: RankSnapshot, place: int) -> list[str]:
    """Return the cells of a thread; the first one's has those of the rank, too."""
    state, thread = seen.state(one), one.living[place]
    runs, now = state is RankState.RUNS, thread.now
    rate = None if place else seen.rates.get(one.rank)
    seconds = for_seconds(one, thread, state)
    return [
        str(one.rank),
        now.name.removeprefix("thread ") if runs else "",
        one.host,
        now.routine or "outside MPI" if runs else state.value,
        whom(now) if runs else "",
        "" if seconds is None else duration(seconds),
        scaled(rate.calls_per_s) if rate else "",
        scaled(rate.bytes_per_s, "B/s") if rate else "",
        scaled(rate.files_read_per_s, "B/s") if rate else "",
        scaled(rate.files_written_per_s, "B/s") if rate else "",
        share_text(_share(seen, one, place)),
        "" if place else scaled(one.memory, "B"),
    ]


def _share(seen: Observation, one: RankSnapshot, place: int) -> float | None:
    """Return the share of time in MPI of a rank's thread, None if it is not known."""
    recent = seen.recent.get(one.rank)
    return recent.mpi_shares[place] if recent else None


def whom(now: ThreadRecord) -> str:
    """Return the other side of a call: its peers, else its communicator; empty outside MPI."""
    if not now.routine:
        return ""
    if now.peers == (NOBODY,):
        label = now.communicator.label if now.communicator else ""
        return label or ("unknown" if role(now.routine) is Role.COMPLETION else "")
    words = {NOBODY: "unknown", ANYONE: "any rank"}
    return ", ".join(words.get(peer, str(peer)) for peer in now.peers)


def for_seconds(one: RankSnapshot, thread: ThreadSnapshot, state: RankState) -> float | None:
    """For how long, where that is known."""
    if state is RankState.ENDED:
        return None
    return thread.seconds if state is RankState.RUNS else one.since_update_s


def json_line(seen: Observation, epoch: float) -> str:
    """Return a snapshot as one line of JSON."""
    return json.dumps(
        {
            "time": round(epoch, 3),
            "program": seen.snapshot.program,
            "elapsed_s": round(seen.elapsed_s, 3),
            "ranks": seen.snapshot.size,
            "over": seen.over,
            "calls_per_s": round(seen.calls_per_s, 1),
            "bytes_per_s": round(seen.bytes_per_s, 1),
            "files_read_per_s": round(seen.file_bytes_per_s[0], 1),
            "files_written_per_s": round(seen.file_bytes_per_s[1], 1),
            "mpi_share": None if seen.mpi is None else round(seen.mpi, 4),
            "findings": [{**asdict(one), "concern": one.concern.value} for one in seen.findings],
            "per_rank": [_of_rank(seen, one) for one in seen.snapshot.ranks],
        }
    )


def _of_rank(seen: Observation, one: RankSnapshot) -> dict[str, Any]:
    rate = seen.rates.get(one.rank)
    threads = [_of_thread(seen, one, place) for place in range(len(_shown(seen, one)))]
    return {
        "rank": one.rank,
        "host": one.host,
        "state": seen.state(one).value,
        **threads[0],
        "quiet_s": round(one.since_update_s, 3),
        "calls": one.calls,
        "bytes": one.nbytes,
        "files_read": one.read,
        "files_written": one.written,
        "rates": asdict(rate) if rate else None,
        "memory_bytes": one.memory,
        "other_threads": threads[1:],
    }


def _of_thread(seen: Observation, one: RankSnapshot, place: int) -> dict[str, Any]:
    thread = one.living[place]
    now, share = thread.now, _share(seen, one, place)
    seconds = for_seconds(one, thread, seen.state(one))
    return {
        "thread": now.name.removeprefix("thread "),
        "routine": now.routine or None,
        "peer": now.peer if now.routine and now.peer >= 0 else None,
        "with": whom(now) or None,
        "communicator": now.communicator.label if now.routine and now.communicator else None,
        "for_s": None if seconds is None else round(seconds, 3),
        "mpi_share": None if share is None else round(share, 4),
    }


class Watcher:
    """Takes snapshots of a folder, and remembers the last ones.

    ``min_wait`` are the seconds of the shortest wait to report, ``stale_after`` those after which a
    rank that says nothing is not heard of.
    """

    def __init__(self, folder: str, min_wait: float, stale_after: float) -> None:
        self._folder = folder
        self._min_wait = min_wait
        self._stale_after = stale_after
        self._past: deque[tuple[float, Snapshot]] = deque()

    def observe(self) -> Observation | None:
        """Return the present observation; None if there is no record yet."""
        records, _ = read_records(self._folder, events=False)  # one may just be made
        here = current_time()
        snapshot = take_snapshot(records, here, processes_of(records, here.host))
        if snapshot is None:
            return None
        now, past = time.monotonic(), self._past
        before = past[-1][1] if past else None
        while len(past) > 1 and past[1][0] <= now - RECENT_SECONDS:
            past.popleft()
        recent = changes(past[0][1] if past else None, snapshot)
        rates = changes(before, snapshot)
        over = {
            one.rank for one in snapshot.ranks if one.state(self._stale_after) is not RankState.RUNS
        }
        if len(over) == len(snapshot.ranks):
            rates = recent = changes(None, snapshot)
        else:
            rates, recent = (
                {rank: one for rank, one in known.items() if rank not in over}
                for known in (rates, recent)
            )
        past.append((now, snapshot))
        said = findings(snapshot, self._min_wait, self._stale_after)
        return Observation(snapshot, rates, recent, said, self._stale_after)


def wait_for_run(
    watcher: Watcher, folder: str, wait_s: float, say: Callable[[str], None]
) -> Observation:
    """Return the first thing to be seen, for which one waits; raises `UsageError` if nothing
    comes."""
    seen = watcher.observe()
    if os.path.isfile(folder):
        wait_s = 0.0  # no run begins in a file
    if seen is None and wait_s > 0:
        say(f"waiting up to {wait_s:g} s for a run to begin in {folder}")
        seen = poll(watcher.observe, POLL_SECONDS, wait_s)
    if seen is None:
        _, faults = read_records(folder, events=False)
        none = (
            f"{folder} holds no records of a run: start one with 'mpiexec ... omb-py profile ...', "
            "or name its folder"
        )
        raise UsageError(faults[0] if faults else none)
    return seen


def follow(watcher: Watcher, seen: Observation, interval: float) -> Iterator[Observation]:
    """Yield this and later observations, until all ranks have ended or the folder is gone."""
    due = time.monotonic()
    yield seen
    while not seen.over:
        due = max(due + interval, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
        found = watcher.observe()
        if found is None:
            return
        seen = found
        yield seen
