"""The tables of nccl-tests, and of rccl-tests, which prints the same ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from omb_py.results.readers import ROWS_AT_ONCE, Found, Source
from omb_py.results.readers.formats.fixed_width import Notes, lines_of, word_ends
from omb_py.results.readers.formats.nccl import (
    BLOCKING,
    LIBRARY,
    MENTION,
    RANK,
    RCCL_VERSION,
    SETTING,
    SETTINGS,
    STARTING,
    VERSION,
    NcclTable,
    Run,
    contradiction,
    describe,
    factor_of,
    fresh,
    in_columns,
    program_of_file,
    program_told,
    ranks_fit,
    ranks_told,
    row_of,
    values_of,
)

HEADER = re.compile(
    r"#\s+size\s+count\s+type(?P<redop>\s+redop)?(?P<root>\s+root)?"
    r"(?P<half>\s+(?P<time>time|cputime)\s+algbw\s+busbw\s+(?P<wrong>#wrong|error)"
    r"(?P<each>\s+i_min\s+i_max\s+i_p99\s+i_cv%)?)"
    r"\s+(?P=time)\s+algbw\s+busbw\s+(?P=wrong)(?:\s+i_min\s+i_max\s+i_p99\s+i_cv%)?"
    r"(?P<stamp>\s+timestamp)?\s*"
)
LOOKS_LIKE_A_ROW = re.compile(r"\s*\d+\s+\d+\s+[a-z]")
END = re.compile(r"# (?:Out of bounds values|Avg bus bandwidth|Collective test concluded)\b")


@dataclass
class Reading:
    """Where the reader stands; ``mentions`` are programs named since the last table."""

    found: Found
    source: Source
    notes: Notes
    run: Run
    mentions: set[str] = field(default_factory=set)
    used: bool = False
    table: NcclTable | None = None


class NcclTestsReader:
    """Every table below a header with times and two bandwidths, out of place and in place."""

    name = "nccl-tests"
    marks = (b" algbw", b"\talgbw")

    def read(self, source: Source) -> Iterator[Found]:
        found = Found()
        notes = Notes(source, found.problems)
        state = Reading(found, source, notes, Run(f"{source.path}:1"))
        for index, line in lines_of(source):
            if len(found.rows) >= ROWS_AT_ONCE:
                yield found.take_rows()
            if "algbw" in line and (header := HEADER.fullmatch(line)):
                start_table(state, header, line, index)
            elif state.table is not None and LOOKS_LIKE_A_ROW.match(line):
                take(state, state.table, line, index)
            elif "#" in line or "_perf" in line or "ccl" in line or "CCL" in line:
                say(state, line, index)
        finish_table(state)
        notes.finish()
        yield found


def say(state: Reading, line: str, index: int) -> None:
    """A line that is neither header nor row: what it tells of the run, if anything."""
    if END.match(line):
        finish_table(state)
    elif match := VERSION.fullmatch(line):
        start_run(state, index)
        state.run.suite = f"{match['who']}ccl-tests {match['version']}"
        for word in (match["rest"] or "").split():
            name, _, value = word.partition("=")
            state.run.said[name] = value
    elif match := STARTING.fullmatch(line):
        if state.used or state.run.program or state.run.settings:
            start_run(state, index)
        known = MENTION.search(match["program"])
        state.run.program = known[1] if known else None
        state.run.unknown = None if known else match["program"]
    elif match := SETTINGS.fullmatch(line):
        if state.used or state.run.settings:
            start_run(state, index)
        state.run.settings = {"largest": int(match["largest"])}
        state.run.devices = max(1, int(match["threads"]) * int(match["gpus"]))
        for name, pattern in SETTING.items():
            if value := pattern.search(match["rest"]):
                state.run.settings[name] = int(value[1])
    elif match := RANK.fullmatch(line):
        if state.used:
            start_run(state, index)
        group = int(match["group"] or 0)
        if (group, int(match["rank"])) not in state.run.ranks:
            state.run.ranks[group, int(match["rank"])] = match["host"]
        state.run.said["device"] = match["device"]
    elif match := BLOCKING.fullmatch(line):
        state.run.blocking = match[1]
    elif match := RCCL_VERSION.fullmatch(line):
        state.run.suite = f"rccl-tests {match[1]}"
    elif match := LIBRARY.fullmatch(line):
        state.run.said["library"] = match[1]
    elif mentioned := MENTION.findall(line):
        state.mentions |= set(mentioned)


def start_run(state: Reading, index: int) -> None:
    """Another program begins to speak."""
    finish_table(state)
    state.run = fresh(state.run, f"{state.source.path}:{index + 1}")
    state.used = False


def start_table(state: Reading, header: re.Match[str], line: str, index: int) -> None:
    """A header: rows follow."""
    finish_table(state)
    run = state.run
    state.used = True
    if header["time"] == "cputime":
        text = "the processor's time (-C) stands for the time; the table is left out"
        state.notes.add(index, text)
        return
    if run.unknown:
        state.notes.add(index, f"{run.unknown} is no program that is known; left out")
        return
    program = run.program
    if program is None and len(state.mentions) == 1:
        program = next(iter(state.mentions))
    if program is None and not state.mentions:
        program = program_of_file(PurePath(state.source.path).name)
    state.mentions = set()
    state.table = NcclTable(
        index,
        header["redop"] is not None,
        header["root"] is not None,
        header["each"] is not None,
        header["stamp"] is not None,
        header["wrong"] == "error",
        word_ends(line)[1:] if "  " in line.strip("# ") else (),
        frozenset(word.end() for word in re.finditer(header["wrong"], line)),
        run,
        program,
    )


def take(state: Reading, table: NcclTable, line: str, index: int) -> None:
    """A line that begins like a row."""
    torn = index == state.source.torn
    row = row_of(table, line, index)
    if row is None:
        state.notes.add(index, "not a whole row, left out")
    elif table.ends and not in_columns(table, line):
        state.notes.add(index, "numbers that are not below their headings, left out")
    elif torn and not (table.ends and word_ends(line)[-1] >= table.ends[-1]):
        state.notes.add(index, "the file may end within this row, left out")
    elif row.nbytes == 0:
        state.notes.add(index, "a size of no bytes, for fewer elements than ranks, left out")
    else:
        key = (row.dtype, row.redop, row.root)
        if row.nbytes <= table.last.get(key, 0):
            text = f"size {row.nbytes} after {table.last[key]}: rows of two tables? left out"
            state.notes.add(index, text)
        elif not table.run.settings.get("largest", row.nbytes) >= row.nbytes:
            state.notes.add(index, f"size {row.nbytes}, which was not requested, left out")
        else:
            table.last[key] = row.nbytes
            table.rows.append(row)


def finish_table(state: Reading) -> None:
    """The end of a table: now it is known of what, or it is not."""
    table, state.table = state.table, None
    if table is None or not table.rows:
        return
    ranks = table.run.size or ranks_told(table)
    program = table.program or program_told(table, ranks)
    if program is None:
        text = "neither this file nor its bandwidths tell which program printed this table"
        state.notes.add(table.index, f"{text}; it is left out")
        return
    if ranks and not ranks_fit(table, program, ranks):
        text = f"bandwidths that are not those of {program} on {ranks} ranks; the table is left out"
        state.notes.add(table.index, text)
        return
    factor = factor_of(table, program, ranks)
    shared = describe(table.run, program)
    if ranks:
        shared["ranks"] = ranks
    state.found.runs[table.run.name] = table.run.said
    for row in table.rows:
        reason = contradiction(row, program, ranks)
        if reason:
            state.notes.add(row.index, f"{reason}, left out")
            continue
        halves = [values_of(row, half, program, factor, table.errors) for half in row.halves]
        whole = [values for values in halves if values is not None]
        if len(whole) < len(halves):
            state.notes.add(row.index, "bandwidths that do not fit size and time, left out")
            continue
        for in_place, values in zip((False, True), whole, strict=True):
            place = {"in_place": in_place, "line": row.index + 1}
            state.found.rows.append(join(shared, values) | place)


def join(shared: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """A row's columns; what is unusual of it beside what is of all."""
    parts = [text for text in (shared.get("part"), values.pop("part", None)) if text]
    return shared | values | ({"part": ", ".join(parts)} if parts else {})


READER = NcclTestsReader()
