"""A profile as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import PurePath

from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import MEBIBYTE, size_text
from omb_py.core.text.words import count, one_line, one_word, some_ranks
from omb_py.tracing.profile import tables
from omb_py.tracing.profile.profile import (
    MPITRACE,
    Extreme,
    Profile,
    RankProfile,
    ranked,
    spread_of,
)
from omb_py.tracing.profile.tables import Sums
from omb_py.tracing.records.layout import largest_in
from omb_py.tracing.records.routines import Role, role

MAX_ROWS = 100
"""Rows of a table that may have very many; the CSV has all of them."""

LONGEST = 60
"""Letters of an MPI library's version."""

NUMBERS = ("calls", "avg bytes", "seconds")
SPREAD = ("minimum (rank)", "median (rank)", "maximum (rank)")
TOTALS = (
    ("communication time", "communication_s"),
    ("elapsed time", "elapsed_s"),
    ("user CPU time", "user_s"),
    ("system CPU time", "system_s"),
    ("MPI-IO time", "io_s"),
    ("resident memory", "memory_bytes"),
)
"""Names of the values of a whole rank, and its attributes."""


def sheets(profile: Profile) -> list[Sheet]:
    """Return the tables of all ranks together; those without rows are left out."""
    members = profile.counted
    made = [
        *_routines(members),
        _totals(profile),
        _sizes(members),
        _file_data(members),
        _sites(members),
        _communicators(members),
        _peers(members),
        _ranks(profile.members),
    ]
    first = Sheet(_title(profile), (), (), above="\n".join(_origin(profile, members)))
    return [first, *(sheet for sheet in made if sheet.rows)]


def notes(profile: Profile) -> list[str]:
    """Return notes about missing or inexact values, each on a line."""
    return [one_line(note) for note in profile.notes]


def _title(profile: Profile) -> str:
    there = [member.rank for member in profile.counted]
    if len(there) == profile.ranks:
        return f"Profile of all {count(profile.ranks, 'rank')}"
    who = some_ranks(there) or "none"
    return f"Profile of {len(there)} of {profile.ranks} ranks ({who})"


def _origin(profile: Profile, members: Iterable[RankProfile]) -> Iterator[str]:
    """Yield the recording program, the time and the hosts."""
    if profile.notes:
        yield f"Missing or inexact: see the {count(len(profile.notes), 'note')} at the end."
    if profile.origin == MPITRACE:
        yield "Recorded by mpitrace."
        return
    yield "Recorded by omb-py."
    program = profile.about.get("command") or profile.about.get("program")
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
        moment = datetime.fromtimestamp(began or 0.0, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC") if began else ""


def _routines(members: Sequence[RankProfile]) -> Iterator[Sheet]:
    """Yield routines, then those of MPI-IO; of several ranks with the extremes over them."""
    apart = len(members) > 1
    lines = tables.routines(members)
    spreads = tables.spreads(members) if apart else {}
    columns = ("", *NUMBERS, *(SPREAD if apart else ()))
    for title, files in (("MPI routines", False), ("MPI-IO routines", True)):
        rows = tuple(
            (one_line(name), *_numbers(line), *map(_seconds_of, spreads.get(name, ())))
            for name, line in lines.items()
            if tables.is_file(name) is files
        )
        yield Sheet(title, columns, rows)


def _numbers(line: Sums) -> tuple[str, ...]:
    """Calls, average size and time."""
    return f"{line.calls}", f"{line.average:.1f}", f"{line.seconds:.3f}"


def _seconds_of(one: Extreme) -> str:
    return f"{one.value:.3f} ({one.rank})"


def _total(name: str, value: float) -> str:
    return f"{value / MEBIBYTE:.1f} MiB" if name == "memory_bytes" else f"{value:.3f} s"


def _totals(profile: Profile) -> Sheet:
    """Time and memory of all ranks together, and the ranks with the extremes."""
    extremes, rows = profile.extremes, []
    known = {
        "communication_s": (extremes.minimum, extremes.median, extremes.maximum),
        "elapsed_s": (None, None, extremes.elapsed),
        "memory_bytes": (None, None, extremes.memory),
    }
    for title, name in TOTALS:
        values = ranked((getattr(member, name), member.rank) for member in profile.members)
        found = known.get(name) or spread_of(values) or ()
        if any(found) and (name != "io_s" or values[-1].value):
            whole = sum(one.value for one in values)
            cells = (f"{_total(name, one.value)} ({one.rank})" if one else "-" for one in found)
            rows.append((title, f"{len(values)}", _total(name, whole) if values else "-", *cells))
    return Sheet("Totals", ("", "ranks", "sum", *SPREAD), tuple(rows))


def _sizes(members: Sequence[RankProfile]) -> Sheet:
    rows, so_far = [], dict[str, int]()
    for (name, bin), line in tables.sizes(members).items():
        so_far[name] = so_far.get(name, 0) + line.calls
        upto = size_text(largest_in(bin)), f"{so_far[name]}"
        rows.append((one_line(name), *upto, f"{line.nbytes:.0f}", *_numbers(line)))
    return Sheet("Message sizes", ("", "up to", "calls so far", "bytes", *NUMBERS), tuple(rows))


def _file_data(members: Sequence[RankProfile]) -> Sheet:
    rows = []
    for name, (line, rate) in tables.file_data(members).items():
        numbers = f"{line.calls}", f"{line.nbytes:.0f}", f"{line.seconds:.3f}"
        rows.append((one_line(name), *numbers, "-" if rate is None else f"{rate / 1e6:.1f}"))
    columns = ("", "calls", "bytes", "seconds", "MB/s of a rank")
    return Sheet("Data of files", columns, tuple(rows))


def _sites(members: Sequence[RankProfile]) -> Sheet:
    """Return the lines of the program that called MPI, the longest first."""
    found = tables.sites(members)
    shown = _short({site for site, _ in found})
    rows = tuple(
        (one_line(routine), one_line(shown[site]), *_numbers(line))
        for (site, routine), line in found.items()
    )
    remarks = _others(len(rows), "lines with the most time")
    columns = ("", "file:line function", *NUMBERS)
    return Sheet("Points of call", columns, rows[:MAX_ROWS], remarks, left=2)


def _short(found: set[str]) -> dict[str, str]:
    """Return places without the folder that all of them share."""
    names = [PurePath(site).parts for site in found]
    common = 0
    for parts in zip(*(name[:-1] for name in names), strict=False):
        if len(set(parts)) > 1:
            break
        common += 1
    return {site: str(PurePath(*PurePath(site).parts[common:])) for site in found}


def _communicators(members: Sequence[RankProfile]) -> Sheet:
    """Return calls by the size of their communicator, if there is more than one."""
    keys = {cell.communicator.key for cell in tables.cells_of(members) if cell.communicator}
    found = tables.communicators(members) if len(keys) > 1 else {}
    rows = tuple(
        (f"{size}", f"{number}", one_line(routine), *_numbers(line))
        for (size, routine), (line, number) in found.items()
    )
    columns = ("ranks", "communicators", "", *NUMBERS)
    return Sheet("Calls by the size of their communicator", columns, rows, left=3)


def _peers(members: Sequence[RankProfile]) -> Sheet:
    """Return the table of senders and receivers; of very many pairs those with the most bytes."""
    found = list(tables.peers(members).items())
    number = len(found)
    if number > MAX_ROWS:
        found = sorted(found, key=lambda item: (-item[1].nbytes, item[0]))[:MAX_ROWS]
    rows = tuple(
        (f"{rank}", f"{peer}", f"{line.calls}", f"{line.nbytes:.0f}", *_numbers(line)[1:])
        for (rank, peer), line in found
    )
    both = ("Bytes of MPI_Sendrecv are those sent and those received.",)
    exchanges = Role.SENDRECV in map(role, {one.routine for one in tables.cells_of(members)})
    remarks = (both if exchanges else ()) + _others(number, "pairs with the most bytes")
    columns = ("rank", "to", "calls", "bytes", *NUMBERS[1:])
    return Sheet("Who sends to whom (ranks of MPI_COMM_WORLD)", columns, rows, remarks, left=0)


def _others(number: int, kind: str) -> tuple[str, ...]:
    text = f"These are the {MAX_ROWS} {kind}; profile.csv has all {number}."
    return (text,) if number > MAX_ROWS else ()


def _ranks(members: Sequence[RankProfile]) -> Sheet:
    """Return a row for each rank."""
    rows = []
    for one in members:
        memory = None if one.memory_bytes is None else one.memory_bytes / MEBIBYTE
        numbers = (one.communication_s, one.elapsed_s, one.user_s, one.system_s, memory)
        cells = ("-" if value is None else f"{value:.2f}" for value in numbers)
        switches = "-" if one.switches is None else f"{one.switches}"
        end = "yes" if one.complete else "no"
        rows.append((f"{one.rank}", one_word(one.host), *cells, switches, end))
    times = ("communication (s)", "elapsed (s)", "user (s)", "system (s)")
    columns = ("rank", "host", *times, "memory (MiB)", "switches", "complete")
    return Sheet("All ranks", columns, tuple(rows), left=2)
