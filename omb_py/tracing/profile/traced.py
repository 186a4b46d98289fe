"""A profile from the files that mpitrace wrote: some ranks' calls, and rank 0's table of all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil, copysign
from pathlib import Path

from omb_py.core.errors import UsageError
from omb_py.core.text.numbers import MEBIBYTE
from omb_py.core.text.ranks import other_ranks, some_ranks
from omb_py.tracing.profile.mpitrace import RankFile, Task, TracedCalls
from omb_py.tracing.profile.profile import (
    MPITRACE,
    CallStats,
    Extreme,
    Extremes,
    Profile,
    RankProfile,
    RoutineLine,
    extremes_of,
)
from omb_py.tracing.records.layout import size_bin

JOB = re.compile(r"mpi_profile\.(.+)\.(\d+)")
ROUNDING = 0.0051
QUARTER = 0.00025

Files = Mapping[int, tuple[str, RankFile]]
"""Each rank's path and what stands there."""


def profile_of(found: Sequence[tuple[str, RankFile]]) -> Profile:
    """The profile of one run from its files.

    Raises `UsageError` where a file is none of mpitrace's, and for files of several runs.
    """
    files = _by_rank(found)
    number = _ranks(files)
    tasks = _tasks(files, number)
    members = [
        _member(rank, files[rank][1] if rank in files else None, tasks.get(rank))
        for rank in sorted(files.keys() | tasks.keys())
    ]
    extremes = _extremes(files, members, number)
    members = [_refined(member, extremes) for member in members]
    return Profile(
        ranks=number,
        members=tuple(members),
        extremes=extremes,
        origin=MPITRACE,
        notes=tuple(_notes(files, members, number)),
    )


def _by_rank(found: Sequence[tuple[str, RankFile]]) -> Files:
    files: dict[int, tuple[str, RankFile]] = {}
    for path, file in found:
        if file.rank is None or file.ranks is None:
            raise UsageError(f"{path} is no profile that omb-py or mpitrace wrote")
        if file.rank >= file.ranks:
            raise UsageError(f"{path} is damaged: there is no rank {file.rank} of {file.ranks}")
        if file.rank in files:
            raise UsageError(
                f"{files[file.rank][0]} and {path} are both of rank {file.rank}: "
                "give the files of one run"
            )
        files[file.rank] = (path, file)
    return files


def _ranks(files: Files) -> int:
    numbers = {file.ranks for _, file in files.values() if file.ranks is not None}
    names = (JOB.fullmatch(Path(path).name) for path, _ in files.values())
    if len(numbers) > 1 or len({name[1] for name in names if name is not None}) > 1:
        raise UsageError("these files are of several runs: give the files of one run")
    return numbers.pop()


def _tasks(files: Files, ranks: int) -> dict[int, Task]:
    """The rows of the table of ranks, the first of each rank."""
    found: dict[int, Task] = {}
    for _, file in files.values():
        for task in file.tasks:
            if task.rank < ranks:
                found.setdefault(task.rank, task)
    return found


def _member(rank: int, file: RankFile | None, task: Task | None) -> RankProfile:
    """What a rank's file says and, where it says nothing, rank 0's table."""
    member = RankProfile(rank)
    if task is not None:
        member = RankProfile(
            rank,
            host=task.host or None,
            elapsed_s=task.elapsed_s,
            communication_s=task.communicate_s,
            user_s=task.user_s,
            system_s=task.system_s,
            memory_bytes=task.memory_mib * MEBIBYTE,
            switches=task.switches,
        )
    if file is None:
        return member
    memory = None if file.memory_mib is None else file.memory_mib * MEBIBYTE
    known = {
        "elapsed_s": _agreed(file.elapsed_s, member.elapsed_s),
        "communication_s": _agreed(file.communicate_s, member.communication_s),
        "io_s": file.io_s,
        "user_s": _agreed(file.user_s, member.user_s),
        "system_s": _agreed(file.system_s, member.system_s),
        "memory_bytes": member.memory_bytes if memory is None else memory,
    }
    told = tuple(
        RoutineLine(one.calls, one.calls * one.nbytes, one.seconds, f"MPI_{one.routine}")
        for one in file.routines
    )
    return replace(member, **known, cells=_cells(file), told=told)  # type: ignore[arg-type]


def _agreed(exact: float | None, rough: float | None) -> float | None:
    """What was rounded to three digits once, and to two: 14.675 and 14.67 are 14.67475."""
    if exact is None or rough is None:
        return rough if exact is None else exact
    if f"{exact:.2f}" == f"{rough:.2f}" or abs(exact - rough) > ROUNDING:
        return exact
    return exact + copysign(QUARTER, rough - exact)


def _cells(file: RankFile) -> tuple[CallStats, ...]:
    rows = [(one, True) for one in file.sizes] + [(one, False) for one in file.unsized]
    return tuple(_cell(one, sized) for one, sized in rows if one.calls)


def _cell(one: TracedCalls, sized: bool) -> CallStats:
    """Calls of one bin: an average lies in the bin that it is of."""
    bin = size_bin(ceil(one.nbytes)) if sized else None
    nbytes = one.calls * one.nbytes
    return CallStats(f"MPI_{one.routine}", None, None, bin, None, one.calls, nbytes, one.seconds)


def _extremes(files: Files, members: Sequence[RankProfile], ranks: int) -> Extremes:
    """Those that the files tell; others follow from the ranks if all of them are known."""
    made = extremes_of(members) if len(members) == ranks else Extremes()
    told: dict[str, Extreme] = {}
    for rank, (_, file) in files.items():
        for name in file.position:
            if file.communicate_s is not None and name in ("minimum", "median", "maximum"):
                told[name] = Extreme(file.communicate_s, rank)
    for _, file in files.values():
        told |= {name: Extreme(*pair) for name, pair in file.spread.items() if pair[1] < ranks}
        for name, field in (("elapsed time", "elapsed"), ("memory utilization", "memory")):
            if name in file.most and file.most[name][1] < ranks:
                value, rank = file.most[name]
                told[field] = Extreme(value * (MEBIBYTE if field == "memory" else 1), rank)
    return replace(made, **told)


def _refined(member: RankProfile, extremes: Extremes) -> RankProfile:
    """A rank of the table alone with its communication time to three digits, if they are told."""
    for one in (extremes.minimum, extremes.median, extremes.maximum):
        if one is not None and one.rank == member.rank and member.cells is None:
            seconds = _agreed(one.value, member.communication_s)
            return replace(member, communication_s=seconds)
    return member


def _notes(files: Files, members: Sequence[RankProfile], ranks: int) -> Iterable[str]:
    counted = [member.rank for member in members if member.cells is not None]
    if len(counted) < ranks:
        yield (
            f"mpitrace's files of {some_ranks(counted)} are there: the calls of other ranks are "
            "not known"
        )
    table_only = [member.rank for member in members if member.cells is None]
    if table_only:
        yield f"only rank 0's table has data of {some_ranks(table_only)}"
    if missing := other_ranks(ranks, (member.rank for member in members)):
        yield f"nothing is known of {missing}"
    for path, file in files.values():
        for note in file.notes:
            yield f"{path}: {note}"
