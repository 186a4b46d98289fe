"""Readers of results of any suite, from the files that a job left on the disk.

A module of this folder (or an entry point of group ``omb_py.readers``) defines ``READER``, which
knows one format. A file may hold several tables of several formats, launchers' noise between their
lines, and a last line that a killed job tore: every reader looks through all of it, takes the rows
that are whole, and reports the lines that it left out. It never guesses a number.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from omb_py.core.errors import OmbError, needing
from omb_py.core.registry import Registry
from omb_py.core.text import files
from omb_py.core.text.words import count
from omb_py.results.columns import KINDS

USAGE = re.compile(
    rb"(?im)(?:^(?P<why>.*(?:invalid|illegal|unrecogni[sz]ed|requires|error).*)$\s+)?"
    rb"^[ \t]*Usage: (?:\S*/)?(?P<program>osu_\w+)\b"
)
"""Native OMB's output instead of results, and a line before it with the reason."""

TOO_FEW = re.compile(rb"This test requires (?:exactly|at least) two processes")
"""Native OMB's output on the wrong number of processes; only rank 0 prints it."""

STANDARD_INPUT = "-"

GZIP, ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
"""First bytes of files that are not text."""

COMPRESSED = (".gz", ".zst")
"""Suffixes that may follow a file's own."""

BLOCK = 1 << 20
"""Bytes of a file that are taken apart in one go."""

ROWS_AT_ONCE = 10_000
"""Rows that are handed on in one go: enough to be fast, few enough to need little memory."""

BEGINNING = 1 << 16
"""Bytes that are looked at to tell whether a file is of results."""

OF_OTHERS = {
    "applications' results in JSON are not read: write them as CSV": (b'", "application": "',),
    "nvbandwidth's output is not read, for it copies memory and sends no messages: "
    "pandas reads its JSON (option -j)": (b"nvbandwidth Version: ", b'"nvbandwidth"'),
    "Horovod's timeline, the files of NCCL's inspector and those of mpitrace are no results: "
    "omb-py profile show prints them": (
        *(b'"name": "NEGOTIATE_', b'"inspector_output_format_version"', b"Data for MPI rank "),
    ),
}
"""Known results of no messages, with the command to use instead, and their marks."""

NOT_READ = {
    **OF_OTHERS,
    "the output of mpi4py's demo programs is not read, for each times its own way: "
    "omb-py measures the same calls": (b"# Size [B] ",),
    "the CSV and JSON of rccl-tests' option -x are not read: "
    "give omb-py the text that rccl-tests prints": (
        *(b'"inPlace":', b"collective,ranks,rankspernode,", b"collective,gpus,size,"),
        *(b"collective, ranks, rankspernode,", b"collective, gpus, size,"),
    ),
}
"""Known results that omb-py does not read, with the command to use instead, and their marks."""

FAULT = re.compile(
    r"(?i)(?<![a-z])(?:error|fail|fatal|abort|killed|cancel|segmentation|terminat|no such)"
)
"""What is in a line that says why a run ended."""

MAX_PROBLEMS = 1000
"""Lines of a file that are named one by one when they cannot be used."""

LONGEST_LINE = 4096
"""Characters beyond which a line is no line of a table."""

LONGEST_REASON = 120

LAUNCHERS = ("-n", "-np", "--np", "--ntasks", "-ntasks")
"""Options of launchers for the number of processes."""

NUMBER = re.compile(r"\d{1,9}")

BLANKS = r"\s+"
LIKE = re.compile(r"\s*\d+(?:\.\d+)?(?:\s+(?:[-\d.]|nan|inf)|\s*$)")
"""Beginning of rows of numbers."""

TYPES: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "bool": bool, "str": str}
ABSENT = (None, "-")
TWICE = "two copies of a program print side by side, or two runs do"


@dataclass(frozen=True)
class Problem:
    """Something in a file that could not be used, and why; ``rows`` are how many it cost.

    It is in ``line``, or from there to the line ``end``. ``lost`` is false if it cannot have cost a
    result that was measured: no gate passes over another one.
    """

    path: str
    line: int | None
    text: str
    rows: int = 1
    end: int | None = None
    lost: bool = True

    @property
    def where(self) -> str:
        """The file, with the line or the lines."""
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{where}{f'-{self.end}' if self.end else ''}"

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


class NoResultsError(OmbError):
    """An error: a file is of something else than a benchmark."""


@dataclass(frozen=True)
class Source:
    """A file's ``content`` in UTF-8, its lines ended by newlines.

    ``torn`` is the index of a last line without an end, or None. ``benchmark`` is the benchmark
    that a user names, for formats that need not name it.
    """

    path: str
    content: bytes
    torn: int | None
    benchmark: str | None = None

    def __iter__(self) -> Iterator[str]:
        """Yield the lines without their ends, decoded a block at a time: a file may be large."""
        for block in blocks(self.content):
            lines = block.decode(errors="replace").split("\n")
            yield from lines if lines[-1] else lines[:-1]


def blocks(content: bytes) -> Iterator[bytes]:
    """Yield a content in blocks of at least `BLOCK` bytes that end with a line, and the rest."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", start + BLOCK - 1) + 1 or len(content)
        yield content[start:end]
        start = end


@dataclass(frozen=True)
class Table:
    """Lines of comma-separated values below one header, not yet taken apart: there may be many.

    ``stretches`` are parts of ``content`` that follow each other in the file: the number of their
    first line, and where they begin and end.
    """

    path: str
    columns: tuple[str, ...]
    content: bytes
    stretches: list[tuple[int, int, int]]

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the lines with their numbers in the file."""
        for number, start, end in self.stretches:
            for line in self.content[start:end].decode(errors="replace").splitlines():
                yield number, line
                number += 1


@dataclass(frozen=True)
class Found:
    """The results of a reader for a file, or for a part of it.

    ``rows`` have columns of `omb_py.results.columns.Row` (or of `OverheadRow`), those that are
    known. Further columns are ``line`` (its number in the file), ``suite`` (the suite that
    measured, ``OSU 7.4``) and ``mpi`` (``MPICH 5.0.2``), if they are known. ``runs`` is the
    metadata of each run.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    runs: dict[str, dict[str, str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


class Notes:
    """Problems of one file: the first thousand, and how many more there were."""

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self.source = source
        self.problems = problems
        self.unnamed = 0

    @property
    def count(self) -> int:
        """Number of problems, those that are only counted included."""
        return len(self.problems) + self.unnamed

    def add(self, index: int, text: str, rows: int = 1, lost: bool = True) -> None:
        """Add a problem that cost ``rows``; adjacent lines with the same text are one."""
        last = self.problems[-1] if self.problems else None
        if last and last.line and (last.text, last.end or last.line) == (text, index):
            self.problems[-1] = replace(last, end=index + 1, rows=last.rows + rows)
        elif len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(self.source.path, index + 1, text, rows, lost=lost))
        else:
            self.unnamed += 1

    def broken(self, index: int) -> None:
        """Add a line below a header that is no whole row."""
        torn = index == self.source.torn
        self.add(index, f"{'an incomplete' if torn else 'not a whole'} row, left out")

    def finish(self) -> None:
        """Put problems in the order of lines, and add how many were not named."""
        self.problems.sort(key=lambda problem: problem.line or 0)
        if self.unnamed:
            text = f"{self.unnamed} more lines that cannot be used"
            self.problems.append(Problem(self.source.path, None, text))


def form_of(
    header: str,
    cells: Iterable[tuple[str, str]],
    optional: Container[str] = (),
    rest: str = "",
) -> re.Pattern[str]:
    """Return the pattern of whole rows below a header: each column's cell, a group, then ``rest``.

    Cells of ``optional`` columns may be missing. Rows are as wide as their header: one that is
    torn between columns has no blanks between cells.
    """
    text = r"(?=.*\s\s)" if "  " in header.strip() else ""
    for place, (column, pattern) in enumerate(cells):
        text += rf"(?:{BLANKS if place else ''}(?P<{column}>{pattern}))"
        text += "?" if column in optional else ""
    return re.compile(text + rest)


def processes_of(words: Sequence[str]) -> int | None:
    """Return the number of processes that a launcher's words ask for.

    >>> processes_of("mpirun -np 16 --bind-to none".split()), processes_of(["srun", "-n4"])
    (16, 4)
    """
    found = None
    for word, following in zip(words, [*words[1:], ""], strict=False):
        option, equals, value = word.partition("=")
        value = value if equals else following
        if re.fullmatch(r"-n\d{1,9}", word):
            option, value = "-n", word[2:]
        if option in LAUNCHERS and NUMBER.fullmatch(value):
            found = int(value)
    return found


def typed(cells: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the cells of columns of `Row` as what these hold; words of a bool are true."""
    return {
        name: TYPES[KINDS[name]](cell)
        for name, cell in cells.items()
        if cell is not None and name in KINDS
    }


class Reading:
    """The state of reading a file of lines: the results so far, and the current table.

    ``form`` is the pattern of the table's rows, None if none are expected, and ``like`` that of
    what begins like one; ``rows`` are those so far, each
    after its key and size, and ``sizes`` the last size of each key: that of rows whose sizes
    ascend. ``begun`` is a benchmark without a row so far: its line, its name, and the number of
    problems at that point; ``fault`` is the first line since then that says why.
    """

    whole = re.compile(r".*(?:\.\d\d\d?|[a-z)])")
    """A row that does not go on if a file ends behind it."""

    like = LIKE

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found = Found()
        self.notes = Notes(source, self.found.problems)
        self.begun: tuple[int, str, int] | None = None
        self.fault = ""
        self.form: re.Pattern[str] | None = None
        self.rows: list[tuple[object, dict[str, Any]]] = []
        self.sizes: dict[object, int] = {}

    @classmethod
    def read(cls, source: Source) -> Iterator[Found]:
        """Yield all whole rows, as `Reader` defines it."""
        reading = cls(source)
        for index, line in enumerate(source):
            if line and len(line) <= LONGEST_LINE:
                reading.line(line, index)
                if reading.begun and not reading.fault and (fault := FAULT.search(line)):
                    first = max(0, fault.end() - LONGEST_REASON)
                    reading.fault = f": {line[first:].strip()[:LONGEST_REASON]!r}"
        reading.finish(None)
        reading.notes.finish()
        yield reading.found

    def line(self, line: str, index: int) -> None:
        """Take a line that is not empty."""
        raise NotImplementedError

    def finish(self, index: int | None) -> None:
        """Finish the part up to a line, or to the end of the file."""
        self.end_table()
        self.begin(index)

    def begin(self, index: int | None, what: str = "") -> None:
        """Begin a benchmark, or none; report the one before it if it printed no row."""
        if self.begun is not None and self.begun[2] == self.notes.count:
            text = f"{self.begun[1]} printed no row{self.fault}"
            self.notes.add(self.begun[0], text, rows=0)
            self.fault = ""
        self.begun = (index, what, self.notes.count) if what and index is not None else None

    def end_table(self) -> None:
        """End the rows of a table."""
        self.found.rows.extend(row for _, row in self.rows)
        self.form, self.rows, self.sizes = None, [], {}

    def cells(self, line: str, index: int) -> dict[str, str] | None:
        """Return a whole row's cells by their columns, without empty ones; report a broken row."""
        text = line.strip()
        if self.form is None or not ((match := self.form.fullmatch(text)) or self.like.match(line)):
            return None
        if match is None or (index == self.source.torn and not self.whole.fullmatch(text)):
            self.notes.broken(index)
            return None
        return {name: cell for name, cell in match.groupdict().items() if cell not in ABSENT}

    def follows(self, index: int, size: int, key: object = None) -> bool:
        """Return whether a row's size may follow that of the last one with its key, which is kept.

        The same size once more leaves out both.
        """
        last = self.sizes.get(key, -1)
        if size > last:
            self.sizes[key] = size
        elif size < last:
            self.notes.add(index, f"size {size} after {last}: rows of two tables? left out")
        else:
            text = f"size {size} is there twice, so both are left out: {TWICE}"
            self.notes.add(index, text, rows=2)
            self.rows = [(at, row) for at, row in self.rows if at != (key, size)]
        return size > last

    def add(self, index: int, row: dict[str, Any], at: object = None) -> None:
        """Add a row of the table, with its key and size."""
        self.begun = None
        self.rows.append((at, row | {"line": index + 1}))


@dataclass(frozen=True)
class Reader:
    """One format: its name for people, byte strings of which every file of it has one, and a
    function.

    ``read`` yields all whole rows of a source, in parts of about `ROWS_AT_ONCE` rows. It never
    raises, for any content.
    """

    name: str
    marks: tuple[bytes, ...]
    read: Callable[[Source], Iterator[Found]]


READERS = Registry(
    kind="reader",
    package="omb_py.results.readers",
    attribute="READER",
    group="omb_py.readers",
)


@cache
def all_readers() -> Mapping[str, Reader]:
    """Load all readers, those of other distributions included."""
    return {name: READERS.load(name) for name in READERS.names()}


def parts_of_file(path: Path, benchmark: str | None = None) -> Iterator[Found]:
    """Yield the results of all readers for a file, in parts, rows in the order of its lines.

    ``benchmark`` is that of a file that does not name it. Raises `OmbError` when it cannot be read
    or, after its end, when no reader knows any of its content.
    """
    content = content_of(path)
    whole = False
    problems: list[Problem] = []
    for found in parts_of(str(path), content, benchmark):
        whole |= bool(found.rows or found.tables)
        problems += found.problems
        yield found
    unread = [text for text, marks in NOT_READ.items() if any(mark in content for mark in marks)]
    if whole:
        yield Found(
            problems=[Problem(str(path), None, text, lost=text not in OF_OTHERS) for text in unread]
        )
        return
    if problems:
        costly = max(problems, key=lambda problem: problem.rows)
        raise OmbError(f"{costly}; {path} has no whole row")
    if usage := USAGE.search(content):
        why = (usage["why"] or b"").decode(errors="replace").strip()[:LONGEST_REASON]
        fault = f"{usage['program'].decode()} printed its usage message"
        fault += f" after {why!r}" if why else ""
        raise OmbError(f"{path} holds no results, for the run failed: {fault}")
    if refusals := TOO_FEW.findall(content):
        fault = f"{refusals[0].decode()!r} is there {count(len(refusals), 'time')}"
        if len(refusals) > 1:
            fault += (
                ": each process ran alone, so start them with the launcher of their MPI library"
            )
        raise OmbError(f"{path} holds no results, for the run failed: {fault}")
    if unread:
        error = NoResultsError if unread[0] in OF_OTHERS else OmbError
        raise error(f"{path}: {unread[0]}")
    formats = ", ".join(sorted(reader.name for reader in all_readers().values()))
    raise NoResultsError(f"{path} holds no results in a format that omb-py reads: {formats}")


def content_of(path: Path) -> bytes:
    """Return the content of a file or of standard input (``-``), decompressed and as text.

    Parquet becomes text, too. Raises `OmbError` when it cannot be read, is damaged, too large or
    empty.
    """
    content = files.read("/dev/stdin" if str(path) == STANDARD_INPUT else path)
    if content.startswith((GZIP, ZSTD)):
        content = decompress(path, content)
    if content.startswith(PARQUET):
        with needing("tables"):
            from omb_py.results.arrow import from_parquet
        try:
            content = from_parquet(content)
        except (OSError, ValueError) as error:
            raise OmbError(f"{path} is no whole Parquet file: {error}") from error
    if not content or content.isspace():
        raise OmbError(f"{path} is empty: what should have written it wrote nothing")
    return content


def decompress(path: Path, content: bytes) -> bytes:
    """Return data that gzip or zstd compressed; raise `OmbError` if it is damaged or too large."""
    with needing("tables"):
        import pyarrow
    kind = "gzip" if content.startswith(GZIP) else "zstd"
    try:
        with pyarrow.CompressedInputStream(pyarrow.BufferReader(content), kind) as stream:
            plain: bytes = stream.read(files.LARGEST + 1)
    except OSError as error:
        raise OmbError(f"{path} cannot be decompressed: {error}") from error
    if len(plain) > files.LARGEST:
        raise OmbError(f"{path} has more than {files.LARGEST >> 20} MiB, the most that is read")
    return plain


def parts_of(path: str, content: bytes, benchmark: str | None = None) -> Iterator[Found]:
    """Yield the results of all readers for a file's content; none if no reader knows its format."""
    source = source_of(path, content, benchmark)
    readers = [
        one for one in all_readers().values() if any(map(source.content.__contains__, one.marks))
    ]
    if len(readers) == 1:
        yield from readers[0].read(source)
    elif readers:
        yield join(part for reader in readers for part in reader.read(source))


def join(parts: Iterable[Found]) -> Found:
    """Join parts: rows and problems in the order of the file's lines."""
    whole = Found()
    for part in parts:
        whole.rows.extend(part.rows)
        whole.tables.extend(part.tables)
        whole.runs.update(part.runs)
        whole.problems.extend(part.problems)
    whole.rows.sort(key=lambda row: int(row["line"]))
    whole.problems.sort(key=lambda problem: problem.line or 0)
    return whole


def has_marks(path: Path) -> bool:
    """Return whether a file begins like one with results of some format."""
    try:
        with path.open("rb") as file:
            beginning = file.read(BEGINNING)
    except OSError:
        return False
    marks = tuple(mark for one in all_readers().values() for mark in one.marks)
    lines = beginning.splitlines()
    if any(line.startswith(marks) or line.lstrip(b"# ").startswith(marks) for line in lines):
        return True
    return any(found.rows or found.tables for found in parts_of(str(path), beginning))


def source_of(path: str, content: bytes, benchmark: str | None = None) -> Source:
    """Return a file's content as plain lines."""
    content = plain(content)
    ended = not content or content.endswith(b"\n")
    return Source(path, content, None if ended else content.count(b"\n"), benchmark)


LONGEST_LABEL = 160
MAX_SHAPES = 16
"""Maximum of a label's characters, and of the kinds of labels in a file: with more, none is a
label."""

STAMP = (
    r"(?:[A-Z][a-z]{2},? )?(?:\d{4}[-/]\d\d[-/]\d\d[T ]|[A-Z][a-z]{2} +\d{1,2} )?\d\d:\d\d:\d\d"
    r"(?:[.,]\d{1,9})?(?: ?Z| UTC|[+-]\d\d:?\d\d)?(?: \d{4})?(?: std(?:out|err) [FP])?"
)
PART = "|".join(
    (
        r"\[[^\]\n]{1,100}\]",  # Open MPI's tags, Hydra's ranks, kubectl's pods
        r"<std\w+>|(?:>[ \t]?)+|`{3}",  # and a quotation's or a fence's marks
        STAMP + r"(?: [\w.-]+(?= [\w./-]+(?:\[\d+\])?:))?",  # syslog's host behind its time
        r"(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR)(?!\w)",
        r"[\w./@-]*\w(?:\[\d+\])?(?= *[:|]| +- )",  # a rank, a host, a container, a logger
    )
)
LABEL = re.compile(rf"[ \t]*(?:(?:{PART}) *[:|-]? *){{1,6}}", re.ASCII)
TOKEN = re.compile(r"(?P<digits>\d+)|(?P<name>(?<![A-Za-z])[A-Z][a-z]{2}(?![a-z]))|(?P<blank> +)")


COLOR = re.compile(rb"\x1b\[[0-9;]*m")
"""What colours a terminal's text; logs of terminals and of CI keep it."""


def plain(content: bytes) -> bytes:
    """Return a file's content as plain lines without colours, however its lines are encoded."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        content = content.decode("utf-16", errors="replace").encode()
    content = content.removeprefix(codecs.BOM_UTF8)
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\x1b[" in content:
        content = COLOR.sub(b"", content)
    return without_labels(content)


def without_labels(content: bytes) -> bytes:
    """Return the content with the labels of its lines taken off; indents stay as they were."""
    shapes: dict[str, int] = {}
    seen: set[bytes] = set()
    place = content.find(b"#")
    while place >= 0 and len(shapes) < MAX_SHAPES:
        first = max(0, place - LONGEST_LABEL)
        start = content.rfind(b"\n", first, place) + 1 or first
        before = content[start:place]
        if before not in seen:
            seen.add(before)
            label = before.decode("latin-1")
            # two bars enclose a cell of a table
            if label.strip() and label.count("|") < 2 and LABEL.fullmatch(label):
                blanks = len(label) - len(label.rstrip())
                shape = shape_of(label.strip())
                shapes[shape] = min(blanks, shapes.get(shape, blanks))
        end = content.find(b"\n", place)
        place = content.find(b"#", end) if end >= 0 else -1
    if any(not before.strip() for before in seen):  # else a quoted row is of another's table
        shapes = {shape: blanks for shape, blanks in shapes.items() if shape[0] != ">"}
    if not shapes:
        return content
    longest = sorted(shapes, key=len, reverse=True)
    forms = "|".join(rf"{shape} {{0,{shapes[shape]}}}" for shape in longest)
    line = re.compile(rf"^(?P<label>[ \t]*(?:{forms}))(?P<text>.*)".encode(), re.MULTILINE)
    return line.sub(bare, content)


def shape_of(label: str) -> str:
    """Return a pattern of labels that differ in numbers, days and months.

    >>> shape_of("[Thu Nov 26 2026]<stdout>:")
    '\\\\[[A-Z][a-z]{2} +[A-Z][a-z]{2} +\\\\d+ +\\\\d+\\\\]<stdout>:'
    """
    patterns = {"digits": r"\d+", "name": "[A-Z][a-z]{2}", "blank": " +"}
    found, place = "", 0
    for token in TOKEN.finditer(label):
        found += re.escape(label[place : token.start()]) + patterns[str(token.lastgroup)]
        place = token.end()
    return found + re.escape(label[place:])


def bare(line: re.Match[bytes]) -> bytes:
    """Return a line without its label.

    Hydra also labels what a process writes without ending a line: within lines.
    """
    label = line["label"].strip()
    return line["text"].replace(label + b" ", b"") if label[:1] == b"[" else line["text"]
