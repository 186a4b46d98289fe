"""All of a profile in JSON, for programs, and in CSV, for spreadsheets and data frames.

The CSV is one table. Comment lines say what the run was, each ``# name: value`` with a value in
JSON. A row is a rank (``row`` is ``rank``), calls that are alike (``calls``), or all calls of a
routine as the file that was read has them (``routine``; only of mpitrace's files). Cells of a
column that a row has nothing to say of are empty. In texts ``%25``, ``%23``, ``%0A``, ``%0D`` and
``%00`` stand for the per cent sign, the hash, ends of lines and a null.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omb_py.core.errors import UsageError, needing
from omb_py.core.text import files
from omb_py.tracing.profile.profile import FORMAT, Profile

CSV, JSON = "a profile in CSV", "a profile in JSON"
NAMES = {CSV: "profile.csv", JSON: "profile.json"}
MARK = f'# format: "{FORMAT}"'.encode()

RANK, CALLS, ROUTINE = "rank", "calls", "routine"
OF_RANKS = """rank host complete elapsed_s communication_s io_s user_s system_s thread_s outside_s
    memory_bytes switches counted"""
OF_CALLS = """routine communicator communicator_size communicator_label peer bin site calls nbytes
    seconds least_s greatest_s"""
COLUMNS = ("row", *OF_RANKS.split(), *OF_CALLS.split())
TEXTS = [
    COLUMNS.index(name)
    for name in ("host", "routine", "communicator", "communicator_label", "site")
]
TRUTHS = [COLUMNS.index(name) for name in ("complete", "counted")]
ESCAPED = re.compile("[%#\n\r\0]")
ESCAPE = re.compile("%(25|23|0A|0D|00)")
YES, NO = "yes", "no"
LISTS = {ROUTINE: "routines", CALLS: "calls"}
"""Where a rank's plain values have its other rows."""


def json_text(profile: Profile) -> str:
    """The JSON of a profile: a line for each rank."""
    found = profile.plain()
    rows = ",\n".join(map(json.dumps, found.pop("members")))
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()]
    return "{\n" + ",\n".join([*lines, f'"members": [\n{rows}\n]']) + "\n}\n"


def csv_text(profile: Profile) -> str:
    """The CSV of a profile."""
    found = profile.plain()
    members = found.pop("members")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    rows = [_cells(RANK, {**member, "calls": None}) for member in members]
    for row, name in LISTS.items():
        for member in members:
            rows += [_cells(row, {"rank": member["rank"], **values}) for values in member[name]]
    for name, value in {**found, "rows": len(rows)}.items():
        out.write(f"# {name}: {json.dumps(value)}\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    return out.getvalue()


def read(path: str | Path, kind: str) -> Profile:
    """The profile in a file of this kind, `CSV` or `JSON`.

    Raises `UsageError` where it is none or is damaged, `MissingPackageError` without pydantic.
    """
    with needing("analysis"):
        from omb_py.tracing.profile.schema import profile_of

    content = files.read(path, UsageError)
    try:
        return profile_of(_plain(content.decode()) if kind == CSV else json.loads(content))
    except UsageError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    except (ValueError, RecursionError, csv.Error) as error:
        what = error if kind == CSV else "it is no JSON"
        raise UsageError(f"{path} is damaged: {what}") from error


def _cells(row: str, values: Mapping[str, Any]) -> list[Any]:
    """A row's cells: numbers, and what is missing, are left to the writer."""
    cells = [row, *map(values.get, COLUMNS[1:])]
    for place in TEXTS:
        if (text := cells[place]) is not None:
            cells[place] = ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)
    for place in TRUTHS:
        if (truth := cells[place]) is not None:
            cells[place] = YES if truth else NO
    return cells


def _plain(content: str) -> dict[str, Any]:
    lines = content.replace("\r\n", "\n").split("\n")
    if lines[-1]:
        raise UsageError("its last line has no end")
    about, number = _about(lines)
    rows = list(csv.reader(lines[number:-1], strict=True))
    if not rows or tuple(rows[0]) != COLUMNS:
        raise UsageError("its columns are not those of a profile")
    if len(rows) - 1 != about.get("rows"):
        raise UsageError(f"it has {len(rows) - 1} rows of {about.get('rows')}")
    kinds: dict[str, list[dict[str, Any]]] = {RANK: [], CALLS: [], ROUTINE: []}
    for line, row in enumerate(rows[1:], number + 2):
        if len(row) != len(COLUMNS) or row[0] not in kinds:
            raise UsageError(f"line {line} is no row of a profile")
        kinds[row[0]].append(_values(row))
    about["members"] = kinds[RANK]
    members = {row.get("rank"): row for row in kinds[RANK]}
    for kind, name in LISTS.items():
        for member in kinds[RANK]:
            member[name] = []
        for values in kinds[kind]:
            if (rank := values.pop("rank", None)) not in members:
                raise UsageError("it has calls of ranks that are not there")
            members[rank][name].append(values)
    return about


def _about(lines: list[str]) -> tuple[dict[str, Any], int]:
    """What comment lines say, and how many there are."""
    about: dict[str, Any] = {}
    for number, line in enumerate(lines):
        if not line.startswith("# "):
            return about, number
        name, _, value = line.removeprefix("# ").partition(": ")
        about[name] = json.loads(value)
    return about, len(lines)


def _values(row: list[str]) -> dict[str, Any]:
    return {COLUMNS[place]: _value(place, cell) for place, cell in enumerate(row) if place and cell}


def _value(place: int, cell: str) -> Any:
    if place in TEXTS:
        return ESCAPE.sub(lambda match: chr(int(match[1], 16)), cell)
    if place in TRUTHS:
        return {YES: True, NO: False}.get(cell)
    return int(cell) if cell.lstrip("-").isdecimal() else float(cell)
