"""The options of benchmarks, one row each: native OMB's letters with long names, and ours."""

from __future__ import annotations

from typing import Any

import click

from omb_py.benchmarks import Benchmark
from omb_py.core.calls.topology import DEFAULT_TOPOLOGY
from omb_py.core.datatypes.layout import CONTIGUOUS
from omb_py.core.errors import UsageError
from omb_py.core.mpi import THREAD_LEVELS
from omb_py.core.options import MAX_ITERATIONS, OPERATIONS
from omb_py.core.text.numbers import MEBIBYTE
from omb_py.options.option import Option, OptionRow
from omb_py.options.types import (
    BYTES,
    CONGESTOR,
    DEVICES,
    LABEL,
    LAYOUT,
    MEMBER_NAME,
    NODE_MAP,
    PERCENTILES,
    PRECISION,
    ROOT,
    SIZE_LIST,
    SIZE_RANGE,
    SPLIT,
    THREADS,
    TOPOLOGY,
    VALIDATION_LOG,
    VICTIMS,
    WARMUP,
    Graphs,
    OwnAlgorithm,
    Seconds,
    WholeNumber,
)

HIGHEST_PROTOCOL = 5
"""Of Python's pickle, as of 3.14; `pickle` itself is not loaded for it."""

WINDOW_KINDS = ("create", "allocate", "dynamic", "shared")
PASSIVE = ("lock", "flush", "flush_local", "lock_all")
ACTIVE = ("pscw", "fence")
SEND_MODES = ("standard", "synchronous", "buffered", "ready")
COMPUTE_TARGETS = ("cpu", "gpu", "both")
FORMATS = ("text", "csv", "json")

INSTEAD_OF_ACCELERATORS = {
    "cuda": "--buffer cupy (or numba, pycuda, torch) puts messages on a device",
    "managed": "--buffer cupy --managed puts messages into managed memory",
}
"""What does here what native OMB's ``-d`` does."""


def refuse_accelerator(ctx: click.Context, parameter: click.Parameter, text: str | None) -> None:
    """Raise `UsageError` for ``-d``, which says how to choose a device here."""
    if text is not None:
        known = INSTEAD_OF_ACCELERATORS.get(text.lower(), "omb-py measures NVIDIA devices alone")
        raise UsageError(f"-d {text}: {known}")


def count(minimum: int) -> dict[str, Any]:
    """Settings of an option that takes a whole number from ``minimum`` on."""
    return {"type": WholeNumber(min=minimum), "metavar": "N"}


def seconds() -> dict[str, Any]:
    """Settings of an option that takes a duration."""
    return {"type": Seconds(min=0, min_open=True), "metavar": "SECONDS"}


NODES: dict[str, Any] = {
    "type": NODE_MAP,
    "show_default": "as the machine has them",
    "metavar": "N|N,N,…",
    "help": "Ranks per node, or the node of each rank, to emulate several nodes on one machine.",
}

TABLE: dict[str, tuple[OptionRow, ...]] = {
    "What is measured": (
        OptionRow(
            *("-m", "--message-size"),
            type=SIZE_RANGE,
            sized=True,
            varied=True,
            help="Message sizes in bytes: MIN, doubled up to MAX.",
        ),
        OptionRow(
            "--sizes",
            type=SIZE_LIST,
            sized=True,
            varied=True,
            help="These message sizes instead of doubled ones.",
        ),
        OptionRow(
            *("-W", "--window-size", "window"),
            **count(1),
            default=64,
            feature="window",
            help="Messages in flight before the sender waits for them.",
        ),
        OptionRow(
            *("-V", "--vary-window"),
            is_flag=True,
            feature="vary_window",
            overhead=False,
            help="Print a table over window sizes from 1 to 128.",
        ),
        OptionRow(
            *("-p", "--num-pairs", "pairs"),
            **count(1),
            feature="pairs",
            help="Pairs of ranks that exchange messages; all others stay idle.",
        ),
        OptionRow(
            *("-t", "--num-test-calls", "test_calls"),
            **count(0),
            default=0,
            feature="overlap",
            help="Calls of MPI_Test during the computation.",
        ),
        OptionRow(
            *("-r", "--cuda-target", "compute_target"),
            type=click.Choice(COMPUTE_TARGETS),
            default="cpu",
            feature="overlap",
            help="Which processor computes while messages are in flight.",
        ),
        OptionRow(
            *("-N", "--nhbr", "topology"),
            type=TOPOLOGY,
            default=DEFAULT_TOPOLOGY,
            show_default=DEFAULT_TOPOLOGY.text,
            metavar="TOPOLOGY",
            feature="topology",
            help="The neighbours of each rank: cart:DIMENSIONS:RADIUS or graph:FILE.",
        ),
        OptionRow(
            *("-t", "--num-threads", "threads"),
            type=THREADS,
            default=(1, 2),
            show_default="1:2",
            metavar="SENDERS[:RECEIVERS]",
            feature="threads",
            help="Threads of the sending and of the receiving rank.",
        ),
        OptionRow(
            *("-t", "--num-processes", "threads"),
            type=THREADS,
            default=(2, 2),
            show_default="2:2",
            metavar="SENDER[:RECEIVER]",
            feature="processes",
            help="Processes that the sending and the receiving rank fork.",
        ),
        OptionRow(
            "--partitions",
            **count(1),
            default=8,
            feature="partitions",
            help="Partitions of a message that become ready one by one.",
        ),
        OptionRow(
            *("-k", "--root-rank", "root"),
            type=ROOT,
            default=0,
            show_default="fixed:0",
            metavar="ROOT",
            feature="root",
            help="The root: fixed:RANK, or rotate for another in each iteration.",
        ),
        OptionRow(
            "--file",
            metavar="PATH",
            required=True,
            feature="file",
            help="The file, on the file system to be measured; it must not exist.",
        ),
        OptionRow(
            "--file-sync/--no-file-sync",
            default=True,
            feature="file_sync",
            help="Flush the data to disk (MPI_File_sync) in every iteration, or leave it to the "
            "page cache.",
        ),
        OptionRow(
            *("--spawn-count", "spawned"),
            **count(1),
            default=1,
            feature="spawned",
            help="Processes to spawn.",
        ),
        OptionRow("--node-map", **NODES, feature="nodes"),
        OptionRow(
            "--split",
            type=SPLIT,
            metavar="N|mod:N|node|RANKS,…",
            feature="split",
            overhead=False,
            help="Measure groups of ranks at the same time: N equal ones, by rank modulo N, one "
            "for each node, or as named: 0-3,4-7.",
        ),
        OptionRow(
            "--congestor",
            type=CONGESTOR,
            metavar="BENCHMARK[:SIZE]",
            feature="split",
            overhead=False,
            help="Measure the first group of --split (by default mod:2) alone, and while all "
            "others run BENCHMARK with messages of SIZE bytes (64K).",
        ),
        OptionRow(
            "--rounds",
            **count(1),
            show_default="10",
            feature="split",
            overhead=False,
            help="Turns of --congestor, each alone and congested; at least 6 for an interval.",
        ),
        OptionRow(
            *("--operation", "operations"),
            type=click.Choice(OPERATIONS),
            multiple=True,
            show_default="each of them",
            feature="operations",
            help="The operation that reports the failed rank; repeat it for several.",
        ),
        OptionRow(
            "--victims",
            type=VICTIMS,
            show_default="the last rank",
            metavar="RANK,…|node",
            feature="victims",
            help="The ranks that are killed (SIGKILL) at once, or all ranks of the last node.",
        ),
        OptionRow(
            "--failures",
            **count(1),
            default=1,
            feature="victims",
            help="How often ranks are killed, one time after the other.",
        ),
    ),
    "How it is sampled": (
        OptionRow(
            *("-i", "--iterations"),
            **count(1),
            unplanned=False,
            help="Timed iterations per message size.",
        ),
        OptionRow(
            *("-i", "--iterations"),
            **count(1),
            feature="repeated",
            help="Timed iterations of each part that can be repeated.",
        ),
        OptionRow(
            *("-x", "--warmup"),
            **count(0),
            feature="repeated",
            help="Iterations before the timed ones.",
        ),
        OptionRow(
            *("-x", "--warmup"),
            type=WARMUP,
            metavar="N|auto",
            unplanned=False,
            help="Iterations before the timed ones; auto: until the median settles.",
        ),
        OptionRow(
            "--precision",
            type=PRECISION,
            metavar="P%",
            unplanned=False,
            overhead=False,
            help="Stop a size once the median is known to within ±P % at 95 % confidence.",
        ),
        OptionRow(
            "--max-time",
            **seconds(),
            unplanned=False,
            overhead=False,
            help="Stop timing a size after SECONDS.",
        ),
        OptionRow(
            "--max-iterations",
            **count(1),
            show_default=str(MAX_ITERATIONS),
            unplanned=False,
            overhead=False,
            help="Upper limit of iterations per size with --precision.",
        ),
        OptionRow(
            "--sync",
            type=click.Choice(["barrier", "clock"]),
            default="barrier",
            feature="sync",
            help="Keep ranks together by a barrier after each iteration, or by a common start "
            "time.",
        ),
        OptionRow(
            "--cold",
            is_flag=True,
            sized=True,
            unplanned=False,
            help="Flush the caches before each iteration.",
        ),
        OptionRow(
            "--timeout",
            **seconds(),
            help="End the job when a rank makes no progress for SECONDS (at the start or within "
            "one size).",
        ),
    ),
    "Data and checks": (
        OptionRow(
            *("-T", "--type", "types"),
            multiple=True,
            metavar="TYPE",
            sized=True,
            help="Element type: mpi_char, mpi_int, mpi_float, a NumPy name, or all. Repeatable.",
        ),
        OptionRow(
            *("-c", "--validation", "validation"),
            type=VALIDATION_LOG,
            metavar="[log[:DIR]]",
            sized=True,
            overhead=False,
            help="Check the data on every rank in every iteration; -clog:DIR logs all errors.",
        ),
        OptionRow(
            *("-u", "--validation-warmup"),
            **count(0),
            default=5,
            sized=True,
            overhead=False,
            help="Untimed calls before each checked one.",
        ),
        OptionRow(
            *("-D", "--ddt", "layout"),
            type=LAYOUT,
            default=CONTIGUOUS,
            show_default=False,
            metavar="LAYOUT",
            feature="layout",
            help="Layout of the elements: cont, vect:STRIDE:BLOCK or indx:FILE.",
        ),
    ),
    "Where the data lives": (
        OptionRow(
            "--buffer",
            type=MEMBER_NAME,
            default="numpy",
            metavar="NAME",
            help="Buffer library: see omb-py list.",
        ),
        OptionRow(
            *("--device", "devices"),
            type=DEVICES,
            default=(),
            show_default="all visible",
            metavar="N,N,…",
            help="Devices that the ranks of a node use round-robin.",
        ),
        OptionRow(
            "--managed",
            is_flag=True,
            sized=True,
            help="Managed memory, whose pages migrate between host and device.",
        ),
        OptionRow(
            "--gpu-aware",
            type=click.Choice(["auto", "yes", "no"]),
            default="auto",
            sized=True,
            help="Whether MPI accepts device memory; auto asks the library. Forcing yes on a "
            "library that is not GPU-aware crashes the job.",
        ),
        OptionRow(
            "--staging",
            is_flag=True,
            sized=True,
            help="Copy device messages through page-locked host memory, inside the timed part.",
        ),
        OptionRow(
            "--stream-sync",
            is_flag=True,
            sized=True,
            help="Synchronize the device's stream before each iteration's calls, inside the timed "
            "part.",
        ),
        OptionRow(
            *("-b", "--buffer-num"),
            type=click.Choice(["single", "multiple"]),
            default="single",
            feature="buffer_num",
            help="One buffer for all messages of a window, or one for each.",
        ),
        OptionRow(
            *("-M", "--mem-limit", "memory_limit"),
            type=BYTES,
            default=512 * MEBIBYTE,
            show_default="512M",
            metavar="BYTES",
            sized=True,
            help="Memory that one process may use for messages.",
        ),
        OptionRow(
            *("-d", "--accelerator"), callback=refuse_accelerator, expose_value=False, hidden=True
        ),
    ),
    "How MPI is called": (
        OptionRow(
            "--binding",
            type=MEMBER_NAME,
            default="buffer",
            metavar="NAME",
            unplanned=False,
            overhead=False,
            help="Kind of call: see omb-py list.",
        ),
        OptionRow(
            "--send-mode",
            type=click.Choice(SEND_MODES),
            default="standard",
            feature="send_mode",
            help="MPI's send mode: MPI_Send, Ssend, Bsend or Rsend.",
        ),
        OptionRow(
            *("-w", "--win-options", "window_kind"),
            type=click.Choice(WINDOW_KINDS),
            show_default="allocate; on a device create",
            feature="window_kind",
            help="How the RMA window is created.",
        ),
        OptionRow(
            *("-s", "--sync-option", "window_sync"),
            type=click.Choice(PASSIVE + ACTIVE),
            default="flush",
            feature="window_sync",
            help="How RMA operations are completed.",
        ),
        OptionRow(
            *("-s", "--sync-option", "window_sync"),
            type=click.Choice(ACTIVE),
            default="pscw",
            feature="active_sync",
            help="How RMA operations are completed.",
        ),
        OptionRow(
            *("-l", "--in-place"), is_flag=True, feature="in_place", help="Use MPI_IN_PLACE."
        ),
        OptionRow(
            *("--coll-algorithm", "library_algorithm"),
            metavar="NAME",
            feature="library_algorithm",
            overhead=False,
            help="The MPI library's algorithm, as in ring; see omb-py list --algorithms. default "
            "leaves the choice to the library.",
        ),
        OptionRow(
            "--verify-algorithm",
            is_flag=True,
            feature="library_algorithm",
            overhead=False,
            help="Instead of timing, count the messages of one call per size and compare them with "
            "those of --coll-algorithm.",
        ),
        OptionRow(
            *("--p2p-algorithm", "algorithm"),
            type=OwnAlgorithm(),
            show_default="library",
            feature="algorithm",
            overhead=False,
            help="Replace the collective call by this algorithm made of point-to-point messages: "
            "omb-py list --algorithms.",
        ),
        OptionRow(
            "--segment",
            type=BYTES,
            show_default="64K",
            metavar="BYTES",
            feature="algorithm",
            overhead=False,
            help="Segment size for segmented algorithms selected with --p2p-algorithm.",
        ),
        OptionRow("--node-map", **NODES, feature="node_map", overhead=False),
        OptionRow(
            "--pickle-protocol",
            type=WholeNumber(0, HIGHEST_PROTOCOL),
            metavar="N",
            unplanned=False,
            help="Protocol of bindings that pickle; mpi4py's default is the latest.",
        ),
        OptionRow(
            "--backend",
            metavar="NAME",
            unplanned=False,
            help="Backend of binding torch: gloo, nccl, mpi, ucc or another that this torch has; "
            "default gloo, for memory on a device nccl.",
        ),
        OptionRow(
            "--event-loop",
            type=click.Choice(["asyncio", "uvloop"]),
            show_default="asyncio",
            unplanned=False,
            help="Event loop of bindings with coroutines.",
        ),
        OptionRow(
            "--progress-mode",
            type=click.Choice(["busy", "poll", "poller", "thread"]),
            show_default="poll",
            unplanned=False,
            help="Who tests MPI requests for binding coroutine: each coroutine, without letting "
            "others run (busy) or in turn (poll), one task for all, or a thread.",
        ),
        OptionRow(
            "--in-flight",
            type=WholeNumber(min=1),
            show_default="1",
            metavar="N",
            unplanned=False,
            help="Ping-pongs at once in an iteration, each a coroutine, for binding coroutine.",
        ),
        OptionRow(
            "--grpc-call",
            type=click.Choice(["unary", "stream"]),
            show_default="unary",
            unplanned=False,
            help="For binding grpc: a call for each message, or one for all to a rank.",
        ),
        OptionRow(
            "--interface",
            metavar="NAME",
            unplanned=False,
            help="Network interface for connections between hosts, of bindings over sockets.",
        ),
        OptionRow(
            "--object",
            type=click.Choice(["bytes", "list", "dict", "arrays", "dataframe"]),
            unplanned=False,
            help="What bindings that pickle send, with as many bytes: default the buffer's array.",
        ),
        OptionRow(
            "--thread-level",
            type=click.Choice(THREAD_LEVELS),
            default="single",
            help="Thread support level to request from MPI; native OMB requests single.",
        ),
        OptionRow(
            *("-I", "--session"), is_flag=True, help="Initialize MPI through an MPI-4 session."
        ),
    ),
    "Output": (
        OptionRow(
            *("-o", "--output"),
            metavar="FILE",
            help="Append rows to this .csv or .json file, each as soon as it is measured.",
        ),
        OptionRow(
            "--samples",
            metavar="FILE",
            unplanned=False,
            overhead=False,
            help="Keep the time and the start of every timed iteration in this .parquet or .npy "
            "file.",
        ),
        OptionRow(
            "--force",
            is_flag=True,
            help="Overwrite the files of --output and --samples instead of appending to them.",
        ),
        OptionRow(
            "--format",
            type=click.Choice(FORMATS),
            default="text",
            help="Format of standard output; text is native OMB's layout.",
        ),
        OptionRow(*("-q", "--quiet"), is_flag=True, help="Print nothing on standard output."),
        OptionRow(
            "--progress",
            type=click.Choice(["auto", "on", "off"]),
            default="auto",
            help="Show how far it is, on stderr: auto as the last line of a terminal, on elsewhere "
            "too, as a line now and then.",
        ),
        OptionRow(
            *("-G", "--graph"),
            type=Graphs(),
            default=(),
            show_default=False,
            metavar="tty,png,svg,pdf",
            help="Draw the results in the terminal, or as BENCHMARK.png (...) in this folder.",
        ),
        OptionRow(
            *("--stats", "statistics"),
            is_flag=True,
            unplanned=False,
            overhead=False,
            help="Also print median, its 95 % confidence interval, standard deviation, minimum, "
            "maximum and iterations.",
        ),
        OptionRow(
            *("-f", "--full"),
            is_flag=True,
            feature="full",
            overhead=False,
            help="Also print the ranks' minimum and maximum, and the iterations.",
        ),
        OptionRow(
            *("-z", "--tail-lat", "percentiles"),
            type=PERCENTILES,
            metavar="[P,P,…]",
            default=(),
            show_default=False,
            unplanned=False,
            overhead=False,
            help="Also print percentiles, attached to the letter: -z50,90,99.9. Without a list: "
            "50,90,99.",
        ),
        OptionRow(
            *("--busbw", "bus"),
            is_flag=True,
            feature="bus",
            overhead=False,
            help="Also print algorithm and bus bandwidth, as nccl-tests defines them.",
        ),
        OptionRow(
            *("-R", "--print-rate"),
            type=click.BOOL,
            default=True,
            metavar="0|1",
            feature="print_rate",
            overhead=False,
            help="Whether to print the message rate.",
        ),
        OptionRow(
            *("--label", "variant"),
            type=LABEL,
            metavar="TEXT",
            help="A label for settings outside omb-py, such as UCX_TLS=tcp; kept in the results.",
        ),
        OptionRow("--debug", is_flag=True, help="Show tracebacks of errors."),
    ),
}
"""The rows by the heading under which the help shows them, what matters most first."""


def parameters(benchmark: Benchmark, overhead: bool = False) -> list[click.Parameter]:
    """The click parameters of a benchmark, buffer placement included where it has one.

    For a comparison of bindings (``overhead``), those that have a meaning there.
    """
    found: list[click.Parameter] = [
        one.option(group, benchmark.preset)
        for group, rows in TABLE.items()
        for one in rows
        if one.applies(benchmark) and (one.overhead or not overhead)
    ]
    if "placement" in benchmark.options:
        places = click.Choice(["H", "D", "MH", "MD"])
        found.append(
            click.Argument(["placement"], type=places, nargs=-1, metavar="[SOURCE DESTINATION]")
        )
    return found


def shared_options(names: frozenset[str]) -> list[Option]:
    """The options whose values are called ``names``, as every benchmark has them."""
    options = (one.option(group) for group, rows in TABLE.items() for one in rows)
    return [option for option in options if option.name in names]
