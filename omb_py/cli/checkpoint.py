"""``omb-py checkpoint``: what storing the state of all ranks costs, and restarting from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from omb_py.cli.analysis_options import listed
from omb_py.core.errors import UsageError
from omb_py.core.mpi import launcher
from omb_py.core.text.units import digits, size_text
from omb_py.core.text.words import count
from omb_py.measure.checkpoints.methods import METHODS, usual
from omb_py.options.types import SIZE_LIST, Number, TextType, WholeNumber, counts

if TYPE_CHECKING:
    from omb_py.core.job import Job, Node
    from omb_py.measure.checkpoints.rounds import CheckpointRequest, Measured
    from omb_py.results.columns import Row
    from omb_py.results.writer import Writer

NODES = TextType("nodes", lambda text: counts(text.split(","), f"{text!r} is not a list of nodes"))
MILLISECONDS = 1e3
GIGABYTE = 1e9

UNITS = ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"))

LEFT, RIGHT = 14, 11
"""Widths of a table's columns."""

WRITTEN = ("open", "write", "sync", "close", "total", "blocking", "overhead")
RESTARTED = ("open", "read", "close", "total")
"""Parts that a table shows."""


@click.command("checkpoint", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--method",
    "names",
    callback=listed,
    metavar="NAME[,...]",
    help="Methods to compare: file_per_rank, shared, collective, gather, numpy, pickle, hdf5, "
    "async, thread.  [default: those whose packages are installed; gather below 2 GiB in all]",
)
@click.option(
    "--size",
    "sizes",
    type=SIZE_LIST,
    default="64M",
    show_default=True,
    metavar="BYTES[,...]",
    help="Bytes that each rank stores.",
)
@click.option(
    "--rounds",
    type=WholeNumber(min=1),
    default=7,
    show_default=True,
    metavar="N",
    help="Rounds, in which methods take turns.",
)
@click.option(
    "--folder",
    "folder",
    default=".",
    metavar="FOLDER",
    help="Folder on the filesystem to measure; checkpoints go into a new folder in it, which is "
    "removed at the end.  [default: the current one]",
)
@click.option(
    "--sync/--no-sync",
    default=True,
    show_default=True,
    help="Bring each checkpoint to storage before it is closed.",
)
@click.option(
    "--drop-cache/--keep-cache",
    default=True,
    show_default=True,
    help="Ask the kernel to drop a checkpoint from the page cache before it is read.",
)
@click.option(
    "--shift",
    type=WholeNumber(min=0),
    metavar="N",
    help="Restart from the data of rank + N.  [default: the smallest N by which ranks read what "
    "another node wrote, else 1]",
)
@click.option(
    "--compute-time",
    type=Number(min=0),
    metavar="MS",
    help="Milliseconds of computing while async and thread write.  [default: as long as they "
    "take without it]",
)
@click.option(
    "--mtbf",
    type=Number(min=0, min_open=True),
    metavar="HOURS",
    help="Mean time between failures of a node: print the best interval between checkpoints.",
)
@click.option(
    "--nodes",
    type=NODES,
    metavar="N[,...]",
    help="Numbers of nodes for which to print it.  [default: those of this job]",
)
@click.option("-o", "--output", metavar="FILE", help="Append rows to this .csv or .json file.")
@click.option("--force", is_flag=True, help="Overwrite that file.")
@click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
def command(
    names: tuple[str, ...] | None,
    sizes: tuple[int, ...],
    rounds: int,
    folder: str,
    sync: bool,
    drop_cache: bool,
    shift: int | None,
    compute_time: float | None,
    mtbf: float | None,
    nodes: tuple[int, ...] | None,
    output: str | None,
    force: bool,
    debug: bool,
) -> None:
    """Measure checkpoints: store the state of ranks, restart from it.

    Each rank writes its bytes, then reads those of another rank and checks them. Methods take
    turns. Times are those of the slowest rank.

    \b
    mpiexec -n 8 omb-py checkpoint --folder /scratch --size 1G
    mpiexec -n 8 omb-py checkpoint --method collective,async --mtbf 50000 --nodes 100,1000
    """
    if 0 in sizes:
        raise UsageError("--size 0: a checkpoint has at least 1 byte")
    if nodes is not None and mtbf is None:
        raise UsageError("--nodes needs --mtbf, the mean time between failures of a node")
    if nodes is not None and 0 in nodes:
        raise UsageError("--nodes 0: a job has at least 1 node")
    if names is not None:
        check_methods(names)
    from omb_py.measure.checkpoints.folder import Remover, shared_folder
    from omb_py.results.output import check_output

    check_output(output, force)
    remover = Remover() if launcher.rank() == 0 else None
    from omb_py.core.job import Job
    from omb_py.core.job.by_mpi import MPIWorld
    from omb_py.core.job.node_map import first_ranks
    from omb_py.measure.checkpoints.rounds import CheckpointRequest, default_shift, measure

    with Job(MPIWorld("multiple", session=False), debug) as job:
        job.expect(launcher.expected_ranks())
        job.check_launcher()
        places = job.nodes()
        on_nodes = first_ranks(job.control)
        chosen_shift = default_shift(on_nodes) if shift is None else shift % job.ranks
        if names is None:  # rank 0 decides, lest packages differ between nodes
            names = tuple(job.text_of(",".join(usual(job.ranks * max(sizes))), 0).split(","))
        request = CheckpointRequest(
            tuple(METHODS[name] for name in dict.fromkeys(names)),
            sizes,
            rounds,
            sync,
            chosen_shift,
            drop_cache,
            None if compute_time is None else compute_time / MILLISECONDS,
        )
        run, writer = started_writer(job, places, output, force)
        for note in (job.oversubscription(places), own_cache(request)):
            if note is not None:
                job.note(note)
        with shared_folder(job, folder, remover) as made:
            found: list[Measured] = []
            if job.rank == 0:
                print_heading(request, on_nodes, folder)
            for measured in measure(job, request, made):
                with job.agreement():
                    if measured:
                        print_size(measured)
                    if writer is not None:
                        write_rows(writer, run, measured, request)
                found += measured
            if mtbf is not None and job.rank == 0:
                print_intervals(found, mtbf, nodes or (len(places),))
            with job.agreement():
                if writer is not None:
                    writer.finish()


def check_methods(names: tuple[str, ...]) -> None:
    """Raise `UsageError` where there is no method of a name, or no name."""
    if not names:
        raise UsageError(f"--method: name one of {', '.join(METHODS)}")
    if unknown := [name for name in names if name not in METHODS]:
        raise UsageError(f"--method: there is no {unknown[0]}: choose from {', '.join(METHODS)}")


def started_writer(
    job: Job, places: list[Node], output: str | None, force: bool
) -> tuple[str, Writer[Row] | None]:
    """A run's name, and on rank 0 the writer of its rows, if there is to be one; collective."""
    from omb_py.results.columns import Row, new_run
    from omb_py.results.output import file_writer

    run, writer = new_run(), None
    with job.agreement():
        if output is not None and job.rank == 0:
            from omb_py.results.metadata import describe_nodes, process_metadata

            known = {"hosts": describe_nodes(places), "ranks": str(job.ranks)}
            writer = file_writer(output, Row, force)
            writer.start(process_metadata(run) | job.describe() | known)
    return run, writer


def write_rows(
    writer: Writer[Row], run: str, found: list[Measured], request: CheckpointRequest
) -> None:
    """Rows of all methods at a size."""
    from omb_py.measure.checkpoints.rows import rows_of

    for measured in found:
        writer.together(rows_of(run, measured, request))


def own_cache(request: CheckpointRequest) -> str | None:
    """A sentence where ranks read what they have written themselves."""
    if request.shift:
        return None
    return (
        "each rank reads what it wrote itself, so perhaps its own cache: start several ranks, "
        "on several nodes, and leave out --shift 0"
    )


def print_heading(request: CheckpointRequest, on_nodes: Sequence[int], folder: str) -> None:
    """What is measured, and where."""
    ranks, nodes = len(on_nodes), len(set(on_nodes))
    near = sum(on_nodes[rank] == on_nodes[(rank + request.shift) % ranks] for rank in range(ranks))
    who = "their own" if request.shift == 0 else f"rank + {request.shift}'s"
    cache = "dropped from the page cache before" if request.drop_cache else "page cache kept"
    if not request.sync:
        sync = "none: data may be in the page cache alone"
    else:
        sync = "fsync, MPI_File_sync or HDF5's flush before each close"
    click.echo(
        f"# omb-py checkpoint: {count(ranks, 'rank')} on {count(nodes, 'node')}, "
        f"{count(request.rounds, 'round')}, in {folder}"
    )
    click.echo(f"# Sync: {sync}")
    click.echo(
        f"# Restart: ranks read {who} data; {near} of {ranks} on the node that wrote it; {cache}"
    )


def print_size(found: list[Measured]) -> None:
    """All methods at a size: writing, reading, and computing meanwhile."""
    from omb_py.measure.checkpoints import rounds as parts
    from omb_py.measure.checkpoints.rows import bandwidth, hides, middle, overhead

    click.echo("\n# Write: ms of the slowest rank, median over the rounds")
    line("method", "size", *WRITTEN, "GB/s")
    for one in found:
        stored = {part: middle(times) for part, times in one.stored.items()}
        stored[parts.OVERHEAD] = middle(overhead(one))
        rate = "-" if hides(one) else rate_text(bandwidth(one, one.stored[parts.TOTAL]))
        cells = map(milliseconds, map(stored.get, WRITTEN))
        line(one.method, size_text(one.size), *cells, rate)
    for one in found:
        if one.variant is not None:
            click.echo(f"# {one.method}: {one.variant}")
        if hides(one):
            alone, beside = middle(one.stored[parts.ALONE]), middle(one.stored[parts.COMPUTE])
            click.echo(
                f"# {one.method}: computing took {milliseconds(alone)} ms alone, "
                f"{milliseconds(beside)} ms while it wrote"
            )
    click.echo("# Restart: ms of the slowest rank, median over the rounds")
    line("method", "size", *RESTARTED, "GB/s", "check")
    for one in found:
        times = [middle(one.restarted[part]) for part in RESTARTED]
        rate = rate_text(bandwidth(one, one.restarted[parts.TOTAL]))
        check = "Pass" if one.passed else "Fail"
        cells = map(milliseconds, times)
        line(one.method, size_text(one.size), *cells, rate, check)


def print_intervals(found: list[Measured], hours: float, nodes: Sequence[int]) -> None:
    """The best interval by Young and by Daly, and the efficiency that follows by Daly's model."""
    from omb_py.measure.checkpoints.interval import HOUR, daly, efficiency, young
    from omb_py.measure.checkpoints.rows import middle, overhead

    click.echo(f"\n# Interval between checkpoints; a node fails every {hours:g} h in the mean")
    line("method", "size", "nodes", "MTBF", "cost", "restart", "Young", "Daly", "efficiency")
    for one in found:
        lost, restart = middle(overhead(one)), middle(one.restarted["total"])
        for number in nodes:
            mtbf = hours * HOUR / number
            interval = daly(lost, mtbf)
            line(
                one.method,
                size_text(one.size),
                str(number),
                *map(time_text, (mtbf, lost, restart, young(lost, mtbf), interval)),
                f"{100 * efficiency(interval, lost, restart, mtbf):.2f} %",
            )


def time_text(seconds: float) -> str:
    """A time with three digits."""
    scale, unit = next(step for step in UNITS if seconds >= step[0] or step is UNITS[-1])
    return f"{digits(seconds / scale)} {unit}"


def milliseconds(seconds: float | None) -> str:
    """Milliseconds of a part; a dash where a method does not have it."""
    return "-" if seconds is None else f"{seconds * MILLISECONDS:.2f}"


def rate_text(rate: float) -> str:
    """Bytes per second as GB/s."""
    return digits(rate / GIGABYTE)


def line(*cells: str) -> None:
    """A line of a table."""
    first, *others = cells
    click.echo(first.ljust(LEFT) + "".join(cell.rjust(RIGHT) for cell in others))
