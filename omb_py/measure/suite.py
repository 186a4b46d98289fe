"""Several benchmarks in one launch, one after the other: a failure ends one of them, not the job.

A summary on disk names, at any time, the current benchmark and the outcome of the others.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

from omb_py.benchmarks import Benchmark, Ranks
from omb_py.core.dataclass import dataclass, replace, values
from omb_py.core.errors import (
    LeftOutError,
    MissingError,
    OmbError,
    SharedError,
    UnsupportedError,
    UsageError,
)
from omb_py.core.mpi import launcher
from omb_py.core.options import Options
from omb_py.core.text import files
from omb_py.core.text.words import count
from omb_py.measure.launch import Launch
from omb_py.measure.progress import Progress
from omb_py.measure.run import run
from omb_py.measure.subset import SubsetJob, on_subset
from omb_py.results.columns import new_run
from omb_py.results.writer import Writer

WAITING, UNDER_WAY, MEASURED = "waiting", "under way", "measured"
LEFT_OUT, FAILED = "left out", "failed"
"""Outcomes of a benchmark that was not measured."""

LEAVING_OUT = tuple(
    kind.exit_code for kind in (LeftOutError, UnsupportedError, MissingError, UsageError)
)
"""Exit codes of what is left out, from the best to the worst: sizes, what is not supported, what is
missing, what cannot be."""

SEVERITY = (0, *LEAVING_OUT, OmbError.exit_code)
"""Exit codes from the best to the worst."""

NEAR, FAR = "near", "far"
"""The pair of ranks for benchmarks of two: the first two, or the first and the last."""

MoreWriters = Callable[[Options], list[Writer[Any]]]


@dataclass(frozen=True)
class Entry:
    """A benchmark of a launch, with options of its own.

    ``text`` is the user's word for it, ``command`` the command line that launches only it.
    ``first_ranks`` is the number of ranks of the job that measure, None for as many as the
    benchmark can use. ``suite`` is the word for its suite if that was named, not it.
    """

    benchmark: Benchmark
    options: Options
    text: str
    command: str = ""
    first_ranks: int | None = None
    suite: str = ""


@dataclass(frozen=True)
class Line:
    """The outcome of an entry of a ``launch``; ``exit_code`` is that of the benchmark alone."""

    benchmark: str
    text: str
    ranks: int
    outcome: str = WAITING
    exit_code: int = 0
    rows: int = 0
    seconds: float = 0.0
    reason: str = ""
    suite: str = ""
    launch: str = ""


class Summary:
    """The outcomes of a launch's entries; on rank 0 also in a file, after those of others."""

    def __init__(self, lines: Sequence[Line], path: str | None, clear: bool) -> None:
        """Raise `OmbError` for a file with other content, unless it is to ``clear``."""
        self.lines = list(lines)
        self._path = path
        self._clear = clear
        self._others()

    def update(self, number: int, **changes: Any) -> None:
        """Change what is known of an entry; raises `OmbError` if it cannot be written."""
        self.lines[number] = replace(self.lines[number], **changes)
        if self._path is not None:
            text = json.dumps({"entries": [*self._others(), *map(values, self.lines)]}, indent=1)
            files.write(self._path, f"{text}\n", "; choose another place for --summary")
            self._clear = False

    def _others(self) -> list[dict[str, Any]]:
        """Return the entries of other launches that stay in the file."""
        if self._path is None or self._clear or not os.path.isfile(self._path):
            return []
        own, content = self.lines[0].launch, files.read(self._path)
        try:
            entries = json.loads(content)["entries"] if content else []
            return [entry for entry in entries if entry.get("launch") != own]
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(
                f"{self._path} is not a summary of launches: choose another name for --summary, or "
                "overwrite it with --force"
            ) from error

    @property
    def exit_code(self) -> int:
        """The worst of the entries' exit codes; what is not known is as bad as a failure.

        A member of a suite may be left out without harm, but not all that was asked for.
        """
        codes = (
            line.exit_code if line.exit_code in SEVERITY else OmbError.exit_code
            for line in self.lines
        )
        worst = max(codes, key=SEVERITY.index, default=0)
        return UnsupportedError.exit_code if self.nothing and not worst else worst

    @property
    def nothing(self) -> str:
        """A sentence about the first suite of which nothing was measured; empty else."""
        for suite in dict.fromkeys(line.suite for line in self.lines if line.suite):
            lines = [line for line in self.lines if line.suite == suite]
            if not any(line.outcome == MEASURED for line in lines):
                number = count(len(lines), "benchmark")
                return (
                    f"nothing of {suite} was measured: {number} left out or failed; the first, "
                    f"{lines[0].benchmark}: {lines[0].reason}"
                )
        return ""


class RowCounter(Writer[Any]):
    """Counts rows."""

    rows = 0

    def row(self, row: Any) -> None:
        self.rows += 1


def ranks_of(entry: Entry, ranks: int, pair: str) -> tuple[int, ...]:
    """Return the ranks that measure an entry in a job of so many ``ranks``, ascending.

    ``pair`` is `NEAR` or `FAR`. Rank 0 is always the first.
    """
    needed = entry.benchmark.ranks
    if needed is Ranks.TWO and ranks > 2:
        return (0, 1 if pair == NEAR else ranks - 1)
    if entry.first_ranks is not None:
        return tuple(range(min(entry.first_ranks, ranks)))
    if needed is Ranks.EVEN and ranks % 2 and ranks > 2:
        return tuple(range(ranks - 1))
    return tuple(range(ranks))


def odd_ranks(ranks: int) -> int:
    """Return the largest odd number of ranks in a job.

    Procurements ask for it of alltoall: an even number permits shortcuts that spare the bisection
    (NERSC-10's rules for osu_alltoall).
    """
    return ranks if ranks % 2 else ranks - 1


def run_entries(
    launch: Launch,
    entries: Sequence[Entry],
    pair: str,
    summary_path: str | None,
    clear: bool,
    more_writers: MoreWriters,
) -> Summary:
    """Measure the entries one after the other; collective.

    ``more_writers`` makes writers for an entry in addition to those that its options name. The
    summary has other launches, too, unless ``clear``. Raises `SharedError` if it cannot be written.
    """
    job = launch.job
    job.noted = set()
    placed, name = [ranks_of(entry, job.ranks, pair) for entry in entries], new_run()
    lines = [
        Line(entry.benchmark.name, entry.text, len(ranks), suite=entry.suite, launch=name)
        for entry, ranks in zip(entries, placed, strict=True)
    ]
    with job.agreement():
        summary = Summary(lines, summary_path if job.rank == 0 else None, clear)
    progress = Progress(len(entries), "benchmarks", job.rank)
    for number, (entry, ranks) in enumerate(zip(entries, placed, strict=True)):
        progress.over(number, f"measuring {entry.text}")
        with job.agreement():
            summary.update(number, outcome=UNDER_WAY)
        counter = RowCounter()
        began = perf_counter()
        try:
            with job.scope():
                measure_entry(launch, entry, ranks, partial(counted, more_writers, entry, counter))
        except SharedError as error:
            outcome, code = outcome_of(error, entry)
            reason = str(error)
            if job.rank == 0 and code:
                launcher.say(f"{entry.text}: {reason}")
        else:
            outcome, code, reason = MEASURED, 0, ""
        rows = int(job.bcast_from_root(counter.rows))
        if rows and code == LeftOutError.exit_code:
            outcome = MEASURED
        gc.collect()  # what failed may hold large buffers by its traceback
        seconds = round(perf_counter() - began, 3)
        with job.agreement():
            summary.update(
                number,
                outcome=outcome,
                exit_code=code,
                rows=rows,
                seconds=seconds,
                reason=reason,
            )
    if job.rank == 0 and summary.nothing:
        launcher.say(summary.nothing)
    return summary


def counted(more_writers: MoreWriters, entry: Entry, counter: RowCounter) -> list[Writer[Any]]:
    """Return an entry's further writers, and the counter of its rows."""
    return [counter, *more_writers(entry.options)]


def measure_entry(
    launch: Launch, entry: Entry, ranks: tuple[int, ...], more: Callable[[], list[Writer[Any]]]
) -> None:
    """Measure an entry on its ranks; collective over the job.

    Raises `SharedError` or `UsageError` if that cannot be, `UnsupportedError` if the launch has
    another thread level.
    """
    job, benchmark, options = launch.job, entry.benchmark, entry.options
    if options.thread_level != job.thread_level and "threads" in benchmark.options:
        job.agree(
            UnsupportedError(
                f"{benchmark.name} needs thread level {options.thread_level}, and this launch has "
                f"{job.thread_level}: add --thread-level {options.thread_level}"
            )
        )
    if len(ranks) == job.ranks:
        run(launch, benchmark, options, more, entry.command)
        return

    def on_these(subset: SubsetJob) -> None:
        run(replace(launch, job=subset, subset=subset), benchmark, options, more, entry.command)

    launch.progress(f"waiting for the ranks that measure {benchmark.name}")
    on_subset(job, ranks, on_these, launch.report)


def outcome_of(error: OmbError, entry: Entry) -> tuple[str, int]:
    """Return the outcome of an entry that ended with an error, and its exit code.

    A member of a suite that this job cannot run is left out without harm.
    """
    if error.exit_code not in LEAVING_OUT:
        return FAILED, error.exit_code
    harmless = bool(entry.suite) and error.exit_code != LeftOutError.exit_code
    return LEFT_OUT, 0 if harmless else error.exit_code


def summary_lines(summary: Summary) -> list[str]:
    """Return the table of the outcomes of a launch's benchmarks."""
    measured = sum(line.outcome == MEASURED for line in summary.lines)
    seconds = sum(line.seconds for line in summary.lines)
    found = [
        "",
        f"# Summary: {measured} of {count(len(summary.lines), 'benchmark')} measured in "
        f"{seconds:.1f} s",
        f"# {'Benchmark':<32}{'Ranks':>6}{'Rows':>7}{'Seconds':>10}  Outcome",
    ]
    for line in summary.lines:
        why = f": {line.reason}" if line.reason else ""
        found.append(
            f"# {line.benchmark:<32}{line.ranks:>6}{line.rows:>7}{line.seconds:>10.2f}  "
            f"{line.outcome}{why}"
        )
    return found
