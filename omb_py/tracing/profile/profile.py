"""The contents of a profile: a run and each of its ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from omb_py.core.dataclass import dataclass, field
from omb_py.tracing.records.layout import Communicator

OWN, MPITRACE = "omb-py", "mpitrace"
"""Programs that record profiles."""

LOST_NAME = "(unknown)"
"""Instead of a routine whose name was not kept."""


@dataclass(frozen=True)
class CallStats:
    """Calls of a routine with equal attributes; unknown attributes are None.

    ``peer`` is the rank in MPI_COMM_WORLD of the other side or of the root, ``bin`` that of
    `records.layout.size_bin` (None for calls without a message, too), ``site`` the file, line and
    function of the call. ``nbytes`` and ``seconds`` are those of all calls together; bytes are
    whole numbers unless they come from an average.
    """

    routine: str
    communicator: Communicator | None
    peer: int | None
    bin: int | None
    site: str | None
    calls: int
    nbytes: float
    seconds: float
    least_s: float | None = None
    greatest_s: float | None = None


@dataclass(frozen=True)
class RankProfile:
    """The work of one rank; None for unknown values.

    Seconds: ``elapsed_s`` from beginning to end, ``communication_s`` in MPI without MPI-IO and
    ``io_s`` in MPI-IO (with the call in which a rank without an end is), ``user_s`` and
    ``system_s`` of all threads' CPU time, ``stopped_s`` while recording was stopped, which is
    neither communication nor computation. ``memory_bytes`` is the largest resident set,
    ``switches`` are involuntary. ``complete`` is false for a rank that did not come to its end.
    ``cells`` are None for a rank whose calls are unknown. If it is ``threaded``, times in MPI are
    sums over threads, and may exceed the elapsed time.
    """

    rank: int
    host: str | None = None
    complete: bool = True
    elapsed_s: float | None = None
    communication_s: float | None = None
    io_s: float | None = None
    user_s: float | None = None
    system_s: float | None = None
    memory_bytes: float | None = None
    switches: int | None = None
    cells: tuple[CallStats, ...] | None = None
    stopped_s: float = 0.0
    threaded: bool = False


@dataclass(frozen=True)
class Extreme:
    """A value, and the rank that has it."""

    value: float
    rank: int


@dataclass(frozen=True)
class Extremes:
    """Ranks with the minimum, median and maximum communication time (s), and the most of others.

    The median of an even number of ranks is the lower one.
    """

    minimum: Extreme | None = None
    median: Extreme | None = None
    maximum: Extreme | None = None
    elapsed: Extreme | None = None
    memory: Extreme | None = None


@dataclass(frozen=True)
class Profile:
    """A run of ``ranks`` ranks; ``members`` are the ranks with known values, by rank.

    ``origin`` is the recording program (`OWN`, `MPITRACE`), ``began`` the time (seconds since
    1970), ``elapsed_s`` the seconds from the first rank's beginning to the last one's end (None:
    not known on one clock), ``about`` the run's metadata. ``notes`` are about missing or inexact
    values.
    """

    ranks: int
    members: tuple[RankProfile, ...]
    extremes: Extremes
    origin: str = OWN
    began: float | None = None
    elapsed_s: float | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def counted(self) -> tuple[RankProfile, ...]:
        """The ranks whose calls are known."""
        return tuple(member for member in self.members if member.cells is not None)


def extremes_of(members: Iterable[RankProfile]) -> Extremes:
    """Return which of these ranks communicate least, as long as the median, and longest; and so on.

    Values that are not known are left out; None where none is.
    """
    members = tuple(members)
    communication = ranked((member.communication_s, member.rank) for member in members)
    elapsed = ranked((member.elapsed_s, member.rank) for member in members)
    memory = ranked((member.memory_bytes, member.rank) for member in members)
    minimum, median, maximum = spread_of(communication) or (None, None, None)
    return Extremes(minimum, median, maximum, _most(elapsed), _most(memory))


def ranked(values: Iterable[tuple[float | None, int]]) -> list[Extreme]:
    """Return values with their ranks, the minimum first; those that are None are left out."""
    known = sorted((value, rank) for value, rank in values if value is not None)
    return [Extreme(value, rank) for value, rank in known]


def spread_of(values: list[Extreme]) -> tuple[Extreme, Extreme, Extreme] | None:
    """Return the minimum, the lower median and the maximum of values that `ranked` has sorted."""
    return (values[0], values[(len(values) - 1) // 2], values[-1]) if values else None


def _most(values: list[Extreme]) -> Extreme | None:
    """Return the maximum, of the lowest rank that has it."""
    return max(values, default=None, key=lambda one: one.value)
