"""A row of nccl-tests: its cells, and whether its numbers follow from each other."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from omb_py.results.readers.formats.fixed_width import Shown, columns_kept, shown, word_ends
from omb_py.results.readers.formats.nccl_words import (
    PROGRAMS,
    ROOTED,
    TYPES,
    Run,
    bandwidths_agree,
    factors,
)

NUMBER = r"\d{1,15}(?:\.\d\d?)?(?:e[+-]\d\d)?"
FINER = r"\d{1,15}\.\d{3}"
"""A number of a build that prints three decimals, in all columns then."""
WRONG = re.compile(rf"N/A|-?nan|inf|{NUMBER}")
TELLING = 1.0
"""GB/s from which on a printed bandwidth has digits enough to tell numbers of ranks apart."""

TOLERANCE = 0.01
"""How far the quotient of two such bandwidths may be from what it was before they were rounded."""


@dataclass
class NcclTable:
    """A header, what its rows share, and the rows so far, whose program may not be known yet."""

    index: int
    redop: bool
    root: bool
    each: bool
    stamp: bool
    errors: bool
    ends: tuple[int, ...]
    longer: frozenset[int]
    run: Run
    program: str | None
    rows: list[NcclRow] = field(default_factory=list)
    last: dict[tuple[str, str, str], int] = field(default_factory=dict)


@dataclass(frozen=True)
class NcclRow:
    """A line taken apart: one measurement out of place, one in place."""

    index: int
    nbytes: int
    count: int
    dtype: str
    redop: str
    root: str
    halves: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def block(self) -> int:
        """Bytes of the elements that are counted."""
        return self.count * TYPES[self.dtype][0]


def row_of(table: NcclTable, line: str, index: int) -> NcclRow | None:
    """A line taken apart, or None when it does not have what the header names."""
    cells = line.split()
    if table.stamp:
        if not re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", " ".join(cells[-2:])):
            return None
        del cells[-2:]
    redop, root = "none", "-1"
    before = 3 + table.redop + table.root
    half = 8 if table.each else 4
    if len(cells) == before - 1 + 2 * half and table.redop:
        before -= 1  # programs that add nothing left the operation blank once
    elif table.redop and len(cells) > 3:
        redop = cells[3]
    if len(cells) != before + 2 * half or not re.fullmatch(r"[a-z]{2,8}", redop):
        return None
    if table.root:
        root = cells[before - 1]
    if not re.fullmatch(r"-1|\d{1,7}", root) or cells[2] not in TYPES:
        return None
    if not all(re.fullmatch(r"\d{1,18}", cell) for cell in cells[:2]):
        return None
    halves = []
    for start in (before, before + half):
        numbers, wrong, rest = cells[start : start + 3], cells[start + 3], cells[start + 4 :]
        shapes = (
            all(re.fullmatch(shape, cell) for cell in (*numbers, *rest[: half - 4]))
            for shape in (NUMBER, FINER)
        )
        if not any(shapes) or not WRONG.fullmatch(wrong):
            return None
        if table.each and not float(rest[0]) <= float(rest[2]) <= float(rest[1]):
            return None  # minimum, maximum, 99th percentile of single iterations
        halves.append((*numbers, wrong))
    return NcclRow(
        index, int(cells[0]), int(cells[1]), cells[2], redop, root, (halves[0], halves[1])
    )


def in_columns(table: NcclTable, line: str) -> bool:
    """Whether a row's numbers stand below their headings."""
    ends, headings = word_ends(line), table.ends
    if table.stamp:  # two words below one heading
        ends = (*ends[:-2], ends[-1])
    if len(ends) == len(headings) - 1:  # no operation
        headings = (*headings[:3], *headings[4:])
    return columns_kept(line, ends, headings, table.longer)


def contradiction(row: NcclRow, program: str, ranks: int | None) -> str | None:
    """What does not agree in size, count and type."""
    if not PROGRAMS[program].parts:
        return None if row.nbytes == row.block else "a size that is not that of the elements"
    if not row.block or row.nbytes % row.block or (ranks and row.nbytes != row.block * ranks):
        return "a size that is not that of the elements of all ranks"
    return None


def values_of(
    row: NcclRow, half: tuple[str, ...], program: str, factor: Shown, errors: bool
) -> dict[str, Any] | None:
    """The columns of one measurement, or None when its numbers contradict each other."""
    time, algorithm, bus = map(number, half[:3])
    agree, twice = bandwidths_agree(row.nbytes, time, algorithm, bus, factor)
    if not agree or float(half[0]) <= 0:
        return None
    values: dict[str, Any] = {
        "bytes": row.block if PROGRAMS[program].blocks else row.nbytes,
        "dtype": TYPES[row.dtype][1],
        "mpi_type": TYPES[row.dtype][2],
        "latency_us": float(half[0]),
        "algbw_GBps": None if twice else float(half[1]),
        "busbw_GBps": float(half[2]),
    }
    if program in ROOTED and row.root != "-1":
        values["root"] = row.root
    if PROGRAMS[program].adds and row.redop not in ("sum", "none"):
        values["part"] = row.redop
    if re.fullmatch(NUMBER, half[3]):
        none = float(half[3]) == 0
        # an error of old versions may be rounding: how much was allowed is not printed
        values["validation"] = "Pass" if none else (None if errors else "Fail")
    return values


def number(text: str) -> Shown:
    """A number as it was printed, with an exponent or without."""
    if "e" not in text:
        return shown(text)
    digits, _, exponent = text.partition("e")
    return shown(digits).times(10.0 ** int(exponent))


def ranks_told(table: NcclTable) -> int | None:
    """The ranks, where sizes are of all blocks and counts of one."""
    if table.program is None or not PROGRAMS[table.program].parts:
        return None
    told = {row.nbytes // row.block for row in table.rows if row.block}
    return told.pop() if len(told) == 1 else None


def program_told(table: NcclTable, ranks: int | None) -> str | None:
    """The one program that the bandwidths of all rows, the operations and the roots allow."""
    if not ranks or ranks < 3:
        return None  # of two ranks, allreduce and broadcast have the same factors
    adds = any(row.redop != "none" for row in table.rows)
    possible = []
    for program, what in PROGRAMS.items():
        rooted = any(row.root != "-1" for row in table.rows)
        if (program in ROOTED) is not rooted or (what.adds is not adds and program != "sendrecv"):
            continue
        if any(contradiction(row, program, ranks) for row in table.rows):
            continue
        if all(
            values_of(row, half, program, factors(program, ranks), table.errors)
            for row in table.rows
            for half in row.halves
        ):
            possible.append(program)
    return possible[0] if len(possible) == 1 else None


def ranks_fit(table: NcclTable, program: str, ranks: int) -> bool:
    """Whether most rows whose bandwidths tell the number of ranks have that number."""
    fit = [
        contradiction(row, program, ranks) is None
        and values_of(row, half, program, factors(program, ranks), table.errors) is not None
        for row in table.rows
        for half in row.halves
        if float(half[2]) >= TELLING
    ]
    return not fit or 2 * sum(fit) > len(fit)


def factor_of(table: NcclTable, program: str, ranks: int | None) -> Shown:
    """The factor of bus bandwidth; of an unknown number of ranks the one that most rows have."""
    possible = factors(program, ranks)
    ratios = [
        float(half[2]) / float(half[1])
        for row in table.rows
        for half in row.halves
        if float(half[1]) >= TELLING and float(half[2]) >= TELLING
    ]
    if ranks or possible.minimum == possible.maximum or not ratios:
        return possible
    usual = median(ratios)
    if not possible.meets(Shown(usual * (1 - TOLERANCE), usual)):
        return possible
    return Shown(usual * (1 - TOLERANCE), usual * (1 + TOLERANCE))
