"""The CSV and the JSON of rccl-tests (``-x FILE -Z csv|json``): each line is one measurement.

JSON is a list, in older versions only its elements, so lines are read one by one. In CSV of
programs with MPI each row has one field more than the header: ``nodes``, after the name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from omb_py.results.readers import Found, Source
from omb_py.results.readers.formats.fixed_width import Notes, lines_of
from omb_py.results.readers.formats.nccl import (
    PROGRAMS,
    TYPES,
    NcclRow,
    NcclTable,
    Run,
    bandwidths_agree,
    factors,
    measurements,
    number,
)

FIELDS = {
    "numCycle": r"\d{1,9}",
    "name": r'"[A-Za-z]{1,24}"',
    "nodes": r"\d{1,7}",
    "ranks": r"\d{1,7}",
    "ranksPerNode": r"\d{1,7}",
    "gpusPerRank": r"\d{1,7}",
    "gpus": r"\d{1,7}",
    "size": r"\d{1,18}",
    "type": r'"[a-z0-9_]{3,10}"',
    "redop": r'"(?:none|sum|prod|max|min|avg|mulsum)"',
    "inPlace": "[01]",
    "time": r"\d{1,15}\.\d{6}",
    "algBw": r"\d{1,15}\.\d{6}",
    "busBw": r"\d{1,15}\.\d{6}",
    "wrong": r'"(?:N/A|\d{1,18})"',
}
"""What each field looks like, in JSON and in CSV alike, and the order of fields."""

PROCESSES = ("nodes", "ranks", "ranksPerNode", "gpusPerRank")
LAYOUTS = [
    [name for name in FIELDS if name not in left_out]
    for cycle in ((), ("numCycle",))
    for left_out in ((*cycle, "gpus"), (*cycle, *PROCESSES))
]
"""The fields of each version, built with MPI and without it."""

HEADER = re.compile(
    r"(?P<cycle>numCycle, ?)?collective, ?(?P<mpi>ranks, ?rankspernode, ?gpusperrank|gpus), ?"
    r"size, ?type, ?redop, ?inplace, ?time, ?algbw, ?busbw, ?#wrong\s*"
)
OBJECT = re.compile(r'\s*\{\s*"(?:numCycle|name)"\s*:.*')

NAMES = {program.replace("_", ""): program for program in PROGRAMS}
"""Programs by what rccl-tests calls their collective, in small letters."""

BLOCK_SIZES = frozenset(("reduce_scatter", "scatter"))
"""Programs whose size was once that of one rank's block, in this output alone."""


class RcclTestsReader:
    """Lines of JSON with their names, and lines of CSV below a header."""

    name = "rccl-tests' CSV and JSON"
    marks = (
        b'{"numCycle":',
        b'{"name":"',
        b"numCycle,collective,",
        b"collective, ranks, rankspernode",
        b"collective, gpus, size",
    )

    def read(self, source: Source) -> Iterator[Found]:
        found = Found()
        notes = Notes(source, found.problems)
        table: NcclTable | None = None
        kind: tuple[Any, ...] = ()
        header: list[str] | None = None
        for index, line in lines_of(source):
            if '"' not in line and "collective" not in line:
                continue
            if match := HEADER.fullmatch(line):
                header = layout_of(match)
                continue
            fields = fields_of(line, header)
            if fields is None:
                continue
            torn = index == source.torn and not line.rstrip().endswith("}")
            if torn or not is_whole(fields, json_line=line.lstrip().startswith("{")):
                notes.add(index, "not a whole row, left out")
                continue
            current = kind_of(fields)
            if table is None or current != kind:
                finish(table, found, notes)
                kind = current
                table = new_table(source, fields, index, notes)
            if table is not None:
                take(table, fields, index, notes)
        finish(table, found, notes)
        notes.finish()
        yield found


def layout_of(header: re.Match[str]) -> list[str]:
    """The fields of the rows below a header of CSV."""
    left_out = () if header["cycle"] else ("numCycle",)
    other = ("gpus",) if header["mpi"] != "gpus" else PROCESSES
    return [name for name in FIELDS if name not in (*left_out, *other)]


def fields_of(line: str, header: list[str] | None) -> dict[str, str] | None:
    """The fields of a line as they are written, or None where it is no row of any kind."""
    if OBJECT.fullmatch(line):
        try:
            item = json.loads(line.strip().removesuffix(","), parse_float=str)
        except (ValueError, RecursionError):
            return {}
        if not isinstance(item, dict) or line.count('":') != len(item):
            return {}  # a name that is there twice
        return {name: text_of(name, value) for name, value in item.items()}
    if header is None or line.count(",") < len(header) // 2 or '"' not in line:
        return None
    cells = [cell.strip() for cell in line.split(",")]
    return dict(zip(header, cells, strict=True)) if len(cells) == len(header) else {}


def text_of(name: str, value: Any) -> str:
    """A field of JSON as CSV has it."""
    quoted = FIELDS.get(name, "").startswith('"')
    return f'"{value}"' if quoted and isinstance(value, str) else str(value)


def is_whole(fields: Mapping[str, str], json_line: bool) -> bool:
    """Whether all fields of some version are there, each of the form that it prints."""
    names = list(fields)
    if names not in LAYOUTS and not (json_line and sorted(names) in map(sorted, LAYOUTS)):
        return False
    return all(re.fullmatch(FIELDS[name], text) for name, text in fields.items())


def kind_of(fields: Mapping[str, str]) -> tuple[str | None, ...]:
    """What rows of one table share."""
    return tuple(fields.get(name) for name in ("numCycle", "name", *PROCESSES, "gpus"))


def new_table(
    source: Source, fields: Mapping[str, str], index: int, notes: Notes
) -> NcclTable | None:
    """The table that begins with a row, or None where nobody knows of what it is.

    ``ranksPerNode`` are the processes of one communicator, whatever their nodes, and ``nodes`` the
    communicators.
    """
    collective = fields["name"].strip('"')
    program = NAMES.get(collective.lower())
    cycle = int(fields.get("numCycle", "0"))
    name = f"{source.path}:1" + (f" cycle {cycle + 1}" if cycle else "")
    run = Run(name, suite="rccl-tests")
    groups = int(fields.get("nodes", "1"))
    processes = int(fields.get("ranksPerNode", "1"))
    each = int(fields.get("gpusPerRank", fields.get("gpus", "0")))
    if program is None:
        notes.add(index, f"{collective} is no collective that is known; left out")
        return None
    if not (groups and each) or int(fields.get("ranks", "1")) != groups * processes:
        notes.add(index, "numbers of ranks that contradict each other, left out")
        return None
    run.numbers = processes * each, groups
    return NcclTable(index, run, program)


def take(table: NcclTable, fields: Mapping[str, str], index: int, notes: Notes) -> None:
    """A whole row: its size that of all blocks, as nccl-tests prints it."""
    program, ranks = table.program or "", table.run.size or 1
    dtype = fields["type"].strip('"')
    if dtype not in TYPES:
        notes.add(index, f"{dtype} is no type that is known; left out")
        return
    time, algorithm, bus = (number(fields[name]) for name in ("time", "algBw", "busBw"))
    size = int(fields["size"])
    if program in BLOCK_SIZES:
        agree, _ = bandwidths_agree(size, time, algorithm, bus, factors(program, ranks))
        size = size if agree else size * ranks
    shares = ranks if PROGRAMS[program].parts else 1
    count = size // TYPES[dtype][0] // shares
    half = (fields["time"], fields["algBw"], fields["busBw"], fields["wrong"].strip('"'))
    redop = fields["redop"].strip('"')
    in_place = fields["inPlace"] == "1"
    table.add(NcclRow(index, size, count, dtype, redop, "-1", {in_place: half}), notes)


def finish(table: NcclTable | None, found: Found, notes: Notes) -> None:
    """The end of a table."""
    if table is not None and (rows := list(measurements(table, notes))):
        found.runs.setdefault(table.run.name, table.run.said)
        found.rows.extend(rows)


READER = RcclTestsReader()
