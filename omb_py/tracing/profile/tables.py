"""Tables of a profile: its calls put together by routine, size, communicator, peer or place."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from omb_py.core.dataclass import dataclass
from omb_py.tracing.profile.profile import (
    CallStats,
    Extreme,
    ProfileLine,
    RankProfile,
    RoutineLine,
    ranked,
    spread_of,
)
from omb_py.tracing.records.routines import (
    READ,
    WRITTEN,
    Role,
    base,
    file_call_completes,
    file_direction,
    prepares,
    role,
)

Key = TypeVar("Key", bound=Hashable)

ROLES = (
    Role.MANAGEMENT,
    Role.SEND,
    Role.RECEIVE,
    Role.SENDRECV,
    Role.PROBE,
    Role.COMPLETION,
    Role.COLLECTIVE,
    Role.ONE_SIDED,
    Role.FILE,
)
ROUTINES = (
    "comm_rank comm_size send ssend rsend bsend psend recv mrecv precv "
    "wait waitall waitany waitsome test testall testany testsome parrived "
    "bcast barrier reduce allreduce scan exscan reduce_scatter reduce_scatter_block gather gatherv "
    "scatter scatterv allgather allgatherv alltoall alltoallv alltoallw"
).split()
"""The order of a profile, as mpitrace has it; what is not there comes after it."""

SENDING = "send ssend rsend bsend psend sendrecv sendrecv_replace put rput accumulate raccumulate"
SENDS = frozenset(SENDING.split())
"""Routines whose peer gets data of the caller."""


@dataclass(frozen=True)
class SizeLine(ProfileLine):
    """Calls of a routine with messages of one bin of sizes."""

    routine: str
    bin: int


@dataclass(frozen=True)
class CommunicatorLine(ProfileLine):
    """Calls of a routine on all ``communicators`` of ``size`` ranks."""

    routine: str
    size: int
    communicators: int


@dataclass(frozen=True)
class PeerLine(ProfileLine):
    """What ``rank`` sent to ``peer``."""

    rank: int
    peer: int


@dataclass(frozen=True)
class SiteLine(ProfileLine):
    """Calls of a routine from one line of the program."""

    routine: str
    site: str


@dataclass(frozen=True)
class FileLine(ProfileLine):
    """Calls that read or write data of files: those of one routine, or all that do the same.

    ``rate`` is that of a rank, in bytes a second; None where calls return before data has moved.
    """

    name: str
    rate: float | None


@dataclass(frozen=True)
class RoutineSpread:
    """Seconds of a routine: the ranks with the minimum, the lower median, the maximum."""

    minimum: Extreme
    median: Extreme
    maximum: Extreme


def order(routine: str) -> tuple[int, int, str, bool, str]:
    """Sorts routines: by what they do, blocking ones before non-blocking ones."""
    name = base(routine)
    place = ROUTINES.index(name) if name in ROUTINES else len(ROUTINES)
    plain = routine.lower().startswith(f"mpi_{name}")
    return ROLES.index(role(routine)), place, name, not plain, routine


def is_file(routine: str) -> bool:
    """Whether a routine belongs to MPI-IO, whose time is told apart."""
    return role(routine) is Role.FILE


def routines(members: Iterable[RankProfile]) -> list[RoutineLine]:
    """All calls of each routine on these ranks."""
    sums: dict[str, list[float]] = {}
    for member in members:
        for line in routines_of(member):
            _add(sums, line.routine, line)
    return [_routine(name, sums[name]) for name in sorted(sums, key=order)]


def routines_of(member: RankProfile) -> list[RoutineLine]:
    """All calls of each routine on a rank."""
    if member.told:
        return sorted(member.told, key=lambda line: order(line.routine))
    sums = _sums(member.cells or (), lambda cell: cell.routine)
    return [_routine(name, sums[name]) for name in sorted(sums, key=order)]


def spreads(members: Iterable[RankProfile]) -> dict[str, RoutineSpread]:
    """The extremes of each routine's seconds; a rank that never called it has 0."""
    seconds = {
        member.rank: {line.routine: line.seconds for line in routines_of(member)}
        for member in members
    }
    names = {name for of_rank in seconds.values() for name in of_rank}
    found = {}
    for name in names:
        values = ranked((of_rank.get(name, 0.0), rank) for rank, of_rank in seconds.items())
        spread = spread_of(values)
        if spread is not None:
            found[name] = RoutineSpread(*spread)
    return found


def sizes(members: Iterable[RankProfile]) -> dict[str, list[SizeLine]]:
    """The sizes of each routine that moved any bytes, the small ones first."""
    sums = _sums(_cells(members), lambda cell: (cell.routine, cell.bin))
    found: dict[str, list[SizeLine]] = {}
    for routine, bin in sorted(sums, key=lambda key: (order(key[0]), _place(key[1]))):
        if bin is not None:
            line = SizeLine(*_totals(sums[routine, bin]), routine, bin)
            found.setdefault(routine, []).append(line)
    return {name: lines for name, lines in found.items() if any(line.nbytes for line in lines)}


def file_data(members: Iterable[RankProfile]) -> list[FileLine]:
    """What reads and writes data of files, by routine, then all that was `READ` and `WRITTEN`.

    The rate of a sum is that of the calls that return when their data has moved.
    """
    lines = [(file_direction(line.routine), line) for line in routines(members)]
    found = [_file_line(line.routine, [line]) for way, line in lines if way is not None]
    for wanted in (READ, WRITTEN):
        own = [line for way, line in lines if way == wanted]
        found += [_file_line(wanted, own)] if own else []
    return found


def _file_line(name: str, lines: list[RoutineLine]) -> FileLine:
    whole = [line for line in lines if file_call_completes(line.routine) and line.nbytes]
    seconds = sum(line.seconds for line in whole)
    return FileLine(
        sum(line.calls for line in lines),
        sum(line.nbytes for line in lines),
        sum(line.seconds for line in lines),
        name,
        sum(line.nbytes for line in whole) / seconds if seconds else None,
    )


def communicators(members: Iterable[RankProfile]) -> list[CommunicatorLine]:
    """Calls by the size of their communicator, the largest first; those of none are left out."""
    cells = [(cell, cell.communicator) for cell in _cells(members)]
    known = [(cell, found) for cell, found in cells if found is not None]
    sums: dict[tuple[int, str], list[float]] = {}
    keys: dict[tuple[int, str], set[str]] = {}
    for cell, communicator in known:
        key = (communicator.size, cell.routine)
        _add(sums, key, cell)
        keys.setdefault(key, set()).add(communicator.key)
    return [
        CommunicatorLine(*_totals(sums[size, routine]), routine, size, len(keys[size, routine]))
        for size, routine in sorted(sums, key=lambda key: (-key[0], order(key[1])))
    ]


def distinct_communicators(members: Iterable[RankProfile]) -> int:
    """How many communicators there are calls on."""
    found = {cell.communicator.key for cell in _cells(members) if cell.communicator is not None}
    return len(found)


def peers(members: Iterable[RankProfile]) -> list[PeerLine]:
    """Who sent to whom, by rank and peer; of MPI_Sendrecv with what came back."""
    names: dict[str, bool] = {}
    found = []
    for member in members:
        sums: dict[int, list[float]] = {}
        for cell in member.cells or ():
            sends = names.get(cell.routine)
            if sends is None:
                sends = names[cell.routine] = sends_data(cell.routine)
            if sends and cell.peer is not None:
                _add(sums, cell.peer, cell)
        found += [PeerLine(*_totals(sums[peer]), member.rank, peer) for peer in sorted(sums)]
    return found


def both_ways(members: Iterable[RankProfile]) -> bool:
    """Whether there are calls that send and receive."""
    names = {cell.routine for cell in _cells(members)}
    return any(role(name) is Role.SENDRECV for name in names)


def sends_data(routine: str) -> bool:
    """Whether calls of a routine give data to their peer; making persistent requests does not."""
    return base(routine) in SENDS and not prepares(routine)


def sites(members: Iterable[RankProfile]) -> list[SiteLine]:
    """Calls by the line that made them, the longest first; those of unknown lines are left out."""
    sums = _sums(
        (cell for cell in _cells(members) if cell.site is not None),
        lambda cell: (cell.site or "", cell.routine),
    )
    found = [SiteLine(*_totals(total), routine, site) for (site, routine), total in sums.items()]
    return sorted(found, key=lambda line: (-line.seconds, line.site, line.routine))


def communication_of(cells: Iterable[CallStats]) -> tuple[float, float]:
    """Seconds in MPI but for its files, and in those."""
    sums = _sums(cells, lambda cell: cell.routine)
    files = {name for name in sums if is_file(name)}
    in_files = sum(sums[name][2] for name in sorted(files))
    return sum(sums[name][2] for name in sorted(sums.keys() - files)), in_files


def _cells(members: Iterable[RankProfile]) -> Iterable[CallStats]:
    return (cell for member in members for cell in member.cells or ())


def _sums(cells: Iterable[CallStats], key: Callable[[CallStats], Key]) -> dict[Key, list[float]]:
    sums: dict[Key, list[float]] = {}
    for cell in cells:
        _add(sums, key(cell), cell)
    return sums


def _add(sums: dict[Key, list[float]], key: Key, more: CallStats | ProfileLine) -> None:
    total = sums.get(key)
    if total is None:
        sums[key] = [more.calls, more.nbytes, more.seconds]
    else:
        total[0] += more.calls
        total[1] += more.nbytes
        total[2] += more.seconds


def _totals(total: list[float]) -> tuple[int, float, float]:
    return int(total[0]), total[1], total[2]


def _routine(name: str, total: list[float]) -> RoutineLine:
    return RoutineLine(*_totals(total), name)


def _place(bin: int | None) -> int:
    return -1 if bin is None else bin
