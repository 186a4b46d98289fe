"""The JSON of nccl-tests (``-J FILE``), also what a killed job left of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from omb_py.results.readers import Found, Notes, Source
from omb_py.results.readers.nccl_tests import (
    NAMES,
    TYPES,
    NcclRow,
    NcclTable,
    Run,
    program_of_file,
)

DOCUMENT = re.compile(r'\{\s*"version"\s*:\s*\d+\s*,\s*"start_time"\s*:\s*"')
RESULT = re.compile(r',?\s*\{\s*"size"')
PROGRAM = re.compile(rf"(?:[nr]ccl_)?({NAMES})_perf(?:_mpi)?(?:\.exe)?")
NUMBER = re.compile(r"\d{1,15}\.\d{6}")
"""As ``%lf`` prints it; fewer decimals are a number that was cut."""

DECODER = json.JSONDecoder(parse_float=str)
"""Numbers with decimals stay text, for their digits tell the number of ranks."""

DAMAGED = (ValueError, RecursionError, LookupError, TypeError, AttributeError)
"""What a document raises that has not what it should have."""

HALVES = {False: "out_of_place", True: "in_place"}
SETTINGS = {
    "iterations": "iterations",
    "warmup": "warmup_iters",
    "agg iters": "aggregated_iterations",
    "graph": "graph",
}
"""Our names of settings, and those of the object ``config``."""

SLOWEST = {"slowest_mean_us": "avg_us", "slowest_p50_us": "p50_us", "slowest_max_us": "max_us"}
"""Columns of what ``-I 1`` prints of single iterations, each that of the slowest process."""

LARGEST_MACHINE = 1 << 20
"""Ranks that a document may speak of."""


class NcclJsonReader:
    """Every result of a document; of one that a killed job left, those that are whole."""

    name = "nccl-tests' JSON"
    marks = (
        *(b'{"version":%d,"start_time":' % version for version in range(1, 10)),
        b'"aggregated_iterations"',  # which a file that somebody has indented has, too
    )

    def read(self, source: Source) -> Iterator[Found]:
        """All whole rows, a document at a time."""
        text = source.content.decode(errors="replace")
        starts = [match.start() for match in DOCUMENT.finditer(text)]
        for start, end in pairwise([*starts, len(text)]):
            yield read_document(source, text[start:end], text.count("\n", 0, start))


def read_document(source: Source, text: str, index: int) -> Found:
    """The rows of a document that begins in the line of an index."""
    found = Found()
    notes = Notes(source, found.problems)
    run = Run(f"{source.path}:{index + 1}")
    places = [match.start() for match in RESULT.finditer(text)]
    lines = [index + text.count("\n", 0, text.index("{", place)) for place in places]
    document, end = whole_part(text, places)
    if end is not None:
        reason = "the document is damaged or ends here; what is whole before is read"
        notes.add(index + text.count("\n", 0, end), reason)
    try:
        describe(run, document)
    except DAMAGED:
        run.ranks.clear()
    table = NcclTable(index, run, run.program or program_of_file(source.path))
    entries = document.get("results") if isinstance(document, dict) else None
    for result, line in zip(entries if isinstance(entries, list) else [], lines, strict=False):
        if "cpu_time" in str(result):
            notes.add(line, "the processor's time (-C) stands for the time; left out")
            continue
        try:
            row = row_of(result, line, run)
        except DAMAGED:
            notes.add(line, "not a whole result, left out")
        else:
            table.add(row, notes)
    found.rows.extend(table.measurements(notes))
    if table.rows:
        found.runs[run.name] = run.said
    notes.finish()
    return found


def whole_part(text: str, places: list[int]) -> tuple[Any, int | None]:
    """A document, or what is whole of it with where that ends; results begin at ``places``."""
    try:
        return DECODER.raw_decode(text)[0], None
    except RecursionError:
        return {}, 0
    except json.JSONDecodeError as error:
        before = [place for place in places if place < error.pos]
        for end in (error.pos, *before[-1:]):
            try:
                return DECODER.decode(text[:end].rstrip("{, \n") + "]}"), end
            except (ValueError, RecursionError):
                continue
    return {}, 0


def describe(run: Run, document: dict[str, Any]) -> None:
    """What stands above the results: the command, the library, settings, the host of each rank.

    Raises one of `DAMAGED` where something is not what it should be.
    """
    words = [str(word) for word in document.get("args", [])]
    program = PurePath(words[0]).name if words else ""
    known = PROGRAM.fullmatch(program)
    run.program = known[1] if known else program if "_perf" in program else None
    run.said["command"] = " ".join(words)
    for option, value in pairwise(words):
        if option in ("-z", "--blocking") and value != "0":
            run.blocking = f"-z {value}"
        elif option in ("-u", "--unalign"):
            run.settings["unalign"] = int(value)
    if "nccl_version" in document:
        run.said["library"] = library_version(document["nccl_version"])
    config = document.get("config", {})
    run.settings |= {name: int(config[key]) for name, key in SETTINGS.items() if key in config}
    if config.get("blocking_collectives") == "true" and run.blocking is None:
        run.blocking = "yes"
    run.devices = max(1, int(config["nthreads"]) * int(config["ngpus"]))
    for device in config["devices"][: LARGEST_MACHINE // run.devices]:
        # a process names its first device only: its other ranks are on the same host
        for rank in range(device["rank"], device["rank"] + run.devices):
            run.ranks[int(device["group"]), rank] = str(device["hostname"])
        run.said["device"] = str(device.get("device_info", ""))


def row_of(result: dict[str, Any], index: int, run: Run) -> NcclRow:
    """A result taken apart; raises one of `DAMAGED` when something is not what it should be."""
    size, count, dtype = result["size"], result["count"], result["type"]
    redop, root = result["redop"].strip() or "none", result["root"].strip()
    if not 0 <= size < 1 << 63 or not 0 <= count < 1 << 63 or dtype not in TYPES:
        raise ValueError(result)
    if not re.fullmatch(r"[a-z]{2,8}", redop) or not re.fullmatch(r"-1|\d{1,7}", root):
        raise ValueError(result)
    halves, samples = {}, {}
    for in_place, name in HALVES.items():
        if (half := result[name]) is None:
            continue  # a run that only replays one of them
        wrong = half.get("nwrong", "")
        cells = (
            half["time"],
            half["alg_bw"],
            half["bus_bw"],
            "0.000000" if wrong is None else wrong,
        )
        if not all(map(NUMBER.fullmatch, cells)):
            raise ValueError(result)
        halves[in_place] = (*cells[:3], "N/A" if wrong is None else wrong)
        each = result.get(f"{name}_per_iter", {})
        if run.settings.get("agg iters") == 1:
            samples[in_place] = {
                column: float(each[key])
                for column, key in SLOWEST.items()
                if NUMBER.fullmatch(str(each.get(key)))
            }
    if not halves:
        raise ValueError(result)
    return NcclRow(index, size, count, dtype, redop, root, halves, samples)


def library_version(code: int) -> str:
    """NCCL's version from its code.

    >>> library_version(22703), library_version(2708)
    ('2.27.3', '2.7.8')
    """
    base = 10_000 if code >= 10_000 else 1_000
    return f"{code // base}.{code % base // 100}.{code % 100}"


READER = NcclJsonReader()
