"""From the samples of all ranks to a row: the formulas of `docs/definitions.md`."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
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
    options = case.options
    combined, payload = outcome.combined, outcome.plan.payload
    scale = MICROSECONDS / benchmark.round_trips(options)
    samples = combined.samples
    if benchmark.slowest and combined.slowest is not None:
        samples = combined.slowest
    summary = _summary(samples, scale)
    passed = outcome.passed
    found: dict[str, Any] = of_case(run, benchmark, case) | {
        "binding": options.binding,
        "iterations": len(combined.samples),
        "warmup": outcome.warmup,
        "sync": _sync(benchmark, options),
        "validation": None if passed is None else "Pass" if passed else "Fail",
        "cpu_us": None if outcome.cpu is None else outcome.cpu * MICROSECONDS,
        **_choices(benchmark, case),
        **_samples(summary, combined.slowest, scale),
        **_starts(outcome.starts, scale),
    }
    if benchmark.metric is Metric.LATENCY or benchmark.slowest:
        found["latency_min_us"] = combined.lowest * scale
        found["latency_max_us"] = combined.highest * scale
    moved = None
    if benchmark.metric is Metric.LATENCY:
        found["latency_us"] = summary.mean
    else:
        messages = outcome.plan.messages
        moved = messages * payload
        found["messages_per_s"] = rate = messages / summary.mean * scale
        found["bandwidth_MBps"] = rate * payload / MEGABYTE
    if benchmark.traffic is not None:
        size, factor = benchmark.traffic(options, case.size, case.ranks)
        found["algbw_GBps"] = algorithm = size / summary.mean * MICROSECONDS / GIGABYTE
        found["busbw_GBps"] = algorithm * factor
    if benchmark.sized:
        found |= {"payload_bytes": payload, "dtype": case.datatype.numbers}
    if on_device(case):
        found |= {"staged": options.staging, "stream_sync": options.stream_sync}
    for name, part in (("event", outcome.on_device), ("queued", outcome.queued)):
        if part is not None:
            found |= _mean_and_median(name, _summary(part.samples, scale))
    tails = summary
    if overlap := outcome.overlap:
        tails = overlap.overall
        found |= {
            "overall_us": overlap.overall.mean,
            "overall_p50_us": overlap.overall.percentile(50),
            "compute_us": overlap.compute.mean,
            "compute_p50_us": overlap.compute.percentile(50),
            "start_us": overlap.start,
            "test_us": overlap.test,
            "wait_us": overlap.wait,
            "overlap_percent": overlap.percent,
        }
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
    """Return the row of a part of what has no plan, with the columns ``found``."""
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
    return summarize([one * scale for one in seconds])


def make_part_row(
    run: str, benchmark: Benchmark, case: Case, plan: Plan, part: str, combined: Combined
) -> Row:
    """Return the row of what a benchmark of latencies does once, before the first size."""
    row = make_row(run, benchmark, case, Outcome(combined, plan, warmup=0, passed=None))
    return row.replace(part=part, bytes=None, payload_bytes=None, percentiles=None)


def _choices(benchmark: Benchmark, case: Case) -> dict[str, Any]:
    """Return the columns that say what was chosen, if that is a choice."""
    options, has = case.options, benchmark.options
    found: dict[str, Any] = {
        "cold": options.cold or None,
        "per_rank": options.per_rank if "file" in has else None,
        "library_algorithm": options.library_algorithm,
        "algorithm": options.algorithm,
        "segment": options.own_segment,
        "split": options.split,
        "nodes": len(set(case.nodes)) or None,
    }
    for name in ("in_place", "window_kind", "partitions", "file_sync"):
        if name in has:
            found[name] = getattr(options, name)
    for name in ("layout", "topology"):
        if name in has:
            found[name] = getattr(options, name).text
    if options.target_busy is not None:
        found["target_busy_us"] = options.target_busy
    if options.offset:
        found["offset"] = options.offset
    if options.skew is not None:
        found["skew"] = options.skew.text
    if "root" in has:
        found["root"] = "rotate" if options.root is None else str(options.root)
    if "overlap" in has:
        found |= {"test_calls": options.test_calls, "compute_target": options.compute_target}
    if has & {"window_sync", "active_sync"}:
        found["window_sync"] = options.window_sync
    if "threads" in has:
        found["thread_comm"] = options.thread_comm
    if has & {"threads", "processes"}:
        found["threads"] = f"{options.threads[0]}:{options.threads[1]}"
    if benchmark.ranks in PAIRED:
        found["pairs"] = options.pairs_in(case.ranks)
    return found


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
