"""WHAT is measured: the terms in which a benchmark describes itself.

A module of this folder (or an entry point of group ``omb_py.benchmarks``) defines
``BENCHMARKS``, a tuple of `Benchmark`. A benchmark turns a `Case`, one message size on one rank,
into a `Plan`: which calls one iteration makes, and what data they should move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from omb_py.buffers import Buffer, Memory
from omb_py.calls import Form, Message, Step
from omb_py.datatypes import Datatype
from omb_py.errors import UsageError
from omb_py.layout import Layout
from omb_py.options import Options
from omb_py.registry import Registry

LARGE_MESSAGE_BYTES = 8192
"""Messages longer than this use the smaller iteration counts, as in native OMB."""


class Metric(Enum):
    """What a benchmark's headline number is."""

    LATENCY = "latency"
    BANDWIDTH = "bandwidth"
    MESSAGE_RATE = "message rate"


class Ranks(Enum):
    """How many ranks a benchmark runs on, in the words of its error message."""

    ANY = "at least 1 rank"
    TWO = "exactly 2 ranks"
    EVEN = "an even number of ranks"

    def allow(self, ranks: int) -> bool:
        """Whether a job of ``ranks`` will do."""
        return {Ranks.ANY: True, Ranks.TWO: ranks == 2, Ranks.EVEN: ranks % 2 == 0}[self]


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
class Case:
    """One message size on one rank: all that a benchmark may know."""

    rank: int
    ranks: int
    size: int
    datatype: Datatype
    window: int
    buffer: Buffer
    options: Options

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
        """A message in new memory; by default one block of the size and layout measured."""
        counts = (self.elements,) if counts is None else counts
        layout = self.options.layout if layout is None else layout
        memory = self.buffer.allocate(sum(counts) * self.datatype.itemsize, self.datatype)
        return Message(memory, self.datatype, counts, form, layout)


@dataclass(frozen=True)
class Content:
    """What a stretch of memory holds, or should hold once a message has arrived.

    It is the data of the rank ``sources[0]``, or the sum over ``sources`` where a reduction
    ``added`` them: of each one's block ``block``, from element ``start`` on.
    """

    memory: Memory
    sources: range
    block: int = 0
    start: int = 0
    added: bool = False


@dataclass(frozen=True)
class Exchange:
    """One iteration of one rank: its calls, the data before them and the data expected after."""

    steps: tuple[Step, ...] = ()
    inputs: tuple[Content, ...] = ()
    outputs: tuple[Content, ...] = ()


@dataclass(frozen=True)
class Plan:
    """One rank's part at one message size.

    Iteration ``i`` is ``exchanges[i % len(exchanges)]``; ``timed`` says whether this rank's clock
    counts, and ``payload`` how many bytes of a message really travel.
    """

    exchanges: tuple[Exchange, ...]
    payload: int
    timed: bool = True


@dataclass(frozen=True)
class Benchmark:
    """A benchmark and all that the rest of the suite needs to know of it.

    ``title`` is its name in native OMB's banner. ``round_trips`` divides an iteration's time
    into the latency reported; ``messages`` tells how many messages one iteration moves over the
    whole job, given the options, the ranks and the window. ``paced`` puts a barrier between
    iterations. ``memory`` gives the bytes that one process needs, given the options, a message
    size and the number of ranks. ``traffic`` gives, for a message size and a number of ranks,
    nccl-tests' size in bytes and the part of it that must pass each rank's link. ``native`` is
    false for what native OMB lacks.
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
    round_trips: int = 1
    paced: bool = True
    sized: bool = True
    reduces: bool = False
    messages: Callable[[Options, int, int], int] = lambda options, ranks, window: 1
    memory: Callable[[Options, int, int], int] = lambda options, size, ranks: 0
    traffic: Callable[[int, int], tuple[int, float]] | None = None
    smallest_elements: Callable[[int], int] = lambda ranks: 0
    native: bool = True

    def counts(self, options: Options, size: int) -> tuple[int, int]:
        """Timed iterations and warm-up iterations for messages of ``size`` bytes."""
        large = size > LARGE_MESSAGE_BYTES and self.sized
        iterations = self.defaults.large_iterations if large else self.defaults.iterations
        warmup = self.defaults.large_warmup if large else self.defaults.warmup
        return (
            iterations if options.iterations is None else options.iterations,
            warmup if options.warmup is None else options.warmup,
        )


BENCHMARK_MODULES = Registry(
    kind="benchmark",
    package="omb_py.benchmarks",
    attribute="BENCHMARKS",
    group="omb_py.benchmarks",
)


def all_benchmarks() -> Iterator[Benchmark]:
    """Every benchmark, family by family."""
    for module in BENCHMARK_MODULES.names():
        yield from BENCHMARK_MODULES.load(module)


def find_benchmark(name: str) -> Benchmark:
    """The benchmark called ``name``; hyphens, underscores and a leading ``osu_`` don't matter.

    Raises `UsageError` with the nearest names when there is none.
    """
    wanted = name.replace("-", "_").removeprefix("osu_")
    for module in BENCHMARK_MODULES.builtin():
        for benchmark in BENCHMARK_MODULES.load(module):
            if benchmark.name == wanted:
                return benchmark  # type: ignore[no-any-return]
    known = {benchmark.name: benchmark for benchmark in all_benchmarks()}
    if wanted in known:
        return known[wanted]
    from difflib import get_close_matches

    near = get_close_matches(wanted, known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "'omb-py list' names them all"
    raise UsageError(f"unknown benchmark {name!r}: {hint}")
