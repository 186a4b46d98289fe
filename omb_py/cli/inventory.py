"""What ``omb-py list`` and ``omb-py info`` print."""

from __future__ import annotations

import csv
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

import click

from omb_py import algorithms
from omb_py.apps import APPLICATIONS
from omb_py.benchmarks import BENCHMARK_MODULES, Benchmark, _index, by_family, indexed_benchmarks
from omb_py.benchmarks import algorithms as own_algorithms
from omb_py.bindings import BINDINGS
from omb_py.buffers import BUFFERS, Buffer
from omb_py.core import VERSION, mpi
from omb_py.core.errors import NoLibraryError, OmbError
from omb_py.core.registry import Registry

RECORD = Path(__file__).parent.parent / "benchmarks" / "support.csv"
"""What `make support` found: a row for each benchmark, MPI library and binding."""

WORKS = ("pass", "runs")

HEAD = """\
# Benchmarks

Made by `omb-py list --format markdown`. What ran where comes from real runs (`make support`),
recorded in `omb_py/benchmarks/support.csv`: a binding is named where the benchmark ran through it
and, with data, passed `-c`. A number refers to the reason below where one did not."""


@dataclass(frozen=True)
class Found:
    """The outcome of one benchmark through one binding on one MPI library."""

    benchmark: str
    mpi: str
    binding: str
    outcome: str


def markdown() -> str:
    """The benchmarks of the index, family by family, then the reasons why some do not run."""
    record = read_record()
    libraries = sorted({found.mpi for found in record})
    reasons: dict[str, int] = {}
    lines = [HEAD]
    for family, members in by_family(indexed_benchmarks()).items():
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


def index() -> str:
    """The source of `omb_py.benchmarks._index`."""
    lines = [f'"""{_index.__doc__}"""', "", "MODULES = {"]
    for module in dict.fromkeys((*_index.MODULES, *BENCHMARK_MODULES.builtin())):
        families: dict[str, list[str]] = {}
        for benchmark in BENCHMARK_MODULES.load(module):
            families.setdefault(benchmark.family, []).append(benchmark.name)
        lines.append(f'    "{module}": {{')
        for family, names in families.items():
            lines += [f'        "{family}": """', *indented(names), '        """,']
        lines.append("    },")
    return "\n".join([*lines, "}"])


def indented(names: list[str]) -> list[str]:
    """Names in lines of a source file."""
    return wrap(" ".join(names), 96, initial_indent=" " * 12, subsequent_indent=" " * 12)


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


def print_list() -> None:
    """The members of the three axes, and the applications."""
    for family, members in by_family().items():
        click.echo(f"{family} benchmarks:")
        for benchmark in members:
            native = f"osu_{benchmark.name}" if benchmark.native else "-"
            click.echo(f"  {benchmark.name:<34}{native:<34}{benchmark.summary}")
    click.echo("applications:")
    for application in map(APPLICATIONS.load, APPLICATIONS.names()):
        click.echo(f"  {application.name:<34}{'-':<34}{application.summary}")
    click.echo(f"buffers:  {', '.join(BUFFERS.names())}")
    click.echo(f"bindings: {', '.join(BINDINGS.names())}")


def print_algorithms(kind: str) -> None:
    """The names for ``--coll-algorithm``: as the documentation's table, or as text.

    The text has those of ``--p2p-algorithm`` too.
    """
    libraries = [algorithms.library(name) for name in algorithms.MODULES]
    if kind == "markdown":
        click.echo(f"| collective | {' | '.join(library.name for library in libraries)} |")
        click.echo("|---|" + "---|" * len(libraries))
        for name in dict.fromkeys(name for library in libraries for name in library.table):
            cells = [
                ", ".join(f"`{word}`" for word in library.words(name)) for library in libraries
            ]
            click.echo(f"| {name} | {' | '.join(cells)} |")
        return
    for library in libraries:
        click.echo(f"{library.name}:")
        for name in library.table:
            click.echo(f"  {name:<22}{', '.join(library.words(name))}")
    click.echo("omb-py's own, for --p2p-algorithm:")
    for name in own_algorithms.TABLE:
        click.echo(f"  {name:<22}{', '.join(own_algorithms.words(name))}")


def info_lines() -> Iterator[str]:
    """Versions, the MPI library, and whether each buffer and binding can be loaded."""
    yield f"omb-py   {VERSION}"
    yield f"Python   {platform.python_version()} on {platform.platform()}"
    yield f"MPI      {mpi_library()}"
    for registry in (BUFFERS, BINDINGS):
        for name in registry.names():
            yield f"{registry.kind:<9}{name:<16}{state(registry, name)}"


def mpi_library() -> str:
    """mpi4py and the library it found, without starting MPI."""
    import mpi4py

    from omb_py.core.mpi import abi

    try:
        library = mpi.load()
    except NoLibraryError as error:
        elsewhere = "mpiexec -n 1 omb-py info may find one that this shell does not"
        return f"none: {error}\n{'':<9}{elsewhere}"
    standard = ".".join(str(part) for part in library.Get_version())
    return (
        f"{mpi.name()}; standard {standard}; ABI: {abi.described()}; mpi4py {mpi4py.__version__}\n"
        f"{'':<9}{abi.library_path()}"
    )


def state(registry: Registry, name: str) -> str:
    """Whether a member works here, and with which versions, or why it does not."""
    try:
        member = registry.load(name)
        if registry is BUFFERS:
            buffer: Buffer = member.prepare(0)
            versions = ", ".join(" ".join(item) for item in buffer.describe().items())
            buffer.close()
            return f"ready   {versions}".rstrip()
        if registry is BINDINGS:
            member.check()
    except (OmbError, ImportError, RuntimeError) as error:
        try:
            mpi.load()
        except NoLibraryError:
            if not isinstance(error, OmbError):
                return "not here: it needs an MPI library"
        return f"not here: {' '.join(str(error).split())}"
    return "ready"
