"""The places that results go to: ``--format`` on standard output, and ``--output``."""

from __future__ import annotations

import os.path
import sys

from omb_py.benchmarks import Benchmark
from omb_py.errors import UsageError
from omb_py.options import Options
from omb_py.results.writer import Writer

SUFFIXES = (".csv", ".json")


def check_output(path: str | None) -> None:
    """Raise `UsageError` when the suffix of ``path`` names no format."""
    if path is not None and os.path.splitext(path)[1] not in SUFFIXES:
        raise UsageError(f"--output {path}: name a file that ends in .csv or .json")


def open_writers(benchmark: Benchmark, options: Options) -> list[Writer]:
    """The writers that ``options`` ask for.

    Raises `OmbError` when the output file cannot be written or holds something else.
    """
    writers = [] if options.quiet else [_standard_output(benchmark, options)]
    if options.output is not None:
        writers.append(_file(options.output, options.force))
    return writers


def _standard_output(benchmark: Benchmark, options: Options) -> Writer:
    if options.format == "csv":
        from omb_py.results.csv import CsvWriter
        from omb_py.results.sink import StreamSink

        return CsvWriter(StreamSink(sys.stdout.buffer), with_header=True)
    if options.format == "json":
        from omb_py.results.json import JsonWriter
        from omb_py.results.sink import StreamSink

        return JsonWriter(StreamSink(sys.stdout.buffer), empty=True)
    from omb_py.results.text import TextWriter, VariedWindowWriter

    writer = VariedWindowWriter if options.vary_window else TextWriter
    return writer(sys.stdout, benchmark, options)


def _file(name: str, clear: bool) -> Writer:
    from pathlib import Path

    path = Path(name)
    if path.suffix == ".csv":
        from omb_py.results.csv import open_csv

        return open_csv(path, clear)
    from omb_py.results.json import open_json

    return open_json(path, clear)
