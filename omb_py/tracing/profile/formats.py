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
from typing import Any

from omb_py.tracing.profile.profile import FORMAT, Profile

MARK = f'# format: "{FORMAT}"'.encode()
"""What the CSV begins with."""

RANK, CALLS, ROUTINE = "rank", "calls", "routine"
OF_RANKS = """rank host complete elapsed_s communication_s io_s user_s system_s thread_s outside_s
    memory_bytes switches counted"""
OF_CALLS = """routine communicator communicator_size communicator_label peer bin site calls nbytes
    seconds least_s greatest_s"""
COLUMNS = ("row", *OF_RANKS.split(), *OF_CALLS.split())
ESCAPED = re.compile("[%#\n\r\0]")
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
    rows = [cells(RANK, {**member, "calls": None}) for member in members]
    for row, name in LISTS.items():
        for member in members:
            rows += [cells(row, {"rank": member["rank"], **values}) for values in member[name]]
    for name, value in {**found, "rows": len(rows)}.items():
        out.write(f"# {name}: {json.dumps(value)}\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    return out.getvalue()


def cells(row: str, values: Mapping[str, Any]) -> list[Any]:
    """A row's cells: numbers, and what is missing, are left to the writer."""
    return [row, *(cell(values.get(name)) for name in COLUMNS[1:])]


def cell(value: Any) -> Any:
    """A text without what a comment or a row ends at, a truth as a word, all else as it is."""
    if isinstance(value, str):
        return ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", value)
    return ("no", "yes")[value] if isinstance(value, bool) else value
