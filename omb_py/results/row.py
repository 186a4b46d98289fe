"""One line of results: a message size of one benchmark, with all that is known of it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Row:
    """What `docs/results.md` describes column by column; None where a column does not apply.

    Units are in the names. A sample is the value of one iteration in microseconds: half the round
    trip for a ping-pong, the mean over the ranks for a collective, a whole window for a bandwidth.
    ``percentiles`` are those asked for with ``-z``, in the unit of the benchmark's own value.
    """

    run: str
    benchmark: str
    bytes: int | None
    ranks: int
    buffer: str
    binding: str
    dtype: str | None
    mpi_type: str | None
    latency_us: float | None
    latency_min_us: float | None
    latency_max_us: float | None
    bandwidth_MBps: float | None
    messages_per_s: float | None
    sample_mean_us: float
    sample_stddev_us: float
    sample_min_us: float
    sample_p50_us: float
    sample_p90_us: float
    sample_p95_us: float
    sample_p99_us: float
    sample_p999_us: float
    sample_max_us: float
    percentiles: tuple[tuple[float, float], ...]
    iterations: int
    warmup: int
    validation: str | None
    payload_bytes: int | None
    window: int | None
    pairs: int | None
    root: str | None
    in_place: bool | None
    layout: str | None


COLUMNS = tuple(column.name for column in fields(Row))
"""Names of the columns, in the order in which every format writes them."""


def new_run() -> str:
    """A name for a run: its start in UTC and enough chance to tell it from any other."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.urandom(3).hex()}"
