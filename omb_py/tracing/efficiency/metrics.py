"""POP's multiplicative efficiencies of a run, and of runs next to each other.

Definitions: POP Centre of Excellence, standard metrics
(https://co-design.pop-coe.eu/metrics/index.html).
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from omb_py.core.errors import UsageError


@dataclass(frozen=True)
class Efficiency:
    """Factors of a run's lost time; each factor is between 0 and 1, 1 is perfect.

    ``parallel = load_balance * communication`` and, if the run could be replayed, ``communication =
    serialisation * transfer``.
    """

    parallel: float
    load_balance: float
    communication: float
    serialisation: float | None = None
    transfer: float | None = None


@dataclass(frozen=True)
class Times:
    """The times that give a run's efficiencies, in seconds.

    ``outside`` has the time that each rank spent outside MPI, ``elapsed`` is that from the first
    rank's start to the last one's end, ``ideal`` is that on an ideal network (None: unknown).
    ``ranks`` counts those of the job, even if some left no times.
    """

    ranks: int
    outside: tuple[float, ...]
    elapsed: float
    ideal: float | None = None

    @property
    def total(self) -> float:
        """Seconds outside MPI of all ranks; those without times count as the others on average."""
        return fmean(self.outside) * self.ranks


def efficiency(times: Times) -> Efficiency:
    """Return the efficiencies of a run.

    With u the ranks' times outside MPI: parallel efficiency is mean(u) / elapsed, load balance
    mean(u) / max(u), communication efficiency max(u) / elapsed, serialisation efficiency
    max(u) / ideal, transfer efficiency ideal / elapsed. Raises `UsageError` for a run that took no
    time.
    """
    if not times.outside or times.elapsed <= 0:
        raise UsageError("a run that took no time has no efficiency")
    mean, most = fmean(times.outside), max(times.outside)
    serialisation = transfer = None
    if times.ideal is not None:
        serialisation = most / times.ideal if times.ideal > 0 else 1.0
        transfer = times.ideal / times.elapsed
    return Efficiency(
        mean / times.elapsed,
        mean / most if most else 1.0,
        most / times.elapsed,
        serialisation,
        transfer,
    )


@dataclass(frozen=True)
class Scaling:
    """A run compared with one on fewer ranks.

    ``computation`` is the computing time of all ranks of the other run divided by this one's,
    ``whole`` (global efficiency) parallel efficiency times that, ``speedup`` the other run's
    elapsed time divided by this one's. Of weak scaling all of these are per work done.
    """

    computation: float
    whole: float
    speedup: float


def scaling(times: Times, reference: Times, weak: bool) -> Scaling | None:
    """Return a run's scaling; ``weak``: the work grew with the ranks, else it stayed the same.

    None if this run computed nothing. Raises `UsageError` as `efficiency` does.
    """
    parallel = efficiency(times).parallel
    if times.total <= 0:
        return None
    work = times.ranks / reference.ranks if weak else 1.0
    computation = work * reference.total / times.total
    return Scaling(computation, parallel * computation, work * reference.elapsed / times.elapsed)
