"""Files of results of any suite as one table."""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.types import union_categoricals
from pyarrow import compute, csv

from omb_py.analysis.sources import label_sources, without_copies
from omb_py.analysis.values import NUMBERS, WORDS, own_number, with_values
from omb_py.core.errors import OmbError, UsageError
from omb_py.results.columns import (
    COLUMNS,
    CONFIGURATION,
    EXPERIMENT,
    LOADED,
    OverheadRow,
    PairRow,
    Row,
)
from omb_py.results.readers import (
    COMPRESSED,
    ROWS_AT_ONCE,
    Found,
    Problem,
    Table,
    has_marks,
    parts_of_file,
)
from omb_py.results.samples import is_samples

SUFFIXES = (".csv", ".json", ".jsonl", ".parquet", ".txt", ".log", ".out", ".dat")
"""Files of a folder that are looked into."""

RECORDS: tuple[type[Any], ...] = (Row, OverheadRow, PairRow)
"""Kinds of rows: a benchmark, a comparison of bindings, a pair of ranks."""

RECORD = ".record"
NO_RESULTS = re.compile(r"software\.json|.*\.summary\.json")
"""Other files in folders of results: a sweep's software, a launch's summary."""

OF_PROFILE = re.compile(r"profile(\.\d+)?\.(txt|csv|json)|traffic-\d+\.json")
"""Files that `omb-py profile` writes next to its records."""

BYTES_AT_ONCE = 8 << 20
"""Bytes of tables that are parsed in one go: enough to be fast, few enough to need no memory."""

ALWAYS = (*EXPERIMENT, *CONFIGURATION, *NUMBERS, "run", "bytes", "validation", "file", "line")
"""Columns of rows' identity, and those of their numbers."""

LONGEST_NUMBER = 40
"""Characters beyond which a field is no number: conversions of some take long or fail."""

TEXT = pd.Series(["text"]).dtype
"""The type of text in this pandas: a separate type since 3, objects before."""

DTYPES: dict[str, Any] = {"int": "Int64", "float": "float64", "bool": object, "str": TEXT}
"""The type of a column, by its kind."""

LIBRARY = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9 _-]*?)[\s:v]+(?P<version>\d+(\.\d+)+\S*)")

Paths = str | Path | Iterable[str | Path]


@dataclass(frozen=True)
class Results:
    """All results that were read.

    ``rows`` has the columns of `Row` and `LOADED`, ``overhead`` and ``pairs`` those of
    `OverheadRow` or `PairRow` and `LOADED`; numbers are floats or nullable integers, missing if a
    suite does not print them. ``runs`` is the metadata of each run by its name, ``problems`` are
    the parts left out, ``notes`` remarks about the rest.
    """

    rows: pd.DataFrame
    overhead: pd.DataFrame
    runs: Mapping[str, Mapping[str, str]]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    pairs: pd.DataFrame


def load(
    paths: Paths,
    assume: Mapping[str, Any] | None = None,
    columns: Iterable[str] | None = None,
    progress: Callable[[str, int], object] | None = None,
) -> Results:
    """Read files, and folders with all files below them.

    ``assume`` gives columns a value if the files have none: native OMB does not print its number of
    ranks. A mapping has values by patterns of files' names; the first that matches counts.
    ``columns`` are those that the tables have besides `ALWAYS`, all by default; each takes about 8
    bytes a row. ``progress`` is called with the file under way and the number of rows so far.
    Raises `OmbError` when a file that was named cannot be read or holds no result, or when a folder
    holds none; other trouble becomes a problem.
    """
    wanted = None if columns is None else {*ALWAYS, *columns}
    known = dict.fromkeys([*(n for record in RECORDS for n in record.columns), *LOADED])
    if unknown := sorted(set(assume or {}) - set(known)):
        raise UsageError(f"there is no column {unknown[0]!r}: choose from {', '.join(known)}")
    runs: dict[str, dict[str, str]] = {}
    problems: list[Problem] = []
    parts: dict[type[Any], list[Part]] = {record: [] for record in RECORDS}

    def found() -> Iterator[tuple[Path, Found]]:
        """Yield the parts of all files; their runs and problems are kept."""
        named = [paths] if isinstance(paths, str | Path) else paths
        for path in dict.fromkeys(map(Path, named)):
            for file, part in contents(path, problems, assume or {}):
                runs.update(part.runs)
                problems.extend(part.problems)
                yield file, part

    rows = 0
    for record, frame in frames(found(), wanted, problems):
        parts[record].append(part_of(frame))
        rows += len(frame)
        if progress is not None:
            progress(str(frame["file"].iloc[-1]) if len(frame) else "", rows)
    read = []
    for record, members in parts.items():
        once, copies = without_copies(complete(members, record, runs, assume or {}, wanted))
        problems += copies
        read.append(once)
    problems += not_above_zero(read[0])
    benchmarks, notes = label_sources(read[0])
    return Results(benchmarks, read[1], runs, tuple(problems), tuple(notes), read[2])


def not_above_zero(rows: pd.DataFrame) -> Iterator[Problem]:
    """Yield problems of rows with unusable numbers: a clock that steps, or too few decimals."""
    own = own_number(rows)
    right = rows["latency_us"].isna() & (rows["bytes"] == 0)  # no bytes have no bandwidth
    without = with_values(rows[(own <= 0) & ~right])
    without = without[without["value"].isna()]
    for row in without.itertuples():
        line = None if pd.isna(row.line) else int(row.line)
        text = (
            f"a {WORDS[row.unit].lower()} of {own[row.Index]:g} {row.unit} is not above 0: no "
            "figure or ratio has it"
        )
        yield Problem(str(row.file), line, text)


def of_rows(rows: list[dict[str, Any]], runs: Mapping[str, Mapping[str, str]]) -> Results:
    """Return rows of one kind that were just measured, as if read from a file."""
    measured = {record_of(rows[0]): [part_of(pd.DataFrame(rows))]} if rows else {}
    benchmarks, overhead, pairs = (
        complete(measured.get(kind, []), kind, runs, {}) for kind in RECORDS
    )
    return Results(benchmarks, overhead, runs, (), (), pairs)


def assumed(assume: Mapping[str, Any], name: str, file: Path) -> Any:
    """Return the assumed value of a column in a file."""
    values = assume.get(name)
    if not isinstance(values, Mapping):
        return values
    return next((value for pattern, value in values.items() if file.match(pattern)), None)


def contents(
    path: Path, problems: list[Problem], assume: Mapping[str, Any]
) -> Iterator[tuple[Path, Found]]:
    """Yield the contents of a file or of a folder's files; files without results become problems.

    Raises `OmbError` if the file, or every file of the folder, is without results.
    """
    if not path.is_dir():
        if is_samples(path):
            raise UsageError(f"{path} holds samples, not rows: numpy.load reads them")
        benchmark = assumed(assume, "benchmark", path)
        yield from ((path, found) for found in parts_of_file(path, benchmark))
        return
    unusable: list[Problem] = []
    usable = 0
    for file in sorted(found_in(path, unusable)):
        try:
            benchmark = assumed(assume, "benchmark", file)
            yield from ((file, found) for found in parts_of_file(file, benchmark))
            usable += 1
        except OmbError as error:
            unusable.append(Problem(str(file), None, f"left out: {error}"))
    if not usable:
        why = ""
        for problem in unusable[:1]:
            text = problem.text.removeprefix("left out: ")
            why = f": {text}" if problem.path in text else f": {problem.path}: {text}"
        raise OmbError(f"{path} holds no file of results{why}")
    problems += unusable


def found_in(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    """Yield the files of a folder, and of those below it, that may hold results.

    Files that look like results but are not read become problems: links to folders (which may lead
    back), files that are no regular ones, folders that cannot be read, and files of results whose
    names end otherwise than in `SUFFIXES`. Hidden files and those of a profile are skipped.
    """

    def left_out(path: str | Path, why: str) -> None:
        problems.append(Problem(str(path), None, f"left out: {why}"))

    def unreadable(error: OSError) -> None:
        left_out(error.filename, error.strerror or str(error))

    for where, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in [Path(where, name) for name in folders]:
            if path.is_symlink():
                left_out(path, "a link to a folder is not followed, name the folder itself")
        if any(name.endswith(RECORD) for name in files):
            files[:] = [name for name in files if not OF_PROFILE.fullmatch(name)]
        files[:] = [name for name in files if not NO_RESULTS.fullmatch(name)]
        for path in [Path(where, name) for name in sorted(files) if not name.startswith(".")]:
            suffixes = [suffix for suffix in path.suffixes if suffix not in COMPRESSED]
            wanted = suffixes[-1:] and suffixes[-1] in SUFFIXES and not is_samples(path)
            if wanted and path.is_file():
                yield path
            elif wanted:
                left_out(path, "it is no regular file" if path.exists() else "a link to nothing")
            elif path.is_file() and has_marks(path):
                left_out(path, f"it holds results, but does not end in {', '.join(SUFFIXES)}")


Piece = tuple[Table, int, int, int]
"""Lines of a table that follow each other: the number of the first, where they begin and end."""

Part = dict[str, pd.Series]
"""Some rows: the columns in which one of them has a value, each of its kind."""


def frames(
    files: Iterable[tuple[Path, Found]], wanted: Container[str] | None, problems: list[Problem]
) -> Iterator[tuple[type[Any], pd.DataFrame]]:
    """Yield rows of files with their record type; many small tables of one kind are read at
    once."""
    rows: dict[type[Any], list[dict[str, Any]]] = {record: [] for record in RECORDS}
    tables: dict[tuple[str, ...], list[Piece]] = {}
    lengths: Counter[tuple[str, ...]] = Counter()
    for file, found in files:
        for row in found.rows:
            rows[record_of(row)].append({**row, "file": str(file)})
        for table in found.tables:
            for piece in pieces(table):
                tables.setdefault(table.columns, []).append(piece)
                lengths[table.columns] += piece[3] - piece[2]
                if lengths[table.columns] > BYTES_AT_ONCE:
                    members = tables.pop(table.columns)
                    yield record_of(table.columns), parse(table.columns, members, wanted, problems)
                    del lengths[table.columns]
        for record, members_of in rows.items():
            if len(members_of) >= ROWS_AT_ONCE:
                yield record, pd.DataFrame(members_of)
                members_of.clear()
    for names, members in tables.items():
        yield record_of(names), parse(names, members, wanted, problems)
    for record, members_of in rows.items():
        if members_of:
            yield record, pd.DataFrame(members_of)


def record_of(names: Container[str]) -> type[Any]:
    """Return the record of a row's columns: a benchmark, a comparison of bindings, or a pair."""
    if "receiver_host" in names:
        return PairRow
    return OverheadRow if "added_us" in names else Row


def pieces(table: Table) -> Iterator[Piece]:
    """Yield the stretches of a table, long ones cut."""
    for number, start, end in table.stretches:
        while start < end:
            cut = table.content.find(b"\n", min(start + BYTES_AT_ONCE, end) - 1) + 1
            yield table, number, start, cut
            number += table.content.count(b"\n", start, cut)
            start = cut


def parse(
    names: tuple[str, ...],
    members: Sequence[Piece],
    wanted: Container[str] | None,
    problems: list[Problem],
) -> pd.DataFrame:
    """Join pieces of tables of the same columns; without rows in which a field is wrong."""
    counts = [table.content.count(b"\n", start, end) for table, _, start, end in members]
    paths = {path: place for place, path in enumerate(dict.fromkeys(t.path for t, *_ in members))}
    places = [paths[table.path] for table, *_ in members]
    file = pd.Series(pd.Categorical.from_codes(np.repeat(places, counts), list(paths)))
    line = np.concatenate(
        [np.arange(first, first + n) for (_, first, *_), n in zip(members, counts, strict=True)]
    )
    known = [name for name in names if name in COLUMNS and (wanted is None or name in wanted)]
    header = ",".join(names).encode() + b"\n"
    text = b"".join([header, *(table.content[start:end] for table, _, start, end in members)])
    frame = parse_typed(text, known)
    if frame is not None and len(frame) == len(line):
        return frame.assign(file=file, line=line)
    frame = parse_checked(text, known).assign(file=file, line=line)
    for row in frame[frame["wrong"]].itertuples():
        text_of_problem = "a field is not what its column holds; left out"
        problems.append(Problem(str(row.file), int(row.line), text_of_problem))
    return frame[~frame["wrong"]].drop(columns="wrong")


def parse_typed(text: bytes, names: Sequence[str]) -> pd.DataFrame | None:
    """Return these columns of comma-separated values; None unless each field is of its column's
    type."""
    kinds = {"int": pa.int64(), "float": pa.float64()}
    types = {
        name: kinds.get(kind_of(name), pa.dictionary(pa.int32(), pa.string())) for name in names
    }
    options = csv.ConvertOptions(
        column_types=types, include_columns=names, null_values=[""], strings_can_be_null=True
    )
    try:
        table = csv.read_csv(pa.BufferReader(text), convert_options=options)
    except pa.ArrowInvalid:
        return None
    finite = (
        compute.all(compute.is_finite(table[name])).as_py() is not False
        for name in names
        if kind_of(name) == "float"
    )
    if table["benchmark"].null_count or not all(finite):
        return None
    empty = [name for name in names if table[name].null_count == len(table)]
    return table.drop_columns(empty).to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)


def parse_checked(text: bytes, names: Sequence[str]) -> pd.DataFrame:
    """Return `parse_typed` of any fields; ``wrong`` marks rows with a field of another type."""
    frame = pd.read_csv(
        io.StringIO(text.decode(errors="replace")),
        usecols=names,
        dtype=str,
        keep_default_na=False,
        na_values=[""],
        skip_blank_lines=False,
    )
    wrong = frame["benchmark"].isna()
    for name in names:
        if kind_of(name) not in ("int", "float"):
            continue
        texts = frame[name]
        values = pd.to_numeric(texts.where(texts.str.len() <= LONGEST_NUMBER), errors="coerce")
        right = values.abs() < float("inf")
        if kind_of(name) == "int":
            right &= values % 1 == 0
        wrong |= texts.notna() & ~right.astype(bool)
        frame[name] = values
    return frame.assign(wrong=wrong)


def part_of(frame: pd.DataFrame) -> Part:
    """Return the columns in which a row has a value, each of its kind, texts as categories."""
    part = {}
    for name in map(str, frame):
        column = frame[name]
        if not column.notna().any():
            continue
        if kind_of(name) != "str":
            part[name] = convert_types(column, name)
        elif isinstance(column.dtype, pd.CategoricalDtype):
            part[name] = column.cat.rename_categories(column.cat.categories.astype(TEXT))
        else:
            part[name] = column.astype(TEXT).astype("category")
    return part


def complete(
    parts: list[Part],
    record: type[Any],
    runs: Mapping[str, Mapping[str, str]],
    assume: Mapping[str, Any],
    wanted: Container[str] | None = None,
) -> pd.DataFrame:
    """Return one table with all columns of ``record``, typed, and with metadata filled in.

    With ``wanted`` it has only those of these columns. ``parts`` is emptied, for rows may be many.
    """
    names = [*record.columns, *LOADED]
    names = [name for name in names if wanted is None or name in wanted]
    lengths = [len(part["benchmark"]) for part in parts]
    frame = pd.DataFrame(index=range(sum(lengths)))
    empty = {kind: pd.Series(np.nan, frame.index, dtype) for kind, dtype in DTYPES.items()}
    for name in names:  # one by one, since pandas copies no column that is only assigned
        used = any(name in part for part in parts)
        frame[name] = stack(parts, lengths, name) if used else empty[kind_of(name)]
    parts.clear()
    facts = {run: from_metadata(data) for run, data in runs.items()}
    for place, name in enumerate(("suite", "mpi", "hosts")):
        if name in frame:
            of_runs = {run: values[place] for run, values in facts.items()}
            frame[name] = fill(frame[name], convert_types(frame["run"].map(of_runs), name))
    frame["run"] = fill(frame["run"], frame["file"])
    files = {file: Path(file) for file in frame["file"].dropna().unique()} if assume else {}
    for name in assume:
        if name in frame:
            values = {file: assumed(assume, name, path) for file, path in files.items()}
            frame[name] = fill(frame[name], convert_types(frame["file"].map(values), name))
    if "validation" in frame:
        frame["validated"] = frame["validation"].notna().astype(object)
    return frame


def stack(parts: Sequence[Part], lengths: Sequence[int], name: str) -> pd.Series:
    """Return a column of all parts, taken out of them; missing if a part does not have it."""
    columns = [part.pop(name, None) for part in parts]
    if kind_of(name) == "str":
        missing = pd.Index([], dtype=TEXT)
        texts = [
            pd.Categorical.from_codes(np.full(length, -1), missing) if column is None else column
            for column, length in zip(columns, lengths, strict=True)
        ]
        return pd.Series(union_categoricals(texts)).astype(TEXT) if texts else pd.Series(dtype=TEXT)
    found = pd.Series(np.nan, index=range(sum(lengths)), dtype=DTYPES[kind_of(name)])
    start = 0
    for column, length in zip(columns, lengths, strict=True):
        if column is not None:
            found.array[start : start + length] = column.array
        start += length
    return found


def kind_of(name: str) -> str:
    """Return the kind of a column's values: ``int``, ``float``, ``bool`` or ``str``."""
    return COLUMNS[name].type if name in COLUMNS else "str"


def convert_types(values: pd.Series, name: str) -> pd.Series:
    """Return a column's values as its kind, missing if they cannot be."""
    kind = kind_of(name)
    if kind == "bool":
        values = values.map({"True": True, "False": False, True: True, False: False})
    elif kind != "str":
        values = pd.to_numeric(values, errors="coerce")
    return values.astype(DTYPES[kind])


def fill(values: pd.Series, others: Any) -> pd.Series:
    """Return a column whose missing values are taken from another column or one value."""
    return values.where(values.notna(), others)


def from_metadata(data: Mapping[str, str]) -> tuple[str | None, str | None, int | None]:
    """Return suite, MPI library and number of hosts of a run of ours."""
    suite = f"omb-py {data['omb_py']}" if "omb_py" in data else None
    hosts = len(data["hosts"].split()) if data.get("hosts") else None
    return suite, library(data.get("mpi_library", "")), hosts


def library(text: str) -> str | None:
    """Return the MPI library and its version from its version text, as in ``Open MPI 5.0.11``.

    >>> library("Open MPI v5.0.11, package: Open MPI root@host Distribution, ident: 5.0.11")
    'Open MPI 5.0.11'
    >>> library("MPICH Version: 5.0.2 MPICH Release date: Fri Sep 25 20:45:26 UTC 2026")
    'MPICH 5.0.2'
    """
    words = text.replace("(R)", "").replace("Version:", " ").split("\n")[0]
    match = LIBRARY.search(words)
    if match is None:
        return text.split(",")[0].strip()[:40] or None
    name = re.sub(r"\b(Version|version|Library|CRAY)\b", "", match["name"])
    return f"{' '.join(name.split())} {match['version'].rstrip(',;')}"
