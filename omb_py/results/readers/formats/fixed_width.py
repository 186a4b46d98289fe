"""Tables that a program prints in columns of fixed width: what a whole line of them is like.

A number that lost a digit no longer ends where its heading ends, and columns that follow from
each other no longer agree. Both are noticed here, for every reader of such tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from omb_py.results.readers import Problem, Source

LABEL = re.compile(r"(?:\d{1,7}:|\[[\w.,@:/-]{1,80}\](?:<\w+>)?:?)")
LABELLED_COMMENT = re.compile(f"^{LABEL.pattern}( ?)#".encode(), re.MULTILINE)
"""What launchers put before each line when they are asked to label it; some add a blank."""

MAX_PROBLEMS = 1000
"""Lines of a file that are named one by one when they cannot be used."""

LONGEST_LINE = 4096
"""Characters beyond which a line is no line of a table."""

WORD = re.compile(r"\S+")


def unlabelled(source: Source) -> Iterator[str]:
    """Lines without a launcher's labels; how far each is indented stays as it was.

    Whether a blank belongs to the label is seen from the comments, which begin with their #.
    Hydra also labels what a process writes without ending a line: within lines.
    """
    comment = LABELLED_COMMENT.search(source.content)
    return iter(source) if comment is None else (bare(line, comment[1].decode()) for line in source)


def lines_of(source: Source) -> Iterator[tuple[int, str]]:
    """The lines that may be of a table, without labels, each with its index in the file."""
    for index, line in enumerate(unlabelled(source)):
        if line and len(line) <= LONGEST_LINE:
            yield index, line


def bare(line: str, blank: str) -> str:
    """A line without a label and the blank after it, if labels have one."""
    label = LABEL.match(line)
    if label is None:
        return line
    text = line[label.end() :].removeprefix(blank)
    return text.replace(f"{label[0]} ", "") if label[0].startswith("[") else text


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


class Notes:
    """Problems of one file: the first thousand, and how many more there were."""

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self.source = source
        self.problems = problems
        self.unnamed = 0

    def add(self, index: int, text: str) -> None:
        """A problem with a line."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(self.source.problem(index, text))
        else:
            self.unnamed += 1

    def finish(self) -> None:
        """Say how many were not named."""
        if self.unnamed:
            text = f"{self.unnamed} more lines that cannot be used"
            self.problems.append(Problem(self.source.path, None, text))


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
