"""A profile as text, as users of mpitrace know it.

Rows of the first tables are those of mpitrace (https://github.com/IBM/mpitrace): a routine's calls,
their average size and their time, then for each routine that moves data the same for each power
of two of sizes, with the average size in it. `profiles.mpitrace` reads a rank's text again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from typing import TextIO

from omb_py.errors import UsageError
from omb_py.profiles import sections, tables
from omb_py.profiles.profile import (
    MPITRACE,
    Extreme,
    Line,
    Profile,
    RankProfile,
    RoutineLine,
)
from omb_py.profiles.wording import one_line, some_ranks
from omb_py.wording import count

RULE, SHORT_RULE = "-" * 71, "-" * 65
NAMES, SIZES = 28, 20
"""Least widths of names of routines, and of what stands before the calls of a size."""

ROOM = 5
"""Columns of numbers of calls into which the name above them reaches."""

LONGEST = 60
"""Letters of what an MPI library says of itself."""

MIB = 1 << 20
SUMMARIES = 2
"""Ranks from which on they are compared."""


def write(profile: Profile, rank: int | None, out: TextIO) -> None:
    """Write the profile of a rank or, for None, of all ranks together.

    Raises `UsageError` where nothing is known of the rank.
    """
    lines = _of_all(profile) if rank is None else _of_rank(profile, _member(profile, rank))
    out.writelines(f"{line}\n" for line in lines)


def _member(profile: Profile, rank: int) -> RankProfile:
    member = profile.member(rank)
    if member is None:
        there = some_ranks(member.rank for member in profile.members)
        raise UsageError(f"nothing is known of rank {rank}: there is {there} of {profile.ranks}")
    return member


def _of_rank(profile: Profile, member: RankProfile) -> Iterator[str]:
    yield f"Data for MPI rank {member.rank} of {profile.ranks}:"
    yield from _origin(profile, [member])
    yield from _routines([member], apart=False)
    yield from _places(profile, member)
    yield from _totals(member)
    yield from _details(profile, [member])
    if member.rank == 0:
        yield from sections.ranks(profile)
    yield from _notes(profile)


def _of_all(profile: Profile) -> Iterator[str]:
    counted = profile.counted
    number = len(counted)
    if number == profile.ranks:
        yield f"Data for all {count(profile.ranks, 'MPI rank')}:"
    else:
        who = some_ranks(member.rank for member in counted) if counted else "none"
        yield f"Data for {number} of {profile.ranks} MPI ranks ({who}):"
    yield from _origin(profile, profile.members)
    yield from _routines(counted, apart=number >= SUMMARIES)
    yield from _sums(profile)
    yield from _details(profile, counted)
    yield from sections.ranks(profile)
    yield from _notes(profile)


def _origin(profile: Profile, members: Sequence[RankProfile]) -> Iterator[str]:
    """Who recorded what, when and where."""
    if profile.notes:
        notes = count(len(profile.notes), "note")
        yield f"What is missing or not exact: see the {notes} at the end."
    if profile.origin == MPITRACE:
        yield "Recorded by mpitrace."
        return
    level = "" if profile.level is None else f", calls of MPI seen in {one_line(profile.level)}"
    yield f"Recorded by omb-py{level}."
    program = profile.about.get("command") or profile.about.get("program")
    if isinstance(program, list):
        program = " ".join(map(str, program))
    if program:
        yield f"Program: {one_line(str(program))}"
    if library := profile.about.get("mpi"):
        yield f"MPI: {one_line(str(library))[:LONGEST]}"
    hosts = {member.host for member in members if member.host}
    where = one_line(hosts.pop()) if len(hosts) == 1 else count(len(hosts), "host")
    if began := _date(profile.began):
        yield f"Began {began} on {where}."


def _date(began: float | None) -> str:
    try:
        moment = datetime.fromtimestamp(began or 0.0, tz=timezone.utc)
    except (OverflowError, ValueError, OSError):
        return ""
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC") if began else ""


def _routines(members: Sequence[RankProfile], apart: bool) -> Iterator[str]:
    """The table of routines, that of MPI-IO below; ``apart`` adds the extremes over the ranks."""
    lines = tables.routines(members)
    spreads = tables.spreads(members) if apart else {}
    width = max([NAMES, *(len(one_line(line.routine)) for line in lines)])
    yield from _routine_table("MPI Routine", lines, spreads, width, files=False)
    if any(tables.is_file(line.routine) for line in lines):
        yield from _routine_table("MPI-IO Routine", lines, spreads, width, files=True)


def _routine_table(
    title: str,
    lines: Iterable[RoutineLine],
    spreads: dict[str, tables.RoutineSpread],
    width: int,
    files: bool,
) -> Iterator[str]:
    head = f"{title:<{width}} {'#calls':>12} {'avg. bytes':>14} {'time(sec)':>14}"
    for name in ("min(sec)", "median(sec)", "max(sec)") if spreads else ():
        head += f" {name:>12} {'taskid':>7}"
    yield from ("-" * max(len(RULE), len(head)), head, "-" * max(len(RULE), len(head)))
    for line in lines:
        if tables.is_file(line.routine) == files:
            row = f"{one_line(line.routine):<{width}} {numbers(line)}"
            if (spread := spreads.get(line.routine)) is not None:
                for one in (spread.minimum, spread.median, spread.maximum):
                    row += f" {one.value:>12.3f} {one.rank:>7}"
            yield row
    yield "-" * max(len(RULE), len(head))


def numbers(line: Line, width: int = 14) -> str:
    """Calls, average size and time, as columns."""
    return f"{line.calls:>12} {line.average:>14.1f} {line.seconds:>{width}.3f}"


def _places(profile: Profile, member: RankProfile) -> Iterator[str]:
    """Which of the extremes this rank is."""
    for name in ("minimum", "median", "maximum"):
        one: Extreme | None = getattr(profile.extremes, name)
        if one is not None and one.rank == member.rank and profile.ranks > 1:
            yield f"MPI task {member.rank} of {profile.ranks} had the {name} communication time."


def _totals(member: RankProfile) -> Iterator[str]:
    """A rank's time and memory."""
    if member.communication_s is not None:
        yield f"total communication time = {member.communication_s:.3f} seconds."
    if member.elapsed_s is not None:
        yield f"total elapsed time       = {member.elapsed_s:.3f} seconds."
    if member.user_s is not None:
        yield f"user cpu time            = {member.user_s:.3f} seconds."
    if member.system_s is not None:
        yield f"system time              = {member.system_s:.3f} seconds."
    if member.memory_bytes is not None:
        yield f"max resident set size    = {member.memory_bytes / MIB:.3f} MiB."
    if member.io_s:
        yield f"total MPI-IO time        = {member.io_s:.3f} seconds."
    yield ""
    if member.cells is None:
        yield from ("The calls of this rank are not known.", "")


def _sums(profile: Profile) -> Iterator[str]:
    """The time of all ranks together."""
    members = profile.members
    for title, name in (
        ("total communication time", "communication_s"),
        ("user cpu time           ", "user_s"),
        ("system time             ", "system_s"),
        ("total MPI-IO time       ", "io_s"),
    ):
        known = [value for member in members if (value := getattr(member, name)) is not None]
        if known and (name != "io_s" or any(known)):
            yield f"{title} = {sum(known):.3f} seconds, the sum of {count(len(known), 'rank')}."
    most = profile.extremes
    if most.elapsed is not None:
        elapsed = most.elapsed
        yield f"longest elapsed time     = {elapsed.value:.3f} seconds, rank {elapsed.rank}."
    if most.memory is not None:
        memory = most.memory
        yield f"max resident set size    = {memory.value / MIB:.3f} MiB, rank {memory.rank}."
    yield ""


def _details(profile: Profile, members: Sequence[RankProfile]) -> Iterator[str]:
    """The sections of these ranks that there is data for."""
    yield from _sizes(members)
    yield from sections.sites(members)
    yield from sections.communicators(members)
    yield from sections.peers(members)
    yield from sections.processors(profile, members)


def _sizes(members: Sequence[RankProfile]) -> Iterator[str]:
    found = tables.sizes(members)
    if not found:
        return
    yield from (SHORT_RULE, "Message size distributions:", "")
    width = max([SIZES, *(len(one_line(name)) - ROOM for name in found)])
    for name, lines in found.items():
        head = f"{one_line(name):<{width + ROOM}} {'#calls':>{11 - ROOM}}"
        yield f"{head} {'avg. bytes':>13} {'time(sec)':>14}"
        for line in lines:
            yield f"{'':<{width}} {line.calls:>11} {line.average:>13.1f} {line.seconds:>14.3f}"
        yield ""


def _notes(profile: Profile) -> Iterator[str]:
    if profile.notes:
        yield from (SHORT_RULE, "Notes:", "")
        for note in profile.notes:
            yield f"  {one_line(note)}"
