"""The one table of all columns of results: name, type, meaning and role.

From it follow the rows, the order of columns in files, the columns that distinguish rows, the text
of ``help(omb_py.load)`` and the tables of docs/results.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NamedTuple, TypeVar


class Column(NamedTuple):
    """A column of results.

    ``kinds`` has letters of the rows that have it: ``b`` of benchmarks, ``o`` of `omb-py overhead`,
    ``p`` of `omb-py pairs`, ``l`` if `omb_py.load` adds it to all of them. ``type`` is ``int``,
    ``float``, ``bool`` or ``str``, ``unit`` is empty without a unit, ``meaning`` is Markdown.
    ``role`` is the use of a column. ``experiment`` identifies the experiment: rows that differ
    there, or in ``size``, are never compared. ``configuration`` is the way of measuring, which
    lines of a figure distinguish and which a comparison may be about. ``value`` and ``statistic``
    are results, ``effort`` is the number and care of the repeats, ``run`` the origin of a row, and
    ``detail`` follows from other columns or is only informative.
    """

    name: str
    kinds: str
    type: str
    unit: str
    role: str
    meaning: str


# fmt: off
TABLE = (
    ("run", "bop", "str", "", "run",
     "name of the run: start in UTC and six random digits; the same in the metadata"),
    ("benchmark", "bop", "str", "", "experiment", "name, as in `omb-py list`"),
    ("bytes", "bop", "int", "B", "size", "message size; empty for a barrier"),
    ("part", "b", "str", "", "experiment",
     "the part that the row measures: `topology creation`, or a part of the start or of a "
     "[failure](failures.md); empty for the whole"),
    ("payload_bytes", "b", "int", "B", "detail",
     "bytes of a message that travel: fewer than `bytes` with gaps in the layout or unequal parts"),
    ("ranks", "bop", "int", "", "experiment",
     "ranks of the job, with `--split` of the group, of `omb-py run` those that measured"),
    ("hosts", "l", "int", "", "experiment",
     "number of hosts of the ranks, or of those of the `group`"),
    ("dtype", "b", "str", "", "detail", "NumPy's name of the element type"),
    ("mpi_type", "bop", "str", "", "experiment",
     "MPI's name of the element type; of `elements` that the library lacks, of the type that it "
     "was passed"),
    ("window", "bop", "int", "", "experiment", "messages in flight"),
    ("elements", "bop", "str", "", "experiment",
     "`float16`, `bfloat16` or `float8` of `-T`, whose `mpi_type` depends on the library; empty "
     "for others"),
    ("pairs", "b", "int", "", "experiment", "pairs of ranks, for point-to-point"),
    ("root", "b", "str", "", "experiment", "a rank or `rotate`, for gather, scatter and reduce"),
    ("in_place", "b", "bool", "", "experiment",
     "whether MPI_IN_PLACE was used; empty without the choice"),
    ("layout", "b", "str", "", "experiment", "`-D`; empty without the choice"),
    ("topology", "b", "str", "", "experiment", "`-N` of neighbourhood collectives"),
    ("window_kind window_sync", "b", "str", "", "experiment",
     "`-w` and `-s` of one-sided benchmarks"),
    ("target_busy_us", "b", "float", "us", "experiment",
     "`--target-busy` ([definition](definitions.md#a-busy-target)): how long the other rank "
     "computes in each iteration; empty without"),
    ("offset", "b", "int", "B", "experiment",
     "`--offset`: how far after a page messages begin; empty for 0"),
    ("skew", "b", "str", "", "experiment",
     "`--skew` or `--matrix`: how blocks differ ([definition](definitions.md#unequal-blocks)); "
     "empty for equal ones"),
    ("test_calls", "b", "int", "", "experiment", "`-t` of non-blocking collectives"),
    ("compute_target", "b", "str", "", "experiment", "`-r` of non-blocking collectives"),
    ("partitions", "b", "int", "", "experiment", "parts of a partitioned message"),
    ("failed", "b", "int", "", "experiment",
     "ranks that were killed, of [`ft_*`](failures.md)"),
    ("threads", "b", "str", "", "experiment",
     "threads (or forked processes) of the sending and of the receiving side, as `1:2`"),
    ("nodes", "b", "int", "", "experiment",
     "nodes of a congestion benchmark, or of `--p2p-algorithm hierarchical`"),
    ("split", "bo", "str", "", "experiment",
     "`--split` ([groups](pairs.md#groups-of-ranks)), of [`omb-py gate`](accept.md) `node`, "
     "`pairs` or `halves`; empty without. Of `omb-py overhead`: the name of the difference of the "
     "two bindings; empty for the comparison of each with the first"),
    ("file_sync", "b", "bool", "", "experiment",
     "whether a sync follows each write to a file, inside the time "
     "([definition](definitions.md#files)); empty for other benchmarks"),
    ("per_rank", "b", "bool", "", "experiment",
     "whether each rank had a file of its own (`--per-rank`); empty for other benchmarks"),
    ("validated", "l", "bool", "", "experiment", "whether data was checked"),
    ("suite", "l", "str", "", "configuration",
     "the program that measured: `omb-py 1.0.0`, `OSU 7.4`, `IMB 2021.11`"),
    ("mpi", "l", "str", "", "configuration", "MPI library and version"),
    ("buffer binding", "bop", "str", "", "configuration",
     "the place of the bytes; the way in which MPI is called"),
    ("base", "o", "str", "", "detail", "the binding that `binding` is compared with"),
    ("placement", "bop", "str", "", "configuration",
     "place of messages in native OMB's letters: `H` host, `D` device, `M` managed; of both ends "
     "if they were named (`D H`)"),
    ("staged", "bo", "bool", "", "configuration",
     "whether messages on a device were copied through the host, inside the time; empty if no "
     "message is on a device"),
    ("stream_sync", "b", "bool", "", "configuration",
     "whether each iteration waited for the device's stream, inside the time; empty likewise"),
    ("thread_comm", "b", "str", "", "configuration",
     "`--thread-comm`: `one` communicator for all threads, or one for `each`; empty without "
     "threads"),
    ("sync", "b", "str", "", "configuration",
     "how ranks keep together between iterations, `barrier` or `clock`; empty if they do not"),
    ("cold", "b", "bool", "", "configuration",
     "true if `--cold` flushed caches before each iteration"),
    ("library_algorithm", "b", "str", "", "configuration",
     "the word of `--coll-algorithm` ([algorithms](algorithms.md)), `default` if the library's "
     "own choice was requested; empty without the option"),
    ("algorithm", "bo", "str", "", "configuration",
     "the word of `--p2p-algorithm` ([own algorithms](algorithms.md#point-to-point-algorithms)), "
     "`library` if the library's call was requested by name; empty without the option. Of "
     "`omb-py overhead`: also the algorithm with which a point-to-point binding makes the "
     "collective"),
    ("segment", "b", "int", "B", "configuration",
     "segment size of `--p2p-algorithm pipelined_chain`; empty for other algorithms"),
    ("group", "b", "str", "", "configuration",
     "the ranks in the job, as `0-3`, `0-6:2` (every second) or `0-1+4-5`, of a group of `--split` "
     "and of what `omb-py run` measures on some of its ranks ([one launch](run.md))"),
    ("congestor", "b", "str", "", "configuration",
     "`--congestor` ([congestion](pairs.md#victim-and-congestor)) as `alltoall:65536`, `none` for "
     "the times alone; empty without"),
    ("variant", "bop", "str", "", "configuration",
     "the text of `--label`: your own name for what else was chosen, such as `UCX_TLS=tcp`; "
     "without it, the binding's `--backend`, as `backend gloo`"),
    ("mpi4py python numpy", "l", "str", "", "configuration",
     "their versions, of omb-py's own runs; NumPy's if the buffer needs it"),
    ("source", "l", "str", "", "configuration",
     "the file's name if rows of other files are not "
     "[repeated runs](reading.md#values-missing-in-native-omb) of it"),
    ("thread_level", "o", "str", "", "detail", "the level that MPI granted"),
    ("sender receiver", "p", "int", "", "detail",
     "ranks of the pair; the sender begins a ping-pong, and sends a bandwidth's window"),
    ("sender_host receiver_host", "p", "str", "", "detail", "their hosts"),
    ("by", "p", "str", "", "detail",
     "the place that each rank represents: `rank`, `node`, `socket` or `device`"),
    ("alone", "p", "bool", "", "detail", "whether all other links were idle"),
    ("latency_us", "bp", "float", "us", "value",
     "latency ([definitions](definitions.md)), of `omb-py pairs` from `median_us`; empty for "
     "bandwidths"),
    ("latency_min_us latency_max_us", "b", "float", "us", "value",
     "mean of the fastest and of the slowest rank"),
    ("bandwidth_MBps", "bp", "float", "MB/s", "value",
     "bandwidth in 10^6 bytes per second, of `omb-py pairs` from `median_us`; empty for latencies"),
    ("messages_per_s", "b", "float", "1/s", "value",
     "messages per second over the whole job; empty for latencies"),
    ("algbw_GBps busbw_GBps", "b", "float", "GB/s", "value",
     "algorithm and bus bandwidth of a collective in 10^9 bytes per second, as nccl-tests defines "
     "them"),
    ("median_us", "op", "float", "us", "value",
     "median over the rounds of `omb-py overhead`, of a latency or of one message of a window; of "
     "`omb-py pairs` over the repeats, of one message of a latency or of a whole window"),
    ("p99_us", "p", "float", "us", "value", "median over the repeats of their 99th percentiles"),
    ("min_us", "p", "float", "us", "value", "minimum of all iterations of all repeats"),
    ("base_us", "o", "float", "us", "value", "`median_us` of `base`"),
    ("added_us added_low_us added_high_us", "o", "float", "us", "value",
     "median over the rounds of the rounds' differences, and its 95 % interval"),
    ("ratio ratio_low ratio_high", "o", "float", "", "value",
     "the same of their quotients; it differs from `median_us` over `base_us` if the machine "
     "changed its speed between rounds"),
    ("overall_us overall_p50_us", "b", "float", "us", "value",
     "mean and median time of a non-blocking call with computing in it; `latency_us` and "
     "`sample_*` are then of the communication alone"),
    ("compute_us compute_p50_us", "b", "float", "us", "value", "the same of the computing alone"),
    ("start_us test_us wait_us", "b", "float", "us", "value",
     "means of the parts: starting the call, MPI_Test, MPI_Wait"),
    ("overlap_percent", "b", "float", "%", "value", "part of the communication that computing hid"),
    ("impact impact_low impact_high", "b", "float", "", "value",
     "congestion impact factor: congested over alone, median over the rounds of the quotients of "
     "their medians, and its 95 % interval; in rows with a congestor"),
    ("impact_p99 impact_p99_low impact_p99_high", "b", "float", "", "value",
     "the same of the rounds' 99th percentiles"),
    ("cpu_us", "b", "float", "us", "value",
     "CPU time of one iteration and of what keeps ranks together after it, mean over the ranks; "
     "empty for `native` and with `-c`"),
    ("sample_mean_us sample_stddev_us sample_min_us sample_p50_us sample_p90_us sample_p95_us "
     "sample_p99_us sample_p999_us sample_max_us", "b", "float", "us", "statistic",
     "statistics of one iteration's value: half a round trip, a window, or a call's mean over the "
     "ranks; `p999` is 99.9 %"),
    ("median_low_us median_high_us", "b", "float", "us", "statistic",
     "95 % confidence interval of the median, wider where "
     "[samples depend](statistics.md#dependent-samples) on each other; empty below 6 independent "
     "samples"),
    ("slowest_mean_us slowest_p50_us slowest_p99_us slowest_max_us", "b", "float", "us",
     "statistic", "of the slowest rank of each iteration, if several ranks time"),
    ("event_mean_us event_p50_us", "b", "float", "us", "statistic",
     "the same samples by events on the device, for bindings `nccl` and `torch`"),
    ("queued_mean_us queued_p50_us", "b", "float", "us", "statistic",
     "of the same samples, the time to start the work before the wait, for bindings `nccl` and "
     "`torch`"),
    ("completion_mean_us completion_p50_us completion_p99_us", "b", "float", "us", "statistic",
     "with `--sync clock`, the time from the first rank's entry to the last rank's exit"),
    ("percentiles", "b", "str", "", "statistic",
     "those requested with `-z`, as `p50=1.2 p99.9=3.4`, in the unit of the benchmark's value"),
    ("iterations", "bop", "int", "", "effort",
     "timed iterations; of `omb-py overhead` in all rounds together, of `omb-py pairs` of each "
     "pair in each repeat"),
    ("warmup", "bp", "int", "", "effort",
     "untimed iterations before them (with `-c`: before each)"),
    ("rounds", "bo", "int", "", "effort",
     "turns of `--congestor`, each alone and congested, or of each binding of `omb-py overhead`"),
    ("repeats", "p", "int", "", "effort", "number of measurements of all pairs"),
    ("congestor_iterations", "b", "int", "", "effort",
     "fewest iterations that a group of congestors made meanwhile"),
    ("late_starts", "b", "int", "", "effort",
     "iterations that a rank began over 1 us late, with `--sync clock`"),
    ("clock_error_us", "b", "float", "us", "effort",
     "bound of the error of the clocks' comparison, maximum of any rank; 0 if all share one"),
    ("validation", "b", "str", "", "effort",
     "`Pass` or `Fail` with `-c`; empty without, and if no data arrives that could be checked"),
    ("stopped_s", "b", "float", "s", "effort",
     "seconds for which ranks were stopped meanwhile, and again when the row was measured again: a "
     "suspended job, or a machine that slept; empty for all other rows"),
    ("host_names", "l", "str", "", "run", "names of the hosts of the ranks, in order"),
    ("file", "l", "str", "", "run", "file of the row"),
    ("line", "l", "int", "", "run", "line of the row in the file"),
)
"""Names that share a meaning, the kinds of rows, type, unit, role, and the meaning."""
# fmt: on

COLUMNS = {name: Column(name, *others) for names, *others in TABLE for name in names.split()}
"""Every column by its name."""

CONFIGURATION = tuple(n for n, one in COLUMNS.items() if one.role == "configuration")
"""Columns of the way of measuring: lines of a figure differ there; comparisons may be about
them."""

EXPERIMENT = tuple(n for n, one in COLUMNS.items() if one.role == "experiment")
"""Columns of the experiment: rows that differ there, or in message size, are never compared."""

IDENTITY = (*EXPERIMENT, *CONFIGURATION)
"""Columns in which rows of different things differ; message size comes on top."""

SOFTWARE = ("mpi4py", "python", "numpy")
"""Columns of versions around MPI, which metadata have too: they are named where rows differ."""

LOADED = tuple(n for n, one in COLUMNS.items() if one.kinds == "l")
"""Columns that `omb_py.load` adds."""

ORIGIN = {name: COLUMNS[name].type for name in ("suite", "mpi", "hosts", *SOFTWARE)}
"""The types of those that converted files have besides."""

KINDS = {name: one.type for name, one in COLUMNS.items() if one.kinds != "l"}
"""The types of the columns of files."""

Same = TypeVar("Same", bound="Record")


class Record:
    """Values by the names of columns, those that were measured: None is no value.

    Attributes are the ``columns`` of the kind, in the order of CSV: rows are added only to files
    that have the same. ``vars`` gives the values that are there. Raises `TypeError` for a name that
    is no column.
    """

    columns: ClassVar[tuple[str, ...]]

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            if name not in self.columns:
                raise TypeError(f"{type(self).__name__} has no column {name!r}")
            if value is not None:
                self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        if name in self.columns:
            return None
        raise AttributeError(f"{type(self).__name__} has no column {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed: it is frozen")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(frozenset(vars(self).items()))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"

    def replace(self: Same, **changes: Any) -> Same:
        """Return a copy in which some columns differ; None removes a value."""
        return type(self)(**vars(self) | changes)


class Row(Record):
    """A message size of a benchmark.

    ``percentiles`` are pairs of a percentage and a value; all else is of its column's type.
    """

    columns = tuple(name for name, one in COLUMNS.items() if "b" in one.kinds)


class OverheadRow(Record):
    """One line of `omb-py overhead`: what ``binding`` adds to ``base`` at a message size."""

    columns = tuple(name for name, one in COLUMNS.items() if "o" in one.kinds)


class PairRow(Record):
    """One line of `omb-py pairs`: a message size from one rank to another."""

    columns = tuple(name for name, one in COLUMNS.items() if "p" in one.kinds)


def percent_text(percent: float) -> str:
    """Return a percentage in all its digits, without an exponent.

    >>> percent_text(50.0), percent_text(99.99999), percent_text(0.00001)
    ('50', '99.99999', '0.00001')
    """
    text = repr(float(percent))
    if "e" in text:
        text = f"{percent:.20f}".rstrip("0")
    return text.removesuffix(".0")


def percentiles_text(percentiles: Iterable[tuple[float, float]]) -> str:
    """Return percentages and values as one text.

    >>> percentiles_text([(50.0, 1.25), (99.99999, 3.0)])
    'p50=1.25 p99.99999=3'
    """
    return " ".join(f"p{percent_text(percent)}={value:.9g}" for percent, value in percentiles)


def new_run() -> str:
    """Return a name for a run: its start in UTC and enough chance to make it unique."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.urandom(3).hex()}"


def groups(names: Iterable[str]) -> Iterator[tuple[list[str], Column]]:
    """Return the columns among ``names`` in the table's order, those of one meaning together."""
    wanted = set(names)
    for members, *_ in TABLE:
        if among := [name for name in members.split() if name in wanted]:
            yield among, COLUMNS[among[0]]


def described(names: Iterable[str]) -> str:
    """Return columns as plain text, each group with its meaning below it."""
    import re
    from textwrap import fill

    lines = []
    for members, one in groups(names):
        lines.append(fill(f"{', '.join(members)} ({kind_text(one)})", 80))
        meaning = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", one.meaning)
        lines.append(fill(meaning, 80, initial_indent="    ", subsequent_indent="    "))
    return "\n".join(lines)


def kind_text(column: Column) -> str:
    """Return a column's type, and its unit if it has one."""
    return f"{column.type}, {column.unit}" if column.unit else column.type
