"""Going on when ranks fail: ULFM (User-Level Failure Mitigation), if this job has it.

Open MPI has it in jobs that ``mpirun --with-ft ulfm`` starts. MPICH 5 exports some of its
functions, but they abort the job, and its launcher ends a job whose rank died.
"""

from __future__ import annotations

import os
import signal
import sys
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

from omb_py.core.errors import OmbError, UnsupportedError, UsageError
from omb_py.core.mpi.tool_interface import ControlVariable
from omb_py.core.waiting import poll

if TYPE_CHECKING:
    from mpi4py import MPI

FINALIZE_SECONDS = 5.0
"""Time that MPI_Finalize may take after ranks have failed; Open MPI 5 sometimes never returns."""

HUNG = "did not return from MPI_Finalize"
"""Part of the error sentence of a rank that was ended there; sweeps count it."""

RANK_TAG = 1


def check() -> None:
    """Raise `UnsupportedError` unless this job goes on when ranks fail."""
    from mpi4py import MPI

    library = MPI.get_vendor()[0]
    if library != "Open MPI":
        raise UnsupportedError(
            f"every job of {library} ends when a rank fails: use Open MPI 5, and start the job "
            "with 'mpirun --with-ft ulfm'"
        )
    try:
        enabled = bool(ControlVariable("mpi_ft_enable").read())
    except OmbError:
        enabled = False
    if not enabled:
        raise UnsupportedError(
            "this job would end when a rank fails: start it with 'mpirun --with-ft ulfm' of Open "
            "MPI 5"
        )


def check_spawn() -> None:
    """Raise `UsageError` if processes that replace ranks could not be reached, and MPI hangs."""
    transports = os.environ.get("OMPI_MCA_btl", "")  # noqa: SIM112 - its name
    names = transports.removeprefix("^").split(",")
    if transports and ("tcp" in names) == transports.startswith("^"):
        raise UsageError(
            "Open MPI connects processes that replace ranks by TCP, which OMPI_MCA_btl="
            f"{transports} excludes: add it, as in OMPI_MCA_btl=self,sm,tcp"
        )


def fail() -> NoReturn:
    """End this rank by a signal that cannot be caught."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit  # not reached


def is_failure(comm: MPI.Intracomm) -> bool:
    """Return whether an error on ``comm`` can be a failed rank's: one is known, or it is revoked.

    The classes of errors do not tell: Open MPI 5.0.11 reports some failures as MPI_ERR_OTHER.
    """
    group = comm.Get_failed()
    failed = group.size > 0
    group.Free()
    return failed or comm.Is_revoked()


def shrink(comm: MPI.Intracomm) -> MPI.Intracomm:
    """Return the communicator of the survivors, in the same order; collective over them.

    ``comm`` is revoked first, so that no survivor waits in it any more.
    """
    if not comm.Is_revoked():
        comm.Revoke()
    return cast("MPI.Intracomm", comm.Shrink())


def failed_ranks(comm: MPI.Intracomm, survivors: MPI.Intracomm) -> tuple[int, ...]:
    """Return the ranks of ``comm`` that are not among ``survivors``, which `shrink` made of it."""
    from mpi4py import MPI

    before, after = comm.Get_group(), survivors.Get_group()
    numbers = MPI.Group.Translate_ranks(before, list(range(before.size)), after)
    before.Free()
    after.Free()
    return tuple(rank for rank, number in enumerate(numbers) if number == MPI.UNDEFINED)


class Replacement:
    """Processes that take the place of failed ranks, step by step; collective over the survivors.

    They are started with this process's own command line, and come back from `join`.
    """

    def __init__(self, survivors: MPI.Intracomm, rank: int, failed: Sequence[int]) -> None:
        """``rank`` is this process's in the communicator in which the ranks ``failed``."""
        self._survivors = survivors
        self._rank = rank
        self._failed = failed
        self._spawned: Any = None
        self._merged: Any = None

    def spawn(self) -> None:
        words = ["-m", "omb_py", *sys.argv[1:]]
        self._spawned = self._survivors.Spawn(sys.executable, words, len(self._failed))

    def merge(self) -> None:
        """Make one communicator of survivors and replacements (MPI_Intercomm_merge)."""
        self._merged = self._spawned.Merge(False)

    def reorder(self) -> MPI.Intracomm:
        """Put all in the order of the ranks before the failure (MPI_Comm_split)."""
        from mpi4py import MPI

        if self._survivors.rank == 0:
            for number, rank in enumerate(self._failed):
                self._spawned.Send([array("i", [rank]), 1, MPI.INT], number, RANK_TAG)
        comm: MPI.Intracomm = self._merged.Split(0, self._rank)
        return comm

    def finish(self) -> None:
        """Give back what only the replacement needed: MPI_Finalize would fail over it."""
        self._merged.Free()
        self._spawned.Disconnect()


def join() -> MPI.Intracomm:
    """Return the communicator in which a process spawned as a `Replacement` takes its place."""
    from mpi4py import MPI

    parent: Any = MPI.Comm.Get_parent()
    merged = parent.Merge(True)
    rank = array("i", [0])
    parent.Recv([rank, 1, MPI.INT], 0, RANK_TAG)
    comm: MPI.Intracomm = merged.Split(0, rank[0])
    merged.Free()
    parent.Disconnect()
    return comm


def limit_finalize(rank: int) -> None:
    """End this process if MPI_Finalize takes more than `FINALIZE_SECONDS`; rank 0 reports it.

    A child process watches: mpi4py holds the interpreter's lock in MPI_Finalize, so that neither
    threads nor handlers of signals would run.
    """
    parent = os.getpid()
    if os.fork():
        return
    try:
        if poll(lambda: os.getppid() != parent, 0.05, FINALIZE_SECONDS):
            return
        if rank == 0:
            text = f"omb-py: rank 0 {HUNG} within {FINALIZE_SECONDS:g} s of a failure and was "
            os.write(2, f"{text}killed: results are complete\n".encode())
        os.kill(parent, signal.SIGKILL)
    finally:
        os._exit(0)
