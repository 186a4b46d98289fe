"""Looking again and again: reads the records of a folder until all ranks have ended."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from omb_py.core.errors import UsageError
from omb_py.tracing.monitor.findings import findings
from omb_py.tracing.monitor.lines import Seen
from omb_py.tracing.monitor.looks import Look, State, carried, changes, look_of
from omb_py.tracing.monitor.processes import moment, processes_of
from omb_py.tracing.records import Record, layout, read

RECENT_SECONDS = 5.0
"""Over which the share of time in MPI is taken."""

POLL_SECONDS = 0.2
"""Between two looks whether there is something to watch."""


@dataclass(frozen=True)
class Habits:
    """How one watches: seconds between looks, from which on a wait counts, and silence does."""

    interval: float = 1.0
    patience: float = 1.0
    silence: float = 5.0


class Watcher:
    """Looks at a folder, and remembers the last looks."""

    def __init__(self, folder: str, habits: Habits) -> None:
        self._folder = Path(folder)
        self._habits = habits
        self._past: deque[tuple[float, Look]] = deque()

    def look(self) -> Seen | None:
        """What is seen now; None where there is nothing yet."""
        records = read_what_can_be(self._folder)
        here = moment()
        look = look_of(records, here, processes_of(records, here.host))
        if look is None:
            return None
        now, past = time.monotonic(), self._past
        before = past[-1][1] if past else None
        look = carried(before, look)
        while len(past) > 1 and past[1][0] <= now - RECENT_SECONDS:
            past.popleft()
        recent = changes(past[0][1] if past else None, look)
        rates = changes(before, look)
        over = {one.rank for one in look.ranks if one.state(self._habits.silence) is not State.RUNS}
        if len(over) == len(look.ranks):
            rates = recent = changes(None, look)
        else:
            rates, recent = (
                {rank: one for rank, one in known.items() if rank not in over}
                for known in (rates, recent)
            )
        past.append((now, look))
        said = findings(look, recent, self._habits.patience, self._habits.silence)
        return Seen(look, rates, recent, said, self._habits.silence)


def read_what_can_be(folder: Path) -> list[Record]:
    """The records of a folder that can be read; one may just be made, or be damaged."""
    found = []
    for path in sorted(folder.glob(f"rank-*{layout.SUFFIX}")):
        try:
            found.append(read(path, events=False))
        except (UsageError, ValueError):
            continue
    return found


def first(watcher: Watcher, folder: str, wait_s: float, say: Callable[[str], None]) -> Seen:
    """The first thing to be seen, for which one waits; raises `UsageError` where nothing comes."""
    end, told = time.monotonic() + wait_s, False
    while True:
        seen = watcher.look()
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


def followed(watcher: Watcher, seen: Seen, interval: float) -> Iterator[Seen]:
    """This and what is seen after it, until all ranks have ended or the folder is gone."""
    due = time.monotonic()
    yield seen
    while not seen.over:
        due = max(due + interval, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
        found = watcher.look()
        if found is None:
            return
        seen = found
        yield seen
