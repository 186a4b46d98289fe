"""Observations as a picture that fits into the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from omb_py.core.text.units import duration, scaled, share_text
from omb_py.core.text.words import count
from omb_py.tracing.monitor.findings import Concern
from omb_py.tracing.monitor.lines import Observation, for_seconds, is_in, peer_of, summary
from omb_py.tracing.monitor.snapshots import RankSnapshot, RankState

COLUMNS = (
    *("rank", "host", "is in", "with", "for", "calls/s", "data", "read", "written", "in MPI"),
    "memory",
)
OF_HOSTS, OF_FILES = ("host",), ("read", "written")
"""Columns that are there where there are several hosts, and where files are used."""

WORDS = 4
"""Columns from the left that hold words."""

COLORS = {
    Concern.DEADLOCK: "bold red",
    Concern.MISMATCH: "bold red",
    Concern.KILLED: "red",
    Concern.STOPPED: "red",
    Concern.SILENT: "yellow",
    Concern.WAITING: "yellow",
    Concern.SLOW: "yellow",
    Concern.MISSING: "dim",
    Concern.ENDED: "dim",
}

AROUND = 4
"""Lines of the table's head and of the rest, and one for the cursor."""

MAX_FINDINGS = 8


class Picture:
    """A snapshot, drawn for as much room as there is when it is drawn.

    Where not all ranks fit, it shows those of the most severe findings, then those with the least
    time in MPI, since others wait for them; one line sums up the rest.
    """

    def __init__(self, seen: Observation, whole: bool = False) -> None:
        """``whole`` shows all ranks, whether they fit or not."""
        self._seen = seen
        self._whole = whole

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        seen, height = self._seen, options.size.height

        def taken(part: Text) -> int:
            return len(console.render_lines(part, options, pad=False))

        above = [Text(summary(seen), style="bold")]
        if seen.snapshot.program:
            program = Text(seen.snapshot.program, style="dim", overflow="ellipsis", no_wrap=True)
            above.insert(0, program)
        told = list(seen.findings)
        if not self._whole:
            told = told[: max(1, min(MAX_FINDINGS, (height - AROUND) // 2))]
        above += [Text(one.text, style=COLORS[one.concern]) for one in told]
        if len(told) < len(seen.findings):
            left = len(seen.findings) - len(told)
            above.append(Text(f"and {count(left, 'more finding')}", style="dim"))
        room = len(seen.snapshot.ranks)
        if not self._whole:
            room = max(1, min(room, height - AROUND - sum(map(taken, above))))
        yield from above
        shown = select_ranks(seen, room)
        yield self._table(shown)
        if len(shown) < len(seen.snapshot.ranks):
            yield Text(describe_rest(seen, shown), style="dim", overflow="ellipsis", no_wrap=True)

    def _table(self, shown: Sequence[RankSnapshot]) -> Table:
        hosts = len({one.host for one in self._seen.snapshot.ranks}) > 1
        hidden = [] if hosts else [*OF_HOSTS]
        hidden += [] if self._seen.uses_files else OF_FILES
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for place, name in enumerate(COLUMNS):
            if name not in hidden:
                side = "left" if place in range(1, WORDS) else "right"
                table.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]
        for one in shown:
            cells = zip(COLUMNS, self._cells(one), strict=True)
            style = "dim" if self._seen.state(one) is RankState.ENDED else ""
            table.add_row(*(cell for name, cell in cells if name not in hidden), style=style)
        return table

    def _cells(self, one: RankSnapshot) -> list[str]:
        seen, state = self._seen, self._seen.state(one)
        rate, recent = seen.rates.get(one.rank), seen.recent.get(one.rank)
        seconds = for_seconds(one, state)
        return [
            str(one.rank),
            one.host,
            is_in(one, state),
            peer_of(one, state),
            "" if seconds is None else duration(seconds),
            scaled(rate.calls_per_s) if rate else "",
            scaled(rate.bytes_per_s, "B/s") if rate else "",
            scaled(rate.read_per_s, "B/s") if rate else "",
            scaled(rate.written_per_s, "B/s") if rate else "",
            share_text(recent.mpi if recent else None),
            scaled(one.memory, "B"),
        ]


def select_ranks(seen: Observation, room: int) -> list[RankSnapshot]:
    """Return the ranks to show, in order, at most ``room``."""
    ranks = seen.snapshot.ranks
    if len(ranks) <= room:
        return list(ranks)
    grave: dict[int, int] = {}
    for place, finding in enumerate(seen.findings):
        if finding.concern is not Concern.ENDED:
            for rank in finding.ranks:
                grave.setdefault(rank, place)

    def order(one: RankSnapshot) -> tuple[float, float, int]:
        recent = seen.recent.get(one.rank)
        busy = 1.0 if recent is None or seen.state(one) is RankState.ENDED else recent.mpi
        return grave.get(one.rank, len(seen.findings)), busy, one.rank

    return sorted(sorted(ranks, key=order)[:room], key=lambda one: one.rank)


def describe_rest(seen: Observation, shown: Sequence[RankSnapshot]) -> str:
    """Return a line about the ranks that are not shown."""
    there = {one.rank for one in shown}
    others = [one for one in seen.snapshot.ranks if one.rank not in there]
    shares = sorted(seen.recent[one.rank].mpi for one in others if one.rank in seen.recent)
    words = f"and {count(len(others), 'more rank')}"
    if shares:
        words += f", {share_text(shares[0])} to {share_text(shares[-1])} of their time in MPI"
    return words
