"""What the columns of results mean, in the words of docs/results.md: for ``help(omb_py.load)``."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill

CONFIGURATION = (
    "suite",
    "mpi",
    "buffer",
    "binding",
    "placement",
    "staged",
    "stream_sync",
    "send_mode",
    "sync",
    "cold",
    "library_algorithm",
    "algorithm",
    "segment",
    "group",
    "congestor",
    "variant",
    "source",
)
"""How it was measured: what lines of a figure tell apart, and what a comparison may be about."""

EXPERIMENT = (
    "benchmark",
    "part",
    "ranks",
    "hosts",
    "mpi_type",
    "window",
    "pairs",
    "root",
    "in_place",
    "layout",
    "topology",
    "window_kind",
    "window_sync",
    "test_calls",
    "compute_target",
    "partitions",
    "failed",
    "threads",
    "nodes",
    "split",
    "file_sync",
    "validated",
)
"""What was measured: rows that differ here are never compared. Message size comes on top."""

IDENTITY = (*EXPERIMENT, *CONFIGURATION)
"""Columns in which rows of different things differ; message size comes on top."""

MEASURED = {
    "run": "name of the run: start in UTC and six random digits; the same in the metadata",
    "benchmark": "name, as in `omb-py list`",
    "bytes": "message size in bytes; empty for a barrier",
    "ranks": "ranks of the job, with `--split` of the group",
    "buffer, binding": "where the bytes live, how MPI is called",
    "placement": (
        "where messages lie, in native OMB's letters: `H` host, `D` device, `M` managed; of "
        "both ends where they were named (`D H`)"
    ),
    "staged": (
        "whether messages on a device were copied through the host, inside the time; empty "
        "where none lies there"
    ),
    "stream_sync": (
        "whether each iteration waited for the device's stream, inside the time; empty likewise"
    ),
    "dtype, mpi_type": "element type, in NumPy's and in MPI's words",
    "latency_us": "latency in microseconds (definitions); empty for bandwidths",
    "latency_min_us, latency_max_us": "mean of the fastest and of the slowest rank",
    "bandwidth_MBps": "bandwidth in 10^6 bytes per second; empty for latencies",
    "messages_per_s": "messages per second over the whole job; empty for latencies",
    "algbw_GBps, busbw_GBps": (
        "algorithm and bus bandwidth of a collective in 10^9 bytes per second, as nccl-tests "
        "defines them"
    ),
    "median_low_us, median_high_us": (
        "95 % confidence interval of the median, wider where samples depend on each other; empty "
        "below 6 independent samples"
    ),
    "slowest_mean_us, slowest_p50_us, slowest_p99_us, slowest_max_us": (
        "of the slowest rank of each iteration, where several ranks time"
    ),
    "sample_mean_us, sample_stddev_us, sample_min_us, sample_p50_us, sample_p90_us, "
    "sample_p95_us, sample_p99_us, sample_p999_us, sample_max_us": (
        "statistics of one iteration's value in microseconds: half a round trip, a window, or a "
        "call's mean over the ranks; `p999` is 99.9 %"
    ),
    "event_mean_us, event_p50_us": (
        "the same samples by events on the device, for bindings `nccl` and `torch`"
    ),
    "queued_mean_us, queued_p50_us": (
        "of the same samples, how long starting the work took before it was waited for, for "
        "bindings `nccl` and `torch`"
    ),
    "cpu_us": (
        "CPU time of one iteration and of what keeps ranks together after it, mean over the ranks, "
        "in microseconds; empty for `native` and with `-c`"
    ),
    "percentiles": (
        "those asked for with `-z`, as `p50=1.2 p99.9=3.4`, in the unit of the benchmark's value"
    ),
    "iterations, warmup": "timed ones, and untimed ones before them (with `-c`: before each)",
    "sync": (
        "how ranks keep together between iterations, `barrier` or `clock`; empty where they do not"
    ),
    "late_starts": "iterations that a rank began over 1 us too late, with `--sync clock`",
    "clock_error_us": (
        "bound of the error of the clocks' comparison, maximum of any rank; 0 where all share a "
        "clock"
    ),
    "completion_mean_us, completion_p50_us, completion_p99_us": (
        "with `--sync clock`, the time from the first rank's entry to the last rank's exit"
    ),
    "validation": (
        "`Pass` or `Fail` with `-c`; empty without, and where nothing arrives that could be checked"
    ),
    "payload_bytes": (
        "bytes of a message that travel: fewer than `bytes` with gaps in the layout or unequal "
        "parts"
    ),
    "window": "messages in flight",
    "pairs": "pairs of ranks, for point-to-point",
    "root": "a rank or `rotate`, for gather, scatter and reduce",
    "cold": "true where caches were flushed before each iteration, with `--cold`",
    "in_place": "whether MPI_IN_PLACE was used, where that is a choice",
    "layout": "`-D`, where that is a choice",
    "part": (
        "what a row is of where that is not the whole: `topology creation`, or a part of the "
        "start, of a failure or of a checkpoint"
    ),
    "overall_us, overall_p50_us": (
        "mean and median time of a non-blocking call with computing in it; `latency_us` and "
        "`sample_*` are then of the communication alone"
    ),
    "compute_us, compute_p50_us": "the same of the computing alone",
    "start_us, test_us, wait_us": "means of the parts: starting the call, MPI_Test, MPI_Wait",
    "overlap_percent": "how much of the communication computing hid",
    "test_calls, compute_target": "`-t` and `-r` of non-blocking collectives",
    "topology": "`-N` of neighbourhood collectives",
    "window_kind, window_sync": "`-w` and `-s` of one-sided benchmarks",
    "send_mode": "`--send-mode`",
    "partitions": "parts of a partitioned message",
    "threads": "threads (or forked processes) of the sending and of the receiving side, as `1:2`",
    "nodes": "nodes of a congestion benchmark, or of `--p2p-algorithm hierarchical`",
    "library_algorithm": (
        "the word of `--coll-algorithm` (algorithms), `default` where the library's own choice "
        "was asked for; empty without the option"
    ),
    "algorithm": (
        "the word of `--p2p-algorithm` (own algorithms), `library` where the library's call was "
        "asked for by name; empty without the option"
    ),
    "segment": (
        "bytes of the segments that an own algorithm cuts messages into; empty where it cuts "
        "nothing"
    ),
    "file_sync": (
        "whether MPI_File_sync follows each write to a file, or a sync each checkpoint, inside the "
        "time (definition); empty for other benchmarks"
    ),
    "variant": (
        "the text of `--label`: your own name for what else was chosen, such as `UCX_TLS=tcp`; "
        "without one, the options of the binding, such as `progress mode thread`"
    ),
    "files, files_min, files_max": (
        "files that a part of the start opened, of `import_time`: mean, minimum and maximum of "
        "a rank"
    ),
    "failed": "ranks that were killed, of `ft_*`",
    "split, group": (
        "`--split` (groups), and the group's ranks in the job, as `0-3`, `0-6:2` (every second) or "
        "`0-1+4-5`; empty without"
    ),
    "congestor, congestor_iterations": (
        "`--congestor` (congestion) as `alltoall:65536`, `none` for the times alone, and the "
        "fewest iterations that a group of congestors made meanwhile; empty without"
    ),
    "rounds": "turns of `--congestor`, each alone and congested",
    "impact, impact_low, impact_high": (
        "congestion impact factor: congested over alone, median over the rounds of the quotients "
        "of their medians, and its 95 % interval; in rows with a congestor"
    ),
    "impact_p99, impact_p99_low, impact_p99_high": "the same of the rounds' 99th percentiles",
}
"""Of each row of a benchmark: the meaning by names, which commas separate."""

LOADED = {
    "suite": "who measured: `omb-py 0.1.0`, `OSU 7.4`, `IMB 2021.11`",
    "mpi": "MPI library and version",
    "hosts": "how many",
    "file, line": "where the row is",
    "source": "the file's name where rows of others are not repeated runs of it",
    "validated": "whether data was checked",
}
"""What `omb_py.load` adds."""

OVERHEAD = {
    "run, benchmark, bytes, ranks, buffer, placement, staged, mpi_type, window, variant": (
        "as above"
    ),
    "binding, base": "what is compared with what",
    "algorithm": (
        "our algorithm, by which a binding that only sends from rank to rank makes the collective"
    ),
    "split": (
        "what the two tell apart, where that has a name; empty for the comparison of every "
        "binding with the first"
    ),
    "thread_level": "the level that MPI granted",
    "median_us, base_us": (
        "medians over the rounds, in microseconds: a latency, or one message of a window"
    ),
    "added_us, added_low_us, added_high_us": (
        "median over the rounds of the rounds' differences, and its 95 % interval"
    ),
    "ratio, ratio_low, ratio_high": (
        "the same of their quotients, which is not the quotient of `median_us` and `base_us` "
        "where the machine changed its speed between rounds"
    ),
    "rounds, iterations": (
        "turns that each binding took, and its iterations in all of them together"
    ),
}
"""Of each row of ``omb-py overhead``."""


PAIRS = {
    "run, benchmark, bytes, ranks, buffer, placement, binding, mpi_type, window, variant": (
        "as above"
    ),
    "sender, receiver, sender_host, receiver_host": (
        "ranks of the pair and their hosts; the sender begins a ping-pong, and sends a bandwidth's "
        "window"
    ),
    "latency_us, bandwidth_MBps": "what follows from `median_us`",
    "median_us, p99_us": (
        "of one message of a latency, or a whole window: medians over the repeats of that "
        "statistic of the iterations"
    ),
    "min_us": "minimum of all iterations",
    "iterations, warmup, repeats": "of each pair, in each of the repeats of the whole measurement",
    "by": "what each rank stands for: `rank`, `node`, `socket` or `device`",
    "alone": "whether all other links were idle",
}
"""Of each row of ``omb-py pairs``."""


def described(*tables: Mapping[str, str]) -> str:
    """The columns of some tables, each group with its meaning below it."""
    lines = []
    for names, meaning in (row for table in tables for row in table.items()):
        lines.append(fill(names, 80, break_on_hyphens=False))
        lines.append(fill(meaning, 80, initial_indent="    ", subsequent_indent="    "))
    return "\n".join(lines)
