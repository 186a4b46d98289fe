"""Open MPI's ``coll_tuned_dynamic_rules_filename``: its classic format, with and without version 2.

Numbers in a row, with comments after ``#``: how many collectives; of each its number and how many
sizes of communicators; of each that size and how many sizes of messages; of each the size from
which on it holds, the algorithm (0: the library's own choice), fan-out, bytes of a segment and, in
version 2 (from 5.0.7 on), requests at once. A communicator takes the last entry that is not larger
than it, but the first one if all are, so the first one here is of size 0. The first message size of
an entry has to be 0. A file with a fault is ignored without a word.

Sizes, ids and meanings are those of ``coll_tuned_decision_dynamic.c`` of 5.0.10, which for
allgatherv compares the mean block and not, as its documentation has it, the sum.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from omb_py.algorithms import openmpi
from omb_py.algorithms.rules import Choice, LibraryBuild, Rule, RulesFormat, by_ranks
from omb_py.core.errors import UsageError
from omb_py.core.mpi.rules import FILES

IDS = {
    "allgather": 0,
    "allgatherv": 1,
    "allreduce": 2,
    "alltoall": 3,
    "alltoallv": 4,
    "barrier": 6,
    "bcast": 7,
    "exscan": 8,
    "gather": 9,
    "reduce": 11,
    "reduce_scatter": 12,
    "reduce_scatter_block": 13,
    "scan": 14,
    "scatter": 15,
}
COLLECTIVES = 22
"""Collectives that have a number."""

ALL_BLOCKS = frozenset({"allgather", "alltoall", "gather", "scatter"})
"""Functions whose size is that of the blocks of all ranks together."""

WITHOUT_SIZE = frozenset({"alltoallv", "scan", "exscan"})
"""Functions of messages whose rules do not see the size of a message."""

FAN_OUT = 4
"""Open MPI's own fan-out of trees and chains."""

VERSION_2 = (5, 0, 7)
"""The first release that reads version 2."""

Messages: TypeAlias = list[tuple[int, int]]
"""Sizes from which on an algorithm holds, and its number."""


def size_of(function: str, ranks: int, nbytes: int) -> int:
    """Return what Open MPI compares with thresholds, for a benchmark's message size."""
    if function in WITHOUT_SIZE or function == "barrier":
        return 0
    return nbytes * ranks if function in ALL_BLOCKS else nbytes


def write(rules: Sequence[Rule], about: Sequence[str], build: LibraryBuild) -> tuple[str, ...]:
    """Return the file of some rules; everywhere else the library chooses."""
    second = build.version >= VERSION_2
    of_functions = by_ranks(rules)
    lines = ["rule-file-version-2"] if second else []
    lines += [f"# {line}" for line in about]
    lines += [f"{len(of_functions)}  # collectives"]
    for function, of_ranks in of_functions.items():
        sizes = [0, *(size for ranks in of_ranks for size in (ranks, ranks + 1))]
        sizes = sorted({*sizes})
        lines += [f"{IDS[function]}  # {function}", f"{len(sizes)}  # sizes of communicators"]
        for size in sizes:
            entries = list(thresholds(function, of_ranks.get(size, [])))
            lines += [
                f"{size}  # ranks",
                f"{len(entries)}  # bytes, algorithm, fan-out, segment, requests",
            ]
            for start, rule in entries:
                segment = 0 if rule is None else rule.algorithm.settings.get("segmentsize", 0)
                number = "0" if rule is None else rule.algorithm.value
                word = "" if rule is None else f"  # {rule.algorithm.word}"
                more = " 0" if second else ""
                lines.append(f"{start} {number} {FAN_OUT} {segment}{more}{word}")
    return ("\n".join(lines) + "\n",)


def thresholds(function: str, rules: Sequence[Rule]) -> Iterator[tuple[int, Rule | None]]:
    """Yield the sizes from which on each rule holds, and None from where on none does."""
    until = 0
    if not rules or size_of(function, rules[0].ranks, rules[0].first) > 0:
        yield 0, None
    for number, rule in enumerate(rules):
        if number and rule.first > until:
            yield size_of(function, rule.ranks, until), None
        yield size_of(function, rule.ranks, rule.first), rule
        until = rule.last + 1
    if rules and size_of(function, rules[-1].ranks, until) > 0:
        yield size_of(function, rules[-1].ranks, until), None


def read(texts: Sequence[str]) -> Choice:
    """Return what a file makes Open MPI choose; raise `UsageError` if it ignores the file."""
    (text,) = texts
    found = entries_of(text)

    def choice(function: str, ranks: int, nbytes: int) -> str | None:
        sizes = found.get(IDS.get(function, -1), [])
        fitting = [messages for size, messages in sizes if size <= ranks]
        messages = (fitting or [one for _, one in sizes[:1]] or [[]])[-1]
        size = size_of(function, ranks, nbytes)
        numbers = [number for start, number in messages if start <= size]
        return str(numbers[-1]) if numbers and numbers[-1] else None

    return choice


def entries_of(text: str) -> Mapping[int, list[tuple[int, Messages]]]:
    """Return for each collective's number the sizes of communicators with their messages."""
    head = re.match(r"rule-file-version-(\d+)", text)
    version = int(head[1]) if head else 1
    body = text[head.end() if head else 0 :]
    lines = [line.partition("#")[0] for line in body.splitlines()]
    numbers = [(int(word), at) for at, line in enumerate(lines, 1) for word in numbers_in(line)]
    place = 0

    def take(what: str, most: int | None = None) -> int:
        nonlocal place
        line = numbers[min(place, len(numbers) - 1)][1] if numbers else 1
        if place >= len(numbers):
            raise UsageError(f"Open MPI ignores this file: it ends without {what}")
        number = numbers[place][0]
        place += 1
        if number < 0 or (most is not None and number > most):
            raise UsageError(f"Open MPI ignores this file: line {line}: {number} for {what}")
        return number

    found: dict[int, list[tuple[int, Messages]]] = {}
    for _ in range(take("the number of collectives", COLLECTIVES)):
        collective = take("a collective", COLLECTIVES - 1)
        found[collective] = []
        for _ in range(take("the number of sizes of communicators")):
            size, messages = take("a size of communicators"), list[tuple[int, int]]()
            for entry in range(take("the number of message sizes")):
                start, number = take("a message size"), take("an algorithm")
                if entry == 0 and start:
                    raise UsageError(
                        "Open MPI ignores this file: the first message size of collective "
                        f"{collective} on {size} ranks is {start}, and has to be 0"
                    )
                take("a fan-out")
                take("the bytes of a segment")
                ends_line = place >= len(numbers) or numbers[place][1] != numbers[place - 1][1]
                if version > 1 and not ends_line:
                    take("requests")
                messages.append((start, number))
            found[collective].append((size, messages))
    return found


def numbers_in(line: str) -> list[str]:
    """Return the numbers of a line; other characters are passed over, as Open MPI does."""
    return re.findall(r"-?\d+", line)


def environment(files: Sequence[Path]) -> dict[str, str]:
    """Return the variables that make Open MPI take a file of rules, on several nodes, too."""
    return openmpi.ALWAYS | dict(zip(FILES["Open MPI"], map(str, files), strict=True))


def unforced(function: str) -> dict[str, str]:
    """Return the variable that forces an algorithm, which goes before rules, without a choice."""
    return {f"OMPI_MCA_coll_tuned_{function}_algorithm": "0"}


FORMAT = RulesFormat(
    "Open MPI",
    ("openmpi.rules",),
    frozenset(IDS) - WITHOUT_SIZE,
    write,
    read,
    environment,
    unforced,
)
