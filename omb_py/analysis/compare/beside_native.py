"""Native OMB and omb-py by turns on the same machine, so that a slow minute falls on both."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from omb_py.analysis.compare.side_by_side import compare
from omb_py.analysis.table import load
from omb_py.benchmarks import find_benchmark
from omb_py.core.errors import OmbError, UsageError

GRACE_SECONDS = 5.0
"""What a launcher that is told to end gets before it is killed."""

OURS = "omb-py"
"""What our program is called that passes through no binding."""

ALONE = re.compile(r"(requires|needs?|must|runs on|at least|exactly)\b.*\b(process|ranks)", re.I)
"""What a benchmark says of a job of one process."""

LAUNCHERS = re.compile(r"^-{20,}\n.*?^-{20,}$|^(?:=|srun:|slurmstepd:|\[mpiexec@).*?$", re.M | re.S)
"""What Open MPI's, MPICH's and Slurm's launchers add to what a program said."""

WORDS = re.compile(r"[A-Za-z]{2,}.*[A-Za-z]{2,}")
FAULT = re.compile(r"error|omb-py:|fail|cannot", re.I)
"""Lines with words, and those of them that tell what went wrong."""


@dataclass(frozen=True)
class Turns:
    """What to run: ``binary`` and omb-py's benchmark through each binding, ``rounds`` times.

    ``options`` are given to both, ``launcher`` is a command line without its number of ranks,
    ``timeout`` the seconds that a run may take, ``mpi_type`` the element type of ours.
    """

    binary: Path
    benchmark: str
    options: tuple[str, ...] = ()
    bindings: tuple[str, ...] = ("native",)
    ranks: int = 2
    rounds: int = 5
    launcher: tuple[str, ...] = ("mpiexec",)
    timeout: float = 600.0
    mpi_type: str | None = None

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
        return {self.native: (str(self.binary), *self.options)} | {
            binding: (*ours, "--binding", binding, *self.options, *typed)
            for binding in self.bindings
        }


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


def measure(turns: Turns, folder: Path, say: Callable[[str], None]) -> dict[str, pd.DataFrame]:
    """Run all by turns and return the rows of each, native OMB's first.

    The order is reversed every second round. ``folder`` keeps what each run wrote: its standard
    output and error, and omb-py's rows. Raises `OmbError` at the first run that fails or measures
    nothing, and after the first round if the two measure what cannot be compared.
    """
    programs = turns.programs()
    for number in range(1, turns.rounds + 1):
        order = list(programs) if number % 2 else list(reversed(programs))
        for name in order:
            say(f"round {number} of {turns.rounds}: {name}")
            run(turns, name, programs[name], folder, number)
            if number == 1 and name == turns.native:
                turns = add_type(turns, folder)
                programs = turns.programs()
        if number == 1:
            first = [rows_of(turns, name, folder, rounds=1) for name in programs]
            compare(*first, names=list(programs))
    return {name: rows_of(turns, name, folder, turns.rounds) for name in programs}


def run(turns: Turns, name: str, program: tuple[str, ...], folder: Path, number: int) -> None:
    """One run of one program, in the round of that number.

    Raises `OmbError` when it fails.
    """
    written = result_file(turns, name, folder, number)
    out, err = written.with_suffix(".txt"), written.with_suffix(".stderr")
    rows = [] if written == out else ["--quiet", "--output", str(written)]
    command = [*turns.launcher, "-n", str(turns.ranks), *program, *rows]
    code = execute(command, out, err, turns.timeout)
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
    asked = any(word.startswith(("-T", "--type")) for word in turns.options)
    if asked or not find_benchmark(turns.benchmark).reduces:
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


def rows_of(turns: Turns, name: str, folder: Path, rounds: int) -> pd.DataFrame:
    """The rows of one program's runs in so many rounds.

    Raises `OmbError` when they are of another benchmark, or each process ran by itself.
    """
    files = [result_file(turns, name, folder, number) for number in range(1, rounds + 1)]
    known: dict[str, object] = {"ranks": turns.ranks}
    if turns.mpi_type is not None:
        known |= {"mpi_type": turns.mpi_type.upper()}
    rows = load(files, known if name == turns.native else {}).rows.assign(source=None)
    benchmarks = sorted(set(rows["benchmark"].dropna()) - {turns.benchmark})
    if benchmarks:
        raise OmbError(f"{title(turns, name)} measured {benchmarks[0]}, not {turns.benchmark}")
    columns = ["file", "part", "bytes", "mpi_type", "window"]
    if bool((rows["ranks"] != turns.ranks).any() or rows.duplicated(columns).any()):
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
    no others.
    """
    for file in files:
        text = file.read_text(errors="replace")
        for kept in (LAUNCHERS.sub("", text), text):
            telling = [line.strip() for line in kept.splitlines() if WORDS.search(line)]
            named = [line for line in telling if FAULT.search(line)]
            if telling:
                return f": {(named or telling)[-1]!r}"
    return ""
