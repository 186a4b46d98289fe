"""The text output of native OMB (versions 4 to 8), of the original OMB-Py, and our own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from omb_py.core.mpi.startup_timer import INIT, SESSION
from omb_py.results.readers import ROWS_AT_ONCE, Found, Source
from omb_py.results.readers.formats.fixed_width import LeftOut, Notes, lines_of
from omb_py.results.readers.formats.omb import (
    DEMO_TITLES,
    OLD_SYNCHRONIZATIONS,
    TAILS_AS_SAMPLES,
    VARIED_SIZE_WIDTH,
    VARIED_WIDTH,
    Column,
    benchmark_of,
    cells_of,
    columns_of,
    detail_of,
    failure_part_of_line,
    fits,
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
    r"# (?P<who>OSU|OMB Python|OMB-Py) (?P<old>(?:MPI )?One Sided )?(?P<api>MPI|NCCL|RCCL)"
    r"(?:-(?P<device>[A-Z]+))?(?P<title>[ _].*?) Test(?: v(?P<version>\d[\w.]*))?"
    r"(?: \(omb-py (?P<ours>[^:()]+): (?P<how>.*)\))?\s*$"
)
DEMO = re.compile(r"# MPI (?P<title>[A-Z][\w -]*) Test\s*$")
"""The title of mpi4py's demo programs, which are of an early native OMB."""

NEARLY = re.compile(
    r"(?P<before>.*?)(?P<hash># ?)?(?:OSU|OMB Python|OMB-Py) (?:One Sided )?(?:MPI|NCCL|RCCL)[-_ ]"
)
"""What is no title but was one, or stands behind something."""

TOPOLOGY = re.compile(r"Time took to create topology graph:(\d{1,12}\.\d\d) us\.")
PART = re.compile(r"# (?P<part>[a-z ]+): (\S+) us \(of the ranks (\S+) to (\S+)\)")
TELLING = ("#", "osu_", "Time took", "OSU ")
"""What lines have in them that matter outside a table."""

MESSAGE = re.compile(r"osu_\w+: \S")
"""What a program itself says, between its rows."""

HASHES = re.compile(r"^#[# ]*(?=# )")
HEADINGS_BEGIN = ("# Size", "# Avg Latency", "# Overall(us)", "# Latency (us)")
LONGEST_TITLE = 60
DEMO_SUITE = "mpi4py demo"

LOOKS_LIKE_A_ROW = re.compile(r"\d+(?:\s+(?:[-\d.]|nan|inf)|\s*$)")
LOST_ROW = re.compile(r"\s*(?:\d+\s+)?\d+\.\d\d(?:\s|$)")
"""A row of which it is not known what it is of."""

LOOKS_LIKE_A_PART = re.compile(r"\S+(?: \S+)?\s+(?:\d+\s+\d+\s+)?\d+\.\d*\s")
SIZE = re.compile(r"0|[1-9]\d{0,17}")
FULL = columns_of("# Avg Latency(us) Min Latency(us) Max Latency(us) Iterations") or ()
FULL_WIDTHS = (18, 18, 12)
"""Columns of ``-f`` that some headings of 7.3 lack, and how wide they are."""

NARROW = (10,)
"""The width of native OMB's only value column in latency_mp, whose heading has 18."""

VARIED = re.compile(r"#(?:\s+\d{1,9}){2,}\s*")


@dataclass
class Reading:
    """Where the reader stands: what it knows of the table that it is in.

    ``place`` is the line, None at the end. ``began`` is where the table began, ``noted`` how many
    problems there were, ``counted`` its rows; ``headings`` are what was known of it at each
    heading. ``lost`` are rows of no known benchmark.
    """

    found: Found
    source: Source
    notes: Notes
    program: str | None
    said: dict[str, Any] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)
    graph_us: float | None = None
    table: dict[str, Any] | None = None
    title: str = ""
    began: int = 0
    noted: int = 0
    counted: int = 0
    place: int | None = None
    heading: int | None = None
    headings: list[dict[str, Any]] = field(default_factory=list)
    lost: LeftOut | None = None
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
    marks = (
        *(b"OSU MPI", b"OSU One Sided", b"OSU NCCL", b"OSU RCCL"),
        *(b"# OMB Python MPI", b"# OMB-Py MPI", b"# Size [B]"),
    )

    def read(self, source: Source) -> Iterator[Found]:
        found = Found()
        notes = Notes(source, found.problems)
        state = Reading(found, source, notes, program_in(PurePath(source.path).name))
        for index, line in lines_of(source):
            state.place = index
            if len(found.rows) >= ROWS_AT_ONCE:
                yield found.take_rows()
            if not (state.table or state.lost or any(word in line for word in TELLING)):
                continue
            text = line.lstrip()
            if text.startswith("#"):
                text = HASHES.sub("", text)
            if begins(state, text, index):
                continue
            mentions = "osu_" in text and program_in(text) and not MESSAGE.match(text)
            if state.table is None or mentions:
                look_ahead(state, text, index)
            elif not detail(state, text, line, index):
                row(state, line, index)
        state.place = None
        finish_table(state)
        notes.finish()
        yield found


def begins(state: Reading, text: str, index: int) -> bool:
    """Whether a line is a title, or was one before it was damaged: another table begins."""
    if "OSU " not in text and "OMB" not in text and not text.startswith("# MPI "):
        return False
    match = BANNER.match(text) or DEMO.match(text)
    if match is not None:
        if index != state.source.torn:
            start_table(state, match, index)
        return index != state.source.torn
    nearly = NEARLY.match(text)
    if nearly is None or (nearly["before"] and not nearly["hash"]) or index == state.source.torn:
        return False
    if not nearly["before"] and not nearly["hash"] and " Test" not in text:
        return False
    finish_table(state)
    if nearly["before"]:
        title = text[nearly.end("before") :][:LONGEST_TITLE]
        reason = f"{title!r} stands behind {nearly['before']!r}, which is not known as a label"
        state.notes.add(index, f"{reason}; its table is left out")
    else:
        lose(state, index, f"a title that is damaged: {text[:LONGEST_TITLE]!r}")
    return True


def lose(state: Reading, index: int, reason: str) -> None:
    """Until the next title nothing is known to be of a benchmark, for a reason."""
    finish_table(state, quietly=True)
    state.lost = LeftOut(state.notes, index, reason)


def look_ahead(state: Reading, line: str, index: int) -> None:
    """Outside a table: what a command line, or what stands before a banner, tells of the next."""
    if (program := program_in(line)) is not None:
        finish_table(state)
        state.program, state.said = program, options_of_command(line)
        state.before = {}
        state.lost = LeftOut(state.notes, index, f"osu_{program} is named, and no title follows")
    elif state.lost is not None and LOST_ROW.match(line):
        state.lost.lines.append(index)
    elif state.lost is None and columns_of(line):
        lose(state, index, "no title of a benchmark is above this heading")
    elif match := TOPOLOGY.match(line):
        state.graph_us = float(match[1])
    else:
        detail_of(line, state.before)


def start_table(state: Reading, match: re.Match[str], index: int) -> None:
    """A banner: what it says, and what was said before it."""
    finish_table(state)
    said = match.groupdict()
    title = said["title"].strip()
    run = f"{state.source.path}:{index + 1}"
    table: dict[str, Any] = {"run": run, "suite": suite(said), "binding": "C"}
    table |= state.said | state.before
    if "who" not in said:
        name = DEMO_TITLES.get(title.lower()) or f"mpi4py_{benchmark_of(title, None, False)}"
    else:
        name = benchmark_of(title, state.program, state.graph_us is not None)
    if said.get("who") != "OSU" or said["ours"]:
        table["binding"] = None
    if said.get("api", "MPI") != "MPI":
        table["binding"] = "nccl"
    if said.get("device"):
        table |= {"buffer": said["device"].lower()}
    if said.get("old"):
        table["window_kind"] = "create"
        for words, sync in OLD_SYNCHRONIZATIONS.items():
            if words in title.lower():
                table["window_sync"] = sync
    table |= {"benchmark": name} | options_of_banner(said.get("how") or "")
    name = table["benchmark"]
    if name in pairs_only():
        table["ranks"] = 2
    if name == "init":
        table["part"] = SESSION if "session" in (said["how"] or "").split(", ") else INIT
    state.table, state.columns, state.windows, state.before = table, (), (), {}
    state.title, state.began, state.noted, state.counted = title, index, state.notes.count, 0
    state.heading, state.headings, state.widths = None, [], None
    state.rates, state.sized, state.last = False, True, -1
    if state.graph_us is not None:
        add(state, index, part="topology creation", latency_us=state.graph_us)
        state.graph_us = None


def suite(said: Mapping[str, str | None]) -> str:
    """Who measured."""
    if "who" not in said:
        return DEMO_SUITE
    if said["ours"]:
        return f"omb-py {said['ours']}"
    name = "OSU" if said["who"] == "OSU" else "OMB-Py"
    return f"{name} {said['version']}" if said["version"] else name


def finish_table(state: Reading, quietly: bool = False) -> None:
    """The end of a table, or of the file: its rows are as whole as they will be."""
    if state.lost is not None:
        state.lost.finish()
        state.lost = None
    state.found.rows.extend(state.rows)
    silent = not (quietly or state.counted) and state.notes.count == state.noted
    if state.table is not None and silent and state.table["suite"] != DEMO_SUITE:
        begun = state.began if state.heading is None else state.heading
        what = f"{program_of(state.table)} of {state.table['suite']}"
        version = (
            state.heading is None and "mpi_type" not in state.table
        )  # option -v prints a title
        state.notes.ended(begun, what, state.place, state.place is None or not version)
    state.rows = []
    state.table = None


def detail(state: Reading, text: str, line: str, index: int) -> bool:
    """Whether a line of a table says something of it, rather than being a row."""
    assert state.table is not None
    if not text.startswith(("#", "Overall(us)")):
        return False
    if text.startswith(("# Uni-directional", "# Message Rate Profile")):
        state.rates, state.last = text.startswith("# Message"), -1
    elif detail_of(text, state.table):
        state.last = -1
    elif VARIED.fullmatch(text):
        state.windows, state.columns, state.last = tuple(map(int, text[1:].split())), (), -1
    elif match := PART.match(text):
        names = ("latency_us", "latency_min_us", "latency_max_us")
        numbers = [number(cell) for cell in match.groups()[1:]]
        if None not in numbers:
            add(state, index, part=match["part"], **dict(zip(names, numbers, strict=True)))
    else:
        heading = text if text.startswith("#") else line
        columns = columns_of(heading)
        if columns or text.startswith(HEADINGS_BEGIN):
            start_rows(state, heading, columns, index)
    return True


def start_rows(
    state: Reading, heading: str, columns: tuple[Column, ...] | None, index: int
) -> None:
    """A heading: rows follow, unless they cannot be of the benchmark above it."""
    assert state.table is not None
    words = repr(heading.strip()[:LONGEST_TITLE])
    if not columns:
        lose(state, index, f"headings that are not known: {words}")
    elif not fits(state.title, columns):
        name = program_of(state.table)
        lose(state, index, f"headings that are not those of {name}: {words}")
    elif state.counted and state.table in state.headings:
        reason = f"a second heading below one title, that of line {state.began + 1}"
        lose(state, index, f"{reason}: another benchmark's, whose title is missing")
    else:
        if state.lost is not None:
            state.lost.finish()
            state.lost = None
        state.headings.append(dict(state.table))
        state.heading = index
        state.columns, state.windows = columns, ()
        state.sized, state.last, state.widths = is_sized(heading), -1, widths_of(heading)


def program_of(table: Mapping[str, Any]) -> str:
    """What people call the program of a table."""
    native = str(table["suite"]).startswith("OSU")
    return f"osu_{table['benchmark']}" if native else str(table["benchmark"])


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
        if part := parts(line.strip()):
            add(state, index, **part)
        elif LOOKS_LIKE_A_PART.match(line.lstrip()):
            state.notes.add(index, "not a whole row, left out")
        return
    if not state.columns and not state.windows:
        if LOST_ROW.match(line):
            reason = f"no heading is above these rows of {program_of(state.table)}"
            state.lost = state.lost or LeftOut(state.notes, index, reason)
            state.lost.lines.append(index)
        return
    cells = line.split()
    if state.sized and not LOOKS_LIKE_A_ROW.match(line.lstrip()):
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
    """Whether a row's cells stand below their headings, however far the whole row is indented:
    one that lost a digit does not."""
    assert state.table is not None
    if state.windows:
        size = cells[0].ljust(VARIED_SIZE_WIDTH)
        forms = [size + "".join(f"  {c:>{VARIED_WIDTH}}" for c in cells[1:])]
    elif state.widths is None:
        return True
    else:
        forms = [laid_out(cells, widths) for widths in (state.widths, narrowed(state))]
        if state.table["benchmark"] == "latency_mp":
            forms.append(laid_out(cells, (state.widths[0], *NARROW)))
        if state.table["suite"] == DEMO_SUITE:  # whose older versions set sizes at the right
            forms.append(cells[0] + laid_out(cells[1:], (0, *state.widths[1:])))
    line = line.rstrip()
    return any(line.endswith(form) and not line.removesuffix(form).strip() for form in forms)


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
    if len(cells) == len(columns) + 3 and columns == FULL[:1] and is_full(cells) and state.widths:
        columns = state.columns = FULL
        state.widths += FULL_WIDTHS
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


def is_full(cells: list[str]) -> bool:
    """Whether cells are a mean, a minimum, a maximum and a number of iterations."""
    if not cells_of(FULL).fullmatch(" ".join(cells)):
        return False
    mean, low, high = map(float, cells[:3])
    return low <= mean <= high


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
    state.counted += 1
    state.rows.append(state.table | values | {"line": index + 1})


READER = OmbTextReader()
