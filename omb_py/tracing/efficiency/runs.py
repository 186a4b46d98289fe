"""Runs as they are named on a command line, with POP's multiplicative efficiencies.

These are the standard metrics of the POP Centre of Excellence
(https://co-design.pop-coe.eu/metrics/index.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from omb_py.core.errors import UsageError
from omb_py.core.text.words import count
from omb_py.tracing.profile.profile import Profile, RankProfile
from omb_py.tracing.profile.store import load as load_profile
from omb_py.tracing.records.routines import Role, nonblocking, role


@dataclass(frozen=True)
class Processor:
    """The share of the time outside MPI in which ranks had a core.

    ``share`` is CPU time over wall time: if ``outside``, of the threads that called MPI while they
    were outside it; else of whole processes, with all their threads, from beginning to end.
    ``balance`` is the load balance by that CPU time, ``mean`` its seconds per rank.
    """

    share: float
    balance: float
    mean: float
    outside: bool

    @staticmethod
    def of(used: Sequence[float], spent: float, outside: bool) -> Processor | None:
        """Return CPU seconds of ranks over ``spent`` seconds of all of them, None without any."""
        if spent <= 0 or max(used) <= 0:
            return None
        mean = sum(used) / len(used)
        return Processor(sum(used) / spent, mean / max(used), mean, outside)


@dataclass(frozen=True)
class Run:
    """A run with its efficiencies; each is between 0 and 1, 1 is perfect.

    ``name`` is its name on the command line, ``command`` the program that ran and its arguments, if
    known. ``ranks`` counts those of the job, even if some left no times. Seconds: ``outside`` has
    the time that each rank spent outside MPI, ``elapsed`` is that from the first rank's start to
    the last one's end, ``io`` that of all ranks in MPI's files.
    """

    name: str
    command: str
    ranks: int
    outside: tuple[float, ...]
    elapsed: float
    io: float = 0.0
    processor: Processor | None = None
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """Seconds outside MPI of all ranks; those without times count as the others on average."""
        return fmean(self.outside) * self.ranks

    @property
    def parallel(self) -> float:
        """Parallel efficiency: load balance times communication efficiency."""
        return fmean(self.outside) / self.elapsed

    @property
    def load_balance(self) -> float:
        """The ranks' mean time outside MPI over the longest one."""
        most = max(self.outside)
        return fmean(self.outside) / most if most else 1.0

    @property
    def communication(self) -> float:
        """Communication efficiency: the longest time outside MPI over the elapsed time."""
        return max(self.outside) / self.elapsed


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


def scaling(run: Run, reference: Run, weak: bool) -> Scaling | None:
    """Return a run's scaling; ``weak``: the work grew with the ranks, else it stayed the same.

    None if this run computed nothing.
    """
    if run.total <= 0:
        return None
    work = run.ranks / reference.ranks if weak else 1.0
    computation = work * reference.total / run.total
    return Scaling(computation, run.parallel * computation, work * reference.elapsed / run.elapsed)


def by_processor(run: Run, reference: Run, weak: bool) -> float | None:
    """Return computation scaling by CPU time: its value if each rank had its own core."""
    mine, other = run.processor, reference.processor
    if not (mine and other and mine.outside and other.outside):
        return None
    per_rank = other.mean / mine.mean
    return per_rank if weak else per_rank * reference.ranks / run.ranks


OF_A_RANK = re.compile(r"(.+)\.\d+")
"""Name of a file that has one rank of a run, as mpitrace writes them."""


def load(paths: Sequence[str]) -> list[Run]:
    """Return the runs of these folders and files; mpitrace files that differ only in rank are one
    run.

    Raises `UsageError` if one is not a profile, is damaged, lacks the ranks' times, or took no
    time.
    """
    groups: dict[str, list[str]] = {}
    for path in dict.fromkeys(paths):
        one_of_many = None if Path(path).is_dir() else OF_A_RANK.fullmatch(path)
        groups.setdefault(one_of_many.group(1) if one_of_many else path, []).append(path)
    return [run_of(load_profile(members), name) for name, members in groups.items()]


def run_of(profile: Profile, name: str) -> Run:
    """Return the run of a profile; raises `UsageError` if it has no rank's times, or took none."""
    told = [
        member
        for member in profile.members
        if member.elapsed_s is not None and member.communication_s is not None
    ]
    if not told:
        raise UsageError(f"{name} tells of no rank how long it ran and how long it communicated")
    elapsed = profile.elapsed_s
    if elapsed is None:
        elapsed = max(one.elapsed_s or 0.0 for one in told)
    if elapsed <= 0:
        raise UsageError(f"{name}: a run that took no time has no efficiency")
    outside = tuple(
        max(0.0, (one.elapsed_s or 0.0) - (one.communication_s or 0.0) - (one.io_s or 0.0))
        for one in told
    )
    return Run(
        name,
        str(profile.about.get("command", "")),
        profile.ranks,
        outside,
        elapsed,
        sum(one.io_s or 0.0 for one in told),
        _processor(told, outside),
        (*_notes(profile, told), *profile.notes),
    )


def _processor(told: Sequence[RankProfile], outside: Sequence[float]) -> Processor | None:
    """Return CPU time over wall time, None if it is unknown for a rank."""
    if all(one.outside_s is not None for one in told):
        return Processor.of([one.outside_s or 0.0 for one in told], sum(outside), True)
    if any(one.user_s is None or one.system_s is None for one in told):
        return None
    used = [(one.user_s or 0.0) + (one.system_s or 0.0) for one in told]
    return Processor.of(used, sum(one.elapsed_s or 0.0 for one in told), False)


def _notes(profile: Profile, told: Sequence[RankProfile]) -> Iterator[str]:
    if profile.elapsed_s is None:
        yield "when ranks began is not known on one clock: elapsed is the longest time of a rank"
    if len(told) < len(profile.members):
        excluded = len(profile.members) - len(told)
        yield f"no data for {excluded} of {profile.ranks} ranks; they are excluded"
    polls = sum(cell.calls for one in told for cell in one.cells or () if _polls(cell.routine))
    if polls:
        yield (
            f"{count(polls, 'call')} tested or probed without waiting: the time between such calls "
            "counts as outside MPI"
        )


def _polls(name: str) -> bool:
    """Return whether a routine polls and does not wait."""
    return name.startswith("MPI_Test") or (role(name) is Role.PROBE and nonblocking(name))
