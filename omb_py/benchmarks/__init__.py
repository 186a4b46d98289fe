"""WHAT is measured: the terms in which a benchmark describes itself.

A module of this folder (or an entry point of group ``omb_py.benchmarks``) defines
``BENCHMARKS``, a tuple of `Benchmark`. A benchmark turns a `Case`, one message size on one rank,
into a `Plan`: which calls one iteration makes, and what data they should move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Protocol

from omb_py.buffers import Buffer
from omb_py.core.calls import Form, Iteration, Message, Step
from omb_py.core.dataclass import dataclass, field
from omb_py.core.datatypes import CONTIGUOUS, Datatype, Layout
from omb_py.core.errors import BenchmarkError, UsageError
from omb_py.core.memory import Memory
from omb_py.core.options import Options
from omb_py.core.registry import Registry

LARGE_MESSAGE_BYTES = 8192
"""Messages longer than this use the smaller iteration counts, as in native OMB."""


class Metric(Enum):
    """The quantity of a benchmark's main column, which comparisons judge."""

    LATENCY = "latency"
    BANDWIDTH = "bandwidth"
    MESSAGE_RATE = "message rate"


class Ranks(Enum):
    """The number of ranks that a benchmark runs on, in the words of its error message."""

    ANY = "at least 1 rank"
    SEVERAL = "at least 2 ranks"
    TWO = "exactly 2 ranks"
    EVEN = "an even number of ranks"

    def allow(self, ranks: int) -> bool:
        """Return whether a job of ``ranks`` will do."""
        return {
            Ranks.ANY: True,
            Ranks.SEVERAL: ranks >= 2,
            Ranks.TWO: ranks == 2,
            Ranks.EVEN: ranks % 2 == 0,
        }[self]


class StartUp(Enum):
    """The measured part of a job's start."""

    INIT = "only MPI_Init"
    HELLO = "the start as a whole"
    PARTS = "each part of it"


class Recovery(Enum):
    """The measured part of a job whose ranks fail."""

    DETECT = "when operations report it"
    REVOKE = "MPI_Comm_revoke"
    SHRINK = "MPI_Comm_shrink"
    AGREE = "MPI_Comm_agree"
    RESPAWN = "the replacement of failed ranks"


@dataclass(frozen=True)
class Defaults:
    """Native OMB's defaults for one family: iteration counts and range of sizes in bytes."""

    iterations: int
    warmup: int
    large_iterations: int
    large_warmup: int
    smallest: int
    largest: int


@dataclass(frozen=True)
class Exposed:
    """A window, this rank's memory in it, and where each rank's begins (MPI's displacement)."""

    win: Any
    memory: Memory
    bases: tuple[int, ...]


class Resources(Protocol):
    """Makes the MPI objects that a plan's calls need; the first four methods are collective.

    A plan calls these before it allocates messages: a rank without memory for its messages would
    leave the others waiting. What they return can be given to `Call.on` or `Call.values`. All is
    taken back after the case, the graph after the run.
    """

    def graph(self, sources: tuple[int, ...], destinations: tuple[int, ...]) -> Any:
        """Return a communicator that receives from the ``sources`` and sends to the others."""

    def duplicates(self, count: int) -> list[Any]:
        """Return this many duplicates of the communicator."""

    def window(self, nbytes: int, datatype: Datatype) -> Exposed:
        """Return a window of the kind asked for, with ``nbytes`` on each rank."""

    def file(self, nbytes: int) -> tuple[Any, Memory]:
        """Return the file asked for, and this rank's part of it: all of it if it is its own."""

    def group(self, rank: int) -> Any:
        """Return an ``MPI.Group`` that contains only ``rank``."""

    def fork(self, processes: int) -> None:
        """Fork processes that sleep until the case is over."""


@dataclass(frozen=True)
class Case:
    """One message size on one rank: all that a benchmark may know.

    ``nodes`` has the node of each rank, for benchmarks that ask for it by feature ``nodes``.
    """

    rank: int
    ranks: int
    size: int
    datatype: Datatype
    window: int
    buffer: Buffer
    options: Options
    resources: Resources
    nodes: tuple[int, ...] = ()

    @property
    def elements(self) -> int:
        """Elements in a message of ``size`` bytes."""
        return self.size // self.datatype.itemsize

    @property
    def payload(self) -> int:
        """Bytes of a message that really travel: fewer than ``size`` with gaps in the layout."""
        return self.options.layout.transmitted(self.elements) * self.datatype.itemsize

    def message(
        self,
        counts: tuple[int, ...] | None = None,
        form: Form = "",
        layout: Layout | None = None,
    ) -> Message:
        """Return a message in new memory; by default one block of the size and layout measured.

        It begins at a page, or ``--offset`` bytes after one.
        """
        counts = (self.elements,) if counts is None else counts
        layout = self.options.layout if layout is None else layout
        itemsize, offset = self.datatype.itemsize, self.options.offset
        nbytes = sum(counts) * itemsize
        memory = self.buffer.allocate(nbytes + -(-offset // itemsize) * itemsize, self.datatype)
        if offset:
            memory = memory.slice(offset, nbytes)
        return Message(memory, self.datatype, counts, form, layout)

    def messages(self, count: int) -> tuple[Message, ...]:
        """Return messages of the size measured, one after another in one new memory."""
        each = (self.elements,)
        places = self.message(each * count, layout=CONTIGUOUS).blocks()
        return tuple(Message(place, self.datatype, each) for place in places)


@dataclass(frozen=True)
class Content:
    """The content of a stretch of memory, now or after a message has arrived.

    It is the data of the rank ``sources[0]``, or the sum over ``sources`` if a reduction ``added``
    them. In both cases it is each source's block ``block``, from element ``start`` on.
    """

    memory: Memory
    sources: range
    block: int = 0
    start: int = 0
    added: bool = False

    @classmethod
    def of(cls, rank: int, memory: Memory, block: int = 0, added: bool = False) -> Content:
        return cls(memory, range(rank, rank + 1), block, added=added)


@dataclass(frozen=True)
class CheckedIteration(Iteration):
    """One iteration of one rank: its calls, the data before them and the data expected after.

    ``before_check`` are steps that come before data is checked or written anew, if that takes more
    than the calls: other ranks may still reach this one's memory.
    """

    inputs: tuple[Content, ...] = ()
    outputs: tuple[Content, ...] = ()
    before_check: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Plan:
    """One rank's part at one message size.

    Iteration ``i`` is ``iterations[i % len(iterations)]``; ``timed`` is true if this rank's clock
    counts, ``payload`` is the number of bytes of a message that really travel and ``messages`` the
    number of messages that one iteration moves over the whole job. With several ``threads``,
    iteration ``i`` is made by thread ``i % threads``. ``chained`` means that a call sends what an
    earlier one received.
    """

    iterations: tuple[CheckedIteration, ...]
    payload: int
    timed: bool = True
    messages: int = 1
    threads: int = 1
    chained: bool = False


FEATURES = {
    "active_sync": "only active synchronization of windows",
    "algorithm": "algorithms of omb-py's own",
    "buffer_num": "one memory for a window's messages, or one for each",
    "bus": "nccl-tests' algorithm and bus bandwidth",
    "file": "a file that is read or written",
    "file_sync": "a sync after writing",
    "full": "minimum and maximum over the ranks",
    "in_place": "MPI_IN_PLACE",
    "layout": "gaps between elements",
    "library_algorithm": "algorithms of the MPI library",
    "node_map": "the node of each rank, for algorithms of omb-py's own",
    "nodes": "the node of each rank, as `Case.nodes`",
    "operations": "what reports a failed rank",
    "overlap": "computing while calls are under way",
    "pairs": "pairs of ranks",
    "partitions": "parts of a message",
    "per_rank": "a file for each rank",
    "placement": "where each end's messages lie",
    "print_rate": "the message rate",
    "processes": "forked processes",
    "repeated": "iterations of parts",
    "root": "the root, fixed or another in each iteration",
    "skew": "unequal blocks",
    "segment": "segments of algorithms of omb-py's own",
    "spawned": "processes that MPI_Comm_spawn starts",
    "split": "groups of ranks at the same time",
    "sync": "a barrier or a common start between iterations",
    "target_busy": "a target that computes and does not call MPI",
    "threads": "threads that send and receive",
    "topology": "neighbours",
    "vary_window": "a table over windows",
    "victims": "ranks that fail",
    "window": "messages in flight",
    "window_kind": "how a window is made",
    "window_sync": "how accesses are completed",
}
"""The words of `Benchmark.options`: the options of a benchmark that not all benchmarks have."""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark, described for the rest of the suite.

    ``title`` is its name in native OMB's banner. ``round_trips`` divides an iteration's time into
    the latency reported, given the options. ``paced`` puts a barrier between iterations. ``memory``
    gives the bytes that one process needs, given the options, a message size and the number of
    ranks. ``traffic`` gives, for options, a message size and a number of ranks, nccl-tests' size
    in bytes and the part of it that must pass the busiest rank's link. ``elements`` is the length
    of a message, if there is only one; ``parts`` must divide it. ``preset`` are defaults that
    differ from those of other benchmarks, ``heading`` lines below the banner. ``slowest`` makes the
    slowest rank's time
    that of an iteration, rather than the ranks' mean. ``start_up`` is the measured part of a job's
    start, ``recovery`` that of a job whose ranks fail: the benchmark then lacks a plan, and each
    row is a part; ``part_names`` are those that complete results have. ``native`` is false if
    native OMB lacks it. ``collective`` is true if all ranks make one call together, so that the
    slowest of them counts; ``leading_blank`` if native OMB's output begins with an empty line.
    ``options`` are words of `FEATURES`.

    Raises `BenchmarkError` for other words.
    """

    name: str
    title: str
    family: str
    plan: Callable[[Case], Plan]
    defaults: Defaults
    summary: str
    metric: Metric = Metric.LATENCY
    ranks: Ranks = Ranks.ANY
    options: frozenset[str] = field(default_factory=frozenset)
    preset: Mapping[str, Any] = field(default_factory=dict, hash=False)
    round_trips: Callable[[Options], int] = lambda options: 1
    paced: bool = True
    sized: bool = True
    reduces: bool = False
    elements: int | None = None
    memory: Callable[[Options, int, int], int] = lambda options, size, ranks: 0
    traffic: Callable[[Options, int, int], tuple[int, float]] | None = None
    smallest_elements: Callable[[int], int] = lambda ranks: 0
    parts: Callable[[Options], int] = lambda options: 1
    heading: Callable[[Options, int], tuple[str, ...]] = lambda options, ranks: ()
    value: str = "Avg Latency(us)"
    slowest: bool = False
    start_up: StartUp | None = None
    recovery: Recovery | None = None
    part_names: Callable[[Options], tuple[str, ...]] = lambda options: ()
    native: bool = True
    collective: bool = False
    leading_blank: bool = True

    def __post_init__(self) -> None:
        if unknown := sorted(self.options - FEATURES.keys()):
            from omb_py.core.text.words import nearest

            near = nearest(unknown[0], FEATURES)
            hint = f"did you mean {near[0]!r}?" if near else "see omb_py.benchmarks.FEATURES"
            raise BenchmarkError(f"benchmark {self.name} has unknown option {unknown[0]!r}: {hint}")

    @property
    def usual_type(self) -> str:
        """The name of the element type of its messages unless ``-T`` names others."""
        return "mpi_int" if self.reduces else "mpi_char"

    @property
    def planned(self) -> bool:
        """Return whether it has a plan, whose calls a binding makes again and again."""
        return self.start_up is None and self.recovery is None

    @property
    def shares_launch(self) -> bool:
        """Return whether others can be measured in the same launch, before or after it.

        This is false if MPI's start is measured, ranks fail or are spawned, a thread level is
        needed, processes are forked or files are written.
        """
        return self.planned and not self.options & {"file", "threads", "processes", "spawned"}

    def counts(self, options: Options, size: int) -> tuple[int, int]:
        """Return timed iterations and warm-up iterations for messages of ``size`` bytes."""
        large = size > LARGE_MESSAGE_BYTES and self.sized
        iterations = self.defaults.large_iterations if large else self.defaults.iterations
        warmup = self.defaults.large_warmup if large else self.defaults.warmup
        return (
            iterations if options.iterations is None else options.iterations,
            warmup if options.warmup is None else options.warmup,
        )


def no_plan(case: Case) -> Plan:
    """Raise `NotImplementedError`: a benchmark that measures once in a job has no plan."""
    raise NotImplementedError


BENCHMARK_MODULES = Registry(
    kind="benchmark",
    package="omb_py.benchmarks",
    attribute="BENCHMARKS",
    group="omb_py.benchmarks",
)


FIRST = ("pt2pt", "collective", "variants")
"""Modules that lists begin with; the others follow in the order of their names."""


def own_benchmarks() -> Iterator[Benchmark]:
    """Return the benchmarks of this package, family by family, without those of entry points."""
    for module in dict.fromkeys((*FIRST, *BENCHMARK_MODULES.builtin())):
        yield from BENCHMARK_MODULES.load(module)


def all_benchmarks() -> Iterator[Benchmark]:
    """Yield every benchmark: omb-py's own, then those of entry points, which are loaded then."""
    yield from own_benchmarks()
    for module in BENCHMARK_MODULES.others():
        yield from BENCHMARK_MODULES.load(module)


def find_own(name: str) -> Benchmark | None:
    """Return omb-py's own benchmark of a name, as `find_benchmark` reads it, or None."""
    wanted = plain_name(name)
    return next((one for one in own_benchmarks() if one.name == wanted), None)


def by_family(benchmarks: Iterable[Benchmark] | None = None) -> dict[str, list[Benchmark]]:
    """Return benchmarks, all of them unless some are given, by the name of their family."""
    found: dict[str, list[Benchmark]] = {}
    for benchmark in all_benchmarks() if benchmarks is None else benchmarks:
        found.setdefault(benchmark.family, []).append(benchmark)
    return found


def plain_name(name: str) -> str:
    """Return a benchmark's name without native OMB's ``osu_``; hyphens and underscores are one."""
    return name.replace("-", "_").removeprefix("osu_")


def find_benchmark(name: str, others: Iterable[str] = (), what: str = "benchmark") -> Benchmark:
    """Return the benchmark ``name``; hyphens, underscores and a leading ``osu_`` don't matter.

    Raises `UsageError` for an unknown name of a ``what``, with the nearest names, also among
    ``others``.
    """
    wanted, known = plain_name(name), []
    for benchmark in all_benchmarks():
        if benchmark.name == wanted:
            return benchmark
        known.append(benchmark.name)
    from omb_py.core.text.words import nearest

    near = nearest(wanted, [*known, *others], most=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "'omb-py list' names them all"
    raise UsageError(f"unknown {what} {name!r}: {hint}")
