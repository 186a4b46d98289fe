"""Performance logs of ReFrame, in the format that it writes by default since version 4."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from omb_py.results.readers import Found, Notes, Reader, Source

HEADER = "result|job_completion_time|"
"""What the line of names begins with that ReFrame writes at the top, and where names change."""

UNITS = {"latency_us": {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}}
UNITS["bandwidth_MBps"] = {"MB/s": 1.0, "GB/s": 1e3, "MiB/s": 1.048576, "GiB/s": 1073.741824}
"""Units of a column, and how many of the column's own each is."""


def read(source: Source) -> Iterator[Found]:
    """Yield a row for each number of each line: the check is the benchmark, the variable its
    part."""
    found = Found()
    notes = Notes(source, found.problems)
    names: list[str] = []
    for index, line in enumerate(source):
        cells = line.split("|")
        if line.startswith(HEADER):
            names = cells
        elif names and line and (len(cells) != len(names) or index == source.torn):
            notes.broken(index)
        elif names and line and not take(dict(zip(names, cells, strict=True)), index, found):
            notes.add(index, "no time of its end, or no time or bandwidth above 0, left out")
    notes.finish()
    yield found


def take(cells: Mapping[str, str], index: int, found: Found) -> bool:
    """Add the rows of a line and what it says of its run; tell whether it has any."""
    try:
        ended = datetime.fromtimestamp(float(cells["job_completion_time_unix"]), UTC)
    except (KeyError, ValueError, OverflowError, OSError):
        return False
    run = f"{ended:%Y%m%dT%H%M%SZ}-{cells.get('jobid', '')}"
    row: dict[str, Any] = {"run": run, "suite": "ReFrame", "line": index + 1}
    row["benchmark"] = cells.get("name") or "check"
    if cells.get("num_tasks", "").isdecimal():
        row["ranks"] = int(cells["num_tasks"])
    before = len(found.rows)
    for column, units in UNITS.items():
        for variable in (name.removesuffix("_unit") for name in cells if cells[name] in units):
            try:
                value = float(cells[f"{variable}_value"]) * units[cells[f"{variable}_unit"]]
            except (KeyError, ValueError):
                continue
            if 0 < value < float("inf"):
                found.rows.append(row | {"part": variable, column: value})
    machine = f"{cells.get('system', '')}:{cells.get('partition', '')}"
    facts = {name: cells.get(name, "") for name in ("environ", "modules", "job_nodelist")}
    found.runs[run] = {"run": run, "machine": machine, **facts}
    return len(found.rows) > before


READER = Reader("ReFrame's performance logs", (HEADER.encode(),), read)
