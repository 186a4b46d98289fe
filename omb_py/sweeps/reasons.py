"""Why points of a sweep failed: what a launcher and its ranks said last."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

from omb_py.core.text.words import count
from omb_py.sweeps.folder import Folder
from omb_py.sweeps.points import Point

LOOKED_AT = 1_000_000
"""Bytes at the end of a log that are looked into."""

LONGEST = 600
"""The most characters of a message."""

WRAPPED = 40
"""Characters from which on a line that ends no sentence goes on in the next one."""

OURS = "omb-py: "
BEGINS = re.compile(r"\[[^\]]*\]|[\w./-]+: ")
"""How a message begins whose first word names the program: ``[mpiexec@n1]``, ``srun: ``."""

FRAME = re.compile(r"^[=|*#]+\s+")
LEADERS = re.compile(r"\.{4,}")
"""Dots from a function's name to its message, in MPICH's error stacks."""


def last_words(log: Path) -> tuple[str | None, str]:
    """Our last sentence since the last command in a log, if any, and the first of the others.

    Launchers say first what is wrong, and then draw boxes around what follows from it.
    """
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOOKED_AT))
        lines = file.read().replace(b"\0", b"").decode(errors="replace").splitlines()
    command = max((index for index, line in enumerate(lines) if line.startswith("$ ")), default=-1)
    lines = lines[command + 1 :]
    ours = [line.strip() for line in lines if line.startswith(OURS) and ": note:" not in line]
    theirs = [FRAME.sub("  ", line) for line in lines if not line.startswith(OURS)]
    theirs = [line for line in theirs if "Warning" not in line]
    return shorten(ours[-1].removeprefix(OURS)) if ours else None, shorten(first(theirs))


def first(lines: list[str]) -> str:
    """The first message: its sentence with the lines it is wrapped over, and the values below it.

    Of a Python traceback it is the exception.
    """
    rest = list(dropwhile(lambda line: not has_words(line), lines))
    if rest and rest[0].startswith("Traceback "):
        rest = list(dropwhile(lambda line: line[:1].isspace(), rest[1:]))
        return rest[0] if rest else lines[0]
    return LEADERS.sub(" ", " ".join(" ".join(sentence(rest)).split()))


def sentence(lines: list[str]) -> Iterator[str]:
    """The lines of the message that the first one begins."""
    number = 0
    for number, line in enumerate(lines, 1):
        yield line
        following = lines[number : number + 1]
        if not following or not goes_on(line, following[0]):
            break
    rest = lines[number:]
    if rest[:1] == [""]:  # what values it is about stands indented below
        rest = rest[1:]
    for line in rest:
        if not line[:1].isspace() or not has_words(line):
            break
        yield line


def goes_on(line: str, following: str) -> bool:
    """Whether a message goes on in the following line."""
    if not has_words(following) or BEGINS.match(following):
        return False
    line = line.rstrip()
    return line.endswith(":") or (len(line) >= WRAPPED and line[-1] not in ".!?")


def has_words(line: str) -> bool:
    """Whether there is more in a line than rules."""
    return any(letter.isalpha() for letter in line)


def shorten(text: str) -> str:
    """The text, cut after a word if it is too long."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST].rsplit(maxsplit=1)[0]} …"


MAX_LISTED = 10


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
    yield from (f"  {reason}" for reason in found[:MAX_LISTED])
    if len(found) > MAX_LISTED:
        yield f"  and {len(found) - MAX_LISTED} other reasons, in {folder.root}/state"
