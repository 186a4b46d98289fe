"""Runs and their machines: metadata, printed once if runs share it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from omb_py.analysis.table import library
from omb_py.core.text.tables import Sheet
from omb_py.core.text.words import count, first_of
from omb_py.results.columns import SOFTWARE
from omb_py.results.metadata import Runs

"""Metadata of runs by their names."""

OWN = ("run", "command", "other_processes", "pace", "launch_seconds", "iterating_seconds")
"""Metadata that every run has of its own: it does not make a group."""

FIRST = (
    *("mpi", *SOFTWARE, "hosts", "ranks", "thread_level", "processor", "conditions", "suite"),
    "omb_py",
)
"""Fields that people look for first."""

LONGEST = 300
"""Characters of a field that are shown; configure lines of MPI libraries are longer."""

MAX_COLUMNS, MAX_WIDTH = 7, 60
"""Fields that are columns of the table, and characters of their texts; others share a column."""

MAX_GROUPS, MAX_COMMANDS = 100, 5
"""Rows of the table, and commands of one row."""

MACHINE = ("processor", "device", "system")
"""Metadata, besides the hosts, that name a machine in the head of the page."""

MAX_NAMES = 3
"""Hosts, processors or libraries that the head of the page names."""


def origin(rows: pd.DataFrame, runs: Runs) -> dict[str, str]:
    """Return the fields of the page's head, as far as files have metadata of the runs of rows.

    Conditions and command are those of the first run that has some.
    """
    names = present(rows, runs)

    def unique(field: str) -> list[str]:
        return list(dict.fromkeys(text for run in names if (text := runs[run].get(field))))

    def listed(values: Iterable[object]) -> str:
        return first_of([str(value) for value in values if not pd.isna(value)], MAX_NAMES)

    places = [host.rpartition(":")[0] or host for text in unique("hosts") for host in text.split()]
    places = list(dict.fromkeys(places))
    hosts = f"{'host' if len(places) == 1 else count(len(places), 'host') + ':'} {listed(places)}"
    numbers = sorted(int(number) for number in rows["ranks"].dropna().unique())
    ranks = f"{numbers[0]} to " * (len(numbers) > 1) + count(numbers[-1], "rank") if numbers else ""
    machine = [hosts * bool(places), *map(listed, map(unique, MACHINE))]
    software = [listed(rows["mpi"].unique()), listed(rows["suite"].unique()), ranks]
    commands = [short(command) for command in unique("command")]
    unknown = "The files do not say"
    measured = (
        f"{len(rows):,} rows of {count(rows['benchmark'].nunique(), 'benchmark')} from "
        f"{count(rows['run'].nunique(), 'run')} in {count(rows['file'].nunique(), 'file')}"
    )
    found = {
        "When": span(names) or unknown,
        "Machine": " · ".join(filter(None, machine)) or unknown,
        "Software": " · ".join(filter(None, software)) or unknown,
        "Measured": measured,
        # wide ones come last, so that the others share lines
        "Conditions": next(iter(unique("conditions")), ""),
        "Command": first_of(commands, 1) or unknown,
    }
    return {name: text for name, text in found.items() if text}


def places(rows: pd.DataFrame, runs: Runs) -> tuple[Sheet, Sheet]:
    """Return a table of the runs with their differences, most runs first, and one of shared fields.

    Fields have the names that they have in files.
    """
    there = present(rows, runs)
    every = [(described(runs[run]), run) for run in there]
    every += [(fields, "") for fields in of_rows_without(rows[~rows["run"].isin(there)])]
    table = pd.DataFrame([fields for fields, _ in every]).fillna("")
    table = table[sorted(table.columns, key=lambda name: [*FIRST, name].index(name))]
    differing = [name for name in table if table[name].nunique() > 1]
    narrow = [name for name in differing if table[name].str.len().max() <= MAX_WIDTH][:MAX_COLUMNS]
    others = [name for name in differing if name not in narrow]
    alike: dict[tuple[str, ...], list[str]] = {}
    for fields, (_, run) in zip(table.to_dict("records"), every, strict=True):
        rest = "; ".join(f"{name}: {fields[name]}" for name in others if fields[name])
        cells = [*(fields[name] or "-" for name in narrow), *[rest] * bool(others)]
        alike.setdefault(tuple(cells), []).append(run)
    heads = [*narrow, *["other differences"] * bool(others)]
    order = sorted(alike.items(), key=lambda item: -len(item[1]))
    lines = [(str(len(own)), *cells, span(own), commands(own, runs)) for cells, own in order]
    sheet = Sheet(
        "Runs",
        ("runs", *heads, "started", "commands"),
        tuple(lines[:MAX_GROUPS]),
        (f"and {len(lines) - MAX_GROUPS} more kinds of runs",) * (len(lines) > MAX_GROUPS),
        left=3 + len(heads),
    )
    same = [(name, str(table[name].iloc[0]) or "-") for name in table if name not in differing]
    return sheet, Sheet("The same in all runs", ("field", "value"), tuple(same), left=2)


def commands(members: Iterable[str], runs: Runs) -> str:
    """Return the different commands of runs, a line each."""
    there = dict.fromkeys(runs.get(run, {}).get("command", "") for run in members)
    listed = [short(command) for command in there if command]
    more = [f"and {len(listed) - MAX_COMMANDS} more"] * (len(listed) > MAX_COMMANDS)
    return "\n".join([*listed[:MAX_COMMANDS], *more])


def present(rows: pd.DataFrame, runs: Runs) -> list[str]:
    """Return runs with metadata that have rows."""
    return [run for run in rows["run"].dropna().unique() if runs.get(run)]


def of_rows_without(rows: pd.DataFrame) -> Iterator[dict[str, str]]:
    """Yield fields from the rows of runs that have no metadata, a run for each file."""
    for row in rows[["file", "suite", "mpi", "ranks"]].drop_duplicates().to_dict("records"):
        fields = {str(name): str(value) for name, value in row.items() if not pd.isna(value)}
        yield {"metadata": "none in the file", **fields, "file": ""}


def described(data: Mapping[str, str]) -> dict[str, str]:
    """Return metadata as fields of the page; environment variables are last, one by one."""
    fields = {name: short(text) for name, text in data.items() if name not in OWN}
    if name := library(fields.get("mpi_library", "")):
        fields["mpi"] = name
    environment = fields.pop("environment", "")
    try:
        words = shlex.split(environment)
    except ValueError:
        words = [environment]
    variables = (word.partition("=") for word in words)
    return fields | {name: text for name, _, text in variables}


def short(text: str) -> str:
    """Return a text that fits the page."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def span(members: list[str]) -> str:
    """Return from when to when runs were started, in UTC, as their names have it."""
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
