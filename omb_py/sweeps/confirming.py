"""What failed measured again, as its rows were or by a command, and judged by the median."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from omb_py.analysis.failures import APART, RESULTS_OF, Beyond, Failure, rows_at
from omb_py.analysis.points import Cells
from omb_py.analysis.table import load
from omb_py.analysis.values import with_unit
from omb_py.benchmarks import find_benchmark
from omb_py.core.errors import OmbError, UsageError
from omb_py.options.parse import apart, long_words, named, reader
from omb_py.options.table import OF_A_LAUNCH, common_parameters
from omb_py.results.columns import IDENTITY
from omb_py.sweeps import launchers
from omb_py.sweeps.compare_native import OMB_PY, find_launcher, launch

Runs = Mapping[str, Mapping[str, str]]
"""Metadata by the names of runs."""

OF_A_RUN = {"--pair": True, "--scale": False}
"""Options of ``omb-py run`` itself that choose ranks, and whether they have a value."""

NOT_AGAIN = dict.fromkeys(
    "--sizes --message-size --output --format --samples --graph --summary".split(), True
) | {"--quiet": False, "--force": False}
"""Options that choose sizes, or files that must stay as they are."""


PASSES = 3
"""How often a launch measures its points; the last time counts. What slows the first points of a
launch may last for half a point more than fails, so it is over after two passes of those."""


@dataclass(frozen=True)
class Way:
    """How to measure again: so many ``times``, each launch within ``timeout`` seconds.

    ``command`` is a command line with names in braces. Without one, the command of the rows' run
    is started again, by ``launcher`` or this machine's. ``folder`` keeps the output.
    """

    times: int
    timeout: float
    command: str | None
    launcher: str | None
    folder: Path


class Confirmed(NamedTuple):
    """Failures that stand, sentences about those that do not, and the new rows that count."""

    failures: list[Failure]
    passed: list[str]
    rows: list[pd.DataFrame]


Start = tuple[tuple[str, ...], str, str]
"""What one launch has for all: words after ``omb-py run``, hosts and environment as in metadata."""


def confirm(
    failures: Sequence[Failure], tables: Mapping[str, pd.DataFrame], runs: Runs, way: Way
) -> Confirmed:
    """Measure the points of failures again, and judge the medians of all their runs.

    A failure stands unless each of its points was measured again ``way.times`` times, in rows of
    the same experiment and configuration. ``tables`` has the first rows by their side, ``runs``
    their metadata. Raises `UsageError` if the way is impossible.
    """
    points = [point for failure in failures for point in failure.points]
    first = {id(point): rows_at(tables[point.side], point.cells) for point in points}
    found = measured(points, first, runs, way)
    result = Confirmed([], [], [])
    for failure in failures:
        again = [found.get(id(point), "") for point in failure.points]
        new = [rows for rows in again if isinstance(rows, pd.DataFrame)]
        if not new or len(new) < len(again):
            why = [f"; not measured again: {text}" for text in again if isinstance(text, str)]
            reason = "".join([failure.reason, *why[:1]])
            result.failures.append(failure._replace(reason=reason))
            continue
        values = [
            point.values(pd.concat([first[id(point)], rows]))
            for point, rows in zip(failure.points, new, strict=True)
        ]
        excess = failure.excess([float(np.median(one)) for one in values])
        words = f"the medians of {len(values)} points are {excess:.3f} times that"
        if len(values) == 1:
            texts = [with_unit(value, failure.points[0].unit) for value in values[0]]
            median = with_unit(float(np.median(values[0])), failure.points[0].unit)
            words = f"{', '.join(texts)}, median {median}"
        if excess > 1:
            reason = f"{failure.reason}; confirmed: {words}"
            result.failures.append(failure._replace(reason=reason))
        else:
            result.passed.append(f"{failure.reason}; measured again: {words}")
        result.rows.extend(new)
    return result


def measured(
    points: Sequence[Beyond], first: Mapping[int, pd.DataFrame], runs: Runs, way: Way
) -> dict[int, pd.DataFrame | str]:
    """Return the new rows of each point by its ``id``, or why there are none."""
    found: dict[int, pd.DataFrame | str] = {}
    launches: dict[Start, dict[int, str]] = {}
    for point in points:
        try:
            start, entry = start_of(point.cells, first[id(point)], runs, way)
            launches.setdefault(start, {})[id(point)] = entry
        except OmbError as error:
            found[id(point)] = str(error)
    rows: dict[int, list[pd.DataFrame]] = {id(point): [] for point in points}
    for number in range(1, way.times + 1):
        for place, (start, entries) in enumerate(list(launches.items()), 1):
            output = way.folder / f"again-{number:03d}-{place:03d}.txt"
            try:
                again = launched(start, entries.values(), way, output)
            except UsageError:
                raise
            except OmbError as error:
                found |= dict.fromkeys(launches.pop(start), str(error))
                continue
            for point in (one for one in points if id(one) in entries):
                row = last_row(point, again, first[id(point)])
                if isinstance(row, str):
                    found[id(point)] = row
                else:
                    rows[id(point)].append(row)
    return {place: pd.concat(new) for place, new in rows.items() if new} | found


def last_row(point: Beyond, rows: pd.DataFrame, first: pd.DataFrame) -> pd.DataFrame | str:
    """Return the last row of a point, or why there is none.

    It gets what the first rows report of how they were measured.
    """
    there = rows_at(rows, point.cells).tail(1)
    if point.values(there):
        same = [name for name in (*IDENTITY, RESULTS_OF) if name in first]
        return there.assign(**{name: first[name].iloc[-1] for name in same})
    rows = rows[rows["benchmark"] == point.cells["benchmark"]]
    for name in ("bytes", *IDENTITY):
        values = list(rows[name].dropna().unique())
        if name in APART and name not in point.cells:
            continue
        if values and point.cells.get(name) not in values:
            return f"{name} of the new rows is {values[0]}, not {point.cells.get(name)}"
    return "no new row is of this point"


def start_of(cells: Cells, first: pd.DataFrame, runs: Runs, way: Way) -> tuple[Start, str]:
    """Return the launch that measures a point again, and its words in it; of a command, its size.

    Raises `OmbError` if its rows do not report how they were measured.
    """
    name, size = cells["benchmark"], str(cells.get("bytes", ""))
    if RESULTS_OF in cells and first["host_names"].notna().any():
        raise OmbError(f"it is of {cells[RESULTS_OF]}, one of several hosts: measure it there")
    if way.command is not None:
        return ((name, *map(str, first["ranks"].dropna().tail(1))), "", ""), size
    data = runs.get(first["run"].iloc[-1], {})
    program, *words = shlex.split(data.get("command", "")) or [""]
    outside: list[str] = []
    if words[:1] == ["run"]:
        outside, words = words[1:-1], shlex.split(words[-1])
    if program != "omb-py" or words[:1] != [name] or not data.get("hosts"):
        raise OmbError("its rows do not report their command: name one with --again")
    options = reader(find_benchmark(name)).params
    known = named(options) | OF_A_RUN
    shared, _ = apart(long_words(outside, common_parameters()), known)
    _, own = apart([*shared, *long_words(words[1:], options)], NOT_AGAIN)
    shared, own = apart(own, {one: known[one] for one in (*OF_A_LAUNCH, *OF_A_RUN) if one in known})
    sizes = [f"--sizes={size}"] if size else []
    start = tuple(shared), data["hosts"], data.get("environment", "")
    return start, shlex.join([name, *own, *sizes])


def launched(start: Start, entries: Collection[str], way: Way, out: Path) -> pd.DataFrame:
    """Return the rows of one launch, whose standard output is in ``out``.

    ``omb-py run`` measures everything `PASSES` times in it. Raises `OmbError` if the launch fails
    or measures nothing, `UsageError` if it is impossible.
    """
    words, hosts, environment = start
    variables = dict(word.split("=", 1) for word in shlex.split(environment))
    rows = out if way.command is not None else out.with_suffix(".csv")
    if way.command is not None:
        sizes = sorted(set(entries), key=lambda size: int(size or 0))
        command = filled(way.command, words, sizes)
    else:
        command = launcher_words(hosts, variables, way.launcher)
        command += [
            *OMB_PY,
            "run",
            *words,
            "--quiet",
            f"--output={rows}",
            *PASSES * [*dict.fromkeys(entries)],
        ]
    launch(command, f"launch {out.stem}", [rows], out, way.timeout, {**os.environ, **variables})
    return load(rows).rows


def launcher_words(hosts: str, environment: Mapping[str, str], launcher: str | None) -> list[str]:
    """Return the words that start as many ranks on as many hosts as the metadata has.

    Raises `UsageError` if there is no launcher.
    """
    program = find_launcher(launcher)
    ranks = [int(number) for number in re.findall(r":(\d+)(?=\s|$)", hosts)]
    owner = None if launcher else launchers.owner(program[0])
    if owner is None or len(set(ranks)) > 1:
        return [*program, "-n", str(sum(ranks))]
    cores = os.cpu_count() or 1
    place = launchers.Placement(
        *(len(ranks), ranks[0], cores), oversubscribe=ranks[0] > cores, environment=environment
    )
    return [*program, *launchers.LAUNCHERS[owner].words(place)]


def filled(command: str, what: Sequence[str], sizes: Sequence[str]) -> list[str]:
    """Return the words of a command with a benchmark, its ranks and sizes for names in braces.

    Raises `UsageError` for another name, or one that the results have no value for.

    >>> filled("mpiexec -n {ranks} osu_{benchmark} -m {min}:{max}", ["bw", "2"], ["8", "64"])
    ['mpiexec', '-n', '2', 'osu_bw', '-m', '8:64']
    """
    ends = {"sizes": ",".join(sizes), "min": sizes[0], "max": sizes[-1]} if any(sizes) else {}
    values: dict[str, Any] = dict(zip(("benchmark", "ranks"), what, strict=False)) | ends
    try:
        return [word.format_map(values) for word in shlex.split(command)]
    except (KeyError, ValueError, IndexError) as error:
        raise UsageError(f"--again {command}: {error}: choose from {', '.join(values)}") from error
