"""The JSON of nccl-tests (``-J FILE``), with the times of single iterations where it has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import PurePath
from typing import Any, TypeGuard

from omb_py.core.statistics import summarize
from omb_py.results.readers import ROWS_AT_ONCE, Found, Source
from omb_py.results.readers.formats.documents import Lines, TornError, members
from omb_py.results.readers.formats.fixed_width import Notes
from omb_py.results.readers.formats.nccl import (
    NAMES,
    TYPES,
    NcclRow,
    NcclTable,
    Run,
    measurements,
    program_of_file,
)

DOCUMENT = re.compile(r'\{\s*"version"\s*:\s*\d+\s*,\s*"start_time"\s*:\s*"')
PROGRAM = re.compile(rf"(?:[nr]ccl_)?({NAMES})_perf(?:_mpi)?(?:\.exe)?")
NUMBER = re.compile(r"\d{1,15}\.\d{6}")
"""As ``%lf`` prints it; fewer decimals are a number that was cut."""

ROOT = re.compile(r" {4}-1| {0,5}\d{1,6}(?<=.{6})")
OPERATIONS = frozenset(("", "none", "sum", "prod", "max", "min", "avg", "mulsum"))

HALVES = {False: "out_of_place", True: "in_place"}
SETTINGS = {
    "largest": "maximum_bytes",
    "iterations": "iterations",
    "warmup": "warmup_iters",
    "agg iters": "aggregated_iterations",
    "graph": "graph",
}
"""Our names of settings, and those of the object ``config``."""

LARGEST_MACHINE = 1 << 20
"""Ranks that a document may speak of."""

ROUNDED = 1e-5
"""Microseconds by which a statistic may differ from that of the printed times."""

PERCENTILES = {90: "sample_p90_us", 95: "sample_p95_us", 99: "sample_p99_us"}


class NcclJsonReader:
    """Every result of a document; of one that a killed job left, those that are whole."""

    name = "nccl-tests' JSON"
    marks = (
        *(b'{"version":%d,"start_time":' % version for version in range(1, 10)),
        b'"aggregated_iterations"',  # which a file that somebody has indented has, too
    )

    def read(self, source: Source) -> Iterator[Found]:
        text = source.content.decode(errors="replace")
        lines = Lines(text)
        for match in DOCUMENT.finditer(text):
            yield from read_document(source, text, match.start(), lines)


def read_document(source: Source, text: str, start: int, lines: Lines) -> Iterator[Found]:
    """The rows of the document that begins at a place."""
    found = Found()
    notes = Notes(source, found.problems)
    index = lines.at(start)
    run = Run(f"{source.path}:{index + 1}")
    table = NcclTable(index, run, None)
    try:
        for name, value, place in members(text, start, "results"):
            if name == "args":
                describe_command(run, table, value)
            elif name == "nccl_version" and isinstance(value, int):
                run.said["library"] = library_version(value)
            elif name == "config" and isinstance(value, dict):
                describe_config(run, value)
            elif name == "results":
                take(table, value, lines.at(place), notes)
    except TornError as torn:
        text_of_torn = "the document is damaged or ends here; what is whole before is read"
        notes.add(lines.at(torn.place), text_of_torn)
    if run.unknown:
        notes.add(index, f"{run.unknown} is no program that is known; left out")
        table.rows.clear()
    table.program = run.program or program_of_file(PurePath(source.path).name)
    for row in measurements(table, notes):
        found.rows.append(row)
        if len(found.rows) >= ROWS_AT_ONCE:
            yield found.take_rows()
    if table.rows:
        found.runs[run.name] = run.said
    notes.finish()
    yield found


def describe_command(run: Run, table: NcclTable, words: Any) -> None:
    """What the command line adds: the program, and options that the configuration lacks."""
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return
    program = PurePath(words[0]).name if words else ""
    known = PROGRAM.fullmatch(program)
    run.program = known[1] if known else None
    run.unknown = program if "_perf" in program and not known else None
    run.said["command"] = " ".join(words)
    for option, value in pairwise(words):
        if option in ("-z", "--blocking") and value != "0":
            run.blocking = f"-z {value}"
        elif option in ("-u", "--unalign") and re.fullmatch(r"\d{1,9}", value):
            run.settings["unalign"] = int(value)


def describe_config(run: Run, config: Mapping[str, Any]) -> None:
    """Settings, and the host of each rank.

    A process names its first device only: its other ranks are on the same host.
    """
    for name, key in SETTINGS.items():
        if is_count(config.get(key)):
            run.settings[name] = config[key]
    if config.get("blocking_collectives") == "true" and run.blocking is None:
        run.blocking = "yes"
    threads, gpus, devices = (config.get(key) for key in ("nthreads", "ngpus", "devices"))
    if not is_count(threads) or not is_count(gpus) or not isinstance(devices, list):
        return
    run.devices = max(1, threads * gpus)
    if run.devices * len(devices) > LARGEST_MACHINE:
        return
    for device in devices:
        fields = device if isinstance(device, dict) else {}
        group, rank, host = (fields.get(name) for name in ("group", "rank", "hostname"))
        if not is_count(group) or not is_count(rank) or not isinstance(host, str):
            run.ranks.clear()
            return
        for place in range(run.devices):
            run.ranks[group, rank + place] = host
        run.said["device"] = str(fields.get("device_info", ""))


def take(table: NcclTable, result: Any, index: int, notes: Notes) -> None:
    """One result: a size."""
    result = result if isinstance(result, dict) else {}
    size = result.get("size")
    where = f"size {size}: " if is_count(size) else ""
    if any("cpu_time" in half_of(result, name) for name in HALVES.values()):
        text = "the processor's time (-C) stands for the time; left out"
        notes.add(index, f"{where}{text}")
        return
    row = row_of(result, index)
    if row is None:
        notes.add(index, f"{where}not a whole result, left out")
        return
    samples = {}
    for in_place, name in HALVES.items():
        times = half_of(result, f"{name}_per_iter")
        if times and table.run.settings.get("agg iters") == 1:
            columns = samples_of(times, table.run)
            samples[in_place] = columns or {}
            if columns is None:
                text = "times of iterations that do not fit their statistics, left out"
                notes.add(index, f"{where}{text}")
    table.add(NcclRow(**(vars(row) | {"samples": samples})), notes)


def row_of(result: Mapping[str, Any], index: int) -> NcclRow | None:
    """A result taken apart, or None when something is missing or is not what it should be."""
    size, count, dtype, redop, root = (
        result.get(name) for name in ("size", "count", "type", "redop", "root")
    )
    if not is_count(size) or not is_count(count) or dtype not in TYPES:
        return None
    if not isinstance(redop, str) or not isinstance(root, str):
        return None
    if redop not in OPERATIONS or not ROOT.fullmatch(root):
        return None
    halves = {}
    for in_place, name in HALVES.items():
        if name in result and result[name] is None:
            continue  # a run that only replays one of them
        half = half_of(result, name)
        numbers = [half.get(key) for key in ("time", "alg_bw", "bus_bw")]
        wrong = half.get("nwrong", "")
        if not all(is_number(number) for number in numbers):
            return None
        if wrong is not None and not is_number(wrong):
            return None
        halves[in_place] = (*map(str, numbers), "N/A" if wrong is None else f"{float(wrong):.0f}")
    if not halves:
        return None
    return NcclRow(index, size, count, dtype, redop or "none", root.strip(), halves)


def half_of(result: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A measurement of a result; empty where there is none."""
    half = result.get(name)
    return half if isinstance(half, dict) else {}


def samples_of(half: Mapping[str, Any], run: Run) -> dict[str, Any] | None:
    """Columns from times of iterations, or None where they contradict their statistics.

    ``times_us`` are of the slowest process of each iteration. A sample of ours is the mean over
    the ranks: that of the processes, where each of them is one rank.
    """
    skipped = half.get("skipped_iterations", 0)
    lists = half.get("per_process_max_times_us", [])
    if not is_count(skipped) or not isinstance(lists, list):
        return None
    processes = [times for times in map(times_of, lists) if times]
    slowest = times_of(half.get("times_us"))
    if slowest is None or len(processes) != len(lists):
        return None
    if len(slowest) != run.settings.get("iterations", len(slowest)):
        return None
    if any(len(times) != len(slowest) for times in processes):
        return None
    if processes and any(
        abs(max(times) - time) > ROUNDED for time, *times in zip(slowest, *processes, strict=True)
    ):
        return None
    ours = [sum(times) / len(times) for times in zip(*processes, strict=True)]
    if not ours and run.size == 1:
        ours = slowest
    slowest, ours = slowest[skipped:], ours[skipped:]
    if not slowest:
        return None
    all_slowest = summarize(slowest)
    extremes = {"min_us": all_slowest.ordered[0], "max_us": all_slowest.ordered[-1]}
    for key, value in (extremes | {"avg_us": all_slowest.mean}).items():
        if not is_number(half.get(key)) or abs(float(half[key]) - value) > ROUNDED:
            return None
    columns: dict[str, Any] = {
        "slowest_mean_us": all_slowest.mean,
        "slowest_p50_us": all_slowest.percentile(50),
        "slowest_max_us": all_slowest.ordered[-1],
    }
    if len(slowest) >= 100:
        columns["slowest_p99_us"] = all_slowest.percentile(99)
    if ours and run.devices == 1:
        columns |= sample_columns(ours)
    return columns


def sample_columns(samples: list[float]) -> dict[str, Any]:
    """Columns of statistics; a percentile where so many samples can tell it."""
    summary = summarize(samples)
    low, high = summary.median_interval
    columns: dict[str, Any] = {
        "sample_mean_us": summary.mean,
        "sample_stddev_us": summary.stddev,
        "sample_min_us": summary.ordered[0],
        "sample_p50_us": summary.percentile(50),
        "median_low_us": low,
        "median_high_us": high,
        "sample_max_us": summary.ordered[-1],
    }
    for percent, name in PERCENTILES.items():
        if len(samples) * (100 - percent) >= 100:
            columns[name] = summary.percentile(percent)
    return columns


def times_of(values: Any) -> list[float] | None:
    """Times in microseconds, or None when one of them is none."""
    if not isinstance(values, list) or not all(is_number(value) for value in values):
        return None
    return [float(value) for value in values]


def is_number(value: Any) -> TypeGuard[str]:
    """Whether a value is a number as this format prints it."""
    return isinstance(value, str) and NUMBER.fullmatch(value) is not None


def is_count(value: Any) -> TypeGuard[int]:
    """Whether a value is a whole number that is not negative."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def library_version(code: int) -> str:
    """NCCL's version from its code.

    >>> library_version(22703), library_version(2708)
    ('2.27.3', '2.7.8')
    """
    base = 10_000 if code >= 10_000 else 1_000
    return f"{code // base}.{code % base // 100}.{code % 100}"


READER = NcclJsonReader()
