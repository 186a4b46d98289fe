"""What ran where: metadata of runs, said once where runs share it."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from omb_py.analysis.table import library
from omb_py.core.text.words import count, first_of

OWN = ("run", "command", "other_processes", "launch_seconds", "iterating_seconds")
"""Metadata that every run has of its own: it does not make a group."""

DETAILS = "the library says"
"""The whole text of an MPI library about itself, which differs wherever the library does."""

TITLES = {
    "mpi": "MPI library",
    "hosts": "Hosts and ranks",
    "ranks": "Ranks",
    "thread_level": "Thread level",
    "processor": "Processor",
    "conditions": "Conditions",
    "suite": "Suite",
    "omb_py": "omb-py",
    "mpi_standard": "MPI standard",
    "mpi_abi": "MPI's ABI",
    "mpi_library_path": "File of the MPI library",
    "session": "Started as a session",
    "system": "System",
    "python": "Python",
    "mpi4py": "mpi4py",
    "numpy": "NumPy",
    "cupy": "CuPy",
    "numba": "Numba",
    "pycuda": "PyCUDA",
    "torch": "PyTorch",
    "device": "GPU",
    "driver": "Driver",
    "cuda": "CUDA",
    "devices": "GPU of each rank",
    "pickle_protocol": "Protocol of pickle",
    "environment": "Environment",
    "profiler": "Profiler",
}
"""What a reader knows metadata by, in the order of the page."""

LONGEST = 300
"""Characters of a field that are shown; configure lines of MPI libraries are longer."""

MAX_COLUMNS = 7
MAX_WIDTH = 60
"""Fields that are columns of the table, and characters of their texts; what else differs is inside
its rows."""

MAX_GROUPS = 100
MAX_COMMANDS = 40


@dataclass(frozen=True)
class Field:
    """A field of a group; ``unusual`` where most runs have something else."""

    title: str
    text: str
    unusual: bool


@dataclass(frozen=True)
class Group:
    """Runs with the same metadata: what differs from others in columns, and besides them.

    ``span`` says when they were started; ``more`` counts commands that are not shown.
    """

    runs: int
    span: str
    differing: tuple[Field, ...]
    besides: tuple[Field, ...]
    commands: tuple[str, ...]
    more: int


@dataclass(frozen=True)
class Places:
    """Titles of the fields that differ, in columns and besides; groups; what all share.

    ``left_out`` counts groups beyond `MAX_GROUPS`.
    """

    differing: tuple[str, ...]
    besides: tuple[str, ...]
    groups: tuple[Group, ...]
    shared: tuple[tuple[str, str], ...]
    left_out: int


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

    hosts = list(
        dict.fromkeys(
            host.rpartition(":")[0] or host for text in unique("hosts") for host in text.split()
        )
    )
    ranks = sorted(int(number) for number in rows["ranks"].dropna().unique())
    commands = unique("command")
    return Origin(
        when=span(names),
        machine=" · ".join(
            filter(
                None,
                (
                    f"{'host' if len(hosts) == 1 else count(len(hosts), 'host') + ':'} "
                    f"{listed(hosts)}"
                    if hosts
                    else "",
                    listed(unique("processor")),
                    listed(unique("device")),
                    listed(unique("system")),
                ),
            )
        ),
        conditions=next(iter(unique("conditions")), ""),
        software=" · ".join(
            filter(
                None,
                (
                    listed(rows["mpi"].unique()),
                    listed(rows["suite"].unique()),
                    count(ranks[0], "rank")
                    if len(ranks) == 1
                    else f"{ranks[0]} to {ranks[-1]} ranks"
                    if ranks
                    else "",
                ),
            )
        ),
        command=short(commands[0]) if commands else "",
        commands=len(commands),
    )


def places(rows: pd.DataFrame, runs: Mapping[str, Mapping[str, str]]) -> Places:
    """The groups of all runs that have rows, most runs first."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for run in present(rows, runs):
        own = tuple((name, text) for name, text in runs[run].items() if name not in OWN)
        alike.setdefault(own, []).append(run)
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    found = [(described(dict(fields)), members) for fields, members in alike.items()]
    found += [(fields, [run]) for run, fields in of_rows_without(rows, runs).items()]
    for fields, members in found:
        groups.setdefault(tuple(sorted(fields.items())), []).extend(members)
    every = [dict(fields) for fields in groups]
    names = sorted({name for fields in every for name in fields}, key=place)
    differing = [name for name in names if len({fields.get(name, "") for fields in every}) > 1]
    narrow = [
        name
        for name in differing
        if all(len(text) <= MAX_WIDTH for fields in every for text in (name, fields.get(name, "")))
    ][:MAX_COLUMNS]
    differing = [*narrow, *(name for name in differing if name not in narrow)]
    usual = {name: commonest(groups, name) for name in differing}
    order = sorted(groups.items(), key=lambda item: -len(item[1]))
    return Places(
        differing=tuple(map(title, narrow)),
        besides=tuple(map(title, differing[len(narrow) :])),
        groups=tuple(
            group_of(dict(fields), members, usual, runs, len(narrow))
            for fields, members in order[:MAX_GROUPS]
        ),
        shared=tuple(
            (title(name), every[0][name] or "none") for name in names if name not in differing
        ),
        left_out=max(0, len(order) - MAX_GROUPS),
    )


def group_of(
    fields: Mapping[str, str],
    members: list[str],
    usual: Mapping[str, str],
    runs: Mapping[str, Mapping[str, str]],
    columns: int,
) -> Group:
    """A group for the page; ``usual`` has the fields that differ with what most runs have, first
    the ``columns`` of the table."""
    texts = [
        Field(title(name), fields.get(name, ""), fields.get(name, "") != common)
        for name, common in usual.items()
    ]
    commands = list(
        dict.fromkeys(runs[run]["command"] for run in members if runs.get(run, {}).get("command"))
    )
    return Group(
        runs=len(members),
        span=span(members),
        differing=tuple(texts[:columns]),
        besides=tuple(field for field in texts[columns:] if field.text),
        commands=tuple(short(command) for command in commands[:MAX_COMMANDS]),
        more=max(0, len(commands) - MAX_COMMANDS),
    )


def commonest(groups: Mapping[tuple[tuple[str, str], ...], list[str]], name: str) -> str:
    """What most runs have in a field."""
    counts: Counter[str] = Counter()
    for fields, members in groups.items():
        counts[dict(fields).get(name, "")] += len(members)
    return counts.most_common(1)[0][0]


def present(rows: pd.DataFrame, runs: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Runs with metadata that rows are of."""
    return [run for run in rows["run"].dropna().unique() if runs.get(run)]


def of_rows_without(
    rows: pd.DataFrame, runs: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """What rows themselves tell of runs that have no metadata, a run for each file."""
    without = rows[~rows["run"].isin(present(rows, runs))]
    names = ["suite", "mpi", "ranks"]
    found = {}
    for (file, *values), _ in without.groupby(["file", *names], dropna=False):
        fields = {
            name: str(value)
            for name, value in zip(names, values, strict=True)
            if not pd.isna(value)
        }
        found[f"{file} {fields}"] = {"metadata": "none in the file", **fields}
    return found


def described(data: Mapping[str, str]) -> dict[str, str]:
    """Metadata as fields of the page; each environment variable is one by itself."""
    fields = {name: short(text) for name, text in data.items()}
    if name := library(fields.get("mpi_library", "")):
        fields["mpi"], fields[DETAILS] = name, fields.pop("mpi_library")
    environment = fields.pop("environment", "")
    try:
        words = shlex.split(environment)
    except ValueError:
        words = [environment]
    for word in words:
        name, _, text = word.partition("=")
        fields[f"environment {name}"] = text
    return fields


def short(text: str) -> str:
    """A text that fits the page."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def title(name: str) -> str:
    """What the page calls a field of metadata."""
    if name.startswith("environment "):
        return name.removeprefix("environment ")
    return TITLES.get(name, name.replace("_", " ").capitalize())


def place(name: str) -> tuple[int, str]:
    """Where a field stands: those known first, the environment last."""
    known = list(TITLES)
    if name.startswith("environment "):
        return len(known) + 1, name
    return (known.index(name) if name in known else len(known)), name


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
