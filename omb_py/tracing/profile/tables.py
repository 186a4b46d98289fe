"""Tables of a profile: its calls put together by routine, size, communicator, peer or place."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import reduce
from typing import TypeVar

from omb_py.core.dataclass import dataclass
from omb_py.tracing.profile.profile import CallStats, Extreme, RankProfile, ranked, spread_of
from omb_py.tracing.records.routines import (
    READ,
    ROLES,
    STOPPED,
    WRITTEN,
    Role,
    base,
    file_call_completes,
    file_direction,
    role,
    sends_data,
)

Key = TypeVar("Key", bound=Hashable)

ORDER = (
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
PLACES = {name: place for place, name in enumerate(ROLES)}


@dataclass(frozen=True)
class Sums:
    """Calls, bytes and seconds of some cells together."""

    calls: int
    nbytes: float
    seconds: float

    @property
    def average(self) -> float:
        """Bytes of a call."""
        return self.nbytes / self.calls if self.calls else 0.0

    def plus(self, other: Sums) -> Sums:
        """Both together."""
        sums = self.nbytes + other.nbytes, self.seconds + other.seconds
        return Sums(self.calls + other.calls, *sums)


def group(cells: Iterable[CallStats], key: Callable[[CallStats], Key | None]) -> dict[Key, Sums]:
    """Return the sums of the cells that have the same key; cells whose key is None are left out."""
    found: dict[Key, list[float]] = {}
    for cell in cells:
        if (where := key(cell)) is not None:
            total = found.setdefault(where, [0, 0, 0])
            total[0] += cell.calls
            total[1] += cell.nbytes
            total[2] += cell.seconds
    return {where: Sums(int(total[0]), *total[1:]) for where, total in found.items()}


def cells_of(members: Iterable[RankProfile]) -> Iterable[CallStats]:
    """Return the calls of these ranks, where they are known."""
    return (cell for member in members for cell in member.cells or ())


def order(routine: str) -> tuple[int, int, str, bool, str]:
    """Return the sort key of a routine: by its role, blocking ones before non-blocking ones."""
    name = base(routine)
    place = PLACES.get(name, len(PLACES))
    plain = routine.lower().startswith(f"mpi_{name}")
    return ORDER.index(role(routine)), place, name, not plain, routine


def is_file(routine: str) -> bool:
    """Return whether a routine belongs to MPI-IO, whose time is reported separately."""
    return role(routine) is Role.FILE


def routines(members: Iterable[RankProfile]) -> dict[str, Sums]:
    """Return all calls of each routine on these ranks."""
    found = group(cells_of(members), lambda cell: cell.routine)
    return {name: found[name] for name in sorted(found, key=order)}


def spreads(members: Iterable[RankProfile]) -> dict[str, tuple[Extreme, Extreme, Extreme]]:
    """Minimum, lower median and maximum of each routine's seconds; 0 for a rank without calls."""
    by_rank = {member.rank: routines([member]) for member in members}
    found = {}
    for name in {name for of_rank in by_rank.values() for name in of_rank}:
        seconds = (
            (of_rank[name].seconds if name in of_rank else 0.0, rank)
            for rank, of_rank in by_rank.items()
        )
        if spread := spread_of(ranked(seconds)):
            found[name] = spread
    return found


def by_size(members: Iterable[RankProfile]) -> dict[tuple[str, int | None], Sums]:
    """Return calls by routine and bin of sizes, the small ones first; None: without sizes."""
    found = group(cells_of(members), lambda cell: (cell.routine, cell.bin))
    ordered = sorted(found, key=lambda key: (order(key[0]), -1 if key[1] is None else key[1]))
    return {key: found[key] for key in ordered}


def sizes(members: Iterable[RankProfile]) -> dict[tuple[str, int], Sums]:
    """Return calls by routine and bin of sizes, of routines that moved any bytes."""
    found = {(name, bin): line for (name, bin), line in by_size(members).items() if bin is not None}
    moving = {name for (name, _), line in found.items() if line.nbytes}
    return {key: line for key, line in found.items() if key[0] in moving}


def file_data(members: Iterable[RankProfile]) -> dict[str, tuple[Sums, float | None]]:
    """Return calls that move data of files, by routine, then the totals `READ` and `WRITTEN`.

    Each comes with the bytes per second of a rank, for calls that return when their data has moved;
    None without any.
    """

    def together(wanted: dict[str, Sums]) -> tuple[Sums, float | None]:
        whole = [one for name, one in wanted.items() if file_call_completes(name) and one.nbytes]
        seconds = sum(one.seconds for one in whole)
        rate = sum(one.nbytes for one in whole) / seconds if seconds else None
        return reduce(Sums.plus, wanted.values()), rate

    every = {name: one for name, one in routines(members).items() if file_direction(name)}
    found = {name: together({name: one}) for name, one in every.items()}
    for way in (READ, WRITTEN):
        if own := {name: one for name, one in every.items() if file_direction(name) == way}:
            found[way] = together(own)
    return found


def communicators(members: Iterable[RankProfile]) -> dict[tuple[int, str], tuple[Sums, int]]:
    """Return calls by communicator size and routine, the largest first, and how many
    communicators."""
    cells = [cell for cell in cells_of(members) if cell.communicator is not None]
    keys: dict[tuple[int, str], set[str]] = {}

    def key(cell: CallStats) -> tuple[int, str]:
        assert cell.communicator is not None
        found = cell.communicator.size, cell.routine
        keys.setdefault(found, set()).add(cell.communicator.key)
        return found

    sums = group(cells, key)
    ordered = sorted(sums, key=lambda one: (-one[0], order(one[1])))
    return {one: (sums[one], len(keys[one])) for one in ordered}


def peers(members: Iterable[RankProfile]) -> dict[tuple[int, int], Sums]:
    """Return the data sent by rank and peer; for MPI_Sendrecv with the data received."""
    found = {}
    for member in members:
        cells = (cell for cell in member.cells or () if sends_data(cell.routine))
        sums = group(cells, lambda cell: cell.peer)
        found.update({(member.rank, peer): sums[peer] for peer in sorted(sums)})
    return found


def sites(members: Iterable[RankProfile]) -> dict[tuple[str, str], Sums]:
    """Return calls by line of the program and routine, the longest first; unknown lines are left
    out."""
    found = group(cells_of(members), lambda cell: (cell.site, cell.routine) if cell.site else None)
    return dict(sorted(found.items(), key=lambda item: (-item[1].seconds, item[0])))


def communication_of(cells: Iterable[CallStats]) -> tuple[float, float]:
    """Return seconds in MPI but for its files, and in those."""
    found = group(cells, lambda cell: cell.routine if cell.routine != STOPPED else None)
    inside = [
        sum(one.seconds for name, one in found.items() if is_file(name) is way)
        for way in (False, True)
    ]
    return inside[0], inside[1]
