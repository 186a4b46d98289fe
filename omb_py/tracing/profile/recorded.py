"""A profile from the records that the ranks of a run wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from omb_py.core.errors import UsageError
from omb_py.core.text.ranks import other_ranks, some_ranks
from omb_py.tracing import records
from omb_py.tracing.profile.profile import (
    LOST_NAME,
    OWN,
    CallStats,
    Profile,
    RankProfile,
    extremes_of,
)
from omb_py.tracing.profile.tables import communication_of
from omb_py.tracing.records import NS, RankRecord, layout


def folder_records(folder: Path) -> tuple[list[RankRecord], list[str]]:
    """The records in a folder, and sentences on those that cannot be read.

    Raises `UsageError` where none can be: a rank that was killed while it made its own leaves the
    others readable.
    """
    read: list[RankRecord] = []
    notes: list[str] = []
    paths = layout.record_paths(folder)
    for path in paths:
        try:
            read.append(record_in(path))
        except UsageError as error:
            if len(notes) == len(paths) - 1:
                raise
            notes.append(str(error))
    return read, notes


def record_in(path: Path) -> RankRecord:
    """The record in a file; raises `UsageError` where it is none, or is damaged in any way."""
    try:
        return records.read(path)
    except (ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise UsageError(f"{path} is damaged: {error}") from error


def profile_of(found: Sequence[RankRecord], notes: Iterable[str] = ()) -> Profile:
    """The profile of one run from its records, with more notes.

    Raises `UsageError` for records of several runs, and where one holds what cannot be.
    """
    ordered = sorted(found, key=lambda record: record.rank)
    ranks = _ranks(ordered)
    try:
        members = tuple(_member(record) for record in ordered)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise UsageError(f"{ordered[0].path} or one beside it is damaged: {error}") from error
    return Profile(
        ranks=ranks,
        members=members,
        extremes=extremes_of(members),
        origin=OWN,
        began=min(record.header["began_epoch"] for record in ordered) * NS,
        about=ordered[0].about,
        notes=(*notes, *_notes(ordered, ranks)),
    )


def _ranks(ordered: Sequence[RankRecord]) -> int:
    ranks = ordered[0].ranks
    if len({record.ranks for record in ordered}) > 1:
        raise UsageError("these records are of several runs: give those of one run")
    for first, second in pairwise(ordered):
        if first.rank == second.rank:
            raise UsageError(
                f"{first.path} and {second.path} are both of rank {first.rank}: "
                "give the records of one run"
            )
    for record in ordered:
        if not 0 <= record.rank < ranks:
            raise UsageError(f"{record.path} is damaged: no rank {record.rank} of {ranks}")
    return ranks


def _member(record: RankRecord) -> RankProfile:
    header, cells = record.header, tuple(_cells(record))
    communication, in_files = communication_of(cells)
    heard = header["updated"] > 0
    outside = header["outside_ns"]
    return RankProfile(
        rank=record.rank,
        host=record.host or None,
        complete=record.complete,
        elapsed_s=max(0.0, record.elapsed_s),
        communication_s=communication,
        io_s=in_files,
        user_s=header["user_ns"] * NS if heard else None,
        system_s=header["system_ns"] * NS if heard else None,
        thread_s=header["thread_ns"] * NS if heard and header["thread_ns"] else None,
        outside_s=outside * NS if heard and outside >= 0 else None,
        memory_bytes=header["memory_bytes"] or None,
        switches=header["switches"] if heard else None,
        cells=cells,
    )


def _cells(record: RankRecord) -> Iterable[CallStats]:
    names, found = record.names, record.communicators
    number = len(names)
    for (
        routine,
        communicator,
        peer,
        bin,
        site,
        _,
        calls,
        nbytes,
        ns,
        minimum,
        maximum,
    ) in record.cell_values():
        if calls <= 0:
            continue
        yield CallStats(
            (names[routine] if 0 <= routine < number else "") or LOST_NAME,
            found.get(communicator),
            peer if peer >= 0 else None,
            bin if bin >= 0 else None,
            names[site] or None if 0 <= site < number else None,
            calls,
            max(0, nbytes),
            ns * NS,
            minimum * NS,
            maximum * NS,
        )


def _notes(ordered: Sequence[RankRecord], ranks: int) -> Iterable[str]:
    if missing := other_ranks(ranks, (record.rank for record in ordered)):
        yield f"the records of {missing} are not there: no sum has them"
    yield from _unfinished([record for record in ordered if not record.complete])
    for losses, text in (
        (_counts(ordered, "cells_lost"), "calls found no room in the record and are in no table"),
        (
            _counts(ordered, "names_lost"),
            f"names found no room in the record: routines are {LOST_NAME}, places and "
            "communicators are left out",
        ),
        (
            {record.rank: record.lost_events for record in ordered if record.lost_events},
            "events of the timeline were written over by later ones; the tables have all calls",
        ),
    ):
        if losses:
            yield f"{some_ranks(losses)}: {sum(losses.values())} {text}"
    unheard = [record.rank for record in ordered if record.header["updated"] <= 0]
    if unheard:
        yield f"CPU time and memory of {some_ranks(unheard)} are not known"


def _counts(ordered: Sequence[RankRecord], name: str) -> dict[int, int]:
    """A count of the header, for those ranks where there is any."""
    return {record.rank: record.header[name] for record in ordered if record.header[name] > 0}


def _unfinished(found: Sequence[RankRecord]) -> Iterable[str]:
    """Who did not come to its end, when it was last heard of, and in which routine."""
    if not found:
        return
    last = sorted(record.elapsed_s for record in found)
    when = f"{last[0]:.3f}" + (f" to {last[-1]:.3f}" if len(found) > 1 else "")
    yield (
        f"no end of {some_ranks(record.rank for record in found)}: the numbers are those up to "
        f"{when} s after the beginning, when they were last heard of"
    )
    within: dict[str, list[RankRecord]] = {}
    for record in found:
        if record.now.routine and record.now.began >= record.began:
            within.setdefault(record.now.routine, []).append(record)
    for routine, there in sorted(within.items()):
        since = min(record.now.began - record.began for record in there) * NS
        who = some_ranks(record.rank for record in there)
        yield f"then {who} had been in {routine} since {since:.3f} s or later"
