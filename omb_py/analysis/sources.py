"""Repeated runs: rows of one configuration, without copies of a run and files of unknown origin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

import pandas as pd

from omb_py.analysis.values import of_text, own_number
from omb_py.core.errors import UsageError
from omb_py.core.text.words import count, first_of
from omb_py.results.columns import CONFIGURATION, EXPERIMENT
from omb_py.results.readers import Problem

UNSAID = ("mpi", "ranks", "hosts")
"""Columns that rows of two files must have to be recognised as repeated runs."""

IN_WORDS = {"mpi": "MPI library", "ranks": "number of ranks", "hosts": "number of hosts"}

MANY_SCALES = (
    "; if they ran on different numbers of ranks, give each number with a pattern of its files' "
    "names: --assume 'PATTERN:ranks=...'"
)

MAX_FILES = 6
"""Files that a note names."""

SIGNIFICANT = 6
"""Digits to which two formats write the same number."""

SHARED = ("benchmark", "part", "bytes", "binding")
"""Columns that two formats of a run share besides its numbers."""

ENOUGH_DIGITS = 8
"""Digits that a table and a run have in common by chance hardly ever."""


def label_sources(
    rows: pd.DataFrame, arguments: Sequence[str] = (), names: Sequence[str] = ()
) -> tuple[pd.DataFrame, list[str]]:
    """Return rows with the column ``source``, the file that distinguishes lines, and notes about
    it.

    Rows without all of `UNSAID` are repeated runs only within one file: if several files have the
    same benchmark with the same known columns, ``source`` is the file's name.

    ``arguments`` are files and folders that a user named to compare them. If two of them have a
    benchmark with the same configuration and size, ``source`` of all of its rows is their argument;
    rows that one folder has twice are repeated runs. ``names`` are labels of the arguments that all
    rows then have; arguments with the same name are repeated runs of each other. Raises
    `UsageError` unless there is one for each argument.

    Elsewhere ``source`` is missing.
    """
    if names and len(names) != len(arguments):
        raise UsageError(
            f"--name: {len(arguments)} files or folders need as many names, and {len(names)} are "
            "given"
        )
    rows, notes = label_unsaid(rows)
    if len(arguments) < 2 and not names:
        return rows, notes
    argument = rows["file"].map(argument_of(rows["file"].dropna().unique(), arguments))
    if names:
        return label_named(rows, argument, dict(zip(arguments, names, strict=True))), []
    rows, more = label_arguments(rows, argument, short_names(arguments))
    return rows, [*notes, *more]


def label_named(rows: pd.DataFrame, argument: pd.Series, names: Mapping[str, str]) -> pd.DataFrame:
    """Return rows whose ``source`` is the name of their ``argument``.

    Files of a folder that `label_unsaid` keeps apart have their own name behind it.
    """
    labels = argument.map(names)
    in_folder = rows["source"].notna() & (
        rows["file"] != argument.map(lambda path: str(PurePath(path)))
    )
    labels = labels.where(~in_folder, labels.str.cat(rows["source"].astype(object), ", "))
    return rows.assign(source=labels.where(labels.notna(), rows["source"]))


def label_arguments(
    rows: pd.DataFrame, argument: pd.Series, names: Mapping[str, str]
) -> tuple[pd.DataFrame, list[str]]:
    """Return rows whose ``source`` is the name of their ``argument`` if several have a benchmark
    with the same configuration and size, and notes."""
    several = alike(rows, argument, "bytes") > 1
    repeated = rows["benchmark"].isin(rows.loc[several, "benchmark"].unique())
    labeled = repeated & rows["source"].isna()
    if not labeled.any():
        return rows, []
    labels = argument.map(names)
    shown = list(dict.fromkeys(labels[labeled].dropna()))
    return rows.assign(source=rows["source"].where(~labeled, labels)), [
        f"{len(shown)} files or folders have the same benchmarks, measured in the same way, so "
        f"they are side by side: {first_of(shown, MAX_FILES)}; if they are repeated runs, give "
        "each the same --name"
    ]


def alike(rows: pd.DataFrame, of: pd.Series, *more: str) -> pd.Series:
    """Return for each row how many values of ``of`` the rows of its configuration have."""
    columns = [name for name in (*EXPERIMENT, *CONFIGURATION, *more) if rows[name].notna().any()]
    return of.groupby([rows[name] for name in columns], dropna=False).transform("nunique")


def label_unsaid(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return rows whose ``source`` is their file if they lack columns of repeated runs, and
    notes."""
    rows = rows.assign(source=pd.Series(None, index=rows.index, dtype=object))
    mask = rows[list(UNSAID)].isna().any(axis=1) & rows["file"].notna()
    if rows["file"][mask].nunique() < 2:
        return rows, []
    unsaid = rows.loc[mask, [*EXPERIMENT, *CONFIGURATION, "file"]]  # not all: rows may be many
    unsaid = unsaid[alike(unsaid, unsaid["file"]) > 1]
    if unsaid.empty:
        return rows, []
    names = short_names(unsaid["file"].unique())
    rows.loc[unsaid.index, "source"] = unsaid["file"].map(names)
    missing = [name for name in UNSAID if unsaid[name].isna().any()]
    return rows, [
        f"{len(names)} files do not say their {' and '.join(IN_WORDS[name] for name in missing)}, "
        "so they are kept apart, not taken for repeated runs: "
        f"{first_of(list(names.values()), MAX_FILES)}; if they are repeated runs, add "
        + " ".join(f"--assume {name}=..." for name in missing)
        + (MANY_SCALES if "ranks" in missing else "")
    ]


def argument_of(files: Iterable[str], arguments: Iterable[str]) -> dict[str, str]:
    """Return the argument of the command line that each file was read for: itself, or its
    folder."""
    places = [(PurePath(argument), argument) for argument in arguments]
    places.sort(key=lambda place: -len(place[0].parts))
    found = {
        file: next((name for path, name in places if PurePath(file).is_relative_to(path)), None)
        for file in files
    }
    return {file: name for file, name in found.items() if name is not None}


def short_names(files: Iterable[str]) -> dict[str, str]:
    """Return the shortest end of each path that distinguishes it from the others.

    >>> short_names(["old/a.txt", "new/a.txt", "new/b.txt"])
    {'old/a.txt': 'old/a.txt', 'new/a.txt': 'new/a.txt', 'new/b.txt': 'b.txt'}
    """
    parts = {file: PurePath(file).parts for file in files}
    counts = Counter(ends for path in parts.values() for ends in endings(path))
    return {
        file: next(("/".join(end) for end in endings(path) if counts[end] == 1), file)
        for file, path in parts.items()
    }


def endings(parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the last part, the last two parts and so on."""
    return (parts[-count:] for count in range(1, len(parts) + 1))


def without_copies(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[Problem]]:
    """Return rows without second copies of a run, and the problems of the rows left out.

    A run is there twice as the same rows in two files (a copy, or its CSV and its JSON), as copies
    of a text, and as omb-py's text next to the CSV that has all digits of its numbers.
    """
    if rows["file"].nunique() < 2:
        return rows, []
    copied = same_run(rows)
    texts = of_text(rows)
    if bool(texts.any()):
        copied |= same_text(rows[texts])
        copied |= duplicates_of(rows[texts], rows[~texts & ~rows.index.isin(list(copied))])
    counts = Counter((rows.at[index, "file"], other) for index, other in copied.items())
    problems = [
        Problem(
            file,
            None,
            f"{count(rows, 'row')} of a run that is in {other}, too: counted once",
            lost=False,
        )
        for (file, other), rows in counts.items()
    ]
    return rows.drop(index=list(copied)).reset_index(drop=True) if copied else rows, problems


def same_run(rows: pd.DataFrame) -> dict[int, str]:
    """Return the rows that another file has of the same run to the last digit, with that file."""
    runs = rows[["run", "file"]].drop_duplicates()["run"]
    rows = rows[rows["run"].isin(runs[runs.duplicated()])]
    names = ["run", "benchmark", "part", "binding", "bytes", "window", "sender", "receiver"]
    columns = rows.columns.intersection(names)
    rows = rows[rows.duplicated(list(columns), keep=False)]  # few, of which all is then compared
    if rows.empty:
        return {}
    shown = rows.drop(columns=["file", "line", "percentiles"], errors="ignore").astype(object)
    for name in rows.columns[rows.dtypes == "float64"].intersection(shown.columns):
        shown[name] = rows[name].map(f"{{:.{SIGNIFICANT - 1}e}}".format)
    groups = shown.groupby(list(shown.columns), dropna=False).ngroup()
    first = rows["file"].groupby(groups).transform("first")
    other = rows["file"] != first
    return {int(index): str(first[index]) for index in rows.index[other]}


def numbers_of(rows: pd.DataFrame) -> set[tuple[str, ...]]:
    """Return the numbers of rows with their runs: two measurements have none in common."""
    return set(shown_of(rows, ("run", *SHARED), str))


def same_text(texts: pd.DataFrame) -> dict[int, str]:
    """Return the rows of texts that another file has number by number, with that file.

    Texts of few numbers may be equal by chance, so they count as repeated runs.
    """
    first: dict[tuple[tuple[str, ...], ...], str] = {}
    found: dict[int, str] = {}
    keys = pd.Series(shown_of(texts), texts.index, dtype=object)
    for file, own in keys.groupby(texts["file"], sort=False):
        key = tuple(own)
        other = first.setdefault(key, str(file))
        if other != file and len({one[-1] for one in key}) >= ENOUGH_DIGITS:
            found |= dict.fromkeys(map(int, own.index), other)
    return found


def duplicates_of(texts: pd.DataFrame, others: pd.DataFrame) -> dict[int, str]:
    """Return the rows of our own text that a run of another file has with more digits, with that
    file."""
    if "bandwidth_MBps" not in texts:
        return {}
    ours = texts[texts["suite"].str.startswith("omb-py", na=False)]
    others = others[others["benchmark"].isin(ours["benchmark"].unique())]
    if ours.empty or others.empty:
        return {}
    there: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for key, file, run in zip(shown_of(others), others["file"], others["run"], strict=True):
        there.setdefault(key, set()).add((str(file), str(run)))
    found: dict[int, str] = {}
    for _, table in ours.groupby(["run", "benchmark"], sort=False):
        keys = shown_of(table)
        file = PurePath(str(table["file"].iloc[0]))
        enough = sum(len(text) for text in {key[-1] for key in keys}) >= ENOUGH_DIGITS
        both = set.intersection(*(there.get(key, set()) for key in keys))
        for other, _run in sorted(both):
            if enough or PurePath(other).with_suffix("") == file.with_suffix(""):
                found |= dict.fromkeys(map(int, table.index), other)
                break
    return found


def shown_of(
    rows: pd.DataFrame,
    names: Sequence[str] = SHARED,
    written: Callable[[float], str] = "{:.2f}".format,
) -> list[tuple[str, ...]]:
    """Return columns as texts, then the row's own number, by default with the digits of text."""
    columns = [rows[name].astype(object) for name in names]
    texts = [column.map(str).where(column.notna(), "") for column in columns]
    return list(zip(*texts, own_number(rows).map(written), strict=True))
