"""Reasons why points of a sweep failed: the last messages of a launcher and its ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile
from pathlib import Path

from omb_py.core.text.words import count
from omb_py.sweeps.folder import Folder
from omb_py.sweeps.points import SweepPoint

MAX_LISTED = 10
"""Reasons that are printed; of the others only their number."""

LOOKED_AT = 1_000_000
"""Bytes at the end of a log that are looked into."""

LONGEST = 600
"""The most characters of a message."""

WRAPPED = 40
"""Characters from which on a line that ends no sentence goes on in the next one."""

OURS = "omb-py: "
BEGINS = re.compile(r"\[[^\]]*\]|[\w./-]+: ")
"""The beginning of a message whose first word names the program: ``[mpiexec@n1]``, ``srun: ``."""

FRAME = re.compile(r"^[=|*#]+\s+")
NO_CAUSE = re.compile(r"Warning|\*\*\* Process received signal")
"""What is no cause: of a signal, Open MPI's next line has it (``Signal: Segmentation fault``)."""

LEADERS = re.compile(r"\.{4,}")
"""Dots from a function's name to its message, in MPICH's error stacks."""


def last_words(log: Path) -> tuple[str | None, str]:
    """Return omb-py's last sentence since the last command in a log, if any, and the first other
    one.

    Launchers print the cause first, and then its consequences in boxes.
    """
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOOKED_AT))
        lines = file.read().replace(b"\0", b"").decode(errors="replace").splitlines()
    command = max((index for index, line in enumerate(lines) if line.startswith("$ ")), default=-1)
    lines = lines[command + 1 :]
    ours = [line.strip() for line in lines if line.startswith(OURS) and ": note:" not in line]
    theirs = [FRAME.sub("  ", line) for line in lines if not line.startswith(OURS)]
    theirs = [line for line in theirs if not NO_CAUSE.search(line)]
    return shorten(ours[-1].removeprefix(OURS)) if ours else None, shorten(first(theirs))


def first(lines: list[str]) -> str:
    """Return the first message: its sentence with wrapped lines, and the values below it.

    Of a Python traceback it is the exception.
    """
    rest = list(dropwhile(lambda line: not has_words(line), lines))
    if rest and rest[0].startswith("Traceback "):
        rest = list(dropwhile(lambda line: line[:1].isspace(), rest[1:]))
        return rest[0] if rest else lines[0]
    return LEADERS.sub(" ", " ".join(" ".join(sentence(rest)).split()))


def sentence(lines: list[str]) -> Iterator[str]:
    """Yield the lines of the message that the first one begins."""
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
    """Return whether a message goes on in the following line."""
    if not has_words(following) or BEGINS.match(following):
        return False
    line = line.rstrip()
    return line.endswith(":") or (len(line) >= WRAPPED and line[-1] not in ".!?")


def has_words(line: str) -> bool:
    """Return whether a line has more than rules."""
    return any(letter.isalpha() for letter in line)


def shorten(text: str) -> str:
    """Return the text, cut after a sentence if it is too long, after a word if little would be
    left."""
    if len(text) <= LONGEST:
        return text
    ends = [end.start() for end in re.finditer(r"(?<=[.!?]) ", text[: LONGEST + 1])]
    if ends and ends[-1] > LONGEST // 3:
        return f"{text[: ends[-1]]} …"
    return f"{text[:LONGEST].rsplit(maxsplit=1)[0]} …"


PROCESS = re.compile(r"\bpid[ :=#]*\d+|(?<=-)\d+(?=@)|(?<=\w:)\d+(?=\])", re.IGNORECASE)
"""The number of a process: ``PID 12``, ``[prterun-n1-12@1,0]``, ``[n1:12]``."""


def reasons(folder: Folder, points: Sequence[SweepPoint], since: str = "") -> Iterator[str]:
    """Yield the messages of points, most points first, alike but for numbers of processes.

    ``since`` is when this start of the sweep began, as in `Attempt.started`: points that ended
    before have not been tried again.
    """
    alike: dict[tuple[str, bool], list[tuple[str, SweepPoint]]] = {}
    for point in points:
        last = folder.state(point).last
        said = (last.said if last else "") or "no word of why"
        earlier = last is not None and last.started < since
        alike.setdefault((PROCESS.sub("", said), earlier), []).append((said, point))
    for (_, earlier), same in sorted(alike.items(), key=lambda item: -len(item[1])):
        said, example = same[0]
        more = f" and {len(same) - 1} more" if len(same) > 1 else ""
        when = "in an earlier job: " if earlier else ""
        yield f"{example.describe()}{more}: {when}{said} ({folder.log(example)})"


def listed(
    folder: Folder, points: Sequence[SweepPoint], what: str, since: str = ""
) -> Iterator[str]:
    """Yield lines on points, grouped by their reasons (`reasons`); none for no points."""
    if not points:
        return
    yield f"{count(len(points), 'point')} {what}:"
    found = list(reasons(folder, points, since))
    yield from (f"  {reason}" for reason in found[:MAX_LISTED])
    if len(found) > MAX_LISTED:
        yield f"  and {len(found) - MAX_LISTED} other reasons, in {folder.root}/state"
