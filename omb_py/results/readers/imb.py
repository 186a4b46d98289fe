"""The tables of Intel MPI Benchmarks (IMB), of any of its programs and versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from omb_py.results.readers import ROWS_AT_ONCE, Found, Source
from omb_py.results.readers.formats.fixed_width import Notes, lines_of, word_ends
from omb_py.results.readers.formats.imb import (
    BANNER,
    MODES,
    ImbTable,
    Run,
    Section,
    contradiction,
    decimal_megabytes,
    describe,
    options,
    out_of_place,
    size_factor,
)

COLUMNS = {
    "Group": "group",
    "#bytes": "bytes",
    "#repetitions": "iterations",
    "t[usec]": "latency_us",
    "t_min[usec]": "latency_min_us",
    "t_max[usec]": "latency_max_us",
    "t_avg[usec]": "latency_us",
    "Mbytes/sec": "megabytes",
    "Msg/sec": "messages_per_s",
    "t_ovrl[usec]": "overall_us",
    "t_pure[usec]": "latency_us",
    "t_CPU[usec]": "compute_us",
    "overlap[%]": "overlap_percent",
    "defects": "defects",
}
WHOLE = {"group", "bytes", "iterations", "messages_per_s"}
RULE = re.compile(r"#-{20,}\s*")
NAME = re.compile(r"# Benchmarking (?P<multi>Multi-)?(?P<name>\w+)(?: \([\dx ]+\))?\s*")
PROCESSES = re.compile(r"# #processes = (\d{1,6})(?:; rank order .*| \(threads: (\d{1,6})\))?\s*")
GROUPS = re.compile(r"# \( (\d{1,6}) groups of (\d{1,6}) processes each running simultaneous \)\s*")
MODE = re.compile(r"#\s+MODE: ((?:NON-)?AGGREGATE)\s*")
WINDOW = re.compile(r"# window_size = (\d{1,9})\s*")
FACT = re.compile(r"# ([A-Z][\w ]{0,40}?) {0,40}: *(\S.*)")
COMMAND = re.compile(r"# Calling sequence was:\s*")
SMALLEST = re.compile(r"# Minimum message length in bytes: +(\d+)\s*")
LARGEST = re.compile(r"# Maximum message length in bytes: +(\d+)\s*")
CHOSEN = re.compile(r"# Message lengths were user defined\s*")
LISTED = re.compile(r"# (\w+)\s*")
REFUSED = re.compile(r"\s*(?:\d+ +)?(\d+) (out-of-mem|time-out|int-overflow)\.")
LIBRARY = re.compile(r"MPI startup\(\): Intel\(R\) MPI Library, Version (\d+\.\d+)")
"""What Intel MPI says of itself before the banner when I_MPI_DEBUG is set."""
LOOKS_LIKE_A_ROW = re.compile(r"\s*\d+\s+[\d.]")


@dataclass
class Reading:
    """Where the reader stands. ``stage`` is what lines with # below a banner are about.

    ``begun`` is what has printed no row yet, after its last comment and the problems before it.
    """

    found: Found
    source: Source
    notes: Notes
    run: Run
    stage: str = ""
    name: str | None = None
    multi: bool = False
    ranks: int | None = None
    groups: int = 1
    mode: str | None = None
    threads: int | None = None
    window: int | None = None
    table: ImbTable | None = None
    smallest: int | None = None
    mpi: str | None = None
    begun: tuple[int, str, int] | None = None


class ImbReader:
    """Every table that says of which benchmark it is, and on how many processes."""

    name = "Intel MPI Benchmarks"
    marks = (b"#repetitions", b"MPI Benchmark")

    def read(self, source: Source) -> Iterator[Found]:
        found = Found()
        notes = Notes(source, found.problems)
        state = Reading(found, source, notes, Run(f"{source.path}:1"))
        for index, line in lines_of(source):
            if len(found.rows) >= ROWS_AT_ONCE:
                yield found.take_rows()
            if state.begun is not None and line.startswith("#"):
                state.begun = (index, *state.begun[1:])
            if "startup()" in line and (match := LIBRARY.search(line)):
                state.mpi = f"Intel MPI {match[1]}"
            elif state.table is None and "#" not in line:
                continue
            elif "#repetitions" in line and (columns := columns_of(line)):
                start_table(state, line, columns, index)
            elif line.startswith("#"):
                comment(state, line, index)
            elif state.table is None:
                continue
            elif match := REFUSED.match(line):
                notes.add(index, f"{match[1]} bytes: {match[2]}, not measured")
            elif LOOKS_LIKE_A_ROW.match(line):
                take(state, state.table, line, index)
        begin(state, None, "")
        notes.finish()
        yield found


def begin(state: Reading, index: int | None, what: str) -> None:
    """Something begins at a line, or the file ends: what printed nothing before it is named."""
    if state.begun is not None and state.begun[2] == state.notes.count:
        state.notes.ended(*state.begun[:2], index)
    state.begun = None if index is None else (index, what, state.notes.count)


def columns_of(line: str) -> tuple[str, ...] | None:
    """The columns of a header, or None when it is not one that is known."""
    names = [COLUMNS.get(word) for word in line.split()]
    known = tuple(name for name in names if name)
    return known if len(known) == len(names) == len(set(known)) >= 3 else None


def comment(state: Reading, line: str, index: int) -> None:
    """A line with #: the banner, what follows it, what stands above a table, or of no interest."""
    if match := BANNER.fullmatch(line):
        name = f"{state.source.path}:{index + 1}"
        state.run = Run(name, match["version"], match["part"], bool(match["gpu"]), state.mpi)
        state.mpi = None
        state.found.runs[name] = state.run.said
        state.stage, state.table, state.smallest = "", None, None
        forget(state)
        begin(state, index, state.run.suite)
    elif RULE.fullmatch(line):
        state.stage = ""
        if state.table is not None:
            state.table = None
            forget(state)
    elif match := NAME.fullmatch(line):
        state.table = None
        forget(state)
        state.stage, state.name, state.multi = "", match["name"], bool(match["multi"])
        if state.begun is not None and state.begun[1] == state.run.suite:
            state.begun = None
        begin(state, index, f"{match['name']} of {state.run.suite}")
    elif match := PROCESSES.fullmatch(line):
        state.ranks, state.threads = int(match[1]), int(match[2]) if match[2] else None
    elif match := GROUPS.fullmatch(line):
        state.groups, state.ranks = int(match[1]), int(match[2])
    elif match := MODE.fullmatch(line):
        state.mode = match[1].lower()
    elif match := WINDOW.fullmatch(line):
        state.window = int(match[1])
    elif state.name is None:
        preface(state, line)


def forget(state: Reading) -> None:
    """What stood above a table holds for that one alone."""
    state.name, state.ranks, state.mode = None, None, None
    state.groups, state.threads, state.window, state.multi = 1, None, None, False


def preface(state: Reading, line: str) -> None:
    """A line between a banner and the first table."""
    run = state.run
    if COMMAND.fullmatch(line):
        state.stage, run.words, run.command = "command", [], None
    elif match := SMALLEST.fullmatch(line):
        state.smallest = int(match[1])
        end_command(state)
    elif (match := LARGEST.fullmatch(line)) and state.smallest is not None:
        run.sizes = range(state.smallest, int(match[1]) + 1)
    elif CHOSEN.fullmatch(line):
        run.chosen = True
        end_command(state)
    elif line.startswith("# List of Benchmarks to run:"):
        end_command(state)
        state.stage = "list"
    elif state.stage == "command":
        run.words += line[1:].split()
    elif match := FACT.fullmatch(line.rstrip()):
        run.said.setdefault(match[1], match[2])
    elif state.stage == "list" and (match := LISTED.fullmatch(line)):
        run.listed.add(match[1])


def end_command(state: Reading) -> None:
    """What follows the command line has come: all of it was read."""
    if state.stage == "command" and state.run.words:
        state.run.command = options(state.run.words)
        state.run.said["command"] = " ".join(state.run.words)
    state.stage = ""


def start_table(state: Reading, line: str, columns: tuple[str, ...], index: int) -> None:
    """A header: rows follow, unless it is not known of what."""
    run, name, ranks = state.run, state.name, state.ranks
    state.table, reason = None, None
    if name is None:
        reason = "no benchmark is named above this table"
    elif run.listed and name not in run.listed:
        reason = f"the list of benchmarks to run has no {name}"
    elif not ranks or state.multi is not (state.groups > 1):
        reason = f"no number of processes is said of this table of {name}"
    elif name.lower() in MODES and state.mode is None:
        reason = f"no mode, aggregate or not, is said of this table of {name}"
    if reason or name is None or not ranks:
        state.notes.add(index, f"{reason}; it is left out")
        forget(state)
        return
    if run.part is None and {"latency_us", "messages_per_s"} <= set(columns) and "MT" not in name:
        run = replace(run, part="IMB-P2P")  # no other part prints both
    section = Section(name, ranks, state.groups, state.mode, state.threads, state.window)
    shared = describe(run, section)
    ends = word_ends(line)
    state.table = ImbTable(
        columns,
        ends if "  " in line else None,
        shared,
        name.lower(),
        ranks,
        size_factor(run, shared["benchmark"], ranks),
        run.sizes,
        any_order=run.chosen or name.endswith("MT"),
    )
    forget(state)


def take(state: Reading, table: ImbTable, line: str, index: int) -> None:
    """A line below a header that begins like a row."""
    torn = index == state.source.torn
    cells = line.split()
    if len(cells) != len(table.columns) or not all(
        re.fullmatch(r"\d{1,12}" if name in WHOLE else r"\d{1,15}\.\d\d", cell)
        for name, cell in zip(table.columns, cells, strict=True)
    ):
        state.notes.add(index, "not a whole row, left out")
        return
    if table.ends is None and torn:
        state.notes.add(index, "the file ends in this row, left out")
        return
    if table.ends is not None and word_ends(line) != table.ends:
        state.notes.add(index, "numbers that are not below their headings, left out")
        return
    row = dict(zip(table.columns, cells, strict=True))
    reason = contradiction(row, table) or out_of_place(row, table)
    if reason:
        state.notes.add(index, f"{reason}, left out")
        return
    state.begun = None
    state.found.rows.append(table.shared | values_of(row, table) | {"line": index + 1})


def values_of(row: dict[str, str], table: ImbTable) -> dict[str, Any]:
    """A row's columns in our words and units."""
    values: dict[str, Any] = {"iterations": int(row["iterations"])}
    if "bytes" in row:
        values["bytes"] = int(row["bytes"]) * table.factor
    for name, cell in row.items():
        if name.endswith(("_us", "_percent")):
            values[name] = float(cell)
    if "messages_per_s" in row:
        values["messages_per_s"] = float(row["messages_per_s"])
        if "latency_us" not in row:
            values["bandwidth_MBps"] = decimal_megabytes(row)
    if "defects" in row:
        values["validation"] = "Pass" if float(row["defects"]) == 0 else "Fail"
    if "group" in row and "multi" in table.shared["benchmark"]:
        values["part"] = f"{table.shared['part']}, group {row['group']}"
    return values


READER = ImbReader()
