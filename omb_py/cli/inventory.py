"""The output of ``omb-py list`` and ``omb-py info``."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from omb_py import algorithms
from omb_py.apps import APPLICATIONS
from omb_py.benchmarks import algorithms as own_algorithms
from omb_py.benchmarks import by_family
from omb_py.bindings import BINDINGS
from omb_py.buffers import BUFFERS, Buffer
from omb_py.cli.run import SUITE, SUITES
from omb_py.core import VERSION, mpi
from omb_py.core.errors import NoLibraryError, OmbError, needing
from omb_py.core.registry import Registry


def print_list() -> None:
    """Print the members of the three axes, and the applications."""
    for family, members in by_family().items():
        click.echo(f"{family} benchmarks:")
        for benchmark in members:
            native = f"osu_{benchmark.name}" if benchmark.native else "-"
            click.echo(f"  {benchmark.name:<34}{native:<34}{benchmark.summary}")
    click.echo("suites of omb-py run:")
    for name, families in SUITES.items():
        click.echo(f"  {SUITE}{name:<32}{', '.join(families)}")
    click.echo("applications:")
    for application in map(APPLICATIONS.load, APPLICATIONS.names()):
        click.echo(f"  {application.name:<34}{'-':<34}{application.summary}")
    click.echo(f"buffers:  {', '.join(BUFFERS.names())}")
    click.echo(f"bindings: {', '.join(BINDINGS.names())}")


def print_algorithms() -> None:
    """Print the names for ``--coll-algorithm`` and ``--p2p-algorithm``."""
    for library in map(algorithms.library, algorithms.MODULES):
        click.echo(f"{library.name}:")
        for name in library.table:
            click.echo(f"  {name:<22}{', '.join(library.words(name))}")
    click.echo("omb-py's own, for --p2p-algorithm:")
    for name in own_algorithms.TABLE:
        click.echo(f"  {name:<22}{', '.join(own_algorithms.words(name))}")


def info_lines() -> Iterator[str]:
    """Yield the versions, the MPI library, and whether each buffer and binding can be loaded."""
    yield f"omb-py   {VERSION}"
    yield f"Python   {platform.python_version()} on {platform.platform()}"
    yield f"MPI      {mpi_library()}"
    for registry in (BUFFERS, BINDINGS):
        for name in registry.names():
            yield f"{registry.kind:<9}{name:<16}{state(registry, name)}"


def library_lines(folders: Iterable[str]) -> Iterator[str]:
    """Yield the MPI libraries that are here, as TOML; raise `OmbError` if there is none."""
    with needing("sweep"):
        from omb_py.sweeps.libraries_here import find_libraries
        from omb_py.sweeps.sweep_job import find_machine

    here = find_libraries(find_machine("local"), map(Path, folders))
    if not here.libraries:
        reasons = "; ".join(here.faults) or "there is no environment with mpi4py, and no module"
        raise OmbError(f"there is no MPI library that mpi4py can load: {reasons}")
    yield from here.lines


def mpi_library() -> str:
    """Return mpi4py's version and the library it found, without starting MPI."""
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
    """Return whether a member works here, with its versions, or why it does not."""
    try:
        member = registry.load(name)
        if registry is BUFFERS:
            buffer: Buffer = member.prepare(0)
            versions = ", ".join(" ".join(item) for item in buffer.describe().items())
            buffer.close()
            return f"ready   {versions}".rstrip()
        return f"ready   {member.check() or ''}".rstrip()
    except (OmbError, ImportError, RuntimeError) as error:
        try:
            mpi.load()
        except NoLibraryError:
            if not isinstance(error, OmbError):
                return "not here: it needs an MPI library"
        return f"not here: {' '.join(str(error).split())}"
