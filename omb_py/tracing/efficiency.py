"""The lost time of parallel runs, in POP's multiplicative factors, and a table of several runs.

The factors are the standard metrics of the POP Centre of Excellence
(https://co-design.pop-coe.eu/metrics/index.html).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from statistics import fmean
from textwrap import shorten
from typing import Any

from omb_py.core.errors import UsageError
from omb_py.core.text.tables import Sheet
from omb_py.core.text.units import digits, value_text
from omb_py.core.text.words import count, some_ranks
from omb_py.tracing.profile.profile import Profile, RankProfile
from omb_py.tracing.profile.store import load as load_profile
from omb_py.tracing.records.layout import record_paths
from omb_py.tracing.records.routines import Role, nonblocking, role
from omb_py.tracing.timeline.assembly import read as read_timeline
from omb_py.tracing.timeline.ideal import elapsed as on_ideal_network


@dataclass(frozen=True)
class Run:
    """A run with its efficiencies; each is between 0 and 1, 1 is perfect.

    ``name`` is its name on the command line, ``command`` the program that ran and its arguments, if
    known. ``ranks`` counts those of the job, even if some left no times. Seconds: ``outside`` has
    the time that each rank spent outside MPI, and is empty if this is not known, since threads
    other than the main one called MPI. ``elapsed`` is the time from the first rank's start to the
    last one's end, ``io`` that of all ranks in MPI's files. ``cpu`` is the CPU time of whole
    processes, with all their threads, over their time from beginning to end, None if unknown.
    ``serialisation`` and ``transfer`` are the factors of communication efficiency, if known.
    """

    name: str
    command: str
    ranks: int
    outside: tuple[float, ...]
    elapsed: float
    io: float = 0.0
    cpu: float | None = None
    notes: tuple[str, ...] = ()
    serialisation: float | None = None
    transfer: float | None = None

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

    None if this run computed nothing, or the time outside MPI of one of them is not known.
    """
    if not run.outside or not reference.outside or run.total <= 0:
        return None
    work = run.ranks / reference.ranks if weak else 1.0
    computation = work * reference.total / run.total
    return Scaling(computation, run.parallel * computation, work * reference.elapsed / run.elapsed)


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
    return [on_ideal(run_of(load_profile(members), name)) for name, members in groups.items()]


def on_ideal(run: Run) -> Run:
    """Return the run with the factors that an ideal network tells, or a note on what they need."""
    if not run.outside:
        return run
    try:
        if not record_paths(run.name):
            raise UsageError("they need the folder of omb-py profile --events N")
        took, unknown = on_ideal_network(read_timeline(run.name))
    except UsageError as error:
        note = f"no serialisation and transfer efficiency: {error}"
        return replace(run, notes=(*run.notes, note))
    ideal = min(max(took, *run.outside), run.elapsed)
    factors = max(run.outside) / ideal if ideal else None, ideal / run.elapsed
    notes = (f"{count(unknown, 'wait')} of unknown cause count as transfer",) if unknown else ()
    return replace(run, serialisation=factors[0], transfer=factors[1], notes=(*run.notes, *notes))


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
    elapsed -= min(one.stopped_s for one in told)
    if elapsed <= 0:
        raise UsageError(f"{name}: a run that took no time has no efficiency")
    single = [] if any(member.threaded for member in told) else told
    outside = tuple(
        max(0.0, (m.elapsed_s or 0) - (m.communication_s or 0) - (m.io_s or 0) - m.stopped_s)
        for m in single
    )
    return Run(
        name,
        str(profile.about.get("command", "")),
        profile.ranks,
        outside,
        elapsed,
        sum(one.io_s or 0.0 for one in told),
        _cpu(told),
        (*_notes_of(profile, told), *profile.notes),
    )


def _cpu(told: Sequence[RankProfile]) -> float | None:
    """Return CPU time over elapsed time, None if it is unknown for a rank."""
    if any(one.user_s is None or one.system_s is None for one in told):
        return None
    used = sum((one.user_s or 0.0) + (one.system_s or 0.0) for one in told)
    spent = sum(one.elapsed_s or 0.0 for one in told)
    return used / spent if used > 0 and spent > 0 else None


def _notes_of(profile: Profile, told: Sequence[RankProfile]) -> Iterator[str]:
    if profile.elapsed_s is None:
        yield "when ranks began is not known on one clock: elapsed is the longest time of a rank"
    if len(told) < len(profile.members):
        excluded = len(profile.members) - len(told)
        yield f"no data for {excluded} of {profile.ranks} ranks; they are excluded"
    polls = sum(cell.calls for one in told for cell in one.cells or () if _polls(cell.routine))
    more = [m.rank for m in told if (m.communication_s or 0) + (m.io_s or 0) > (m.elapsed_s or 0)]
    if more and not any(member.threaded for member in told):
        yield (
            f"calls of {some_ranks(more)} took longer than the run: those of several threads at a "
            "time are added up, and the factors say little"
        )
    if polls:
        yield (
            f"{count(polls, 'call')} tested or probed without waiting: the time between such calls "
            "counts as outside MPI"
        )


def _polls(name: str) -> bool:
    """Return whether a routine polls and does not wait."""
    return name.startswith("MPI_Test") or (role(name) is Role.PROBE and nonblocking(name))


LITTLE_GROWTH = 0.25
"""Exponent of the growth of computing time over ranks up to which the work did not grow: weak
scaling has at least 1."""

LITTLE_CPU = 0.9
"""Below this part of the time, ranks are taken to have waited for a core."""

UNKNOWN = "-"
WIDEST = 70
"""Letters of a command in a title."""


@dataclass(frozen=True)
class Series:
    """Runs by their ranks, the first is the reference.

    ``weak`` is None if the kind of scaling is not known; ``why`` is the reason for it.
    """

    runs: tuple[Run, ...]
    weak: bool | None
    why: str

    @property
    def several(self) -> bool:
        """Return whether runs are on several numbers of ranks."""
        return len({run.ranks for run in self.runs}) > 1

    @property
    def kind(self) -> str | None:
        """The kind of scaling by which runs are compared; None if they are not."""
        if self.weak is None or not self.several:
            return None
        return "weak" if self.weak else "strong"

    @property
    def labels(self) -> list[str]:
        """The runs' names without their folders, if these names differ."""
        names = [run.name for run in self.runs]
        short = [Path(name).name or name for name in names]
        return short if len(set(short)) == len(short) else names


def series_of(runs: Sequence[Run], weak: bool | None = None) -> Series:
    """Return runs, at least one, by their ranks; ``weak`` None: as `suggested`."""
    ordered = tuple(sorted(runs, key=lambda run: run.ranks))
    why = "as was asked for"
    if weak is None:
        weak, why = suggested(ordered)
    return Series(ordered, weak, why)


def suggested(runs: Sequence[Run]) -> tuple[bool | None, str]:
    """Return False if the work of runs, by their ranks, was the same in total, and the reason.

    Else None: the time that all ranks computed bounds their work from above. If it did not grow,
    the work did not; if it grew, that may be work, or slower cores, caches and memory.
    """
    first, last = runs[0], runs[-1]
    if not all(run.outside for run in runs):
        return None, "calls of several threads hide the time outside MPI"
    if any(run.cpu is not None and run.cpu < LITTLE_CPU for run in runs):
        return None, "ranks shared cores, slept or waited, which looks like work"
    if first.ranks == last.ranks or first.total <= 0 or last.total <= 0:
        return None, "nothing shows it"
    work, ranks = last.total / first.total, last.ranks / first.ranks
    grew = (
        f"on {ranks:.3g} times the ranks all of them together spent {work:.3g} times as long "
        "outside MPI"
    )
    if log(work) / log(ranks) > LITTLE_GROWTH:
        return None, f"{grew}, which is more work, or slower cores and memory"
    return False, f"assumed, since {grew}; --weak if that is wrong"


def percent(part: float | None) -> str:
    """Return a part in percent."""
    return UNKNOWN if part is None else f"{100 * part:.1f} %"


def seconds(value: float | None) -> str:
    """Return a time with its unit."""
    return UNKNOWN if value is None else value_text(1e6 * value, "us")


def plain(value: float | None) -> str:
    """Return a number."""
    return UNKNOWN if value is None else digits(value)


@dataclass(frozen=True)
class FactorLine:
    """A number of a run: its label in the table, its column in rows, its value, how it is shown."""

    label: str
    column: str
    value: Callable[[Run, Series], float | None]
    shown: Callable[[float | None], str] = percent


def known(value: Callable[[Run], float]) -> Callable[[Run, Series], float | None]:
    """Return a value of a run; None if its time outside MPI is not known."""
    return lambda run, _: value(run) if run.outside else None


def compared(value: Callable[[Scaling], float]) -> Callable[[Run, Series], float | None]:
    """Return the value of a run's scaling; None if runs are not compared."""

    def found(run: Run, series: Series) -> float | None:
        made = scaling(run, series.runs[0], series.kind == "weak") if series.kind else None
        return None if made is None else value(made)

    return found


FILES = "files_s"
LINES = (
    FactorLine("Global efficiency", "global_efficiency", compared(lambda to: to.whole)),
    FactorLine("- Parallel efficiency", "parallel_efficiency", known(lambda run: run.parallel)),
    FactorLine("-- Load balance", "load_balance", known(lambda run: run.load_balance)),
    FactorLine(
        "-- Communication efficiency",
        "communication_efficiency",
        known(lambda run: run.communication),
    ),
    FactorLine(
        "--- Serialisation efficiency", "serialisation_efficiency", lambda run, _: run.serialisation
    ),
    FactorLine("--- Transfer efficiency", "transfer_efficiency", lambda run, _: run.transfer),
    FactorLine("- Computation scaling", "computation_scaling", compared(lambda to: to.computation)),
    FactorLine("Speed-up", "speedup", compared(lambda to: to.speedup), plain),
    FactorLine("Elapsed", "elapsed_s", lambda run, _: run.elapsed, seconds),
    FactorLine("Outside MPI, all ranks", "outside_sum_s", known(lambda run: run.total), seconds),
    FactorLine("MPI's files, all ranks", FILES, lambda run, _: run.io, seconds),
    FactorLine("CPU time / elapsed, threads together", "cpu_of_elapsed", lambda run, _: run.cpu),
)


def sheet(series: Series) -> Sheet:
    """Return the table of all runs; lines without values, and unused files, are left out."""
    runs = series.runs
    rows = []
    for line in LINES:
        values = [line.value(run, series) for run in runs]
        if any(values) or (line.column != FILES and any(one is not None for one in values)):
            rows.append((line.label, *map(line.shown, values)))
    if len(runs) > 1:
        rows.append(("Run", *series.labels))
    columns = ("", *(count(run.ranks, "rank") for run in runs))
    return Sheet(title(series), columns, tuple(rows), tuple(remarks(series)))


def row_of(run: Run, series: Series) -> dict[str, Any]:
    """Return all numbers of a run; times in seconds, None for unknown numbers.

    ``parallel_efficiency = load_balance * communication_efficiency`` and
    ``global_efficiency = parallel_efficiency * computation_scaling`` hold to rounding.
    """
    return {
        "run": run.name,
        "command": run.command,
        "ranks": run.ranks,
        "scaling": series.kind,
        "reference_ranks": series.runs[0].ranks if series.kind else None,
        **{line.column: line.value(run, series) for line in LINES},
        "outside_mean_s": fmean(run.outside) if run.outside else None,
        "outside_max_s": max(run.outside, default=None),
    }


def details(series: Series) -> dict[str, object]:
    """Return notes, and for each run its ranks' seconds and notes, which rows lack."""
    runs = [
        {"run": run.name, "outside_s": list(run.outside), "notes": list(run.notes)}
        for run in series.runs
    ]
    return {"runs": runs, "notes": list(notes(series))}


def title(series: Series) -> str:
    """Return the title: the program or the run, and the scaling."""
    commands = dict.fromkeys(run.command for run in series.runs if run.command)
    of = shorten(next(iter(commands)), WIDEST) if len(commands) == 1 else ""
    of = of or (series.runs[0].name if len(series.runs) == 1 else "")
    kind = f"{series.kind} scaling" if series.kind else ""
    return ": ".join(filter(None, ["Efficiency", ", ".join(filter(None, [of, kind]))]))


def remarks(series: Series) -> Iterator[str]:
    """Yield sentences about the meaning of the table's lines."""
    if not any(run.outside for run in series.runs):
        return
    text = "Parallel efficiency = load balance x communication efficiency"
    if any(run.transfer for run in series.runs):
        text += "; communication efficiency = serialisation x transfer efficiency"
    if series.kind:
        text += "; global efficiency = parallel efficiency x computation scaling"
    yield f"{text}."
    if series.kind:
        yield (
            f"Computation scaling and speed-up are relative to {series.labels[0]} "
            f"({count(series.runs[0].ranks, 'rank')})"
            + (", and to the work, which grew with the ranks." if series.weak else ".")
        )


def notes(series: Series) -> Iterator[str]:
    """Yield caveats of the table; with the runs' names if there are several."""
    if series.kind:
        yield f"{series.kind} scaling: {series.why}"
    elif series.several:
        yield (
            "no scaling and no speed-up, since the kind of scaling is not clear: add --strong if "
            f"the work was the same in total, --weak if it grew with the ranks ({series.why})"
        )
    commands = (run.command.split() for run in series.runs)
    programs = {words[0] for words in commands if words}
    if len(programs) > 1:
        yield f"these are runs of different programs: {', '.join(sorted(programs))}"
    said: dict[str, list[str]] = {}
    for run, label in zip(series.runs, series.labels, strict=True):
        for note in (*run.notes, *caveats(run)):
            said.setdefault(note, []).append(label)
    for note, labels in said.items():
        yield note if len(labels) == len(series.runs) else f"{', '.join(labels)}: {note}"


def caveats(run: Run) -> Iterator[str]:
    """Yield notes about CPU time and files."""
    if run.cpu is not None and run.cpu < LITTLE_CPU:
        yield (
            f"ranks had no core for more than {100 * (1 - LITTLE_CPU):.0f} % of the time: they "
            "shared cores, slept or waited for a disk, and outside MPI that counts as computation"
        )
    elif run.cpu is None and run.ranks > 1:
        yield (
            "whether ranks had a core while they computed is not known: waiting for one, too, "
            "counts as computation"
        )
    if run.io > 0:
        yield "time in MPI's files is no computation: it lowers communication efficiency"
