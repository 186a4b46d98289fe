"""The JSON of nccl-tests (``-J FILE``), also what a killed job left of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from omb_py.results.readers import Found, Reader, Source
from omb_py.results.readers.nccl_tests import (
    CELLS,
    HALF,
    NAMES,
    NcclRun,
    NcclTables,
    program_of_file,
)

DOCUMENT = re.compile(r'\{\s*"version"\s*:\s*\d+\s*,\s*"start_time"\s*:\s*"')
RESULTS = re.compile(r'"results"\s*:\s*\[')
RESULT = re.compile(r'\{\s*"size"')
REST = re.compile(r"\s*\]")
PROGRAM = re.compile(rf"(?:[nr]ccl_)?({NAMES})_perf(?:_mpi)?(?:\.exe)?")
SIZE = re.compile(r"^(?:OMPI_COMM_WORLD_SIZE|PMI_SIZE|SLURM_STEP_NUM_TASKS)=(\d{1,9})$", re.M)
"""Launchers' variables for the number of processes."""

DECODER = json.JSONDecoder(parse_float=str)
"""Numbers with decimals stay text, for their digits tell the number of ranks."""

DAMAGED = (ValueError, RecursionError, LookupError, TypeError, AttributeError)
"""Errors that damaged documents raise."""

HALVES = {"": "out_of_place", "_in": "in_place"}
SETTINGS = {
    "iterations": "iterations",
    "warmup": "warmup_iters",
    "agg iters": "aggregated_iterations",
    "graph": "graph",
}
"""Our names of settings, and those of the object ``config``."""

SLOWEST = {
    "avg_us": "slowest_mean_us",
    "p50_us": "slowest_p50_us",
    "p99_us": "slowest_p99_us",
    "max_us": "slowest_max_us",
}
"""Statistics of single iterations (``-I 1``), each of the slowest process, and our columns."""

LARGEST_MACHINE = 1 << 20
"""Ranks that a document may speak of."""


def read(source: Source) -> Iterator[Found]:
    """Yield every result, a document at a time; of one that a killed job left, those that are
    whole."""
    text = source.content.decode(errors="replace")
    starts = [match.start() for match in DOCUMENT.finditer(text)]
    for start, end in pairwise([*starts, len(text)]):
        yield read_document(source, text[start:end], text.count("\n", 0, start))


def read_document(source: Source, text: str, index: int) -> Found:
    """Yield the rows of a document that begins in the line of an index."""
    tables = NcclTables(source)
    run = tables.run = NcclRun(f"{source.path}:{index + 1}")
    results = RESULTS.search(text)
    place = end = results.end() if results else len(text)
    try:
        describe(run, json.loads(text[: results.start() if results else 0].rstrip(", \n") + "}"))
    except DAMAGED:
        run.ranks.clear()
    tables.top, tables.program = index, run.program or program_of_file(source.path)
    line = index + text.count("\n", 0, place)
    for match in RESULT.finditer(text, place):
        line += text.count("\n", place, match.start())
        place = match.start()
        try:
            result, end = DECODER.raw_decode(text, place)
            if '"cpu_time"' in text[place:end]:
                text_of_note = "the processor's time (-C) stands for the time; left out"
                tables.notes.add(line, text_of_note)
            else:
                tables.take(line, cells_of(result, tables))
        except DAMAGED:
            tables.notes.add(line, "not a whole result, left out")
    if not REST.match(text, end):
        tables.notes.add(line, "the document is damaged or ends here; what is whole is read")
    tables.end_table()
    tables.notes.finish()
    return tables.found


def describe(run: NcclRun, document: dict[str, Any]) -> None:
    """Take the facts above the results: command, library, settings, the host of each rank.

    Raises one of `DAMAGED` for an unexpected value.
    """
    words = [str(word) for word in document.get("args", [])]
    program = PurePath(words[0]).name if words else ""
    known = PROGRAM.fullmatch(program)
    run.program = known[1] if known else program if "_perf" in program else None
    run.said["command"] = " ".join(words)
    started = SIZE.search("\n".join(map(str, document.get("env", []))))
    run.launched = int(started[1]) if started else 0
    for option, value in pairwise(words):
        if option in ("-z", "--blocking") and value != "0":
            run.blocking = f"-z {value}"
        elif option in ("-u", "--unalign"):
            run.settings["unalign"] = int(value)
    if "nccl_version" in document:
        run.said["library"] = library_version(document["nccl_version"])
    run.ours = {str(key): str(text) for key, text in document.get("omb_py", {}).items()}
    config = document.get("config", {})
    run.settings |= {name: int(config[key]) for name, key in SETTINGS.items() if key in config}
    run.skipped = int(config.get("per_iter_skip", 0))
    if config.get("blocking_collectives") == "true" and run.blocking is None:
        run.blocking = "yes"
    run.devices = max(1, int(config["nthreads"]) * int(config["ngpus"]))
    for device in config["devices"][: LARGEST_MACHINE // run.devices]:
        # a process names its first device only: its other ranks are on the same host
        for rank in range(device["rank"], device["rank"] + run.devices):
            run.ranks[int(device["group"]), rank] = str(device["hostname"])
        run.said["device"] = str(device.get("device_info", ""))


def cells_of(result: dict[str, Any], tables: NcclTables) -> dict[str, Any]:
    """Return a result's cells as text; raise one of `DAMAGED` for an unexpected value."""
    cells = {name: str(result[name]).strip() for name in ("size", "count", "type", "redop", "root")}
    cells["redop"] = cells["redop"] or "none"
    samples: dict[str, Any] = {}
    halves = {end: result[name] for end, name in HALVES.items() if result[name] is not None}
    for end, half in halves.items():  # a run that replays only one of them has no other
        wrong = "N/A" if half["nwrong"] is None else half["nwrong"]
        numbers = (half["time"], half["alg_bw"], half["bus_bw"], wrong)
        cells |= {column + end: str(one) for column, one in zip(HALF, numbers, strict=True)}
        each = result.get(f"{HALVES[end]}_per_iter", {})
        samples["samples" + end] = tables.tails(each, SLOWEST)
    whole = all(re.fullmatch(CELLS[name.removesuffix("_in")], cell) for name, cell in cells.items())
    if not (whole and halves):
        raise ValueError(result)
    return cells | samples


def library_version(code: int) -> str:
    """Return NCCL's version from its code.

    >>> library_version(22703), library_version(2708)
    ('2.27.3', '2.7.8')
    """
    base = 10_000 if code >= 10_000 else 1_000
    return f"{code // base}.{code % base // 100}.{code % 100}"


READER = Reader(
    "nccl-tests' JSON",
    (
        *(b'{"version":%d,"start_time":' % version for version in range(1, 10)),
        b'"aggregated_iterations"',  # which an indented file has, too
    ),
    read,
)
