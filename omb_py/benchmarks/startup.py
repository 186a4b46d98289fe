"""The start of a job: MPI_Init, and what comes before it in Python."""

from __future__ import annotations

from omb_py.benchmarks import Benchmark, Defaults, StartUp, no_plan
from omb_py.core.mpi.startup_timer import INIT, SESSION, TOTAL
from omb_py.core.options import Options


def start_up(
    name: str, title: str, summary: str, measured: StartUp, native: bool = True
) -> Benchmark:
    return Benchmark(
        name=name,
        title=title,
        family="start-up",
        summary=summary,
        plan=no_plan,
        defaults=Defaults(1, 0, 1, 0, smallest=0, largest=0),
        sized=False,
        start_up=measured,
        part_names=init_part if measured is StartUp.INIT else lambda options: (TOTAL,),
        native=native,
    )


def init_part(options: Options) -> tuple[str, ...]:
    return (SESSION if options.session else INIT,)


BENCHMARKS = (
    start_up("init", "Init", "Time of MPI_Init.", StartUp.INIT),
    start_up(
        "hello",
        "Hello World",
        "Starts a job; in tables, the time until MPI is ready.",
        StartUp.HELLO,
    ),
    start_up(
        "import_time",
        "Import Time",
        "Time from the start of Python until MPI is ready, part by part.",
        StartUp.PARTS,
        native=False,
    ),
)
