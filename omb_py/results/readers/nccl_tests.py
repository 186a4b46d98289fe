"""The tables of nccl-tests, and of rccl-tests, which prints the same ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

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
    Layout,
    NcclTable,
    Run,
    fresh,
    in_columns,
    measurements,
    program_of,
    program_of_file,
    row_of,
)

HEADER = re.compile(
    r"\s*#\s+size\s+count\s+type(?P<redop>\s+redop)?(?P<root>\s+root)?"
    r"(?P<half>\s+(?P<time>time|cputime)\s+algbw\s+busbw\s+(?P<wrong>#wrong|error)"
    r"(?P<bits>\s+#bitdiff)?(?P<each>\s+i_min\s+i_max\s+i_p99\s+i_cv%)?)"
    r"\s+(?P=time)\s+algbw\s+busbw\s+(?P=wrong)(?:\s+#bitdiff)?(?:\s+i_min\s+i_max\s+i_p99\s+i_cv%)?"
    r"(?P<stamp>\s+timestamp)?\s*"
)
LOOKS_LIKE_A_ROW = re.compile(r"\s*\d+\s+\d+\s+[a-z]")
END = re.compile(r"# (?:Out of bounds values|Avg bus bandwidth|Collective test concluded)\b")


@dataclass
class Reading:
    """Where the reader stands; ``mentions`` are programs named since the last table.

    ``begun`` is the last comment of a program that has printed no row yet, ``noted`` how many
    problems there were.
    """

    found: Found
    source: Source
    notes: Notes
    run: Run
    mentions: set[str] = field(default_factory=set)
    used: bool = False
    begun: int | None = None
    noted: int = 0
    table: NcclTable | None = None
    layout: Layout | None = None


class NcclTestsReader:
    """Every table below a header with times and two bandwidths, out of place and in place."""

    name = "nccl-tests"
    marks = (b" algbw", b"\talgbw", b"# nThread ")

    def read(self, source: Source) -> Iterator[Found]:
        found = Found()
        notes = Notes(source, found.problems)
        state = Reading(found, source, notes, Run(f"{source.path}:1"))
        for index, line in lines_of(source):
            if len(found.rows) >= ROWS_AT_ONCE:
                yield found.take_rows()
            if state.begun is not None and "#" in line:
                state.begun = index
            if "algbw" in line and (header := HEADER.fullmatch(line)):
                start_table(state, header, line, index)
            elif state.table and state.layout and LOOKS_LIKE_A_ROW.match(line):
                take(state, state.table, state.layout, line, index)
            elif "#" in line or "_perf" in line or "ccl" in line or "CCL" in line:
                say(state, line.lstrip(), index)
        start_run(state, None)
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
        state.begun, state.noted = index, state.notes.count
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


def start_run(state: Reading, index: int | None) -> None:
    """Another program begins to speak, or the file ends; the one before printed something."""
    program = state.table.program if state.table else state.run.program
    finish_table(state)
    if state.begun is not None and state.notes.count == state.noted:
        program = program or next(iter(state.mentions), None)
        name = f"{program}_perf" if program else "a program"
        state.notes.ended(state.begun, f"{name} of {state.run.suite or 'nccl-tests'}", index)
    state.begun = None
    state.run = fresh(state.run, f"{state.source.path}:{(index or 0) + 1}")
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
    program = program or program_of(state.source.benchmark)
    if program is None and not state.mentions:
        program = program_of_file(PurePath(state.source.path).name)
    state.mentions = set()
    state.table = NcclTable(index, run, program, errors=header["wrong"] == "error")
    state.layout = Layout(
        redop=header["redop"] is not None,
        root=header["root"] is not None,
        bits=header["bits"] is not None,
        each=header["each"] is not None,
        stamp=header["stamp"] is not None,
        ends=word_ends(line)[1:] if "  " in line.strip("# ") else (),
        longer=frozenset(word.end() for word in re.finditer(header["wrong"], line)),
    )


def take(state: Reading, table: NcclTable, layout: Layout, line: str, index: int) -> None:
    """A line that begins like a row."""
    torn = index == state.source.torn
    row = row_of(layout, line, index)
    if row is None:
        state.notes.add(index, "not a whole row, left out")
    elif layout.ends and not in_columns(layout, line):
        state.notes.add(index, "numbers that are not below their headings, left out")
    elif torn and not (layout.ends and word_ends(line)[-1] >= layout.ends[-1]):
        state.notes.add(index, "the file may end within this row, left out")
    else:
        state.begun = None
        table.add(row, state.notes)


def finish_table(state: Reading) -> None:
    """The end of a table: now it is known of what, or it is not."""
    table, state.table = state.table, None
    if table is not None and (rows := list(measurements(table, state.notes))):
        state.found.runs[table.run.name] = table.run.said
        state.found.rows.extend(rows)


READER = NcclTestsReader()
