"""The points of a sweep: each is one start of a launcher, for one benchmark at all its sizes."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import islice, product, starmap
from typing import NamedTuple

from omb_py.algorithms import DEFAULT, MODULES, function_of, without_segment
from omb_py.benchmarks import Benchmark, Ranks
from omb_py.buffers import accelerators
from omb_py.core.errors import UsageError
from omb_py.core.text.words import count
from omb_py.measure.suite import FAR, NEAR, odd_ranks
from omb_py.options.table import OF_A_LAUNCH
from omb_py.sweeps.config import EVERYTHING, Experiment, Sweep, words_of
from omb_py.sweeps.launchers import LAUNCHERS
from omb_py.sweeps.machine import Machine
from omb_py.sweeps.point_options import Setting, check, combinations, planned_sizes
from omb_py.sweeps.python import NOT_STARTED, in_python
from omb_py.sweeps.targets import APPLICATION, families, parse_target, target

DATA = "data"
"""The file of benchmarks of files, in the folder where the ranks run."""

MOST_TOGETHER = 100
"""Points of one launch: each takes some 200 of the 130,000 bytes that a command line may have."""

PAIRS = (NEAR, FAR)
"""The parts of a launch that are two ranks."""

ODD = "odd"
"""The part of a launch that leaves out the last of an even number of ranks."""

UNSAFE = re.compile(r"[^A-Za-z0-9.+=-]+")


@dataclass(frozen=True)
class SweepPoint:
    """One point of a sweep: the measurement of one start of the launcher.

    ``sizes`` are the message sizes in bytes of the rows that are planned; empty for a benchmark
    without messages, which has one row, or one for each part of a start or a failure. ``settings``
    are options beyond the axes, ``environment`` variables of the ranks, ``variant`` names those
    among them that the sweep varies. ``part`` is the word for the ranks that measure, empty for
    all. ``launch`` counts from 1. ``library`` is a table of the machine, empty for the library that
    is there.
    """

    benchmark: str
    buffer: str
    binding: str
    nodes: int
    ranks_per_node: int
    sizes: tuple[int, ...]
    settings: tuple[Setting, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    library_algorithm: str | None = None
    variant: str | None = None
    part: str = ""
    launch: int = 1
    library: str = ""

    @property
    def launched(self) -> int:
        """Number of ranks of the launch."""
        return self.nodes * self.ranks_per_node

    @property
    def place(self) -> str:
        """The nodes and ranks of the launch, and its library where there are several."""
        of_library = f" with {self.library}" if self.library else ""
        return f"{count(self.nodes, 'node')} x {count(self.ranks_per_node, 'rank')}{of_library}"

    @property
    def ranks(self) -> int:
        """Number of ranks that measure."""
        if self.part in PAIRS:
            return min(2, self.launched)
        return odd_ranks(self.launched) if self.part == ODD else self.launched

    @property
    def rows(self) -> int:
        """Number of rows: one for each message size."""
        return max(1, len(self.sizes))

    @property
    def loses_ranks(self) -> bool:
        """True if ranks fail while the job goes on."""
        return target(self.benchmark).recovery is not None

    @property
    def is_application(self) -> bool:
        """True if the point measures an application rather than a benchmark."""
        return target(self.benchmark).family == APPLICATION

    @property
    def shares_launch(self) -> bool:
        """True if other points can be measured in the same launch.

        False if the benchmark needs its own launch, if a variable that MPI reads at its start names
        an algorithm, for an application, and for points that write samples.
        """
        own_samples = any(one.name == "samples" for one in self.settings)
        own_launch = self.is_application or self.library_algorithm is not None or own_samples
        return target(self.benchmark).shares_launch and not own_launch

    @property
    def of_launch(self) -> tuple[Setting, ...]:
        """The settings that all points of a launch have to share."""
        return tuple(one for one in self.settings if f"--{one.name}" in OF_A_LAUNCH)

    @cached_property
    def name(self) -> str:
        """A name for files: readable, and different for each point of any sweep.

        Message sizes are not in it, so a sweep may get more of them and measure only those.
        """
        words = [self.benchmark, self.buffer, self.binding, f"{self.nodes}x{self.ranks_per_node}"]
        words += [word for word in (self.part, self.library_algorithm, self.variant) if word]
        known = [getattr(self, name) for name in IDENTITY]
        known += [self.part] if self.part else []
        known += [{"library": self.library}] if self.library else []
        text = json.dumps(known)
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        readable = UNSAFE.sub("_", "-".join(words))[:80].strip(".-_")
        return f"{readable}-r{self.launch}-{digest}"

    def arguments(self, sizes: tuple[int, ...]) -> list[str]:
        """Return the words after ``omb-py`` that measure ``sizes`` of this point."""
        words = [self.benchmark, "--buffer", self.buffer]
        if target(self.benchmark).planned:
            words += ["--binding", self.binding]
        if self.library_algorithm is not None:
            words += ["--coll-algorithm", self.library_algorithm]
        if self.variant is not None:
            words.append(f"--label={self.variant}")
        if "file" in target(self.benchmark).options:
            words.append(f"--file={DATA}")
        words += [word for setting in self.settings for word in setting.words()]
        if sizes and selectable(self.benchmark):
            words += ["--sizes", ",".join(str(size) for size in sizes)]
        return words

    def describe(self) -> str:
        """Return the point in a few words, for people."""
        place = f"{count(self.launched, 'rank')} on {count(self.nodes, 'node')}"
        place = f"{self.ranks} of {place} ({self.part})" if self.part else place
        words = [self.benchmark, self.library_algorithm, self.buffer, self.binding, place]
        text = " ".join(word for word in words if word)
        again = f" (launch {self.launch})" if self.launch > 1 else ""
        return f"{text}{f', {self.variant}' if self.variant else ''}{again}"


IDENTITY = (
    "benchmark",
    "buffer",
    "binding",
    "nodes",
    "ranks_per_node",
    "settings",
    "environment",
    "library_algorithm",
    "launch",
)


@dataclass(frozen=True)
class LeftOut:
    """Points left out of a plan, or with fewer sizes than their experiment has.

    ``what`` is ``points``, or ``sizes`` of ``number`` points.
    """

    reason: str
    what: str
    number: int
    benchmarks: tuple[str, ...]
    nodes: tuple[int, ...]

    def describe(self) -> str:
        """Return one line: how many, which benchmarks on which numbers of nodes, and why."""
        what = "" if self.what == "points" else f"{self.what} of "
        *most, last = map(str, sorted(self.nodes))
        nodes = f"{', '.join(most)} and {last} nodes" if most else count(int(last), "node")
        where = f"{', '.join(in_families(self.benchmarks))} on {nodes}"
        return f"left out {what}{count(self.number, 'point')} ({where}): {self.reason}"


@dataclass(frozen=True)
class SweepPlan:
    """The points to measure, and the parts left out with reasons."""

    points: tuple[SweepPoint, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def rows(self) -> int:
        """The number of planned rows."""
        return sum(point.rows for point in self.points)

    @property
    def node_counts(self) -> tuple[int, ...]:
        """The numbers of nodes that points run on, ascending."""
        return tuple(sorted({point.nodes for point in self.points}))

    def on(self, nodes: int | None) -> SweepPlan:
        """Return the part on ``nodes`` nodes; all of it for None."""
        chosen = [point for point in self.points if nodes in (None, point.nodes)]
        return replace(self, points=tuple(chosen))


class NotHereError(Exception):
    """A point that is impossible on this machine; the text gives the reason."""


class Combination(NamedTuple):
    """A value of each axis of an experiment; ``place`` is a number of nodes and one of ranks."""

    benchmark: Benchmark
    buffer: str
    binding: str
    place: tuple[int, int]
    part: str
    algorithm: str | None
    environment: tuple[Setting, ...]
    settings: tuple[Setting, ...]
    library: str

    def on(self, machine: Machine, experiment: Experiment) -> SweepPoint:
        """Return its point, without sizes; raises `NotHereError` if the machine cannot have it."""
        nodes, ranks = self.place
        axes = experiment.environment
        words = [self.library] if self.library else []
        words += [f"{one.name}={one.value}" for one in self.environment if len(axes[one.name]) > 1]
        return SweepPoint(
            benchmark=self.benchmark.name,
            buffer=self.buffer,
            binding=self.binding if self.benchmark.planned else "-",
            settings=(*self.settings, *devices(self.buffer, machine)),
            nodes=nodes,
            ranks_per_node=share_out(ranks, nodes, machine, experiment.oversubscribe),
            sizes=(),
            environment=tuple((one.name, str(one.value)) for one in self.environment),
            library_algorithm=None if self.algorithm == DEFAULT else self.algorithm,
            variant=" ".join(words) or None,
            part=part_of(self.part, ranks),
            library=self.library,
        )


def combined(experiment: Experiment, machine: Machine) -> Iterator[Combination]:
    """Yield every combination of an experiment's axes, whether the machine can have it or not."""
    axes = product(
        select_benchmarks(experiment),
        experiment.buffers,
        experiment.bindings,
        places(experiment, machine),
        experiment.part,
        experiment.coll_algorithms or (None,),
        combinations(experiment.environment),
        combinations({name.replace("_", "-"): axis for name, axis in experiment.options.items()}),
        libraries_of(experiment, machine),
    )
    yield from starmap(Combination, axes)


def libraries_of(experiment: Experiment, machine: Machine) -> tuple[str, ...]:
    """Return the tables of an experiment's libraries; raise `UsageError` for one that is unknown.

    An empty name stands for the library that is there.
    """
    asked, there = experiment.libraries or ("",), tuple(machine.library)
    names = tuple(
        dict.fromkeys(one for name in asked for one in (there if name == EVERYTHING else [name]))
    )
    unknown = [name for name in names if name and name not in there]
    if unknown or not names:
        has = f"it has {', '.join(there)}" if there else "it has none"
        what = f"[library.{unknown[0]}]" if unknown else "[library.NAME]"
        raise UsageError(
            f"machine {machine.name} has no table {what} ({has}): omb-py info --libraries writes "
            "those of the libraries that are here"
        )
    return names


def plan(sweep: Sweep, machine: Machine) -> SweepPlan:
    """Return the points of ``sweep`` that ``machine`` can measure; each round measures all.

    Raises `UsageError` when an option is not one of a benchmark, or no point is left.
    """
    found = possible(sweep, machine)
    if not found.points:
        reasons = "; ".join(one.reason for one in found.left_out) or "it has no experiment"
        raise UsageError(f"machine {machine.name} can measure nothing of {sweep.name}: {reasons}")
    return found


def possible(sweep: Sweep, machine: Machine) -> SweepPlan:
    """Return `plan`, which may be without a point."""
    found: dict[str, SweepPoint] = {}
    gone: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for index, experiment in enumerate(sweep.experiments):
        for one in combined(experiment, machine):
            case = one.benchmark.name, one.place[0]
            try:
                point, why = sized(one.on(machine, experiment), one.benchmark, experiment, machine)
            except NotHereError as reason:
                gone.setdefault((str(reason), "points"), []).append(case)
            except UsageError as error:
                raise UsageError(f"experiment {index} of sweep {sweep.name}: {error}") from error
            else:
                for unfit in why:
                    gone.setdefault((unfit, "sizes"), []).append(case)
                known = found.get(point.name, point)
                sizes = tuple(dict.fromkeys((*known.sizes, *point.sizes)))
                found[point.name] = replace(point, sizes=sizes)
    rounds = range(1, sweep.launches + 1)
    points = tuple(replace(point, launch=number) for number in rounds for point in found.values())
    return SweepPlan(
        points,
        tuple(
            LeftOut(
                reason=reason,
                what=what,
                number=len(cases),
                benchmarks=tuple(dict.fromkeys(name for name, _ in cases)),
                nodes=tuple(dict.fromkeys(nodes for _, nodes in cases)),
            )
            for (reason, what), cases in gone.items()
        ),
    )


def in_order(points: Iterable[SweepPoint], sweep: Sweep) -> list[SweepPoint]:
    """Return points in the order of measuring: round after round of launches.

    In a shuffled round they come by a digest of the sweep's seed and their names. So a slow minute
    or a drift falls on other points in each round, and the order of any points is the same whenever
    it is asked for: after an interruption, in a job for one number of nodes, in a sweep that grew.
    """

    def place(point: SweepPoint) -> tuple[int, bytes]:
        return point.launch, hashlib.sha256(f"{sweep.seed} {point.name}".encode()).digest()

    return sorted(points, key=place) if sweep.order == "shuffled" else list(points)


def split(
    points: Iterable[SweepPoint], nodes: int | None
) -> tuple[list[SweepPoint], list[SweepPoint]]:
    """Return the points that fit on ``nodes`` nodes, and those that need more; None fits all."""
    fitting: list[SweepPoint] = []
    larger: list[SweepPoint] = []
    for point in points:
        (fitting if nodes is None or point.nodes <= nodes else larger).append(point)
    return fitting, larger


def launched_together(points: Sequence[SweepPoint]) -> tuple[SweepPoint, ...]:
    """Return the first of ``points`` and those of its round that share its launch."""
    first = points[0]
    if not first.shares_launch:
        return (first,)

    def key(point: SweepPoint) -> tuple[object, ...]:
        place = (point.launch, point.nodes, point.ranks_per_node, point.part, point.library)
        return (*place, point.buffer, point.environment, point.of_launch)

    alike = (one for one in points if one.shares_launch and key(one) == key(first))
    return tuple(islice(alike, MOST_TOGETHER))


def in_families(names: Iterable[str]) -> list[str]:
    """Return benchmarks in few words: a family by its name if all of it is there."""
    left = dict.fromkeys(names)
    words = []
    for family, of_family in families().items():
        own = {found.name for found in of_family}
        if len(own) > 1 and own <= left.keys():
            words.append(f"{family} benchmarks" if family != APPLICATION else "applications")
            left = {name: None for name in left if name not in own}
    return [*words, *left]


def select_benchmarks(experiment: Experiment) -> Iterator[Benchmark]:
    """Yield the benchmarks of an experiment, families and ``all`` written out."""
    without = {found.name for name in experiment.without for found in members(name)}
    names = (found.name for name in experiment.benchmarks for found in members(name))
    yield from (target(name) for name in dict.fromkeys(names) if name not in without)


@cache
def members(name: str) -> tuple[Benchmark, ...]:
    """Return the benchmarks that a name stands for."""
    known = families()
    if name == EVERYTHING:
        return tuple(
            found
            for family, found_in in known.items()
            if family != APPLICATION
            for found in found_in
        )
    return known[name] if name in known else (target(name),)


def places(experiment: Experiment, machine: Machine) -> Iterator[tuple[int, int]]:
    """Yield numbers of nodes and of all ranks; `share_out` finds those that do not fit the
    machine."""
    for nodes in dict.fromkeys(machine.max_nodes if n == "all" else n for n in experiment.nodes):
        yield from ((nodes, ranks) for ranks in experiment.ranks or ())
        for per_node in experiment.ranks_per_node or ():
            have = {"gpus": machine.gpus, "cores": machine.cores, "nics": machine.nics_per_node}
            yield nodes, nodes * (have[per_node] if isinstance(per_node, str) else per_node)


def part_of(word: str, ranks: int) -> str:
    """Return the word for a part of ``ranks`` ranks; empty where the part has all of them."""
    whole = {NEAR: ranks == 2, FAR: ranks == 2, ODD: ranks % 2 == 1}
    return "" if whole.get(word, True) else word


def share_out(ranks: int, nodes: int, machine: Machine, oversubscribe: bool = True) -> int:
    """Return the ranks of each node; raises `NotHereError` if the machine cannot have them.

    ``oversubscribe`` is False if no node may have more ranks than cores, whatever the machine
    allows.
    """
    if not machine.min_nodes <= nodes <= machine.max_nodes:
        raise NotHereError(machine.describe_nodes())
    if ranks < 1:
        raise NotHereError(f"machine {machine.name} has no GPUs")
    if ranks % nodes:
        raise NotHereError(
            f"{count(ranks, 'rank')} cannot be shared out evenly over {count(nodes, 'node')}"
        )
    if ranks // nodes > machine.cores and not (machine.oversubscribe and oversubscribe):
        allow = " (oversubscribe = true allows it)" if oversubscribe else ""
        raise NotHereError(
            f"{count(ranks // nodes, 'rank')} a node wanted, a node of {machine.name} has "
            f"{count(machine.cores, 'core')}{allow}"
        )
    return ranks // nodes


def devices(buffer: str, machine: Machine) -> tuple[Setting, ...]:
    """Return the order of a node's devices for its ranks, if the buffer is on a device.

    Raises `NotHereError` if the machine has no device that the buffer can use.
    """
    kinds = accelerators(buffer)
    if kinds and (not machine.gpus or machine.accelerator not in kinds):
        has = f'accelerator = "{machine.accelerator}"' if machine.gpus else "gpus_per_node = 0"
        names = " or ".join(map(str.upper, kinds))
        raise NotHereError(f"machine {machine.name} has no {names} devices ({has})")
    if not machine.devices or not kinds:
        return ()
    return (Setting("device", ",".join(str(number) for number in machine.devices)),)


LOAD = """\
import sys
from omb_py.bindings import BINDINGS
from omb_py.core.errors import MissingPackageError
try:
    print(BINDINGS.load(sys.argv[1]).needs_mpi)
except MissingPackageError:
    print(False)
"""
"""A program that prints whether a binding sends by MPI; a binding without its package reports that
when it is measured."""


@cache
def needs_mpi(binding: str) -> bool:
    """Return whether a binding needs MPI to send or to load; it is loaded in another process."""
    return in_python(LOAD, NOT_STARTED, binding).stdout.strip() != "False"


def check_launcher(point: SweepPoint, benchmark: Benchmark, machine: Machine) -> None:
    """Raise `NotHereError` if a point needs MPI and the launcher starts ranks without it."""
    launcher = LAUNCHERS.get(machine.launcher)
    if launcher is not None and point.loses_ranks and not launcher.outliving_ranks:
        raise NotHereError(f"jobs of launcher {machine.launcher} end when ranks fail")
    if launcher is None or launcher.starts_mpi:
        return
    mpi = f"needs MPI, without which launcher {machine.launcher} starts ranks"
    if benchmark.family == APPLICATION or not benchmark.planned:
        raise NotHereError(f"it {mpi}")
    if needs_mpi(point.binding):
        raise NotHereError(f"binding {point.binding} {mpi}")


def selectable(benchmark: str) -> bool:
    """Return whether the benchmark has an option for the sizes to measure."""
    found = target(benchmark)
    return found.sized and found.elements is None


def sized(
    point: SweepPoint, benchmark: Benchmark, experiment: Experiment, machine: Machine
) -> tuple[SweepPoint, tuple[str, ...]]:
    """Return the point with its message sizes, and why some requested sizes are left out.

    Raises `NotHereError` when it cannot be on this machine, `UsageError` for wrong options.
    """
    check_launcher(point, benchmark, machine)
    if not benchmark.ranks.allow(point.ranks):
        raise NotHereError(f"its benchmark runs on {benchmark.ranks.value}")
    if point.part in PAIRS and benchmark.ranks is not Ranks.TWO:
        raise NotHereError(f"part {point.part} is of benchmarks that run on {Ranks.TWO.value}")
    if point.part and not point.shares_launch:
        raise NotHereError(f"part {point.part} needs a benchmark that can share a launch")
    word, function = point.library_algorithm, function_of(benchmark.name)
    known = (words_of(name, function) for name in MODULES)
    if word is not None and not any(without_segment(word) in words for words in known):
        raise NotHereError(f"no library is known to have algorithm {word} for {benchmark.name}")
    check(point.settings, benchmark.name)
    try:
        parse_target(point.benchmark, point.arguments(())[1:])
    except UsageError as error:
        raise UsageError(f"{benchmark.name}: {error}") from error
    if not benchmark.sized:
        return point, ()
    try:
        sizes, why = sizes_of(benchmark.name, point.settings, experiment.sizes, point.ranks)
    except UsageError as error:
        raise NotHereError(str(error)) from error
    return replace(point, sizes=sizes), why


@lru_cache(10_000)
def sizes_of(
    benchmark: str, settings: tuple[Setting, ...], asked: str | None, ranks: int
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the bytes of the messages of points, and words for sizes that are left out.

    ``asked`` is the key sizes, None for the benchmark's own. They depend on neither buffer nor
    binding, so that many points share an answer. Raises `UsageError` as `planned_sizes` does.
    """
    found = target(benchmark)
    words = [word for setting in settings for word in setting.words()]
    words += [f"--file={DATA}"] if "file" in found.options else []
    if asked is not None and selectable(benchmark):
        words.append(f"--{'message-size' if ':' in asked else 'sizes'}={asked}")
    return planned_sizes(found, parse_target(benchmark, words), asked, ranks)


def has_all_parts(point: SweepPoint, rows: Iterable[Mapping[str, str]]) -> bool:
    """Return whether some run of a benchmark whose rows are parts has written all of its parts."""
    benchmark = target(point.benchmark)
    options = parse_target(point.benchmark, point.arguments(())[1:])
    needed = Counter(benchmark.part_names(options) * options.failures)
    runs: dict[str | None, Counter[str | None]] = {}
    for row in rows:
        runs.setdefault(row.get("run"), Counter())[row.get("part")] += 1
    return any(parts >= needed for parts in runs.values())
