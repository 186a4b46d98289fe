"""Runs many benchmarks one after the other in one MPI job, and writes what came of each.

``battery.py LINES RECORDS``: a JSON list of objects with ``arguments``, as omb-py would be given
them, and ``environment``; for each one a line of JSON is added to RECORDS as soon as it is done.
"""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from omb_py.apps import APPLICATIONS, ApplicationRequest
from omb_py.apps.runtime import math_threads
from omb_py.benchmarks import Benchmark, find_benchmark
from omb_py.buffers import Buffer
from omb_py.core.errors import OmbError, SharedError, UnsupportedError, UsageError, sentence
from omb_py.core.job import Job, by_mpi
from omb_py.core.mpi import launcher
from omb_py.core.mpi.watchdog import Watchdog
from omb_py.core.options import Options
from omb_py.measure.launch import Launch, prepare_buffer
from omb_py.measure.run import run
from omb_py.options.application import parse_application
from omb_py.options.parse import parse
from omb_py.results.writer import Writer

SECONDS_WITHOUT_PROGRESS = 300
"""Ranks that share busy cores take their time."""


@dataclass
class Record:
    """What came of one line: its rows, what it printed, and the sentence and code of its end."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    out: str = ""
    err: str = ""
    error: str = ""
    code: int = 0


class Kept(Writer[Any]):
    """Keeps rows."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def row(self, row: Any) -> None:
        self._record.rows.append({name: getattr(row, name) for name in type(row).columns})


def read_line(arguments: list[str]) -> tuple[Benchmark | ApplicationRequest, Options]:
    """What a command line asks for, as omb-py itself reads it."""
    if APPLICATIONS.has(arguments[0]):
        asked = parse_application(APPLICATIONS.load(arguments[0]), arguments[1:])
        return asked, asked.options
    benchmark = find_benchmark(arguments[0])
    return benchmark, parse(benchmark, arguments[1:])


def measure(
    job: Job,
    benchmark: Benchmark | ApplicationRequest,
    options: Options,
    buffer: Buffer,
    record: Record,
) -> None:
    """Measure on all ranks; raises what omb-py would say."""
    launch = Launch(job, buffer)
    if isinstance(benchmark, ApplicationRequest):
        from omb_py.apps.runtime.measurement import measure as measure_application

        measure_application(launch, benchmark, lambda: [Kept(record)])
        return
    run(launch, benchmark, options, lambda: [Kept(record)])


class Battery:
    """The lines that can be parsed, and the buffers that they name, ready before MPI starts."""

    def __init__(self, lines: list[dict[str, Any]], path: Path) -> None:
        self._lines = lines
        self._path = path
        self._watchdog = Watchdog(SECONDS_WITHOUT_PROGRESS, launcher.rank())
        self._parsed: list[tuple[Benchmark | ApplicationRequest, Options] | Exception] = []
        self._buffers: dict[tuple[str, Any], tuple[Buffer | None, OmbError | None]] = {}
        for line in lines:
            try:
                benchmark, options = read_line(line["arguments"])
                chosen = options.buffer, options.devices
                if chosen not in self._buffers:
                    self._buffers[chosen] = prepare_buffer(options, launcher.local_rank() or 0)
                self._parsed.append((benchmark, options))
            except OmbError as error:
                self._parsed.append(error)

    def run(self) -> None:
        """Run everything."""
        with ExitStack() as after_mpi:
            for buffer, _ in self._buffers.values():
                if buffer is not None:
                    after_mpi.callback(buffer.close)
            with by_mpi.world("multiple", session=False) as job:
                job.debug = True
                for line, parsed in zip(self._lines, self._parsed, strict=True):
                    record = self._run(job, line, parsed)
                    job.comm.Barrier()
                    if job.rank == 0:
                        with self._path.open("a") as file:
                            file.write(json.dumps(asdict(record)) + "\n")

    def _run(
        self,
        job: Job,
        line: dict[str, Any],
        parsed: tuple[Benchmark | ApplicationRequest, Options] | Exception,
    ) -> Record:
        """Run one line; what all ranks find is recorded, anything else ends the job."""
        record, out, err = Record(), io.StringIO(), io.StringIO()
        self._watchdog.progress(" ".join(line["arguments"]))
        os.environ.update(dict(line["environment"]))
        try:
            if isinstance(parsed, Exception):
                raise parsed
            benchmark, options = parsed
            buffer, failure = self._buffers[options.buffer, options.devices]
            job.agree(failure)
            assert buffer is not None
            with redirect_stdout(out), redirect_stderr(err):
                measure(job, benchmark, options, buffer, record)
        except (SharedError, UsageError, UnsupportedError) as error:
            record.error, record.code = sentence(error), error.exit_code
        record.out, record.err = out.getvalue(), err.getvalue()
        return record


if __name__ == "__main__":
    math_threads.request_threads(1)  # as each command line does before NumPy is loaded
    Battery(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])).run()
