"""Why points of a sweep failed, in the words of their last attempts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from omb_py.sweeps.folder import Folder
from omb_py.sweeps.points import Point
from omb_py.wording import count

MOST_LISTED = 10


@dataclass(frozen=True)
class Reason:
    """A message, the points whose last attempt ended with it, and the log of the first of them."""

    said: str
    points: tuple[Point, ...]
    log: Path

    def __str__(self) -> str:
        others = len(self.points) - 1
        more = f" and {others} more" if others else ""
        return f"{self.points[0].describe()}{more}: {self.said} ({self.log})"


def reasons(folder: Folder, points: Sequence[Point]) -> list[Reason]:
    """The messages of points, those of most points first."""
    by_message: dict[str, list[Point]] = {}
    for point in points:
        by_message.setdefault(folder.state(point).said or "no word of why", []).append(point)
    several = sorted(by_message.items(), key=lambda item: -len(item[1]))
    return [Reason(said, tuple(same), folder.log(same[0])) for said, same in several]


def lines(folder: Folder, points: Sequence[Point], what: str) -> Iterator[str]:
    """Name points, gathered by their messages; nothing for no points."""
    if not points:
        return
    yield f"{count(len(points), 'point')} {what}:"
    found = reasons(folder, points)
    yield from (f"  {reason}" for reason in found[:MOST_LISTED])
    if len(found) > MOST_LISTED:
        yield f"  and {len(found) - MOST_LISTED} other reasons, in {folder.root}/state"
