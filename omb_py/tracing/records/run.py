"""A recorded run: the records of its ranks, their clocks aligned, and notes on missing records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

from omb_py.core.errors import UsageError
from omb_py.core.text.words import other_ranks, some_ranks
from omb_py.tracing.records import layout
from omb_py.tracing.records.reading import NS, ClockComparison, RankRecord, read

MAX_OFFSET = 1e10
"""Seconds; a larger offset between two clocks is damage (it is 300 years)."""

MAX_DRIFT = 1.0
"""Seconds in a second; more is damage, too: clocks of one kind differ by some 1e-5."""


@dataclass(frozen=True)
class RecordedRun:
    """A run of ``size`` ranks: an alignment for each rank with a record, by rank.

    ``notes`` say which records are missing or damaged, and which ranks did not come to their end.
    """

    size: int
    alignments: tuple[Alignment, ...]
    notes: tuple[str, ...]

    @cached_property
    def records(self) -> list[RankRecord]:
        """The records, each with the clock comparisons that hold for its clock."""
        return [one.record for one in self.alignments]

    @property
    def about(self) -> dict[str, Any]:
        """The run's metadata in the record of the lowest rank."""
        return self.records[0].about

    @property
    def on_one_clock(self) -> bool:
        """Return whether the ranks' times can be compared: they share a clock, or clocks were
        compared."""
        clocks = {clock_of(record) for record in self.records}
        return len(clocks) == 1 or all(one.error is not None for one in self.alignments)


def open_run(folder: str | Path, events: bool = True) -> RecordedRun:
    """Return the run whose records are in a folder; records that are damaged leave the others
    readable. ``events``: as of `reading.read`.

    Raises `UsageError` if there is no record or none can be read, and for records of several runs.
    """
    records, faults = read_records(folder, events)
    if not records:
        none = f"{folder} holds no records of omb-py profile: omb-py profile show prints others"
        raise UsageError(faults[0] if faults else none)
    return run_of(records, faults)


def read_records(folder: str | Path, events: bool = True) -> tuple[list[RankRecord], list[str]]:
    """Return the records in a folder that can be read, and a sentence on each of the others.

    ``events``: as of `reading.read`.
    """
    records, faults = [], []
    for path in layout.record_paths(folder):
        try:
            records.append(read(path, events))
        except UsageError as error:
            faults.append(str(error))
    return records, faults


def run_of(records: Iterable[RankRecord], faults: Iterable[str] = ()) -> RecordedRun:
    """Return the run of these records, at least one; raises `UsageError` for records of several
    runs."""
    ordered = sorted(records, key=lambda record: record.rank)
    size = ordered[0].ranks
    if len({record.ranks for record in ordered}) > 1:
        folder = Path(ordered[0].path).parent
        raise UsageError(f"{folder} holds records of several runs: give each a folder of its own")
    for first, second in pairwise(ordered):
        if first.rank == second.rank:
            raise UsageError(
                f"{first.path} and {second.path} are both of rank {first.rank}: "
                "give the records of one run"
            )
    return RecordedRun(size, tuple(align(ordered)), (*faults, *_missing(ordered, size)))


def _missing(ordered: Sequence[RankRecord], size: int) -> Iterator[str]:
    """Yield ranks without a record, ranks without an end, and the routines these were in."""
    if missing := other_ranks(size, (record.rank for record in ordered)):
        yield f"the records of {missing} are not there: no number here has them"
    unfinished = [record for record in ordered if not record.complete]
    if not unfinished:
        return
    last = sorted(record.elapsed_s for record in unfinished)
    when = f"{last[0]:.3f}" + (f" to {last[-1]:.3f}" if len(last) > 1 else "")
    yield (
        f"no end of {some_ranks(record.rank for record in unfinished)}: the numbers are those up "
        f"to {when} s after the beginning, when they were last heard of"
    )
    within: dict[str, list[tuple[int, int]]] = {}
    for record in unfinished:
        for one in record.threads:
            if one.routine and one.began >= record.began:
                there = record.rank, one.began - record.began
                within.setdefault(one.routine, []).append(there)
    for routine, found in sorted(within.items()):
        since = min(after for _, after in found) * NS
        who = some_ranks({rank for rank, _ in found})
        yield f"then {who} had been in {routine} since {since:.3f} s or later"


Clock: TypeAlias = tuple[str, int]
"""A host, and the number of its clock among those of that host; 0: unknown."""


@dataclass(frozen=True)
class Alignment:
    """The conversion of a rank's times to rank 0's clock.

    ``record`` is the rank's record with the comparisons that hold for its clock. A time is wrong by
    no more than ``error`` seconds: exactly 0 for ranks that read rank 0's clock, None if the clocks
    were never compared.
    """

    record: RankRecord
    error: float | None


def align(records: Sequence[RankRecord]) -> list[Alignment]:
    """Return the alignment of each record.

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
    """Return the alignment of one record, with the comparisons of each clock."""
    clock = clock_of(record)
    _, number = clock
    if record is first or (first is not None and number and clock == clock_of(first)):
        return Alignment(compared(record, ()), 0.0)
    made = best.get(clock, ()) if number else sound(record)
    errors = [comparison.error for comparison in made]
    return Alignment(compared(record, made), max(errors) if errors else None)


def clock_of(record: RankRecord) -> Clock:
    """Return the clock that a rank reads."""
    return record.host, int(record.header["clock"])


def drift(made: Sequence[ClockComparison]) -> float:
    """Return seconds in a second by which the offset grows from the first comparison to the
    last."""
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
    """Return the record with these comparisons instead of its own."""
    header = dict(record.header)
    for kind, comparison in zip(
        ("first", "last"), (*made[:1], *made[1:2], None, None), strict=False
    ):
        header[f"{kind}_at"] = comparison.at if comparison else 0
        header[f"{kind}_offset"] = comparison.offset if comparison else 0.0
        header[f"{kind}_error"] = comparison.error if comparison else 0.0
    return replace(record, header=header)
