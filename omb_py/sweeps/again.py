"""Points measured again, as their rows were measured or by a command, and judged by the median."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from omb_py.analysis.guard import Beyond, Failure, rows_at
from omb_py.analysis.table import load
from omb_py.analysis.values import with_unit
from omb_py.benchmarks import find_benchmark
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text.words import count
from omb_py.options.parse import apart, long_words, reader
from omb_py.options.table import OF_A_LAUNCH, common_parameters
from omb_py.results.columns import IDENTITY
from omb_py.sweeps import launchers
from omb_py.sweeps.native import OMB_PY, find_launcher, launch

Tables = Mapping[str, pd.DataFrame]
"""Rows by the name of the side that they are of."""

Runs = Mapping[str, Mapping[str, str]]
"""Metadata by the names of runs."""

OF_RUN = (click.Option(["--pair"]), click.Option(["--scale"], is_flag=True))
"""Options of ``omb-py run`` by themselves that choose ranks."""

NOT_AGAIN = (
    *(click.Option([name]) for name in ("--sizes", "--message-size", "--output", "--format")),
    *(click.Option([name]) for name in ("--samples", "--graph", "--summary", "--sweep")),
    *(click.Option([name], is_flag=True) for name in ("--quiet", "--force", "--resume")),
)
"""Options that choose sizes, and files that must stay as they are."""


@dataclass(frozen=True)
class Way:
    """How to measure again: so many ``times``, each launch within ``timeout`` seconds.

    ``command`` is a command line with names in braces (`filled`). Without one, the command of the
    rows' run is started again, by ``launcher`` or this machine's.
    """

    times: int
    timeout: float
    command: str | None = None
    launcher: str | None = None


@dataclass(frozen=True)
class Start:
    """What points have in common that one launch measures again.

    ``words`` follow ``omb-py``, ``hosts`` and ``environment`` are those of the metadata; ``known``
    are columns of rows that the output of the `Way`'s command may lack.
    """

    words: tuple[str, ...]
    hosts: str = ""
    environment: str = ""
    known: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Confirmed:
    """What came of measuring again: the ``failures`` that stand, and sentences about the others.

    ``rows`` are those that count, by their side; ``facts`` has the values of each failure, and
    ``notes`` are remarks on what was measured first.
    """

    failures: tuple[Failure, ...]
    passed: tuple[str, ...] = ()
    rows: Tables = field(default_factory=dict)
    facts: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """A line for each failure that does not stand."""
        return [f"NOT CONFIRMED: {one}" for one in self.passed]


def confirm(
    failures: Sequence[Failure], tables: Tables, runs: Runs, way: Way, folder: Path
) -> Confirmed:
    """Measure the points of failures again, and judge the median of all their runs.

    A failure stands unless each of its points was measured again ``way.times`` times, with rows
    that are of the same experiment and configuration. ``folder`` keeps the output of each launch.
    Raises `UsageError` for an invalid way.
    """
    points = [point for one in failures for point in one.points]
    found = dict(zip(map(id, points), measured(points, tables, runs, way, folder), strict=True))
    standing: list[Failure] = []
    passed: list[str] = []
    facts: list[dict[str, Any]] = []
    rows: dict[str, list[pd.DataFrame]] = {side: [] for side in tables}
    for one in failures:
        again = [found[id(point)] for point in one.points]
        reasons = [text for text in again if isinstance(text, str)]
        if reasons or not again:
            said = f"; not measured again: {reasons[0]}" if reasons else ""
            standing.append(Failure(one.reason + said, one.points))
            continue
        values = []
        for point, more in zip(one.points, again, strict=True):
            first = rows_at(tables[point.side], point.cells)
            values.append(point.values(pd.concat([first, more])))
            rows[point.side].append(more)
        medians = [float(np.median(of_point)) for of_point in values]
        excess = one.excess(medians)
        said = f"{one.reason}; {words_of(one, values, medians, excess)}"
        if excess > 1:
            standing.append(Failure(said, one.points))
        else:
            passed.append(said)
        facts.append({"reason": one.reason, "values": values, "confirmed": excess > 1})
    kept = {side: pd.concat(more) for side, more in rows.items() if more}
    once = {side: more.drop_duplicates(["file", "line"]) for side, more in kept.items()}
    return Confirmed(tuple(standing), tuple(passed), once, tuple(facts))


def words_of(
    failure: Failure,
    values: Sequence[Sequence[float]],
    medians: Sequence[float],
    excess: float,
) -> str:
    """Return the values of a failure's point with their median; of several points the average."""
    verdict = "confirmed" if excess > 1 else "not confirmed"
    if len(medians) > 1:
        points = count(len(medians), "point")
        return f"{verdict}: the medians of {points} are {excess:.3f} times that on average"
    unit = failure.points[0].unit
    return (
        f"{verdict}: {', '.join(with_unit(value, unit) for value in values[0])}, median "
        f"{with_unit(medians[0], unit)}"
    )


def measured(
    points: Sequence[Beyond], tables: Tables, runs: Runs, way: Way, folder: Path
) -> list[pd.DataFrame | str]:
    """Return the rows of each point that were measured again, or why there are none."""
    found: list[Any] = [""] * len(points)
    members: dict[Start, list[int]] = {}
    entries: dict[Start, dict[tuple[str, ...], set[int]]] = {}
    for place, point in enumerate(points):
        try:
            start, entry = start_of(point, tables[point.side], runs, way)
        except OmbError as error:
            found[place] = str(error)
            continue
        members.setdefault(start, []).append(place)
        sizes = entries.setdefault(start, {}).setdefault(entry, set())
        sizes.update([int(point.cells["bytes"])] if "bytes" in point.cells else [])
    results: dict[Start, list[pd.DataFrame]] = {start: [] for start in members}
    for number in range(1, way.times + 1):
        for place, start in enumerate(list(results), 1):
            try:
                output = folder / f"again-{number:03d}-{place:03d}"
                results[start].append(launched(start, entries[start], way, output, number))
            except UsageError:
                raise
            except OmbError as error:
                for member in members[start]:
                    found[member] = str(error)
                del results[start]
    for start, again in results.items():
        for place in members[start]:
            found[place] = last_of_each(points[place], again)
    return found


def last_of_each(point: Beyond, launches: Sequence[pd.DataFrame]) -> pd.DataFrame | str:
    """Return a point's last row of each launch, or why one has none."""
    rows = []
    for again in launches:
        there = rows_at(again, point.cells)
        if not point.values(there):
            return difference(point, again)
        rows.append(there.tail(1))
    return pd.concat(rows)


def difference(point: Beyond, rows: pd.DataFrame) -> str:
    """Return why no row is of the point."""
    rows = rows[rows["benchmark"] == point.cells["benchmark"]]
    for name in ("bytes", *IDENTITY):
        there = list(rows[name].dropna().unique())
        if there and point.cells.get(name) not in there:
            return f"the new rows have {name} {there[0]}, not {point.cells.get(name, 'none')}"
    return "the new launch has no such row"


def start_of(
    point: Beyond, table: pd.DataFrame, runs: Runs, way: Way
) -> tuple[Start, tuple[str, ...]]:
    """Return the launch that measures a point again, and its benchmark's words in it.

    Raises `OmbError` if its rows do not report how they were measured.
    """
    name = point.cells["benchmark"]
    row = rows_at(table, point.cells).iloc[-1]
    if way.command is not None:
        known = {column: row[column] for column in IDENTITY if column in row.index}
        pairs = tuple((column, cell) for column, cell in known.items() if not pd.isna(cell))
        return Start((), known=pairs), (name,)
    data = runs.get(row["run"], {})
    program, *words = shlex.split(data.get("command", "")) or [""]
    outside: list[str] = []
    if words[:1] == ["run"]:
        outside, words = words[1:-1], shlex.split(words[-1])
    if program != "omb-py" or words[:1] != [name] or not data.get("hosts"):
        raise OmbError("its rows do not report their command: name one with --again")
    benchmark = find_benchmark(name)
    options = reader(benchmark).params
    shared, _ = apart(long_words(outside, common_parameters()), [*options, *OF_RUN])
    _, own = apart([*shared, *long_words(words[1:], options)], NOT_AGAIN)
    facts = data["hosts"], data.get("environment", "")
    if not benchmark.planned:
        return Start((name, *own), *facts), ()
    of_launch = [option for option in options if set(option.opts) & set(OF_A_LAUNCH)]
    shared, own = apart(own, [*of_launch, *OF_RUN])
    return Start(("run", *shared), *facts), (name, *own)


def launched(
    start: Start, entries: Mapping[tuple[str, ...], set[int]], way: Way, output: Path, number: int
) -> pd.DataFrame:
    """Return the rows of one launch.

    Benchmarks of omb-py are measured twice in it, and `last_of_each` takes the second time: what
    only slows the first points of a launch is over then. Raises `OmbError` if it fails or
    measures nothing, `UsageError` if it cannot be started at all.
    """
    out = file = output.with_suffix(".txt")
    environment: Mapping[str, str] = os.environ
    if way.command is not None:
        (((name, *_), sizes),) = entries.items()
        command = filled(way.command, name, dict(start.known).get("ranks"), sorted(sizes))
    else:
        file = output.with_suffix(".csv")
        recorded = dict(word.split("=", 1) for word in shlex.split(start.environment))
        environment = {**os.environ, **recorded}
        each = [
            [*words, *([f"--sizes={','.join(map(str, sorted(sizes)))}"] if sizes else [])]
            for words, sizes in entries.items()
        ]
        texts = 2 * [shlex.join(one) for one in each] if start.words[0] == "run" else each[0]
        words = [*OMB_PY, *start.words, "--quiet", f"--output={file}", *texts]
        command = [*launcher_words(start.hosts, recorded, way.launcher), *words]
    launch(command, f"launch {number}", [file], out, way.timeout, environment)
    known = dict(start.known)
    return load([file], known).rows.assign(source=known.get("source"))


def launcher_words(hosts: str, environment: Mapping[str, str], named: str | None) -> list[str]:
    """Return the words that start as many ranks on as many hosts as the metadata has.

    Raises `UsageError` if there is no launcher, `OmbError` if only the user can place the ranks.
    """
    program = find_launcher(named)
    ranks = [int(number) for number in re.findall(r":(\d+)(?=\s|$)", hosts)]
    owner = None if named else launchers.owner(program[0])
    if owner is None:
        return [*program, "-n", str(sum(ranks))]
    if len(set(ranks)) > 1:
        raise OmbError(f"its hosts had different numbers of ranks ({hosts}): name --launcher")
    place = launchers.Placement(
        len(ranks),
        ranks[0],
        cores=os.cpu_count() or 1,
        oversubscribe=ranks[0] > (os.cpu_count() or 1),
        environment=environment,
    )
    return [*program, *launchers.LAUNCHERS[owner].words(place)]


def filled(command: str, benchmark: str, ranks: object, sizes: Sequence[int]) -> list[str]:
    """Return the words of a command with values for the names in braces.

    Raises `UsageError` for another name in braces, `OmbError` for a value that rows do not have.

    >>> filled("mpiexec -n {ranks} osu_{benchmark} -m {min}:{max}", "latency", 2, [8, 64])
    ['mpiexec', '-n', '2', 'osu_latency', '-m', '8:64']
    """
    texts = {"benchmark": benchmark, "ranks": "" if ranks is None else str(ranks)}
    ends = {"sizes": ",".join(map(str, sizes)), "min": sizes[:1], "max": sizes[-1:]}
    texts |= {name: "".join(map(str, text)) for name, text in ends.items()}

    def value(match: re.Match[str]) -> str:
        text = texts.get(match[1])
        if text is None:
            known = ", ".join(texts)
            raise UsageError(f"--again {command}: unknown {match[0]}: choose from {known}")
        if not text:
            raise OmbError(f"its rows have no value for {match[0]} of --again")
        return text

    try:
        return [re.sub(r"\{(\w+)\}", value, word) for word in shlex.split(command)]
    except ValueError as error:
        raise UsageError(f"--again {command}: {error}") from error
