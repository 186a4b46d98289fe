"""Native OMB and omb-py by turns on the same machine, so that a slow minute falls on both."""

from __future__ import annotations

import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from omb_py.analysis.table import load
from omb_py.benchmarks import find_benchmark
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.text.units import size_text
from omb_py.core.text.words import count

GRACE_SECONDS = 5.0
"""What a launcher that is told to end gets before it is killed."""

OURS = "omb-py"
"""What our program is called that passes through no binding."""

ALONE = re.compile(r"(requires|needs?|must|runs on|at least|exactly)\b.*\b(process|ranks)", re.I)
"""What a benchmark says of a job of one process."""

LAUNCHERS = re.compile(r"^-{20,}\n.*?^-{20,}$|^(?:=|srun:|slurmstepd:|\[mpiexec@).*?$", re.M | re.S)
"""What Open MPI's, MPICH's and Slurm's launchers add to what a program said."""

FEWEST_ROUNDS = 8
"""Rounds before the precision of a ratio is looked at: fewer tell little of the spread."""

SHORT_ROUNDS = 20
"""Rounds that shall fit into the limit of time: longer ones get fewer iterations."""

FEWEST_ITERATIONS = 10
MEDIANS = "-z50"
"""What makes native OMB print medians beside its means, which one preemption spoils."""

WITHOUT_FINALIZE = ("latency_mt",)
"""Programs of native OMB that never call MPI_Finalize: some launchers count that as a failure."""

HEADLINE = re.compile(r"^# OSU ", re.M)
"""What a program of native OMB prints once a job."""

WORDS = re.compile(r"[A-Za-z]{2,}.*[A-Za-z]{2,}")
FAULT = re.compile(r"error|omb-py:|fail|cannot", re.I)
"""Lines with words, and those of them that tell what went wrong."""


@dataclass(frozen=True)
class Turns:
    """What to run: ``binary`` and omb-py's benchmark through each binding.

    ``options`` are given to both, ``launcher`` is a command line without its number of ranks,
    ``timeout`` the seconds that a run may take, ``mpi_type`` the element type of ours, and
    ``medians`` is whether native OMB is asked for them.
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
        """What takes turns: name and command, native OMB first.

        Ours is called by its binding, or `OURS` where the benchmark has none.
        """
        ours = (sys.executable, "-m", "omb_py", self.benchmark)
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

    def has(self, *names: str) -> bool:
        """Whether one of these options was given, its value attached or not."""
        return any(word.startswith(names) for word in self.options)


@dataclass(frozen=True)
class Goal:
    """When enough rounds were measured.

    That is after ``rounds`` of them, when every ratio is known to within ``precision`` (0.05 for
    ±5 %), or before a round that would end more than ``seconds`` after the start: whichever comes
    first of those that are not None.
    """

    rounds: int | None = None
    precision: float | None = None
    seconds: float | None = None

    def reached(self, rounds: int, seconds: float, points: Callable[[], pd.DataFrame]) -> bool:
        """Whether to stop after so many rounds and seconds, ``points`` being what they show."""
        if self.rounds is not None and rounds >= self.rounds:
            return True
        if self.seconds is not None and seconds * (rounds + 1) > self.seconds * rounds:
            return True
        if self.precision is None or rounds < FEWEST_ROUNDS or rounds % 2:
            return False
        return bool((half_widths(points()) <= self.precision).all())


@dataclass(frozen=True)
class Measured:
    """What was measured by turns: the comparison's ``points``, and how many rounds that took."""

    names: tuple[str, ...]
    points: pd.DataFrame
    rounds: int
    seconds: float
    iterations: int | None
    """Iterations that were chosen so that rounds are short."""


def find_binary(place: Path, benchmark: str) -> Path:
    """Native OMB's program of a benchmark: ``place`` itself, or what is below that folder.

    Raises `UsageError` when there is none, or several.
    """
    name = f"osu_{benchmark}"
    if place.is_file():
        if not os.access(place, os.X_OK):
            raise UsageError(f"--native {place} cannot be executed")
        return place.absolute()
    if not place.is_dir():
        raise UsageError(f"--native {place}: there is no such file or folder")
    found: dict[Path, Path] = {}
    for path in sorted(place.rglob(name)):
        hidden = any(part.startswith(".") for part in path.relative_to(place).parts)
        if not hidden and path.is_file() and os.access(path, os.X_OK):
            found.setdefault(path.resolve(), path.absolute())
    if not found:
        raise UsageError(
            f"there is no program {name} below {place}: native OMB of that benchmark is not there, "
            "or not compiled"
        )
    if len(found) > 1:
        several = ", ".join(str(path.relative_to(place.absolute())) for path in found.values())
        raise UsageError(f"several programs {name} are below {place} ({several}): name one of them")
    return next(iter(found.values()))


def find_launcher(text: str | None) -> tuple[str, ...]:
    """A launcher's command line; without ``text`` this Python's own mpiexec, else that on PATH.

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
) -> Measured:
    """Run all by turns, in another order in each round, until the goal is reached.

    ``judge`` compares the rows of each program, native OMB's first. ``folder`` keeps what each run
    wrote: its standard output and error, and omb-py's rows. Raises `OmbError` at the first run that
    fails or measures nothing, and after the first round if the two measure what cannot be compared.
    """
    began = time.monotonic()
    turns = first_turn(turns, folder, say)
    rows = one_round(turns, list(turns.programs())[1:], folder, 1, say)
    points = judge(rows)
    seconds = time.monotonic() - began
    iterations = short(turns, goal, seconds)
    if iterations is not None:
        turns = replace(turns, options=(*turns.options, "-i", str(iterations)))
        say(f"a round took {seconds:.0f} s: -i {iterations} from now on")
        began = time.monotonic()
        rows = one_round(turns, list(turns.programs()), folder, 1, say)
        seconds = time.monotonic() - began
    kept = {name: [one] for name, one in rows.items()}

    def together() -> pd.DataFrame:
        return judge({name: pd.concat(of_one) for name, of_one in kept.items()})

    rounds = 1
    for order in orders(list(kept)):
        if goal.reached(rounds, seconds, together):
            break
        rounds += 1
        for name, found in one_round(turns, order, folder, rounds, say).items():
            kept[name].append(found)
        seconds = time.monotonic() - began
    points = points if rounds == 1 and iterations is None else together()
    return Measured(tuple(kept), points, rounds, seconds, iterations)


def orders(names: list[str]) -> Iterator[list[str]]:
    """The order of each round from the second on: random, then that reversed, the first as named.

    The same in each comparison. Noise with a period of its own finds none here to fall in with.
    """
    drawn = random.Random(0)
    order = names
    while True:
        yield order[::-1]
        order = drawn.sample(names, len(names))
        yield order


def first_turn(turns: Turns, folder: Path, say: Callable[[str], None]) -> Turns:
    """Run native OMB once, and learn what it can print and which type it takes.

    Raises `OmbError` when it fails without asking for medians, too.
    """
    planned = find_benchmark(turns.benchmark).planned
    turns = replace(turns, medians=planned and not turns.has("-z", "--tail-lat"))
    say(f"round 1: {turns.native}")
    try:
        run(turns, turns.native, turns.programs()[turns.native], folder, 1)
    except OmbError:
        if not turns.medians:
            raise
        turns = replace(turns, medians=False)
        run(turns, turns.native, turns.programs()[turns.native], folder, 1)
    return add_type(turns, folder)


def one_round(
    turns: Turns, order: list[str], folder: Path, number: int, say: Callable[[str], None]
) -> dict[str, pd.DataFrame]:
    """Run programs in this order; the rows of each of all, native OMB's first."""
    programs = turns.programs()
    for name in order:
        say(f"round {number}: {name}")
        run(turns, name, programs[name], folder, number)
    return {name: rows_of(turns, name, folder, number) for name in programs}


def short(turns: Turns, goal: Goal, seconds: float) -> int | None:
    """Iterations with which `SHORT_ROUNDS` fit into the limit, None where they do or were given."""
    benchmark = find_benchmark(turns.benchmark)
    if goal.seconds is None or goal.rounds is not None or not benchmark.planned:
        return None
    share = goal.seconds / SHORT_ROUNDS / seconds
    if share >= 1 or turns.has("-i", "--iterations"):
        return None
    return max(FEWEST_ITERATIONS, int(benchmark.defaults.large_iterations * share))


def half_widths(points: pd.DataFrame) -> pd.Series:
    """How well each ratio is known: 0.05 where its 95 % interval is within ±5 % of it.

    Without what two decimals leave open, which no number of rounds makes smaller; infinite without
    an interval.
    """
    there = points[points["ratio"].notna()]
    ends = there["ratio"] / there["ratio_low"], there["ratio_high"] / there["ratio"]
    width = np.maximum(*ends) / (1 + there["rounding"]) - 1
    return width.clip(lower=0).fillna(np.inf)


def reached(measured: Measured, goal: Goal) -> str:
    """A sentence on how well the ratios are known, and what it took."""
    widths = half_widths(measured.points)
    took = f"{count(measured.rounds, 'round')} in {measured.seconds:.0f} s"
    if measured.iterations is not None:
        took += f" with -i {measured.iterations}, so that rounds are short"
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


def run(turns: Turns, name: str, program: tuple[str, ...], folder: Path, number: int) -> None:
    """One run of one program, in the round of that number.

    Raises `OmbError` when it fails.
    """
    written = result_file(turns, name, folder, number)
    written.unlink(missing_ok=True)
    out, err = written.with_suffix(".txt"), written.with_suffix(".stderr")
    rows = [] if written == out else ["--quiet", "--output", str(written)]
    command = [*turns.launcher, "-n", str(turns.ranks), *program, *rows]
    code = execute(command, out, err, turns.timeout)
    if code and name == turns.native and turns.benchmark in WITHOUT_FINALIZE and has_rows(written):
        return
    said = last_words(err, out)
    if code is None:
        raise OmbError(
            f"{title(turns, name)} did not end within {turns.timeout:g} s{said}: raise --timeout, "
            "or measure less"
        )
    if code != 0:
        raise OmbError(f"{title(turns, name)} failed with exit code {code}{said}{advice(said)}")
    if not has_rows(written):
        raise OmbError(f"{title(turns, name)} printed no table of results{said}{advice(said)}")


def add_type(turns: Turns, folder: Path) -> Turns:
    """Turns in which our reduction is of native OMB's type, unless one was asked for.

    Its default is MPI_INT since 7.5, was MPI_CHAR before, and MPI_FLOAT while it printed none.
    """
    if turns.has("-T", "--type") or not find_benchmark(turns.benchmark).reduces:
        return turns
    said = load(result_file(turns, turns.native, folder, 1)).rows["mpi_type"].dropna().unique()
    return replace(turns, mpi_type=str(said[0]).lower() if len(said) else "mpi_float")


def result_file(turns: Turns, name: str, folder: Path, number: int) -> Path:
    """The file of a run's results: what native OMB printed, or our rows."""
    return folder / f"{number:03d}-{name}{'.txt' if name == turns.native else '.csv'}"


def execute(command: list[str], out: Path, err: Path, timeout: float) -> int | None:
    """Run a command with its output in files; its exit code, or None if it was ended for time.

    Raises `OmbError` when it cannot be started.
    """
    with out.open("wb") as stdout, err.open("wb") as stderr:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            raise OmbError(f"cannot start {command[0]}: {error.strerror or error}") from error
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a launcher that still runs, and what it started: by asking, then by force."""
    for number, patience in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, None)):
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue


def has_rows(path: Path) -> bool:
    """Whether a file has results."""
    try:
        return not load(path).rows.empty
    except OmbError:
        return False


def rows_of(turns: Turns, name: str, folder: Path, number: int) -> pd.DataFrame:
    """The rows of one program's run in the round of that number.

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
    """A program in a sentence."""
    if name == turns.native:
        return turns.binary.name
    return f"omb-py {turns.benchmark}" + ("" if name == OURS else f" --binding {name}")


SINGLETONS = (
    ": native OMB, mpi4py and the launcher must belong to the same MPI library; name its launcher "
    "with --launcher"
)


def advice(said: str) -> str:
    """What to do about what a program said, where that is known."""
    return SINGLETONS if ALONE.search(said) else ""


def last_words(*files: Path) -> str:
    """The last line of the first file that has a telling one, in quotes after a colon.

    Launchers add that a process failed, which does not tell why; such lines count where there are
    no others, and of those the first, which advice follows.
    """
    for file in files:
        text = file.read_text(errors="replace")
        for kept, place in ((LAUNCHERS.sub("", text), -1), (text, 0)):
            telling = [line.strip() for line in kept.splitlines() if WORDS.search(line)]
            named = [line for line in telling if FAULT.search(line)]
            if telling:
                return f": {(named or telling)[place]!r}"
    return ""
