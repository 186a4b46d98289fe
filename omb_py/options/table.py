"""The options of benchmarks, one row each: native OMB's letters with long names, and ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from omb_py.benchmarks import Benchmark
from omb_py.core.calls.topology import DEFAULT_TOPOLOGY
from omb_py.core.dataclass import values
from omb_py.core.datatypes import CONTIGUOUS
from omb_py.core.errors import UsageError
from omb_py.core.mpi import THREAD_LEVELS
from omb_py.core.options import ACTIVE, MAX_ITERATIONS, OPERATIONS, Options
from omb_py.core.text.units import MEBIBYTE
from omb_py.options.option import Option, Row, traits
from omb_py.options.types import (
    BYTES,
    CONGESTOR,
    DEVICES,
    GRAPHS,
    LABEL,
    LAYOUT,
    MATRIX,
    MEMBER_NAME,
    NODE_MAP,
    PERCENTAGE,
    PERCENTILES,
    ROOT,
    SIZE_LIST,
    SIZE_RANGE,
    SKEW,
    SPLIT,
    THREADS,
    TOPOLOGY,
    VALIDATION_LOG,
    VICTIMS,
    WARMUP,
    File,
    Number,
    OwnAlgorithmType,
    Seconds,
    WholeNumber,
)

HIGHEST_PROTOCOL = 5
"""The highest protocol of Python's pickle, as of 3.14; `pickle` itself is not loaded for it."""

WINDOW_KINDS = ("create", "allocate", "dynamic", "shared")
PASSIVE = ("lock", "flush", "flush_local", "lock_all")
COMPUTE_TARGETS = ("cpu", "gpu", "both")
FORMATS = ("text", "csv", "json")

INSTEAD_OF_ACCELERATORS = {
    "cuda": "--buffer cupy (or numba, pycuda, torch) puts messages on a device",
    "managed": "--buffer cupy --managed puts messages into managed memory",
    "rocm": "--buffer cupy (or torch) puts messages on a device",
    "sycl": "--buffer dpnp puts messages on a device",
}
"""The replacements here for native OMB's ``-d``."""


def refuse_accelerator(ctx: click.Context, parameter: click.Parameter, text: str | None) -> None:
    """Raise `UsageError` for ``-d``, which explains how to choose a device here."""
    if text is not None:
        known = INSTEAD_OF_ACCELERATORS.get(text.lower(), "no array library is for it")
        raise UsageError(f"-d {text}: {known}")


OWN_FOLDER = "a sweep writes into its own folder"
PRINTS_NOTHING = "a sweep prints nothing of its points"

SECONDS = Seconds(min=0, min_open=True)


def count(minimum: int) -> WholeNumber:
    """Return the type of a whole number from ``minimum`` on."""
    return WholeNumber(min=minimum)


def node_map(who: str) -> Row:
    """Return the option by which one machine stands for several nodes, for its owners."""
    text = "Ranks per node, or the node of each rank, to emulate several nodes on one machine."
    shown = "as the machine has them"
    return Row("--node-map", NODE_MAP, None, who, text, scope="alone", show_default=shown)


# fmt: off
TABLE: dict[str, tuple[Row, ...]] = {
    "Most used": (
        Row("-m --message-size", SIZE_RANGE, None, "varied",
            "Message sizes in bytes: MIN, doubled up to MAX, or times F.",
            refused="use the key sizes"),
        Row("--sizes", SIZE_LIST, None, "varied", "These message sizes instead of doubled ones.",
            refused="use the key sizes"),
        Row("-W --window-size window", count(1), 64, "window",
            "Messages in flight before the sender waits for them."),
        Row("-i --iterations", count(1), None, "planned", "Timed iterations per message size."),
        Row("-i --iterations", count(1), None, "repeated",
            "Timed iterations of each part that can be repeated."),
        Row("-x --warmup", count(0), None, "repeated", "Iterations before the timed ones."),
        Row("-x --warmup", WARMUP, None, "planned",
            "Iterations before the timed ones; auto: until the median settles."),
        Row("-c --validation validation", VALIDATION_LOG, None, "sized single",
            "Check the data on every rank in every iteration; -clog:DIR logs all errors.",),
        Row("-T --type types", "TYPE", None, "sized",
            "Element type: mpi_char, mpi_int, mpi_float, a NumPy name, or all. Repeatable.",
            multiple=True),
        Row("--buffer", MEMBER_NAME, "numpy", "",
            "Buffer library: see omb-py list.",
            scope="launch application", refused="use the key buffers"),
        Row("--binding", MEMBER_NAME, "buffer", "planned single",
            "Kind of call: see omb-py list.",
            scope="application", refused="use the key bindings"),
        Row("-o --output", File(), None, "",
            "Append rows to this .csv or .json file, each as soon as it is measured.",
            scope="rank application", refused=OWN_FOLDER),
        Row("--format", FORMATS, "text", "",
            "Format of standard output; text is native OMB's layout.",
            scope="rank application", refused=PRINTS_NOTHING),
        Row("--stats statistics", bool, None, "planned single",
            "Also print median, its 95 % confidence interval, standard deviation, minimum, maximum "
            "and iterations.",
            scope="rank"),
        Row("-f --full", bool, None, "full single",
            "Also print the ranks' minimum and maximum, and the iterations.",
            scope="rank"),
        Row("-z --tail-lat percentiles", PERCENTILES, (), "planned single",
            "Also print percentiles, attached to the letter: -z50,90,99.9. Without a list: "
            "50,90,99.", show_default=False,
            scope="rank"),
        Row("--busbw bus", bool, None, "bus single",
            "Also print algorithm and bus bandwidth, as nccl-tests defines them.",
            scope="rank"),
        Row("-q --quiet", bool, None, "", "Print nothing on standard output.",
            scope="rank application", refused=PRINTS_NOTHING),
    ),
    "What is measured": (
        Row("-V --vary-window", bool, None, "vary_window single",
            "Print a table over window sizes from 1 to 128.",
            refused="give option window-size a list"),
        Row("-p --num-pairs pairs", count(1), None, "pairs",
            "Pairs of ranks that exchange messages; all others stay idle."),
        Row("-t --num-test-calls test_calls", count(0), 0, "overlap",
            "Calls of MPI_Test during the computation.",
            scope="alone"),
        Row("-r --cuda-target compute_target", COMPUTE_TARGETS, "cpu", "overlap",
            "Which processor computes while messages are in flight."),
        Row("-N --nhbr topology", TOPOLOGY, DEFAULT_TOPOLOGY, "topology",
            "The neighbours of each rank: cart:DIMENSIONS:RADIUS or graph:FILE.",
            show_default=DEFAULT_TOPOLOGY.text),
        Row("--skew", SKEW, None, "skew",
            "Unequal blocks by Zipf's law: the busiest rank has S times the mean."),
        Row("--matrix", MATRIX, None, "skew",
            "Unequal blocks by this file: a line for each rank, with the bytes that it sends to "
            "each; other sizes scale them."),
        Row("-t --num-threads threads", THREADS, "1:2", "threads",
            "Threads of the sending and of the receiving rank.",
            scope="alone"),
        Row("--thread-comm", ("one", "each"), "one", "threads",
            "One communicator for all threads, or one for each."),
        Row("-t --num-processes threads", THREADS, "2:2", "processes",
            "Processes that the sending and the receiving rank fork.",
            scope="alone"),
        Row("--partitions", count(1), 8, "partitions",
            "Partitions of a message that become ready one by one."),
        Row("-k --root-rank root", ROOT, 0, "root",
            "The root: fixed:RANK, or rotate for another in each iteration.",
            show_default="fixed:0"),
        Row("--file", File(), None, "file",
            "The file, on the file system to be measured; it must not exist.", required=True,
            scope="alone", refused=OWN_FOLDER),
        Row("--file-sync/--no-file-sync", bool, True, "file_sync",
            "Flush the data to disk in every iteration, or leave it to the page cache."),
        Row("--per-rank", bool, None, "per_rank",
            "A file for each rank, FILE.RANK, as checkpoints are written."),
        Row("--spawn-count spawned", count(1), 1, "spawned", "Processes to spawn."),
        node_map("nodes"),
        Row("--split", SPLIT, None, "split single",
            "Measure groups of ranks at the same time: N equal ones, by rank modulo N, one for "
            "each node, or as named: 0-3,4-7.",
            scope="alone"),
        Row("--congestor", CONGESTOR, None, "split single",
            "Measure the first group of --split (by default mod:2) alone, and while all others run "
            "BENCHMARK with messages of SIZE bytes (64K).",
            scope="alone"),
        Row("--operation operations", OPERATIONS, None, "operations",
            "The operation that reports the failed rank; repeat it for several.",
            show_default="each of them", multiple=True,
            scope="alone"),
        Row("--victims", VICTIMS, None, "victims",
            "The ranks that are killed (SIGKILL) at once, or all ranks of the last node.",
            show_default="the last rank",
            scope="alone"),
        Row("--failures", count(1), 1, "victims",
            "How often ranks are killed, one time after the other.",
            scope="alone"),
    ),
    "How it is sampled": (
        Row("--precision", PERCENTAGE, None, "planned single",
            "A target: stop a size once the median is known to within ±P % at 95 % confidence."),
        Row("--max-time", SECONDS, None, "planned single", "Stop timing a size after SECONDS."),
        Row("--sync", ("barrier", "clock"), "barrier", "sync",
            "Keep ranks together by a barrier after each iteration, or by a common start time."),
        Row("--cold", bool, None, "sized planned !pairwise",
            "Flush the caches before each iteration."),
        Row("--timeout", SECONDS, None, "",
            "End the job when a rank makes no progress for SECONDS: no step of its start, no "
            "iteration and no solution ends.",
            scope="launch rank application"),
    ),
    "Data and checks": (
        Row("-u --validation-warmup", count(0), 5, "sized single",
            "Untimed calls before each checked one."),
        Row("-D --ddt layout", LAYOUT, CONTIGUOUS, "layout",
            "Layout of the elements: cont, vect:STRIDE:BLOCK or indx:FILE.",
            show_default=False),
        Row("--offset", BYTES, 0, "sized single",
            "Bytes after the beginning of a page at which messages begin.", show_default="0"),
        Row("-b --buffer-num", ("single", "multiple"), "single", "buffer_num",
            "One buffer for all messages of a window, or one for each."),
        Row("-M --mem-limit memory_limit", BYTES, 512 * MEBIBYTE, "sized",
            "Memory that one process may use for messages.", show_default="512M"),
        Row("-d --accelerator", "", None, "",
            callback=refuse_accelerator, expose_value=False, hidden=True),
    ),
    "How MPI is called": (
        Row("--target-busy", Number(min=0, min_open=True, max=1e8), None, "target_busy single",
            "The other rank computes for US microseconds in each iteration before it calls MPI.",
            metavar="US"),
        Row("-w --win-options window_kind", WINDOW_KINDS, None, "window_kind",
            "How the RMA window is created.", show_default="allocate; on a device create"),
        Row("-s --sync-option window_sync", PASSIVE + ACTIVE, "flush", "window_sync",
            "How RMA operations are completed.",
            scope="alone"),
        Row("-s --sync-option window_sync", ACTIVE, "pscw", "active_sync",
            "How RMA operations are completed.",
            scope="alone"),
        Row("-l --in-place", bool, None, "in_place", "Use MPI_IN_PLACE."),
        Row("--coll-algorithm library_algorithm", "NAME", None, "library_algorithm single",
            "The library's algorithm, as in ring: MPI's, or NCCL's; see omb-py list --algorithms. "
            "default leaves the choice to the library.",
            scope="alone", refused="use the key coll_algorithms"),
        Row("--p2p-algorithm algorithm", OwnAlgorithmType(), None, "algorithm single",
            "Replace the collective call by this algorithm made of point-to-point messages: omb-py "
            "list --algorithms.", show_default="library",
            scope="alone"),
        Row("--segment", BYTES, None, "segment single",
            "Segment size of --p2p-algorithm pipelined_chain.", show_default="64K",
            scope="alone"),
        node_map("node_map single"),
        Row("--thread-level", THREAD_LEVELS, "single", "",
            "Thread support level to request from MPI; native OMB requests single.",
            scope="launch application"),
    ),
    "Output": (
        Row("--samples", File(), None, "planned single",
            "Keep the time of every timed iteration in this .npy file.",
            scope="alone",
            refused="points of a sweep would share the file: measure one with omb-py BENCHMARK"),
        Row("--force", bool, None, "",
            "Overwrite the files of results instead of appending to them.",
            scope="rank application", refused=OWN_FOLDER),
        Row("-G --graph", GRAPHS, (), "",
            "Draw the results in the terminal, or as BENCHMARK.png (...) in this folder.",
            show_default=False,
            scope="rank", refused=OWN_FOLDER),
        Row("-R --print-rate", click.BOOL, True, "print_rate single",
            "Whether to print the message rate.", metavar="0|1",
            scope="rank"),
        Row("--label variant", LABEL, None, "",
            "A label for settings outside omb-py, such as UCX_TLS=tcp; kept in the results.",
            scope="rank application", refused="a sweep labels what it varies itself"),
        Row("--debug", bool, None, "", "Show tracebacks of errors.",
            scope="launch rank application", refused="start omb-py sweep with --debug"),
    ),
    "Devices": (
        Row("--device devices", DEVICES, (), "",
            "Devices that the ranks of a node use round-robin.",
            show_default="all visible",
            scope="launch rank application"),
        Row("--managed", bool, None, "sized",
            "Managed memory, whose pages migrate between host and device."),
        Row("--gpu-aware", ("auto", "yes", "no"), "auto", "sized",
            "Whether MPI accepts device memory; auto asks the library. Forcing yes on a library "
            "that is not GPU-aware crashes the job.",
            scope="application"),
        Row("--staging", bool, None, "sized",
            "Copy device messages through page-locked host memory, inside the timed part.",
            scope="application"),
        Row("--stream-sync", bool, None, "sized",
            "Synchronize the device's stream before each iteration's calls, inside the timed "
            "part."),
    ),
    "Single bindings": (
        Row("--pickle-protocol", WholeNumber(0, HIGHEST_PROTOCOL), None, "planned",
            "Protocol of bindings that pickle; mpi4py's default is the latest.",
            scope="application"),
        Row("--backend", "NAME", None, "planned",
            "Backend of binding torch: gloo, nccl, mpi, ucc or another that this torch has; "
            "default gloo, for memory on a device nccl.",
            scope="application"),
        Row("--interface", "NAME", None, "planned",
            "Network interface for connections between hosts, of bindings over sockets.",
            scope="launch rank application"),
    ),
    "Rarely needed": (
        Row("--max-iterations", count(1), None, "planned single",
            "Upper limit of iterations per size with --precision.",
            show_default=str(MAX_ITERATIONS)),
        Row("--rounds", count(1), None, "split single",
            "Turns of --congestor, each alone and congested; at least 6 for an interval.",
            show_default="10",
            scope="alone"),
        Row("-I --session", bool, None, "", "Initialize MPI through an MPI-4 session.",
            scope="launch"),
    ),
}
# fmt: on
"""The rows by the heading under which the help shows them, what matters most first."""

EXTRA = frozenset({"Devices", "Single bindings", "Rarely needed"})
"""Headings that only ``--help-all`` shows."""


def parameters(
    benchmark: Benchmark, run: frozenset[str] = frozenset({"single"})
) -> list[click.Parameter]:
    """Return the click parameters of a benchmark, buffer placement included if it has one.

    ``run`` are the words of the run: ``single`` of one binding, ``pairwise`` of pairs of ranks.
    """
    words = traits(benchmark) | run
    found: list[click.Parameter] = [
        row.option(group, benchmark.preset) for group, row in rows() if row.applies(words)
    ]
    if "placement" in benchmark.options:
        places = click.Choice(["H", "D", "MH", "MD"])
        found.append(
            click.Argument(["placement"], type=places, nargs=-1, metavar="[SOURCE DESTINATION]")
        )
    return found


def rows() -> Iterator[tuple[str, Row]]:
    """Yield all rows, each with its heading."""
    for group, members in TABLE.items():
        for row in members:
            yield group, row


OF_A_LAUNCH = tuple(row.long for _, row in rows() if "launch" in row.scope)
"""Options that all benchmarks of a launch have the same, by their long names."""


def common_parameters() -> list[click.Parameter]:
    """Return the options that several benchmarks of a launch can share, each once."""
    found: dict[str, Option] = {}
    for group, row in rows():
        option = row.option(group)
        if "alone" not in row.scope and not option.hidden:
            found.setdefault(row.name, option)
    return [*found.values()]


def shared_options(word: str) -> list[Option]:
    """Return benchmarks' options whose scope has a ``word``, or whose value has this name."""
    return [row.option(group) for group, row in rows() if word in {*row.scope, row.name}]


COMPOSED = {
    **dict.fromkeys(("smallest", "largest"), "--message-size"),
    "growth": "factor of --message-size",
    **dict.fromkeys(("validate", "validation_log"), "--validation"),
    **dict.fromkeys(("warmup", "auto_warmup"), "--warmup"),
    "placement": "SOURCE DESTINATION",
    "buffer_per_message": "--buffer-num",
}
"""Fields of `Options` that are not a row's value: the option or argument that they come from."""


def alike(options: Options) -> dict[str, tuple[Any, ...]]:
    """Return the values that all ranks of a job must have alike, by names on the command line."""
    by_name = {row.name: row for _, row in reversed([*rows()])}
    found: dict[str, tuple[Any, ...]] = {}
    for name, value in values(options).items():
        row = by_name.get(name)
        if row is None or "rank" not in row.scope:
            option = COMPOSED[name] if row is None or name in COMPOSED else row.long
            found[option] = (*found.get(option, ()), value)
    return found
