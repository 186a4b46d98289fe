"""From a command line to a job: the device is chosen, MPI started, and both ended in order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omb_py.buffers import BUFFERS, Buffer
from omb_py.core.errors import OmbError, UsageError
from omb_py.core.mpi import THREAD_LEVELS, launcher
from omb_py.core.mpi.job import Job
from omb_py.core.mpi.startup_timer import BUFFER, NUMPY, Stages
from omb_py.core.options import Options

if TYPE_CHECKING:
    from omb_py.core.mpi.watchdog import Watchdog


@dataclass(frozen=True)
class Launched:
    """A job that has started, with the buffer whose device was chosen for it."""

    job: Job
    buffer: Buffer
    watchdog: Watchdog | None
    device_first: bool


@contextmanager
def launched(
    name: str,
    options: Options,
    stages: Stages | None = None,
    guest: bool = False,
    numpy_apart: bool = False,
) -> Iterator[Launched]:
    """The job in which ``name`` runs, started with its buffer, and ended.

    ``numpy_apart`` times the import of NumPy as a stage of its own. A GPU context that comes after
    MPI_Init costs Open MPI 5 its direct copies between GPUs.
    """
    stages = Stages() if stages is None else stages
    watchdog = None
    if options.timeout is not None:
        from omb_py.core.mpi.watchdog import Watchdog

        watchdog = Watchdog(options.timeout, launcher.rank())
        watchdog.progress("starting MPI")
    with ExitStack() as after_mpi:
        local_rank = launcher.local_rank()
        if numpy_apart and options.buffer != "bytearray":
            with stages.stage(NUMPY):
                import numpy  # noqa: F401 - apart from the library that would import it
        with stages.stage(BUFFER):
            buffer, failure = prepare_buffer(options, local_rank or 0)
        if buffer is not None:
            after_mpi.callback(buffer.close)
        if options.library_algorithm is not None:
            from omb_py.algorithms.choice import tell

            tell(name, options.library_algorithm, options.verify_algorithm)
        with Job(options.thread_level, options.session, options.debug, stages, guest) as job:
            if (records := os.environ.get(launcher.SHARED_FILES)) is not None:
                from omb_py.core.opened_files import record_shared_memory

                record_shared_memory(records)
            job.expect(None if guest else launcher.expected_ranks())
            job.agree(failure)
            assert buffer is not None
            device_first = local_rank is not None or job.ranks == 1
            if buffer.device is not None and not device_first:
                buffer = choose_device_again(options, job)
                after_mpi.callback(buffer.close)
            if THREAD_LEVELS.index(job.thread_level) < THREAD_LEVELS.index(options.thread_level):
                job.note(
                    f"asked for thread level {options.thread_level}, MPI grants {job.thread_level}"
                )
            yield Launched(job, buffer, watchdog, device_first)
            if watchdog is not None:
                watchdog.progress("ending MPI")


def prepare_buffer(options: Options, local_rank: int) -> tuple[Buffer | None, OmbError | None]:
    """The buffer, its device chosen; or what is wrong with it on this rank."""
    try:
        buffer: Buffer = BUFFERS.load(options.buffer)
        return buffer.prepare(local_rank, options.devices), None
    except UsageError:
        raise
    except OmbError as error:
        return None, error


def choose_device_again(options: Options, job: Job) -> Buffer:
    """The buffer on the device of this rank's turn, which only MPI knows; collective."""
    job.note(
        "the launcher tells no local ranks, so devices are chosen after the start of MPI, which "
        "can cost Open MPI its direct copies: set OMB_PY_LOCAL_RANK for each rank"
    )
    again, failure = prepare_buffer(options, job.local_rank())
    job.agree(failure)
    assert again is not None
    return again
