"""ONE TABLE OF ALL COLUMNS of results: what each is called, holds and means, and what it is for.

From it follow the order of columns in files, which of them tell rows apart, what
``help(omb_py.load)`` says and the tables of docs/results.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omb_py.core.dataclass import dataclass
from omb_py.results.row import OverheadRow, PairRow, Row


@dataclass(frozen=True)
class Column:
    """A column of results.

    ``type`` is ``int``, ``float``, ``bool`` or ``str``, ``unit`` empty for what has none,
    ``meaning`` Markdown. ``role`` tells what a column is for: ``experiment`` what was measured:
    rows that differ there are never compared, as with the ``size`` on top; ``configuration`` how
    it was measured: what lines of a figure tell apart, and what a comparison may be about;
    ``value`` and ``statistic`` what came of it, ``effort`` how often and how carefully, ``run``
    where a row is from, and ``detail`` what follows from the others or is only good to know.
    """

    name: str
    type: str
    unit: str
    meaning: str
    role: str


# fmt: off
TABLE = (
    ("run", "str", "", "run",
     "name of the run: start in UTC and six random digits; the same in the metadata"),
    ("benchmark", "str", "", "experiment", "name, as in `omb-py list`"),
    ("part", "str", "", "experiment",
     "what a row is of where that is not the whole: `topology creation`, or a part of the start, "
     "of a [failure](recovery.md) or of a [checkpoint](checkpoint.md)"),
    ("bytes", "int", "B", "size", "message size; empty for a barrier"),
    ("payload_bytes", "int", "B", "detail",
     "bytes of a message that travel: fewer than `bytes` with gaps in the layout or unequal parts"),
    ("ranks", "int", "", "experiment", "ranks of the job, with `--split` of the group"),
    ("hosts", "int", "", "experiment", "how many hosts the ranks were on"),
    ("dtype", "str", "", "detail", "element type in NumPy's words"),
    ("mpi_type", "str", "", "experiment", "element type in MPI's words"),
    ("window", "int", "", "experiment", "messages in flight"),
    ("pairs", "int", "", "experiment", "pairs of ranks, for point-to-point"),
    ("root", "str", "", "experiment", "a rank or `rotate`, for gather, scatter and reduce"),
    ("in_place", "bool", "", "experiment",
     "whether MPI_IN_PLACE was used, where that is a choice"),
    ("layout", "str", "", "experiment", "`-D`, where that is a choice"),
    ("topology", "str", "", "experiment", "`-N` of neighbourhood collectives"),
    ("window_kind window_sync", "str", "", "experiment",
     "`-w` and `-s` of one-sided benchmarks"),
    ("test_calls", "int", "", "experiment", "`-t` of non-blocking collectives"),
    ("compute_target", "str", "", "experiment", "`-r` of non-blocking collectives"),
    ("partitions", "int", "", "experiment", "parts of a partitioned message"),
    ("failed", "int", "", "experiment", "ranks that were killed, of [`ft_*`](recovery.md)"),
    ("threads", "str", "", "experiment",
     "threads (or forked processes) of the sending and of the receiving side, as `1:2`"),
    ("nodes", "int", "", "experiment",
     "nodes of a congestion benchmark, or of `--p2p-algorithm hierarchical`"),
    ("split", "str", "", "experiment",
     "`--split` ([groups](groups.md)), empty without; of `omb-py overhead` what the two bindings "
     "tell apart, where that has a name, empty for the comparison of each with the first"),
    ("file_sync", "bool", "", "experiment",
     "whether MPI_File_sync follows each write to a file, or a sync each checkpoint, inside the "
     "time ([definition](definitions.md#files)); empty for other benchmarks"),
    ("validated", "bool", "", "experiment", "whether data was checked"),
    ("suite", "str", "", "configuration",
     "who measured: `omb-py 0.1.0`, `OSU 7.4`, `IMB 2021.11`"),
    ("mpi", "str", "", "configuration", "MPI library and version"),
    ("buffer binding", "str", "", "configuration",
     "where the bytes live, how MPI is called"),
    ("base", "str", "", "detail", "the binding that `binding` is compared with"),
    ("placement", "str", "", "configuration",
     "where messages lie, in native OMB's letters: `H` host, `D` device, `M` managed; of both "
     "ends where they were named (`D H`)"),
    ("staged", "bool", "", "configuration",
     "whether messages on a device were copied through the host, inside the time; empty where "
     "none lies there"),
    ("stream_sync", "bool", "", "configuration",
     "whether each iteration waited for the device's stream, inside the time; empty likewise"),
    ("send_mode", "str", "", "configuration", "`--send-mode`"),
    ("sync", "str", "", "configuration",
     "how ranks keep together between iterations, `barrier` or `clock`; empty where they do not"),
    ("cold", "bool", "", "configuration",
     "true where caches were flushed before each iteration, with `--cold`"),
    ("library_algorithm", "str", "", "configuration",
     "the word of `--coll-algorithm` ([algorithms](algorithms.md)), `default` where the library's "
     "own choice was asked for; empty without the option"),
    ("algorithm", "str", "", "configuration",
     "the word of `--p2p-algorithm` ([own algorithms](p2p-algorithms.md)), `library` where the "
     "library's call was asked for by name, empty without the option; of `omb-py overhead` also "
     "that by which a binding that only sends from rank to rank makes the collective"),
    ("segment", "int", "B", "configuration",
     "size of the segments that an own algorithm cuts messages into; empty where it cuts nothing"),
    ("group", "str", "", "configuration",
     "with `--split`, the group's ranks in the job, as `0-3`, `0-6:2` (every second) or `0-1+4-5`"),
    ("congestor", "str", "", "configuration",
     "`--congestor` ([congestion](congestion.md)) as `alltoall:65536`, `none` for the times alone; "
     "empty without"),
    ("variant", "str", "", "configuration",
     "the text of `--label`: your own name for what else was chosen, such as `UCX_TLS=tcp`; "
     "without one, the options of the binding, such as `event loop uvloop`"),
    ("source", "str", "", "configuration",
     "the file's name where rows of others are not "
     "[repeated runs](reading.md#what-native-omb-does-not-say) of it"),
    ("thread_level", "str", "", "detail", "the level that MPI granted"),
    ("sender receiver", "int", "", "detail",
     "ranks of the pair; the sender begins a ping-pong, and sends a bandwidth's window"),
    ("sender_host receiver_host", "str", "", "detail", "their hosts"),
    ("by", "str", "", "detail", "what each rank stands for: `rank`, `node`, `socket` or `device`"),
    ("alone", "bool", "", "detail", "whether all other links were idle"),
    ("latency_us", "float", "us", "value",
     "latency ([definitions](definitions.md)), of `omb-py pairs` from `median_us`; empty for "
     "bandwidths"),
    ("latency_min_us latency_max_us", "float", "us", "value",
     "mean of the fastest and of the slowest rank"),
    ("bandwidth_MBps", "float", "MB/s", "value",
     "bandwidth in 10^6 bytes per second, of `omb-py pairs` from `median_us`; empty for latencies"),
    ("messages_per_s", "float", "1/s", "value",
     "messages per second over the whole job; empty for latencies"),
    ("algbw_GBps busbw_GBps", "float", "GB/s", "value",
     "algorithm and bus bandwidth of a collective in 10^9 bytes per second, as nccl-tests defines "
     "them"),
    ("median_us", "float", "us", "value",
     "median over the rounds of `omb-py overhead`, of a latency or of one message of a window; of "
     "`omb-py pairs` over the repeats, of one message of a latency or of a whole window"),
    ("p99_us", "float", "us", "value", "median over the repeats of their 99th percentiles"),
    ("min_us", "float", "us", "value", "minimum of all iterations of all repeats"),
    ("base_us", "float", "us", "value", "`median_us` of `base`"),
    ("added_us added_low_us added_high_us", "float", "us", "value",
     "median over the rounds of the rounds' differences, and its 95 % interval"),
    ("ratio ratio_low ratio_high", "float", "", "value",
     "the same of their quotients, which is not the quotient of `median_us` and `base_us` where "
     "the machine changed its speed between rounds"),
    ("overall_us overall_p50_us", "float", "us", "value",
     "mean and median time of a non-blocking call with computing in it; `latency_us` and "
     "`sample_*` are then of the communication alone"),
    ("compute_us compute_p50_us", "float", "us", "value", "the same of the computing alone"),
    ("start_us test_us wait_us", "float", "us", "value",
     "means of the parts: starting the call, MPI_Test, MPI_Wait"),
    ("overlap_percent", "float", "%", "value", "how much of the communication computing hid"),
    ("impact impact_low impact_high", "float", "", "value",
     "congestion impact factor: congested over alone, median over the rounds of the quotients of "
     "their medians, and its 95 % interval; in rows with a congestor"),
    ("impact_p99 impact_p99_low impact_p99_high", "float", "", "value",
     "the same of the rounds' 99th percentiles"),
    ("cpu_us", "float", "us", "value",
     "CPU time of one iteration and of what keeps ranks together after it, mean over the ranks; "
     "empty for `native` and with `-c`"),
    ("sample_mean_us sample_stddev_us sample_min_us sample_p50_us sample_p90_us sample_p95_us "
     "sample_p99_us sample_p999_us sample_max_us", "float", "us", "statistic",
     "statistics of one iteration's value: half a round trip, a window, or a call's mean over the "
     "ranks; `p999` is 99.9 %"),
    ("median_low_us median_high_us", "float", "us", "statistic",
     "95 % confidence interval of the median, wider where "
     "[samples depend](statistics.md#dependent-samples) on each other; empty below 6 independent "
     "samples"),
    ("slowest_mean_us slowest_p50_us slowest_p99_us slowest_max_us", "float", "us", "statistic",
     "of the slowest rank of each iteration, where several ranks time"),
    ("event_mean_us event_p50_us", "float", "us", "statistic",
     "the same samples by events on the device, for bindings `nccl` and `torch`"),
    ("queued_mean_us queued_p50_us", "float", "us", "statistic",
     "of the same samples, how long starting the work took before it was waited for, for bindings "
     "`nccl` and `torch`"),
    ("completion_mean_us completion_p50_us completion_p99_us", "float", "us", "statistic",
     "with `--sync clock`, the time from the first rank's entry to the last rank's exit"),
    ("percentiles", "str", "", "statistic",
     "those asked for with `-z`, as `p50=1.2 p99.9=3.4`, in the unit of the benchmark's value"),
    ("iterations warmup", "int", "", "effort",
     "timed ones, and untimed ones before them (with `-c`: before each); of `omb-py overhead` in "
     "all rounds together, of `omb-py pairs` of each pair in each repeat"),
    ("rounds", "int", "", "effort",
     "turns of `--congestor`, each alone and congested, or of each binding of `omb-py overhead`"),
    ("repeats", "int", "", "effort", "how often all pairs were measured"),
    ("congestor_iterations", "int", "", "effort",
     "fewest iterations that a group of congestors made meanwhile"),
    ("late_starts", "int", "", "effort",
     "iterations that a rank began over 1 us too late, with `--sync clock`"),
    ("clock_error_us", "float", "us", "effort",
     "bound of the error of the clocks' comparison, maximum of any rank; 0 where all share one"),
    ("validation", "str", "", "effort",
     "`Pass` or `Fail` with `-c`; empty without, and where nothing arrives that could be checked"),
    ("file", "str", "", "run", "where the row is"),
    ("line", "int", "", "run", "in which line"),
)
"""Names that share a meaning, their type, unit, role, and the meaning."""
# fmt: on

COLUMNS = {
    name: Column(name, kind, unit, meaning, role)
    for names, kind, unit, role, meaning in TABLE
    for name in names.split()
}
"""Every column by its name."""

CONFIGURATION = tuple(n for n, one in COLUMNS.items() if one.role == "configuration")
"""How it was measured: what lines of a figure tell apart, and what a comparison may be about."""

EXPERIMENT = tuple(n for n, one in COLUMNS.items() if one.role == "experiment")
"""What was measured: rows that differ here are never compared. Message size comes on top."""

IDENTITY = (*EXPERIMENT, *CONFIGURATION)
"""Columns in which rows of different things differ; message size comes on top."""

LOADED = ("suite", "mpi", "hosts", "file", "line", "source", "validated")
"""Columns that `omb_py.load` adds: who measured, on which MPI library, on how many hosts, and where
it stands; the file again where rows of others are not its repeated runs (`sources.apart`); and
whether data was checked, which `-c` does, on caches that are cold."""

ORIGIN = {name: COLUMNS[name].type for name in LOADED[:3]}
"""Columns that converted files have besides: who measured, on which MPI library, on how many
hosts."""

KINDS = {
    name: COLUMNS[name].type for name in (*Row.columns, *OverheadRow.columns, *PairRow.columns)
}
"""What the columns of files hold."""


def groups(names: Iterable[str]) -> Iterator[tuple[list[str], Column]]:
    """The columns among ``names`` in the table's order, those of one meaning together."""
    wanted = set(names)
    for members, *_ in TABLE:
        if among := [name for name in members.split() if name in wanted]:
            yield among, COLUMNS[among[0]]


def described(names: Iterable[str]) -> str:
    """Columns as plain text, each group with its meaning below it."""
    import re
    from textwrap import fill

    lines = []
    for members, one in groups(names):
        lines.append(fill(f"{', '.join(members)} ({kind_text(one)})", 80))
        meaning = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", one.meaning)
        lines.append(fill(meaning, 80, initial_indent="    ", subsequent_indent="    "))
    return "\n".join(lines)


def tables() -> Iterator[str]:
    """The tables of docs/results.md: benchmarks, what is added, `omb-py overhead` and `pairs`."""
    above: set[str] = set()
    for names in (Row.columns, LOADED, OverheadRow.columns, PairRow.columns):
        rows = [(", ".join(name for name in names if name in above), "", "as above")]
        new = (name for name in names if name not in above)
        rows += [(", ".join(some), kind_text(one), one.meaning) for some, one in groups(new)]
        lines = [
            f"| `{some.replace(', ', '`, `')}` | {kind} | {meaning} |"
            for some, kind, meaning in rows
            if some
        ]
        yield "\n".join(["| column | holds | meaning |", "|---|---|---|", *lines])
        above.update(names)


def kind_text(column: Column) -> str:
    """A column's type and unit."""
    return f"{column.type}, {column.unit}" if column.unit else column.type
