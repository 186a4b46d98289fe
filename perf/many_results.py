"""How long many results take to be read, compared and shown.

Usage: python -m perf.many_results [--files 1000] [--rows 100] [--repeats 4] [--keep FOLDER]

Writes two sets of CSV files as omb-py would have, the second with changes, and prints the seconds
of each step and the maximum memory of this process.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from omb_py.results.columns import Row
from omb_py.results.csv_json import cell, header_of

SIZES = tuple(1 << power for power in range(23))
BENCHMARKS = ("latency", "bw", "allreduce", "alltoall", "bcast", "bibw", "allgather", "reduce")
LIBRARIES = (
    "MPICH Version: 5.0.2 MPICH Release date: Fri Sep 25 20:45:26 UTC 2026",
    "Open MPI v5.0.11, package: Open MPI user@localhost Distribution, ident: 5.0.11",
)
COMBINATIONS = tuple(
    product(
        BENCHMARKS,
        LIBRARIES,
        ("numpy", "cupy", "bytearray"),
        ("native", "buffer", "prebound", "pickle"),
        (2, 4, 8, 16, 32, 64),
    )
)
"""What runs differ in; one run is one of them, over all sizes."""


def write(folder: Path, files: int, rows: int, repeats: int, changed: bool) -> None:
    """So many files of so many rows; each combination comes ``repeats`` times.

    With ``changed`` one combination in ten is 30 % slower.
    """
    random = np.random.default_rng(changed)
    total = files * rows
    runs = -(-total // len(SIZES))
    written = 0
    lines: list[str] = []
    for number in range(runs):
        choice = number // repeats % len(COMBINATIONS)
        slower = 1.3 if changed and choice % 10 == 0 else 1.0
        metadata, run = run_of(number, choice, slower, random)
        for row in run:
            if written == total:
                break
            if not lines:
                lines = [*metadata, header_of(Row.columns)]
            elif row is run[0]:
                lines += metadata
            lines.append(",".join(map(cell, (getattr(row, name) for name in Row.columns))) + "\n")
            written += 1
            if written % rows == 0:
                (folder / f"night-{written // rows:05}.csv").write_text("".join(lines))
                lines = []


def run_of(
    number: int, choice: int, slower: float, random: np.random.Generator
) -> tuple[list[str], list[Row]]:
    """Metadata and rows of one run: a start-up time, a bandwidth, noise, a switch at 16 KiB."""
    benchmark, library, buffer, binding, ranks = COMBINATIONS[choice]
    name = f"20261121T{number // 3600 % 24:02}{number // 60 % 60:02}{number % 60:02}Z-{number:06x}"
    metadata = {
        "run": name,
        "omb_py": "0.1.0",
        "command": f"omb-py {benchmark} --buffer {buffer} --binding {binding}",
        "python": "CPython 3.12.7",
        "system": "Linux 6.18.44 x86_64",
        "processor": "AMD EPYC 9654, 192 logical cores",
        "environment": "UCX_TLS=self,sm,rc",
        "numpy": "2.4.6",
        "mpi4py": "4.1.2",
        "mpi_library": library,
        "thread_level": "single",
        "hosts": f"node{number % 8}:{ranks}",
        "ranks": str(ranks),
    }
    sizes = np.array(SIZES)
    level = {"native": 1.0, "buffer": 1.4, "prebound": 1.2, "pickle": 9.0}[binding]
    level *= np.log2(ranks) * (4.0 if buffer == "cupy" else 1.0)
    time_us = (level + sizes / 11e3 + 3.0 * (sizes > 16384)) * slower
    time_us = time_us * random.lognormal(0, 0.02, len(sizes))
    rows = []
    bandwidth = benchmark in ("bw", "bibw")
    for size, value in zip(SIZES, time_us.tolist(), strict=True):
        statistics: dict[str, Any] = {
            "sample_mean_us": value * 1.03,
            "sample_stddev_us": value * 0.05,
            "sample_min_us": value * 0.97,
            "sample_p50_us": value,
            "median_low_us": value * 0.998,
            "median_high_us": value * 1.002,
            "sample_p90_us": value * 1.06,
            "sample_p95_us": value * 1.08,
            "sample_p99_us": value * 1.15,
            "sample_p999_us": value * 1.5,
            "sample_max_us": value * 4,
        }
        row = Row(
            run=name,
            benchmark=benchmark,
            bytes=size,
            ranks=ranks,
            buffer=buffer,
            binding=binding,
            placement="D" if buffer == "cupy" else "H",
            dtype="int8",
            mpi_type="MPI_CHAR",
            iterations=1000,
            warmup=100,
            payload_bytes=size,
            **statistics,
        )
        if bandwidth:
            rows.append(row.replace(bandwidth_MBps=size * 64 / value, window=64))
        else:
            rows.append(row.replace(latency_us=value * 1.03, latency_min_us=value))
    return [f"# {key}: {text}\n" for key, text in metadata.items()], rows


def timed(what: str, action: Callable[[], Any]) -> Any:
    """Do it, and print how long it took and the maximum memory so far."""
    started = time.perf_counter()
    result = action()
    seconds = time.perf_counter() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:8} {seconds:6.2f} s   {memory:5.0f} MiB")
    return result


def main() -> None:
    """Write both sets, then read, compare and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--keep", type=Path, help="folder for the files and the page")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.keep or Path(temporary)
        for name in ("base", "new"):
            (folder / name).mkdir(parents=True, exist_ok=True)
            write(folder / name, asked.files, asked.rows, asked.repeats, name == "new")
        steps(folder)


def steps(folder: Path) -> None:
    """What users do with the files, each step timed."""
    from omb_py.analysis.compare.side_by_side import compare
    from omb_py.analysis.report.page import report
    from omb_py.analysis.table import load

    base = timed("load", lambda: load(folder / "base"))
    new = timed("load", lambda: load(folder / "new"))
    print(f"         {len(new.rows)} rows each")
    timed("compare", lambda: compare(base.rows, new.rows))
    page = timed("report", lambda: report(new))
    (folder / "report.html").write_text(page, encoding="utf-8")
    print(f"         {len(page) / 1e6:.1f} MB of HTML")


if __name__ == "__main__":
    main()
