"""CSV: all of a profile as one table, for spreadsheets and data frames.

Comment lines say what the run was, each ``# name: value`` with a value in JSON. A row is a rank
(``row`` is ``rank``), calls that are alike (``calls``), or all calls of a routine as the file that
was read told them (``routine``; only of mpitrace's files). Cells of a column that a row has nothing
to say of are empty. In texts ``%25``, ``%23``, ``%0A``, ``%0D`` and ``%00`` stand for the per cent
sign, the hash, ends of lines and a null.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.tracing.profile import schema
from omb_py.tracing.profile.profile import Profile

KIND = "a profile in CSV"
NAME = "profile.csv"
MARK = f'# format: "{schema.FORMAT}"'.encode()

RANK, CALLS, ROUTINE = "rank", "calls", "routine"
COLUMNS = ("row", *schema.RANK, *schema.CALLS)
FIELDS = {**schema.RANK, **schema.CALLS}
ESCAPED = re.compile("[%#\n\r\0]")
ESCAPE = re.compile("%(25|23|0A|0D|00)")
YES, NO = "yes", "no"
TEXTS = [place for place, name in enumerate(COLUMNS) if FIELDS.get(name) == schema.TEXT]
TRUTHS = [place for place, name in enumerate(COLUMNS) if FIELDS.get(name) == schema.TRUTH]


def write(profile: Profile, path: str | Path) -> None:
    """Write all of a profile; raises `OmbError` when the file cannot be written."""
    files.write(path, text(profile))


def text(profile: Profile) -> str:
    """The CSV of a profile."""
    found = schema.parts(profile)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    rows = [_cells(RANK, values) for values in found.members]
    rows += [_cells(ROUTINE, {"rank": rank, **values}) for rank, values in found.told]
    rows += [_cells(CALLS, {"rank": rank, **values}) for rank, values in found.cells]
    for name, value in {**found.about, "rows": len(rows)}.items():
        out.write(f"# {name}: {json.dumps(value)}\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    return out.getvalue()


def read(path: str | Path) -> Profile:
    """The profile in a file; raises `UsageError` where it is none or is damaged."""
    content = files.read(path, UsageError)
    try:
        return _profile(content.decode())
    except UsageError as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    except (ValueError, RecursionError, csv.Error) as error:
        raise UsageError(f"{path} is damaged: {error}") from error


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


def _profile(content: str) -> Profile:
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
    return schema.join(
        schema.Parts(about, kinds[RANK], _with_rank(kinds[CALLS]), _with_rank(kinds[ROUTINE]))
    )


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
    cells = zip(COLUMNS[1:], row[1:], strict=True)
    return {name: _value(FIELDS[name], cell) for name, cell in cells if cell}


def _value(kind: str, cell: str) -> Any:
    if kind == schema.TEXT:
        return ESCAPE.sub(lambda match: chr(int(match[1], 16)), cell)
    if kind == schema.TRUTH:
        return {YES: True, NO: False}.get(cell)
    whole = kind == schema.WHOLE or cell.lstrip("-").isdecimal()
    return int(cell) if whole else float(cell)


def _with_rank(rows: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    return ((schema.whole(row.get("rank"), "rank"), row) for row in rows)
