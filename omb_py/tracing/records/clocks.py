"""One clock for all ranks: rank 0's, and how far from it a time can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

from omb_py.tracing.records.reading import NS, ClockComparison, RankRecord

MAX_OFFSET = 1e10
"""Seconds; a larger offset between two clocks is damage (it is 300 years)."""

MAX_DRIFT = 1.0
"""Seconds in a second; more is damage, too: clocks of one kind differ by some 1e-5."""


@dataclass(frozen=True)
class Clock:
    """A host's clock. Its ``number`` (0: unknown) tells it from others of that host alone."""

    host: str
    number: int


@dataclass(frozen=True)
class Alignment:
    """How a rank's times become those of rank 0's clock.

    ``record`` is the rank's record with the comparisons that hold for its clock. ``offset``
    (seconds, at the beginning) is to be added, ``drift`` (seconds in a second) to be added to it
    with time. A time is wrong by no more than ``error`` seconds; None: the clocks were never
    compared. ``shared`` is true for ranks that read rank 0's clock: all of these are exactly 0.
    """

    record: RankRecord
    offset: float
    drift: float
    error: float | None
    shared: bool


def align(records: Sequence[RankRecord]) -> list[Alignment]:
    """The alignment of each record.

    Ranks that share a clock share its comparisons, too, so that nothing comes between them: those
    of the first one of them that made the most.
    """
    first = next((record for record in records if record.rank == 0), None)
    best: dict[Clock, tuple[ClockComparison, ...]] = {}
    for record in records:
        found = sound(record)
        if len(found) > len(best.get(clock_of(record), ())):
            best[clock_of(record)] = found
    return [alignment(record, first, best) for record in records]


def alignment(
    record: RankRecord, first: RankRecord | None, best: dict[Clock, tuple[ClockComparison, ...]]
) -> Alignment:
    """The alignment of one record, with the comparisons of each clock."""
    clock = clock_of(record)
    if record is first or (first is not None and clock.number and clock == clock_of(first)):
        return Alignment(compared(record, ()), 0.0, 0.0, 0.0, True)
    made = best.get(clock, ()) if clock.number else sound(record)
    aligned = compared(record, made)
    if not made:
        return Alignment(aligned, 0.0, 0.0, None, False)
    error = max(comparison.error for comparison in made)
    return Alignment(aligned, made[0].offset, drift(made), error, False)


def clock_of(record: RankRecord) -> Clock:
    """The clock that a rank reads."""
    return Clock(record.host, int(record.header["clock"]))


def drift(made: Sequence[ClockComparison]) -> float:
    """Seconds in a second by which the offset grows from the first comparison to the last."""
    seconds = (made[-1].at - made[0].at) * NS
    return (made[-1].offset - made[0].offset) / seconds if seconds > 0 else 0.0


def sound(record: RankRecord) -> tuple[ClockComparison, ...]:
    """Its comparisons without those whose numbers mean nothing."""
    made = tuple(
        comparison
        for comparison in record.comparisons
        if isfinite(comparison.offset)
        and abs(comparison.offset) < MAX_OFFSET
        and isfinite(comparison.error)
        and comparison.error >= 0
    )
    return made if len(made) < 2 or abs(drift(made)) < MAX_DRIFT else made[:1]


def compared(record: RankRecord, made: Sequence[ClockComparison]) -> RankRecord:
    """The record with these comparisons instead of its own."""
    header = dict(record.header)
    for kind, comparison in zip(
        ("first", "last"), (*made[:1], *made[1:2], None, None), strict=False
    ):
        header[f"{kind}_at"] = comparison.at if comparison else 0
        header[f"{kind}_offset"] = comparison.offset if comparison else 0.0
        header[f"{kind}_error"] = comparison.error if comparison else 0.0
    return replace(record, header=header)
