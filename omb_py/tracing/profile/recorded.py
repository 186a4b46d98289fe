"""A profile from the records that the ranks of a run wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omb_py.core.errors import UsageError
from omb_py.core.text.ranks import some_ranks
from omb_py.tracing.profile.profile import (
    LOST_NAME,
    OWN,
    CallStats,
    Profile,
    RankProfile,
    extremes_of,
)
from omb_py.tracing.profile.tables import communication_of
from omb_py.tracing.records.reading import NS, RankRecord
from omb_py.tracing.records.run import RecordedRun


def profile_of(run: RecordedRun) -> Profile:
    """Return the profile of a run; raises `UsageError` if a record is damaged."""
    records = run.records
    try:
        members = tuple(_member(record) for record in records)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise UsageError(f"{records[0].path} or one beside it is damaged: {error}") from error
    return Profile(
        ranks=run.size,
        members=members,
        extremes=extremes_of(members),
        origin=OWN,
        began=min(record.header["began_epoch"] for record in records) * NS,
        about=run.about,
        notes=(*run.notes, *_notes(records)),
    )


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


def _notes(ordered: Sequence[RankRecord]) -> Iterable[str]:
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
    """Return a count of the header, for those ranks where there is any."""
    return {record.rank: record.header[name] for record in ordered if record.header[name] > 0}
