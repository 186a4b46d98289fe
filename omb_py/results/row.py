"""One line of results: a message size of one benchmark, with all that is known of it."""

from __future__ import annotations

import os
import time
from typing import Any

from omb_py.core.dataclass import dataclass


@dataclass(frozen=True)
class Row:
    """What `docs/results.md` describes column by column; None where a column does not apply.

    Units are in the names. ``placement`` are the letters of where messages lie, ``staged`` whether
    they were copied through the host, ``stream_sync`` whether each iteration waited for the
    device's stream: both None where none lies on a device. A sample is the value of one iteration
    in microseconds: half the round trip for a ping-pong, the mean over the ranks for a collective,
    a whole window for a bandwidth.
    ``median_low_us`` and ``median_high_us`` enclose the median with 95 %; ``slowest_*`` are of the
    slowest rank of each iteration. ``late_starts`` counts iterations that a rank came too late to,
    ``clock_error_us`` bounds how far apart those were in time that came to it together,
    ``completion_*`` are from the first rank's entry to the last one's exit. ``cold`` is true where
    caches were flushed before each iteration.
    ``event_*`` are the samples by events on the device, where the calls are its work.
    ``percentiles`` are those asked for with ``-z``, in the unit of the benchmark's own value.
    ``part`` names what a row is of where that is not the benchmark as a whole. ``overall_us`` to
    ``overlap_percent`` are of calls that overlap with computing, the samples of their communication
    alone. ``files`` is how many of them a part of the start opened, the mean over the ranks; such a
    part has neither calls nor samples. ``failed`` is how many of the ranks were killed before.
    ``library_algorithm`` is what the MPI library was told to do, ``algorithm`` the word of
    ``--p2p-algorithm``, ``segment`` the bytes of what it cuts messages into, ``file_sync`` whether
    each write to a file was brought to the disk, ``variant`` the user's own name for what else was
    chosen. ``split`` is how the ranks were divided into groups, ``group`` the ranks of the row's.
    ``congestor`` is what other ranks ran meanwhile, in ``rounds`` turns with and without it; the
    ``impact`` factors are congested times over times alone, of medians and of 99th percentiles.
    """

    run: str
    benchmark: str
    bytes: int | None
    ranks: int
    buffer: str
    binding: str | None
    placement: str | None
    staged: bool | None
    stream_sync: bool | None
    dtype: str | None
    mpi_type: str | None
    latency_us: float | None
    latency_min_us: float | None
    latency_max_us: float | None
    bandwidth_MBps: float | None
    messages_per_s: float | None
    algbw_GBps: float | None
    busbw_GBps: float | None
    sample_mean_us: float | None
    sample_stddev_us: float | None
    sample_min_us: float | None
    sample_p50_us: float | None
    median_low_us: float | None
    median_high_us: float | None
    sample_p90_us: float | None
    sample_p95_us: float | None
    sample_p99_us: float | None
    sample_p999_us: float | None
    sample_max_us: float | None
    slowest_mean_us: float | None
    slowest_p50_us: float | None
    slowest_p99_us: float | None
    slowest_max_us: float | None
    event_mean_us: float | None
    event_p50_us: float | None
    queued_mean_us: float | None
    queued_p50_us: float | None
    cpu_us: float | None
    percentiles: tuple[tuple[float, float], ...]
    iterations: int
    warmup: int
    sync: str | None
    late_starts: int | None
    clock_error_us: float | None
    completion_mean_us: float | None
    completion_p50_us: float | None
    completion_p99_us: float | None
    validation: str | None
    payload_bytes: int | None
    window: int | None
    pairs: int | None
    root: str | None
    cold: bool | None
    in_place: bool | None
    layout: str | None
    part: str | None
    overall_us: float | None
    overall_p50_us: float | None
    compute_us: float | None
    compute_p50_us: float | None
    start_us: float | None
    test_us: float | None
    wait_us: float | None
    overlap_percent: float | None
    test_calls: int | None
    compute_target: str | None
    topology: str | None
    window_kind: str | None
    window_sync: str | None
    send_mode: str | None
    partitions: int | None
    threads: str | None
    nodes: int | None
    files: float | None
    files_min: int | None
    files_max: int | None
    failed: int | None
    library_algorithm: str | None
    algorithm: str | None
    segment: int | None
    file_sync: bool | None
    variant: str | None
    split: str | None
    group: str | None
    congestor: str | None
    congestor_iterations: int | None
    rounds: int | None
    impact: float | None
    impact_low: float | None
    impact_high: float | None
    impact_p99: float | None
    impact_p99_low: float | None
    impact_p99_high: float | None


@dataclass(frozen=True)
class OverheadRow:
    """One line of `omb-py overhead`: what ``binding`` adds to ``base`` at a message size.

    Times are medians over the rounds, of a latency or of one message of a window; ``added_us`` and
    ``ratio`` are medians of the rounds' own differences and quotients, with the 95 % intervals of
    those medians. ``split`` names what the two bindings tell apart, where that has a name;
    ``algorithm`` is ours, of a binding that makes the collective of messages between two ranks.
    """

    run: str
    benchmark: str
    bytes: int | None
    ranks: int
    buffer: str
    placement: str
    staged: bool | None
    binding: str
    base: str
    algorithm: str | None
    split: str | None
    mpi_type: str | None
    thread_level: str
    median_us: float
    base_us: float
    added_us: float
    added_low_us: float | None
    added_high_us: float | None
    ratio: float
    ratio_low: float | None
    ratio_high: float | None
    rounds: int
    iterations: int
    window: int | None
    variant: str | None


@dataclass(frozen=True)
class PairRow:
    """One line of `omb-py pairs`: a message size from one rank to another.

    ``sender`` and ``receiver`` are ranks of the job: the sender begins a ping-pong, and sends the
    window of a bandwidth. ``median_us`` and ``p99_us`` are of one message of a latency, or of a
    whole window, medians over the ``repeats`` of the whole measurement, ``min_us`` the minimum of
    all. ``latency_us`` or ``bandwidth_MBps`` is what follows from ``median_us``. ``alone`` tells
    whether no other pair was busy meanwhile; ``by`` is what each rank stands for.
    """

    run: str
    benchmark: str
    bytes: int
    ranks: int
    buffer: str
    placement: str
    binding: str
    mpi_type: str
    sender: int
    receiver: int
    sender_host: str
    receiver_host: str
    latency_us: float | None
    bandwidth_MBps: float | None
    median_us: float
    min_us: float
    p99_us: float
    iterations: int
    warmup: int
    repeats: int
    window: int | None
    by: str
    alone: bool
    variant: str | None


def columns(record: type[Any]) -> tuple[str, ...]:
    """Names of a record's columns, in the order in which every format writes them."""
    return tuple(record.__annotations__)


COLUMNS = columns(Row)
"""The columns of benchmarks."""


KINDS = {
    name: kind.removesuffix(" | None")
    for record in (Row, OverheadRow, PairRow)
    for name, kind in record.__annotations__.items()
}
"""What a column holds: ``int``, ``float``, ``str`` or ``bool``; all else is written as text."""

ORIGIN = {"suite": "str", "mpi": "str", "hosts": "int"}
"""Columns that converted files have besides: who measured, on which MPI library, on how many
hosts."""


def percent_text(percent: float) -> str:
    """A percentage in all its digits, without an exponent.

    >>> percent_text(50.0), percent_text(99.99999), percent_text(0.00001)
    ('50', '99.99999', '0.00001')
    """
    text = repr(float(percent))
    if "e" in text:
        text = f"{percent:.20f}".rstrip("0")
    return text.removesuffix(".0")


def new_run() -> str:
    """A name for a run: its start in UTC and enough chance to tell it from any other."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.urandom(3).hex()}"
