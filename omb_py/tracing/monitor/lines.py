"""Observations as lines of text, for files and pipes, and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omb_py.core.text.units import duration, scaled, share_text
from omb_py.core.text.words import count
from omb_py.tracing.monitor.findings import MonitorFinding
from omb_py.tracing.monitor.snapshots import Change, RankSnapshot, RankState, Snapshot


@dataclass(frozen=True)
class Observation:
    """A snapshot with rates and findings.

    ``rates`` are since the previous snapshot, ``recent`` over the last seconds, both by rank.
    """

    snapshot: Snapshot
    rates: Mapping[int, Change]
    recent: Mapping[int, Change]
    findings: Sequence[MonitorFinding]
    stale_after_s: float

    @property
    def elapsed_s(self) -> float:
        """Seconds since the beginning, of the rank that has been there the longest."""
        return max(one.elapsed_s for one in self.snapshot.ranks)

    def state(self, one: RankSnapshot) -> RankState:
        """Return a rank's state."""
        return one.state(self.stale_after_s)

    @property
    def over(self) -> bool:
        """Return whether all ranks have ended, or were killed."""
        states = {self.state(one) for one in self.snapshot.ranks}
        return not self.snapshot.missing and states <= {RankState.ENDED, RankState.KILLED}

    @property
    def calls_per_s(self) -> float:
        """Calls per second of all ranks."""
        return sum((one.calls_per_s for one in self.rates.values()), 0.0)

    @property
    def bytes_per_s(self) -> float:
        """Bytes per second of all ranks."""
        return sum((one.bytes_per_s for one in self.rates.values()), 0.0)

    @property
    def uses_files(self) -> bool:
        """Return whether any rank has read or written a file."""
        return any(one.read or one.written for one in self.snapshot.ranks)

    @property
    def file_bytes_per_s(self) -> tuple[float, float]:
        """The bytes per second that all ranks read from files, and that they write to files."""
        rates = self.rates.values()
        return sum(one.read_per_s for one in rates), sum(one.written_per_s for one in rates)

    @property
    def mpi(self) -> float | None:
        """The mean of the shares of time in MPI."""
        shares = [one.mpi for one in self.recent.values()]
        return sum(shares) / len(shares) if shares else None


def summary(seen: Observation) -> str:
    """Return the whole run in a line."""
    states = [seen.state(one) for one in seen.snapshot.ranks]
    told = [count(seen.snapshot.size, "rank")]
    if seen.over and set(states) == {RankState.ENDED}:
        told.append("all ended")
    elif set(states) != {RankState.RUNS}:
        known = [(states.count(state), state.value) for state in RankState]
        told += [f"{number} {value}" for number, value in known if number]
    whole = "" if seen.mpi is None else f", {share_text(seen.mpi)} in MPI"
    rates = f"{scaled(seen.calls_per_s)} calls/s, {scaled(seen.bytes_per_s, 'B/s')}{whole}"
    if seen.uses_files:
        read, written = seen.file_bytes_per_s
        rates += f"; files: {scaled(read, 'B/s')} read, {scaled(written, 'B/s')} written"
    return f"{duration(seen.elapsed_s)}: {', '.join(told)}; {rates}"


def lines(seen: Observation) -> list[str]:
    """Return a line for the whole run, and below it the findings."""
    return [summary(seen), *(f"  {one.text}" for one in seen.findings)]


def is_in(one: RankSnapshot, state: RankState) -> str:
    """Return the routine or the state of a rank in a few words."""
    if state is not RankState.RUNS:
        return str(state.value)
    return one.now.routine or "outside MPI"


def peer_of(one: RankSnapshot, state: RankState) -> str:
    """Return the rank at the other end of the call, or its communicator."""
    if state is not RankState.RUNS or not one.now.routine:
        return ""
    label = one.now.communicator.label if one.now.communicator else ""
    return str(one.now.peer) if one.now.peer >= 0 else label


def for_seconds(one: RankSnapshot, state: RankState) -> float | None:
    """For how long, where that is known."""
    if state is RankState.ENDED:
        return None
    if state is not RankState.RUNS:
        return one.since_update_s
    return one.in_call_s if one.now.routine else (one.idle_s or None)


def json_line(seen: Observation, epoch: float) -> str:
    """Return a snapshot as one line of JSON."""
    return json.dumps(
        {
            "time": round(epoch, 3),
            "program": seen.snapshot.program,
            "elapsed_s": round(seen.elapsed_s, 3),
            "ranks": seen.snapshot.size,
            "over": seen.over,
            "calls_per_s": round(seen.calls_per_s, 1),
            "bytes_per_s": round(seen.bytes_per_s, 1),
            "files_read_per_s": round(seen.file_bytes_per_s[0], 1),
            "files_written_per_s": round(seen.file_bytes_per_s[1], 1),
            "mpi_share": None if seen.mpi is None else round(seen.mpi, 4),
            "findings": [
                {
                    "concern": one.concern.value,
                    "ranks": one.ranks,
                    "waiting": one.waiting,
                    "text": one.text,
                }
                for one in seen.findings
            ],
            "per_rank": [_of_rank(seen, one) for one in seen.snapshot.ranks],
        }
    )


def _of_rank(seen: Observation, one: RankSnapshot) -> dict[str, Any]:
    state, rate, recent = seen.state(one), seen.rates.get(one.rank), seen.recent.get(one.rank)
    seconds = for_seconds(one, state)
    now = one.now
    return {
        "rank": one.rank,
        "host": one.host,
        "state": state.value,
        "routine": now.routine or None,
        "peer": now.peer if now.routine and now.peer >= 0 else None,
        "communicator": now.communicator.label if now.routine and now.communicator else None,
        "for_s": None if seconds is None else round(seconds, 3),
        "quiet_s": round(one.since_update_s, 3),
        "calls": one.calls,
        "bytes": one.nbytes,
        "files_read": one.read,
        "files_written": one.written,
        "calls_per_s": round(rate.calls_per_s, 1) if rate else None,
        "bytes_per_s": round(rate.bytes_per_s, 1) if rate else None,
        "files_read_per_s": round(rate.read_per_s, 1) if rate else None,
        "files_written_per_s": round(rate.written_per_s, 1) if rate else None,
        "mpi_share": round(recent.mpi, 4) if recent else None,
        "memory_bytes": one.memory,
    }
