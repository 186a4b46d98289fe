"""The start of a job: MPI_Init, and what comes before it in Python."""

from __future__ import annotations

from omb_py.benchmarks import Benchmark, Defaults, StartUp, no_plan
from omb_py.core.dataclass import replace
from omb_py.core.mpi.startup_timer import INIT, SESSION, TOTAL

# osu_init.c:36-41, which rounds to milliseconds; osu_hello.c:22
OF_MPI = Benchmark(
    name="init",
    title="Init",
    family="start-up",
    summary="Time of MPI_Init.",
    plan=no_plan,
    defaults=Defaults(1, 0, 1, 0, smallest=0, largest=0),
    sized=False,
    start_up=StartUp.INIT,
    part_names=lambda options: (SESSION if options.session else INIT,),
)
OF_JOB = replace(
    OF_MPI,
    name="hello",
    title="Hello World",
    summary="Starts a job; in tables, the time until MPI is ready.",
    start_up=StartUp.HELLO,
    part_names=lambda options: (TOTAL,),
)

BENCHMARKS = (
    OF_MPI,
    OF_JOB,
    replace(
        OF_JOB,
        name="import_time",
        title="Import Time",
        summary="Time from the start of Python until MPI is ready, part by part.",
        start_up=StartUp.PARTS,
        native=False,
    ),
)
