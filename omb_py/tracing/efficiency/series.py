"""Runs of one program on several numbers of ranks, next to each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

from omb_py.core.errors import UsageError
from omb_py.tracing.efficiency.runs import Run, Scaling, scaling

BETWEEN = 0.5
"""Exponent of the growth of work over ranks: strong scaling has 0, weak scaling 1."""

LITTLE_CPU = 0.9
"""Below this part of the time, ranks that computed are taken to have waited for a core."""


@dataclass(frozen=True)
class SeriesPoint:
    """A run, and how it compares to the reference; ``label`` names it briefly.

    ``processor_scaling`` is computation scaling by CPU time, where that outside MPI is known.
    """

    run: Run
    label: str
    scaling: Scaling | None
    processor_scaling: float | None = None


@dataclass(frozen=True)
class Series:
    """Runs by their ranks, the first is the reference; ``why`` is the reason for the scaling."""

    points: tuple[SeriesPoint, ...]
    weak: bool
    why: str

    @property
    def kind(self) -> str:
        """The kind of scaling."""
        return "weak" if self.weak else "strong"

    @property
    def several(self) -> bool:
        """Return whether there is something to compare."""
        return len({point.run.times.ranks for point in self.points}) > 1


def series_of(runs: Sequence[Run], weak: bool | None = None) -> Series:
    """Return runs next to the one on the fewest ranks; ``weak`` None: as their work suggests.

    Raises `UsageError` without a run.
    """
    if not runs:
        raise UsageError("there is no run")
    ordered = sorted(runs, key=lambda run: run.times.ranks)
    first = ordered[0].times
    why = "as was asked for"
    if weak is None:
        weak, why = suggested(ordered)
    labels = labels_of([run.name for run in ordered])
    points = (
        SeriesPoint(
            run, label, scaling(run.times, first, weak), by_processor(run, ordered[0], weak)
        )
        for run, label in zip(ordered, labels, strict=True)
    )
    return Series(tuple(points), weak, why)


def by_processor(run: Run, first: Run, weak: bool) -> float | None:
    """Return computation scaling by CPU time: its value if each rank had its own core."""
    mine, other = run.measured.processor, first.measured.processor
    if not (mine and other and mine.outside and other.outside):
        return None
    per_rank = other.mean / mine.mean
    return per_rank if weak else per_rank * first.times.ranks / run.times.ranks


def suggested(ordered: Sequence[Run]) -> tuple[bool, str]:
    """Return whether scaling seems weak, by the time that all ranks computed, and the reason."""
    first, last = ordered[0].times, ordered[-1].times
    if first.ranks == last.ranks or first.total <= 0 or last.total <= 0:
        return False, "nothing tells otherwise"
    work, ranks = last.total / first.total, last.ranks / first.ranks
    weak = log(work) / log(ranks) > BETWEEN
    return weak, (
        f"assumed, since on {ranks:.3g} times the ranks all of them together spent {work:.3g} "
        f"times as long outside MPI; --{'strong' if weak else 'weak'} if that is wrong"
    )


def labels_of(names: Sequence[str]) -> list[str]:
    """Return names of runs without their folders, if these names differ."""
    short = [Path(name).name or name for name in names]
    return short if len(set(short)) == len(short) else list(names)


def notes(series: Series) -> Iterator[str]:
    """Yield caveats of the table; with the runs' names if there are several."""
    several = len(series.points) > 1
    if series.several:
        yield f"{series.kind} scaling: {series.why}"
    commands = (point.run.command.split() for point in series.points)
    programs = {words[0] for words in commands if words}
    if len(programs) > 1:
        yield f"these are runs of different programs: {', '.join(sorted(programs))}"
    said: dict[str, list[str]] = {}
    for point in series.points:
        for note in (*point.run.measured.notes, *of_processor(point.run)):
            said.setdefault(note, []).append(point.label)
    for note, labels in said.items():
        everywhere = not several or len(labels) == len(series.points)
        yield note if everywhere else f"{', '.join(labels)}: {note}"


def of_processor(run: Run) -> Iterator[str]:
    """Yield notes about CPU time and files."""
    found = run.measured.processor
    if found is not None and found.outside and found.share < LITTLE_CPU:
        yield (
            f"ranks had no core for more than {100 * (1 - LITTLE_CPU):.0f} % of their time outside "
            "MPI: they shared cores, slept or waited for a disk, and all that counts as computation"
        )
    elif run.times.ranks > 1 and (found is None or not found.outside):
        yield (
            "whether ranks had a core while they computed is not known: waiting for one, too, "
            "counts as computation, and omb-py profile --cpu-time tells it"
        )
    if run.measured.io > 0:
        yield "MPI's files are neither computation nor network: on an ideal one they take no time"
