"""Whether the ranks of all hosts see one folder: MPI-IO hangs or breaks where they do not."""

from __future__ import annotations

import contextlib
import os
import tempfile
from array import array
from pathlib import Path

from mpi4py import MPI

from omb_py.core.errors import UsageError

NAME_BYTES = 4096


def check(comm: MPI.Intracomm, file: str) -> None:
    """Raise `UsageError` on all ranks unless each sees what rank 0 makes beside ``file``.

    Collective. Where rank 0 can make nothing, MPI will say why.
    """
    made = ""
    if comm.rank == 0:
        with contextlib.suppress(OSError):
            made = _new_file(Path(file).absolute().parent)
    name = _told(comm, made, 0)
    blind = array("q", [comm.rank if name and not os.path.exists(name) else comm.size])
    first = array("q", [0])
    comm.Allreduce([blind, 1, MPI.INT64_T], [first, 1, MPI.INT64_T], MPI.MIN)
    if made:
        with contextlib.suppress(OSError):
            os.unlink(made)
    if first[0] < comm.size:
        host = _told(comm, os.uname().nodename, first[0])
        raise UsageError(
            f"--file {file}: rank {first[0]} on {host} does not see what rank 0 writes beside it: "
            "name a file in a folder that all hosts share"
        )


def _new_file(folder: Path) -> str:
    descriptor, name = tempfile.mkstemp(prefix=".omb-py-", dir=folder)
    os.close(descriptor)
    return name


def _told(comm: MPI.Intracomm, text: str, root: int) -> str:
    """The text of rank ``root``, on all ranks; collective."""
    data = bytearray(os.fsencode(text)[:NAME_BYTES].ljust(NAME_BYTES, b"\0"))
    comm.Bcast([data, NAME_BYTES, MPI.BYTE], root)
    return os.fsdecode(bytes(data.rstrip(b"\0")))
