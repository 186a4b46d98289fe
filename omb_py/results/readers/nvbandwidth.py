"""nvbandwidth's matrices of copies between host and devices, from its text and its JSON (``-j``).

They are no messages: benchmarks are called ``nvbandwidth_`` and the testcase, and a row is a cell
of a matrix. How many bytes are copied it does not print. A matrix counts if its sum fits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from omb_py.results.readers import ROWS_AT_ONCE, Found, Source
from omb_py.results.readers.formats.documents import Lines, TornError, value_at
from omb_py.results.readers.formats.fixed_width import Notes, lines_of, word_ends

VERSION = re.compile(r"nvbandwidth Version: v?(\S+)\s*")
DETAILS = {
    "cuda": re.compile(r"CUDA Runtime Version: (\S.*?)\s*"),
    "driver": re.compile(r"Driver Version: (\S+)\s*"),
    "library": re.compile(r"MPI version: ([^,]*\S)(?:,.*|\s*)"),
    "device": re.compile(r"Device \d+: (\S.*?)(?: \([0-9a-f:]+\))?\s*"),
}
PROCESS = re.compile(r"Process\s+\d+ \((?P<host>[^)]+)\): device \d+: (?P<device>\S.*?)\s*")
RUNNING = re.compile(r"Running (?P<key>[a-z0-9_]+)\.\s*")
DESCRIPTION = re.compile(r"\S.*(?:\((?:GB/s|ns)\)|\bBW)\s*")
SUM = re.compile(r"SUM (?P<key>[a-z0-9_]+) (?P<sum>\d{1,15}\.\d\d)\s*")
PAIR = re.compile(r"(\d{1,4})->(\d{1,4})")
CELL = re.compile(r"N/A|\d{1,9}\.\d\d")
FAILED = re.compile(r"(?:ERROR|Error|Not Found): .*")

COLUMN = 10
"""Characters of a column; the first one, of the rows' names, is as wide as they need."""

DOCUMENT = re.compile(r'\{\s*"nvbandwidth"\s*:')
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]\d\d)?")
DIGITS = 5e-6
"""How far a number of JSON may be from what it was before its six digits were printed."""

DIRECTION = re.compile(
    r"(?<!\w)((?:CPU|GPU)\((?:row|column)\)|All(?: Gpus)?)"
    r" (<->|<-|->) (GPU\(column\)|All Gpus)(?= )"
)
WORDS = {"->": "to", "<-": "from", "<->": "and"}
LOCAL = re.compile(r"(?<!\w)local GPU\(column\)(?= )")
SUFFIXES = frozenset(("", "_read1", "_read2", "_write1", "_write2", "_total"))
BIDIRECTIONAL = re.compile(r"\w*bidirectional_memcpy_(read|write)_\w+")
"""Testcases with three matrices: of each direction, and of both together."""

PLACEMENTS = (
    (("host_to_device", "host_to_all"), "H D"),
    (("device_to_host", "all_to_host"), "D H"),
    (("device_to_device", "all_to_one", "one_to_all", "device_local", "multinode"), "D D"),
)


@dataclass(frozen=True)
class Matrix:
    """One matrix of a testcase: its cells by row, None where there is none, and their names.

    ``lines`` are the indices of the rows' lines.
    """

    lines: Sequence[int]
    key: str
    description: str
    rows: Sequence[Sequence[float | None]]
    row_names: Sequence[str]
    column_names: Sequence[str]


@dataclass
class Machine:
    """What stands above the matrices."""

    run: str
    suite: str = "nvbandwidth"
    said: dict[str, str] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)


def rows_of(matrix: Matrix, machine: Machine) -> Iterator[dict[str, Any]]:
    """A row for each cell that has a number."""
    shared: dict[str, Any] = {
        "run": machine.run,
        "suite": machine.suite,
        "benchmark": f"nvbandwidth_{matrix.key}",
        "binding": "C",
        "buffer": "cuda",
    }
    if "library" in machine.said:
        shared["mpi"] = re.sub(r" v(?=\d)", " ", machine.said["library"])
    if not matrix.key.startswith("multinode"):
        shared |= {"ranks": 1, "hosts": 1}
    elif machine.hosts:
        shared |= {"ranks": len(machine.hosts), "hosts": len(set(machine.hosts))}
    for beginnings, placement in PLACEMENTS:
        if matrix.key.startswith(beginnings):
            shared["placement"] = placement
    in_time = matrix.description.rstrip().endswith("(ns)")
    name, scale = ("latency_us", 1e-3) if in_time else ("bandwidth_MBps", 1e3)
    for row, index, cells in zip(matrix.row_names, matrix.lines, matrix.rows, strict=True):
        for column, cell in zip(matrix.column_names, cells, strict=True):
            if cell is not None:
                place = {"part": part_of(matrix, row, column), "line": index + 1}
                yield shared | {name: round(cell * scale, 9)} | place


def part_of(matrix: Matrix, row: str, column: str) -> str:
    """Between what a cell's copy was, its arrow in a word."""
    if pair := PAIR.fullmatch(row):
        return f"GPU {pair[1]} to GPU {pair[2]}"
    if not row.isdecimal():
        return row
    if LOCAL.search(matrix.description):
        return f"GPU {column}"
    direction = DIRECTION.search(matrix.description)
    both = "bidirectional" in matrix.key or "latency" in matrix.key
    if direction is None or (direction[2] == "<->") is not both:
        return f"row {row}, column {column}"
    text = f"{direction[1]} {WORDS[direction[2]]} {direction[3]}".replace("Gpus", "GPUs")
    if "device_to_device" in matrix.key:
        text = text.replace("CPU(row)", "GPU(row)")  # as some versions wrongly call it
    for name, number in (("row", row), ("column", column)):
        text = text.replace(f"GPU({name})", f"GPU {number}").replace(f"CPU({name})", "CPU")
    return text


class NvbandwidthReader:
    """Text and JSON, whichever is there."""

    name = "nvbandwidth"
    marks = (b"nvbandwidth Version: ", b'"nvbandwidth"', b" bandwidth (GB/s)", b"(column) (ns)")

    def read(self, source: Source) -> Iterator[Found]:
        found = Found()
        notes = Notes(source, found.problems)
        for machine, matrix in (*text_matrices(source, notes), *json_matrices(source, notes)):
            found.runs[machine.run] = machine.said
            found.rows.extend(rows_of(matrix, machine))
            if len(found.rows) >= ROWS_AT_ONCE:
                yield found.take_rows()
        notes.finish()
        yield found


@dataclass
class Table:
    """A matrix of text, as far as it is read."""

    index: int
    testcase: str
    description: str
    first: int = 0
    columns: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    rows: list[list[float | None]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


def text_matrices(source: Source, notes: Notes) -> Iterator[tuple[Machine, Matrix]]:
    """The whole matrices of a text."""
    machine = Machine(f"{source.path}:1")
    testcase = ""
    table: Table | None = None
    sums: list[tuple[Machine, Matrix]] = []
    alone = True
    for index, line in lines_of(source):
        if table is None and not line[0].isalpha():
            continue
        if line.startswith("nvb") and (match := VERSION.fullmatch(line)):
            leave(table, notes)
            table, testcase = None, ""
            machine = Machine(f"{source.path}:{index + 1}", f"nvbandwidth {match[1]}")
        elif line.startswith("Run") and (match := RUNNING.fullmatch(line)):
            leave(table, notes)
            table, testcase = None, match["key"]
        elif testcase and DESCRIPTION.fullmatch(line):
            alone = False
            leave(table, notes)
            table = Table(index, testcase, line.strip())
        elif line.startswith("SUM") and (match := SUM.fullmatch(line)):
            torn = index == source.torn
            if table is None and not torn:
                sums.append((machine, sum_alone(index, match["key"], float(match["sum"]))))
            elif table and not torn and (matrix := whole(table, match["key"], match["sum"])):
                yield machine, matrix
            else:
                leave(table, notes)
            table = None
        elif table is not None:
            take(table, line, index)
        elif testcase and FAILED.fullmatch(line):
            notes.add(index, f"{testcase}: {line.strip()}")
        elif not testcase and ": " in line:
            describe(machine, line)
    leave(table, notes)
    if alone:
        yield from sums


def sum_alone(index: int, key: str, number: float) -> Matrix:
    """A sum as a matrix, for texts of which somebody kept the sums only."""
    unit = "(ns)" if "latency" in key else "(GB/s)"
    return Matrix([index], key, unit, [[number]], ["sum"], ["sum"])


def describe(machine: Machine, line: str) -> None:
    """A line above all matrices."""
    if match := PROCESS.fullmatch(line):
        machine.hosts.append(match["host"])
        machine.said["device"] = match["device"]
    for name, pattern in DETAILS.items():
        if match := pattern.fullmatch(line):
            machine.said[name] = match[1]


def take(table: Table, line: str, index: int) -> None:
    """A line below a description: the columns' names, or a row; others do not count."""
    words, ends = line.split(), word_ends(line)
    if not words:
        return
    first = ends[0] - COLUMN
    if not table.columns:
        if first > 0 and line[:first].isspace() and is_below(ends, first):
            table.first, table.columns = first, words
        return
    cells = words[1:]
    if len(cells) != len(table.columns) or not all(CELL.fullmatch(cell) for cell in cells):
        return
    # once a name was as wide as it was, whatever the names of the columns above it
    if ends[0] in (table.first, len(words[0])) and is_below(ends[1:], ends[0]):
        table.names.append(words[0])
        table.lines.append(index)
        table.rows.append([None if cell == "N/A" else float(cell) for cell in cells])


def is_below(ends: Sequence[int], first: int) -> bool:
    """Whether words end where columns after one of ``first`` characters do."""
    return list(ends) == [first + COLUMN * place for place in range(1, len(ends) + 1)]


def whole(table: Table, key: str, printed_sum: str) -> Matrix | None:
    """A table as a matrix, if its sum is that of its cells."""
    numbers = [cell for row in table.rows for cell in row if cell is not None]
    rounded = 0.00501 * (len(numbers) + 1)
    if not numbers or abs(sum(numbers) - float(printed_sum)) > rounded:
        return None
    rows, columns = ([str(place) for place in range(len(n))] for n in (table.names, table.columns))
    paired = all(PAIR.fullmatch(name) for name in table.names)
    if table.columns != columns or not (paired or table.names == rows):
        return None
    suffix = key.removeprefix(table.testcase)
    if len(set(table.names)) < len(table.names) or suffix not in SUFFIXES:
        return None
    return Matrix(table.lines, key, table.description, table.rows, table.names, table.columns)


def leave(table: Table | None, notes: Notes) -> None:
    """Say that a matrix is left out."""
    if table is not None:
        text = "a matrix that is not whole, or whose sum does not fit, left out"
        notes.add(table.index, f"{table.testcase}: {text}")


def json_matrices(source: Source, notes: Notes) -> Iterator[tuple[Machine, Matrix]]:
    """The whole matrices of a document."""
    text = source.content.decode(errors="replace")
    lines = Lines(text)
    for match in DOCUMENT.finditer(text):
        index = lines.at(match.start())
        try:
            document, _ = value_at(text, match.start())
        except TornError:
            notes.add(index, "an incomplete document of nvbandwidth, left out")
            continue
        root = document["nvbandwidth"]
        if not isinstance(root, dict) or not isinstance(root.get("testcases"), list):
            notes.add(index, "a document of nvbandwidth without testcases")
            continue
        machine = Machine(f"{source.path}:{index + 1}")
        if isinstance(version := root.get("version"), str):
            machine.suite = f"nvbandwidth {version.removeprefix('v')}"
        for name, key in (("cuda", "CUDA Runtime Version"), ("driver", "Driver Version")):
            if key in root:
                machine.said[name] = str(root[key])
        if isinstance(devices := root.get("GPU Device list"), list) and devices:
            machine.said["device"] = re.sub(r"^\d+: | \(.*", "", str(devices[0]))
        for problem in (root.get("error"), root.get("warning")):
            if isinstance(problem, str):
                notes.add(index, problem)
        for testcase in root["testcases"]:
            for matrix in matrices_of(testcase, index, notes):
                yield machine, matrix


def matrices_of(testcase: Any, index: int, notes: Notes) -> list[Matrix]:
    """The matrices of one testcase; of a bidirectional one, three stand below each other."""
    testcase = testcase if isinstance(testcase, dict) else {}
    key, cells = testcase.get("name"), testcase.get("bandwidth_matrix")
    description = testcase.get("bandwidth_description", "")
    status = testcase.get("status")
    if not isinstance(key, str) or not isinstance(description, str):
        notes.add(index, "a testcase without a name, left out")
        return []
    if status != "Passed":
        if status != "Waived":
            notes.add(index, f"{key}: {testcase.get('error', status)}")
        return []
    rows = [numbers_of(row) for row in cells] if isinstance(cells, list) else []
    columns = len(rows[0] or ()) if rows else 0
    if columns and all(row is not None and len(row) == columns for row in rows):
        printed_sum = as_number(testcase.get("sum"))
        found = [row for row in rows if row is not None]
        if printed_sum is not None and fits(found, printed_sum):
            return [matrix_of(index, key, description, found)]
        size = len(found) // 3
        parts = [found[start : start + size] for start in range(0, len(found), size or 1)]
        both = BIDIRECTIONAL.fullmatch(key)
        if both and len(parts) == 3 and printed_sum is not None and fits(parts[2], printed_sum):
            suffixes = (f"{both[1]}1", f"{both[1]}2", "total")
            return [
                matrix_of(index, f"{key}_{suffix}", description, part)
                for suffix, part in zip(suffixes, parts, strict=True)
            ]
    notes.add(index, f"{key}: a matrix that is not whole, or whose sum does not fit, left out")
    return []


def matrix_of(
    index: int, key: str, description: str, rows: Sequence[Sequence[float | None]]
) -> Matrix:
    """A matrix whose rows and columns are numbered."""
    names = [str(place) for place in range(max(len(rows), len(rows[0])))]
    lines = [index] * len(rows)
    return Matrix(lines, key, description, rows, names[: len(rows)], names[: len(rows[0])])


def numbers_of(row: Any) -> list[float | None] | None:
    """A row of numbers, None for those that are not available; None when one is no number."""
    if not isinstance(row, list):
        return None
    numbers = [None if cell == "N/A" else as_number(cell) for cell in row]
    wrong = any(n is None and cell != "N/A" for n, cell in zip(numbers, row, strict=True))
    return None if wrong else numbers


def as_number(value: Any) -> float | None:
    """A positive number, which is text where it has decimals."""
    text = str(value)
    return float(text) if NUMBER.fullmatch(text) and len(text) < 30 else None


def fits(rows: Sequence[Sequence[float | None]], printed_sum: float) -> bool:
    """Whether cells have a sum; each was rounded to six digits."""
    numbers = [cell for row in rows for cell in row if cell is not None]
    total = sum(numbers)
    return bool(numbers) and abs(total - printed_sum) <= DIGITS * total


READER = NvbandwidthReader()
