"""Tables that a program prints in columns of fixed width: what a whole line of them is like.

A number that lost a digit no longer ends where its heading ends, and columns that follow from
each other no longer agree. Both are noticed here, for every reader of such tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from omb_py.results.readers import Problem, Source

MAX_PROBLEMS = 1000
"""Lines of a file that are named one by one when they cannot be used."""

LONGEST_LINE = 4096
"""Characters beyond which a line is no line of a table."""

WORD = re.compile(r"\S+")


def lines_of(source: Source) -> Iterator[tuple[int, str]]:
    """The lines that may be of a table, each with its index in the file."""
    for index, line in enumerate(source):
        if line and len(line) <= LONGEST_LINE:
            yield index, line


def word_ends(line: str) -> tuple[int, ...]:
    """Where the words of a line end."""
    return tuple(word.end() for word in WORD.finditer(line))


@dataclass(frozen=True)
class Shown:
    """A number as it was printed: the ``minimum`` and the ``maximum`` it may have been."""

    minimum: float
    maximum: float

    def times(self, minimum: float, maximum: float | None = None) -> Shown:
        """Multiplied by a number, or by any of those between two."""
        return Shown(
            self.minimum * minimum, self.maximum * (minimum if maximum is None else maximum)
        )

    def meets(self, other: Shown) -> bool:
        """Whether both may be the same number."""
        slack = 1e-9 * max(abs(self.maximum), abs(other.maximum))
        return self.minimum <= other.maximum + slack and other.minimum <= self.maximum + slack


def shown(text: str) -> Shown:
    """What a decimal number without exponent may have been before it was rounded.

    >>> shown("2.5")
    Shown(minimum=2.45, maximum=2.55)
    """
    half = 0.5 * 10.0 ** -len(text.partition(".")[2])
    value = float(text)
    return Shown(round(max(0.0, value - half), 12), round(value + half, 12))


FAULT = re.compile(
    r"signal: |\b(?:error|fault|killed|abort|cancelled|exceeded|terminat|out of memory|oom)",
    re.IGNORECASE,
)
"""What programs, launchers and batch systems print of a run that they ended."""

LINES_OF_FAULT = 40
LAST = 1 << 62
LONGEST_FAULT = 120


class Notes:
    """Problems of one file: the first thousand, and how many more there were."""

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self.source = source
        self.problems = problems
        self.unnamed = 0

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.problems) + self.unnamed

    def add(self, index: int, text: str, rows: int = 1) -> None:
        """Add a problem with a line, which cost so many rows."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(self.source.path, index + 1, text, rows))
        else:
            self.unnamed += 1

    def ended(self, index: int, what: str, until: int | None, anyway: bool = True) -> None:
        """Add that ``what`` printed no row below a line, with the fault that follows.

        ``until`` is where something else begins, None for the end of the file. Without a fault
        nothing is added unless ``anyway``.
        """
        end = min(index + 1 + LINES_OF_FAULT, LAST if until is None else until)
        after = list(islice(enumerate(self.source, 1), index + 1, end))
        first = next((number for number, line in after if line.strip()), None)
        faults = [line.strip() for _, line in after if FAULT.search(line)]
        fault = min(
            faults, key=lambda line: "***" in line, default=None
        )  # Open MPI's first says less
        if fault is not None or anyway:
            where = "the end of the file" if first is None and until is None else None
            where = where or f"line {first or (until or 0) + 1}"
            why = "" if fault is None else f": {fault[:LONGEST_FAULT]}"
            self.add(index, f"{what} printed no row, the run ended at {where}{why}", rows=0)

    def finish(self) -> None:
        """Put problems in the order of lines, and add how many were not named."""
        self.problems.sort(key=lambda problem: problem.line or 0)
        if self.unnamed:
            text = f"{self.unnamed} more lines that cannot be used"
            self.problems.append(Problem(self.source.path, None, text))


class LeftOut:
    """Rows below something that tells not what they are of; they become one note."""

    def __init__(self, notes: Notes, index: int, reason: str) -> None:
        self.notes = notes
        self.index = index
        self.reason = reason
        self.lines: list[int] = []

    def finish(self) -> None:
        """Name the rows, if there were any."""
        if self.lines:
            first, last = self.lines[0] + 1, self.lines[-1] + 1
            lines = f"line {first} is" if first == last else f"lines {first} to {last} are"
            self.notes.add(self.index, f"{self.reason}; {lines} left out", rows=len(self.lines))


def columns_kept(
    line: str, ends: Sequence[int], headings: Sequence[int], longer: frozenset[int] = frozenset()
) -> bool:
    """Whether a line's words end where their headings do, but right of one that was too wide.

    ``headings`` are where headings end, ``longer`` those of them that some versions of a program
    print a character wider than their columns.
    """
    if len(ends) != len(headings):
        return False
    shift, begin = 0, 0
    for end, heading in zip(ends, headings, strict=True):
        moved = end - heading - shift
        field = line[begin:end]
        blanks = len(field) - len(field.lstrip())
        if (moved > 0 and blanks > 2) or moved < (-1 if heading in longer else 0):
            return False
        shift, begin = shift + moved, end
    return True
