"""The text output of native OMB (versions 4 to 8), of the original OMB-Py, and our own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from omb_py.core.mpi.startup_timer import INIT, SESSION
from omb_py.results.readers import ROWS_AT_ONCE, Found, Source
from omb_py.results.readers.formats.fixed_width import Notes, lines_of
from omb_py.results.readers.formats.omb import (
    TAILS_AS_SAMPLES,
    VARIED_SIZE_WIDTH,
    VARIED_WIDTH,
    Column,
    benchmark_of,
    cells_of,
    columns_of,
    detail_of,
    failure_part_of_line,
    is_sized,
    laid_out,
    of_failures,
    options_of_banner,
    options_of_command,
    pairs_only,
    part_of_line,
    program_in,
    start_of_line,
    widths_of,
)

BANNER = re.compile(
    r"# (?P<who>OSU|OMB Python|OMB-Py) (?P<api>MPI|NCCL|RCCL)(?:-(?P<device>[A-Z]+))?"
    r"(?P<title>[ _].*?) Test(?: v(?P<version>\d[\w.]*))?"
    r"(?: \(omb-py (?P<ours>[^:()]+): (?P<how>.*)\))?\s*$"
)
TOPOLOGY = re.compile(r"Time took to create topology graph:(\d{1,12}\.\d\d) us\.")
PART = re.compile(r"# (?P<part>[a-z ]+): (\S+) us \(of the ranks (\S+) to (\S+)\)")
TELLING = ("#", "osu_", "Time took")
"""What lines have in them that matter outside a table."""

LOOKS_LIKE_A_ROW = re.compile(r"\d+(?:\s+(?:[-\d.]|nan|inf)|\s*$)")
LOOKS_LIKE_A_PART = re.compile(r"\S+(?: \S+)?\s+(?:\d+\s+\d+\s+)?\d+\.\d*\s")
SIZE = re.compile(r"0|[1-9]\d{0,17}")
NARROW = (10,)
"""The width of native OMB's only value column in latency_mp, whose heading has 18."""

VARIED = re.compile(r"#(?:\s+\d{1,9}){2,}\s*")


@dataclass
class Reading:
    """Where the reader stands: what it knows of the table that it is in."""

    found: Found
    source: Source
    notes: Notes
    program: str | None
    said: dict[str, Any] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)
    graph_us: float | None = None
    table: dict[str, Any] | None = None
    indent: int = 0
    columns: tuple[Column, ...] = ()
    widths: tuple[int, ...] | None = None
    windows: tuple[int, ...] = ()
    rates: bool = False
    sized: bool = True
    rows: list[dict[str, Any]] = field(default_factory=list)
    last: int = -1


class OmbTextReader:
    """Every table below a banner, whatever stands between its lines."""

    name = "native OMB's text and OMB-Py's"
    marks = (b"# OSU MPI", b"# OSU NCCL", b"# OSU RCCL", b"# OMB Python MPI", b"# OMB-Py MPI")

    def read(self, source: Source) -> Iterator[Found]:
        found = Found()
        notes = Notes(source, found.problems)
        state = Reading(found, source, notes, program_in(PurePath(source.path).name))
        for index, line in lines_of(source):
            if len(found.rows) >= ROWS_AT_ONCE:
                yield found.take_rows()
            if state.table is None and not any(word in line for word in TELLING):
                continue
            text = line.lstrip()
            begin = BANNER.match(text) if text.startswith("# O") and index != source.torn else None
            if begin is not None:
                start_table(state, begin, index)
                state.indent = len(line) - len(text)
                continue
            text = line[state.indent :] if not line[: state.indent].strip() else line
            if state.table is None or ("osu_" in text and program_in(text)):
                look_ahead(state, text.lstrip())
            elif not detail(state, text, index):
                row(state, text, index)
        finish_table(state)
        notes.finish()
        yield found


def look_ahead(state: Reading, line: str) -> None:
    """Outside a table: what a command line, or what stands before a banner, tells of the next."""
    if (program := program_in(line)) is not None:
        finish_table(state)
        state.program, state.said = program, options_of_command(line)
        state.before = {}
        return
    if match := TOPOLOGY.match(line):
        state.graph_us = float(match[1])
    detail_of(line, state.before)


def start_table(state: Reading, match: re.Match[str], index: int) -> None:
    """A banner: what it says, and what was said before it."""
    finish_table(state)
    name = benchmark_of(match["title"].lstrip(" "), state.program, state.graph_us is not None)
    run = f"{state.source.path}:{index + 1}"
    table: dict[str, Any] = {"run": run, "benchmark": name, "suite": suite(match), "binding": "C"}
    table |= state.said | state.before
    if match["who"] != "OSU" or match["ours"]:
        table["binding"] = None
    if match["api"] != "MPI":
        table["binding"] = "nccl"
    if match["device"]:
        table |= {"buffer": match["device"].lower()}
    table |= options_of_banner(match["how"] or "")
    name = table["benchmark"]
    if name in pairs_only():
        table["ranks"] = 2
    if name == "init":
        table["part"] = SESSION if "session" in (match["how"] or "").split(", ") else INIT
    state.table, state.columns, state.windows, state.before = table, (), (), {}
    state.rates, state.sized, state.last = False, True, -1
    if state.graph_us is not None:
        part = {"part": "topology creation", "latency_us": state.graph_us, "line": index + 1}
        state.rows.append(dict(table) | part)
        state.graph_us = None


def suite(match: re.Match[str]) -> str:
    """Who measured."""
    if match["ours"]:
        return f"omb-py {match['ours']}"
    name = "OSU" if match["who"] == "OSU" else "OMB-Py"
    return f"{name} {match['version']}" if match["version"] else name


def finish_table(state: Reading) -> None:
    """The end of a table, or of the file: its rows are as whole as they will be."""
    state.found.rows.extend(state.rows)
    state.rows = []
    state.table = None


def detail(state: Reading, line: str, index: int) -> bool:
    """Whether a line of a table says something of it, rather than being a row."""
    assert state.table is not None
    if not line.startswith("#"):
        return False
    if line.startswith(("# Uni-directional", "# Message Rate Profile")):
        state.rates, state.last = line.startswith("# Message"), -1
        return True
    if detail_of(line, state.table):
        state.last = -1
        return True
    if VARIED.fullmatch(line):
        state.windows, state.columns, state.last = tuple(map(int, line[1:].split())), (), -1
        return True
    if match := PART.match(line):
        names = ("latency_us", "latency_min_us", "latency_max_us")
        numbers = [number(text) for text in match.groups()[1:]]
        if None not in numbers:
            part = {"part": match["part"], "line": index + 1}
            state.rows.append(state.table | part | dict(zip(names, numbers, strict=True)))
        return True
    if line.startswith(("# Size", "# Avg Latency", "# Overall(us)", "# Latency (us)")):
        state.columns, state.windows = columns_of(line) or (), ()
        state.sized, state.last, state.widths = is_sized(line), -1, widths_of(line)
        if not state.columns:
            text = f"headings that are not known, the table is left out: {line.strip()[:60]!r}"
            state.notes.add(index, text)
        return True
    return True


def number(text: str) -> float | None:
    """A cell with two decimals, or None."""
    return float(text) if re.fullmatch(r"\d+\.\d\d", text) else None


def row(state: Reading, line: str, index: int) -> None:
    """A line below a header: a whole row, a broken one, or something that has no part in it."""
    assert state.table is not None
    if line.lstrip()[:1].isalpha() and (start := start_of_line(line.strip())):
        add(state, index, **start)
        return
    parts = None
    if state.table["benchmark"] == "import_time":
        parts = part_of_line
    elif state.table["benchmark"] in of_failures():
        parts = failure_part_of_line
    if parts is not None:
        if part := parts(line.rstrip()):
            add(state, index, **part)
        elif LOOKS_LIKE_A_PART.match(line):
            state.notes.add(index, "not a whole row, left out")
        return
    if not state.columns and not state.windows:
        return
    cells = line.split()
    if state.sized and not LOOKS_LIKE_A_ROW.match(line):
        return
    if not state.sized and not re.match(r"\s*\d+\.\d", line):
        return
    torn = index == state.source.torn
    if torn and not re.search(r"\.\d{2,}$|ss$|ssed$|l$|led$", cells[-1]):
        state.notes.add(index, "an incomplete row, left out")
        return
    if not state.sized:
        values = values_of(state, cells)
        if values is None or state.last >= 0 or not in_place(state, line, cells):
            state.notes.add(index, "not a whole row, left out")
        else:
            add(state, index, **values)
            state.last = 0
        return
    values = windows_of(state, cells[1:]) if state.windows else values_of(state, cells[1:])
    if values is None or not SIZE.fullmatch(cells[0]) or not in_place(state, line, cells):
        state.notes.add(index, "not a whole row, left out")
        return
    size = int(cells[0])
    if size <= state.last:
        state.notes.add(index, f"size {size} after {state.last}: rows of two tables? left out")
        if size == state.last and state.rows and state.rows[-1].get("bytes") == size:
            state.rows = [item for item in state.rows if item.get("bytes") != size]
        return
    state.last = size
    if state.windows:
        varied(state, index, size, values)
    else:
        add(state, index, bytes=size, **values)


def in_place(state: Reading, line: str, cells: list[str]) -> bool:
    """Whether a row's cells stand below their headings: one that lost a digit does not."""
    assert state.table is not None
    line = line.rstrip()
    if state.windows:
        size = cells[0].ljust(VARIED_SIZE_WIDTH)
        return line == size + "".join(f"  {c:>{VARIED_WIDTH}}" for c in cells[1:])
    if state.widths is None or line == laid_out(cells, state.widths):
        return True
    if state.table["benchmark"] == "latency_mp" and line == laid_out(
        cells, (state.widths[0], *NARROW)
    ):
        return True
    return line == laid_out(cells, narrowed(state))


def narrowed(state: Reading) -> tuple[int, ...]:
    """The widths of columns whose wide headings of percentiles did not widen their cells once."""
    assert state.widths is not None
    tails = [column.percentile is not None for column in state.columns]
    return (
        state.widths[0],
        *(min(w, 18) if tail else w for w, tail in zip(state.widths[1:], tails, strict=True)),
    )


def values_of(state: Reading, cells: list[str]) -> dict[str, Any] | None:
    """A row's cells by column, or None unless they are what the header says."""
    assert state.table is not None
    columns = state.columns
    if state.table["benchmark"] == "multi_lat" and len(cells) < len(columns):
        # native OMB prints no percentiles there, whatever its header says
        columns = tuple(column for column in columns if column.percentile is None)
    if not cells_of(columns).fullmatch(" ".join(cells)):
        return None
    found: dict[str, Any] = {}
    percentiles = []
    for column, cell in zip(columns, cells, strict=True):
        if column.percentile is not None:
            percentiles.append(f"p{column.percentile}={cell}")
            own = TAILS_AS_SAMPLES.get(column.percentile)
            if own and columns[0].name == "latency_us":
                found.setdefault(own, float(cell))  # --stats has more digits
        elif column.name == "validation" and cell != "-":
            found[column.name] = "Pass" if cell.lower().startswith("pass") else "Fail"
        elif cell != "-":
            found[column.name] = float(cell)
    if percentiles:
        found["percentiles"] = " ".join(percentiles)
    return found


def windows_of(state: Reading, cells: list[str]) -> dict[str, Any] | None:
    """A value for each window, or None."""
    numbers = [number(cell) for cell in cells]
    if len(numbers) != len(state.windows) or None in numbers:
        return None
    return dict(zip(map(str, state.windows), numbers, strict=True))


def varied(state: Reading, index: int, size: int, values: dict[str, Any]) -> None:
    """Rows of ``-V``: one for each window; the second table adds the message rates."""
    assert state.table is not None
    for window, value in values.items():
        if not state.rates:
            add(state, index, bytes=size, window=int(window), bandwidth_MBps=value)
            continue
        key = (size, int(window), state.table.get("mpi_type"))
        for item in state.rows:
            if (item.get("bytes"), item.get("window"), item.get("mpi_type")) == key:
                item["messages_per_s"] = value


def add(state: Reading, index: int, **values: Any) -> None:
    """A row of the table."""
    assert state.table is not None
    state.rows.append(state.table | values | {"line": index + 1})


READER = OmbTextReader()
