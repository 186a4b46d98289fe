"""Snapshots again and again: reads the records of a folder until all ranks have ended."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from omb_py.core.errors import UsageError
from omb_py.tracing.monitor.findings import findings
from omb_py.tracing.monitor.lines import Observation
from omb_py.tracing.monitor.snapshots import (
    RankState,
    Snapshot,
    changes,
    current_time,
    inherit_idle,
    processes_of,
    take_snapshot,
)
from omb_py.tracing.records.run import read_records

RECENT_SECONDS = 5.0
"""Over which the share of time in MPI is taken."""

POLL_SECONDS = 0.2
"""Between two attempts to find something to watch."""


@dataclass(frozen=True)
class WatchSettings:
    """Seconds between snapshots, of the shortest wait to report, and until a rank is stale."""

    interval: float = 1.0
    min_wait: float = 1.0
    stale_after: float = 5.0


class Watcher:
    """Takes snapshots of a folder, and remembers the last ones."""

    def __init__(self, folder: str, settings: WatchSettings) -> None:
        self._folder = folder
        self._settings = settings
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
        snapshot = inherit_idle(before, snapshot)
        while len(past) > 1 and past[1][0] <= now - RECENT_SECONDS:
            past.popleft()
        recent = changes(past[0][1] if past else None, snapshot)
        rates = changes(before, snapshot)
        over = {
            one.rank
            for one in snapshot.ranks
            if one.state(self._settings.stale_after) is not RankState.RUNS
        }
        if len(over) == len(snapshot.ranks):
            rates = recent = changes(None, snapshot)
        else:
            rates, recent = (
                {rank: one for rank, one in known.items() if rank not in over}
                for known in (rates, recent)
            )
        past.append((now, snapshot))
        said = findings(snapshot, recent, self._settings.min_wait, self._settings.stale_after)
        return Observation(snapshot, rates, recent, said, self._settings.stale_after)


def wait_for_run(
    watcher: Watcher, folder: str, wait_s: float, say: Callable[[str], None]
) -> Observation:
    """Return the first thing to be seen, for which one waits; raises `UsageError` if nothing
    comes."""
    end, told = time.monotonic() + wait_s, False
    while True:
        seen = watcher.observe()
        if seen is not None:
            return seen
        if time.monotonic() >= end:
            raise UsageError(
                f"{folder} holds no records of a run: start one with 'mpiexec ... omb-py profile "
                "...', or name its folder"
            )
        if not told:
            say(f"waiting up to {wait_s:g} s for a run to begin in {folder}")
            told = True
        time.sleep(min(POLL_SECONDS, max(0.0, end - time.monotonic())))


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
