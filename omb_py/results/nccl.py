"""nccl-tests' programs, what they measure, and their output: text to the column, and JSON.

Source: src/common.cu and src/util.cu of nccl-tests 2.19.6.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from itertools import chain, count
from typing import Any, TextIO

from omb_py.core.dataclass import dataclass
from omb_py.core.text.files import failing
from omb_py.results.writer import StreamWriter

SUITE_VERSION = "2.19.6"
"""The release of nccl-tests whose output and definitions these are."""

PROGRAMS = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "broadcast": "bcast",
    "reduce": "reduce",
    "reduce_scatter": "reduce_scatter_block",
    "alltoall": "alltoall",
    "alltoallv": "nccl_alltoallv",
    "gather": "gather",
    "scatter": "scatter",
    "sendrecv": "sendrecv",
    "hypercube": "nccl_hypercube",
}
"""Its programs, and our names for what they measure."""

ROOTED = frozenset("broadcast reduce gather scatter".split())
ADDING = frozenset("all_reduce reduce reduce_scatter".split())
OF_BLOCKS = frozenset("all_gather alltoall gather scatter".split())
"""Those whose size is of all blocks, ours of one."""

OF_PARTS = OF_BLOCKS | {"reduce_scatter", "hypercube"}
"""Those whose count is of a part of the size."""

TYPES = {
    "char": (1, "int8", "MPI_INT8_T"),
    "int": (4, "int32", "MPI_INT32_T"),
    "half": (2, "float16", "half"),
    "bfloat16": (2, "bfloat16", "bfloat16"),
    "float": (4, "float32", "MPI_FLOAT"),
    "double": (8, "float64", "MPI_DOUBLE"),
}
TYPES |= {f"int{8 * n}": (n, f"int{8 * n}", f"MPI_INT{8 * n}_T") for n in (1, 4, 8)}
TYPES |= {f"uint{8 * n}": (n, f"uint{8 * n}", f"MPI_UINT{8 * n}_T") for n in (1, 4, 8)}
TYPES |= {f"f8{kind}": (1, f"float8_{kind}", f"f8{kind}") for kind in ("e4m3", "e5m2")}
TYPES |= {f"fp8_{kind}": (1, f"float8_{kind}", f"fp8_{kind}") for kind in ("e4m3", "e5m2")}
"""Bytes of an element, and its name in NumPy's words and in MPI's, or in NCCL's if MPI has none; it
distinguishes rows of several types."""

USUAL_TYPES = "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16".split()
"""Types of ``-d``, in nccl-tests' order, without those of 8-bit floating point."""

TYPE_NAMES = {TYPES[name][1]: name for name in USUAL_TYPES}
"""Its names of types by NumPy's."""

SLACK = 0.9
"""The part of ``NCCL_TESTS_MIN_BW`` that the mean bus bandwidth must reach."""


@dataclass(frozen=True)
class NcclSettings:
    """What the options of a program ask for, sizes in bytes.

    ``step`` is a factor if ``multiplied``, else bytes. ``root`` is None for each rank in turn,
    ``average`` the number of ``-a``, ``minimum`` the mean bus bandwidth in GB/s that
    ``NCCL_TESTS_MIN_BW`` asks for, if it does. ``words`` are the command line.
    """

    program: str
    smallest: int
    largest: int
    step: int
    multiplied: bool
    iterations: int
    warmup: int
    aggregated: int
    cycles: int
    checks: int
    root: int | None
    blocking: int
    average: int
    cpu_time: bool
    timestamps: bool
    unaligned: int
    minimum: float | None
    output: str | None
    words: tuple[str, ...]


@dataclass(frozen=True)
class NcclHalf:
    """Numbers out of place, or in place: microseconds, GB/s, and wrong elements of all ranks.

    ``wrong`` is None where data is not checked.
    """

    time: float
    algbw: float
    busbw: float
    wrong: int | None


@dataclass(frozen=True)
class NcclRow:
    """A line of results; ``size`` in bytes, ``count`` in elements, ``root`` is -1 without one."""

    size: int
    count: int
    type: str
    redop: str
    root: int
    halves: tuple[NcclHalf, ...]


@dataclass(frozen=True)
class NcclRank:
    """A rank, as the list of devices names it."""

    rank: int
    pid: int
    host: str
    device: int
    bus: str
    name: str

    def line(self) -> str:
        """Return its line of the text."""
        where = f"#  Rank {self.rank:2d} Group  0 Pid {self.pid:6d} on {self.host:>10s}"
        return f"{where} device {self.device:2d} [{self.bus}] {self.name}"

    def document(self) -> dict[str, Any]:
        """Return it as the JSON has it."""
        found: dict[str, Any] = {"rank": self.rank, "group": 0}
        found |= {"pid": self.pid, "hostname": self.host}
        found |= {"device": self.device, "device_hex": self.bus, "device_info": self.name}
        return found


class NcclReport:
    """What a run's output says besides its rows: what was asked for, by what, on which devices.

    ``facts`` are what measures in place of nccl-tests, ``largest`` is the size in bytes up to which
    there is memory. ``errors`` counts ranks that found wrong data, once for each half of a row.
    """

    def __init__(self, settings: NcclSettings) -> None:
        self.settings = settings
        self.facts: dict[str, str] = {}
        self.ranks: list[NcclRank] = []
        self.largest = settings.largest
        self.errors = 0
        self.buses: list[float] = []

    @property
    def mean(self) -> float:
        """The mean of bus bandwidths in GB/s, in place and out of place."""
        return sum(self.buses) / max(1, len(self.buses))

    @property
    def fast_enough(self) -> bool:
        """Whether the mean is at least `SLACK` times ``NCCL_TESTS_MIN_BW``, if that is set."""
        minimum = self.settings.minimum
        return minimum is None or self.mean >= minimum * SLACK


class NcclText(StreamWriter):
    """nccl-tests' text, with what measures in place of it on the first line."""

    def __init__(self, stream: TextIO, report: NcclReport) -> None:
        super().__init__(stream)
        self._report = report

    def start(self, metadata: dict[str, str]) -> None:
        report = self._report
        for line in (*above(report), *headings(report.settings)):
            self._line(line)

    def row(self, row: NcclRow) -> None:
        line = f"{row.size:12d}  {row.count:12d}  {row.type:>8s}  {row.redop:>6s}  {row.root:6d}"
        for half in row.halves:
            numbers = (number(half.time, 7), number(half.algbw, 6), number(half.busbw, 6))
            line += "".join(f"  {one}" for one in numbers)
            line += "     N/A" if half.wrong is None else f"  {half.wrong:6g}"
        self._line(line + (f"{now():>21s}" if self._report.settings.timestamps else ""))

    def finish(self) -> None:
        report = self._report
        verdict = "FAILED" if report.errors else "OK"
        self._line(f"# {'Out of bounds values':<20s} : {report.errors} {verdict}")
        verdict = "OK" if report.fast_enough else "FAILED"
        verdict = "" if report.settings.minimum is None else verdict
        self._line(f"# {'Avg bus bandwidth':<20s} : {report.mean:g} {verdict}")
        self._line(f"#\n# Collective test concluded: {report.settings.words[0]}\n#\n")


def above(report: NcclReport) -> list[str]:
    """Return the lines above the headings."""
    settings = report.settings
    facts = " ".join(f"{key}={text.replace(' ', '_')}" for key, text in report.facts.items())
    step = f"{settings.step}({'factor' if settings.multiplied else 'bytes'})"
    found = [
        f"# omb-py in place of nccl-tests {SUITE_VERSION}: {facts}",
        f"# Collective test starting: {settings.words[0]}",
        f"# nThread 1 nGpus 1 minBytes {settings.smallest} maxBytes {settings.largest} step: {step}"
        f" warmup iters: {settings.warmup} iters: {settings.iterations} agg iters: "
        f"{settings.aggregated} validation: {settings.checks} graph: 0 unalign: "
        f"{settings.unaligned}",
    ]
    if settings.blocking:
        found.append(f"# Blocking Enabled: {BLOCKING[settings.blocking]} ")
    found += ["#", "# Using devices", *(one.line() for one in report.ranks)]
    if report.largest < settings.largest:
        found += ["#", f"# Reducing maxBytes to {report.largest} due to memory limitation"]
    return found


BLOCKING = (
    "",
    "wait and barrier after each inner iteration (-m)",
    "wait after each inner iteration (-m), no barrier",
    "wait and barrier after each outer iteration (-n); time excludes barrier",
)
"""What ``-z`` waits for."""


def headings(settings: NcclSettings) -> list[str]:
    """Return the lines above the rows."""
    time_name = "cputime" if settings.cpu_time else "time"
    half = (time_name, "algbw", "busbw", "#wrong"), ("(us)", "(GB/s)", "(GB/s)", "")
    first = ("size", "count", "type", "redop", "root"), ("(B)", "(elements)", "", "", "")
    stamp, width = (("timestamp", TIME), 19) if settings.timestamps else (("", ""), 0)
    blank = f"# {'':10s}  {'':12s}  {'':8s}  {'':6s}  {'':6s}"
    found = ["#", f"{blank}           out-of-place                       in-place          "]
    for names, columns, last in zip(first, half, stamp, strict=True):
        a, b, c, d, e = names
        line = f"# {a:>10s}  {b:>12s}  {c:>8s}  {d:>6s}  {e:>6s}"
        time_head, *others = columns
        one = f"  {time_head:>7s}" + "".join(f"  {other:>6s}" for other in others)
        found.append(f"{line}{one}{one} {last.rjust(width)}")
    return found


TIME = "%Y-%m-%d %H:%M:%S"


def now() -> str:
    """Return the time of day as nccl-tests prints it."""
    return time.strftime(TIME)


def number(value: float, width: int) -> str:
    """Return a number with as many decimals, of two at most, as fit into a column.

    >>> number(12.345, 7), number(123456.78, 7), number(1234567.8, 7), number(1e9, 7)
    ('  12.35', ' 123457', '1234568', '1.0e+09')
    """
    for decimals in (2, 1, 0):
        if len(text := f"{value:{width}.{decimals}f}") <= width:
            return text
    return f"{value:{width}.{1 if width >= 7 else 0}e}"


class NcclJson(StreamWriter):
    """nccl-tests' JSON of ``-J``, a result at a time, of which a job that is killed leaves some."""

    def __init__(self, stream: TextIO, report: NcclReport) -> None:
        super().__init__(stream)
        self._report = report
        self._between = ""

    def start(self, metadata: dict[str, str]) -> None:
        settings = self._report.settings
        config = {
            "nthreads": 1,
            "ngpus": 1,
            "minimum_bytes": settings.smallest,
            "maximum_bytes": settings.largest,
            f"step_{'factor' if settings.multiplied else 'bytes'}": settings.step,
            "warmup_iters": settings.warmup,
            "iterations": settings.iterations,
            "aggregated_iterations": settings.aggregated,
            "validation": settings.checks,
            "graph": 0,
            "blocking_collectives": truth(settings.blocking),
            "per_iter_timing": truth(False),
            "per_iter_skip": 0,
            "parallel_init": truth(False),
            "devices": [one.document() for one in self._report.ranks],
        }
        head = {"version": 3, "start_time": now(), "args": list(settings.words), "env": []}
        head |= {"omb_py": self._report.facts, "config": config}
        self._write(compact(head).removesuffix("}") + ',"results":[')

    def row(self, row: NcclRow) -> None:
        found: dict[str, Any] = {
            "size": row.size,
            "count": row.count,
            "type": row.type,
            "redop": row.redop,
            "root": f"{row.root:6d}",
        }
        time_name = "cpu_time" if self._report.settings.cpu_time else "time"
        for name, half in zip(("out_of_place", "in_place"), row.halves, strict=True):
            numbers = {time_name: half.time, "alg_bw": half.algbw, "bus_bw": half.busbw}
            wrong = None if half.wrong is None else float(half.wrong)
            found[name] = {key: round(one, 6) for key, one in numbers.items()} | {"nwrong": wrong}
        found |= {"actual_iterations": self._report.settings.iterations, "experiment_name": ""}
        self._write(self._between + compact(found))
        self._between = ","

    def finish(self) -> None:
        report = self._report
        enough = "unchecked" if report.settings.minimum is None else truth(report.fast_enough)
        tail = {
            "out_of_bounds": {"count": report.errors, "okay": truth(not report.errors)},
            "average_bus_bandwidth": {"bandwidth": round(report.mean, 6), "okay": enough},
            "errors": [],
            "end_time": now(),
        }
        self._write("]," + compact(tail).removeprefix("{") + "\n")
        self._stream.close()

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def compact(document: dict[str, Any]) -> str:
    """Return a document as nccl-tests writes it, without blanks."""
    return json.dumps(document, separators=(",", ":"))


def truth(value: object) -> str:
    """Return a truth value as nccl-tests' JSON has it, a text."""
    return "true" if value else "false"


def open_json(path: str) -> tuple[TextIO, str]:
    """Return a new file for ``-J``, and its name: another one's is kept, as in nccl-tests.

    Raises `OmbError` if it cannot be written.
    """
    names = chain([path], (f"{path}.{number}" for number in count()))
    with failing("write", path, advice="; choose another place for -J"):
        for name in names:
            with suppress(FileExistsError):
                return open(name, "x", encoding="utf-8"), name
    raise AssertionError(path)
