"""Rows of applications, and the text that a person reads."""

from __future__ import annotations

from typing import TextIO

from omb_py.core import VERSION
from omb_py.core.text.words import count
from omb_py.results.columns import Record
from omb_py.results.writer import StreamWriter

MAX_RANKS = 16
"""Ranks that the text shows one by one."""

HEADS = {
    "Total(s)": "time_s",
    "Distribute(s)": "distribute_s",
    "Compute(s)": "compute_s",
    "Communicate(s)": "communicate_s",
    "Wait(s)": "wait_s",
    "Other(s)": "other_s",
}
"""Columns of the table of ranks."""


KINDS = dict(
    column.split(":")
    for column in """
    run:str application:str part:str rank:int ranks:int nodes:int host_cores:int buffer:str
    binding:str problem:str scaling:str threads:int cores:int blas:str repeats:int
    time_s:float time_low_s:float time_high_s:float distribute_s:float compute_s:float
    communicate_s:float wait_s:float other_s:float one_rank_s:float
    sequential_s:float sequential:str sequential_ratio:float sequential_speedup:float
    sequential_speedup_low:float sequential_speedup_high:float speedup:float speedup_low:float
    speedup_high:float efficiency:float value:float unit:str calls:int call_bytes:float check:str
    difference:float variant:str""".split()
)
"""The type of each column."""


class ApplicationRow(Record):
    """A row of `docs/applications.md`, which describes each column; None if one does not apply."""

    columns = tuple(KINDS)


class ApplicationWriter(StreamWriter):
    """A table of the ranks' phases, then what came of the whole, then its parts."""

    def __init__(self, stream: TextIO, title: str) -> None:
        super().__init__(stream)
        self._title = title

    def row(self, row: ApplicationRow) -> None:
        if row.part is None:
            self._whole(row)
        elif row.rank is not None:
            self._rank(row)
        else:
            self._part(row)

    def _whole(self, row: ApplicationRow) -> None:
        line = self._line
        ours = f"omb-py {VERSION}: buffer {row.buffer}, binding {row.binding}"
        ours += f", {row.variant}" if row.variant else ""
        line(f"\n# OMB-Py {self._title} v{VERSION} ({ours})")
        line(f"# {row.problem}{' (of one rank)' if row.scaling == 'weak' else ''}")
        line(f"# {row.scaling} scaling, {count(row.ranks, 'rank')} on {count(row.nodes, 'node')}")
        line(f"# {count(row.threads, 'thread')} in each rank for {row.blas}")
        spread = f"{seconds(row.time_low_s)} to {seconds(row.time_high_s)}"
        repeats = count(row.repeats, "repeat")
        line(f"{'Time to solution(s)':<22}{seconds(row.time_s)}   {repeats}: {spread}")
        if row.value is not None:
            line(f"{row.unit or '':<22}{row.value:.6g}")
        if row.one_rank_s is not None:
            line(f"{'One rank(s)':<22}{seconds(row.one_rank_s)}")
        if row.speedup is not None and row.efficiency is not None:
            line(speedup("one rank", row))
            line(f"{'Efficiency(%)':<22}{100 * row.efficiency:.1f}")
        if row.sequential_s is not None and row.sequential_ratio is not None:
            compared = f"one rank / {row.sequential} = {row.sequential_ratio:.3f}"
            line(f"{'Sequential(s)':<22}{seconds(row.sequential_s)}   {compared}")
        if row.sequential and row.sequential_speedup is not None:
            line(speedup(row.sequential, row, "sequential_"))

    def _rank(self, row: ApplicationRow) -> None:
        if row.rank == 0:
            self._line("# " + "Rank".ljust(6) + "".join(f"{head:>16}" for head in HEADS))
        if row.rank < MAX_RANKS:
            times = (getattr(row, HEADS[head]) or 0.0 for head in HEADS)
            self._line(f"{row.rank:<8}" + "".join(f"{time:16.6f}" for time in times))
        elif row.rank == row.ranks - 1:
            self._line(f"# and {row.ranks - MAX_RANKS} more, which --output keeps")

    def _part(self, row: ApplicationRow) -> None:
        found = [f"{row.part:<34}"]
        if row.calls is not None:
            found.append(f"{count(row.calls, 'call')} of {row.call_bytes:.10g} bytes")
        if row.time_s is not None:
            found.append(f"{seconds(row.time_s)} s")
        if row.value is not None:
            found.append(f"{row.value:.6g} {row.unit or ''}".rstrip())
        if row.check is not None:
            found.append(row.check)
        self._line("   ".join(found))


def speedup(over: str, row: ApplicationRow, which: str = "") -> str:
    """Return a line on a speed-up over something, with the extremes of the repeats."""
    value, low, high = (getattr(row, f"{which}speedup{end}") for end in ("", "_low", "_high"))
    return f"{'Speed-up':<22}{value:.3f}   over {over}; repeats: {low:.3f} to {high:.3f}"


def seconds(value: float | None) -> str:
    """Return seconds with six decimals; a dash for None."""
    return "-" if value is None else f"{value:.6f}"
