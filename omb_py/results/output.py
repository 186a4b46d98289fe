"""The places that results go to: ``--format`` on standard output, and ``--output``."""

from __future__ import annotations

import os.path
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from omb_py.benchmarks import Benchmark
from omb_py.core.errors import UsageError
from omb_py.core.options import Options
from omb_py.results.row import OverheadRow, PairRow, Row
from omb_py.results.writer import Writer

SUFFIXES = (".csv", ".json", ".jsonl")
SAMPLE_SUFFIXES = (".parquet", ".npy")


def check_output(path: str | None, force: bool, samples: str | None = None) -> None:
    """Raise `UsageError` when the suffix of a file names no format, or ``force`` no file.

    ``path`` is the file of results, ``samples`` that of samples.
    """
    if force and path is None and samples is None:
        raise UsageError("--force overwrites the file that --output names: name one")
    if path is not None and os.path.splitext(path)[1] not in SUFFIXES:
        raise UsageError(f"--output {path}: name a file that ends in .csv or .json (or .jsonl)")
    if samples is not None and os.path.splitext(samples)[1] not in SAMPLE_SUFFIXES:
        raise UsageError(f"--samples {samples}: name a file that ends in .parquet or .npy")


def benchmark_writers(benchmark: Benchmark, options: Options) -> list[Writer[Row]]:
    """The writers that ``options`` ask for a benchmark.

    Raises `OmbError` when the output file cannot be written or holds something else.
    """
    if benchmark.recovery is not None:
        from omb_py.results.text import RecoveryWriter

        return _writers(Row, RecoveryWriter(sys.stdout, benchmark, options), options)
    if benchmark.start_up is not None:
        from omb_py.results.text import StartUpWriter

        return _writers(Row, StartUpWriter(sys.stdout, benchmark, options), options)
    from omb_py.results.text import TextWriter, VariedWindowWriter

    text = VariedWindowWriter if options.vary_window else TextWriter
    return _writers(Row, text(sys.stdout, benchmark, options), options)


def group_writers(
    benchmark: Benchmark, options: Options, hosts: Mapping[str, str]
) -> list[Writer[Row]]:
    """The writers of groups of ranks, whose hosts are given by name; see `benchmark_writers`."""
    from omb_py.results.groups import GroupsWriter

    return _writers(Row, GroupsWriter(sys.stdout, benchmark, options, hosts), options)


def congestion_writers(
    benchmark: Benchmark, options: Options, congestor: str, victim: str, others: Sequence[str]
) -> list[Writer[Row]]:
    """The writers of a victim and its congestors, groups of ranks; see `benchmark_writers`."""
    from omb_py.results.congestion import CongestionWriter

    text = CongestionWriter(sys.stdout, benchmark, options, congestor, victim, others)
    return _writers(Row, text, options)


def overhead_writers(
    benchmark: Benchmark, options: Options, rounds: int
) -> list[Writer[OverheadRow]]:
    """The writers of a comparison of bindings in so many rounds; see `benchmark_writers`."""
    from omb_py.results.overhead import OverheadWriter

    return _writers(OverheadRow, OverheadWriter(sys.stdout, benchmark, options, rounds), options)


def pair_writers(options: Options) -> list[Writer[PairRow]]:
    """The writers of pairs of ranks, but for the text; see `benchmark_writers`."""
    return _writers(PairRow, None, options)


def application_writers(title: str, options: Options) -> list[Writer[Any]]:
    """The writers of an application; see `benchmark_writers`."""
    from omb_py.results.application import ApplicationRow, ApplicationWriter

    return _writers(ApplicationRow, ApplicationWriter(sys.stdout, title), options)


def _writers(record: type[Any], text: Writer[Any] | None, options: Options) -> list[Writer[Any]]:
    """The writers of records; ``text`` is the one for people, None where somebody else has it."""
    writers = []
    if not options.quiet and (text is not None or options.format != "text"):
        writers.append(standard_output(record, text, options.format))
    if options.output is not None:
        writers.append(file_writer(options.output, record, options.force))
    return writers


def standard_output(record: type[Any], text: Writer[Any] | None, kind: str) -> Writer[Any]:
    """The writer to standard output of a kind: ``text``, where there is one, csv or json."""
    if text is not None and kind == "text":
        return text
    from omb_py.results.sink import StreamSink

    if kind == "csv":
        from omb_py.results.csv import CsvWriter

        return CsvWriter(StreamSink(sys.stdout.buffer), record)
    from omb_py.results.json import JsonWriter

    return JsonWriter(StreamSink(sys.stdout.buffer))


def file_writer(name: str, record: type[Any], clear: bool) -> Writer[Any]:
    """The writer of records of a kind to a file, by its suffix; overwritten if ``clear``."""
    from pathlib import Path

    path = Path(name)
    if path.suffix == ".csv":
        from omb_py.results.csv import open_csv

        return open_csv(path, record, clear)
    from omb_py.results.json import open_json

    return open_json(path, clear)
