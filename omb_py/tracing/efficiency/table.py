"""Runs as a table like those of POP, and as rows of numbers: one list of lines serves both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean
from textwrap import shorten
from typing import Any

from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits, value_text
from omb_py.core.text.words import count
from omb_py.tracing.efficiency.series import Series, SeriesPoint, notes

UNKNOWN = "-"
WIDEST = 70
"""Letters of a command in a title."""


def percent(part: float | None) -> str:
    """Return a part in percent."""
    return UNKNOWN if part is None else f"{100 * part:.1f} %"


def seconds(value: float | None) -> str:
    """Return a time with its unit."""
    return UNKNOWN if value is None else value_text(1e6 * value, "us")


def plain(value: float | None) -> str:
    """Return a number."""
    return UNKNOWN if value is None else digits(value)


@dataclass(frozen=True)
class FactorLine:
    """A number of a run: its label in the table, its column in rows, its value, how it is shown.

    ``several``: it compares runs on different numbers of ranks.
    """

    label: str
    column: str
    value: Callable[[SeriesPoint], float | None]
    shown: Callable[[float | None], str] = percent
    several: bool = False

    def of(self, point: SeriesPoint, series: Series) -> float | None:
        """Return the value of a run, None if it is not known."""
        return None if self.several and not series.several else self.value(point)


def cpu(point: SeriesPoint, outside: bool) -> float | None:
    """CPU time over wall time, outside MPI or of all that the processes did."""
    found = point.run.measured.processor
    return found.share if found and found.outside is outside else None


def cpu_balance(point: SeriesPoint) -> float | None:
    """Load balance by the CPU time outside MPI."""
    found = point.run.measured.processor
    return found.balance if found and found.outside else None


FILES = "files_s"
LINES = (
    FactorLine(
        "Global efficiency",
        "global_efficiency",
        lambda at: at.scaling.whole if at.scaling else None,
        several=True,
    ),
    FactorLine(
        "- Parallel efficiency", "parallel_efficiency", lambda at: at.run.efficiency.parallel
    ),
    FactorLine("-- Load balance", "load_balance", lambda at: at.run.efficiency.load_balance),
    FactorLine(
        "-- Communication efficiency",
        "communication_efficiency",
        lambda at: at.run.efficiency.communication,
    ),
    FactorLine(
        "--- Serialisation efficiency",
        "serialisation_efficiency",
        lambda at: at.run.efficiency.serialisation,
    ),
    FactorLine(
        "--- Transfer efficiency", "transfer_efficiency", lambda at: at.run.efficiency.transfer
    ),
    FactorLine(
        "- Computation scaling",
        "computation_scaling",
        lambda at: at.scaling.computation if at.scaling else None,
        several=True,
    ),
    FactorLine(
        "-- by CPU time",
        "cpu_computation_scaling",
        lambda at: at.processor_scaling,
        several=True,
    ),
    FactorLine(
        "Speed-up",
        "speedup",
        lambda at: at.scaling.speedup if at.scaling else None,
        plain,
        several=True,
    ),
    FactorLine("Elapsed", "elapsed_s", lambda at: at.run.times.elapsed, seconds),
    FactorLine("On an ideal network", "ideal_s", lambda at: at.run.times.ideal, seconds),
    FactorLine("Outside MPI, all ranks", "outside_sum_s", lambda at: at.run.times.total, seconds),
    FactorLine("MPI's files, all ranks", FILES, lambda at: at.run.measured.io, seconds),
    FactorLine("CPU time / time outside MPI", "cpu_of_outside", lambda at: cpu(at, True)),
    FactorLine("Load balance of CPU time", "cpu_load_balance", cpu_balance),
    FactorLine("CPU time / elapsed, threads together", "cpu_of_elapsed", lambda at: cpu(at, False)),
)


def sheet(series: Series) -> Sheet:
    """Return the table of all runs; lines without values, and unused files, are left out."""
    points = series.points
    rows = []
    for line in LINES:
        values = [line.of(point, series) for point in points]
        if any(values) or (line.column != FILES and any(one is not None for one in values)):
            rows.append((line.label, *map(line.shown, values)))
    if len(points) > 1:
        rows.append(("Run", *(point.label for point in points)))
    columns = ("", *(count(point.run.times.ranks, "rank") for point in points))
    return Sheet(title(series), columns, tuple(rows), tuple(remarks(series)))


def row_of(point: SeriesPoint, series: Series) -> dict[str, Any]:
    """Return all numbers of a run; times in seconds, None for unknown numbers.

    Factors are those of `runs`: ``parallel_efficiency = load_balance *
    communication_efficiency``, ``communication_efficiency = serialisation_efficiency *
    transfer_efficiency`` and ``global_efficiency = parallel_efficiency * computation_scaling``
    hold to rounding.
    """
    run = point.run
    return {
        "run": run.name,
        "command": run.command,
        "ranks": run.times.ranks,
        "scaling": series.kind if series.several else None,
        "reference_ranks": series.points[0].run.times.ranks if series.several else None,
        **{line.column: line.of(point, series) for line in LINES},
        "outside_mean_s": fmean(run.times.outside),
        "outside_max_s": max(run.times.outside),
    }


def details(series: Series) -> dict[str, object]:
    """Return notes, and for each run its ranks' seconds and notes, which rows lack."""
    runs = [
        {
            "run": point.run.name,
            "outside_s": list(point.run.times.outside),
            "notes": list(point.run.measured.notes),
        }
        for point in series.points
    ]
    return {"runs": runs, "notes": list(notes(series))}


def title(series: Series) -> str:
    """Return the title: the program or the run, and the scaling."""
    commands = dict.fromkeys(point.run.command for point in series.points if point.run.command)
    of = shorten(next(iter(commands)), WIDEST) if len(commands) == 1 else ""
    of = of or (series.points[0].run.name if len(series.points) == 1 else "")
    kind = f"{series.kind} scaling" if series.several else ""
    return ": ".join(filter(None, ["Efficiency", ", ".join(filter(None, [of, kind]))]))


def remarks(series: Series) -> Iterator[str]:
    """Yield sentences about the meaning of the table's lines."""
    replayed = any(point.run.times.ideal is not None for point in series.points)
    text = "Parallel efficiency = load balance x communication efficiency"
    if replayed:
        text += "; communication efficiency = serialisation x transfer efficiency"
    if series.several:
        text += "; global efficiency = parallel efficiency x computation scaling"
    yield f"{text}."
    if series.several:
        first = series.points[0]
        yield (
            f"Computation scaling and speed-up are relative to {first.label} "
            f"({count(first.run.times.ranks, 'rank')})"
            + (", and to the work, which grew with the ranks." if series.weak else ".")
        )
