"""``omb-py profile``: the MPI calls of a program."""

from __future__ import annotations

import atexit
import os
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omb_py.cli import debug_option
from omb_py.core.errors import INTERRUPTED, OmbError, sentence
from omb_py.core.mpi import launcher
from omb_py.options.types import WholeNumber

if TYPE_CHECKING:
    from omb_py.tracing.recorder.session import Session

FOLDER = "omb-profile"

AT_EXIT, FINALIZE = "", "Finalize"


@click.command("profile", context_settings={"allow_interspersed_args": False})
@click.option(
    "--folder",
    "folder",
    default=FOLDER,
    show_default=True,
    metavar="DIR",
    type=click.Path(),
    help="Folder to write the profile to.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Replace the profile that the folder holds.",
)
@click.option(
    "--events",
    type=WholeNumber(min=1),
    help="Also record when calls were made, for omb-py timeline: the last N events of each rank, "
    "64 bytes each.",
)
@click.option("--call-sites", is_flag=True, help="Also record the source lines of the calls.")
@click.option("--traffic", is_flag=True, help="Also read counters of links, for omb-py traffic.")
@click.option("--module", "-m", "is_module", is_flag=True, help="PROGRAM is the name of a module.")
@click.option("--quiet", "-q", is_flag=True, help="Do not print the place of the profile.")
@debug_option
@click.argument("words", nargs=-1, required=True, type=click.Path(), metavar="PROGRAM [ARG]...")
def command(words: tuple[str, ...], is_module: bool, **values: Any) -> None:
    """Run an mpi4py program and record its MPI calls.

    mpiexec -n 4 omb-py profile train.py --epochs 2

    omb-py profile show omb-profile

    Options come before PROGRAM, a Python script (or, with -m, a module); what follows it belongs to
    the program. show prints recorded profiles; a script of that name is ./show.
    """
    if words[0] == "show" and not is_module:
        refuse_other_options()
        show.main(list(words[1:]), prog_name="omb-py profile show", standalone_mode=False)
        return
    name, *arguments = words
    profiled(name, tuple(arguments), is_module, values)


def refuse_other_options() -> None:
    """Raise `UsageError` for options that only concern the run of a program."""
    from omb_py.cli.analysis_options import refuse_options

    options = [one for one in command.params if isinstance(one, click.Option)]
    names = [str(one.name) for one in options if one.name != "debug"]
    refuse_options(names, "is for running a program: leave it out of profile show")


def profiled(
    name: str, arguments: tuple[str, ...], is_module: bool, values: dict[str, Any]
) -> None:
    """Run the program, observed; end as it ends. `Ending` writes the profile."""
    from omb_py.tracing.recorder import program
    from omb_py.tracing.recorder.session import Session

    os.environ[launcher.PROFILER] = "recorder"
    target = program.find_program(name, arguments, is_module)
    if launcher.rank() == 0:
        from omb_py.cli.profile_finish import prepare

        prepare(values["folder"], values["force"])
    about = {"command": target.command, "python": sys.version.split()[0]}
    counters = None
    if values["traffic"]:
        from omb_py.tracing.counters import TrafficCollector

        counters = TrafficCollector()
    folder = os.path.abspath(values["folder"])  # the program may go elsewhere
    session = Session(folder, about, values["events"] or 0, values["call_sites"], counters)
    if launcher.rank() != 0:
        sys.stdout.close()
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # what the program prints is its own
    ending = Ending(session, values["folder"], values["quiet"])
    session.prepare(partial(ending.run, FINALIZE))
    atexit.register(ending.run)
    try:
        program.run(target)
    except SystemExit:
        raise
    except program.NoProgramError:
        atexit.unregister(ending.run)
        raise
    except BaseException as error:
        ending.failure = INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        show_exception(error, (__name__, program.__name__))
        sys.exit(ending.failure)
    sys.exit()


def show_exception(error: BaseException, ours: tuple[str, ...]) -> None:
    """Show the exception that ended the program as Python does, from below our modules' frames."""
    shown = error.__traceback__
    while shown is not None and shown.tb_frame.f_globals["__name__"] in ours:
        shown = shown.tb_next
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, shown
    sys.excepthook(type(error), error.with_traceback(shown), shown)


class Ending:
    """The end of a profiled rank: the last exit handler, since it is registered first.

    Python joins the program's threads and runs its exit handlers before; mpi4py finalizes MPI
    afterwards, and Python keeps the program's exit code. ``failure`` is the exit code after an
    exception. Calls that leave without exit handlers are intercepted.
    """

    def __init__(self, session: Session, folder: str, quiet: bool) -> None:
        from omb_py.tracing.recorder.session import surrounded

        self.failure = 0
        self._session = session
        self._folder = folder  # as it was named, where the program was started
        self._quiet = quiet
        self._process = os.getpid()
        self._done: set[str] = set()
        self._so_far = f"the profile so far: omb-py profile show {folder}"
        for name in ("_exit", "execv", "execve"):
            setattr(os, name, surrounded(getattr(os, name), partial(self.run, name)))

    def run(self, call: str = AT_EXIT) -> None:
        """End the record; on rank 0 write the profile, or say that it is not written.

        ``call`` is what comes next: MPI's `FINALIZE`, or a function of ``os`` after which no exit
        handler runs. Do nothing in a forked process, nor a second time.
        """
        if os.getpid() != self._process or self._done & {AT_EXIT, FINALIZE, call}:
            return
        self._done.add(call)
        orderly = call in (AT_EXIT, FINALIZE)
        session, failed = self._session, orderly and bool(self.failure)
        if call == AT_EXIT:
            with suppress(OSError, ValueError):  # closed, or Python reports it itself
                sys.stdout.flush()
        try:
            together = orderly and self.failure != INTERRUPTED
            # exec may fail, and the program go on
            whole = not call.startswith("exec") and session.end(together, failed)
            if failed and not whole:
                self._end_job()
            elif not session.begun:
                text = "the program has not started MPI: there is no profile"
                launcher.note(text, launcher.rank())
            elif orderly:
                self._report()
            else:
                launcher.note(f"os.{call} came before MPI_Finalize; {self._so_far}", session.rank)
        except KeyboardInterrupt:
            self.failure = INTERRUPTED
            self._end_job()
        except Exception as error:
            launcher.say(sentence(error))
            time.sleep(launcher.SECONDS_TO_BE_HEARD)
            session.abort(getattr(error, "exit_code", 1))

    def _end_job(self) -> None:
        session = self._session
        if not session.begun:
            launcher.end_job(self.failure)
            return
        launcher.say(f"rank {session.rank} failed and ends the job; {self._so_far}")
        time.sleep(launcher.SECONDS_TO_BE_HEARD)
        session.abort(self.failure)

    def _report(self) -> None:
        session = self._session
        if session.aborting:
            launcher.say(f"note: rank {session.rank} ends the job; {self._so_far}")
        if session.rank > 0 or session.aborting:
            return
        from omb_py.cli.profile_finish import report

        if session.replaced:
            raise OmbError(
                f"another job has replaced the profile in {self._folder}: name a folder for "
                "each job with --folder"
            )
        report(session.folder, session.ranks, self._folder, self._quiet)


@click.command("show", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paths", nargs=-1, required=True, metavar="PROFILE...", type=click.Path())
@debug_option
def show(paths: tuple[str, ...]) -> None:
    """Print profiles as text.

    PROFILE is a folder or file of omb-py profile, a file of mpitrace (mpi_profile.*), a folder or
    file of NCCL's inspector plugin, or a file of HOROVOD_TIMELINE.
    """
    from omb_py.core.text import tables
    from omb_py.tracing.profile import horovod, nccl, text
    from omb_py.tracing.profile.store import load

    inspected = {path: nccl.inspector_files(Path(path)) for path in paths}
    traced = [path for path in paths if horovod.is_timeline(Path(path))]
    own = [path for path in paths if not inspected[path] and path not in traced]
    made: list[tables.Sheet] = []
    notes: list[str] = []
    if own:
        profile = load(own)
        made, notes = [*text.sheets(profile)], [*text.notes(profile)]
    if any(inspected.values()):
        made += nccl.sheets(nccl.load(one for found in inspected.values() for one in found))
    for path in traced:
        made += filter(lambda one: one.rows, horovod.sheets(horovod.load(Path(path)), path))
    tables.write(tables.Target(), made, notes=notes)
