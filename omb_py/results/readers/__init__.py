"""WHAT OTHERS WROTE: results of any suite, from whatever a job left on the disk.

A module of this folder (or an entry point of group ``omb_py.readers``) defines ``READER``, which
knows one format. A file may hold several tables of several formats, launchers' noise between
their lines, and a last line that a killed job tore: every reader looks through all of it, takes
the rows that are whole, and says which lines it left out. It never guesses a number.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from omb_py.core.errors import OmbError, needing
from omb_py.core.registry import Registry
from omb_py.core.text import files
from omb_py.results.readers.formats.labels import without_labels

USAGE = re.compile(rb"^[ \t]*Usage: (?:\S*/)?(?P<program>osu_\w+)\b", re.MULTILINE)
INVALID = re.compile(r"invalid|illegal|unrecogni[sz]ed|requires|error", re.IGNORECASE)
"""What native OMB prints instead of results, and words of the line before that say why."""

LONGEST_REASON = 120

STANDARD_INPUT = "-"

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""What compressed files begin with."""

PARQUET = b"PAR1"

COMPRESSED = (".gz", ".zst")
"""Suffixes that may follow a file's own."""

BLOCK = 1 << 20
"""Bytes of a file that are taken apart in one go."""

ROWS_AT_ONCE = 10_000
"""Rows that are handed on in one go: enough to be fast, few enough to need little memory."""

BEGINNING = 1 << 16
"""Bytes that are looked at to tell whether a file is of results."""

MARKS_OF_APPLICATIONS = (b"run,application,part,", b'", "application": "')
"""Byte strings of results that are no benchmark's, in our CSV and in our JSON."""


@dataclass(frozen=True)
class Problem:
    """Something in a file that could not be used, and why; ``rows`` are how many it cost."""

    path: str
    line: int | None
    text: str
    rows: int = 1

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{where}: {self.text}"


@dataclass(frozen=True)
class Source:
    """A file's ``content`` in UTF-8, its lines ended by newlines.

    ``torn`` is the index of a last line that has no end, or None. ``benchmark`` is what a user says
    that it is of, for formats that need not name it.
    """

    path: str
    content: bytes
    torn: int | None
    benchmark: str | None = None

    def __iter__(self) -> Iterator[str]:
        """The lines without their ends, decoded a block at a time: a file may be large."""
        for block in blocks(self.content):
            lines = block.decode(errors="replace").split("\n")
            yield from lines if lines[-1] else lines[:-1]

    def problem(self, index: int, text: str) -> Problem:
        """A problem with the line of an index."""
        return Problem(self.path, index + 1, text)


def blocks(content: bytes, size: int = BLOCK) -> Iterator[bytes]:
    """A content in blocks of at least ``size`` bytes that end where lines do, and the rest."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", start + size - 1) + 1 or len(content)
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
        """The lines with their numbers in the file."""
        for number, start, end in self.stretches:
            for line in self.content[start:end].decode(errors="replace").splitlines():
                yield number, line
                number += 1


@dataclass(frozen=True)
class Found:
    """What a reader found in a file, or in a part of it.

    ``rows`` have columns of `omb_py.results.row.Row` (or of `OverheadRow`), those that are known,
    and besides ``line`` (its number in the file), ``suite`` (who measured, ``OSU 7.4``) and
    ``mpi`` (``MPICH 5.0.2``), where they are known. ``runs`` is the metadata of each run.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    runs: dict[str, dict[str, str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def take_rows(self) -> Found:
        """The rows so far as a part of their own; they are no longer in this one."""
        rows = list(self.rows)
        self.rows.clear()
        return Found(rows)


class Reader(Protocol):
    """One format: what people call it, and byte strings without which a file has none of it."""

    name: str
    marks: tuple[bytes, ...]

    def read(self, source: Source) -> Iterator[Found]:
        """All whole rows of this format, in parts of about `ROWS_AT_ONCE` rows.

        Never raises, whatever the file holds.
        """


READERS = Registry(
    kind="reader",
    package="omb_py.results.readers",
    attribute="READER",
    group="omb_py.readers",
)


@cache
def all_readers() -> Mapping[str, Reader]:
    """Every reader by its name."""
    return {name: READERS.load(name) for name in READERS.names()}


def parts_of_file(path: Path, benchmark: str | None = None) -> Iterator[Found]:
    """What all readers find in a file, a part at a time, rows in the order of its lines.

    ``benchmark`` is what a file is of that does not name it. Raises `OmbError` when it cannot be
    read or, after its end, when it held nothing that any reader knows.
    """
    content = content_of(path)
    whole = False
    problems: list[Problem] = []
    for found in parts_of(str(path), content, benchmark):
        whole |= bool(found.rows or found.tables)
        problems += found.problems
        yield found
    if not whole:
        if problems:
            costly = max(problems, key=lambda problem: problem.rows)
            raise OmbError(f"{costly}; {path} has no whole row")
        if fault := failure_in(content):
            raise OmbError(f"{path} holds no results, for the run failed: {fault}")
        if any(mark in content for mark in MARKS_OF_APPLICATIONS):
            raise OmbError(
                f"{path} holds results of applications: omb-py show --speedup shows them"
            )
        formats = ", ".join(sorted(reader.name for reader in all_readers().values()))
        raise OmbError(f"{path} holds no results in a format that omb-py reads: {formats}")
    if any(mark in content for mark in MARKS_OF_APPLICATIONS):
        text = "results of applications are left out: omb-py show --speedup shows them"
        yield Found(problems=[Problem(str(path), None, text)])


def content_of(path: Path) -> bytes:
    """The content of a file or of standard input (``-``); compressed files and Parquet as text.

    Raises `OmbError` when it cannot be read, is damaged, too large or empty.
    """
    content = files.read("/dev/stdin" if str(path) == STANDARD_INPUT else path)
    if content.startswith((GZIP, ZSTD)):
        content = decompress(path, content)
    if content.startswith(PARQUET):
        with needing("analysis"):
            from omb_py.results.arrow import from_parquet
        try:
            content = from_parquet(content)
        except (OSError, ValueError) as error:
            raise OmbError(f"{path} is no whole Parquet file: {error}") from error
    if not content or content.isspace():
        raise OmbError(f"{path} is empty: what should have written it wrote nothing")
    return content


def decompress(path: Path, content: bytes) -> bytes:
    """What gzip or zstd compressed; raises `OmbError` where that is damaged or too large."""
    stream: Any
    if content.startswith(GZIP):
        stream = gzip.GzipFile(fileobj=io.BytesIO(content))
    else:
        with needing("analysis"):
            import pyarrow
        stream = pyarrow.CompressedInputStream(pyarrow.BufferReader(content), "zstd")
    try:
        plain: bytes = stream.read(files.LARGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise OmbError(f"{path} cannot be decompressed: {error}") from error
    if len(plain) > files.LARGEST:
        raise OmbError(f"{path} has more than {files.LARGEST >> 20} MiB, the most that is read")
    return plain


def failure_in(content: bytes) -> str | None:
    """Why a run of native OMB failed, from the usage message that it printed; None for others."""
    if (usage := USAGE.search(content)) is None:
        return None
    before = content[: usage.start()].decode(errors="replace").strip().splitlines()
    told = [line.strip() for line in before if INVALID.search(line)]
    why = f" after {told[-1][:LONGEST_REASON]!r}" if told else ""
    return f"{usage['program'].decode()} printed its usage message{why}"


def parts_of(path: str, content: bytes, benchmark: str | None = None) -> Iterator[Found]:
    """What all readers find in a file's content; nothing where none knows its format."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        content = content.decode("utf-16", errors="replace").encode()
    source = source_of(path, content, benchmark)
    readers = [
        reader
        for reader in all_readers().values()
        if any(mark in source.content for mark in reader.marks)
    ]
    if len(readers) == 1:
        yield from readers[0].read(source)
    elif readers:
        yield join(part for reader in readers for part in reader.read(source))


def join(parts: Iterable[Found]) -> Found:
    """Parts as one: rows and problems in the order of the file's lines."""
    parts = list(parts)
    return Found(
        rows=sorted((row for part in parts for row in part.rows), key=lambda row: row["line"]),
        tables=[table for part in parts for table in part.tables],
        runs={name: data for part in parts for name, data in part.runs.items()},
        problems=sorted(
            (problem for part in parts for problem in part.problems),
            key=lambda problem: problem.line or 0,
        ),
    )


def has_marks(path: Path) -> bool:
    """Whether a file begins like one with results of some format."""
    try:
        with path.open("rb") as file:
            beginning = file.read(BEGINNING)
    except OSError:
        return False
    marks = tuple(mark for one in all_readers().values() for mark in one.marks)
    return any(
        part.startswith(marks)
        for line in beginning.splitlines()
        for part in (line, line.lstrip(b"# "))
    )


def source_of(path: str, content: bytes, benchmark: str | None = None) -> Source:
    """A file's content as lines, without labels of launchers, whichever way they end."""
    content = content.removeprefix(codecs.BOM_UTF8)
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    content = without_labels(content)
    ended = not content or content.endswith(b"\n")
    return Source(path, content, None if ended else content.count(b"\n"), benchmark)
