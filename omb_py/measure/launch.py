"""From options to a launch: the device is chosen, MPI started, and both ended in order."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from omb_py.bindings import BINDINGS, load_before_mpi
from omb_py.buffers import BUFFERS, Buffer
from omb_py.core.dataclass import dataclass, field
from omb_py.core.datatypes import find_types
from omb_py.core.errors import MissingPackageError, OmbError, UnsupportedError, UsageError
from omb_py.core.job import Job, by_mpi
from omb_py.core.mpi import THREAD_LEVELS, launcher
from omb_py.core.mpi.startup_timer import BUFFER, NUMPY, Stages
from omb_py.core.options import Options

if TYPE_CHECKING:
    from omb_py.core.mpi.watchdog import Watchdog
    from omb_py.measure.sampling import Report
    from omb_py.measure.subset import SubsetJob


ALIVE_SECONDS = 0.2
"""Seconds between two words to the watchdog of a rank that works."""


@dataclass(frozen=True)
class Launch:
    """A launch of ranks: their job, and the buffer whose device was chosen for it.

    ``device_first`` is true if the device, if any, was chosen before MPI was started; ``stages``
    have the durations of the start's parts. ``subset`` are the ranks that measure if the others
    sleep meanwhile: then they are the ``job``.
    """

    job: Job
    buffer: Buffer
    watchdog: Watchdog | None = None
    device_first: bool = True
    stages: Stages = field(default_factory=Stages)
    subset: SubsetJob | None = None

    @property
    def report(self) -> Report | None:
        """The function by which a rank tells its watchdog that it makes progress, if it has one."""
        return None if self.watchdog is None else self.watchdog.alive

    def progress(self, text: str) -> None:
        """Tell the watchdog, if there is one, what comes next."""
        if self.watchdog is not None:
            self.watchdog.progress(text)

    @contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Tell the watchdog, if there is one, that this rank works, or waits for one that does."""
        self.progress(text)
        if self.watchdog is None:
            yield
            return
        from threading import Event, Thread

        over, alive = Event(), self.watchdog.alive

        def tell() -> None:
            while not over.wait(ALIVE_SECONDS):
                alive(0, 0)

        thread = Thread(target=tell, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@contextmanager
def launch(
    name: str,
    options: Options,
    given: Mapping[str, tuple[object, ...]] | None = None,
    in_program: bool = False,
    time_numpy: bool = False,
    last_words: Sequence[str] = (),
    starting: float | None = None,
) -> Iterator[Launch]:
    """Start the ranks that measure ``name``, the device before MPI, and end them with the block.

    All ranks must have been ``given`` the same values, by the names of options. With
    ``in_program``, within a user's program, MPI and the process go on, and errors are raised.
    ``time_numpy`` times the import of NumPy as a stage of its own. ``last_words`` are a command
    that runs if rank 0 makes no progress, before the job is ended; ``starting`` are the seconds in
    which MPI has to start, if not those of ``--timeout``. Raises `UsageError` for an
    unknown element type, and what ends the job inside of it.
    """
    find_types(options.types)  # an unknown one is refused also where MPI cannot be started
    stages, watchdog = Stages(), start_watchdog(options, last_words, starting)
    with ExitStack() as after_mpi:
        if watchdog is not None and in_program:
            after_mpi.callback(watchdog.close)
        # a GPU context that comes after MPI_Init costs Open MPI 5 its copies between GPUs
        local_rank = launcher.local_rank()
        apart = stages.importing("numpy", NUMPY) if time_numpy else nullcontext()
        with stages.stage(BUFFER), apart:
            buffer, failure = prepare_buffer(options, local_rank or 0)
        if buffer is not None:
            after_mpi.callback(buffer.close)
        failure = failure or library_algorithm_failure(name, options)
        if isinstance(failure, UsageError) and launcher.is_alone():
            raise failure  # also where MPI cannot be started
        try:
            started = start(options, stages, in_program)
        except OmbError as error:
            raise failure or error from error
        with started as job:
            meet(job, options, failure, {"benchmark": (name,), **(given or {})})
            assert buffer is not None
            device_first = local_rank is not None or job.ranks == 1
            if buffer.device is not None and not device_first:
                buffer = choose_device_again(options, job)
                after_mpi.callback(buffer.close)
            if THREAD_LEVELS.index(job.thread_level) < THREAD_LEVELS.index(options.thread_level):
                job.note(
                    f"requested thread level {options.thread_level}, MPI grants {job.thread_level}"
                )
            if not in_program:
                # what was imported stays to the end: no collection has to go through it, least of
                # all that at the interpreter's end, which takes 10 ms and more
                gc.freeze()
            yield Launch(job, buffer, watchdog, device_first, stages)
            if watchdog is not None and not in_program:
                watchdog.end()


def start_watchdog(
    options: Options, last_words: Sequence[str], starting: float | None
) -> Watchdog | None:
    """Return a running watchdog of this rank if ``--timeout`` asks for one."""
    if options.timeout is None:
        return None
    from omb_py.core.mpi.watchdog import STARTING, Watchdog

    watchdog = Watchdog(options.timeout, launcher.rank(), last_words, starting)
    watchdog.progress(STARTING)
    return watchdog


def prepare_buffer(options: Options, local_rank: int) -> tuple[Buffer | None, OmbError | None]:
    """Return the buffer, its device chosen; or the error of this rank."""
    try:
        buffer: Buffer = BUFFERS.load(options.buffer)
        return buffer.prepare(local_rank, options.devices), None
    except OmbError as error:
        return None, error


def library_algorithm_failure(name: str, options: Options) -> OmbError | None:
    """Ask the library for ``--coll-algorithm``, before it starts; return why that cannot be."""
    if options.library_algorithm is None:
        return None
    from omb_py.measure.library_algorithm import request

    try:
        request(name, options)
    except OmbError as error:
        return error
    return None


def start(options: Options, stages: Stages | None = None, in_program: bool = False) -> Job:
    """Return the job of all ranks, by MPI, or by torch if torchrun started them.

    Raises `UsageError` if there is no MPI, `UnsupportedError` if torchrun starts ranks whose
    binding needs it.
    """
    if "RANK" in os.environ and not in_program:
        try:
            needs_mpi = BINDINGS.load(options.binding).needs_mpi
        except MissingPackageError as error:
            if error.package != "mpi4py":
                raise
            needs_mpi = True
        if launcher.by_torchrun() and not needs_mpi:
            from omb_py.core.job import by_torch

            return by_torch.world(options.interface)
        if launcher.by_torchrun() and not launcher.by_mpi():
            raise UnsupportedError(
                f"binding {options.binding} needs MPI, and torchrun starts ranks without it: start "
                "them with mpiexec, or choose another --binding, such as torch or tcp"
            )
        ranks = os.environ.get("WORLD_SIZE", "")
        if not needs_mpi and not launcher.by_mpi() and ranks not in ("", "1"):
            raise UsageError(
                f"RANK and WORLD_SIZE={ranks} are set, but neither mpiexec nor torchrun started "
                f"this process, and ranks of binding {options.binding} meet through one of them: "
                f"start them with mpiexec -n {ranks}, or torchrun --nproc_per_node {ranks}"
            )
    load_before_mpi((options.binding,))
    return by_mpi.world(options.thread_level, options.session, stages, in_program)


def meet(
    job: Job, options: Options, failure: OmbError | None, given: Mapping[str, tuple[object, ...]]
) -> None:
    """Let all ranks of a job that has started meet for the first time; collective.

    ``given`` are the values that all must have alike. Raises `SharedError` if a rank came with a
    ``failure``, has other values, or is not among those that the launcher started.
    """
    job.debug = options.debug
    if (records := os.environ.get(launcher.SHARED_FILES)) is not None:
        from omb_py.core import shm_files

        shm_files.record(records)
    job.expect(None if job.guest else launcher.expected_ranks())
    job.start_together(failure, given)
    if job.rank == 0 and launcher.expected_ranks() is not None:
        with suppress(OSError):
            os.unlink(launcher.NOT_STARTED)


def choose_device_again(options: Options, job: Job) -> Buffer:
    """Return the buffer on the device of this rank's turn, by MPI's ranks; collective."""
    job.note(
        "the launcher sets no local ranks, so devices are chosen after the start of MPI, which "
        "can cost Open MPI its direct copies: set OMB_PY_LOCAL_RANK for each rank"
    )
    again, failure = prepare_buffer(options, job.on_host().rank)
    job.agree(failure)
    assert again is not None
    return again
