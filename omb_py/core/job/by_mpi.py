"""Ranks of an MPI job, kept together by MPI."""

from __future__ import annotations

import os
from array import array
from typing import TYPE_CHECKING, Any, NoReturn

from omb_py.core import mpi
from omb_py.core.errors import UsageError
from omb_py.core.job.control import Control, Op
from omb_py.core.mpi.startup_timer import INIT, MPI4PY, SESSION, Stages

if TYPE_CHECKING:
    from mpi4py import MPI

# No comm.allreduce or comm.bcast here: collectives of objects need MPI_COMM_SELF, which a
# session may lack.


class MPIControl(Control):
    """Ranks of an MPI communicator."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        from mpi4py import MPI

        self.comm = comm
        self.rank = comm.rank
        self.size = comm.size
        self.spins = MPI.get_vendor()[0] == "MPICH"
        self._mpi = MPI

    @property
    def communicator(self) -> MPI.Intracomm:
        return self.comm

    @property
    def is_spawned(self) -> bool:
        return bool(self._mpi.Comm.Get_parent() != self._mpi.COMM_NULL)

    def continue_on(self, communicator: MPI.Intracomm) -> None:
        self.comm = communicator
        self.rank, self.size = communicator.rank, communicator.size

    def barrier(self) -> None:
        self.comm.Barrier()

    def gather(self, data: bytes) -> list[bytes]:
        integer, byte = self._mpi.INT64_T, self._mpi.BYTE
        at_root = self.size if self.rank == 0 else 0
        lengths = array("q", bytes(8 * at_root))
        self.comm.Gather([array("q", [len(data)]), 1, integer], [lengths, 1, integer])
        gathered = bytearray(sum(lengths))
        self.comm.Gatherv([data, len(data), byte], [gathered, list(lengths), byte])
        found, start = [], 0
        for length in lengths:
            found.append(bytes(gathered[start : start + length]))
            start += length
        return found

    def bcast(self, data: bytes, root: int = 0) -> bytes:
        length = array("q", [len(data)])
        self.comm.Bcast([length, 1, self._mpi.INT64_T], root)
        content = bytearray(data if self.rank == root else length[0])
        self.comm.Bcast([content, length[0], self._mpi.BYTE], root)
        return bytes(content)

    def reduce(self, values: array[float], op: Op) -> array[float]:
        result, double = array("d", bytes(8 * len(values))), self._mpi.DOUBLE
        both = [values, len(values), double], [result, len(values), double]
        self.comm.Reduce(*both, getattr(self._mpi, op.upper()), 0)
        return result

    def allreduce(self, values: array[float], op: Op) -> array[float]:
        result, double = array("d", bytes(8 * len(values))), self._mpi.DOUBLE
        both = [values, len(values), double], [result, len(values), double]
        self.comm.Allreduce(*both, getattr(self._mpi, op.upper()))
        return result

    def whole(self) -> Control:
        return MPIControl(self._mpi.COMM_WORLD) if self._mpi.Is_initialized() else self

    def on_host(self) -> MPIControl:
        comm: Any = self.comm.Split_type(self._mpi.COMM_TYPE_SHARED)
        return MPIControl(comm)

    def free(self) -> None:
        self.comm.Free()

    def abort(self, exit_code: int) -> NoReturn:
        self.comm.Abort(exit_code)
        os._exit(exit_code)  # MPICH's abort returns before the launcher has ended the process


def control_of(communicator: Any) -> Control:
    """The control over the ranks of what `Control.communicator` gave."""
    return communicator if isinstance(communicator, Control) else MPIControl(communicator)


def communicator_of(control: Control, user: str = "this command") -> MPI.Intracomm:
    """MPI's communicator of the ranks.

    Raises `UsageError`, which names the ``user`` (an option, or what else uses it), where the job
    has none.
    """
    if isinstance(control, MPIControl):
        return control.comm
    without = f", or leave out {user}" if user.startswith("-") else ""
    raise UsageError(
        f"{user} needs MPI, and torchrun starts ranks without it: start them with mpiexec{without}"
    )


class MPIWorld(MPIControl):
    """All ranks of an MPI job: MPI is started with them, and ended."""

    def __init__(
        self, thread_level: str, session: bool, stages: Stages | None = None, guest: bool = False
    ) -> None:
        """Start MPI at ``thread_level``, by MPI_Init or by an MPI-4 session, timed by ``stages``.

        A ``guest`` does not end MPI, which is somebody else's. Raises `UsageError` when there is no
        MPI library or it cannot do so.
        """
        stages = Stages() if stages is None else stages
        with stages.stage(MPI4PY):
            library = mpi.load()
        self._guest = guest
        self._session: MPI.Session | None = None
        if session:
            with stages.stage(SESSION):
                self._session, comm = mpi.open_session(thread_level)
        else:
            with stages.stage(INIT):
                mpi.initialize(thread_level)
            comm = library.COMM_WORLD
        super().__init__(comm)
        self.thread_level = thread_level if session else mpi.granted_level()

    def close(self) -> None:
        if self._session is not None:
            self.comm.Free()
            self._session.Finalize()
        elif not self._guest:
            self._mpi.Finalize()  # here, so that a device's context can outlive MPI

    def describe(self) -> dict[str, str]:
        import mpi4py

        from omb_py.core.mpi import abi

        return {
            "mpi4py": mpi4py.__version__,
            "mpi_library": mpi.version(),
            "mpi_library_path": abi.library_path(),
            "mpi_abi": abi.described(),
            "mpi_standard": ".".join(str(part) for part in self._mpi.Get_version()),
            "thread_level": self.thread_level,
            "session": str(self._session is not None),
        }
