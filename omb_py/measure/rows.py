"""From the samples of all ranks to a row: the formulas of `docs/definitions.md`."""

from __future__ import annotations

from array import array
from typing import Any

from omb_py.benchmarks import Benchmark, Case, Metric, Plan, Ranks
from omb_py.core.dataclass import dataclass, replace
from omb_py.core.job import Combined
from omb_py.core.memory import Place
from omb_py.core.options import Options
from omb_py.core.statistics import Summary, percentile, summarize
from omb_py.results.row import COLUMNS, Row

MICROSECONDS = 1e6
MEGABYTE = 1e6
GIGABYTE = 1e9
PAIRED = (Ranks.TWO, Ranks.EVEN)


@dataclass(frozen=True)
class Starts:
    """How common the starts were: iterations that some rank came too late to, and by how many
    seconds at most the ranks' clocks are apart; and the seconds of each iteration from the first
    rank's entry to the last rank's exit."""

    late: int
    clock_error: float
    completion: array[float] | None = None


@dataclass(frozen=True)
class Overlap:
    """Samples of calls that overlap with computing, and of the computing alone, in microseconds;
    the means of the parts; and how much of the communication was hidden, in percent."""

    overall: Summary
    compute: Summary
    start: float
    test: float
    wait: float
    percent: float


@dataclass(frozen=True)
class Outcome:
    """What came of one message size: the samples of all ranks, and what they are samples of.

    ``plan`` is rank 0's part; ``passed`` tells whether the data
    was right, and is None when it was not checked; ``starts`` tells of common starts, if there
    were any, ``on_device`` has the samples by the device's own events, if there are any, ``queued``
    how long starting the work took. ``cpu`` has the CPU seconds of an iteration, mean over ranks.
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
    """The row of one message size, by native OMB's definitions."""
    options = case.options
    combined, payload = outcome.combined, outcome.plan.payload
    scale = MICROSECONDS / benchmark.round_trips(options)
    samples = combined.samples
    if benchmark.slowest and combined.slowest is not None:
        samples = combined.slowest
    summary = summarize([seconds * scale for seconds in samples])
    latency = benchmark.metric is Metric.LATENCY
    messages = outcome.plan.messages
    rate = messages / summary.mean * scale
    sized = benchmark.sized
    events, queued = (
        None if part is None else summarize([seconds * scale for seconds in part.samples])
        for part in (outcome.on_device, outcome.queued)
    )
    overlap = outcome.overlap
    tails = overlap.overall if overlap else summary
    bandwidths = _bandwidths(benchmark, case, summary.mean)
    slowest = None
    if combined.slowest is not None:
        slowest = summarize([seconds * scale for seconds in combined.slowest])
    return Row(
        run=run,
        benchmark=benchmark.name,
        bytes=case.size if sized else None,
        ranks=case.ranks,
        buffer=options.buffer,
        binding=options.binding,
        placement=placement(case),
        staged=options.staging if on_device(case) else None,
        stream_sync=options.stream_sync if on_device(case) else None,
        dtype=case.datatype.dtype if sized else None,
        mpi_type=f"MPI_{case.datatype.mpi}" if sized else None,
        latency_us=summary.mean if latency else None,
        latency_min_us=combined.lowest * scale if latency else None,
        latency_max_us=combined.highest * scale if latency else None,
        bandwidth_MBps=None if latency else rate * payload / MEGABYTE,
        messages_per_s=None if latency else rate,
        algbw_GBps=bandwidths[0],
        busbw_GBps=bandwidths[1],
        event_mean_us=events.mean if events else None,
        event_p50_us=events.percentile(50) if events else None,
        queued_mean_us=queued.mean if queued else None,
        queued_p50_us=queued.percentile(50) if queued else None,
        cpu_us=None if outcome.cpu is None else outcome.cpu * MICROSECONDS,
        percentiles=tuple(
            (percent, _tail(tails, percent, None if latency else messages * payload))
            for percent in options.percentiles
        ),
        iterations=len(combined.samples),
        warmup=outcome.warmup,
        sync=_sync(benchmark, options),
        late_starts=outcome.starts.late if outcome.starts else None,
        clock_error_us=outcome.starts.clock_error * MICROSECONDS if outcome.starts else None,
        **_completion(outcome.starts, scale),
        validation=None if outcome.passed is None else "Pass" if outcome.passed else "Fail",
        payload_bytes=payload if sized else None,
        window=case.window if "window" in benchmark.options else None,
        pairs=options.pairs_in(case.ranks) if benchmark.ranks in PAIRED else None,
        root=_root(benchmark, options),
        cold=options.cold or None,
        in_place=options.in_place if "in_place" in benchmark.options else None,
        layout=options.layout.text if "layout" in benchmark.options else None,
        part=None,
        overall_us=overlap.overall.mean if overlap else None,
        overall_p50_us=overlap.overall.percentile(50) if overlap else None,
        compute_us=overlap.compute.mean if overlap else None,
        compute_p50_us=overlap.compute.percentile(50) if overlap else None,
        start_us=overlap.start if overlap else None,
        test_us=overlap.test if overlap else None,
        wait_us=overlap.wait if overlap else None,
        overlap_percent=overlap.percent if overlap else None,
        files=None,
        files_min=None,
        files_max=None,
        failed=None,
        library_algorithm=options.library_algorithm,
        variant=options.variant,
        split=options.split,
        group=None,
        congestor=None,
        congestor_iterations=None,
        rounds=None,
        impact=None,
        impact_low=None,
        impact_high=None,
        impact_p99=None,
        impact_p99_low=None,
        impact_p99_high=None,
        **_samples(summary, slowest),
        **_choices(benchmark, case),
    )


def make_unplanned_row(
    run: str, benchmark: Benchmark, options: Options, part: str, ranks: int, **found: Any
) -> Row:
    """The row of a part of what has no plan, with the columns ``found``; others stay empty."""
    common: dict[str, Any] = {
        "run": run,
        "benchmark": benchmark.name,
        "ranks": ranks,
        "buffer": options.buffer,
        "percentiles": (),
        "iterations": 1,
        "warmup": 0,
        "part": part,
        "variant": options.variant,
    }
    empty: dict[str, Any] = dict.fromkeys(COLUMNS)
    return Row(**(empty | common | found))


def times_of(combined: Combined) -> dict[str, Any]:
    """The columns of the latencies of ranks: of the mean over them, and of the slowest."""
    own, slowest = (
        None if samples is None else summarize([seconds * MICROSECONDS for seconds in samples])
        for samples in (combined.samples, combined.slowest)
    )
    assert own is not None
    return {
        "latency_us": own.mean,
        "latency_min_us": combined.lowest * MICROSECONDS,
        "latency_max_us": combined.highest * MICROSECONDS,
        "iterations": len(combined.samples),
        **_samples(own, slowest),
    }


def _samples(summary: Summary, slowest: Summary | None) -> dict[str, Any]:
    """The columns of samples, and of those of the slowest rank."""
    low, high = summary.median_interval
    return {
        "sample_mean_us": summary.mean,
        "sample_stddev_us": summary.stddev,
        "sample_min_us": summary.percentile(0),
        "sample_p50_us": summary.percentile(50),
        "median_low_us": low,
        "median_high_us": high,
        "sample_p90_us": summary.percentile(90),
        "sample_p95_us": summary.percentile(95),
        "sample_p99_us": summary.percentile(99),
        "sample_p999_us": summary.percentile(99.9),
        "sample_max_us": summary.percentile(100),
        "slowest_mean_us": slowest.mean if slowest else None,
        "slowest_p50_us": slowest.percentile(50) if slowest else None,
        "slowest_p99_us": slowest.percentile(99) if slowest else None,
        "slowest_max_us": slowest.percentile(100) if slowest else None,
    }


def _completion(starts: Starts | None, scale: float) -> dict[str, Any]:
    """The columns of the time from the first entry to the last exit."""
    found = None
    if starts is not None and starts.completion is not None:
        found = summarize([seconds * scale for seconds in starts.completion])
    return {
        "completion_mean_us": found.mean if found else None,
        "completion_p50_us": found.percentile(50) if found else None,
        "completion_p99_us": found.percentile(99) if found else None,
    }


def make_part_row(
    run: str, benchmark: Benchmark, case: Case, plan: Plan, part: str, combined: Combined
) -> Row:
    """The row of something that a benchmark of latencies does once, before the first size."""
    row = make_row(run, benchmark, case, Outcome(combined, plan, warmup=0, passed=None))
    return replace(row, part=part, bytes=None, payload_bytes=None, percentiles=())


def _choices(benchmark: Benchmark, case: Case) -> dict[str, Any]:
    """The columns that say what a benchmark's own options were."""
    options, has = case.options, benchmark.options
    threads = f"{options.threads[0]}:{options.threads[1]}"
    return {
        "test_calls": options.test_calls if "overlap" in has else None,
        "compute_target": options.compute_target if "overlap" in has else None,
        "topology": options.topology.text if "topology" in has else None,
        "window_kind": options.window_kind if "window_kind" in has else None,
        "window_sync": options.window_sync if has & {"window_sync", "active_sync"} else None,
        "send_mode": options.send_mode if "send_mode" in has else None,
        "partitions": options.partitions if "partitions" in has else None,
        "threads": threads if has & {"threads", "processes"} else None,
        "nodes": len(set(case.nodes)) if case.nodes else None,
        "algorithm": options.algorithm,
        "segment": _segment(benchmark, options),
        "file_sync": options.file_sync if "file_sync" in has else None,
    }


def _segment(benchmark: Benchmark, options: Options) -> int | None:
    """Bytes of a segment of an own algorithm that cuts messages."""
    if options.own_algorithm is None:
        return None
    from omb_py.benchmarks.algorithms import segment_of

    return segment_of(benchmark.name, options)


def placement(case: Case) -> str:
    """Where the messages lie, by native OMB's letters: of both ends where they were named."""
    named = [place.value for place in case.options.placement]
    return " ".join(named) or case.buffer.place.value


def on_device(case: Case) -> bool:
    """Whether the messages of some rank lie on a device."""
    return Place.DEVICE in (*case.options.placement, case.buffer.place)


def _bandwidths(
    benchmark: Benchmark, case: Case, microseconds: float
) -> tuple[float | None, float | None]:
    """Algorithm and bus bandwidth in GB/s, where they have a meaning."""
    if benchmark.traffic is None:
        return None, None
    size, factor = benchmark.traffic(case.size, case.ranks)
    algorithm = size / microseconds * MICROSECONDS / GIGABYTE
    return algorithm, algorithm * factor


def _tail(summary: Summary, percent: float, moved: int | None) -> float:
    """A percentile of the benchmark's own value: of latencies, or of bandwidths, as native OMB.

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


def _root(benchmark: Benchmark, options: Options) -> str | None:
    if "root" not in benchmark.options:
        return None
    return "rotate" if options.root is None else str(options.root)
