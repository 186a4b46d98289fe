"""Intel MPI Benchmarks' words, which of its benchmarks are ours, and what its rows must fulfil.

A benchmark has our name where one iteration, the clocks and the mean are those of
``docs/definitions.md``. The sources, and the calls that version 2021.11 makes, show what differs:
Sendrecv, Exchange, Barrier's non-blocking form and Biband have no barrier between iterations
(Biband another handshake besides), and the non-blocking collectives without ``_pure`` print the
times of the rank that overlapped worst. They are called ``imb_`` and their own name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from omb_py.results.readers.formats.fixed_width import Shown, shown

COLLECTIVES = frozenset(
    "allgather allgatherv allreduce alltoall alltoallv bcast gather gatherv reduce reduce_scatter "
    "reduce_scatter_block scatter scatterv".split()
)
ROOTED = frozenset("bcast gather gatherv reduce scatter scatterv".split())
DIVIDED = frozenset("reduce_scatter reduce_scatter_block ireduce_scatter".split())
REDUCED = frozenset("allreduce reduce reduce_local reduce_scatter reduce_scatter_block".split())
ONE_SIDED = {
    "unidir_put": ("put_latency", "flush"),
    "unidir_get": ("get_latency", "flush"),
    "put_local": ("put_latency", "flush_local"),
    "get_local": ("get_latency", "flush_local"),
    "accumulate": ("acc_latency", "flush"),
    "get_accumulate": ("get_acc_latency", "flush"),
    "fetch_and_op": ("fop_latency", "flush"),
    "compare_and_swap": ("cas_latency", "flush"),
}
"""One-sided benchmarks, and ours with the synchronisation that ends an iteration of theirs."""

MODES = {*ONE_SIDED, "bidir_put", "bidir_get"}
"""Benchmarks of IMB-RMA and IMB-EXT that say in a line of their own whether they aggregate."""

ACCUMULATES = frozenset("accumulate get_accumulate fetch_and_op".split())

PARTS = {
    "MPI-1": "",
    "MPI-NBC": "",
    "MPI-RMA": "",
    "MT": "",
    "MPI-2": "ext_",
    "MPI-EXT": "ext_",
    "EXT": "ext_",
    "MPI-IO": "io_",
    "IO": "io_",
    "IMB-P2P": "p2p_",
}
"""What stands before the name of a benchmark, so that those of two parts are told apart."""

BANNER = re.compile(
    r"#\s+(?:Intel ?\(R\)|PALLAS) MPI Benchmarks?(?: Suite)? "
    r"(?P<version>V?\d[\w.]*(?: [Uu]pdate \d+)?), (?P<part>\S+) part(?P<gpu> \(GPU\))?\s*"
)
DATATYPES = {
    "MPI_CHAR": "int8",
    "MPI_INT": "int32",
    "MPI_FLOAT": "float32",
    "MPI_DOUBLE": "float64",
    "MPIX_C_FLOAT16": "float16",
    "MPIX_C_BF16": "bfloat16",
}
PLACES = {"device": "D", "shared": "M", "host": "H", "cpu": "H"}
FIRST_WINDOW, WINDOW, WINDOW_SINCE = 64, 256, (2021, 2)
"""Messages in flight of Uniband where no option says: the number changed with a version."""


@dataclass
class Run:
    """What a banner and the lines below it say.

    ``command`` is None until all of it was read, ``sizes`` unless it is the default ones up to a
    limit that were asked for, ``chosen`` if the user gave a list of them.
    """

    name: str
    version: str | None = None
    part: str | None = None
    gpu: bool = False
    mpi: str | None = None
    said: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    command: Mapping[str, str] | None = None
    listed: set[str] = field(default_factory=set)
    sizes: range | None = None
    chosen: bool = False

    @property
    def suite(self) -> str:
        """Who measured."""
        return f"IMB {self.version}" if self.version else "IMB"

    @property
    def release(self) -> tuple[int, int]:
        """A version that can be compared, as in (2019, 6) for ``2019 Update 6``."""
        found = re.match(r"V?(\d+)(?:[.](\d+)| [Uu]pdate (\d+))?", self.version or "")
        return (int(found[1]), int(found[2] or found[3] or 0)) if found else (0, 0)

    def switched(self, option: str, since_2017: bool) -> bool:
        """Whether an option is on; its default was the opposite before 2017."""
        said = (self.command or {}).get(option, "").lower()
        if said:
            return said in ("on", "1", "enable", "yes")
        return since_2017 is (self.release >= (2017, 0))


@dataclass(frozen=True)
class Section:
    """What stands above a table: one benchmark on so many processes, in so many groups."""

    name: str
    ranks: int
    groups: int
    mode: str | None
    threads: int | None
    window: int | None


def options(words: Sequence[str]) -> dict[str, str]:
    """The options of a command line, each with the word after it."""
    return {
        word.lstrip("-").lower(): following
        for word, following in zip(words, [*words[1:], ""], strict=True)
        if word.startswith("-") and not word[1:2].isdigit()
    }


def describe(run: Run, section: Section) -> dict[str, Any]:
    """The columns that all rows of a table share: benchmark, ranks, and how it was measured."""
    name = section.name.lower()
    row: dict[str, Any] = {"run": run.name, "suite": run.suite, "mpi": run.mpi, "binding": "C"}
    prefix = PARTS.get(run.part or "", "")
    row |= {"benchmark": f"imb_{prefix}{name}", "ranks": section.ranks}
    if section.mode:
        row["part"] = section.mode
    if section.threads:
        row["threads"] = f"{section.threads}:{section.threads}"
    if section.window:
        row["window"] = section.window
    row |= elements(run, name)
    if section.groups > 1:
        row["benchmark"] = f"imb_multi_{prefix}{name}"
        row["ranks"] = section.ranks * section.groups
        row["part"] = " ".join([f"{section.groups} groups", *filter(None, [section.mode])])
    command = run.command
    if command is None or run.release == (0, 0):
        return row
    if run.gpu:
        row["placement"] = PLACES.get(command.get("mem_alloc_type", "device"))
    if section.groups > 1:
        return row
    find = {"MPI-1": of_mpi1, "MPI-NBC": of_nbc, "MPI-RMA": of_rma}.get(run.part or "")
    row |= find(run, section, name) if find else {}
    changed = [
        f"{option} {command[option]}"
        for option in ("off_cache", "contig_type", "map")
        if command.get(option, "base") != "base"
    ]
    if changed:
        row["part"] = ", ".join([*filter(None, [row.get("part")]), *changed])
    return row


def elements(run: Run, name: str) -> dict[str, Any]:
    """The element type, where the header tells it and it is one: MPI_BYTE says nothing."""
    if "barrier" in name or name == "window":
        return {}
    base = name.removesuffix("_pure").removeprefix("i")
    adds = {name, base} & (REDUCED | ACCUMULATES)
    said = run.said.get("MPI_Datatype for reductions" if adds else "MPI_Datatype")
    if name == "compare_and_swap":
        said = "MPI_INT"
    return {"mpi_type": said, "dtype": DATATYPES[said]} if said in DATATYPES else {}


def of_mpi1(run: Run, section: Section, name: str) -> dict[str, Any]:
    """IMB-MPI1's: ping-pongs (with any source before 2017 update 1), windows, collectives."""
    command = run.command or {}
    if name == "pingpongspecificsource" or (name == "pingpong" and run.release >= (2017, 1)):
        return {"benchmark": "latency"}
    if name in ("uniband", "biband"):
        default = WINDOW if run.release >= WINDOW_SINCE else FIRST_WINDOW
        size = command.get("window_size", str(default))
        window = int(size) if re.fullmatch(r"\d{1,6}", size) else None
        found = {"window": window, "pairs": section.ranks // 2}
        return found | ({"benchmark": "bw"} if (name, section.ranks) == ("uniband", 2) else {})
    if name == "barrier":
        return {"benchmark": "barrier"}
    return of_collective(run, name, name) if name in COLLECTIVES else {}


def of_nbc(run: Run, section: Section, name: str) -> dict[str, Any]:
    """IMB-NBC's: those that only start and wait."""
    ours = name.removesuffix("_pure")
    return of_collective(run, ours, ours[1:]) if ours != name and ours[1:] in COLLECTIVES else {}


def of_collective(run: Run, ours: str, blocking: str) -> dict[str, Any]:
    """A collective: ours if a barrier follows each call and the root is one that ours can have."""
    command = run.command or {}
    rotates = blocking in ROOTED and run.switched("root_shift", False)
    found: dict[str, Any] = {}
    if rotates or blocking in ROOTED - {"bcast"}:
        found["root"] = "rotate" if rotates else "0"
    if not run.switched("sync", True):
        return found
    own = command.get("imb_barrier", "off").lower() in ("on", "1", "enable", "yes")
    found["sync"] = "imb_barrier" if own else "barrier"
    unlike = rotates and blocking == "bcast"
    if unlike or (ours in DIVIDED and size_is_of_part(run, ours) is None):
        return found
    return found | {"benchmark": ours}


def of_rma(run: Run, section: Section, name: str) -> dict[str, Any]:
    """IMB-RMA's: one call and its completion at a time, in a window over memory that was there."""
    if name not in ONE_SIDED or section.mode != "non-aggregate":
        return {}
    ours, sync = ONE_SIDED[name]
    return {"benchmark": ours, "window_kind": "create", "window_sync": sync, "part": None}


def size_factor(run: Run, benchmark: str, ranks: int) -> int:
    """What turns a printed size into ours, of the whole vector: of what is not ours, 1."""
    return ranks if benchmark in DIVIDED and size_is_of_part(run, benchmark) else 1


def size_is_of_part(run: Run, name: str) -> bool | None:
    """Whether the size of a reduce-scatter is that of one rank's part; None if it is not known.

    It is since an update of 2019 that is not told: its sources have the whole vector, those of
    update 6 a part. Newer sources can also be built so that they say to be 2018, with parts only
    in the non-blocking one.
    """
    if name == "reduce_scatter_block" or run.release >= (2019, 6):
        return True
    unknown = run.release > (2019, 0) or (name[0] == "i" and run.release[0] == 2018)
    return None if unknown else False


BINARY_MEGABYTE = 1.048576
LARGEST_ELEMENT = 16
"""Bytes of an element, of which there is one however small the largest size is."""
MEGABYTES = (1.0, BINARY_MEGABYTE)
TRANSFERS = {"sendrecv": (2,), "exchange": (4,), "pingpong": (1,), "pingping": (1,)}
"""Messages that the rate of a benchmark counts in one time; of others any plausible number."""


@dataclass
class ImbTable:
    """A header with what all of its rows share."""

    columns: tuple[str, ...]
    ends: tuple[int, ...] | None
    shared: dict[str, Any]
    benchmark: str
    ranks: int
    factor: int
    sizes: range | None
    any_order: bool
    last: dict[int, int] = field(default_factory=dict)


def contradiction(row: dict[str, str], table: ImbTable) -> str | None:
    """What in a row does not agree with itself: order of times, rates, overlap."""
    if int(row["iterations"]) < 1:
        return "no repetitions"
    mean = float(row.get("latency_us", 0))
    low, high = (float(row.get(f"latency_{end}_us", mean)) for end in ("min", "max"))
    if not low - 0.015 <= mean <= high + 0.015:
        return "a mean that is not between minimum and maximum"
    if "overlap_percent" in row and not overlap_agrees(row):
        return "an overlap that the times do not give"
    if "megabytes" in row and not rate_agrees(row, table):
        return "Mbytes/sec that do not fit the other columns"
    return None


def rate_agrees(row: dict[str, str], table: ImbTable) -> bool:
    """Whether the rate is what size and time give, in megabytes of 10^6 bytes or 2^20."""
    size, rate = int(row.get("bytes", 0)), shown(row["megabytes"])
    if "messages_per_s" in row:
        told = shown(row["messages_per_s"]).times(size / 1e6)
        threaded = table.benchmark.endswith("mt")  # each thread has its own time and its own part
        return threaded or any(rate.times(unit).meets(told) for unit in MEGABYTES)
    name = "latency_max_us" if "latency_max_us" in row else "latency_us"
    if name not in row:
        return True
    time, ranks = shown(row[name]), table.ranks
    # bytes = rate * time: a product, since a time may have been printed as 0.00
    moved = rate.times(time.minimum, time.maximum)
    counts = TRANSFERS.get(table.benchmark, (1, 2, 4, ranks - 1, ranks))
    return any(
        moved.times(unit).meets(Shown(size * count, size * count))
        for unit in MEGABYTES
        for count in counts
    )


def overlap_agrees(row: dict[str, str]) -> bool:
    """Whether the overlap follows from the times: of the longer of the two, or the shorter."""
    overall, pure, work = (shown(row[f"{name}_us"]) for name in ("overall", "latency", "compute"))
    percent = shown(row["overlap_percent"])
    hidden = Shown(
        pure.minimum + work.minimum - overall.maximum, pure.maximum + work.maximum - overall.minimum
    )
    for choose in (max, min):
        whole = Shown(choose(pure.minimum, work.minimum), choose(pure.maximum, work.maximum))
        if (
            percent.times(whole.minimum / 100, whole.maximum / 100).meets(hidden)
            or (percent.minimum == 0 and hidden.minimum <= 0)
            or (percent.maximum >= 100 and hidden.maximum >= whole.minimum)
        ):
            return True
    return False


def out_of_place(row: dict[str, str], table: ImbTable) -> str | None:
    """Why a row cannot stand where it stands: a size that IMB would not have measured there."""
    size, group = int(row.get("bytes", 0)), int(row.get("group", 0))
    last = table.last.get(group)
    if last is not None and ("bytes" not in row or (size <= last and not table.any_order)):
        return f"size {size} after {last}: rows of two tables?"
    if "bytes" in row and table.sizes is not None and size:
        largest = max(table.sizes.stop - 1, LARGEST_ELEMENT)
        if size & (size - 1) or size > largest:
            return f"size {size}, which was not requested"
    table.last[group] = size
    return None


def decimal_megabytes(row: dict[str, str]) -> float:
    """A rate in 10^6 bytes per second, which versions before 2018 print in 2^20."""
    rate, size = float(row["megabytes"]), int(row["bytes"])
    told = shown(row["messages_per_s"]).times(size / 1e6)
    return rate if shown(row["megabytes"]).meets(told) else rate * BINARY_MEGABYTE
