"""What was measured as rows of a benchmark's table: the method is the binding, each part a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from omb_py.core.statistics import summarize
from omb_py.measure.checkpoints.rounds import (
    ALONE,
    BLOCKING,
    COMPUTE,
    OVERHEAD,
    READ,
    TOTAL,
    WRITE,
    CheckpointRequest,
    Measured,
)
from omb_py.measure.rows import MEGABYTE, MICROSECONDS, of_samples
from omb_py.results.columns import Row

STORE, RESTART = "checkpoint_write", "checkpoint_read"
"""The names of the benchmarks."""


def middle(seconds: Sequence[float]) -> float:
    """The median."""
    return summarize(seconds).percentile(50)


def overhead(measured: Measured) -> tuple[float, ...]:
    """Seconds that each round's checkpoint added to the program's time.

    All of it, unless ranks computed meanwhile: then what is more than the computing alone, and no
    less than the blocking, since noise can make computing seem faster beside a checkpoint. Source:
    N. H. Vaidya, Impact of checkpoint latency on overhead ratio of a checkpointing scheme, IEEE
    Transactions on Computers 46(8), 1997.
    """
    stored = measured.stored
    alone = stored.get(ALONE) or (0.0,) * len(stored[TOTAL])
    rounds = zip(stored[TOTAL], alone, stored[BLOCKING], strict=True)
    return tuple(max(total - hidden, blocked) for total, hidden, blocked in rounds)


def bandwidth(measured: Measured, seconds: Sequence[float]) -> float:
    """Bytes per second of all ranks, by the median."""
    return measured.ranks * measured.size / middle(seconds)


def hides(measured: Measured) -> bool:
    """Whether ranks computed while the method wrote: its total then is no time of a transfer."""
    return ALONE in measured.stored


def rows_of(run: str, measured: Measured, request: CheckpointRequest) -> Iterator[Row]:
    """The rows of a method at a size."""
    stored = {part: times for part, times in measured.stored.items() if part != ALONE}
    for part, times in (stored | {OVERHEAD: overhead(measured)}).items():
        more: dict[str, Any] = {"file_sync": request.sync}
        if part in (COMPUTE, OVERHEAD) and hides(measured):
            alone = summarize([one * MICROSECONDS for one in measured.stored[ALONE]])
            more |= {"compute_us": alone.mean, "compute_p50_us": alone.percentile(50)}
        if part in (WRITE, TOTAL) and not hides(measured):
            more["bandwidth_MBps"] = bandwidth(measured, times) / MEGABYTE
        yield _row(run, measured, STORE, part, times, **more)
    for part, times in measured.restarted.items():
        words = [measured.variant, None if request.drop_cache else "cache kept"]
        more = {"variant": ", ".join(filter(None, words)) or None}
        if part in (READ, TOTAL):
            more["bandwidth_MBps"] = bandwidth(measured, times) / MEGABYTE
        yield _row(run, measured, RESTART, part, times, **more)


def _row(
    run: str,
    measured: Measured,
    benchmark: str,
    part: str,
    seconds: Sequence[float],
    **more: Any,
) -> Row:
    summary = summarize([one * MICROSECONDS for one in seconds])
    found: dict[str, Any] = {
        "run": run,
        "benchmark": benchmark,
        "bytes": measured.size,
        "ranks": measured.ranks,
        "buffer": "numpy",
        "binding": measured.method,
        "latency_us": summary.mean,
        "latency_min_us": summary.percentile(0),
        "latency_max_us": summary.percentile(100),
        **of_samples(summary),
        "iterations": len(seconds),
        "warmup": 1,
        "validation": "Pass" if measured.passed else "Fail",
        "part": None if part == TOTAL else part,
        "variant": measured.variant,
    }
    return Row(**found | more)
