"""How checkpoints are written and read: a table of methods, ours and anybody's."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any

from omb_py.core.dataclass import dataclass
from omb_py.core.errors import MissingPackageError, installing
from omb_py.core.registry import Rows

if TYPE_CHECKING:
    from mpi4py import MPI


PIECE = 1 << 30
"""Bytes of one call: Open MPI counts to 2^31, and MPICH's non-blocking writes stop there."""

PATIENCE = 60.0
"""Seconds in which a non-blocking write changes its file: MPICH never completes one that fails."""


@dataclass(frozen=True)
class Place:
    """Where checkpoints lie, and what each rank stores: ``size`` bytes.

    ``sync`` says whether they are to reach storage. Each rank restarts from what rank
    ``rank + shift`` stored (modulo the number of ranks).
    """

    comm: MPI.Intracomm
    folder: str
    size: int
    shift: int
    sync: bool = True

    @property
    def source(self) -> int:
        """The rank whose data this one reads."""
        return int((self.comm.rank + self.shift) % self.comm.size)


class Checkpoint(ABC):
    """A method at one size, on all ranks, each of which calls the methods below in turn.

    Each step is timed. What a step raises is said for it; the steps after it are taken all the
    same, since other ranks may wait in them, and what those raise then is not.
    """

    variant: str | None = None
    """Which of several things the method does here, in a few words."""

    def __init__(self, place: Place) -> None:
        """Allocate what all rounds need, apart from the data itself."""
        self.place = place
        self.rank: int = place.comm.rank
        self.ranks: int = place.comm.size

    def path(self, name: str, rank: int) -> str:
        """The file with the data of ``rank``, of the checkpoint that is called ``name``."""
        return os.path.join(self.place.folder, f"{name}.{rank}")

    @abstractmethod
    def stored(self) -> tuple[int, bool]:
        """Bytes of such a file, and whether it has just these or more."""

    @abstractmethod
    def open_to_write(self, name: str) -> None:
        """Make the files of a checkpoint."""

    @abstractmethod
    def write(self, data: Any) -> None:
        """Store an array of bytes, or begin to, where the method works in the background."""

    @abstractmethod
    def sync(self) -> None:
        """Bring what was written to storage."""

    @abstractmethod
    def close(self) -> None:
        """Close what is open."""

    @abstractmethod
    def open_to_read(self, name: str) -> None:
        """Open the files of a checkpoint that was closed."""

    @abstractmethod
    def read(self, data: Any) -> Any:
        """The data of rank `Place.source`: in ``data``, or in an array that reading made."""

    def remove(self, name: str) -> None:
        """Remove the file of a checkpoint that is this rank's to remove."""
        path = self.path(name, self.rank)
        if os.path.exists(path):
            os.unlink(path)

    def release(self) -> None:  # noqa: B027 - most have nothing to give back
        """Give back what all rounds needed; collective."""


class BackgroundCheckpoint(Checkpoint):
    """One whose `write` returns while storing goes on; the data may be changed from then on."""

    syncs_in_background = False
    """Whether `sync` has nothing left to do."""

    @abstractmethod
    def progress(self) -> None:
        """Let storing go on, where it needs this rank; called between pieces of computing."""

    @abstractmethod
    def wait(self) -> None:
        """Wait until all is written."""


class FilePerRank(Checkpoint):
    """Each rank writes its bytes into a file of its own."""

    _file: Any = None

    def stored(self) -> tuple[int, bool]:
        return self.place.size, True

    def open_to_write(self, name: str) -> None:
        self._file = open(self.path(name, self.rank), "xb")  # noqa: SIM115 - closed by `close`

    def write(self, data: Any) -> None:
        self._file.write(data)
        self._file.flush()

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def open_to_read(self, name: str) -> None:
        self._file = open(self.path(name, self.place.source), "rb")  # noqa: SIM115

    def read(self, data: Any) -> Any:
        return data[: self._file.readinto(data)]


class Numpy(FilePerRank):
    """Each rank writes an array by numpy.save."""

    def stored(self) -> tuple[int, bool]:
        return self.place.size, False

    def write(self, data: Any) -> None:
        import numpy as np

        np.save(self._file, data, allow_pickle=False)
        self._file.flush()

    def read(self, data: Any) -> Any:
        import numpy as np

        return np.load(self._file, allow_pickle=False)


class Pickle(FilePerRank):
    """Each rank pickles an array; read is only what this job has just written itself."""

    def stored(self) -> tuple[int, bool]:
        return self.place.size, False

    def write(self, data: Any) -> None:
        import pickle

        pickle.dump(data, self._file, pickle.HIGHEST_PROTOCOL)
        self._file.flush()

    def read(self, data: Any) -> Any:
        import pickle

        return pickle.load(self._file)


class Gather(FilePerRank):
    """All data is gathered on rank 0, which writes it into one file; another rank scatters it."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._reader = -place.shift % self.ranks
        self._all: Any = None
        if self.rank in (0, self._reader):
            import numpy as np

            self._all = np.empty(self.ranks * place.size, np.uint8)

    def path(self, name: str, rank: int) -> str:
        return os.path.join(self.place.folder, name)

    def stored(self) -> tuple[int, bool]:
        return self.ranks * self.place.size, True

    def open_to_write(self, name: str) -> None:
        self._file = None
        if self.rank == 0:
            super().open_to_write(name)

    def write(self, data: Any) -> None:
        self.place.comm.Gather(data, self._all if self.rank == 0 else None)
        if self.rank == 0:
            super().write(self._all)

    def sync(self) -> None:
        if self.rank == 0:
            super().sync()

    def close(self) -> None:
        if self._file is not None:
            super().close()

    def open_to_read(self, name: str) -> None:
        self._file = None
        if self.rank == self._reader:
            super().open_to_read(name)

    def read(self, data: Any) -> Any:
        from mpi4py import MPI

        size, ranks = self.place.size, self.ranks
        sent = None
        try:
            if self.rank == self._reader:
                places = [(rank + self.place.shift) % ranks * size for rank in range(ranks)]
                sent = [self._all, [size] * ranks, places, MPI.BYTE]
                self._all[super().read(self._all).size :] = 0
        finally:
            self.place.comm.Scatterv(sent, data, self._reader)
        return data

    def remove(self, name: str) -> None:
        if self.rank == 0:
            super().remove(name)


class Independent(Checkpoint):
    """All ranks write one file by MPI-IO, each by itself."""

    _file: Any = None

    def path(self, name: str, rank: int) -> str:
        return os.path.join(self.place.folder, name)

    def stored(self) -> tuple[int, bool]:
        return self.ranks * self.place.size, True

    def open_to_write(self, name: str) -> None:
        from mpi4py import MPI

        self._open(name, MPI.MODE_CREATE | MPI.MODE_EXCL | MPI.MODE_WRONLY)

    def _open(self, name: str, mode: int) -> None:
        from mpi4py import MPI

        self._file, self._path = None, self.path(name, self.rank)
        self._file = MPI.File.Open(self.place.comm, self._path, mode)

    def write(self, data: Any) -> None:
        self._transfer(self._file.Write_at, data, self.rank)

    def _transfer(self, call: Callable[..., None], data: Any, owner: int) -> None:
        """Calls for the part of the file that has the data of rank ``owner``."""
        from mpi4py import MPI

        status = MPI.Status()
        for start, piece in pieces(data):
            call(owner * self.place.size + start, piece, status)
            check_count(status, len(piece))

    def sync(self) -> None:
        self._file.Sync()

    def close(self) -> None:
        self._file.Close()

    def open_to_read(self, name: str) -> None:
        from mpi4py import MPI

        self._open(name, MPI.MODE_RDONLY)

    def read(self, data: Any) -> Any:
        self._transfer(self._file.Read_at, data, self.place.source)
        return data

    def remove(self, name: str) -> None:
        if self.rank == 0:
            super().remove(name)


class Collective(Independent):
    """All ranks write one file by MPI-IO together."""

    def write(self, data: Any) -> None:
        self._transfer(self._file.Write_at_all, data, self.rank)

    def read(self, data: Any) -> Any:
        self._transfer(self._file.Read_at_all, data, self.place.source)
        return data


class Async(Independent, BackgroundCheckpoint):
    """All ranks begin to write one file by MPI-IO, from a copy of their data, and compute."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        from mpi4py import MPI

        self._copy = like_data(place)
        self._pending: list[tuple[Any, int]] = []
        self._asks_first = MPI.get_vendor()[0] == "Open MPI"  # 5.0 dies of a failed request

    def write(self, data: Any) -> None:
        self._pending = []
        self._copy[:] = data
        for start, piece in pieces(self._copy):
            request = self._file.Iwrite_at(self.rank * self.place.size + start, piece)
            self._pending.append((request, len(piece)))

    def progress(self) -> None:
        self._pending = [one for one in self._pending if not self._is_complete(*one)]

    def _is_complete(self, request: MPI.Request, nbytes: int) -> bool:
        """Whether a request has written all; raises `OSError` where it wrote less."""
        from mpi4py import MPI

        status = MPI.Status()
        if not (request.Get_status if self._asks_first else request.Test)(status):
            return False
        check_count(status, nbytes)
        if self._asks_first:
            request.Free()
        return True

    def wait(self) -> None:
        changed, since = -1, perf_counter()
        while self._pending:
            self.progress()
            if perf_counter() - since > PATIENCE:
                before, changed = changed, os.stat(self._path).st_mtime_ns
                if changed == before:
                    raise OSError(f"MPI has written nothing for {PATIENCE:.0f} s")
                since = perf_counter()

    def sync(self) -> None:
        """MPI_File_sync, and an fsync: MPICH 5.0.2 makes none after MPI_File_iwrite_at."""
        super().sync()
        descriptor = os.open(self._path, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class Thread(FilePerRank, BackgroundCheckpoint):
    """A thread of each rank writes a file from a copy of the data, and syncs it; ranks compute."""

    syncs_in_background = True

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        from concurrent.futures import ThreadPoolExecutor

        self._copy = like_data(place)
        self._threads = ThreadPoolExecutor(1)
        self._written: Any = None

    def write(self, data: Any) -> None:
        self._written = None
        self._copy[:] = data
        self._written = self._threads.submit(self._store)

    def _store(self) -> None:
        super().write(self._copy)
        if self.place.sync:
            super().sync()

    def progress(self) -> None:
        pass

    def wait(self) -> None:
        self._written.result()

    def sync(self) -> None:
        pass

    def release(self) -> None:
        self._threads.shutdown()


class Hdf5(Checkpoint):
    """h5py: one file by parallel HDF5 where it has that, else a file for each rank."""

    _file: Any = None

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        try:
            import h5py
        except ImportError as error:
            raise MissingPackageError(
                "method hdf5", "h5py", f"{installing('hdf5')}, or leave it out of --method"
            ) from error
        self._h5py: Any = h5py
        self._parallel = bool(h5py.get_config().mpi)
        self.variant = "one file" if self._parallel else "h5py without MPI: a file for each rank"
        self._driver = {"driver": "mpio", "comm": place.comm} if self._parallel else {}

    def path(self, name: str, rank: int) -> str:
        return super().path(name, 0 if self._parallel else rank)

    def stored(self) -> tuple[int, bool]:
        return self.place.size * (self.ranks if self._parallel else 1), False

    def open_to_write(self, name: str) -> None:
        self._file = None
        self._file = self._h5py.File(self.path(name, self.rank), "w-", **self._driver)

    def write(self, data: Any) -> None:
        size = self.place.size
        if self._parallel:
            state = self._file.create_dataset("state", (self.ranks * size,), "u1")
            state[self.rank * size : (self.rank + 1) * size] = data
        else:
            self._file.create_dataset("state", data=data)

    def sync(self) -> None:
        self._file.flush()
        if not self._parallel:  # a flush is no fsync there
            os.fsync(self._file.id.get_vfd_handle())

    def close(self) -> None:
        self._file.close()

    def open_to_read(self, name: str) -> None:
        self._file = None
        self._file = self._h5py.File(self.path(name, self.place.source), "r", **self._driver)

    def read(self, data: Any) -> Any:
        start = self.place.source * self.place.size if self._parallel else 0
        self._file["state"].read_direct(data, slice(start, start + self.place.size))
        return data

    def remove(self, name: str) -> None:
        if not self._parallel or self.rank == 0:
            super().remove(name)


def like_data(place: Place) -> Any:
    """Memory for the data of a rank, of which every page is there."""
    import numpy as np

    return np.full(place.size, 1, np.uint8)


def pieces(data: Any) -> Iterator[tuple[int, Any]]:
    """An array in pieces that any MPI library can write at once, and the place of each."""
    for start in range(0, len(data), PIECE):
        yield start, data[start : start + PIECE]


def check_count(status: MPI.Status, expected: int) -> None:
    """Raise `OSError` where a call stored or read fewer bytes, without an error of its own."""
    from mpi4py import MPI

    count = status.Get_elements(MPI.BYTE)
    if count != expected:
        raise OSError(f"MPI transferred {count} of {expected} bytes")


@dataclass(frozen=True)
class Method:
    """A method by its name; ``package`` is what it needs beyond the suite's own dependencies."""

    name: str
    make: Callable[[Place], Checkpoint]
    summary: str
    package: str | None = None


TABLE = {
    method.name: method
    for method in (
        Method("file_per_rank", FilePerRank, "a file for each rank"),
        Method("shared", Independent, "one file, MPI_File_write_at"),
        Method("collective", Collective, "one file, MPI_File_write_at_all"),
        Method("gather", Gather, "gathered on rank 0, which writes one file"),
        Method("numpy", Numpy, "numpy.save, a file for each rank"),
        Method("pickle", Pickle, "pickle, a file for each rank"),
        Method("hdf5", Hdf5, "h5py, parallel where it can be", package="h5py"),
        Method("async", Async, "one file, MPI_File_iwrite_at while computing"),
        Method("thread", Thread, "a file for each rank, by a thread while computing"),
    )
}

METHODS = Rows(TABLE, "omb_py.checkpoints", Method)
"""By name; those of other distributions come by entry points."""


GATHERED = (2 << 30) - 1
"""Bytes of all ranks beyond which a rank may not have the memory, nor MPI a number, for them."""


def usual(nbytes: int) -> tuple[str, ...]:
    """The names of our methods whose packages are installed, for so many bytes of all ranks."""
    from importlib.util import find_spec

    return tuple(
        name
        for name, one in TABLE.items()
        if (one.package is None or find_spec(one.package))
        and (one.make is not Gather or nbytes <= GATHERED)
    )
