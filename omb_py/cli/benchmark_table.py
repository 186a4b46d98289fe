"""The benchmarks as Markdown: what each measures, and what ran on which MPI library."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from omb_py.benchmarks import Benchmark, by_family

RECORD = Path(__file__).parent.parent / "benchmarks" / "support.csv"
"""What `make support` found: a row for each benchmark, MPI library and binding."""

WORKS = ("pass", "runs")

HEAD = (
    "# Benchmarks\n\nMade by `omb-py list --format markdown`. What ran where comes from real runs "
    "(`make support`), recorded in `omb_py/benchmarks/support.csv`: "
    "a binding is named where the benchmark ran through it and, with data, passed `-c`. A number "
    "refers to the reason below where one did not."
)


@dataclass(frozen=True)
class Found:
    """The outcome of one benchmark through one binding on one MPI library."""

    benchmark: str
    mpi: str
    binding: str
    outcome: str


def markdown() -> str:
    """All benchmarks, family by family, then the reasons why some do not run."""
    record = read_record()
    libraries = sorted({found.mpi for found in record})
    reasons: dict[str, int] = {}
    lines = [HEAD]
    for family, members in by_family().items():
        lines += ["", f"## {family.capitalize()}", ""]
        lines.append("| | native OMB | measures | " + " | ".join([*libraries, ""]).rstrip())
        lines.append("|---|---|---|" + "---|" * len(libraries))
        for benchmark in members:
            cells = [cell(benchmark, library, record, reasons) for library in libraries]
            lines.append("| " + " | ".join([*described(benchmark), *cells, ""]).rstrip())
    if reasons:
        lines += ["", "## Why not", ""]
        lines += [f"{number}. {reason}" for reason, number in reasons.items()]
    return "\n".join(lines)


def described(benchmark: Benchmark) -> tuple[str, str, str]:
    """A benchmark's name, native OMB's and what it measures."""
    native = f"`osu_{benchmark.name}`" if benchmark.native else "-"
    return f"`{benchmark.name}`", native, benchmark.summary.replace("|", "\\|")


def cell(benchmark: Benchmark, library: str, record: list[Found], reasons: dict[str, int]) -> str:
    """The bindings through which a benchmark ran, and numbers of the reasons against others."""
    of_it = [found for found in record if (found.benchmark, found.mpi) == (benchmark.name, library)]
    words = [found.binding or "yes" for found in of_it if found.outcome in WORKS]
    for found in of_it:
        if found.outcome not in WORKS:
            number = reasons.setdefault(general(found.outcome), len(reasons) + 1)
            words.append(f"not {found.binding} ({number})" if found.binding else f"no ({number})")
    return ", ".join(words) or "not tried"


def general(reason: str) -> str:
    """A reason without the names of functions, so that what holds for many is said once."""
    reason = re.sub(r" has no \w+", " has no such call", reason)
    return re.sub(
        r"mpi4py's \w+ (.*?); measure \w+", r"mpi4py's plain form \1; measure that", reason
    )


def read_record() -> list[Found]:
    """What was found; nothing where no record is there."""
    if not RECORD.is_file():
        return []
    with RECORD.open(newline="", encoding="utf-8") as file:
        return [Found(**row) for row in csv.DictReader(file)]
