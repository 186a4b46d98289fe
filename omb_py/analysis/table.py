"""Files of results of any suite as one table."""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from omb_py.analysis.sources import label_sources, without_copies
from omb_py.analysis.values import with_values
from omb_py.core.errors import OmbError, UsageError
from omb_py.results.readers import Found, Problem, Table, has_marks, read_file
from omb_py.results.row import KINDS, OverheadRow, Row, columns

SUFFIXES = (".csv", ".json", ".txt", ".log", ".out", ".dat")
"""Files of a folder that are looked into."""

EXTRA = ("suite", "mpi", "hosts", "file", "line", "source", "validated")
"""Columns of the table that `Row` has not: who measured, on which MPI library, on how many hosts,
and where it stands; the file again where rows of others are not its repeated runs
(`sources.apart`); and whether data was checked, which `-c` does, on caches that are cold."""

ROWS_AT_ONCE = 10_000
"""Rows that are parsed in one go: enough to be fast, few enough to need little memory."""

TEXT = pd.Series(["text"]).dtype
"""How this pandas holds text: a type of its own since 3, objects before."""

LIBRARY = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9 _-]*?)[\s:v]+(?P<version>\d+(\.\d+)+\S*)")

Paths = str | Path | Iterable[str | Path]


@dataclass(frozen=True)
class Results:
    """All that was read.

    ``rows`` has the columns of `Row` and `EXTRA`, ``overhead`` those of `OverheadRow` and `EXTRA`;
    numbers are floats or nullable integers, missing where a suite does not say. ``runs`` is the
    metadata of each run by its name, ``problems`` what was left out, ``notes`` what to know of the
    rest.
    """

    rows: pd.DataFrame
    overhead: pd.DataFrame
    runs: Mapping[str, Mapping[str, str]]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()


def load(paths: Paths, assume: Mapping[str, Any] | None = None) -> Results:
    """Read files, and folders with all that is below them.

    ``assume`` gives columns a value where the files do not say: native OMB does not print how many
    ranks it ran on. Raises `OmbError` when a file that was named cannot be read or holds no
    result, or when a folder holds none; other trouble becomes a problem.
    """
    runs: dict[str, dict[str, str]] = {}
    problems: list[Problem] = []
    rows: list[dict[str, Any]] = []

    def tables() -> Iterator[Table]:
        """Those of all files, one file after the other; what else is in them is kept."""
        for path in [paths] if isinstance(paths, str | Path) else paths:
            for file, found in contents(Path(path), problems):
                runs.update(found.runs)
                problems.extend(found.problems)
                rows.extend({**row, "file": str(file)} for row in found.rows)
                yield from found.tables

    frames = list(parse(tables(), problems))
    read = []
    for record in (Row, OverheadRow):
        alone = [row for row in rows if is_of(record, row)]
        members = [frame for frame in frames if is_of(record, frame)]
        frames = [frame for frame in frames if not is_of(record, frame)]
        members += [pd.DataFrame(alone)] if alone else []
        once, copies = without_copies(complete(members, record, runs, assume or {}))
        problems += copies
        read.append(once)
    problems += not_above_zero(read[0])
    benchmarks, notes = label_sources(read[0])
    return Results(benchmarks, read[1], runs, tuple(problems), tuple(notes))


def not_above_zero(rows: pd.DataFrame) -> Iterator[Problem]:
    """Rows whose number is none of use: a clock that steps, or two decimals that are not enough."""
    own = rows["latency_us"].fillna(rows["bandwidth_MBps"]).fillna(rows["messages_per_s"])
    without = with_values(rows[own <= 0])
    without = without[without["value"].isna()]
    for row in without.itertuples():
        what = {"us": "latency", "MB/s": "bandwidth", "msg/s": "message rate"}[row.unit]
        number = {"us": row.latency_us, "MB/s": row.bandwidth_MBps}.get(
            row.unit, row.messages_per_s
        )
        line = None if pd.isna(row.line) else int(row.line)
        text = f"a {what} of {number:g} {row.unit}, which is not above 0, is left out"
        yield Problem(str(row.file), line, text)


def is_of(record: type[Any], names: Container[str]) -> bool:
    """Whether a row of these columns is one of a benchmark, or of a comparison of bindings."""
    return ("added_us" in names) is (record is OverheadRow)


def of_rows(
    rows: list[dict[str, Any]], runs: Mapping[str, Mapping[str, str]], record: type[Any] = Row
) -> Results:
    """Rows that were just measured, of benchmarks or of overheads, as if read from a file."""
    measured = [pd.DataFrame(rows)] if rows else []
    return Results(
        complete(measured if record is Row else [], Row, runs, {}),
        complete(measured if record is OverheadRow else [], OverheadRow, runs, {}),
        runs,
        (),
    )


def contents(path: Path, problems: list[Problem]) -> Iterator[tuple[Path, Found]]:
    """What is in a file, or in the files of a folder; those without results become problems.

    Raises `OmbError` when the file, or no file of the folder, holds results.
    """
    if not path.is_dir():
        yield path, read_file(path)
        return
    unusable: list[Problem] = []
    usable = 0
    for file in sorted(found_in(path, unusable)):
        try:
            found = read_file(file)
        except OmbError as error:
            unusable.append(Problem(str(file), None, f"left out: {error}"))
            continue
        usable += 1
        yield file, found
    if not usable:
        why = ""
        for problem in unusable[:1]:
            text = problem.text.removeprefix("left out: ")
            why = f": {text}" if problem.path in text else f": {problem.path}: {text}"
        raise OmbError(f"{path} holds no file of results{why}")
    problems += unusable


def found_in(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    """The files of a folder, and of those below it, that may hold results.

    What looks like results and is not looked into becomes a problem: links to folders (which may
    lead back), files that are no regular ones, folders that cannot be read, and files of results
    whose names end otherwise than in `SUFFIXES`. Hidden files are nobody's results.
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
        for path in [Path(where, name) for name in sorted(files) if not name.startswith(".")]:
            if path.suffix in SUFFIXES and path.is_file():
                yield path
            elif path.suffix in SUFFIXES:
                left_out(path, "it is no regular file" if path.exists() else "a link to nothing")
            elif path.is_file() and has_marks(path):
                left_out(path, f"it holds results, but does not end in {', '.join(SUFFIXES)}")


def parse(tables: Iterable[Table], problems: list[Problem]) -> Iterator[pd.DataFrame]:
    """Tables of comma-separated values, many of the same columns in one go."""
    groups: dict[tuple[str, ...], list[Table]] = {}
    lengths: Counter[tuple[str, ...]] = Counter()
    for table in tables:
        groups.setdefault(table.columns, []).append(table)
        lengths[table.columns] += len(table.lines)
        if lengths[table.columns] > ROWS_AT_ONCE:
            yield numeric(concatenate(table.columns, groups.pop(table.columns)), problems)
            del lengths[table.columns]
    for names, members in groups.items():
        yield numeric(concatenate(names, members), problems)


def concatenate(names: tuple[str, ...], tables: list[Table]) -> pd.DataFrame:
    """Tables of the same columns as one; the lines are taken out of them, for they are many."""
    known = [name for name in names if name in KINDS]
    texts = [name for name in known if KINDS[name] not in ("int", "float")]
    text = "\n".join([",".join(names), *(line for table in tables for line in table.lines)])
    frame = pd.read_csv(
        io.StringIO(text),
        usecols=known,
        dtype=dict.fromkeys(texts, str),
        keep_default_na=False,
        na_values=[""],
        low_memory=False,
        skip_blank_lines=False,
    )
    frame["file"] = [table.path for table in tables for _ in table.lines]
    frame["line"] = [number for table in tables for number in table.numbers]
    for table in tables:
        table.lines.clear()
    return frame


def numeric(frame: pd.DataFrame, problems: list[Problem]) -> pd.DataFrame:
    """Without rows in which a number is none."""
    wrong = pd.Series(False, index=frame.index)
    for name in frame.columns:
        if KINDS.get(name) not in ("int", "float"):
            continue
        values = pd.to_numeric(frame[name], errors="coerce")
        finite = values.abs() < float("inf")
        if KINDS[name] == "int":
            finite &= values % 1 == 0
        wrong |= frame[name].notna() & ~finite.astype(bool)
        frame[name] = values
    wrong |= frame["benchmark"].isna()
    for row in frame[wrong].itertuples():
        problems.append(
            Problem(row.file, row.line, "a field is not what its column holds; left out")
        )
    return frame[~wrong]


def complete(
    frames: list[pd.DataFrame],
    record: type[Any],
    runs: Mapping[str, Mapping[str, str]],
    assume: Mapping[str, Any],
) -> pd.DataFrame:
    """One table with all columns of ``record``, each of its kind, and what metadata adds.

    ``frames`` is emptied, for results may be many.
    """
    names = [*columns(record), *EXTRA]
    if unknown := sorted(set(assume) - set(names)):
        raise UsageError(f"there is no column {unknown[0]!r}: choose from {', '.join(names)}")
    parts = []
    while frames:
        parts.append(to_frame(frames.pop(0), names))
    frame = pd.concat(parts, ignore_index=True) if parts else to_frame(pd.DataFrame(), names)
    del parts
    told = {run: from_metadata(data) for run, data in runs.items()}
    for place, name in enumerate(("suite", "mpi", "hosts")):
        by_run = frame["run"].map({run: values[place] for run, values in told.items()})
        frame[name] = fill(frame[name], convert_types(by_run, name))
    frame["run"] = fill(frame["run"], frame["file"])
    for name, value in assume.items():
        frame[name] = fill(frame[name], value)
    if "validation" in frame:
        frame["validated"] = frame["validation"].notna().astype(object)
    return frame


def to_frame(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """A table with these columns alone, each of its kind; missing where there is none."""
    missing = pd.Series(float("nan"), index=frame.index)
    return pd.DataFrame({name: convert_types(frame.get(name, missing), name) for name in names})


def kind_of(name: str) -> str:
    """What a column holds, as in `KINDS`."""
    kinds = {"hosts": "int", "line": "int", "validated": "bool"}
    return kinds.get(name) or KINDS.get(name, "str")


def convert_types(values: pd.Series, name: str) -> pd.Series:
    """A column's values as its kind, missing where they cannot be."""
    kind = kind_of(name)
    if kind == "int":
        return pd.to_numeric(values, errors="coerce").astype("Int64")
    if kind == "float":
        return pd.to_numeric(values, errors="coerce").astype("float64")
    if kind == "bool":
        truths = {"True": True, "False": False, True: True, False: False}
        return values.map(truths).astype(object)
    return values.astype(TEXT)


def fill(values: pd.Series, others: Any) -> pd.Series:
    """A column with what is missing taken from another or from one value."""
    return values.where(values.notna(), others)


def from_metadata(data: Mapping[str, str]) -> tuple[str | None, str | None, int | None]:
    """Suite, MPI library and number of hosts of a run of ours."""
    suite = f"omb-py {data['omb_py']}" if "omb_py" in data else None
    hosts = len(data["hosts"].split()) if data.get("hosts") else None
    return suite, library(data.get("mpi_library", "")), hosts


def library(text: str) -> str | None:
    """The MPI library and its version from what it says of itself, as in ``Open MPI 5.0.11``.

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
