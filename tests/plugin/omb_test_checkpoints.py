"""Methods of somebody else's for checkpoints, on rank 1 all with something wrong."""

from __future__ import annotations

import errno
import os
import resource
import signal
from typing import Any

from omb_py.measure.checkpoints import methods
from omb_py.measure.checkpoints.methods import (
    TABLE,
    Checkpoint,
    FilePerRank,
    Gather,
    Method,
    Place,
)

PLACE = 1000
"""The byte that is damaged."""


class Damaged(FilePerRank):
    """A byte in the file of rank 1 is another when it was closed."""

    def sync(self) -> None:
        if self.rank == 1:
            descriptor = os.open(self._file.name, os.O_RDWR)
            (value,) = os.pread(descriptor, 1, PLACE)
            os.pwrite(descriptor, bytes([value ^ 1]), PLACE)
            os.close(descriptor)


class Longer(FilePerRank):
    """The file of rank 1 has a byte too many."""

    def sync(self) -> None:
        if self.rank == 1:
            self._file.write(b"x")


class Refused(Gather):
    """The disk is full when rank 0 makes its file; the other ranks send it their data."""

    def open_to_write(self, name: str) -> None:
        if self.rank == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Killed(FilePerRank):
    """Rank 1 is killed when it has written."""

    def write(self, data: Any) -> None:
        super().write(data)
        if self.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)


def limited(name: str) -> Method:
    """A method of ours whose files the kernel lets grow to half of their size alone.

    MPICH never completes a non-blocking write that fails, which is noticed after a while.
    """

    def make(place: Place) -> Checkpoint:
        methods.PATIENCE = 1.0
        made = TABLE[name].make(place)
        resource.setrlimit(resource.RLIMIT_FSIZE, (place.size // 2, resource.RLIM_INFINITY))
        return made

    return Method(f"limited_{name}", make, "files that may not grow")


FILE_PER_RANK, COLLECTIVE, HDF5 = limited("file_per_rank"), limited("collective"), limited("hdf5")
ASYNC, THREAD = limited("async"), limited("thread")
DAMAGED = Method("damaged", Damaged, "a wrong byte")
LONGER = Method("longer", Longer, "a byte too many")
REFUSED = Method("refused", Refused, "a full disk")
KILLED = Method("killed", Killed, "the end of a rank")
