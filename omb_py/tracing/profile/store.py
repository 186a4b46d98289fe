"""The files of a profile, and profiles from the records of a run or from mpitrace's files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omb_py.core.dataclass import values
from omb_py.core.errors import UsageError
from omb_py.core.text import files
from omb_py.core.text.tables import plain
from omb_py.core.text.words import count, csv_cell, first_of, one_line, some_ranks
from omb_py.tracing.profile import text
from omb_py.tracing.profile.profile import (
    LOST_NAME,
    OWN,
    CallStats,
    Profile,
    RankProfile,
    extremes_of,
)
from omb_py.tracing.profile.tables import communication_of, is_file
from omb_py.tracing.records import layout
from omb_py.tracing.records.reading import MAIN, NS, RankRecord, ThreadRecord, read
from omb_py.tracing.records.routines import STOPPED
from omb_py.tracing.records.run import RecordedRun, open_run, run_of

OF_RANKS = """rank host complete elapsed_s communication_s io_s user_s system_s memory_bytes
    switches counted"""
OF_CALLS = """routine communicator communicator_size communicator_label peer bin site calls nbytes
    seconds least_s greatest_s"""
COLUMNS = ("row", *OF_RANKS.split(), *OF_CALLS.split())
"""Columns of the CSV: a row is a rank (``row`` is ``rank``), or calls that are alike
(``calls``)."""


def write(profile: Profile, folder: str | Path) -> list[Path]:
    """Write the text and the CSV of a profile, and return their paths.

    Raises `OmbError` when one cannot be written.
    """
    folder = Path(folder)
    wanted = {
        folder / "profile.txt": plain(text.sheets(profile), text.notes(profile)),
        folder / "profile.csv": csv_text(profile),
    }
    for path, content in wanted.items():
        files.write(path, content)
    return list(wanted)


def csv_text(profile: Profile) -> str:
    """Return the ranks and calls of a profile as CSV, with `COLUMNS`; unknown values are empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for member in profile.members:
        counted = member.cells is not None
        writer.writerow(_row("rank", {**values(member), "counted": counted}))
    for member in profile.members:
        for cell in member.cells or ():
            writer.writerow(_row("calls", {"rank": member.rank, **_of_calls(cell)}))
    return out.getvalue()


def _row(kind: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the CSV: a text on one line, a truth as a word, all else as it is."""
    cells = {"row": kind, **found}
    for name, value in cells.items():
        if isinstance(value, str):
            cells[name] = csv_cell(one_line(value))
        elif isinstance(value, bool):
            cells[name] = ("no", "yes")[value]
    return cells


def _of_calls(cell: CallStats) -> dict[str, Any]:
    known = values(cell)
    if (communicator := cell.communicator) is not None:
        known["communicator"] = communicator.key
        known["communicator_size"] = communicator.size
        known["communicator_label"] = communicator.label
    return known


RECORD, TEXT = "a record", "a profile of mpitrace"
FILES_OF_MPITRACE = "mpi_profile.*"
PACKED_TIMELINE = ".json.gz"
TIMELINE_BEGINS = b'{"displayTimeUnit"'
WRITTEN_BEGINS = (b"row,rank,", b"{", b"[", b"Profile of ")
"""Beginnings of the files that `write` and other programs write, which have no records."""


def load(paths: Sequence[str]) -> Profile:
    """Return the profile of one run, from its folder, its records, or mpitrace's files.

    Raises `UsageError` if there is none, if a file is damaged, and for several runs.
    """
    if not paths:
        raise UsageError("name the folder of a profile, or its files")
    if len(paths) == 1 and layout.record_paths(paths[0]):
        return profile_of(open_run(paths[0], events=False))
    found = [file for path in paths for file in _files(Path(path))]
    kinds = {kind_of(file): str(file) for file in found}
    if len(kinds) > 1:
        (one, first), (other, second), *_ = kinds.items()
        raise UsageError(f"{first} is {one}, {second} is {other}: give files of one kind")
    if RECORD in kinds:
        return profile_of(run_of(read(file, events=False) for file in found))
    from omb_py.tracing.profile import mpitrace

    return mpitrace.profile_of([mpitrace.read_file(str(file)) for file in found])


def kind_of(path: Path) -> str:
    """Return the kind of a file, from its first bytes; raises `UsageError` if it cannot be read."""
    files.check(path, UsageError)
    with files.failing("read", path, UsageError), path.open("rb") as file:
        start = file.read(64)
    if not start:
        raise UsageError(f"{path} is empty: what should have written it wrote nothing")
    if start.startswith(layout.MAGIC) or path.name.endswith(layout.SUFFIX):
        return RECORD
    if path.name.endswith(PACKED_TIMELINE) or start.startswith(TIMELINE_BEGINS):
        raise UsageError(
            f"{path} is a timeline: open it at https://ui.perfetto.dev, name the run's folder, or "
            "unpack it if Horovod wrote it"
        )
    if start.startswith(WRITTEN_BEGINS):
        raise UsageError(
            f"{path} is written for people or other programs: name the run's folder, which has its "
            "records (omb-py profile show prints files of Horovod and NCCL)"
        )
    return TEXT


def _files(path: Path) -> list[Path]:
    """Return the file, or a folder's: records, or mpitrace's files."""
    if not path.is_dir():
        return [path]
    for pattern in (layout.PATTERN, FILES_OF_MPITRACE):
        if found := sorted(file for file in path.glob(pattern) if file.is_file()):
            return found
    raise UsageError(f"{path} holds no profile: name a folder that omb-py profile made")


def profile_of(run: RecordedRun) -> Profile:
    """Return the profile of a run; raises `UsageError` if a record is damaged."""
    records = run.records
    try:
        members = tuple(_member(record) for record in records)
        elapsed = _elapsed(run)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise UsageError(f"{records[0].path} or one beside it is damaged: {error}") from error
    return Profile(
        ranks=run.size,
        members=members,
        extremes=extremes_of(members),
        origin=OWN,
        began=min(record.header["began_epoch"] for record in records) * NS,
        elapsed_s=elapsed,
        about=run.about,
        notes=(*run.notes, *_notes(records)),
    )


def _elapsed(run: RecordedRun) -> float | None:
    """Return seconds from the first beginning to the last end, None if clocks were not compared."""
    if not run.on_one_clock:
        return None
    began = min(int(record.common(record.began)) for record in run.records)
    return (max(int(record.common(record.ended)) for record in run.records) - began) * NS


def _member(record: RankRecord) -> RankProfile:
    header, cells = record.header, tuple(_calls_of_rank(record))
    communication, in_files = communication_of(cells)
    for now in record.threads:
        if not record.complete and now.routine and record.began <= now.began <= record.ended:
            inside = (record.ended - now.began) * NS
            if is_file(now.routine):
                in_files += inside
            else:
                communication += inside
    heard = header["updated"] > 0
    return RankProfile(
        rank=record.rank,
        host=record.host or None,
        complete=record.complete,
        elapsed_s=max(0.0, record.elapsed_s),
        communication_s=communication,
        io_s=in_files,
        user_s=header["user_ns"] * NS if heard else None,
        system_s=header["system_ns"] * NS if heard else None,
        memory_bytes=header["memory_bytes"] or None,
        switches=header["switches"] if heard else None,
        cells=cells,
        stopped_s=sum(cell.seconds for cell in cells if cell.routine == STOPPED),
        threaded=threaded(record),
    )


def _calls_of_rank(record: RankRecord) -> Iterable[CallStats]:
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
            bin if 0 <= bin < 63 else None,  # one of sizes that C can count with
            names[site] or None if 0 <= site < number else None,
            calls,
            max(0, nbytes),
            ns * NS,
            minimum * NS,
            maximum * NS,
        )


def _notes(ordered: Sequence[RankRecord]) -> Iterable[str]:
    several = [
        f"rank {record.rank} ({first_of([*map(_calls_of_thread, record.threads)], 4, '; ')})"
        for record in filter(threaded, ordered)
    ]
    if several:
        yield (
            "other threads than the main one called MPI: times in MPI are sums over threads, and "
            f"the time outside MPI is not known: {first_of(several, 4)}"
        )
    for losses, sentence in (
        (_counts(ordered, "cells_lost"), "calls found no room in the record and are in no table"),
        (
            _counts(ordered, "names_lost"),
            f"names found no room in the record: routines are {LOST_NAME}, places and "
            "communicators are left out",
        ),
        (
            _counts(ordered, "threads_lost"),
            "threads found no room in the record: their calls are in no table of threads",
        ),
        (
            {record.rank: record.lost_events for record in ordered if record.lost_events},
            "events of the timeline were written over by later ones; the tables have all calls",
        ),
    ):
        if losses:
            yield f"{some_ranks(losses)}: {sum(losses.values())} {sentence}"
    unheard = [record.rank for record in ordered if record.header["updated"] <= 0]
    if unheard:
        yield f"CPU time and memory of {some_ranks(unheard)} are not known"


def threaded(record: RankRecord) -> bool:
    """Return whether other threads than the main one called MPI."""
    return any(one.name != MAIN or one.threads > 1 for one in record.threads)


def _calls_of_thread(one: ThreadRecord) -> str:
    others = f" and {one.threads - 1} that ended before it" if one.threads > 1 else ""
    return f"{one.name}{others}: {count(one.calls, 'call')}, {one.ns * NS:.3f} s"


def _counts(ordered: Sequence[RankRecord], name: str) -> dict[int, int]:
    """Return a count of the header, for those ranks where there is any."""
    return {record.rank: record.header[name] for record in ordered if record.header[name] > 0}
