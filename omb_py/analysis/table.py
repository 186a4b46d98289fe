"""Files of results of any suite as one table."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

from omb_py.analysis.judging import wrong_data
from omb_py.analysis.points import group_ids
from omb_py.analysis.sources import label_sources, without_copies
from omb_py.analysis.values import WORDS, own_number, with_values
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.mpi import rules
from omb_py.core.text.words import count, from_csv_cell
from omb_py.results import application, metadata
from omb_py.results.application import ApplicationRow
from omb_py.results.columns import (
    COLUMNS,
    IDENTITY,
    LOADED,
    SOFTWARE,
    OverheadRow,
    PairRow,
    Row,
)
from omb_py.results.metadata import TURN, Runs
from omb_py.results.readers import (
    COMPRESSED,
    Found,
    NoResultsError,
    Problem,
    Table,
    has_marks,
    parts_of_file,
)
from omb_py.results.samples import is_samples

SUFFIXES = (".csv", ".json", ".jsonl", ".parquet", ".txt", ".log", ".out", ".dat")
"""Files of a folder that are looked into."""

OF_PROGRAMS = (".txt", ".log", ".out", ".dat")
"""Those that hold what a program printed, whatever came of it."""

OF_RESULTS: tuple[type[Any], ...] = (Row, OverheadRow, PairRow)
RECORDS = (*OF_RESULTS, ApplicationRow)
"""Kinds of rows: a benchmark, a comparison of bindings, a pair of ranks, an application."""

OF_APPLICATIONS = "results of applications are left out: omb-py show --speedup shows them"

RECORD = ".record"
NO_RESULTS = re.compile(r"software\.json|.*\.summary\.json")
"""Other files in folders of results: a sweep's software, a launch's summary."""

OF_PROFILE = re.compile(r"profile\.(txt|csv)|traffic-\d+\.json")
"""Files that `omb-py profile` writes next to its records."""

LONGEST_NUMBER = 40
"""Characters beyond which a field is no number: conversions of some take long or fail."""

TEXT = pd.Series(["text"]).dtype
"""The type of text in this pandas: a separate type since 3, objects before."""

DTYPES: dict[str, Any] = {"int": "Int64", "float": "float64", "bool": object, "str": TEXT}
"""The type of a column, by its kind."""

LIBRARY = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9 _-]*?)[\s:v]+(?P<version>\d+(\.\d+)+\S*)")

Paths = str | Path | Iterable[str | Path]


@dataclass(frozen=True, repr=False)
class Results:
    """All results that were read; ``len`` is the number of rows of all kinds.

    ``rows`` has the columns of `Row` and `LOADED`, ``overhead`` and ``pairs`` those of
    `OverheadRow` or `PairRow` and `LOADED`; numbers are floats or nullable integers, missing if a
    suite does not print them. ``runs`` is the metadata of each run by its name, ``problems`` are
    the parts left out, ``notes`` remarks about the rest.
    """

    rows: pd.DataFrame
    overhead: pd.DataFrame
    runs: Runs
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    pairs: pd.DataFrame

    @property
    def comparable(self) -> pd.DataFrame:
        """The rows, those of a gate without the ranks of their group: in each job other hosts have
        them."""
        gates = {run for run, data in self.runs.items() if TURN in data}
        return self.rows.assign(group=self.rows["group"].mask(self.rows["run"].isin(gates)))

    def __len__(self) -> int:
        return len(self.rows) + len(self.overhead) + len(self.pairs)

    def __repr__(self) -> str:
        names = {
            name for one in (self.rows, self.overhead, self.pairs) for name in one["benchmark"]
        }
        of = f"{count(len(names), 'benchmark')} in {count(len(self.runs), 'run')}"
        return f"<Results: {count(len(self), 'row')} of {of}>"

    def to_pandas(self) -> pd.DataFrame:
        """Return ``rows`` without empty columns; if there are none, ``overhead`` or ``pairs``."""
        tables = (one for one in (self.rows, self.overhead, self.pairs) if len(one))
        table = next(tables, self.rows).dropna(axis="columns", how="all")
        return table.astype({name: "boolean" for name in table if kind_of(name) == "bool"})

    @property
    def lost(self) -> list[str]:
        """The problems that may have cost results: no gate passes over them."""
        return [str(one) for one in self.problems if one.lost]


def load(paths: Paths, assume: Mapping[str, Any] | None = None) -> Results:
    """Read files, and folders with all files below them; applications are left out.

    ``assume`` gives columns a value if the files have none: native OMB does not print its number of
    ranks. A mapping has values by patterns of files' names; the first that matches counts. Raises
    `OmbError` when a file that was named cannot be read or holds no result, or when a folder
    holds none; other trouble becomes a problem.
    """
    known = dict.fromkeys([*(n for record in OF_RESULTS for n in record.columns), *LOADED])
    if unknown := sorted(set(assume or {}) - set(known)):
        raise UsageError(f"there is no column {unknown[0]!r}: choose from {', '.join(known)}")
    paths = [paths] if isinstance(paths, str | Path) else list(paths)
    for one in paths:
        if not isinstance(one, str | Path):
            raise no_results(one)
    read, runs, problems = tables_of(paths, assume or {})
    benchmarks, overhead, pairs = (read[record] for record in OF_RESULTS)
    useful = {file for rows in (benchmarks, overhead, pairs) for file in rows["file"].unique()}
    for file in read[ApplicationRow]["file"].unique():
        if file not in useful and (not useful or file in map(str, map(Path, paths))):
            raise OmbError(f"{file}: {OF_APPLICATIONS}")
        problems.append(Problem(file, None, OF_APPLICATIONS, lost=False))
    problems += not_above_zero(benchmarks)
    for file, line, text in wrong_data(benchmarks):  # which fail by themselves
        text = f"{text}: no figure, ratio or verdict has them"
        problems.append(Problem(file, line, text, lost=False))
    benchmarks, notes = label_sources(benchmarks)
    return Results(benchmarks, overhead, runs, tuple(problems), tuple(notes), pairs)


Source: TypeAlias = Paths | Results | pd.DataFrame | list[dict[str, Any]]
"""Files or folders, results, or a table or list of rows of one kind; `results_of` takes
`omb_py.run`'s."""


def no_results(source: object) -> UsageError:
    """Return the error for an argument that is no source."""
    return UsageError(
        f"a {type(source).__name__} has no results: give a path, what omb_py.load or "
        "omb_py.run returned, or a table of their rows"
    )


def results_of(source: Source) -> Results:
    """Return a source as results; columns that a table lacks are empty.

    Raises `OmbError` for anything else, and as `load` does.
    """
    if isinstance(source, Results):
        return source
    if isinstance(source, list) and source and isinstance(source[0], dict):
        table = pd.DataFrame(source)
    elif isinstance(source, str | Path | list | tuple):
        return load(source)  # type: ignore[arg-type]
    else:
        table = source if isinstance(source, pd.DataFrame) else getattr(source, "to_pandas", list)()
    if not isinstance(table, pd.DataFrame) or "benchmark" not in table:
        raise no_results(source)
    kind = record_of(table.columns)
    names = {Row: "rows", OverheadRow: "overhead", PairRow: "pairs"}
    none, runs = of_rows([], {}), getattr(source, "runs", {})
    missing = columns_without_values(table)
    whole: dict[str, pd.Series] = {}
    for name in dict.fromkeys([*getattr(none, names[kind]), *table]):
        if name not in table:
            whole[name] = missing[kind_of(name, kind)]
        elif name in COLUMNS:
            whole[name] = convert_types(table[name], name, kind)
        else:
            whole[name] = table[name]
    return replace(none, runs=runs, **{names[kind]: pd.DataFrame(whole)})


def tables_of(
    paths: Iterable[str | Path], assume: Mapping[str, Any]
) -> tuple[dict[type[Any], pd.DataFrame], dict[str, dict[str, str]], list[Problem]]:
    """Return the rows of files and folders by their record, the runs, and the problems (`load`)."""
    runs: dict[str, dict[str, str]] = {}
    problems: list[Problem] = []
    tables: dict[tuple[str, ...], list[Table]] = {}
    rows: dict[type[Any], list[dict[str, Any]]] = {record: [] for record in RECORDS}
    known: dict[str, Path] = {}
    for path in dict.fromkeys(map(Path, paths)):
        for file, found in contents(path, problems, assume, known):
            problems.extend(mixed_up(file, found.runs, runs))
            runs.update(found.runs)
            problems.extend(found.problems)
            for table in found.tables:
                tables.setdefault(table.columns, []).append(table)
            for row in found.rows:
                rows[record_of(row)].append({**row, "file": str(file)})
    read = {}
    for record in RECORDS:
        same = {names: own for names, own in tables.items() if record_of(names) is record}
        frames = [parse(names, own, problems) for names, own in same.items()]
        frames += [pd.DataFrame(rows[record])] * bool(rows[record])
        read[record], copies = without_copies(complete(frames, record, runs, assume))
        problems += copies
    return read, runs, problems


def mixed_up(file: Path, new: Runs, known: Runs) -> Iterator[Problem]:
    """Yield a problem for each run whose name another run on other hosts has, by chance or by hand.

    Its rows would be of the hosts that were read last.
    """
    for run, data in new.items():
        hosts, others = data.get("hosts"), known.get(run, {}).get("hosts")
        if hosts and others and hosts != others:
            text = f"run {run} is of {hosts} here, and of {others} in another file: rename one"
            yield Problem(str(file), None, text)


def not_above_zero(rows: pd.DataFrame) -> Iterator[Problem]:
    """Yield problems of rows with unusable numbers: a clock that steps, or too few decimals.

    A result is lost by one if another launch of its point has a number. If all have none, commands
    that ask for the point find it missing.
    """
    own = own_number(rows)
    right = rows["latency_us"].isna() & (rows["bytes"] == 0)  # no bytes have no bandwidth
    suspects = rows[~(own > 0) & ~right]
    if suspects.empty:
        return
    point = group_ids(rows[name] for name in (*IDENTITY, "host_names", "bytes") if name in rows)
    lost = (own > 0).groupby(point).transform("any")
    empty = own[suspects.index].isna()
    for row in with_values(suspects[~empty]).itertuples():
        if pd.isna(row.value):
            text = f"a {WORDS[row.unit].lower()} of {own[row.Index]:g} {row.unit} is not above 0"
            text += ": no figure or ratio has it"
            yield Problem(str(row.file), line_of(row.line), text, lost=bool(lost[row.Index]))
    for row in suspects[empty & lost[suspects.index]].itertuples():
        text = f"{row.benchmark}: a row has no number, and another launch has one: left out"
        yield Problem(str(row.file), line_of(row.line), text)


def line_of(value: Any) -> int | None:
    """Return the number of a line, None if it is missing."""
    return None if pd.isna(value) else int(value)


def of_rows(rows: list[dict[str, Any]], runs: Runs) -> Results:
    """Return rows of one kind that were just measured, as if read from a file."""
    measured = {record_of(rows[0]): [pd.DataFrame(rows)]} if rows else {}
    benchmarks, overhead, pairs = (
        complete(measured.get(kind, []), kind, runs, {}) for kind in OF_RESULTS
    )
    return Results(benchmarks, overhead, runs, (), (), pairs)


def assumed(assume: Mapping[str, Any], name: str, file: Path) -> Any:
    """Return the assumed value of a column in a file; ``*`` is what that of the pattern stands for.

    >>> assumed({"host_names": {"*-n2.txt": "*"}}, "host_names", Path("results/node07-n2.txt"))
    'node07'
    """
    values = assume.get(name)
    if not isinstance(values, Mapping):
        return values
    pattern = next((one for one in values if file.match(one)), None)
    if pattern is None or values[pattern] != "*":
        return values.get(pattern)
    own = "/".join(file.parts[-len(Path(pattern).parts) :])
    found = re.fullmatch(re.escape(pattern).replace(r"\*", "([^/]*)").replace(r"\?", "."), own)
    return found[1] if found and found.re.groups else None


def contents(
    path: Path, problems: list[Problem], assume: Mapping[str, Any], known: dict[str, Path]
) -> Iterator[tuple[Path, Found]]:
    """Yield the contents of a file or of a folder's files; files without results become problems.

    ``known`` has the files that were read, by their real paths: a file is read once, by whatever
    names, for its rows would be repeated launches of each other. A file of a folder that holds
    something else may be a run that failed, so it is lost, if a text next to it with its suffix, or
    a file of its name elsewhere in the folder, is of results. Raises `OmbError` if the file, or
    every file of the folder, is without results.
    """

    def is_new(file: Path) -> bool:
        first = known.setdefault(os.path.realpath(file), file)  # of a loop of links, too
        if first is not file:
            text = f"is {first}, which was read: counted once"
            problems.append(Problem(str(file), None, text, lost=False))
        return first is file

    if not path.is_dir():
        if not is_new(path):
            return
        if is_samples(path):
            raise UsageError(f"{path} holds samples, not rows: numpy.load reads them")
        benchmark = assumed(assume, "benchmark", path)
        yield from ((path, found) for found in parts_of_file(path, benchmark))
        return
    unusable: list[Problem] = []
    others: list[tuple[Path, Problem]] = []
    usable: list[Path] = []
    for file in sorted(found_in(path, unusable)):
        if not is_new(file):
            usable.append(file)
            continue
        try:
            benchmark = assumed(assume, "benchmark", file)
            yield from ((file, found) for found in parts_of_file(file, benchmark))
            usable.append(file)
        except NoResultsError as error:
            others.append((file, Problem(str(file), None, f"left out: {error}")))
        except OmbError as error:
            unusable.append(Problem(str(file), None, f"left out: {error}"))
    texts = {(file.parent, file.suffix) for file in usable if file.suffix in OF_PROGRAMS}
    names = {file.name for file in usable}
    for file, problem in others:
        lost = file.name in names or (file.parent, file.suffix) in texts or has_marks(file)
        unusable.append(replace(problem, lost=lost))
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

    def left_out(path: str | Path, why: str, lost: bool = True) -> None:
        problems.append(Problem(str(path), None, f"left out: {why}", lost=lost))

    def unreadable(error: OSError) -> None:
        left_out(error.filename, error.strerror or str(error))

    for where, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in [Path(where, name) for name in folders]:
            if path.is_symlink():
                why = "a link to a folder is not followed, name the folder itself"
                left_out(path, why, lost=not path.resolve().is_relative_to(folder.resolve()))
        of_profile = any(name.endswith(RECORD) for name in files)
        for path in [Path(where, name) for name in sorted(files)]:
            others = NO_RESULTS.fullmatch(path.name) or path.name.startswith(".")
            if others or (of_profile and OF_PROFILE.fullmatch(path.name)):
                continue
            if why := why_unread(path):
                left_out(path, why)
            elif has_known_end(path):
                yield path


def has_known_end(path: Path) -> bool:
    """Return whether a name ends as those of results, compressed or rotated ones among them."""
    suffixes = [one for one in path.suffixes if one not in COMPRESSED and not one[1:].isdigit()]
    return bool(suffixes) and suffixes[-1] in SUFFIXES and not is_samples(path)


def why_unread(path: Path) -> str:
    """Return why a file that looks like results is not read; empty if it is, or has none."""
    if has_known_end(path):
        exists = "it is no regular file" if path.exists() else "a link to nothing"
        return "" if path.is_file() else exists
    if path.is_file() and has_marks(path):
        return f"it holds results, but does not end in {', '.join(SUFFIXES)}: name it itself"
    return ""


def record_of(names: Container[str]) -> type[Any]:
    """Return the record of a row's columns, one of `RECORDS`."""
    if "receiver_host" in names:
        return PairRow
    if "application" in names:
        return ApplicationRow
    return OverheadRow if "added_us" in names else Row


def parse(names: tuple[str, ...], tables: Sequence[Table], problems: list[Problem]) -> pd.DataFrame:
    """Join tables of the same columns; without rows in which a field is wrong."""
    stretches = [(table, *stretch) for table in tables for stretch in table.stretches]
    counts = [table.content.count(b"\n", start, end) for table, _, start, end in stretches]
    lines = [np.arange(n, n + count) for (_, n, *_), count in zip(stretches, counts, strict=True)]
    header = ",".join(names).encode() + b"\n"
    text = b"".join([header, *(table.content[start:end] for table, _, start, end in stretches)])
    record = record_of(names)
    known = [name for name in names if name in (*record.columns, *LOADED)]
    options = csv.ConvertOptions(
        column_types=dict.fromkeys(known, pa.string()),
        include_columns=known,
        null_values=[""],
        strings_can_be_null=True,
    )
    plain = text.decode(errors="replace").encode()
    found = csv.read_csv(pa.BufferReader(plain), convert_options=options)
    frame = pd.DataFrame({"file": np.repeat([table.path for table, *_ in stretches], counts)})
    frame = frame.assign(line=np.concatenate(lines))
    wrong = pd.Series(found[names[1]].is_null().to_numpy())
    for name in known:
        texts = found[name].to_pandas()
        if found[name].null_count < len(found) and kind_of(name, record) in ("int", "float"):
            values = pd.to_numeric(texts.where(texts.str.len() <= LONGEST_NUMBER), errors="coerce")
            right = values.abs() < float("inf")
            if kind_of(name, record) == "int":
                right &= values % 1 == 0
            wrong |= texts.notna() & ~right.astype(bool)
            texts = values
        else:
            coded = texts[texts.str.contains("%", regex=False, na=False)]
            texts[coded.index] = coded.map(from_csv_cell)
        frame[name] = texts
    for row in frame[wrong].itertuples():
        text_of_problem = "a field is not what its column holds; left out"
        problems.append(Problem(str(row.file), int(row.line), text_of_problem))
    return frame[~wrong]


def complete(
    frames: Sequence[pd.DataFrame], record: type[Any], runs: Runs, assume: Mapping[str, Any]
) -> pd.DataFrame:
    """Return one table with all columns of ``record``, typed, and with metadata filled in."""
    names = list(dict.fromkeys([*record.columns, *LOADED]))
    if not frames:
        return without_rows(record).copy()  # type: ignore[arg-type]  # mypy: a class has no hash
    whole = pd.concat(frames, ignore_index=True)
    missing = columns_without_values(whole)
    columns = {
        name: typed(whole[name], kind_of(name, record))
        if name in whole
        else missing[kind_of(name, record)]
        for name in names
    }
    frame = pd.DataFrame(columns)
    facts = {run: from_metadata(data) for run, data in runs.items()}
    for name in ("suite", "mpi", "hosts", "host_names", *SOFTWARE):
        of_runs = {run: values.get(name) for run, values in facts.items()}
        frame[name] = fill(frame[name], convert_types(frame["run"].map(of_runs), name))
    frame = with_hosts_of_groups(frame, runs) if "group" in frame else frame
    frame["run"] = fill(frame["run"], frame["file"])
    files = {file: Path(file) for file in frame["file"].dropna().unique()} if assume else {}
    for name in assume:
        if name in frame:
            values = {file: assumed(assume, name, path) for file, path in files.items()}
            frame[name] = fill(frame[name], convert_types(frame["file"].map(values), name))
    if "host_names" in assume:
        frame["hosts"] = fill(frame["hosts"], frame["host_names"].str.split().str.len())
    if "validation" in frame:
        frame["validated"] = frame["validation"].notna().astype(object)
    return frame


def columns_without_values(table: pd.DataFrame) -> dict[str, pd.Series]:
    """Return a column of missing values for each kind: another suite's file lacks most columns."""
    empty = pd.Series(np.nan, table.index)
    return {kind: typed(empty, kind) for kind in DTYPES}


@cache
def without_rows(record: type[Any]) -> pd.DataFrame:
    """Return a table with all columns of ``record``, typed, and no row."""
    return complete([pd.DataFrame({"run": [], "file": []})], record, {}, {})


def with_hosts_of_groups(frame: pd.DataFrame, runs: Runs) -> pd.DataFrame:
    """Return rows whose hosts are those of their group of ranks, where the run tells them."""
    of_group = frame[frame["group"].notna()]
    for run, members in of_group.groupby("run", sort=False):
        found = metadata.hosts_of_groups(runs.get(str(run), {}), members["group"].unique())
        known = members[members["group"].isin(found)]
        hosts = [found[group] for group in known["group"]]
        frame.loc[known.index, "hosts"] = [len(names) for names in hosts]
        frame.loc[known.index, "host_names"] = [" ".join(names) for names in hosts]
    return frame


def kind_of(name: str, record: type[Any] = Row) -> str:
    """Return the kind of a column's values: ``int``, ``float``, ``bool`` or ``str``."""
    if record is ApplicationRow and name in application.KINDS:
        return application.KINDS[name]
    return COLUMNS[name].type if name in COLUMNS else "str"


def convert_types(values: pd.Series, name: str, record: type[Any] = Row) -> pd.Series:
    """Return a column's values as its kind, missing if they cannot be."""
    return typed(values, kind_of(name, record))


def typed(values: pd.Series, kind: str) -> pd.Series:
    """Return values as a kind, missing if they cannot be."""
    if kind == "bool":
        values = values.astype(object).map({"True": True, "False": False, True: True, False: False})
    elif kind != "str":
        values = pd.to_numeric(values, errors="coerce")
    return values.astype(DTYPES[kind])


def fill(values: pd.Series, others: Any) -> pd.Series:
    """Return a column whose missing values are taken from another column or one value."""
    return values.where(values.notna(), others)


def from_metadata(data: Mapping[str, str]) -> dict[str, Any]:
    """Return the columns that the metadata of a run of ours fill."""
    found: dict[str, Any] = {name: data[name] for name in SOFTWARE if name in data}
    if "omb_py" in data:
        found["suite"] = f"omb-py {data['omb_py']}"
    if names := metadata.hosts_of_nodes(data):
        found |= {"hosts": len(names), "host_names": " ".join(sorted(names))}
    mpi = library(data.get("mpi_library", ""))
    if mpi and rules.METADATA in data:
        mpi = f"{mpi} with rules {data[rules.METADATA]}"
    return found | {"mpi": mpi}


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
