"""One line of results: a message size of one benchmark, with all that is known of it."""

from __future__ import annotations

import os
import time
from typing import Any, ClassVar, TypeVar

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
        """A copy in which some columns differ; None takes a value out."""
        return type(self)(**vars(self) | changes)


class Row(Record):
    """A message size of a benchmark.

    ``percentiles`` are pairs of a percentage and a value; all else is of its column's type.
    """

    columns = tuple(
        """run benchmark bytes ranks buffer binding placement staged stream_sync dtype mpi_type
        latency_us latency_min_us latency_max_us bandwidth_MBps messages_per_s algbw_GBps busbw_GBps
        sample_mean_us sample_stddev_us sample_min_us sample_p50_us median_low_us median_high_us
        sample_p90_us sample_p95_us sample_p99_us sample_p999_us sample_max_us slowest_mean_us
        slowest_p50_us slowest_p99_us slowest_max_us event_mean_us event_p50_us queued_mean_us
        queued_p50_us cpu_us percentiles iterations warmup sync late_starts clock_error_us
        completion_mean_us completion_p50_us completion_p99_us validation payload_bytes window pairs
        root cold in_place layout part overall_us overall_p50_us compute_us compute_p50_us start_us
        test_us wait_us overlap_percent test_calls compute_target topology window_kind window_sync
        send_mode partitions threads nodes failed library_algorithm
        algorithm segment file_sync variant split group congestor congestor_iterations rounds impact
        impact_low impact_high impact_p99 impact_p99_low impact_p99_high""".split()
    )


class OverheadRow(Record):
    """One line of `omb-py overhead`: what ``binding`` adds to ``base`` at a message size."""

    columns = tuple(
        """run benchmark bytes ranks buffer placement staged binding base algorithm split mpi_type
        thread_level median_us base_us added_us added_low_us added_high_us ratio ratio_low
        ratio_high rounds iterations window variant""".split()
    )


class PairRow(Record):
    """One line of `omb-py pairs`: a message size from one rank to another."""

    columns = tuple(
        """run benchmark bytes ranks buffer placement binding mpi_type sender receiver sender_host
        receiver_host latency_us bandwidth_MBps median_us min_us p99_us iterations warmup repeats
        window by alone variant""".split()
    )


COLUMNS = Row.columns
"""The columns of benchmarks."""


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
