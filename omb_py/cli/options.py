"""The options of benchmarks, one row each: native OMB's letters with long names, and ours."""

from __future__ import annotations

import click

from omb_py.benchmarks import Benchmark
from omb_py.cli.device_options import DEVICE_OPTIONS
from omb_py.cli.family_options import FAMILY_OPTIONS
from omb_py.cli.number_types import Seconds, WholeNumber
from omb_py.cli.option_row import BINDING, CALLS, CHECKING, FLAG, RESULTS, OptionRow, count
from omb_py.cli.output_options import OUTPUT_OPTIONS
from omb_py.cli.parameters import (
    Bytes,
    LayoutType,
    MemberName,
    Percentiles,
    Precision,
    Root,
    SizeList,
    SizeRange,
    ValidationLog,
    Variant,
    Warmup,
)
from omb_py.core.datatypes.layout import CONTIGUOUS
from omb_py.core.mpi import THREAD_LEVELS
from omb_py.core.options import MEBIBYTE, MOST_ITERATIONS

HIGHEST_PROTOCOL = 5
"""Of Python's pickle, as of 3.14; `pickle` itself is not loaded for it."""

TABLE: tuple[OptionRow, ...] = (
    OptionRow(
        ("-m", "--message-size"),
        {"type": SizeRange(), "help": "Message sizes in bytes: MIN, doubled up to MAX."},
        sized=True,
        varied=True,
    ),
    OptionRow(
        ("--sizes",),
        {"type": SizeList(), "help": "These message sizes, instead of doubled ones."},
        sized=True,
        varied=True,
    ),
    OptionRow(
        ("-i", "--iterations"),
        count(1) | {"help": "Timed iterations for every message size."},
        purpose=CALLS,
    ),
    OptionRow(
        ("-x", "--warmup"),
        {
            "type": Warmup(),
            "metavar": "N|auto",
            "help": "Iterations before the timed ones; auto: until the median settles.",
        },
        purpose=CALLS,
    ),
    OptionRow(
        ("--precision",),
        {
            "type": Precision(),
            "metavar": "P%",
            "help": "Stop a size when the median is known to P % either way with 95 % confidence.",
        },
        purpose=RESULTS,
    ),
    OptionRow(
        ("--max-time",),
        {
            "type": Seconds(min=0, min_open=True),
            "metavar": "SECONDS",
            "help": "Stop timing a size after so long.",
        },
        purpose=RESULTS,
    ),
    OptionRow(
        ("--max-iterations",),
        count(1)
        | {
            "show_default": str(MOST_ITERATIONS),
            "help": "The most iterations of a size that --precision may take.",
        },
        purpose=RESULTS,
    ),
    OptionRow(
        ("--sync",),
        {
            "type": click.Choice(["barrier", "clock"]),
            "default": "barrier",
            "help": "Ranks keep together by a barrier after each iteration, or by a common start.",
        },
        feature="sync",
    ),
    OptionRow(
        ("--stats", "statistics"),
        FLAG | {"help": "Also print median, its 95 % interval, deviation, extremes, iterations."},
        purpose=RESULTS,
    ),
    OptionRow(
        ("-f", "--full"),
        FLAG | {"help": "Also print the ranks' minimum and maximum, and the iterations."},
        feature="full",
        purpose=RESULTS,
    ),
    OptionRow(
        ("-z", "--tail-lat", "percentiles"),
        {
            "type": Percentiles(),
            "metavar": "[P,P,…]",
            "default": (),
            "show_default": False,
            "help": "Also print percentiles, attached to the letter: -z50,90,99.9. "
            "Without a list: 50,90,99.",
        },
        purpose=RESULTS,
    ),
    OptionRow(
        ("--busbw", "bus"),
        FLAG | {"help": "Also print algorithm and bus bandwidth, as nccl-tests defines them."},
        feature="bus",
        purpose=RESULTS,
    ),
    OptionRow(
        ("-c", "--validation", "validation"),
        {
            "type": ValidationLog(),
            "metavar": "[log[:DIR]]",
            "help": "Check the data on every rank in every iteration; -clog:DIR logs all faults.",
        },
        sized=True,
        purpose=CHECKING,
    ),
    OptionRow(
        ("-u", "--validation-warmup"),
        count(0) | {"default": 5, "help": "Untimed calls before each one checked."},
        sized=True,
        purpose=CHECKING,
    ),
    OptionRow(
        ("-W", "--window-size", "window"),
        count(1) | {"default": 64, "help": "Messages in flight before they are waited for."},
        feature="window",
    ),
    OptionRow(
        ("-V", "--vary-window"),
        FLAG | {"help": "A table over window sizes from 1 to 128."},
        feature="vary_window",
        purpose=RESULTS,
    ),
    OptionRow(
        ("-R", "--print-rate"),
        {
            "type": click.BOOL,
            "default": True,
            "metavar": "0|1",
            "help": "Print the message rate or not.",
        },
        feature="print_rate",
        purpose=RESULTS,
    ),
    OptionRow(
        ("-p", "--num-pairs", "pairs"),
        count(1) | {"help": "Pairs of ranks that exchange messages; all others stay idle."},
        feature="pairs",
    ),
    OptionRow(
        ("-b", "--buffer-num"),
        {
            "type": click.Choice(["single", "multiple"]),
            "default": "single",
            "help": "One memory for all messages of a window, or one for each.",
        },
        feature="buffer_num",
    ),
    OptionRow(
        ("-t", "--num-test-calls", "ignored_test_calls"),
        count(0) | {"help": "Accepted and without effect, as in native OMB's bw."},
        feature="test_calls",
    ),
    *FAMILY_OPTIONS,
    OptionRow(
        ("-T", "--type", "types"),
        {
            "multiple": True,
            "metavar": "TYPE",
            "help": "Element type: mpi_char, mpi_int, mpi_float, a NumPy name, or all. Repeatable.",
        },
        sized=True,
    ),
    OptionRow(
        ("-D", "--ddt", "layout"),
        {
            "type": LayoutType(),
            "default": CONTIGUOUS,
            "show_default": False,
            "metavar": "LAYOUT",
            "help": "Layout of the elements: cont, vect:STRIDE:BLOCK or indx:FILE.",
        },
        feature="layout",
    ),
    OptionRow(("-l", "--in-place"), FLAG | {"help": "Use MPI_IN_PLACE."}, feature="in_place"),
    OptionRow(
        ("-k", "--root-rank", "root"),
        {
            "type": Root(),
            "default": 0,
            "show_default": "fixed:0",
            "metavar": "ROOT",
            "help": "The root: fixed:RANK, or rotate for another in each iteration.",
        },
        feature="root",
    ),
    OptionRow(
        ("-M", "--mem-limit", "memory_limit"),
        {
            "type": Bytes(),
            "default": 512 * MEBIBYTE,
            "show_default": "512M",
            "metavar": "BYTES",
            "help": "Memory that one process may take for messages.",
        },
        sized=True,
    ),
    OptionRow(("-I", "--session"), FLAG | {"help": "Start MPI by an MPI-4 session."}),
    OptionRow(
        ("--buffer",),
        {
            "type": MemberName(),
            "default": "numpy",
            "metavar": "NAME",
            "help": "Where the bytes live: see omb-py list.",
        },
    ),
    *DEVICE_OPTIONS,
    OptionRow(
        ("--binding",),
        {
            "type": MemberName(),
            "default": "buffer",
            "metavar": "NAME",
            "help": "How MPI is called: see omb-py list.",
        },
        purpose=BINDING,
    ),
    OptionRow(
        ("--pickle-protocol",),
        {
            "type": WholeNumber(0, HIGHEST_PROTOCOL),
            "metavar": "N",
            "help": "Protocol of bindings that pickle; mpi4py takes the latest.",
        },
        purpose=CALLS,
    ),
    OptionRow(
        ("--variant",),
        {
            "type": Variant(),
            "metavar": "TEXT",
            "help": "A name for what else was chosen, such as UCX_TLS=tcp; kept in the results.",
        },
    ),
    *OUTPUT_OPTIONS,
    OptionRow(
        ("--thread-level",),
        {
            "type": click.Choice(THREAD_LEVELS),
            "default": "single",
            "help": "Thread support to ask MPI for; native OMB asks for single.",
        },
    ),
    OptionRow(
        ("--timeout",),
        {
            "type": Seconds(min=0, min_open=True),
            "metavar": "SECONDS",
            "help": "End the job when a rank makes no progress for so long (start, one size).",
        },
    ),
    OptionRow(("--debug",), FLAG | {"help": "Show tracebacks of errors."}),
)


def options_of(
    benchmark: Benchmark, without: frozenset[str] = frozenset()
) -> list[click.Parameter]:
    """The click parameters of one benchmark, buffer placement included where it has one.

    Options whose purpose is in ``without`` are left out.
    """
    parameters: list[click.Parameter] = [
        row.option(benchmark)
        for row in TABLE
        if row.applies(benchmark) and row.purpose not in without
    ]
    if "placement" in benchmark.options:
        places = click.Choice(["H", "D", "MH", "MD"])
        parameters.append(
            click.Argument(["placement"], type=places, nargs=-1, metavar="[SOURCE DESTINATION]")
        )
    return parameters
