"""What a library's rules are made of and proved by: two sweeps, as `omb_py.analysis.tuning` reads.

The first measures each algorithm of the library, the library as it is, and the library with files
of rules that have none. The second measures the library as it is, with the rules in force, and each
algorithm of a rule alone. Launches of a sweep take turns, in another order in each round.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omb_py.algorithms import Algorithm, AlgorithmLibrary, library
from omb_py.algorithms.patterns import CollectiveShape
from omb_py.algorithms.rules import LibraryBuild, Rule, RulesFormat, rules_format
from omb_py.analysis.table import load
from omb_py.analysis.tuning import KEPT, OWN_WORD, RULES, Place, Values, values_of
from omb_py.benchmarks.algorithms import TABLE as OWN
from omb_py.benchmarks.algorithms import words as own_words
from omb_py.core.errors import LeftOutError, OmbError, UsageError
from omb_py.sweeps.config import Experiment, Sweep
from omb_py.sweeps.files import write_atomically
from omb_py.sweeps.folder import Folder
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.point_options import Setting
from omb_py.sweeps.points import LeftOut, SweepPlan, SweepPoint, plan
from omb_py.sweeps.python import NOT_STARTED, in_python
from omb_py.sweeps.run import run_sweep
from omb_py.sweeps.sweep_job import SweepJob
from omb_py.sweeps.targets import target

NCCL = "NCCL"
"""The library of binding nccl, which starts on devices alone."""

FIRST, PROOF = "algorithms", "proof"
"""The two sweeps, and their folders."""

REDUCED = 4
"""Bytes of an element that the benchmarks of reductions add up (MPI_INT)."""

BUILD = """\
import json
from mpi4py import MPI
from omb_py.core.mpi import abi
name, version = MPI.get_vendor()
print(json.dumps([name, version, abi.library_path()]))
"""
"""A program that prints the MPI library, its version and the file of its code."""

IN_FORCE = """\
from mpi4py import MPI
from omb_py.core.mpi.tool_interface import ControlVariable
if MPI.get_vendor()[0] == "Open MPI":
    name = "coll_tuned_dynamic_rules_filename"
    print(f"{name}: {ControlVariable(name).read_text()}")
"""
"""A program that starts the library, and prints the files of rules that Open MPI says it has."""

SUMMARY = "MPIR_CVAR_DEBUG_SUMMARY"
"""The variable with which MPICH prints, among others, the files of rules that it has read."""


@dataclass(frozen=True)
class Tuning:
    """What is tuned where: functions, the sweep's choices, and the library that is there.

    ``root`` is the folder of the sweeps and of the files. ``experiments`` have the sizes and the
    numbers of ranks of each function, ``segments`` are further sizes in bytes of the segments of
    algorithms that cut messages. With ``own``, omb-py's own algorithms are measured, too.
    """

    root: Path
    machine: Machine
    machine_word: str
    experiments: tuple[Experiment, ...]
    launches: int
    seed: int
    build: LibraryBuild
    segments: tuple[int, ...] = ()
    own: bool = False

    @property
    def format(self) -> RulesFormat:
        """The format of the library's rules."""
        return rules_format(self.build.name)

    @property
    def library(self) -> AlgorithmLibrary:
        """The library's algorithms."""
        return library(self.build.name)

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions, by MPI's names in lower case."""
        names = (name for one in self.experiments for name in one.benchmarks)
        return tuple(dict.fromkeys(names))

    @property
    def present(self) -> Mapping[str, str]:
        """The variables of ranks without this program's choices."""
        return {**os.environ, **self.machine.environment}

    def words(self, function: str) -> list[str]:
        """Return the words of a function's algorithms, with segments of other sizes."""
        found = list(self.library.words(function))
        if self.build.name == NCCL:  # its rules need a protocol, where there are several
            found = [word for word in found if f"{word}_simple" not in found]
        for word in self.library.words(function):
            if self.library.algorithm(function, word).with_segment is not None:
                found += [f"{word}:{size}" for size in self.segments]
        return found

    def variables(self, function: str, algorithm: Algorithm) -> dict[str, str]:
        """Return the variables that force an algorithm, and take back those of a file of rules."""
        rivals = {name: "" for name in self.present if self.library.rivals.fullmatch(name)}
        return rivals | self.library.variables(function, algorithm)

    def environment(self, files: Sequence[Path]) -> dict[str, str]:
        """Return the variables that put files of rules in force here, whatever the user's are."""
        taken_back = self.format.forced(self.functions, self.present)
        return taken_back | self.format.environment(files)


def library_here(machine: Machine, binding: str) -> LibraryBuild:
    """Return the library that a binding calls: NCCL, or this Python's MPI, in another process.

    Raises `OmbError` if there is none.
    """
    if binding == "nccl":
        return LibraryBuild(NCCL, ())
    done = in_python(BUILD, {**machine.environment, **NOT_STARTED})
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or ["mpi4py said nothing"]
        raise OmbError(f"there is no MPI library whose algorithms could be measured: {why[0]}")
    name, version, file = json.loads(done.stdout.splitlines()[-1])
    return LibraryBuild(name, tuple(version), Path(file) if file else None)


def words_of_library(tuning: Tuning, files: Sequence[Path]) -> list[str]:
    """Return what the library itself says of files of rules that it was given, as it starts.

    Raises `OmbError` if it does not start with them.
    """
    if tuning.build.name == NCCL:
        return []  # it starts on devices alone
    variables = tuning.environment(files) | {SUMMARY: "1"}
    done = in_python(IN_FORCE, {**tuning.machine.environment, **variables})
    lines = done.stdout.splitlines() + done.stderr.splitlines()
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()] or ["no word"]
        named = " and ".join(map(str, files))
        words = " … ".join(dict.fromkeys((said[0], said[-1])))
        raise OmbError(f"{tuning.build.text} does not start with {named}: {words}")
    return list(dict.fromkeys(line for line in lines if any(str(file) in line for file in files)))


def check_functions(tuning: Tuning) -> None:
    """Raise `UsageError` for a benchmark whose algorithm the library's rules cannot choose."""
    for function in tuning.functions:
        words = tuning.library.words(function)
        able = [name for name in tuning.library.table if name in tuning.format.sized]
        if function not in tuning.format.sized or not words:
            why = (
                "has no algorithms to choose from"
                if not words
                else "has one algorithm, or rules that do not see the size of its messages"
            )
            raise UsageError(
                f"{function} {why} in {tuning.build.text}: tune {', '.join(sorted(able))}"
            )


def files_of(tuning: Tuning, texts: Sequence[str], folder: Path) -> list[Path]:
    """Write the texts of the files of rules into a folder; raise `OmbError` if that fails."""
    paths = [(folder / name).resolve() for name in tuning.format.files]
    for path, text in zip(paths, texts, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    return paths


def sweep_of(tuning: Tuning, name: str) -> Sweep:
    """Return the configuration of one of the two sweeps."""
    return Sweep(
        name=name,
        description=f"omb-py tune: {name} of {tuning.build.text}",
        launches=tuning.launches,
        seed=tuning.seed,
        experiments=tuning.experiments,
    )


def default_points(tuning: Tuning, name: str) -> tuple[list[SweepPoint], tuple[LeftOut, ...]]:
    """Return the points of the library as it is; raise `UsageError` if there are none."""
    found = plan(sweep_of(tuning, name), tuning.machine)
    return list(found.points), found.left_out


def with_variables(point: SweepPoint, variables: Mapping[str, str], **other: Any) -> SweepPoint:
    """Return a point with variables of its ranks, and other fields."""
    environment = {**dict(point.environment), **variables}
    return replace(point, environment=tuple(sorted(environment.items())), **other)


def forced(tuning: Tuning, point: SweepPoint, word: str) -> Iterator[SweepPoint]:
    """Yield a point with an algorithm that the library is made to use, at sizes that it allows."""
    benchmark = target(point.benchmark)
    algorithm = tuning.library.algorithm(benchmark.name, word)
    itemsize = REDUCED if benchmark.reduces else 1
    sizes = tuple(
        size
        for size in point.sizes
        if algorithm.refusal(CollectiveShape(point.ranks, size, itemsize)) is None
    )
    without_size = not point.sizes and not algorithm.refusal(CollectiveShape(point.ranks, 0))
    if sizes or without_size:
        variables = tuning.variables(benchmark.name, algorithm)
        yield with_variables(point, variables, sizes=sizes, library_algorithm=word)


def of_our_own(point: SweepPoint, word: str) -> SweepPoint:
    """Return a point with an algorithm of omb-py's own, made of point-to-point messages."""
    setting = Setting("p2p-algorithm", word)
    return replace(point, variant=f"{OWN_WORD}{word}", settings=(*point.settings, setting))


def first_sweep(tuning: Tuning) -> SweepJob:
    """Return the sweep of all algorithms, writing the files without rules that it needs."""
    points, left_out = default_points(tuning, FIRST)
    about = ["no rules: the library chooses everywhere"]
    texts = tuning.format.write((), about, tuning.build)
    variables = tuning.environment(files_of(tuning, texts, tuning.root / KEPT))
    found = [*points, *(with_variables(point, variables, variant=KEPT) for point in points)]
    for point in points:
        for word in tuning.words(point.benchmark):
            found += forced(tuning, point, word)
        if tuning.own and point.benchmark in OWN:
            found += [of_our_own(point, word) for word in own_words(point.benchmark)]
    return job_of(tuning, FIRST, FIRST, found, left_out)


def proof_sweep(
    tuning: Tuning, files: Sequence[Path], words: Mapping[Place, str], name: str
) -> SweepJob:
    """Return the sweep that measures files of rules; ``words`` are their algorithms by point."""
    points, left_out = default_points(tuning, PROOF)
    variables = tuning.environment(files)
    found = [*points, *(with_variables(point, variables, variant=RULES) for point in points)]
    for point in points:
        sizes: dict[str, list[int]] = {}
        for size in point.sizes or (0,):
            word = words.get(Place(point.benchmark, point.ranks, size), KEPT)
            if word != KEPT:
                sizes.setdefault(word, []).append(size)
        for word, own in sizes.items():
            part = replace(point, sizes=tuple(own) if point.sizes else ())
            found += forced(tuning, part, word)
    return job_of(tuning, PROOF, name, found, left_out)


def job_of(
    tuning: Tuning,
    name: str,
    folder: str,
    points: Iterable[SweepPoint],
    left_out: tuple[LeftOut, ...],
) -> SweepJob:
    """Return a sweep of these points in its own folder."""
    return SweepJob(
        sweep_of(tuning, name),
        tuning.machine,
        name,
        tuning.machine_word,
        SweepPlan(tuple(points), left_out),
        folder=tuning.root / folder,
    )


def measure(job: SweepJob, deadline: float | None) -> Values:
    """Measure the missing rows of a sweep, and return all; its progress goes to standard error.

    Raises `OmbError` with the sweep's exit code if something could not be measured, but for
    algorithms that the library cannot use at a size.
    """
    with redirect_stdout(sys.stderr):
        # what shares a launch with others is not what a forced algorithm is, which never does
        code = run_sweep(job, deadline, launch_each=True)
    if code not in (0, LeftOutError.exit_code):
        raise SweepError(
            f"not everything was measured: mend the reasons above, and run the same command again "
            f"({job.root} has all rows so far)",
            code,
        )
    folder = Folder(job.root)
    files = [path for point in job.plan.points if (path := folder.csv(point)).exists()]
    return values_of(load(list(dict.fromkeys(files))).rows)


class SweepError(OmbError):
    """A sweep of a tuning that is not complete, with its exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def digest(texts: Iterable[str]) -> str:
    """Return a short name of the content of files."""
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:8]


def words_by(rules: Iterable[Rule], places: Iterable[Place]) -> dict[Place, str]:
    """Return the words of the rules that hold at points."""
    found = {}
    for place in places:
        for rule in rules:
            inside = rule.first <= place.size <= rule.last
            if (rule.function, rule.ranks) == place[:2] and inside:
                found[place] = rule.algorithm.word
    return found


def words_of_file(
    tuning: Tuning, texts: Sequence[str], places: Iterable[Place]
) -> dict[Place, str]:
    """Return the words of the algorithms that a file names at points, the library's own for others.

    Raises `UsageError` if the library does not read the file.
    """
    choice = tuning.format.read(texts)
    found = {}
    for place in places:
        value = choice(place.function, place.ranks, place.size)
        if value is not None:
            rows = tuning.library.table.get(place.function, ())
            found[place] = next((row.word for row in rows if row.value == value), value)
    return found


def places_of(points: Iterable[SweepPoint]) -> Iterator[Place]:
    """Yield the points that sweep points measure, each once."""
    sizes = ((one, size) for one in points for size in one.sizes or (0,))
    yield from dict.fromkeys(Place(one.benchmark, one.ranks, size) for one, size in sizes)
