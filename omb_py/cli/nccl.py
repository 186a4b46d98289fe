"""nccl-tests' programs by their names: ``all_reduce_perf`` and the others."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from omb_py.benchmarks import find_benchmark
from omb_py.cli.benchmark import CONTEXT
from omb_py.cli.help import GroupedCommand
from omb_py.measure.launch import launch
from omb_py.measure.nccl import kind_of_nccl
from omb_py.measure.run import run
from omb_py.options.nccl import program_parameters, read
from omb_py.options.table import alike
from omb_py.results.nccl import PROGRAMS


def nccl_command(name: str) -> click.Command:
    """Return the command of a program of nccl-tests."""
    program, _, _ = name.partition("_perf")
    benchmark = find_benchmark(PROGRAMS[program])

    def callback(**values: Any) -> None:
        settings, options = read(name, program, values)
        given = alike(options) | {
            "command line": (" ".join(settings.words),),
            "NCCL_TESTS_MIN_BW": (settings.minimum,),
        }
        with launch(benchmark.name, options, given) as launched:
            run(launched, benchmark, options, kind_of=partial(kind_of_nccl, settings))

    return GroupedCommand(
        name,
        callback=callback,
        params=program_parameters(),
        help=f"{benchmark.summary}\n\nAs nccl-tests measures and prints it: "
        f"torchrun --nproc_per_node 8 --no_python {name} -b 8 -e 8G -f 2",
        context_settings=CONTEXT,
    )
