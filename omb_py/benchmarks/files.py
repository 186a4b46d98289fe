"""Files: every rank writes or reads its own part of one, or a file of its own, by MPI-IO."""

from __future__ import annotations

from functools import partial

from omb_py.benchmarks import Benchmark, Case, CheckedIteration, Content, Defaults, Metric, Plan
from omb_py.core.calls import Call, Step
from omb_py.core.options import Options

SYNC = "# Sync: MPI_File_sync in every iteration"
NO_SYNC = "# Sync: none, so that data may be in the page cache and not on the disk"
CACHED = "# Page cache: holds what is read, which was written just before"
SHARED = "# Files: one for all ranks"
PER_RANK = "# Files: one for each rank"


def plan(function: str, case: Case) -> Plan:
    """Make one call on each rank, at a place of its own; all ranks' parts are consecutive.

    As in IMB-IO's non-aggregate mode, each write is synchronised. No rank passes the barrier before
    all clocks run: the longest time of a rank then has all from the first start to the last end,
    also if ranks take turns.
    """
    file, part = case.resources.file(case.size)
    message = case.message()
    writes = function.startswith("file_write")
    at = 0 if case.options.per_rank else case.rank * case.size
    steps: tuple[Step, ...] = (Call("barrier"), Call(function, (message,), on=file, at=at))
    if case.options.file_sync:
        steps += (Call("file_sync", on=file),)
    source, target = (message.memory, part) if writes else (part, message.memory)
    iteration = CheckedIteration(
        steps,
        inputs=(Content.of(case.rank, source),),
        outputs=(Content.of(case.rank, target),),
        before_check=(Call("file_sync", on=file), Call("barrier")),
    )
    return Plan((iteration,), case.payload, messages=case.ranks)


def heading(writes: bool, options: Options, ranks: int) -> tuple[str, ...]:
    """Return the table's lines on the disk and on the files."""
    first = CACHED if not writes else SYNC if options.file_sync else NO_SYNC
    return first, PER_RANK if options.per_rank else SHARED


def benchmark(name: str, summary: str) -> Benchmark:
    """Return the benchmark of one function, by its independent or its collective form."""
    together = name.endswith("_all")
    function = f"{name.removesuffix('_all')}_at{'_all' if together else ''}"
    writes = name.startswith("file_write")
    own = {"file", "full"} | ({"file_sync"} if writes else set())
    return Benchmark(
        name=name,
        title=f"{name.capitalize()} Bandwidth",
        family="file",
        summary=f"Data per second of all ranks that {summary}"
        + (", synchronised with the disk." if writes else ", from the page cache."),
        plan=partial(plan, function),
        metric=Metric.BANDWIDTH,
        defaults=Defaults(100, 10, 20, 2, smallest=1, largest=4 << 20),
        options=frozenset(own if together else own | {"per_rank"}),
        memory=lambda options, size, ranks: size,
        heading=partial(heading, writes),
        slowest=True,
        native=False,
    )


BENCHMARKS = (
    benchmark("file_write", "write to one file, each by itself"),
    benchmark("file_read", "read one file, each by itself"),
    benchmark("file_write_all", "write to one file together"),
    benchmark("file_read_all", "read one file together"),
)
