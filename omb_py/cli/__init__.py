"""The ``omb-py`` command: a benchmark by its name, and commands about the suite itself."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING, NoReturn

import click

from omb_py.core import VERSION
from omb_py.core.errors import INTERRUPTED, OwnError, SharedError, UsageError, sentence
from omb_py.core.mpi import launcher
from omb_py.core.text.words import Screen

if TYPE_CHECKING:
    from omb_py.core.job import Job

COMMANDS = {
    "Measure more": {
        "run": "Measure several benchmarks in one launch.",
        "overhead": "Compare bindings, interleaved in one job: what Python adds.",
        "pairs": "Measure every pair of ranks: which link, host or rank is slow.",
        "gate": "Judge every host of a job against all others: which node is slow?",
        "sweep": "Measure all points of a configuration; resume after interruptions.",
        "tune": "Write rules that make the MPI library take the fastest algorithm.",
        "job": "Run a sweep as batch jobs.",
        "machine": "Describe machines: nodes, launcher, scheduler and queues.",
        "programs": "Link native OMB's and nccl-tests' names to omb-py.",
    },
    "Profile programs": {
        "profile": "Run an mpi4py program and record its MPI calls.",
        "watch": "Watch a profiled run while it runs.",
        "timeline": "Write the timeline of a profiled run, for Perfetto.",
        "efficiency": "Break down parallel efficiency into the POP factors.",
        "traffic": "Show the traffic of a profiled run: requests and links.",
    },
    "Analyze results": {
        "show": "Show results of any suite as tables, or convert them.",
        "compare": "Compare results, MPI libraries, or omb-py with native OMB.",
        "check": "Check results against expected values: is this machine all right?",
        "history": "Find changes in the results of months, and what else changed then.",
        "guidelines": "Check that no MPI call is slower than others that do the same.",
        "plot": "Draw figures of results, in files or in the terminal.",
        "report": "Write one HTML page with plots, tables and detected anomalies.",
        "model": "Fit cost models to results.",
        "simulate": "Simulate benchmarks on more ranks, on SimGrid.",
    },
}
"""Commands by heading of the help, each with the first sentence of its own help."""

LAZY_COMMANDS = (
    *(name for names in COMMANDS.values() for name in names if name != "overhead"),
    "completion",
)
"""Commands that are ``command`` of the module of their name, imported when used."""

LONGEST = 4000
"""The most characters of an error's sentence; a longer one keeps its beginning and its end."""

STARTING_MPI = ("run", "overhead", "pairs", "gate", "profile")
"""Commands whose ranks start MPI, as those of benchmarks and applications do."""

WITHOUT_COMMAND: tuple[type[click.ClickException], ...] = tuple(
    found for found in [getattr(click.exceptions, "NoArgsIsHelpError", None)] if found
)
"""Exceptions of a group without a command; before click 8.2 the group prints its help itself."""


debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, help="Show tracebacks of errors."
)
"""An option that `main` reads."""


class Commands(click.Group):
    """Benchmarks, applications and the other commands of ``omb-py``, by name.

    A command is made when it is used, so that none costs another's imports.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        from omb_py.apps import APPLICATIONS
        from omb_py.benchmarks import all_benchmarks

        names = [benchmark.name for benchmark in all_benchmarks()]
        return [*names, *APPLICATIONS.names(), *LAZY_COMMANDS, *sorted(self.commands)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        if cmd_name in LAZY_COMMANDS:
            return lazy_command(cmd_name)
        if cmd_name == RUN:
            from omb_py.cli.programs import run_command

            return run_command
        if cmd_name in NCCL_PROGRAMS:
            from omb_py.cli.nccl import nccl_command

            return nccl_command(cmd_name)
        from omb_py.benchmarks import find_benchmark, find_own

        benchmark = find_own(cmd_name)
        if benchmark is None:
            from omb_py.apps import APPLICATIONS

            if APPLICATIONS.has(cmd_name):
                from omb_py.cli.benchmark import application_command

                return application_command(APPLICATIONS.load(cmd_name))
            others = [*APPLICATIONS.names(), *LAZY_COMMANDS, *self.commands]
            benchmark = find_benchmark(cmd_name, others, "command or benchmark")
        from omb_py.cli.benchmark import benchmark_command

        return benchmark_command(benchmark, native=cmd_name.startswith(PROGRAM))

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from omb_py.apps import APPLICATIONS
        from omb_py.benchmarks import by_family, own_benchmarks
        from omb_py.cli.help import screen

        families = {
            family: [benchmark.name for benchmark in members]
            for family, members in by_family(own_benchmarks()).items()
        }
        formatter.write(screen(families, APPLICATIONS.builtin(), COMMANDS))


def lazy_command(name: str) -> click.Command:
    """The command in the module of its name."""
    from importlib import import_module

    found: click.Command = import_module(f"omb_py.cli.{name}").command
    return found


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, "-v", "--version", prog_name="omb-py")
def command() -> None:
    """What communication costs from Python: MPI benchmarks with native OMB's definitions.

    Start a benchmark under a launcher: mpiexec -n 2 omb-py latency
    """


@command.command("list")
@click.option(
    "--algorithms",
    is_flag=True,
    help="The names of --coll-algorithm, by library, and of --p2p-algorithm.",
)
def list_command(algorithms: bool) -> None:
    """List benchmarks, applications, buffers and bindings."""
    from omb_py.cli import inventory

    (inventory.print_algorithms if algorithms else inventory.print_list)()


@command.command("info")
@click.option(
    "--libraries",
    is_flag=True,
    help="The MPI libraries that are here, as tables of a machine's file; DIR… are looked at "
    "first.",
)
@click.argument("folders", metavar="[DIR]...", nargs=-1, type=click.Path(exists=True))
def info_command(libraries: bool, folders: tuple[str, ...]) -> None:
    """Show versions, the MPI library, and which buffers and bindings work here."""
    from omb_py.cli import inventory

    if folders and not libraries:
        raise UsageError("DIR is for --libraries: add it, or leave it out")
    lines = inventory.library_lines(folders) if libraries else inventory.info_lines()
    click.echo("\n".join(lines))


COMPLETION = "_OMB_PY_COMPLETE"
"""The environment variable by which click's scripts ask for completions."""

PROGRAM = "osu_"
"""The prefix of the names of native OMB's programs."""

RUN = "run.py"
"""The name of OMB-Py's program."""

NCCL_PROGRAMS = tuple(
    f"{name}_perf{suffix}"
    for suffix in ("", "_mpi")
    for name in (
        "all_reduce all_gather reduce_scatter alltoall broadcast reduce sendrecv gather scatter"
    ).split()
)
"""The names of nccl-tests' programs that there are here; builds with MPI may have a suffix."""


class OverheadCommands(click.Group):
    """Commands of ``omb-py overhead``, one for each benchmark that takes bindings."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from omb_py.benchmarks import all_benchmarks

        return [benchmark.name for benchmark in all_benchmarks() if benchmark.planned]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        from omb_py.benchmarks import find_benchmark
        from omb_py.cli.overhead import overhead_command

        return overhead_command(find_benchmark(cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from omb_py.cli.overhead import COMPARED, LAUNCHED

        records = (row.option("").get_help_record(ctx) for row in (*COMPARED, *LAUNCHED))
        with formatter.section("Options after BENCHMARK, and those of 'omb-py BENCHMARK --help'"):
            formatter.write_dl([*filter(None, records)])
        with formatter.section("Benchmarks"):
            formatter.write_text(", ".join(self.list_commands(ctx)))


@command.group("overhead", cls=OverheadCommands, subcommand_metavar="BENCHMARK [OPTIONS]")
def overhead_group() -> None:
    """Compare bindings, interleaved in one job: what Python adds.

    mpiexec -n 2 omb-py overhead latency -m 1:4194304
    """


def main() -> NoReturn:
    """Run the command line; every failure is one sentence from rank 0 and an exit code."""
    if launcher.rank() != 0:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - to the end
    if COMPLETION in os.environ:  # a shell asks, in the middle of a line
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - to the end
    for name in ("stdout", "stderr"):
        if stream := getattr(sys, name):
            setattr(sys, name, Screen(stream))
    program = os.path.basename(sys.argv[0])
    if program.startswith(PROGRAM) or program in (RUN, *NCCL_PROGRAMS):
        sys.argv[1:1] = [program]
    waiting, code = others_wait(sys.argv[1:]), None
    try:
        arguments = sys.argv[1:] or ["--help"]
        if arguments[0] == "help":
            arguments = [*arguments[1:], "--help"]
        code = command.main(arguments, prog_name="omb-py", standalone_mode=False)
        waiting = False
        if sys.stdout is not None:
            sys.stdout.flush()  # while what goes wrong can still be said
    except click.ClickException as error:
        if isinstance(error, WITHOUT_COMMAND):
            show_commands(error)
        where = (
            error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else None
        )
        hint = f"; '{where} --help' shows the options" if where else ""
        if isinstance(error, click.NoSuchOption) and error.option_name in ("-n", "--np"):
            hint = f"; it is the launcher's: mpiexec -n 2 {where}"
        said = error.format_message().rstrip(".")
        hint = hint.removeprefix(";") if said.endswith("?") else hint
        leave(f"{said}{hint}", UsageError.exit_code, waiting)
    except click.Abort:
        leave("interrupted", INTERRUPTED)
    except BrokenPipeError:
        discard_output()
        sys.exit(1)
    except Exception as error:
        if "--debug" in sys.argv:
            from traceback import print_exception

            print_exception(error)
        leave(sentence(error), getattr(error, "exit_code", 1), waiting)
    sys.exit(code if isinstance(code, int) else 0)


def show_commands(error: click.ClickException) -> NoReturn:
    """Show the help of a group that was given no command, as click does; only rank 0 shows it."""
    if launcher.rank() == 0:
        error.show()
    launcher.end_job(error.exit_code)
    sys.exit(error.exit_code)


def others_wait(arguments: list[str]) -> bool:
    """Return whether other ranks may wait in MPI for this one, and no launcher would end them."""
    if launcher.is_alone() or launcher.by_torchrun() or launcher.ends_with_first():
        return False
    word = next((one for one in arguments if not one.startswith("-")), "list")
    known = {"list", "info", *LAZY_COMMANDS}.difference(STARTING_MPI)
    return word not in known and arguments[:2] != ["profile", "show"]


def leave(text: str, exit_code: int, waiting: bool = False) -> NoReturn:
    """Print ``text``, on one rank if all fail alike, and end this process and the job.

    ``waiting`` is true if other ranks may wait for this one in MPI.
    """
    rank, text = launcher.rank(), " ".join(text.split())
    if len(text) > LONGEST:  # a word of a file may be as long as the file
        text = f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
    if rank == 0:
        launcher.say(text)
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError:
            discard_output()  # Python would try once more at its end, and say so in its own words
    if waiting:
        leave_together(text, exit_code)
    if rank > 0:
        launcher.stagger(rank)
        print(f"omb-py: rank {rank}: {text}", file=sys.stderr, flush=True)
    launcher.end_job(exit_code)
    sys.exit(exit_code)


def leave_together(text: str, exit_code: int) -> None:
    """Start MPI, and leave it with the ranks that failed alike or that learn of it there.

    Aborts the job if others do something else, or MPI has started. Returns if MPI does not bring
    ranks together, so that none waits.
    """
    from threading import Timer

    from omb_py.core import mpi
    from omb_py.core.job import MEETING_SECONDS, by_mpi

    try:
        library = mpi.load()
        if library.Is_finalized():
            return
        if library.Is_initialized():
            abort(by_mpi.MPIJob(library.COMM_WORLD), text, exit_code)
        job = by_mpi.world("single", bool({"-I", "--session"} & set(sys.argv)))
    except Exception:
        return
    if job.ranks == 1:
        job.close()
        return
    # another program's collective calls can pass for the meeting, and the next call then waits
    last = Timer(2 * MEETING_SECONDS, abort, (job, text, exit_code))
    last.daemon = True
    last.start()
    with contextlib.suppress(SharedError):
        named = f"rank {job.rank}: {text}" if job.rank else text
        job.start_together(OwnError(named, exit_code), None, MEETING_SECONDS)
        abort(job, text, exit_code)
    last.cancel()
    job.leave(exit_code)


def abort(job: Job, text: str, exit_code: int) -> NoReturn:
    """Print ``text``, which rank 0 has printed, and end all ranks from one that fails alone."""
    if job.rank > 0:
        launcher.stagger(job.rank)
        launcher.say(f"rank {job.rank}: {text}")
    time.sleep(launcher.SECONDS_TO_BE_HEARD)
    job.abort(exit_code)


def discard_output() -> None:
    """Discard the output that is still to be written to standard output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
