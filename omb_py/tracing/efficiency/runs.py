"""Runs as they are named on a command line: the times that their efficiencies are made of.

A folder of records has more than a profile: with a timeline its calls are replayed on an ideal
network. Efficiencies are POP's, multiplicative ones (POP Centre of Excellence, standard metrics,
https://co-design.pop-coe.eu/metrics/index.html).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from omb_py.core.calls.loop import no_garbage_collection
from omb_py.core.errors import UsageError
from omb_py.core.text.words import count
from omb_py.tracing.efficiency.dependency_graph import DependencyGraph, dependency_graph
from omb_py.tracing.efficiency.intervals import Intervals, bounds, intervals_of
from omb_py.tracing.efficiency.replay import replay
from omb_py.tracing.records.layout import record_paths
from omb_py.tracing.records.reading import NS, RankRecord
from omb_py.tracing.records.routines import Role, nonblocking, role
from omb_py.tracing.records.run import RecordedRun, open_run

if TYPE_CHECKING:
    from omb_py.tracing.profile.profile import Profile, RankProfile


MAX_NAMED = 4
"""Routines that a note names."""


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
class MeasuredRun:
    """A run: its times, seconds in MPI's files of all ranks, its CPU time, and notes."""

    times: Times
    io: float
    processor: Processor | None
    notes: tuple[str, ...]


def measured(run: RecordedRun) -> MeasuredRun:
    """Return the measured times of a run's records.

    With a timeline and comparable clocks the run is replayed on an ideal network, else its times
    come from the tallies.
    """
    records, notes = run.records, [*run.notes]
    if not run.on_one_clock:
        notes.append("the ranks' clocks were not compared: elapsed is the longest time of a rank")
    if all(record.header["events_capacity"] for record in records) and run.on_one_clock:
        every = intervals_of(run)
        times, replayed = _from_events(run, every)
        if times is not None:
            return MeasuredRun(times, _files(records), processor(records), (*notes, *replayed))
        notes += replayed
    elif any(record.header["events_capacity"] for record in records):
        notes.append(
            "serialisation and transfer efficiency are not known: the ranks' clocks were not "
            "compared, or some ranks recorded no timeline"
        )
    else:
        notes.append(
            "serialisation and transfer efficiency need a timeline to replay: "
            "record with omb-py profile --timeline FILE"
        )
    return MeasuredRun(_from_cells(run), _files(records), processor(records), tuple(notes))


def processor(records: Sequence[RankRecord]) -> Processor | None:
    """Return CPU time over wall time; None if no rank recorded any."""
    if all(record.header["outside_ns"] >= 0 for record in records):
        used = [record.header["outside_ns"] * NS for record in records]
        return Processor.of(used, sum(map(_outside, records)), True)
    used = [(one.header["user_ns"] + one.header["system_ns"]) * NS for one in records]
    return Processor.of(used, sum(record.elapsed_s for record in records), False)


def _from_events(run: RecordedRun, every: Sequence[Intervals]) -> tuple[Times | None, list[str]]:
    """Return times from the timeline, with the ideal one; None if nothing of it is left."""
    start = min(one.start for one in every)
    elapsed = max(one.end for one in every) - start
    lost = any(record.lost_events for record in run.records)
    if elapsed <= 0:
        return None, ["the ranks' rings of events have no time in common: nothing to replay"]
    with no_garbage_collection():
        made = dependency_graph(every)
        ideal = replay(made.work, made.gates)
    notes = []
    if lost:
        whole = max(end for _, end in bounds(run)) - min(begin for begin, _ in bounds(run))
        notes.append(
            f"all of this is of the last {elapsed * NS:.3f} s of {whole * NS:.3f} s, for earlier "
            "events were written over: record more with --events"
        )
    notes += _of_replay(made, ideal.given_up)
    notes += _of_calls(every)
    times = Times(
        run.size,
        tuple(one.outside * NS for one in every),
        elapsed * NS,
        (max(ideal.ends) - start) * NS,
    )
    return times, notes


def _from_cells(run: RecordedRun) -> Times:
    times = bounds(run)
    if run.on_one_clock:
        elapsed = max(end for _, end in times) - min(start for start, _ in times)
    else:
        elapsed = max(end - start for start, end in times)
    return Times(run.size, tuple(map(_outside, run.records)), elapsed * NS)


def _outside(record: RankRecord) -> float:
    """Return seconds outside MPI, by the tallies."""
    return max(0.0, record.elapsed_s - float(record.cells["ns"].sum()) * NS)


def _files(records: Sequence[RankRecord]) -> float:
    """Return seconds in MPI's files of all ranks."""
    return NS * sum(_sum(one, "ns", lambda name: role(name) is Role.FILE) for one in records)


def _sum(record: RankRecord, field: str, chosen: Callable[[str], bool]) -> int:
    """Return the sum of a field over the cells of routines that are chosen by their names."""
    numbers = [number for number, name in enumerate(record.names) if chosen(name)]
    return int(record.cells[field][np.isin(record.cells["routine"], numbers)].sum())


def _polls(name: str) -> bool:
    """Return whether a routine polls and does not wait."""
    return name.startswith("MPI_Test") or (role(name) is Role.PROBE and nonblocking(name))


def _of_replay(made: DependencyGraph, given_up: int) -> Iterator[str]:
    """Waits that were dropped."""
    waits = made.kept + made.unmatched + made.contradictory
    if made.unmatched:
        yield (
            f"{made.unmatched} of {count(waits, 'wait')} for other ranks not replayed: "
            "their other side is not in the records"
        )
    if made.contradictory:
        yield (
            f"{made.contradictory} of {count(waits, 'wait')} for other ranks not replayed: ended "
            "before what should have been waited for, as calls of no bytes may, or where clocks "
            "are not exact"
        )
    if given_up:
        yield f"{given_up} of {count(waits, 'wait')} for other ranks given up, for all waited"
    if made.unknown:
        named = [f"{name} ({calls})" for name, calls in made.unknown.most_common(MAX_NAMED)]
        more = sum(made.unknown.values()) - sum(
            calls for _, calls in made.unknown.most_common(MAX_NAMED)
        )
        yield (
            "replayed as if they waited for nobody, since whom they wait for is not recorded: "
            + ", ".join([*named, *([f"{more} others"] if more else [])])
        )


def _of_calls(every: Sequence[Intervals]) -> Iterator[str]:
    """Yield notes about calls that the replay treats specially."""
    if overlapping := sum(one.overlapping for one in every):
        yield (
            f"{count(overlapping, 'call')} began while another of the same rank was under way, as "
            "those of several threads do: calls that overlap are replayed as one"
        )
    polls = sum(_sum(one.record, "calls", _polls) for one in every)
    if polls:
        yield (
            f"{count(polls, 'call')} tested or probed without waiting: the time between such calls "
            "counts as outside MPI"
        )


OF_A_RANK = re.compile(r"(.+)\.\d+")
"""Name of a file that has one rank of a run, as mpitrace writes them."""


@dataclass(frozen=True)
class Run:
    """A run with its efficiencies, and their basis.

    ``name`` is its name on the command line, ``command`` the program that ran and its arguments, if
    known.
    """

    name: str
    command: str
    measured: MeasuredRun
    efficiency: Efficiency

    @property
    def times(self) -> Times:
        """The times that give the efficiencies."""
        return self.measured.times


def load(paths: Sequence[str]) -> list[Run]:
    """Return the runs of these folders and files; mpitrace files that differ only in rank are one
    run.

    Raises `UsageError` if one is not a profile, is damaged, or lacks the ranks' times.
    """
    groups: dict[str, list[str]] = {}
    for path in dict.fromkeys(paths):
        one_of_many = None if Path(path).is_dir() else OF_A_RANK.fullmatch(path)
        groups.setdefault(one_of_many.group(1) if one_of_many else path, []).append(path)
    return [_run(name, members) for name, members in groups.items()]


def _run(name: str, paths: Sequence[str]) -> Run:
    if len(paths) == 1 and record_paths(paths[0]):
        run = open_run(paths[0])
        try:
            found = measured(run)
        except (ValueError, TypeError, IndexError, OverflowError) as error:
            raise UsageError(f"{name} holds a damaged record: {error}") from error
        about: Mapping[str, Any] = run.about
    else:
        from omb_py.tracing.profile.store import load as load_profile

        profile = load_profile(paths)
        found = of_profile(profile, name)
        about = profile.about
    try:
        command = str(about.get("command", ""))
        return Run(name, command, found, efficiency(found.times))
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from error


def of_profile(profile: Profile, name: str) -> MeasuredRun:
    """Return the times of a profile without events; raises `UsageError` if it has no rank's
    times."""
    told = [
        member
        for member in profile.members
        if member.elapsed_s is not None and member.communication_s is not None
    ]
    if not told:
        raise UsageError(f"{name} tells of no rank how long it ran and how long it communicated")
    notes = [
        "serialisation and transfer efficiency need a timeline to replay: "
        "record with omb-py profile --timeline FILE",
        "when ranks began is not known: elapsed is the longest time of a rank",
    ]
    if len(told) < profile.ranks:
        notes.append(
            f"no data for {profile.ranks - len(told)} of {profile.ranks} ranks; they are excluded"
        )
    outside = tuple(
        max(0.0, (one.elapsed_s or 0.0) - (one.communication_s or 0.0) - (one.io_s or 0.0))
        for one in told
    )
    elapsed = max(one.elapsed_s or 0.0 for one in told)
    return MeasuredRun(
        Times(profile.ranks, outside, elapsed),
        sum(one.io_s or 0.0 for one in told),
        _processor_of(told, outside),
        (*notes, *profile.notes),
    )


def _processor_of(told: Iterable[RankProfile], outside: Sequence[float]) -> Processor | None:
    """Return CPU time over wall time, None if it is unknown for a rank."""
    told = list(told)
    if all(one.outside_s is not None for one in told):
        return Processor.of([one.outside_s or 0.0 for one in told], sum(outside), True)
    if any(one.user_s is None or one.system_s is None for one in told):
        return None
    used = [(one.user_s or 0.0) + (one.system_s or 0.0) for one in told]
    return Processor.of(used, sum(one.elapsed_s or 0.0 for one in told), False)


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
