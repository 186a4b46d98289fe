"""Ranks of an MPI job, kept together by MPI."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from omb_py.core import mpi
from omb_py.core.dataclass import replace
from omb_py.core.datatypes import Datatype
from omb_py.core.job import ESCAPED, Job, Mailbox, Op
from omb_py.core.mpi.launcher import unrecorded
from omb_py.core.mpi.startup_timer import INIT, MPI4PY, SESSION, Stages
from omb_py.core.waiting import poll

if TYPE_CHECKING:
    from mpi4py import MPI

LOOK_SECONDS = 0.001
"""Time between two looks of a rank that waits for others with the same error."""

FEW_SENT = 64
"""Texts on their way, at least, before a mailbox looks which have arrived."""

TAGS = 32768
"""Numbers of tags that MPI guarantees (MPI_TAG_UB is at least 32767)."""

# No comm.allreduce or comm.bcast here: collectives of objects need MPI_COMM_SELF, which a
# session may lack.


class MPIJob(Job):
    """The job of all ranks of an MPI communicator, by collective calls of mpi4py."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        from mpi4py import MPI  # starts MPI; bindings without it load this module, too

        super().__init__(comm.rank, comm.size, comm)
        self.spins = MPI.get_vendor()[0] == "MPICH"
        self.session: MPI.Session | None = None
        self.ends_mpi = False
        self._mpi = MPI

    @property
    def is_spawned(self) -> bool:
        return bool(self._mpi.Comm.Get_parent() != self._mpi.COMM_NULL)

    @unrecorded()
    def barrier(self) -> None:
        self.comm.Barrier()

    def gather(self, data: bytes) -> list[bytes]:
        at_root = self.ranks if self.rank == 0 else 0
        return self._gathered(data, at_root, self.comm.Gather, self.comm.Gatherv)

    def allgather(self, data: bytes) -> list[bytes]:
        return self._gathered(data, self.ranks, self.comm.Allgather, self.comm.Allgatherv)

    @unrecorded()
    def _gathered(
        self, data: bytes, ranks: int, numbers: Callable[..., None], parts: Callable[..., None]
    ) -> list[bytes]:
        """Return the data of each of ``ranks``, by MPI's calls for a number and for long parts."""
        integer, byte = self._mpi.INT64_T, self._mpi.BYTE
        lengths = array("q", bytes(8 * ranks))
        numbers([array("q", [len(data)]), 1, integer], [lengths, 1, integer])
        gathered = bytearray(sum(lengths))
        parts([data, len(data), byte], [gathered, list(lengths), byte])
        found, start = [], 0
        for length in lengths:
            found.append(bytes(gathered[start : start + length]))
            start += length
        return found

    @unrecorded()
    def bcast(self, data: bytes, root: int = 0) -> bytes:
        length = array("q", [len(data)])
        self.comm.Bcast([length, 1, self._mpi.INT64_T], root)
        content = bytearray(data if self.rank == root else length[0])
        self.comm.Bcast([content, length[0], self._mpi.BYTE], root)
        return bytes(content)

    def reduce(self, values: array[float], op: Op) -> array[float]:
        return self._combined(values, op, self.comm.Reduce)

    def allreduce(self, values: array[float], op: Op) -> array[float]:
        return self._combined(values, op, self.comm.Allreduce)

    @unrecorded()
    def _combined(self, values: array[float], op: Op, call: Callable[..., None]) -> array[float]:
        result, double = array("d", bytes(8 * len(values))), self._mpi.DOUBLE
        both = [values, len(values), double], [result, len(values), double]
        call(*both, getattr(self._mpi, op.upper()))
        return result

    @unrecorded()
    def meet(self, values: array[float], seconds: float | None = None) -> array[float] | None:
        result, double = array("d", bytes(8 * len(values))), self._mpi.DOUBLE
        both = [values, len(values), double], [result, len(values), double]
        request = self.comm.Iallreduce(*both, op=self._mpi.MIN)
        if seconds is None:
            request.Wait()
            return result
        return result if poll(request.Test, LOOK_SECONDS, seconds) else None

    def as_passed(self, datatype: Datatype) -> Datatype:
        lacking = None, self._mpi.DATATYPE_NULL
        known = (n for n in datatype.mpi_names if getattr(self._mpi, n, None) not in lacking)
        name = next(known, datatype.mpi)
        return datatype if name == datatype.mpi else replace(datatype, passed=name)

    def world(self) -> Job:
        return MPIJob(self._mpi.COMM_WORLD) if self._mpi.Is_initialized() else self

    @unrecorded()
    def _split_by_host(self) -> Job:
        comm: Any = self.comm.Split_type(self._mpi.COMM_TYPE_SHARED)
        return MPIJob(comm)

    @unrecorded()
    def among(self, ranks: Sequence[int], name: int) -> Job:
        every = self.comm.Get_group()
        group = every.Incl([*ranks])
        comm: Any = self.comm.Create_group(group, name % TAGS)
        group.Free()
        every.Free()
        part = MPIJob(comm)
        part.thread_level, part.is_part = self.thread_level, True
        return part

    @unrecorded()
    def mailbox(self) -> Mailbox:
        return MPIMailbox(self.comm.Dup())

    def free(self) -> None:
        self.free_host()
        with unrecorded():
            self.comm.Free()

    def describe(self) -> dict[str, str]:
        import mpi4py

        from omb_py.core.mpi import abi, rules

        in_force = rules.in_force(self._mpi.get_vendor()[0])
        return {
            "mpi4py": mpi4py.__version__,
            "mpi_library": mpi.version(),
            "mpi_library_path": abi.library_path(),
            "mpi_abi": abi.described(),
            "mpi_standard": ".".join(str(part) for part in self._mpi.Get_version()),
            "thread_level": self.thread_level,
            "session": str(self.session is not None),
            **({rules.METADATA: in_force} if in_force else {}),
        }

    def close(self) -> None:
        if self.session is not None:
            self.comm.Free()
            self.session.Finalize()
        elif self.ends_mpi:
            self._mpi.Finalize()  # here, so that a device's context can outlive MPI

    def abort(self, exit_code: int) -> NoReturn:
        self.comm.Abort(exit_code)
        os._exit(exit_code)  # MPICH's abort returns before the launcher has ended the process


class MPIMailbox(Mailbox):
    """Texts as messages of a communicator of their own."""

    def __init__(self, comm: MPI.Comm) -> None:
        from mpi4py import MPI

        self._comm: Any = comm
        self._mpi = MPI
        self._sent: list[tuple[Any, bytes]] = []
        self._most = FEW_SENT

    @unrecorded()
    def send(self, rank: int, text: str) -> None:
        if len(self._sent) >= self._most:  # not at each of thousands
            self._sent = [one for one in self._sent if not one[0].Test()]
            self._most = max(FEW_SENT, 2 * len(self._sent))
        data = text.encode(errors=ESCAPED)
        request = self._comm.Isend([data, len(data), self._mpi.BYTE], rank, 0)
        self._sent.append((request, data))

    @unrecorded()
    def receive(self) -> list[tuple[int, str]]:
        found, status = [], self._mpi.Status()
        while self._comm.Iprobe(self._mpi.ANY_SOURCE, 0, status):
            data = bytearray(status.Get_count(self._mpi.BYTE))
            self._comm.Recv([data, len(data), self._mpi.BYTE], status.Get_source(), 0)
            found.append((status.Get_source(), data.decode(errors=ESCAPED)))
        return found

    @unrecorded()
    def close(self) -> None:
        for request, _ in self._sent:
            request.Wait()
        self._comm.Free()


def job_of(communicator: Any) -> Job:
    """Return the job of the ranks of an object that `Job.communicator` returned."""
    return communicator if isinstance(communicator, Job) else MPIJob(communicator)


def world(
    thread_level: str, session: bool, stages: Stages | None = None, guest: bool = False
) -> MPIJob:
    """Start MPI and return the job of all its ranks; MPI is ended when the job is closed.

    MPI starts at ``thread_level``, by MPI_Init or by an MPI-4 session, timed by ``stages``. A
    ``guest`` does not end MPI, because another program started it. Raises `UsageError` if the
    launcher is another library's, and as `mpi.load` and `mpi.open_session` do.
    """
    stages = Stages() if stages is None else stages
    with stages.stage(MPI4PY):
        library = mpi.load()
        mpi.check_launcher()
    steps_aside = mpi.step_aside()
    opened: MPI.Session | None = None
    if session:
        with stages.stage(SESSION):
            opened, comm = mpi.open_session(thread_level)
    else:
        with stages.stage(INIT):
            mpi.initialize(thread_level)
        comm = library.COMM_WORLD
    job = MPIJob(comm)
    job.session, job.guest, job.ends_mpi = opened, guest, not guest
    job.steps_aside = steps_aside
    job.thread_level = thread_level if session else mpi.granted_level()
    return job
