"""The MPI objects that plans need in addition to messages: made for a case, and freed after it."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from omb_py.benchmarks import Exposed
from omb_py.buffers import Buffer
from omb_py.core.datatypes import Datatype
from omb_py.core.errors import UnsupportedError, UsageError
from omb_py.core.job import Job
from omb_py.core.memory import Memory
from omb_py.core.options import Options

if TYPE_CHECKING:
    from mpi4py import MPI


class MpiResources:
    """The resources that `omb_py.benchmarks.Resources` promises, on all ranks of a job."""

    def __init__(self, job: Job, options: Options) -> None:
        self.buffer: Buffer | None = None
        self.graph_seconds: float | None = None
        self._job = job
        self._options = options
        self._graph: Any = None
        self._held: list[Callable[[], Any]] = []

    @property
    def _comm(self) -> MPI.Intracomm:
        return self._job.comm

    def graph(self, sources: tuple[int, ...], destinations: tuple[int, ...]) -> Any:
        if self._graph is None:  # all sizes have the same neighbours, and its time is one row
            self._comm.Barrier()
            begin = perf_counter()
            self._graph = self._comm.Create_dist_graph_adjacent(sources, destinations)
            self.graph_seconds = perf_counter() - begin
        return self._graph

    def duplicates(self, count: int) -> list[Any]:
        made = [self._comm.Dup() for _ in range(count)]
        self._held += [comm.Free for comm in made]
        return made

    def window(self, nbytes: int, datatype: Datatype) -> Exposed:
        comm = self._comm
        from mpi4py import MPI

        assert self.buffer is not None
        kind = self._options.window_kind
        memory: Memory
        base = 0
        if kind in ("create", "dynamic"):
            # making a window is collective: a rank that cannot would leave the others waiting
            with self._job.agreement():
                memory = self.buffer.allocate(nbytes, datatype)
                if memory.on_device:
                    self._check_device(memory.kind)
        try:
            if kind == "create":
                win = MPI.Win.Create(memory.array, 1, comm=comm)
            elif kind == "dynamic":
                win = MPI.Win.Create_dynamic(comm=comm)
                win.Attach(memory.array)
                base = MPI.Get_address(memory.array)
                self._held.append(lambda: win.Detach(memory.array))
            elif kind == "shared":
                self._check_one_host()
                win = MPI.Win.Allocate_shared(nbytes, 1, comm=comm)
            else:
                win = MPI.Win.Allocate(nbytes, 1, comm=comm)
        except (MPI.Exception, NotImplementedError) as error:
            raise UnsupportedError(
                f"this MPI library cannot make a window by -w {kind} ({error}): choose another"
            ) from error
        if kind in ("allocate", "shared"):
            memory = self.buffer.wrap(win.tomemory(), datatype)
        self._held.insert(0, win.Free)  # taken back last: memory is detached before
        bases = array("q", bytes(8 * comm.size))
        comm.Allgather([array("q", [base]), 1, MPI.INT64_T], [bases, 1, MPI.INT64_T])
        return Exposed(win, memory, tuple(bases))

    def file(self, nbytes: int) -> tuple[Any, Memory]:
        comm = self._comm
        from mpi4py import MPI

        from omb_py.core import mpi
        from omb_py.measure.files import FileMemory, check_place  # few benchmarks have files

        mpi.check(["file_open"])
        path = self._options.file or ""
        if self._options.per_rank:
            comm, path = MPI.COMM_SELF, f"{path}.{comm.rank}"
        check_place(self._job, path, shared=comm is self._comm)
        # without what MPICH takes for the name of a file system, as in ufs:data
        path = os.path.abspath(path)
        mode = MPI.MODE_CREATE | MPI.MODE_EXCL | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE
        try:
            file = MPI.File.Open(comm, path, mode)
        except MPI.Exception as error:
            why = MPI.Get_error_string(error.Get_error_class())
            raise UsageError(
                f"--file {path}: MPI cannot make this file ({why}): name one that does not exist, "
                "in a folder that every rank can write"
            ) from error
        self._held.append(file.Close)
        return file, FileMemory(path, comm.rank * nbytes, nbytes)

    def group(self, rank: int) -> Any:
        everyone = self._comm.Get_group()
        group = everyone.Incl([rank])
        everyone.Free()
        self._held.append(group.Free)
        return group

    def fork(self, processes: int) -> None:
        import signal

        children: list[int] = []

        def end() -> None:
            for child in children:
                # at once: a copy of this rank must not run what MPI does at a process's end
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)

        for _ in range(processes):
            child = os.fork()
            if child == 0:
                signal.pause()
                os._exit(0)
            children.append(child)
        self._held.append(end)

    def release(self) -> None:
        """Take back what belongs to one case; collective."""
        while self._held:
            self._held.pop()()

    def close(self) -> None:
        """Free what belongs to the case and what outlives it; collective."""
        self.release()
        if self._graph is not None:
            self._graph.Free()

    def _check_device(self, kind: str) -> None:
        from omb_py.core.mpi.gpu_aware import awareness

        if self._options.staging:
            raise UnsupportedError(
                "one-sided calls reach into a device's memory, which cannot be staged: leave out "
                "--staging"
            )
        awareness(self._options.gpu_aware, self._comm, kind).check(("win_create",))

    def _check_one_host(self) -> None:
        if self._job.on_host().ranks != self._job.ranks:
            raise UnsupportedError(
                "-w shared needs all ranks on one host: start them there, or choose -w allocate"
            )
