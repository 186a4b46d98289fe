"""Every program of native OMB beside omb-py's, alternately: do both print the same number?

Usage: python -m perf.native DIR [--sizes 8,16K,512K,4M] [--rounds 3] [--only NAMES] [--output FILE]

DIR has native OMB 7.4, built with this environment's MPI. In each round a program of native OMB
runs, then omb-py's through the bindings native and buffer, then native OMB's once more, or the
reverse. A row has, for a column that both print, the medians over the rounds; ``ratio`` is omb-py's
(binding native) over native OMB's, ``ratio_buffer`` that of binding buffer, and ``c_over_c`` that
of native OMB's second runs over its first ones. "overall - compute" is what a non-blocking
collective adds to the computing, for native OMB computes longer (docs/programs.md). ``low`` and
``high`` are native OMB's extreme runs over its median: ``beyond`` is yes if the ratio lies outside
of 0.9 to 1.1 and of these. Rows of FILE that are not measured anew stay.

Two ranks, but three for neighbourhoods, which give up their cores while they wait. For bw_fan_in
and bw_fan_out each rank is a node of its own (the name of its processor is given by a preloaded
function, omb-py has --node-map 1).
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pandas as pd

from omb_py.benchmarks import Benchmark, own_benchmarks
from omb_py.core.errors import OmbError
from omb_py.core.mpi import THROTTLE
from omb_py.core.text.units import parse_bytes
from omb_py.results.readers.omb_text import ONE_TYPE
from omb_py.sweeps import compare_native as beside
from perf.jobs import ENVIRONMENT, OVERSUBSCRIBED, compile_c

COLUMNS = {
    "latency_us": "mean",
    "bandwidth_MBps": "MB/s",
    "overall_us": "overall",
    "compute_us": "compute",
}
"""Columns that both suites print, and their names in the table; medians are from ``-z50``."""

THREADS = {"latency_mt": ("-t", "1:1"), "latency_mp": ("-t", "2:2")}
"""Native OMB's default has one thread to send and two to receive: more than two cores have."""

BINDINGS = ("native", "buffer")
FIELDS = (
    "benchmark bytes column rounds native_omb binding_native ratio c_over_c low high beyond "
    "ratio_buffer"
).split()


CORES = len(os.sched_getaffinity(0))
OF_NODES = ("--node-map", "1")

NODES = """#include <mpi.h>
#include <stdio.h>
int MPI_Get_processor_name(char *name, int *length)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *length = sprintf(name, "node%03d", rank);
    return MPI_SUCCESS;
}
"""
"""C of the names of nodes: each rank has one of its own."""

ON_NODES = """#!/bin/sh
for word; do
    shift
    case $word in --node-map|1) ;; *) set -- "$@" "$word" ;; esac
done
LD_PRELOAD={library} exec {program} "$@"
"""
"""Starts a program with these names, without an option that only omb-py has."""


@dataclass(frozen=True)
class Series:
    """The values of one column at one size: native OMB's in pairs of a round, ours by binding."""

    first: list[float]
    second: list[float]
    ours: dict[str, list[float]]

    def row(self) -> dict[str, str]:
        """Return the cells of the table."""
        both = [*self.first, *self.second]
        base = statistics.median(both)
        own = statistics.median(self.ours["native"])
        low, high = min(both) / base, max(both) / base
        ratio = own / base
        cells = {
            "native_omb": base,
            "binding_native": own,
            "ratio": ratio,
            "c_over_c": statistics.median(self.second) / statistics.median(self.first),
            "low": low,
            "high": high,
        }
        buffer = self.ours.get("buffer")
        return {
            "rounds": str(len(self.first)),
            **{name: f"{value:.2f}" for name, value in cells.items()},
            "beyond": "" if min(0.9, low) <= ratio <= max(1.1, high) else "yes",
            "ratio_buffer": f"{statistics.median(buffer) / base:.2f}" if buffer else "",
        }


def values(rows: pd.DataFrame) -> dict[str, float]:
    """Return what a run of one size printed, by the names of the table."""
    row = rows.iloc[-1]
    found = {
        name: float(row[column])
        for column, name in COLUMNS.items()
        if column in rows and pd.notna(row[column])
    }
    if {"overall", "compute"} <= found.keys():
        found["overall - compute"] = found["overall"] - found["compute"]
    if "percentiles" in rows and str(row["percentiles"]).startswith("p50="):
        found["p50"] = float(str(row["percentiles"]).removeprefix("p50="))
    return found


def alternate(
    turns: beside.Turns, rounds: int, folder: Path
) -> tuple[list[dict[str, float]], list[dict[str, float]], dict[str, list[dict[str, float]]]]:
    """Return what native OMB printed first and last in each round, and what ours printed."""
    turns = beside.first_turn(turns, folder)
    programs = {
        name: command if name == turns.native or not turns.medians else (*command, beside.MEDIANS)
        for name, command in turns.programs().items()
    }
    ours = [name for name in programs if name != turns.native]
    launches = [ours] if turns.share_launch else [[name] for name in ours]
    first: list[dict[str, float]] = []
    last: list[dict[str, float]] = []
    mine: dict[str, list[dict[str, float]]] = {name: [] for name in ours}
    for number in range(1, rounds + 1):
        places = ((2 * number, first), (2 * number + 1, last))
        for turn, kept in places if number % 2 else places[::-1]:
            beside.run(turns, [turns.native], programs, folder, turn)
            kept.append(values(beside.rows_of(turns, turns.native, folder, turn)))
            if len(first) + len(last) == 2 * number - 1:
                for names in launches:
                    beside.run(turns, names, programs, folder, number)
                for name in ours:
                    mine[name].append(values(beside.rows_of(turns, name, folder, number)))
    return first, last, mine


def compared(turns: beside.Turns, rounds: int, folder: Path) -> Iterator[tuple[str, Series]]:
    """Yield the series of each column that all print."""
    first, last, ours = alternate(turns, rounds, folder)
    everything = [*first, *last, *(one for runs in ours.values() for one in runs)]
    for name in [*COLUMNS.values(), "overall - compute", "p50"]:
        if all(one.get(name) for one in everything):
            yield (
                name,
                Series(
                    [one[name] for one in first],
                    [one[name] for one in last],
                    {binding: [one[name] for one in runs] for binding, runs in ours.items()},
                ),
            )


def ranks_of(benchmark: Benchmark) -> int:
    """Return how many ranks a benchmark gets."""
    return 3 if "topology" in benchmark.options else 2


def on_nodes(program: Path, folder: Path) -> Path:
    """Return a program of the same name whose ranks are nodes of their own."""
    source, library, script = folder / "nodes.c", folder / "nodes.so", folder / program.name
    source.write_text(NODES)
    compile_c(str(source), str(library), "-shared", "-fPIC")
    script.write_text(ON_NODES.format(library=library, program=program))
    script.chmod(0o755)
    return script


def turns_of(benchmark: Benchmark, place: Path, size: int | None, folder: Path) -> beside.Turns:
    """Return the programs of a benchmark at one size; both reduce MPI_INT where both can."""
    options: tuple[str, ...] = () if size is None else ("-m", f"{size}:{size}")
    if benchmark.reduces and benchmark.name not in ONE_TYPE:
        options += ("-T", "mpi_int")
    program = beside.find_binary(place, benchmark.name)
    if "nodes" in benchmark.options:
        program, options = on_nodes(program, folder), (*options, *OF_NODES)
    return beside.Turns(
        program,
        benchmark.name,
        (*options, *THREADS.get(benchmark.name, ())),
        BINDINGS,
        ranks_of(benchmark),
        (*beside.find_launcher(None),),
        timeout=300,
    )


def chosen(names: str, sizes: Sequence[int]) -> Iterator[tuple[Benchmark, int | None]]:
    """Yield each benchmark that native OMB has and that prints times, with each of its sizes.

    Of ``names``, separated by commas, if there are any; the size is None if a benchmark has one.
    """
    for benchmark in own_benchmarks():
        wanted = not names or benchmark.name in names.split(",")
        if wanted and benchmark.native and benchmark.planned:
            alone = not benchmark.sized or benchmark.elements
            for size in [None] if alone else sizes:
                yield benchmark, size


class Table:
    """The rows of a file, by benchmark, size and column."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._rows: dict[tuple[str, str, str], dict[str, str]] = {}
        if path is not None and path.exists():
            with path.open(newline="") as file:
                for row in csv.DictReader(file):
                    self._rows[row["benchmark"], row["bytes"], row["column"]] = row

    def add(self, row: dict[str, str]) -> None:
        """Put a row in the place of that with its benchmark, size and column."""
        self._rows[row["benchmark"], row["bytes"], row["column"]] = row
        print(*(row[field] or "-" for field in FIELDS), sep="  ", flush=True)
        if self._path is not None:
            with self._path.open("w", newline="") as file:
                writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(self._rows.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", type=Path, metavar="DIR")
    parser.add_argument("--sizes", default="8,16K,512K,4M")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    os.environ.update(ENVIRONMENT | OVERSUBSCRIBED)
    sizes = [parse_bytes(text) for text in given.sizes.split(",")]
    table = Table(given.output)
    for benchmark, size in chosen(given.only, sizes):
        cells = {"benchmark": benchmark.name, "bytes": str(size or "")}
        throttled = patch.dict(os.environ, THROTTLE if ranks_of(benchmark) > CORES else {})
        try:
            with throttled, tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                turns = turns_of(benchmark, given.place.resolve(), size, folder)
                for column, series in compared(turns, given.rounds, folder):
                    table.add(cells | {"column": column, **series.row()})
        except OmbError as error:
            what = f"{benchmark.name} {cells['bytes']}".strip()
            print(f"{what}: left out: {error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
