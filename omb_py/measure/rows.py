"""From the samples of all ranks to a row: the formulas of `docs/definitions.md`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

from omb_py.benchmarks import Benchmark, Case, Metric, Plan, Ranks
from omb_py.core.dataclass import dataclass
from omb_py.core.job import Combined
from omb_py.core.memory import Place
from omb_py.core.options import Options
from omb_py.core.statistics import Summary, percentile, summarize
from omb_py.results.columns import Row

MICROSECONDS = 1e6
MEGABYTE = 1e6
GIGABYTE = 1e9
PAIRED = (Ranks.TWO, Ranks.EVEN)


@dataclass(frozen=True)
class Starts:
    """Quality of common starts: the number of late iterations, the clocks' maximum error in
    seconds, and the seconds of each iteration from the first rank's entry to the last rank's exit.
    """

    late: int
    clock_error: float
    completion: array[float] | None = None


@dataclass(frozen=True)
class Overlap:
    """Samples of calls that overlap with computing, and of only the computing, in microseconds; the
    means of the parts; and the part of the communication that was hidden, in percent."""

    overall: Summary
    compute: Summary
    start: float
    test: float
    wait: float
    percent: float


@dataclass(frozen=True)
class Outcome:
    """The result of one message size: the samples of all ranks, and their context.

    ``plan`` is rank 0's part; ``passed`` is true if the data was right, and None when it was not
    checked; ``starts`` has the quality of common starts, if there were any, ``on_device`` the
    samples by the device's own events, if there are any, ``queued`` the times to start the work.
    ``cpu`` has the CPU seconds of an iteration, mean over ranks.
    """

    combined: Combined
    plan: Plan
    warmup: int
    passed: bool | None
    starts: Starts | None = None
    on_device: Combined | None = None
    overlap: Overlap | None = None
    queued: Combined | None = None
    cpu: float | None = None


def make_row(run: str, benchmark: Benchmark, case: Case, outcome: Outcome) -> Row:
    """Return the row of one message size, by native OMB's definitions."""
    options, combined, plan = case.options, outcome.combined, outcome.plan
    scale = MICROSECONDS / benchmark.round_trips(options)
    slowest = combined.slowest if benchmark.slowest else None
    summary = _summary(combined.samples if slowest is None else slowest, scale)
    latency = benchmark.metric is Metric.LATENCY
    moved = None if latency else plan.messages * plan.payload
    found: dict[str, Any] = of_case(run, benchmark, case) | {
        "iterations": len(combined.samples),
        "warmup": outcome.warmup,
        "sync": _sync(benchmark, options),
        "validation": {None: None, True: "Pass", False: "Fail"}[outcome.passed],
        "cpu_us": None if outcome.cpu is None else outcome.cpu * MICROSECONDS,
        **_choices(benchmark, case),
        **_samples(summary, combined.slowest, scale),
        **_starts(outcome.starts, scale),
    }
    if latency or benchmark.slowest:
        found["latency_min_us"] = combined.lowest * scale
        found["latency_max_us"] = combined.highest * scale
    if latency:
        found["latency_us"] = summary.mean
    else:
        found["messages_per_s"] = rate = plan.messages / summary.mean * scale
        found["bandwidth_MBps"] = rate * plan.payload / MEGABYTE
    if benchmark.traffic is not None:
        size, factor = benchmark.traffic(options, case.size, case.ranks)
        found["algbw_GBps"] = algorithm = size / summary.mean * MICROSECONDS / GIGABYTE
        found["busbw_GBps"] = algorithm * factor
    if benchmark.sized:
        found |= {"payload_bytes": plan.payload, "dtype": case.datatype.numbers}
    for name, part in (("event", outcome.on_device), ("queued", outcome.queued)):
        if part is not None:
            found |= _mean_and_median(name, _summary(part.samples, scale))
    tails = summary
    if outcome.overlap is not None:
        found |= _overlap(outcome.overlap)
        tails = outcome.overlap.overall
    if options.percentiles:
        each = ((percent, _tail(tails, percent, moved)) for percent in options.percentiles)
        found["percentiles"] = tuple(each)
    return Row(**found)


def of_case(run: str, benchmark: Benchmark, case: Case) -> dict[str, Any]:
    """Return the columns of a case that rows of all kinds have."""
    options, sized = case.options, benchmark.sized
    return {
        "run": run,
        "benchmark": benchmark.name,
        "bytes": case.size if sized else None,
        "ranks": case.ranks,
        "buffer": options.buffer,
        "placement": placement(case),
        "mpi_type": case.datatype.mpi_type if sized else None,
        "elements": (sized and case.datatype.narrow) or None,
        "window": case.window if "window" in benchmark.options else None,
        "variant": options.variant,
    }


def make_unplanned_row(
    run: str, benchmark: Benchmark, options: Options, part: str, ranks: int, **found: Any
) -> Row:
    """Return the row of a ``part`` of a job's start or recovery, by default of one iteration.

    ``found`` are the columns of its times, and any others.
    """
    common: dict[str, Any] = {
        "run": run,
        "benchmark": benchmark.name,
        "ranks": ranks,
        "buffer": options.buffer,
        "iterations": 1,
        "warmup": 0,
        "part": part,
        "variant": options.variant,
    }
    return Row(**common | found)


def times_of(combined: Combined) -> dict[str, Any]:
    """Return the columns of the latencies of ranks: of the mean over them, and of the slowest."""
    return {
        "latency_us": (own := _summary(combined.samples, MICROSECONDS)).mean,
        "latency_min_us": combined.lowest * MICROSECONDS,
        "latency_max_us": combined.highest * MICROSECONDS,
        "iterations": len(combined.samples),
        **_samples(own, combined.slowest, MICROSECONDS),
    }


def of_samples(summary: Summary) -> dict[str, Any]:
    """Return the columns of samples, however few they are."""
    low, high = summary.median_interval
    return {
        "sample_mean_us": summary.mean,
        "sample_stddev_us": summary.stddev,
        "sample_min_us": summary.percentile(0),
        "sample_p50_us": summary.percentile(50),
        "median_low_us": low,
        "median_high_us": high,
        "sample_max_us": summary.percentile(100),
    }


def _samples(summary: Summary, slowest: array[float] | None, scale: float) -> dict[str, Any]:
    """Return the columns of samples, and of those of the slowest rank in seconds."""
    found = of_samples(summary)
    for name, percent in (("p90", 90), ("p95", 95), ("p99", 99), ("p999", 99.9)):
        found[f"sample_{name}_us"] = summary.percentile(percent)
    if slowest is not None:
        last = _summary(slowest, scale)
        found |= _mean_and_median("slowest", last)
        found |= {"slowest_p99_us": last.percentile(99), "slowest_max_us": last.percentile(100)}
    return found


def _starts(starts: Starts | None, scale: float) -> dict[str, Any]:
    """Return the columns of common starts, and of the time from first entry to last exit."""
    if starts is None:
        return {}
    found = {"late_starts": starts.late, "clock_error_us": starts.clock_error * MICROSECONDS}
    if starts.completion is not None:
        completion = _summary(starts.completion, scale)
        found |= _mean_and_median("completion", completion)
        found["completion_p99_us"] = completion.percentile(99)
    return found


def _mean_and_median(name: str, summary: Summary) -> dict[str, float]:
    return {f"{name}_mean_us": summary.mean, f"{name}_p50_us": summary.percentile(50)}


def _summary(seconds: Sequence[float], scale: float) -> Summary:
    return summarize([*map(scale.__mul__, seconds)])


def make_part_row(
    run: str, benchmark: Benchmark, case: Case, plan: Plan, part: str, combined: Combined
) -> Row:
    """Return the row of a ``part`` that a benchmark of latencies makes once, before all sizes."""
    row = make_row(run, benchmark, case, Outcome(combined, plan, warmup=0, passed=None))
    return row.replace(part=part, bytes=None, payload_bytes=None, percentiles=None)


CHOICES: dict[str, tuple[str, Callable[[Options], Any]]] = {
    "algorithm": ("", lambda options: options.algorithm),
    "binding": ("", lambda options: options.binding),
    "cold": ("", lambda options: options.cold or None),
    "compute_target": ("overlap", lambda options: options.compute_target),
    "file_sync": ("file_sync", lambda options: options.file_sync),
    "in_place": ("in_place", lambda options: options.in_place),
    "layout": ("layout", lambda options: options.layout.text),
    "library_algorithm": ("", lambda options: options.library_algorithm),
    "offset": ("", lambda options: options.offset or None),
    "partitions": ("partitions", lambda options: options.partitions),
    "per_rank": ("file", lambda options: options.per_rank),
    "root": ("root", lambda options: "rotate" if options.root is None else str(options.root)),
    "segment": ("", lambda options: options.own_segment),
    "skew": ("", lambda options: options.skew and options.skew.text),
    "split": ("", lambda options: options.split),
    "target_busy_us": ("", lambda options: options.target_busy),
    "test_calls": ("overlap", lambda options: options.test_calls),
    "thread_comm": ("threads", lambda options: options.thread_comm),
    "threads": ("threads processes", lambda options: ":".join(map(str, options.threads))),
    "topology": ("topology", lambda options: options.topology.text),
    "window_kind": ("window_kind", lambda options: options.window_kind),
    "window_sync": ("window_sync active_sync", lambda options: options.window_sync),
}
"""The columns of options: the words of `omb_py.benchmarks.FEATURES` of which a benchmark has one
where the option is a choice, none if it always is, and the value."""


def _choices(benchmark: Benchmark, case: Case) -> dict[str, Any]:
    """Return the columns that say what was chosen, if that is a choice."""
    options = case.options
    found: dict[str, Any] = {
        column: value(options)
        for column, (words, value) in CHOICES.items()
        if not words or not benchmark.options.isdisjoint(words.split())
    }
    found["nodes"] = len(set(case.nodes)) or None
    if on_device(case):
        found |= {"staged": options.staging, "stream_sync": options.stream_sync}
    if benchmark.ranks in PAIRED:
        found["pairs"] = options.pairs_in(case.ranks)
    return found


def _overlap(overlap: Overlap) -> dict[str, Any]:
    """Return the columns of calls that overlap with computing."""
    return {
        "overall_us": overlap.overall.mean,
        "overall_p50_us": overlap.overall.percentile(50),
        "compute_us": overlap.compute.mean,
        "compute_p50_us": overlap.compute.percentile(50),
        "start_us": overlap.start,
        "test_us": overlap.test,
        "wait_us": overlap.wait,
        "overlap_percent": overlap.percent,
    }


def placement(case: Case) -> str:
    """Return the places of messages, by native OMB's letters: of both ends if they were named."""
    named = [place.value for place in case.options.placement]
    return " ".join(named) or case.buffer.place.value


def on_device(case: Case) -> bool:
    """Return whether the messages of some rank lie on a device."""
    return Place.DEVICE in (*case.options.placement, case.buffer.place)


def _tail(summary: Summary, percent: float, moved: int | None) -> float:
    """Return a percentile of the benchmark's own value, a latency or bandwidth, as native OMB.

    ``moved`` are the bytes of an iteration of a bandwidth; its 99th percentile is a fast one.
    """
    if moved is None:
        return summary.percentile(percent)
    bandwidths = [moved / sample for sample in reversed(summary.ordered)]
    return percentile(bandwidths, percent)


def _sync(benchmark: Benchmark, options: Options) -> str | None:
    if options.validate:
        return "barrier"
    return options.sync if benchmark.paced or options.sync == "clock" else None
