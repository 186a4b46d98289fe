"""What Horovod wrote about its tensors: how long they were negotiated, and which rank was late.

Rank 0 of a job writes the file that HOROVOD_TIMELINE names: trace events in a list, in which each
tensor is a process. A tensor is negotiated until all ranks have it, with an event for each rank
that is ready, then processed. A fused operation has the activities of each of its tensors.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omb_py.core.errors import UsageError
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import LARGEST, share_text, value_text
from omb_py.core.text.words import count, one_line
from omb_py.tracing.profile.nccl import DAMAGED, head, objects

BEGINS = re.compile(rb'\s*\[\s*\{\s*"(?:name|ph)":')
"""The beginning of a list of trace events."""

NEGOTIATION = "NEGOTIATE_"
COLUMNS = ("calls", "summed", "each time", "longest")


@dataclass
class Spent:
    """Calls of some tensors, their microseconds, and those in which any was under way."""

    tensors: set[int] = field(default_factory=set)
    calls: int = 0
    us: int = 0
    longest: int = 0
    covered: int = 0
    inside: int = 0
    since: int = 0

    def add(self, us: int, *tensors: int) -> None:
        """Add a call."""
        self.tensors.update(tensors)
        self.calls, self.us, self.longest = self.calls + 1, self.us + us, max(self.longest, us)

    def move(self, by: int, at: int) -> None:
        """Begin (1) or end (-1) a call."""
        self.covered += max(0, at - self.since) if self.inside else 0
        self.inside, self.since = self.inside + by, at

    def cells(self) -> tuple[str, ...]:
        """Return the values of `COLUMNS`."""
        each, longest = (value_text(us, "us") for us in (self.us / (self.calls or 1), self.longest))
        return str(self.calls), f"{self.us / 1e6:.3f}", each, longest


@dataclass
class HorovodTimeline:
    """The contents of a file, in microseconds; ``times`` are those of the first and last event.

    ``activities`` have the names of those around them before their own, ``open`` ones (by tensor)
    a beginning. ``late`` is the time after the first ``ready`` rank; its tensors came last there.
    """

    names: dict[int, str] = field(default_factory=dict)
    activities: dict[tuple[str, ...], Spent] = field(default_factory=lambda: defaultdict(Spent))
    negotiated: dict[int, Spent] = field(default_factory=lambda: defaultdict(Spent))
    late: dict[int, Spent] = field(default_factory=lambda: defaultdict(Spent))
    open: dict[int, list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    ready: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    times: list[int] = field(default_factory=list)
    damaged: int = 0

    def take(self, event: Any) -> None:
        """Take an event; raises one of `DAMAGED` for one that makes no sense."""
        phase, tensor = event["ph"], int(event.get("pid", 0))
        if phase == "M":
            name = event["args"].get("name", self.names.get(tensor, "-"))
            self.names[tensor] = one_line(str(name))
            return
        at, stack = int(event["ts"]), self.open[tensor]
        if abs(at) > LARGEST:
            raise OverflowError
        if phase == "B":
            stack.append((one_line(str(event["name"])), at))
            self.activities[tuple(name for name, _ in stack)].move(1, at)
        elif phase == "E":
            path = tuple(name for name, _ in stack)
            took = max(0, at - stack.pop()[1])
            self.activities[path].move(-1, at)
            self.activities[path].add(took, tensor)
            if path[-1].startswith(NEGOTIATION):
                self.negotiated[tensor].add(took)
                ranks = self.ready.pop(tensor, {})
                first, last = min(ranks.values(), default=0), max(ranks.values(), default=0)
                for rank, ready in ranks.items() if len(ranks) > 1 else ():
                    self.late[rank].add(ready - first, *([tensor] if ready == last else []))
        elif stack and stack[-1][0].startswith(NEGOTIATION):
            self.ready[tensor].setdefault(int(event["name"]), at)
        self.times = [*self.times[:1], at]


def is_timeline(path: Path) -> bool:
    """Return whether a file begins as those that Horovod writes."""
    return path.is_file() and BEGINS.match(head(path)) is not None


def load(path: Path) -> HorovodTimeline:
    """Return the contents of a file, read event by event: it may be larger than the memory.

    Raises `UsageError` if it cannot be read, or if no tensor was negotiated in it.
    """
    found = HorovodTimeline()
    for event in objects(path):
        try:
            found.take(event)
        except DAMAGED:
            found.damaged += 1
    if not any(path[0].startswith(NEGOTIATION) for path in found.activities):
        raise UsageError(
            f"{path} has no negotiation of Horovod: its job ended before the first one, or another "
            "program wrote it, whose traces https://ui.perfetto.dev shows"
        )
    for one in found.activities.values():
        one.move(0, found.times[-1])
    return found


def sheets(found: HorovodTimeline, name: str) -> Iterator[Sheet]:
    """Yield tables of the activities, of the tensors longest negotiated, and of late ranks."""
    whole = found.times[-1] - found.times[0]
    rows = []
    for path, one in sorted(found.activities.items(), key=lambda item: item[0]):
        cells = "- " * (len(path) - 1) + path[-1], str(len(one.tensors)), f"{one.covered / 1e6:.3f}"
        rows.append((*cells, share_text(one.covered / (whole or 1)), *one.cells()))
    columns = ("activity", "tensors", "seconds", "of all", *COLUMNS)
    above = f"Seconds, of {whole / 1e6:.3f}, with any tensor in the activity; summed ones overlap."
    title = f"Horovod's timeline {one_line(name)}"
    yield Sheet(title, columns, tuple(rows), tuple(_remarks(found)), above=above)
    tensors = sorted(found.negotiated.items(), key=lambda item: -item[1].us)[:10]
    rows = [(found.names.get(tensor, "-"), *one.cells()) for tensor, one in tensors]
    yield Sheet("Longest negotiation", ("tensor", *COLUMNS), tuple(rows))
    late = sorted(found.late.items(), key=lambda item: -item[1].us)
    rows = [(str(rank), str(len(one.tensors)), *one.cells()) for rank, one in late]
    title = "Late ranks: time after the first one that was ready"
    yield Sheet(title, ("rank", "last for tensors", *COLUMNS), tuple(rows))


def _remarks(found: HorovodTimeline) -> Iterator[str]:
    calls = sum(one.calls for one in found.negotiated.values())
    ranks = max((one.calls for one in found.late.values()), default=0)
    if ranks < calls:
        yield (
            f"Times of ranks: in {ranks} of {count(calls, 'negotiation')}. Horovod writes none for "
            "tensors in its cache (HOROVOD_CACHE_CAPACITY=0 turns it off)."
        )
    if waiting := [(stack[0], tensor) for tensor, stack in found.open.items() if stack]:
        (name, began), tensor = min(waiting, key=lambda one: one[0][1])
        there = ", ".join(map(str, sorted(found.ready.get(tensor, ()))))
        yield (
            f"Without an end: {count(len(waiting), 'tensor')}, the first in {name} of "
            f"{found.names.get(tensor, '-')} from {(began - found.times[0]) / 1e6:.3f} s on"
            f"{f', when ranks {there} were ready' if there else ''}."
        )
    if found.damaged:
        yield f"{count(found.damaged, 'event')} damaged or without a beginning, left out."
