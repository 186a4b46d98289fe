"""The places that results go to: ``--format`` on standard output, and ``--output``."""

from __future__ import annotations

import os.path
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from omb_py.benchmarks import Benchmark
from omb_py.core.errors import UsageError
from omb_py.core.options import Options
from omb_py.results.columns import Record, Row
from omb_py.results.writer import Writer

SUFFIXES = (".csv", ".json", ".jsonl")


def check_output(
    path: str | None, force: bool, samples: str | None = None, graph: Sequence[str] = ()
) -> None:
    """Raise `UsageError` when the suffix of a file names no format, or ``force`` no file.

    ``path`` is the file of results, ``samples`` that of samples, ``graph`` has formats of figures.
    """
    if force and path is None and samples is None and not {*graph} - {"tty"}:
        raise UsageError("--force overwrites the file that --output names: name one")
    if path is not None and os.path.splitext(path)[1] not in SUFFIXES:
        raise UsageError(f"--output {path}: name a file that ends in .csv or .json (or .jsonl)")
    if samples is not None and os.path.splitext(samples)[1] != ".npy":
        raise UsageError(f"--samples {samples}: name a file that ends in .npy")


def benchmark_writers(benchmark: Benchmark, options: Options) -> list[Writer[Row]]:
    """Return the writers that ``options`` ask for a benchmark; see `writers_of`."""
    return writers_of(Row, text_writer(sys.stdout, benchmark, options), options)


def text_writer(stream: TextIO, benchmark: Benchmark, options: Options) -> Writer[Any]:
    """Return the writer of a benchmark's table for people."""
    from omb_py.results import text

    if benchmark.recovery is not None:
        return text.TableWriter(stream, benchmark, options, text.FAILURES)
    if benchmark.start_up is not None:
        return text.StartUpWriter(stream, benchmark, options, text.PARTS)
    if options.vary_window:
        return text.VariedWindowWriter(stream, benchmark, options)
    return text.TextWriter(stream, benchmark, options)


def writers_of(
    record: type[Record], text: Writer[Any] | None, options: Options
) -> list[Writer[Any]]:
    """Return the writers of records that ``options`` ask for.

    ``text`` is the writer for people, None if another caller writes it. Raises `OmbError` when the
    output file cannot be written or has other content.
    """
    found = []
    if not options.quiet and (text is not None or options.format != "text"):
        found.append(standard_output(record, text, options.format))
    if options.output is not None:
        found.append(file_writer(options.output, record, options.force))
    return found


def standard_output(record: type[Record], text: Writer[Any] | None, kind: str) -> Writer[Any]:
    """Return the writer to standard output of a kind: ``text``, if there is one, csv or json."""
    if text is not None and kind == "text":
        return text
    from omb_py.results.csv_json import CsvWriter, JsonWriter
    from omb_py.results.sink import stream_sink

    sink = stream_sink(sys.stdout.buffer)
    return CsvWriter(sink, record) if kind == "csv" else JsonWriter(sink)


def file_writer(name: str, record: type[Record], clear: bool) -> Writer[Any]:
    """Return the writer of records of a kind to a file, by its suffix; overwritten if ``clear``."""
    from pathlib import Path

    from omb_py.results.csv_json import open_csv, open_json

    path = Path(name)
    return open_csv(path, record, clear) if path.suffix == ".csv" else open_json(path, clear)
