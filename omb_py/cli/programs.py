"""``omb-py programs DIR``: programs of native OMB, OMB-Py and nccl-tests, for what starts those."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import click

from omb_py.benchmarks import Defaults, all_benchmarks, find_benchmark
from omb_py.cli import NCCL_PROGRAMS, PROGRAM, RUN, debug_option
from omb_py.cli.benchmark import benchmark_command
from omb_py.core.dataclass import replace
from omb_py.core.errors import OmbError
from omb_py.core.text.files import failing, make_folder
from omb_py.core.text.words import count
from omb_py.options.native import has_program
from omb_py.options.types import WholeNumber


@click.command("programs")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@debug_option
def command(folder: Path) -> None:
    """Link native OMB's and nccl-tests' names to omb-py.

    osu_latency, all_reduce_perf and the others go into DIR. Put it on the PATH where ReFrame,
    Ramble or a script of yours expects native OMB or nccl-tests. They have those options, and those
    of omb-py. run.py stands for OMB-Py's: python DIR/run.py --benchmark latency
    """
    program = Path(sysconfig.get_path("scripts"), "omb-py")
    if not program.is_file():
        raise OmbError(f"there is no {program} to link to: install omb-py with pip")
    names = [f"{PROGRAM}{one.name}" for one in all_benchmarks() if has_program(one)]
    names += [RUN, *NCCL_PROGRAMS]
    with failing("write", folder):
        make_folder(folder)
        for name in names:
            link(folder / name, program)
    click.echo(f"{count(len(names), 'program')} in {folder}: put it on the PATH")


def link(path: Path, program: Path) -> None:
    """Link a name to omb-py's ``program``; raises `OmbError` if something else has it."""
    if path.is_symlink() and path.readlink().name == "omb-py":
        path.unlink()
    elif path.exists() or path.is_symlink():
        raise OmbError(f"{path} is there and not omb-py's: choose another folder")
    path.symlink_to(program)


NUMBER = WholeNumber(min=0)


@click.command(RUN)
@click.option("--benchmark", required=True, help="The benchmark, as in latency.")
@click.option("--buffer", help="Buffer library; by default bytearray, for sums numpy.")
@click.option("--pickle", is_flag=True, help="Pickle the messages.")
@click.option("--min", "smallest", type=NUMBER, help="Smallest message in bytes.")
@click.option("--max", "largest", type=NUMBER, help="Largest message in bytes.")
@click.option(
    "--iterations", type=WholeNumber(min=1), help="Iterations, a hundredth above 8192 bytes."
)
@click.option("--skip", type=NUMBER, help="Iterations for warm-up, likewise.")
@debug_option
def run_command(
    benchmark: str,
    buffer: str | None,
    pickle: bool,
    smallest: int | None,
    largest: int | None,
    iterations: int | None,
    skip: int | None,
) -> None:
    """Measure a benchmark with the options, message sizes and iterations of OMB-Py's run.py.

    Source: python/util/options.py and osu_util_mpi.py of native OMB 7.4.
    """
    found = find_benchmark(benchmark.rpartition("/")[2])
    windows, pairs = found.name in ("bw", "bibw"), found.name in ("latency", "multi_lat")
    first = 4 if found.reduces else 0 if pairs else 1
    last = 1 << 22 if pairs or windows else 1 << 20
    skips = (10, 3) if windows else (1_000, 10)
    defaults = Defaults(
        iterations or (100 if windows else 10_000),
        skips[0] if skip is None else skip,
        iterations // 100 + 1 if iterations else 30 if windows else 100,
        skips[1] if skip is None else skip and skip // 100 + 1,
        1 << smallest.bit_length() - 1 if smallest else first,
        last if largest is None else largest,
    )
    words = ["--binding", "pickle"] if pickle else []
    if found.reduces:
        words += ["--type", "mpi_float"]
        buffer = "numpy" if buffer == "bytearray" else buffer or "numpy"
    words += ["--buffer", buffer or "bytearray"]
    program = benchmark_command(replace(found, defaults=defaults, leading_blank=False))
    program.main(words, prog_name=f"omb-py {found.name}", standalone_mode=False)
