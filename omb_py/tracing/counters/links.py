"""Links that carry bytes in or between hosts, and their counters at one moment.

Counters are the host's: they include other programs' traffic over the same link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Link:
    """A link's counters at one moment; None stands for an unreadable counter.

    ``sent`` and ``received`` are bytes since the link was set up. A counter of ``bits`` bits begins
    anew when it is full, or stays there if it ``sticks``. ``over`` names links that carry the same
    bytes below this one. ``events`` are further counters, named in words.
    """

    meter: str
    name: str
    sent: int | None
    received: int | None
    bits: int = 64
    sticks: bool = False
    unit: int = 1
    over: tuple[str, ...] = ()
    events: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""

    def row(self) -> dict[str, Any]:
        """For a file."""
        return {**asdict(self), "over": list(self.over)}


Meter: TypeAlias = Callable[[Path], Sequence[Link]]
"""Reads all links of a kind on this host, below the root of its file system; raises nothing."""


@dataclass(frozen=True)
class LinkUsage:
    """The traffic of a link between two moments, in bytes; None if it is unknown.

    ``remark`` is a note about the numbers.
    """

    meter: str
    name: str
    sent: int | None
    received: int | None
    over: tuple[str, ...] = ()
    events: Mapping[str, int] = field(default_factory=dict)
    remark: str = ""


def usage(before: Link, after: Link) -> LinkUsage:
    """Return the difference of a link's counters."""
    remarks = [text for text in dict.fromkeys((before.problem, after.problem)) if text]
    amounts = []
    for start, end in ((before.sent, after.sent), (before.received, after.received)):
        amount, remark = _difference(start, end, after)
        amounts.append(amount)
        if remark and remark not in remarks:
            remarks.append(remark)
    events = {
        name: max(0, number - before.events.get(name, number))
        for name, number in after.events.items()
    }
    return LinkUsage(
        *(after.meter, after.name, amounts[0], amounts[1], after.over),
        {name: number for name, number in events.items() if number},
        "; ".join(remarks),
    )


def _difference(start: int | None, end: int | None, link: Link) -> tuple[int | None, str]:
    if start is None or end is None:
        return None, ""
    maximum = (1 << link.bits) * link.unit
    if link.sticks and end >= maximum - link.unit:
        return None, f"a counter of {link.bits} bits is full"
    if end >= start:
        return end - start, ""
    if link.bits < 64 and start < maximum:
        return end - start + maximum, f"a counter of {link.bits} bits began anew, once or more"
    return None, "a counter was set back"


def number_in(path: Path) -> int | None:
    """Return the number in a file of the kernel, None if it cannot be read."""
    try:
        return int(path.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; none if it cannot be read."""
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []
