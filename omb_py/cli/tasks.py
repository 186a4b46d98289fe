"""``omb-py tasks``: what a task costs in a pool of workers."""

from __future__ import annotations

import os
from contextlib import ExitStack

import click

from omb_py.cli.analysis_options import listed
from omb_py.cli.taking_turns import check_names, rounds_option, rows_options
from omb_py.core.errors import UsageError
from omb_py.core.mpi import launcher
from omb_py.measure import pools
from omb_py.options.types import SIZE_LIST, Number, WholeNumber

WIDTHS = (14, 10, 17, 12, 12, 10)


@click.command("tasks", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--pool",
    "names",
    callback=listed,
    metavar="NAME[,...]",
    help="Pools to compare: serial, thread, process, multiprocessing, loky; mpi (the other ranks "
    "of this job), mpi_spawn, mpi_pool.  [default: those that can be here]",
)
@click.option(
    "--workers",
    type=WholeNumber(min=1),
    metavar="N",
    help="Workers of each pool.  [default: cores; under mpiexec the other ranks]",
)
@click.option(
    "--sizes",
    type=SIZE_LIST,
    default="0,1K,64K,1M",
    show_default=True,
    metavar="BYTES[,...]",
    help="Bytes of a task's argument, and of its result.",
)
@click.option(
    "--tasks",
    type=WholeNumber(min=1),
    default=200,
    show_default=True,
    metavar="N",
    help="Tasks in each round.",
)
@click.option(
    "--chunksize",
    type=WholeNumber(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Tasks that map sends together.",
)
@rounds_option("pools")
@click.option(
    "--task-time",
    type=Number(min=0),
    default=0.0,
    show_default=True,
    metavar="US",
    help="Microseconds for which each task computes.",
)
@rows_options
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks of errors.")
def command(
    names: tuple[str, ...] | None,
    workers: int | None,
    sizes: tuple[int, ...],
    tasks: int,
    chunksize: int,
    rounds: int,
    task_time: float,
    output: str | None,
    force: bool,
) -> None:
    """Measure tasks in pools of workers.

    A task's argument and result are bytes. Pools take turns; each is compared with this process
    without a pool (serial). MPI is started for pools that need it alone.

    \b
    omb-py tasks --pool process,thread
    mpiexec -n 5 omb-py tasks --pool serial,process,mpi
    """
    ranks = launcher.ranks()
    if names is None:
        names = ("serial", "thread", "process", "multiprocessing", *(["mpi"] if ranks > 1 else []))
    check_names("--pool", names, pools.POOLS)
    chosen = [pools.POOLS[name] for name in names]
    if workers is None:
        workers = ranks - 1 if ranks > 1 else os.cpu_count() or 1
    request = pools.TaskRequest(names, workers, sizes, tasks, chunksize, rounds, task_time / 1e6)
    if not any(pool.uses_mpi for pool in chosen):
        if launcher.rank() == 0:
            run(request, output, force)
        return
    from omb_py.core.job import Job
    from omb_py.core.job.by_mpi import MPIWorld

    with Job(MPIWorld("multiple", session=False)) as job:
        check_ranks(request, chosen, job.ranks)
        if job.rank == 0:
            run(request, output, force)
        elif any(pool.on_ranks for pool in chosen):
            with ExitStack() as served:
                for pool in chosen:
                    if pool.on_ranks:
                        served.enter_context(pool.open(workers))


def check_ranks(request: pools.TaskRequest, chosen: list[pools.Pool], ranks: int) -> None:
    """Raise `UsageError` where a pool's workers are ranks that this job has not."""
    on_ranks = next((pool for pool in chosen if pool.on_ranks), None)
    if on_ranks is None:
        return
    if ranks < 2:
        raise UsageError(
            f"pool {on_ranks.name} has the other ranks of the job for workers, and this job has "
            "none: start it with mpiexec -n N, N above 1"
        )
    if request.workers != ranks - 1:
        raise UsageError(
            f"--workers {request.workers}: pool {on_ranks.name} has {ranks - 1}, the other ranks; "
            "leave the option out, or start another number of ranks"
        )


def run(request: pools.TaskRequest, output: str | None, force: bool) -> None:
    """Measure, print a table, and write rows."""
    from omb_py.results.metadata import process_metadata
    from omb_py.results.output import check_output, file_writer
    from omb_py.results.row import Row, new_run

    check_output(output, force)
    name = new_run()
    writer = None if output is None else file_writer(output, Row, force)
    with ExitStack() as after:
        opened = pools.open_pools(request, after)
        if writer is not None:
            writer.start(process_metadata(name) | {"task_us": f"{request.task_seconds * 1e6:g}"})
        click.echo(f"# omb-py tasks: {request.workers} workers, {request.tasks} tasks a round")
        click.echo("# start: " + ", ".join(map(started, opened)))
        line("benchmark", "size", "pool", "us/task", "tasks/s", "x serial")
        for one in opened:
            if writer is not None:
                writer.row(pools.start_row(name, one, request.workers))
        for found in pools.measure(request, opened):
            rows = [pools.row_of(name, one, request.workers) for one in found]
            base = next((row for row in rows if row.binding == pools.SERIAL), None)
            for row in rows:
                if writer is not None:
                    writer.row(row)
                assert row.sample_p50_us is not None
                assert row.binding is not None
                times = "-"
                if base is not None and base.sample_p50_us:
                    times = f"{row.sample_p50_us / base.sample_p50_us:.3g}"
                line(
                    row.benchmark,
                    str(row.bytes),
                    row.binding,
                    f"{row.sample_p50_us:.2f}",
                    f"{row.messages_per_s:.0f}",
                    times,
                )
    if writer is not None:
        writer.finish()


def started(opened: pools.Opened) -> str:
    """How long a pool's start took, in words."""
    first = opened.first_seconds * 1e3
    return f"{opened.pool.name} {opened.open_seconds * 1e3:.1f} ms, first result {first:.1f} ms"


def line(*cells: str) -> None:
    """A line of the table."""
    left, *others = zip(cells, WIDTHS, strict=True)
    text = left[0].ljust(left[1]) + "".join(cell.rjust(width) for cell, width in others)
    click.echo(text)
