"""A profile as text, as users of mpitrace know it.

Rows of the first tables are those of mpitrace (https://github.com/IBM/mpitrace): a routine's calls,
their average size and their time, then for each routine that moves data the same for each power
of two of sizes, with the average size in it. `mpitrace` reads a rank's text again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import PurePath
from typing import TextIO

from omb_py.core.errors import UsageError
from omb_py.core.text.numbers import MEBIBYTE
from omb_py.core.text.ranks import one_line, one_word, some_ranks
from omb_py.core.text.words import count
from omb_py.tracing.profile import tables
from omb_py.tracing.profile.profile import (
    MPITRACE,
    Extreme,
    Profile,
    ProfileLine,
    RankProfile,
    RoutineLine,
    ranked,
)

RULE, SHORT_RULE = "-" * 71, "-" * 65

MAX_ROWS = 100
"""Rows of a section that may have very many; the CSV has all of them."""

BINS = 15
MANY_RANKS = 32
"""Ranks beyond which a histogram says more than their table, as in mpitrace."""

HAVING_A_CORE = 0.9
"""A part of the time outside MPI: ranks that computed less had no core, slept, or read files."""


def file_data(members: Sequence[RankProfile]) -> Iterator[str]:
    """What was read from files and written to them, and how fast a rank did it."""
    lines = tables.file_data(members)
    if not lines:
        return
    yield from (SHORT_RULE, "Data of files (rates are those of one rank):", "")
    width = max(len(one_line(line.name)) for line in lines)
    head = f"{'':<{width}} {'#calls':>12} {'bytes':>16} {'time(sec)':>14} {'MB/s':>12}"
    yield head
    for line in lines:
        rate = "-" if line.rate is None else f"{line.rate / 1e6:.1f}"
        name = f"{one_line(line.name):<{width}} {line.calls:>12}"
        yield f"{name} {line.nbytes:>16.0f} {line.seconds:>14.3f} {rate:>12}"
    yield ""


def sites(members: Sequence[RankProfile]) -> Iterator[str]:
    """The lines of the program that called MPI, the longest first."""
    lines = tables.sites(members)
    if not lines:
        return
    shown = _short({line.site for line in lines})
    yield from (SHORT_RULE, "Points of call:", "")
    width = max(len(one_line(line.routine)) for line in lines)
    head = f"{'time(sec)':>12} {'#calls':>10} {'avg. bytes':>14}  {'MPI Routine':<{width}}"
    yield f"{head}  file:line function"
    for line in lines[:MAX_ROWS]:
        numbers = f"{line.seconds:>12.3f} {line.calls:>10} {line.average:>14.1f}"
        yield f"{numbers}  {one_line(line.routine):<{width}}  {one_line(shown[line.site])}"
    yield from _others(len(lines), "points of call with the most time")


def _short(found: set[str]) -> dict[str, str]:
    """Places without the folder that all of them share."""
    names = [PurePath(site).parts for site in found]
    common = 0
    for parts in zip(*(name[:-1] for name in names), strict=False):
        if len(set(parts)) > 1:
            break
        common += 1
    return {site: str(PurePath(*PurePath(site).parts[common:])) for site in found}


def communicators(members: Sequence[RankProfile]) -> Iterator[str]:
    """Calls by the size of their communicator, where there is more than one."""
    if tables.distinct_communicators(members) < 2:
        return
    lines = tables.communicators(members)
    yield from (SHORT_RULE, "Calls by the size of their communicator:", "")
    width = max(len(one_line(line.routine)) for line in lines)
    head = f"{'size':>8} {'communicators':>14}  {'MPI Routine':<{width}}"
    yield f"{head} {'#calls':>12} {'avg. bytes':>14} {'time(sec)':>14}"
    for line in lines:
        name = f"{line.size:>8} {line.communicators:>14}  {one_line(line.routine):<{width}}"
        yield f"{name} {line.calls:>12} {line.average:>14.1f} {line.seconds:>14.3f}"
    yield ""


def peers(members: Sequence[RankProfile]) -> Iterator[str]:
    """Who sends to whom; where there are very many pairs, those with the most bytes."""
    lines = tables.peers(members)
    if not lines:
        return
    number = len(lines)
    if number > MAX_ROWS:
        lines = sorted(lines, key=lambda line: (-line.nbytes, line.rank, line.peer))[:MAX_ROWS]
    yield from (SHORT_RULE, "Who sends to whom (ranks of MPI_COMM_WORLD):", "")
    head = f"{'taskid':>6} {'to':>8} {'#calls':>12} {'bytes':>16}"
    yield f"{head} {'avg. bytes':>14} {'time(sec)':>12}"
    for line in lines:
        yield (
            f"{line.rank:>6} {line.peer:>8} {line.calls:>12} {line.nbytes:>16.0f} "
            f"{line.average:>14.1f} {line.seconds:>12.3f}"
        )
    if tables.both_ways(members):
        yield "Bytes of MPI_Sendrecv are those sent and those received."
    yield from _others(number, "pairs with the most bytes")


def _others(number: int, kind: str) -> Iterator[str]:
    if number > MAX_ROWS:
        yield f"These are the {MAX_ROWS} {kind}; profile.csv has all {number}."
    yield ""


def processors(profile: Profile, members: Sequence[RankProfile]) -> Iterator[str]:
    """What a rank's thread computed in the time that it was outside MPI."""
    known = [member for member in members if _outside(member) is not None]
    if not known:
        return
    yield from (SHORT_RULE, "Time outside MPI, by the wall clock and by the CPU:", "")
    yield f"{'taskid':>6} {'wall(s)':>12} {'CPU(s)':>12} {'part(%)':>10}"
    wall = cpu = 0.0
    for member in known:
        outside, busy = _outside(member) or 0.0, member.outside_s or 0.0
        wall, cpu = wall + outside, cpu + busy
        if len(known) <= MAX_ROWS:
            part = f"{100 * busy / outside:>10.1f}" if outside else f"{'-':>10}"
            yield f"{member.rank:>6} {outside:>12.3f} {busy:>12.3f} {part}"
    if len(known) > 1:
        part = f"{100 * cpu / wall:>10.1f}" if wall else f"{'-':>10}"
        yield f"{'all':>6} {wall:>12.3f} {cpu:>12.3f} {part}"
    if wall and cpu < HAVING_A_CORE * wall:
        yield from (
            "",
            "For the rest of that time they had no core: more ranks or threads than cores, "
            "sleep, or files.",
        )
    yield ""


def _outside(member: RankProfile) -> float | None:
    """Seconds outside MPI, where it is known how many of them the thread computed."""
    spent = (member.elapsed_s, member.communication_s, member.outside_s)
    if None in spent:
        return None
    inside = (member.communication_s or 0.0) + (member.io_s or 0.0)
    return max(0.0, (member.elapsed_s or 0.0) - inside)


def ranks(profile: Profile) -> Iterator[str]:
    """The extremes of all ranks, and a row for each."""
    yield from (SHORT_RULE, "", "Communication summary for all tasks:", "")
    extremes = profile.extremes
    if extremes.memory is not None:
        most = extremes.memory
        yield f"  largest memory             = {most.value / MEBIBYTE:.2f} MiB for task {most.rank}"
    if extremes.elapsed is not None:
        longest = extremes.elapsed
        yield f"  longest elapsed time       = {longest.value:.2f} sec for task {longest.rank}"
    for name in ("minimum", "median", "maximum"):
        if (one := getattr(extremes, name)) is not None:
            yield f"  {name:<7} communication time = {one.value:.3f} sec for task {one.rank}"
    yield from _files(profile)
    yield ""
    yield from _histogram(profile)
    yield from _table(profile.members)


def _files(profile: Profile) -> Iterator[str]:
    values = ranked((member.io_s, member.rank) for member in profile.members)
    if not values or not values[-1].value:
        return
    minimum, most = values[0], values[-1]
    mean = sum(one.value for one in values) / len(values)
    yield f"  minimum MPI-IO time        = {minimum.value:.3f} sec for task {minimum.rank}"
    yield f"  average MPI-IO time        = {mean:.3f} sec"
    yield f"  maximum MPI-IO time        = {most.value:.3f} sec for task {most.rank}"


def histogram(seconds: Sequence[float]) -> list[tuple[float, int]]:
    """Bins of equal width, by their middle: the first has the minimum, the last the maximum.

    >>> histogram([1.0, 1.0, 2.4])[0]
    (1.0, 2)
    """
    minimum, most = min(seconds), max(seconds)
    width = (most - minimum) / (BINS - 1)
    if not width > 0:
        return [(minimum, len(seconds))]
    found = [0] * BINS
    for one in seconds:
        found[min(BINS - 1, int((one - minimum) / width + 0.5))] += 1
    return [(minimum + place * width, number) for place, number in enumerate(found)]


def _histogram(profile: Profile) -> Iterator[str]:
    seconds = [one.communication_s for one in profile.members if one.communication_s is not None]
    if len(seconds) > MANY_RANKS:
        yield "Histogram of communication times:"
        yield f"{'time-bin':>12} {'#ranks':>9}"
        yield from (f"{middle:>12.3f} {number:>9}" for middle, number in histogram(seconds))
        yield ""


def _table(members: Sequence[RankProfile]) -> Iterator[str]:
    width = max([14, *(len(one_word(member.host)) for member in members)])
    yield "MPI timing summary for all ranks:"
    yield (
        f"taskid {'hostname':>{width}} {'comm(s)':>11} {'elapsed(s)':>11} {'user(s)':>11} "
        f"{'system(s)':>11} {'size(MiB)':>11} {'switches':>11}"
    )
    for member in members:
        memory = None if member.memory_bytes is None else member.memory_bytes / MEBIBYTE
        seconds = (member.communication_s, member.elapsed_s, member.user_s, member.system_s)
        cells = " ".join(f"{_two_digits(value):>11}" for value in (*seconds, memory))
        switches = "-" if member.switches is None else member.switches
        mark = "" if member.complete else "  not complete"
        yield f"{member.rank:>6} {one_word(member.host):>{width}} {cells} {switches:>11}{mark}"
    yield ""


def _two_digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


NAMES, SIZES = 28, 20
"""Minimum widths of names of routines, and of what stands before the calls of a size."""

ROOM = 5
"""Columns of numbers of calls into which the name above them reaches."""

LONGEST = 60
"""Letters of what an MPI library says of itself."""

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
        yield from ranks(profile)
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
    yield from ranks(profile)
    yield from _notes(profile)


def _origin(profile: Profile, members: Sequence[RankProfile]) -> Iterator[str]:
    """Who recorded what, when and where."""
    if profile.notes:
        notes = count(len(profile.notes), "note")
        yield f"What is missing or not exact: see the {notes} at the end."
    if profile.origin == MPITRACE:
        yield "Recorded by mpitrace."
        return
    yield "Recorded by omb-py."
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


def numbers(line: ProfileLine, width: int = 14) -> str:
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
        yield f"max resident set size    = {member.memory_bytes / MEBIBYTE:.3f} MiB."
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
        yield f"max resident set size    = {memory.value / MEBIBYTE:.3f} MiB, rank {memory.rank}."
    yield ""


def _details(profile: Profile, members: Sequence[RankProfile]) -> Iterator[str]:
    """The sections of these ranks that there is data for."""
    yield from _sizes(members)
    yield from file_data(members)
    yield from sites(members)
    yield from communicators(members)
    yield from peers(members)
    yield from processors(profile, members)


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
