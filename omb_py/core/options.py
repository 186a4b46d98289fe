"""The requested options, as one immutable value."""

from __future__ import annotations

from omb_py.core.calls.skew import Skew
from omb_py.core.calls.topology import DEFAULT_TOPOLOGY, Topology
from omb_py.core.dataclass import dataclass
from omb_py.core.datatypes import CONTIGUOUS, Layout
from omb_py.core.memory import Place
from omb_py.core.text.units import MEBIBYTE

DEFAULT_PERCENTILES = (50.0, 90.0, 99.0)

MAX_ITERATIONS = 1_000_000
"""Iterations of a size that ``--precision`` may take by default."""

LIBRARY = "library"
"""The name for ``--p2p-algorithm`` of the library's own call."""

PIPELINED = "pipelined_chain"
"""The name of our own algorithm that sends segments."""

SEGMENT = 64 << 10
"""Default of ``--segment``: that of Open MPI's `pipeline` in `omb_py.algorithms.openmpi`."""

VARIED_WINDOWS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Window sizes of ``-V``."""


GROWTH = 2.0
"""The factor from one message size to the next, as in native OMB."""

ACTIVE = ("pscw", "fence")
"""Synchronizations of windows in which the target takes part."""

OPERATIONS = ("recv", "barrier", "allreduce")
"""Operations that can report a failed rank."""

FAILURE_TIMEOUT = 60.0
"""Seconds of ``--timeout`` by default if ranks fail: MPI may hang there."""

NODE = "node"
"""The word for all ranks of the last node."""


@dataclass(frozen=True)
class Options:
    """Every option of every benchmark; ``None`` leaves the choice to the benchmark.

    Sizes are in bytes, ``timeout`` in seconds. ``sizes`` is a list of message sizes that replaces
    ``smallest``, ``largest`` and the ``growth`` from one to the next. ``root`` is a rank, or None
    for one that rotates. ``precision`` is the half-width of the median's interval at which to stop,
    as a fraction of the median; ``max_time`` limits the seconds that one message size is timed.
    ``placement`` is where the messages of the first and of the second half of the ranks lie,
    ``devices`` those that the ranks of a node take in turn. ``node_map`` is the node of each rank,
    or how many ranks a node has; ``threads`` are those (or the processes) of the sending and of the
    receiving side; ``thread_comm`` is whether they share one communicator. ``library_algorithm`` is
    the name in `omb_py.algorithms` of the library's algorithm; ``algorithm`` is `LIBRARY` or
    the name of an algorithm of ours, ``segment`` the bytes of its segments. ``split`` is how
    ranks are divided into groups (`omb_py.core.job.groups`); ``congestor`` is the benchmark, and
    its message size, that the ranks outside the first group run while that one measures, in
    ``rounds`` turns. ``variant`` is the label of settings outside omb-py. ``interface`` is the
    network interface by which bindings over sockets connect hosts, ``backend`` is torch's.
    ``victims`` are the ranks that are killed at once, or ``node`` for those of the last node, and
    ``failures`` how often; ``operations`` report it. ``debug`` shows tracebacks.
    """

    buffer: str = "numpy"
    binding: str = "buffer"
    placement: tuple[Place, ...] = ()
    managed: bool = False
    devices: tuple[int, ...] = ()
    gpu_aware: str = "auto"
    staging: bool = False
    stream_sync: bool = False
    pickle_protocol: int | None = None
    smallest: int | None = None
    largest: int | None = None
    growth: float = GROWTH
    sizes: tuple[int, ...] | None = None
    iterations: int | None = None
    warmup: int | None = None
    auto_warmup: bool = False
    precision: float | None = None
    max_time: float | None = None
    max_iterations: int | None = None
    sync: str = "barrier"
    cold: bool = False
    statistics: bool = False
    bus: bool = False
    full: bool = False
    percentiles: tuple[float, ...] = ()
    validate: bool = False
    validation_log: str | None = None
    validation_warmup: int = 5
    window: int = 64
    vary_window: bool = False
    print_rate: bool = True
    pairs: int | None = None
    buffer_per_message: bool = False
    types: tuple[str, ...] = ()
    layout: Layout = CONTIGUOUS
    offset: int = 0
    in_place: bool = False
    root: int | None = 0
    memory_limit: int = 512 * MEBIBYTE
    test_calls: int = 0
    compute_target: str = "cpu"
    topology: Topology = DEFAULT_TOPOLOGY
    skew: Skew | None = None
    target_busy: float | None = None
    window_kind: str | None = None
    window_sync: str = "flush"
    partitions: int = 8
    threads: tuple[int, int] = (1, 1)
    thread_comm: str = "one"
    node_map: tuple[int, ...] | int | None = None
    split: str | None = None
    congestor: tuple[str, int] | None = None
    rounds: int | None = None
    file: str | None = None
    file_sync: bool = False
    per_rank: bool = False
    spawned: int = 1
    session: bool = False
    thread_level: str = "single"
    output: str | None = None
    samples: str | None = None
    force: bool = False
    format: str = "text"
    quiet: bool = False
    graph: tuple[str, ...] = ()
    library_algorithm: str | None = None
    algorithm: str | None = None
    segment: int | None = None
    variant: str | None = None
    timeout: float | None = None
    interface: str | None = None
    backend: str | None = None
    victims: tuple[int, ...] | str | None = None
    failures: int = 1
    operations: tuple[str, ...] = ()
    debug: bool = False

    @property
    def own_algorithm(self) -> str | None:
        """The name of our own algorithm; None if the library's call is measured."""
        return None if self.algorithm == LIBRARY else self.algorithm

    @property
    def own_segment(self) -> int | None:
        """The bytes of our own algorithm's segments; None if it has none."""
        return (self.segment or SEGMENT) if self.algorithm == PIPELINED else None

    def place_of(self, rank: int, ranks: int) -> Place | None:
        """Return the place of a rank's messages; None leaves it to the buffer library."""
        if self.placement:
            return self.placement[rank >= ranks // 2]
        return Place.MANAGED if self.managed else None

    def pairs_in(self, ranks: int) -> int:
        """Return the number of pairs that exchange messages: all possible ones, or ``-p``."""
        return ranks // 2 if self.pairs is None else self.pairs
