"""A run's records as the times that its efficiencies are made of, with what they rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from omb_py.core.calls.loop import no_garbage_collection
from omb_py.core.text.words import count
from omb_py.tracing.efficiency.dependency_graph import DependencyGraph, dependency_graph
from omb_py.tracing.efficiency.intervals import Intervals, bounds, intervals_of
from omb_py.tracing.efficiency.metrics import Times
from omb_py.tracing.efficiency.phases import loading_of
from omb_py.tracing.efficiency.replay import replay
from omb_py.tracing.records.reading import NS, RankRecord
from omb_py.tracing.records.routines import Role, nonblocking, role
from omb_py.tracing.records.run import RecordedRun

MAX_NAMED = 4
"""Routines that a note names."""


@dataclass(frozen=True)
class Processor:
    """How much of the time that ranks spent outside MPI they had a core.

    ``share`` is CPU time over wall time: where ``outside``, of the threads that called MPI while
    they were outside it; else of whole processes, with all their threads, from beginning to end.
    ``balance`` is the load balance by that CPU time, ``mean`` its seconds per rank.
    """

    share: float
    balance: float
    mean: float
    outside: bool

    @staticmethod
    def of(used: Sequence[float], spent: float, outside: bool) -> Processor | None:
        """CPU seconds of each rank beside seconds of all of them, None where there are none."""
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
    """What the records of a run say.

    With a timeline and clocks that can be compared the run is replayed on an ideal network, else
    its times rest on the tallies.
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
    """CPU time beside wall time; None where no rank told any."""
    if all(record.header["outside_ns"] >= 0 for record in records):
        used = [record.header["outside_ns"] * NS for record in records]
        return Processor.of(used, sum(map(_outside, records)), True)
    used = [(one.header["user_ns"] + one.header["system_ns"]) * NS for one in records]
    return Processor.of(used, sum(record.elapsed_s for record in records), False)


def _from_events(run: RecordedRun, every: Sequence[Intervals]) -> tuple[Times | None, list[str]]:
    """Times from the timeline, with the ideal one; None where nothing of it is left."""
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
        loading_of(every),
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
    """Seconds outside MPI, by the tallies."""
    return max(0.0, record.elapsed_s - float(record.cells["ns"].sum()) * NS)


def _files(records: Sequence[RankRecord]) -> float:
    """Seconds in MPI's files of all ranks."""
    return NS * sum(_sum(one, "ns", lambda name: role(name) is Role.FILE) for one in records)


def _sum(record: RankRecord, field: str, chosen: Callable[[str], bool]) -> int:
    """The sum of a field over the cells of routines that are chosen by their names."""
    numbers = [number for number, name in enumerate(record.names) if chosen(name)]
    return int(record.cells[field][np.isin(record.cells["routine"], numbers)].sum())


def _polls(name: str) -> bool:
    """Whether a routine asks and does not wait."""
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
    """What calls there were that a replay takes in a way of its own."""
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
