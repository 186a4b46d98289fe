"""Our own JSON: an object on each line, in older files as a part of an array."""

from __future__ import annotations

import json
from collections.abc import Iterator
from sys import float_info
from typing import Any

from omb_py.results.columns import KINDS, ORIGIN
from omb_py.results.readers import ROWS_AT_ONCE, Found, Notes, Reader, Source

COLUMNS = KINDS | ORIGIN

TYPES: dict[str, Any] = {"int": int, "float": int | float, "bool": bool, "str": str}
LARGEST = 2**63


def read(source: Source) -> Iterator[Found]:
    """Yield objects with a benchmark as rows; those with metadata begin a run."""
    found = Found()
    notes = Notes(source, found.problems)
    for index, line in enumerate(source):
        if not (text := line.strip().rstrip(",")).startswith("{"):
            continue
        try:
            item = json.loads(text)
        except (ValueError, RecursionError):
            notes.add(index, "an incomplete object, left out")
            continue
        if isinstance(metadata := item.get("metadata"), dict):
            run = str(metadata.get("run", ""))
            known = found.runs.setdefault(run, {})
            known.update((str(name), str(value)) for name, value in metadata.items())
        elif isinstance(item.get("benchmark"), str) and isinstance(item.get("run"), str):
            row = row_of(item)
            if wrong := [name for name, value in row.items() if not fits(name, value)]:
                notes.add(index, f"{wrong[0]} is not what its column holds; left out")
            else:
                found.rows.append(row | {"line": index + 1})
        if len(found.rows) >= ROWS_AT_ONCE:
            yield Found(rows=found.rows.copy())
            found.rows.clear()
    notes.finish()
    yield found


def row_of(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object as a row of the table: the columns that are known, percentiles as in CSV."""
    row = {name: item[name] for name in COLUMNS if name in item}
    percentiles = item.get("percentiles")
    if isinstance(percentiles, dict):
        numbers = {n: value for n, value in percentiles.items() if fits("latency_us", value)}
        row["percentiles"] = " ".join(f"{name}={value:.9g}" for name, value in numbers.items())
    return row


def fits(name: str, value: Any) -> bool:
    """Return whether a value is missing, or of the type of a column."""
    kind = TYPES[COLUMNS.get(name, "str")]
    if value is None or isinstance(value, bool):
        return value is None or kind is bool
    if kind is int and isinstance(value, int):
        return abs(value) < LARGEST
    return isinstance(value, kind) and (kind is str or abs(value) <= float_info.max)


READER = Reader(
    "omb-py's JSON",
    (b'{"metadata": {', b'{"run": ', b'{"metadata":{', b'{"run":"'),
    read,
)
