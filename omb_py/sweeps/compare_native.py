"""Native OMB and omb-py alternately on the same machine, so that a slow minute falls on both."""

from __future__ import annotations

import os
import random
import re
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from omb_py.analysis.table import load
from omb_py.benchmarks import find_benchmark
from omb_py.core.errors import LeftOutError, OmbError, UsageError
from omb_py.core.text.units import size_text
from omb_py.core.text.words import count
from omb_py.options.table import OF_A_LAUNCH
from omb_py.sweeps import processes
from omb_py.sweeps.reasons import last_words

OMB_PY = (sys.executable, "-m", "omb_py")
OURS = "omb-py"
"""Name of our program if it uses no binding."""

ALONE = re.compile(r"(requires|needs?|must|runs on|at least|exactly)\b.*\b(process|ranks)", re.I)
"""Messages of benchmarks that refuse a job of one process."""

FEWEST_ROUNDS = 8
"""Rounds before the precision of a ratio is checked: fewer do not show the spread."""

MEDIANS = "-z50"
"""Makes native OMB print medians next to its means, which one preemption spoils."""

WITHOUT_FINALIZE = ("latency_mt",)
"""Programs of native OMB that never call MPI_Finalize: some launchers count that as a failure."""

HEADLINE = re.compile(r"^# OSU ", re.M)
"""First line of a job of native OMB."""

SINGLETONS = (
    ": native OMB, mpi4py and the launcher must belong to the same MPI library; name its launcher "
    "with --launcher"
)


@dataclass(frozen=True)
class Turns:
    """Programs to run alternately: ``binary`` and omb-py's benchmark through each binding.

    ``options`` are given to both, ``launcher`` is a command line without its number of ranks,
    ``timeout`` the seconds that a run may take, ``mpi_type`` the element type of ours, and
    ``medians`` is true if native OMB prints them.
    """

    binary: Path
    benchmark: str
    options: tuple[str, ...] = ()
    bindings: tuple[str, ...] = ("native",)
    ranks: int = 2
    launcher: tuple[str, ...] = ("mpiexec",)
    timeout: float = 600.0
    mpi_type: str | None = None
    medians: bool = True

    @property
    def native(self) -> str:
        """Native OMB's name of the benchmark, whatever the file is called."""
        return f"osu_{self.benchmark}"

    def programs(self) -> dict[str, tuple[str, ...]]:
        """Return the programs that alternate: name and command, native OMB first.

        omb-py's programs have the name of their binding, or `OURS` if the benchmark has none.
        """
        ours = (*OMB_PY, self.benchmark)
        if not find_benchmark(self.benchmark).planned:
            return {
                self.native: (str(self.binary), *self.options),
                OURS: (*ours, *self.options),
            }
        typed = () if self.mpi_type is None else ("-T", self.mpi_type)
        more = (MEDIANS,) if self.medians else ()
        return {self.native: (str(self.binary), *self.options, *more)} | {
            binding: (*ours, "--binding", binding, *self.options, *typed)
            for binding in self.bindings
        }

    @property
    def share_launch(self) -> bool:
        """True if all bindings of omb-py are measured in one launch."""
        own_launch = self.has(*OF_A_LAUNCH, "-I", "--coll-algorithm")
        shared = find_benchmark(self.benchmark).shares_launch and not own_launch
        return len(self.bindings) > 1 and shared

    def has(self, *names: str) -> bool:
        """Return whether one of these options was given, its value attached or not."""
        return any(word.startswith(names) for word in self.options)


@dataclass(frozen=True)
class Goal:
    """The limit of the rounds to measure.

    It is reached after ``rounds`` rounds, when every ratio is known to within ``precision`` (0.05
    for ±5 %), or before a round that would end more than ``seconds`` after the start: whichever
    comes first of those that are not None.
    """

    rounds: int | None = None
    precision: float | None = None
    seconds: float | None = None

    def reached(self, rounds: int, seconds: float, points: Callable[[], pd.DataFrame]) -> bool:
        """Return whether to stop after ``rounds`` and ``seconds``; ``points`` returns the ratios so
        far."""
        if self.rounds is not None and rounds >= self.rounds:
            return True
        if self.seconds is not None and seconds * (rounds + 1) > self.seconds * rounds:
            return True
        if self.precision is None or rounds < FEWEST_ROUNDS or rounds % 2:
            return False
        return bool((half_widths(points()) <= self.precision).all())


@dataclass(frozen=True)
class MeasuredTurns:
    """The comparison's ``points``, and the rounds and seconds that they took."""

    names: tuple[str, ...]
    points: pd.DataFrame
    rounds: int
    seconds: float


def find_binary(place: Path, benchmark: str) -> Path:
    """Return native OMB's program of a benchmark: ``place`` itself, or one below that folder.

    Raises `UsageError` when there is none, or several.
    """
    name = f"osu_{benchmark}"
    if not place.exists():
        raise UsageError(f"--native {place}: there is no such file or folder")
    found: dict[Path, Path] = {}
    for path in sorted(place.rglob(name)) if place.is_dir() else [place]:
        hidden = any(part.startswith(".") for part in path.relative_to(place).parts)
        if not hidden and path.is_file() and os.access(path, os.X_OK):
            found.setdefault(path.resolve(), path.absolute())
    if not found:
        raise UsageError(f"there is no program {name} below {place}: compile native OMB there")
    if len(found) > 1:
        several = ", ".join(str(path.relative_to(place.absolute())) for path in found.values())
        raise UsageError(f"several programs {name} are below {place} ({several}): name one of them")
    return next(iter(found.values()))


def find_launcher(text: str | None) -> tuple[str, ...]:
    """Return a launcher's command line; without ``text``, this Python's mpiexec or that on PATH.

    Raises `UsageError` when there is none.
    """
    if text is None:
        beside = Path(sys.executable).parent / "mpiexec"
        words = [str(beside) if os.access(beside, os.X_OK) else "mpiexec"]
    else:
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"--launcher {text}: {error}") from error
    if not words or shutil.which(words[0]) is None:
        raise UsageError(
            f"there is no launcher {words[0] if words else text!r}: name yours with --launcher, as "
            "in --launcher 'srun --mpi=pmix'"
        )
    return tuple(words)


Judge = Callable[[dict[str, pd.DataFrame]], pd.DataFrame]


def measure(
    turns: Turns, goal: Goal, folder: Path, judge: Judge, say: Callable[[str], None]
) -> MeasuredTurns:
    """Run all programs in rounds, each in another order, until the goal is reached.

    ``judge`` compares the rows of each program, native OMB's first. ``folder`` keeps the output of
    each run and omb-py's rows. Raises `OmbError` at the first run that fails or measures nothing,
    and after the first round if their results cannot be compared.
    """
    began = time.monotonic()
    say(f"round 1: {turns.native}")
    turns = first_turn(turns, folder)
    programs = turns.programs()
    kept: dict[str, list[pd.DataFrame]] = {name: [] for name in programs}

    def points() -> pd.DataFrame:
        return judge({name: pd.concat(rows) for name, rows in kept.items()})

    for number, order in enumerate(orders(list(programs)), 1):
        for names in launches(turns, order):
            if number > 1 or names != [turns.native]:
                say(f"round {number}: {', '.join(names)}")
                run(turns, names, programs, folder, number)
        for name, rows in kept.items():
            rows.append(rows_of(turns, name, folder, number))
        if number == 1:
            points()
        if goal.reached(number, time.monotonic() - began, points):
            break
    return MeasuredTurns(tuple(kept), points(), number, time.monotonic() - began)


def launches(turns: Turns, order: list[str]) -> list[list[str]]:
    """Return the programs of each launch of a round: omb-py's together if they can be."""
    if not turns.share_launch:
        return [[name] for name in order]
    ours = [name for name in order if name != turns.native]
    return [[turns.native], ours] if order[0] == turns.native else [ours, [turns.native]]


def orders(names: list[str]) -> Iterator[list[str]]:
    """Yield the order of each round: as named, reversed, then random ones, each also reversed.

    The same in each comparison, and never periodic, so that periodic noise favours no program.
    """
    drawn = random.Random(0)
    order = names
    while True:
        yield order
        yield order[::-1]
        order = drawn.sample(names, len(names))


UNPRINTED = {"acc_latency": "mpi_char", "fop_latency": "int64", "cas_latency": "int64"}
"""The types of native OMB's reductions in versions that print none; of collectives MPI_FLOAT."""


def first_turn(turns: Turns, folder: Path) -> Turns:
    """Run native OMB once, and note whether it prints medians and which type it takes.

    The default type of its reductions is MPI_INT since 7.5 and was MPI_CHAR before; UNPRINTED has
    those of versions that print none. Raises `OmbError` when it fails without asking for medians,
    too.
    """
    benchmark = find_benchmark(turns.benchmark)
    turns = replace(turns, medians=benchmark.planned and not turns.has("-z", "--tail-lat"))
    try:
        run(turns, [turns.native], turns.programs(), folder, 1)
    except OmbError:
        if not turns.medians:
            raise
        turns = replace(turns, medians=False)
        run(turns, [turns.native], turns.programs(), folder, 1)
    if turns.has("-T", "--type") or not benchmark.reduces:
        return turns
    printed = load(result_file(turns, turns.native, folder, 1)).rows["mpi_type"].dropna().unique()
    unprinted = UNPRINTED.get(turns.benchmark, "mpi_float")
    return replace(turns, mpi_type=str(printed[0]).lower() if len(printed) else unprinted)


def half_widths(points: pd.DataFrame) -> pd.Series:
    """Return the precision of each ratio: 0.05 if its 95 % interval is within ±5 % of it.

    It excludes the rounding to two decimals, which more rounds do not reduce; it is infinite
    without an interval.
    """
    there = points[points["ratio"].notna()]
    ends = there["ratio"] / there["ratio_low"], there["ratio_high"] / there["ratio"]
    width = np.maximum(*ends) / (1 + there["rounding"]) - 1
    return width.clip(lower=0).fillna(np.inf)


def reached(measured: MeasuredTurns, goal: Goal) -> str:
    """Return a sentence about the precision of the ratios, the rounds and the time."""
    widths = half_widths(measured.points)
    took = f"{count(measured.rounds, 'round')} in {measured.seconds:.0f} s"
    limit = goal.precision
    worst = float(widths.max())
    if limit is not None and worst <= limit:
        return f"{took}: each ratio is known within ±{100 * limit:.3g} %"
    if not np.isfinite(worst):
        return f"{took}: too few to tell a difference from noise: take 4 rounds or more"
    known = f"within ±{100 * worst:.2g} %" if worst < 1 else "no better than ±100 %"
    place = measured.points.loc[widths.idxmax(), "bytes"]
    where = "" if pd.isna(place) else f" at {size_text(int(place))}"
    if limit is None:
        return f"{took}: each ratio is known {known} (worst{where})"
    enough = int((widths <= limit).sum())
    return (
        f"{took}: {enough} of {count(len(widths), 'ratio')} known within ±{100 * limit:.3g} %, the "
        f"worst{where} {known}: raise --max-time, or measure fewer sizes"
    )


def run(
    turns: Turns, names: list[str], programs: dict[str, tuple[str, ...]], folder: Path, number: int
) -> None:
    """Run programs in one launch, in the round of that number.

    Raises `OmbError` when it cannot be started, fails or measures nothing.
    """
    name = names[0]
    files = [result_file(turns, one, folder, number) for one in names]
    for file in files:
        file.unlink(missing_ok=True)
    out = files[0].with_suffix(".txt")
    program = programs[name]
    if name != turns.native:
        written = [
            (*programs[one], "--output", str(file)) for one, file in zip(names, files, strict=True)
        ]
        start = len(OMB_PY)
        program = (
            (*written[0], "--quiet")
            if len(names) == 1
            else (*OMB_PY, "run", "--quiet", *(shlex.join(one[start:]) for one in written))
        )
    command = [*turns.launcher, "-n", str(turns.ranks), *program]
    may_fail = name == turns.native and turns.benchmark in WITHOUT_FINALIZE
    launch(command, title(turns, name), files, out, turns.timeout, may_fail=may_fail)


def launch(
    command: Sequence[str],
    what: str,
    files: Sequence[Path],
    out: Path,
    timeout: float,
    environment: Mapping[str, str] = os.environ,
    may_fail: bool = False,
) -> None:
    """Run a launcher to its end, its standard output in ``out``; results are in ``files`` then.

    ``what`` it measures is the subject of errors; its exit code counts unless it ``may_fail``.
    Raises `OmbError` when it cannot be started, does not end within ``timeout`` seconds, fails or
    measures nothing.
    """
    mark = f"native-{os.getpid()}"
    err = out.with_suffix(".stderr")
    with out.open("wb") as stdout, err.open("wb") as stderr:
        starting = processes.started([*command], environment, mark, Path.cwd(), stdout, stderr)
        try:
            with starting as process:
                ended = processes.wait(process, timeout)
        except OSError as error:
            raise OmbError(f"cannot start {command[0]}: {error.strerror or error}") from error
    code = process.returncode
    measured = code in (0, LeftOutError.exit_code) or may_fail
    if ended and measured and all(map(has_rows, files)):
        return
    ours, theirs = last_words(err if err.stat().st_size else out)
    words = ours or theirs
    reason = f": {words!r}" if words else ""
    if not ended:
        raise OmbError(
            f"{what} did not end within {timeout:g} s{reason}: raise --timeout, or measure less"
        )
    how = f"failed with exit code {code}" if code else "printed no table of results"
    advice = SINGLETONS if ALONE.search(words) else ""
    raise OmbError(f"{what} {how}{reason}{advice}")


def result_file(turns: Turns, name: str, folder: Path, number: int) -> Path:
    """Return the file of a run's results: native OMB's output, or our rows."""
    return folder / f"{number:03d}-{name}{'.txt' if name == turns.native else '.csv'}"


def has_rows(path: Path) -> bool:
    """Return whether a file has results, of benchmarks or of overheads."""
    try:
        found = load(path)
        return not (found.rows.empty and found.overhead.empty)
    except OmbError:
        return False


def rows_of(turns: Turns, name: str, folder: Path, number: int) -> pd.DataFrame:
    """Return the rows of one program's run in the round of that number.

    Raises `OmbError` when they are of another benchmark, or each process ran by itself.
    """
    known: dict[str, object] = {"ranks": turns.ranks}
    if turns.mpi_type is not None:
        known |= {"mpi_type": turns.mpi_type.upper()}
    file = result_file(turns, name, folder, number)
    rows = load([file], known if name == turns.native else {}).rows.assign(source=None)
    benchmarks = sorted(set(rows["benchmark"].dropna()) - {turns.benchmark})
    if benchmarks:
        raise OmbError(f"{title(turns, name)} measured {benchmarks[0]}, not {turns.benchmark}")
    columns = ["part", "bytes", "mpi_type", "window"]
    jobs = len(HEADLINE.findall(file.read_text(errors="replace")))
    if jobs > 1 or bool((rows["ranks"] != turns.ranks).any() or rows.duplicated(columns).any()):
        raise OmbError(
            f"{title(turns, name)} did not run as one job of {turns.ranks} ranks{SINGLETONS}"
        )
    return rows


def title(turns: Turns, name: str) -> str:
    """Return a program's name for a sentence."""
    if name == turns.native:
        return turns.binary.name
    return f"omb-py {turns.benchmark}" + ("" if name == OURS else f" --binding {name}")
