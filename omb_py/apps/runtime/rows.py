"""From the turns of an application to its rows."""

from __future__ import annotations

import os
import shlex
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from statistics import mean, median, median_low
from typing import TYPE_CHECKING, Any

from omb_py.apps import Application, ApplicationRequest, CheckedResult, Detail, Transfer
from omb_py.apps.runtime.pairs import bandwidths
from omb_py.apps.runtime.phases import Phase, Tally
from omb_py.buffers import Buffer
from omb_py.core.job import Job, Node
from omb_py.core.options import Options
from omb_py.results.application import ApplicationRow

if TYPE_CHECKING:
    from omb_py.core.mpi.watchdog import Watchdog
    from omb_py.measure.progress import Display
    from omb_py.results.writer import Writer

SPREAD = ("value_low", "value_p25", "value_p75", "value_high")
TIMES = ("time_s", *(f"{phase.value}_s" for phase in Phase), "other_s")


@dataclass(frozen=True)
class ApplicationSetting:
    """What is asked for, and the job that will do it."""

    request: ApplicationRequest
    buffer: Buffer
    job: Job
    watchdog: Watchdog | None = None
    device_first: bool = True
    more_writers: Callable[[], Sequence[Writer[Any]]] = tuple
    display: Display | None = None

    @property
    def options(self) -> Options:
        """Of the buffer, the binding and the output."""
        return self.request.options


@dataclass(frozen=True)
class Solved:
    """One repeat: its seconds, and this rank's own, with their phases, tallies and parts.

    ``transfers`` are what this rank received, where that was timed by itself.
    """

    seconds: float
    own_seconds: float
    phases: dict[Phase, float]
    tallies: tuple[Tally, ...]
    parts: tuple[Detail, ...]
    transfers: tuple[Transfer, ...] = ()

    @property
    def times(self) -> tuple[float, ...]:
        """This rank's times in the order of `TIMES`."""
        known = [self.phases[phase] for phase in Phase]
        return (self.own_seconds, *known, max(0.0, self.own_seconds - sum(known)))


@dataclass
class TurnSeconds:
    """What was measured by turns, in seconds; only rank 0 has references of one process."""

    solved: list[Solved] = field(default_factory=list)
    alternative: list[float] = field(default_factory=list)
    one_rank: list[float] = field(default_factory=list)
    sequential: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class MeasuredRepeats:
    """An application's turns, with all that its rows say of it.

    ``problem`` is the whole one, ``ranks`` those at the beginning.
    """

    setting: ApplicationSetting
    run: str
    problem: Any
    ranks: int
    nodes: Sequence[Node]
    blas: str
    turns: TurnSeconds
    check: CheckedResult | None
    sequential: str | None
    alternative: str | None


def application_rows(measured: MeasuredRepeats) -> list[ApplicationRow]:
    """The rows, on rank 0, which alone has the references; empty elsewhere. Collective."""
    job, turns = measured.setting.job, measured.turns
    seconds = [one.seconds for one in turns.solved]
    chosen = turns.solved[seconds.index(median_low(seconds))]
    times = _gathered(job, chosen.times)
    transfers = [one for solved in turns.solved for one in solved.transfers]
    of_all = job.comm.gather(transfers) or []
    if job.rank != 0:
        return []
    common = _common(measured)
    means = dict(zip(TIMES, map(mean, zip(*times, strict=True)), strict=True))
    found = [common | means | _whole(measured, seconds)]
    found += [
        common | {"part": "rank", "rank": rank} | dict(zip(TIMES, own, strict=True))
        for rank, own in enumerate(times)
    ]
    by_pair = bandwidths([one for of_rank in of_all for one in of_rank])
    found += [common | part for part in _parts(chosen, by_pair, measured.check)]
    return [ApplicationRow(**row) for row in found]


def _common(measured: MeasuredRepeats) -> dict[str, Any]:
    """What all rows of a run have in common."""
    setting = measured.setting
    options, settings = setting.options, setting.request.settings
    return {
        "run": measured.run,
        "application": setting.request.application.name,
        "ranks": measured.ranks,
        "nodes": len(measured.nodes),
        "host_cores": os.cpu_count() or 1,
        "buffer": options.buffer,
        "binding": options.binding,
        "problem": describe(setting.request.application, setting.request.problem),
        "scaling": settings.scaling,
        "threads": settings.threads,
        "cores": measured.ranks * settings.threads,
        "blas": measured.blas,
        "repeats": settings.repeats,
        "variant": options.variant,
    }


def _whole(measured: MeasuredRepeats, seconds: Sequence[float]) -> dict[str, Any]:
    """The row of the application as a whole, but for its phases."""
    application, turns = measured.setting.request.application, measured.turns
    ranks = measured.ranks
    time = median(seconds)
    one_rank = turns.one_rank if ranks > 1 else list(seconds)
    found = {
        "time_s": time,
        "time_low_s": min(seconds),
        "time_high_s": max(seconds),
        "value": application.metric(measured.problem, time),
        "unit": application.unit,
    }
    work = ranks if measured.setting.request.settings.scaling == "weak" else 1
    if measured.setting.request.settings.references:
        over_one_rank = speedup("speedup", one_rank, seconds, work)
        found |= over_one_rank
        found |= {"one_rank_s": median(one_rank), "efficiency": over_one_rank["speedup"] / ranks}
    if turns.sequential:
        found |= speedup("sequential_speedup", turns.sequential, seconds, work)
        pairs = zip(one_rank, turns.sequential, strict=True)
        found |= {
            "sequential_s": median(turns.sequential),
            "sequential": measured.sequential,
            "sequential_ratio": median(one / other for one, other in pairs),
        }
    if turns.alternative:
        found |= speedup("alternative_speedup", turns.alternative, seconds, 1)
        found |= {
            "alternative_s": median(turns.alternative),
            "alternative": measured.alternative,
        }
    if measured.check is not None:
        found |= {
            "check": "Pass" if measured.check.passed else "Fail",
            "difference": measured.check.difference,
        }
    return found


def speedup(
    name: str, reference: Sequence[float], seconds: Sequence[float], work: int
) -> dict[str, float]:
    """The speed-up of each turn over its reference, which does one part of ``work``: the median as
    ``name``, and the minimum and maximum as ``name_low`` and ``name_high``."""
    found = [work * other / own for other, own in zip(reference, seconds, strict=True)]
    return {name: median(found), f"{name}_low": min(found), f"{name}_high": max(found)}


def _parts(
    chosen: Solved, by_pair: Sequence[Detail], check: CheckedResult | None
) -> Iterator[dict[str, Any]]:
    """What else there is to tell.

    That is the application's own parts, what each pair of ranks exchanged in all repeats, rank 0's
    calls, and the check.
    """
    for part in (*chosen.parts, *by_pair):
        yield {
            "part": part.name,
            "time_s": part.seconds,
            "value": part.value,
            "unit": part.unit or None,
            "calls": part.calls,
            "call_bytes": part.nbytes,
            **dict(zip(SPREAD, part.spread or (), strict=False)),
        }
    for tally in sorted(chosen.tallies, key=lambda tally: (tally.function, tally.nbytes)):
        yield {
            "part": f"MPI_{tally.function.capitalize()}",
            "time_s": tally.seconds,
            "calls": tally.calls,
            "call_bytes": tally.nbytes,
        }
    if check is not None:
        said = f"{'Pass' if check.passed else 'Fail'}: {check.text}"
        yield {"part": "check", "check": said, "difference": check.difference}


def describe(application: Application[Any], problem: Any) -> str:
    """A problem in words: the options that mean something in it, and their values."""
    names = [one.name for one in fields(problem) if application.applies(problem, one.name)]
    values = {name: text(getattr(problem, name)) for name in names}
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in values.items() if value)


def text(value: Any) -> str:
    """A value as somebody would write it."""
    if isinstance(value, tuple):
        return ",".join(map(text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _gathered(job: Job, values: tuple[float, ...]) -> list[tuple[float, ...]]:
    """The values of each rank, on rank 0; collective."""
    return [tuple(array("d", data)) for data in job.gather(array("d", values).tobytes())]
