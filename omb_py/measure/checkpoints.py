"""Checkpoints: how ranks store their memory in files and read it back.

Steps are timed one by one, from inside an iteration: open, write or read, sync, close.
"""

from __future__ import annotations

import contextlib
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from omb_py.benchmarks import Stored
from omb_py.core.errors import OmbError, UnsupportedError, UsageError
from omb_py.core.job import Job, first_ranks
from omb_py.core.memory import Local, Memory
from omb_py.core.options import Options
from omb_py.core.text.files import failing
from omb_py.core.text.units import amount
from omb_py.measure.files import FileMemory, check_folder

if TYPE_CHECKING:
    from mpi4py import MPI

PIECE = 1 << 30
"""Bytes of one call of MPI-IO: Open MPI 5.0 counts to 2^31."""


class FilePerRank:
    """Each rank writes its bytes into a file of its own."""

    def __init__(self, comm: MPI.Intracomm, path: str, memory: Memory, source: int) -> None:
        """``source`` is the rank whose data this one reads."""
        self.comm = comm
        self.view = memory.view()
        self.source = source
        self.name = path
        self.path, self.source_path = self.path_of(comm.rank), self.path_of(source)
        self.file: Any = None

    def path_of(self, rank: int) -> str:
        """Return the file with the data of a rank."""
        return f"{self.name}.{rank}"

    def place(self) -> int:
        """Return the offset of this rank's data in its file, which exists."""
        return os.path.getsize(self.path) - len(self.view)

    def create(self) -> None:
        self.file = open(self.path, "xb")  # noqa: SIM115 - closed by `close`

    def write(self) -> None:
        self.file.write(self.view)
        self.file.flush()

    def sync(self) -> None:
        os.fsync(self.file.fileno())

    def open(self) -> None:
        self.file = open(self.source_path, "rb")  # noqa: SIM115

    def read(self) -> None:
        check_count(self.file.readinto(self.view), len(self.view))

    def close(self) -> None:
        self.file.close()

    def keep(self) -> None:
        """Put what was read into this rank's memory, where `read` has not."""

    def remove(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def remove_all(self) -> None:
        """Remove what all ranks wrote, as far as that is possible."""
        for path in {self.path_of(rank) for rank in range(self.comm.size)}:
            with contextlib.suppress(OSError):
                os.unlink(path)

    def drop_cache(self) -> None:
        """Ask the kernel to forget what it holds of the file that is read next."""
        with contextlib.suppress(OSError, AttributeError):  # it is then read from the cache
            descriptor = os.open(self.source_path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


class Numpy(FilePerRank):
    """Each rank writes an array by numpy.save."""

    def __init__(self, *arguments: Any) -> None:
        import numpy as np

        super().__init__(*arguments)
        self._save, self._load = np.save, np.load
        self._written = np.frombuffer(self.view, np.uint8)
        self._found: Any = None

    def write(self) -> None:
        self._save(self.file, self._written, allow_pickle=False)
        self.file.flush()

    def read(self) -> None:
        self._found = self._load(self.file, allow_pickle=False)

    def keep(self) -> None:
        self.view[:] = self._found


class Shared(FilePerRank):
    """All ranks write one file by MPI-IO, each by itself."""

    calls = ("Write_at", "Read_at")

    def path_of(self, rank: int) -> str:
        return self.name

    def remove(self) -> None:
        if self.comm.rank == 0:
            super().remove()

    def place(self) -> int:
        return int(self.comm.rank * len(self.view))

    def create(self) -> None:
        from mpi4py import MPI

        mode = MPI.MODE_CREATE | MPI.MODE_EXCL | MPI.MODE_WRONLY
        self.file = MPI.File.Open(self.comm, self.path, mode)

    def write(self) -> None:
        self._transfer(getattr(self.file, self.calls[0]), self.comm.rank)

    def sync(self) -> None:
        self.file.Sync()

    def open(self) -> None:
        from mpi4py import MPI

        self.file = MPI.File.Open(self.comm, self.source_path, MPI.MODE_RDONLY)

    def read(self) -> None:
        self._transfer(getattr(self.file, self.calls[1]), self.source)

    def close(self) -> None:
        self.file.Close()

    def _transfer(self, call: Callable[..., None], owner: int) -> None:
        """Call a function for the part of the file that has the data of a rank."""
        from mpi4py import MPI

        status, nbytes = MPI.Status(), len(self.view)
        for start in range(0, nbytes, PIECE):
            piece = self.view[start : start + PIECE]
            call(owner * nbytes + start, [piece, len(piece), MPI.BYTE], status)
            check_count(status.Get_elements(MPI.BYTE), len(piece))


class CollectiveFile(Shared):
    """All ranks write one file by MPI-IO together."""

    calls = ("Write_at_all", "Read_at_all")


METHODS = {
    "file_per_rank": FilePerRank,
    "shared": Shared,
    "collective": CollectiveFile,
    "numpy": Numpy,
}
"""By the names that ``--method`` takes."""


def stored(
    job: Job, options: Options, memory: Memory, writes: bool
) -> tuple[Stored, Callable[[], None]]:
    """Return a checkpoint at ``--file``, written once, and a function that removes it; collective.

    Raises `OmbError` if it has no room or cannot be written, `UsageError` if the file exists,
    `UnsupportedError` for other bindings than buffer and for memory on a device.
    """
    if options.binding != "buffer" or memory.on_device:
        raise UnsupportedError(
            "checkpoints are written by Python, from memory of the host: use --binding buffer, and "
            "--buffer numpy or bytearray"
        )
    path = options.file or ""
    check_folder(job, path)
    check_space(path, job.ranks * memory.nbytes)
    source = (job.rank + shift_of(first_ranks(job))) % job.ranks
    method = METHODS[options.method](job.comm, path, memory, source)
    if job.allreduce(array("d", [os.path.lexists(method.path)]), "max")[0]:
        raise UsageError(f"--file {path}: files of this name exist: remove them, or name another")
    with reporting("write", method):
        method.create()
        method.write()
        method.close()
    file = FileMemory(method.path, method.place(), memory.nbytes)
    steps: dict[str, Callable[[], None]] = {"open": method.open, "read": method.read}
    before, after = method.drop_cache, method.keep
    if writes:
        steps = {"open": method.create, "write": method.write}
        steps |= {"sync": method.sync} if options.file_sync else {}
        before, after = method.remove, None
    seconds = {name: array("d") for name in (*steps, "close")}
    steps["close"] = method.close
    timed = tuple(
        Local(name, partial(time_step, run, seconds[name], method, name))
        for name, run in steps.items()
    )
    around = [() if run is None else (Local("around", run),) for run in (before, after)]
    return Stored(timed, around[0], around[1], file, source, seconds), method.remove


def time_step(
    run: Callable[[], None], seconds: array[float], method: FilePerRank, name: str
) -> None:
    """Do a step and keep its time; raises `OmbError` if it cannot be done."""
    begin = perf_counter()
    with reporting(name, method):
        run()
    seconds.append(perf_counter() - begin)


@contextlib.contextmanager
def reporting(step: str, method: FilePerRank) -> Iterator[None]:
    """Remove the files, and raise `OmbError`, if a step cannot be done."""
    from mpi4py import MPI

    try:
        yield
    except (OSError, ValueError, MPI.Exception) as error:
        method.remove_all()
        lines = str(error).replace("\0", " ").strip().splitlines()
        reason = error.strerror if isinstance(error, OSError) else None
        raise OmbError(
            f"cannot {step} checkpoint {method.path}: {reason or lines[-1].strip()}; see whether "
            "there is room, or name another --file"
        ) from error


def check_count(count: int, expected: int) -> None:
    """Raise `OSError` if fewer bytes were stored or read, without an error."""
    if count != expected:
        raise OSError(f"only {count} of {expected} bytes")


def check_space(path: str, nbytes: int) -> None:
    """Raise `OmbError` if a checkpoint of so many bytes has no room, or no folder."""
    folder = os.path.dirname(os.path.abspath(path))
    with failing("write", path, advice="; name another --file"):
        found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if found.f_blocks and free < nbytes:
        raise OmbError(
            f"a checkpoint of all ranks has {amount(nbytes)}, and {folder} has {amount(free)} "
            "free: choose smaller --sizes, free space there, or name another --file"
        )


def shift_of(nodes: Sequence[int]) -> int:
    """Return the smallest shift by which the most ranks read what another node wrote.

    ``nodes`` has the node of each rank. 0 for a single rank, 1 on one node. The number of ranks on
    a node is enough if they fill one node after the other (IOR's ``-C``), 1 if they go round.

    >>> shift_of([0, 0, 2, 2]), shift_of([0, 1, 0, 1])
    (2, 1)
    """
    ranks = len(nodes)

    def far(shift: int) -> int:
        return sum(nodes[rank] != nodes[(rank + shift) % ranks] for rank in range(ranks))

    most_on_node = max(map(nodes.count, set(nodes)))
    return max(range(1, min(most_on_node, ranks - 1) + 1), key=far, default=0)
