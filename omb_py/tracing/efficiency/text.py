"""Runs as a table like those of POP: efficiencies as rows, runs as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from textwrap import shorten

from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits, value_text
from omb_py.core.text.words import count
from omb_py.tracing.efficiency.phases import RecordedPhase
from omb_py.tracing.efficiency.series import Series, SeriesPoint, loads

Value = Callable[[SeriesPoint], float | None]
UNKNOWN = "-"
MAX_PHASES = 20
WIDEST = 70
"""Letters of a command in a title."""


def sheet(series: Series) -> Sheet:
    """The table of all runs."""
    points = series.points
    rows = [
        (name, *(shown(value(point)) for point in points))
        for name, value, shown in lines(series)
        if any(value(point) is not None for point in points)
    ]
    if len(points) > 1:
        rows.append(("Run", *(point.label for point in points)))
    return Sheet(
        title(series),
        ("", *(count(point.run.times.ranks, "rank") for point in points)),
        tuple(rows),
        tuple(remarks(series)),
    )


def of_phases(name: str, phases: Sequence[RecordedPhase]) -> Sheet:
    """The phases of a run."""
    rows = (
        (
            phase.name,
            f"{phase.spans}",
            seconds(phase.times.elapsed),
            percent(phase.efficiency.parallel),
            percent(phase.efficiency.load_balance),
            percent(phase.efficiency.communication),
        )
        for phase in phases[:MAX_PHASES]
    )
    remarks = ["Of the longest time that a rank spent in a phase; phases may contain each other."]
    if len(phases) > MAX_PHASES:
        remarks.append(f"And {len(phases) - MAX_PHASES} shorter phases.")
    if not phases:
        remarks = [
            "None is recorded: name them in the program (with omb_py.phase(...):) and record with "
            "omb-py profile --timeline FILE."
        ]
    columns = ("", "times", "time", "parallel", "load balance", "communication")
    return Sheet(f"Phases of {name}", columns, tuple(rows), tuple(remarks))


def title(series: Series) -> str:
    """What the table is of."""
    commands = dict.fromkeys(point.run.command for point in series.points if point.run.command)
    of = shorten(next(iter(commands)), WIDEST) if len(commands) == 1 else ""
    of = of or (series.points[0].run.name if len(series.points) == 1 else "")
    kind = f"{series.kind} scaling" if series.several else ""
    return ": ".join(filter(None, ["Efficiency", ", ".join(filter(None, [of, kind]))]))


def lines(series: Series) -> Iterator[tuple[str, Value, Callable[[float | None], str]]]:
    """Rows: their names, values and how these are shown."""
    if series.several:
        yield "Global efficiency", lambda at: at.scaling.whole if at.scaling else None, percent
    yield "- Parallel efficiency", lambda at: at.run.efficiency.parallel, percent
    yield "-- Load balance", lambda at: at.run.efficiency.load_balance, percent
    yield "-- Communication efficiency", lambda at: at.run.efficiency.communication, percent
    yield "--- Serialisation efficiency", lambda at: at.run.efficiency.serialisation, percent
    yield "--- Transfer efficiency", lambda at: at.run.efficiency.transfer, percent
    if loads(series):
        yield "-- Data loading efficiency", lambda at: at.run.efficiency.loading, percent
    if series.several:
        yield (
            "- Computation scaling",
            lambda at: at.scaling.computation if at.scaling else None,
            percent,
        )
        yield "-- by CPU time", lambda at: at.processor_scaling, percent
        yield "Speed-up", lambda at: at.scaling.speedup if at.scaling else None, plain
    yield "Elapsed", lambda at: at.run.times.elapsed, seconds
    yield "On an ideal network", lambda at: at.run.times.ideal, seconds
    yield "Outside MPI, all ranks", lambda at: at.run.times.total, seconds
    if loads(series):
        yield "Waiting for data, all ranks", lambda at: at.run.times.total_loading, seconds
    yield "MPI's files, all ranks", lambda at: at.run.measured.io or None, seconds
    yield "CPU time / time outside MPI", lambda at: cpu(at, True), percent
    yield "Load balance of CPU time", lambda at: balance(at), percent
    yield "CPU time / elapsed, threads together", lambda at: cpu(at, False), percent


def cpu(point: SeriesPoint, outside: bool) -> float | None:
    """CPU time over wall time, outside MPI or of all that the processes did."""
    found = point.run.measured.processor
    return found.share if found and found.outside is outside else None


def balance(point: SeriesPoint) -> float | None:
    """Load balance by the CPU time outside MPI."""
    found = point.run.measured.processor
    return found.balance if found and found.outside else None


def remarks(series: Series) -> Iterator[str]:
    """How to read the table."""
    replayed = any(point.run.times.ideal is not None for point in series.points)
    text = "Parallel efficiency = load balance x communication efficiency"
    if loads(series):
        text += " x data loading efficiency"
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


def percent(part: float | None) -> str:
    """A part in percent."""
    return UNKNOWN if part is None else f"{100 * part:.1f} %"


def seconds(value: float | None) -> str:
    """A time with its unit."""
    return UNKNOWN if value is None else value_text(1e6 * value, "us")


def plain(value: float | None) -> str:
    """A number."""
    return UNKNOWN if value is None else digits(value)
