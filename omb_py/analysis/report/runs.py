"""What ran where: metadata of runs, said once where runs share it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from omb_py.analysis.table import library
from omb_py.core.text.tables import Sheet
from omb_py.core.text.words import count, first_of

OWN = ("run", "command", "other_processes", "launch_seconds", "iterating_seconds")
"""Metadata that every run has of its own: it does not make a group."""

VARIABLE = "environment "
"""Before the name of a variable of the environment, among names of fields."""

DETAILS = "the library says"
"""The whole text of an MPI library about itself, which differs wherever the library does."""

TITLES = {
    "mpi": "MPI library",
    "hosts": "Hosts and ranks",
    "omb_py": "omb-py",
    "mpi_standard": "MPI standard",
    "mpi_abi": "MPI's ABI",
    "mpi_library_path": "File of the MPI library",
    "mpi4py": "mpi4py",
    "numpy": "NumPy",
    "cupy": "CuPy",
    "pycuda": "PyCUDA",
    "torch": "PyTorch",
    "device": "GPU",
    "cuda": "CUDA",
    "devices": "GPU of each rank",
}
"""What a reader knows metadata by, where it is not the field's own name."""

LONGEST = 300
"""Characters of a field that are shown; configure lines of MPI libraries are longer."""

MAX_COLUMNS, MAX_WIDTH = 7, 60
"""Fields that are columns of the table, and characters of their texts; others share a column."""

MAX_GROUPS, MAX_COMMANDS = 100, 5
"""Rows of the table, and commands of one row."""

MACHINE = ("processor", "device", "system")
"""Metadata that the head of the page names a machine by, besides its hosts."""

MAX_NAMES = 3
"""Hosts, processors or libraries that the head of the page names."""


@dataclass(frozen=True)
class Origin:
    """When and where results were measured, with what and by which command; as far as files say.

    ``conditions`` are those of the first run that has some, ``commands`` counts all different
    commands, of which ``command`` is the first.
    """

    when: str
    machine: str
    conditions: str
    software: str
    command: str
    commands: int


def origin(rows: pd.DataFrame, runs: Mapping[str, Mapping[str, str]]) -> Origin:
    """What the head of the page says of all runs that rows are of."""
    names = present(rows, runs)
    metadata = [runs[run] for run in names]

    def unique(field: str) -> list[str]:
        return list(dict.fromkeys(data[field] for data in metadata if data.get(field)))

    def listed(values: Iterable[object]) -> str:
        return first_of([str(value) for value in values if not pd.isna(value)], MAX_NAMES)

    hosts = [host.rpartition(":")[0] or host for text in unique("hosts") for host in text.split()]
    hosts = list(dict.fromkeys(hosts))
    hosts_text = f"{'host' if len(hosts) == 1 else count(len(hosts), 'host') + ':'} {listed(hosts)}"
    ranks = sorted(int(number) for number in rows["ranks"].dropna().unique())
    ranks_text = f"{ranks[0]} to " * (len(ranks) > 1) + count(ranks[-1], "rank") if ranks else ""
    machine = [hosts_text if hosts else "", *map(listed, map(unique, MACHINE))]
    software = [listed(rows["mpi"].unique()), listed(rows["suite"].unique()), ranks_text]
    commands = unique("command")
    return Origin(
        when=span(names),
        machine=" · ".join(filter(None, machine)),
        conditions=next(iter(unique("conditions")), ""),
        software=" · ".join(filter(None, software)),
        command=short(commands[0]) if commands else "",
        commands=len(commands),
    )


def places(
    rows: pd.DataFrame, runs: Mapping[str, Mapping[str, str]]
) -> tuple[Sheet, tuple[tuple[str, str], ...]]:
    """A table of the runs with what differs between them, most runs first; and what they share."""
    there = present(rows, runs)
    every = [(described(runs[run]), run) for run in there]
    every += [(fields, "") for fields in of_rows_without(rows[~rows["run"].isin(there)])]
    table = pd.DataFrame([fields for fields, _ in every]).fillna("")
    table = table[sorted(table.columns, key=place)]
    differing = [name for name in table if table[name].nunique() > 1]
    narrow = [name for name in differing if table[name].str.len().max() <= MAX_WIDTH][:MAX_COLUMNS]
    others = [name for name in differing if name not in narrow]
    alike: dict[tuple[str, ...], list[str]] = {}
    for fields, (_, run) in zip(table.to_dict("records"), every, strict=True):
        rest = "; ".join(f"{title(name)}: {fields[name]}" for name in others if fields[name])
        cells = [*(fields[name] or "-" for name in narrow), *[rest] * bool(others)]
        alike.setdefault(tuple(cells), []).append(run)
    heads = [*map(title, narrow), *["Other differences"] * bool(others)]
    order = sorted(alike.items(), key=lambda item: -len(item[1]))
    left_out = len(order) - MAX_GROUPS
    sheet = Sheet(
        "Runs",
        ("Runs", *heads, "Started", "Commands"),
        tuple(
            (str(len(names)), *cells, span(names), commands(names, runs))
            for cells, names in order[:MAX_GROUPS]
        ),
        (f"and {left_out} more kinds of runs",) * (left_out > 0),
        left=3 + len(heads),
    )
    shared = [name for name in table if name not in differing]
    return sheet, tuple((title(name), str(table[name].iloc[0]) or "none") for name in shared)


def commands(members: Iterable[str], runs: Mapping[str, Mapping[str, str]]) -> str:
    """The different commands of runs, a line each."""
    there = dict.fromkeys(runs.get(run, {}).get("command", "") for run in members)
    listed = [short(command) for command in there if command]
    more = [f"and {len(listed) - MAX_COMMANDS} more"] * (len(listed) > MAX_COMMANDS)
    return "\n".join([*listed[:MAX_COMMANDS], *more])


def present(rows: pd.DataFrame, runs: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Runs with metadata that rows are of."""
    return [run for run in rows["run"].dropna().unique() if runs.get(run)]


def of_rows_without(rows: pd.DataFrame) -> Iterator[dict[str, str]]:
    """What rows themselves tell of runs that have no metadata, a run for each file."""
    for _, row in rows[["file", "suite", "mpi", "ranks"]].drop_duplicates().iterrows():
        fields = {name: str(value) for name, value in row.iloc[1:].items() if not pd.isna(value)}
        yield {"metadata": "none in the file", **fields}


def described(data: Mapping[str, str]) -> dict[str, str]:
    """Metadata as fields of the page; each environment variable is one by itself."""
    fields = {name: short(text) for name, text in data.items() if name not in OWN}
    if name := library(fields.get("mpi_library", "")):
        fields["mpi"], fields[DETAILS] = name, fields.pop("mpi_library")
    environment = fields.pop("environment", "")
    try:
        words = shlex.split(environment)
    except ValueError:
        words = [environment]
    for word in words:
        name, _, text = word.partition("=")
        fields[f"{VARIABLE}{name}"] = text
    return fields


def short(text: str) -> str:
    """A text that fits the page."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def title(name: str) -> str:
    """What the page calls a field of metadata."""
    if name.startswith(VARIABLE):
        return name.removeprefix(VARIABLE)
    return TITLES.get(name, name.replace("_", " ").capitalize())


def place(name: str) -> int:
    """Where a field stands: those that people look for first, the environment last."""
    first = ("mpi", "hosts", "ranks", "thread_level", "processor", "conditions", "suite", "omb_py")
    return first.index(name) if name in first else len(first) + name.startswith(VARIABLE)


def span(members: list[str]) -> str:
    """From when to when runs were started, in UTC, as their names have it."""
    times = sorted(
        f"{match[1]}-{match[2]}-{match[3]} {match[4]}:{match[5]}"
        for run in members
        if (match := re.match(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)\d\dZ-", run))
    )
    if not times:
        return ""
    first, last = times[0], times[-1]
    if first == last:
        return f"{first} UTC"
    return f"{first} to {last[11:] if first[:10] == last[:10] else last} UTC"
