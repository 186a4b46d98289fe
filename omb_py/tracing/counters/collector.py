"""Reads the meters at the beginning and the end of a profile, and keeps their values.

Each rank writes them to a file in the folder of the profile, which `omb_py.tracing.traffic` reads.
Everything here is light: it runs in the program that is profiled.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omb_py.core.errors import OmbError
from omb_py.core.text import files
from omb_py.tracing.counters import kernel, nvml
from omb_py.tracing.counters.links import Meter

if TYPE_CHECKING:
    from mpi4py import MPI

VERSION = 3
"""The version of the files."""

METERS: tuple[Meter, ...] = (kernel.interfaces, kernel.ports, nvml.links, kernel.segments)
"""Functions that read links, on one rank of each host."""

ROOT = Path("/")


def path_in(folder: str, rank: int) -> str:
    """Return the file of a rank in the folder of a run."""
    return f"{folder}/traffic-{rank:06d}.json"


def read_links(root: Path = ROOT) -> list[dict[str, Any]]:
    """Return all links of this host with their counters, as rows for a file."""
    return [link.row() for meter in METERS for link in meter(root)]


class TrafficCollector:
    """The traffic of one rank from `begin` to `end`."""

    def __init__(self) -> None:
        self._content: dict[str, Any] = {}
        self._comm: MPI.Intracomm | None = None

    def begin(self, comm: MPI.Intracomm, folder: str) -> None:
        """Begin to count; collective over ``comm``, which is MPI_COMM_WORLD itself, unobserved.

        Raises `OmbError` if the file of this rank in ``folder`` cannot be written.
        """
        from mpi4py import MPI

        self._comm = comm
        self._path = path_in(folder, comm.Get_rank())
        name, version = MPI.get_vendor()
        leader = _leader(comm)
        self._leads = leader == comm.Get_rank()
        self._content = {
            "version": VERSION,
            "rank": comm.Get_rank(),
            "ranks": comm.Get_size(),
            "host": os.uname().nodename,
            "leader": leader,
            "library": f"{name} {'.'.join(map(str, version))}",
            "complete": False,
            "before": read_links() if self._leads else [],
            "after": [],
        }
        comm.Barrier()
        self._write()

    def end(self, together: bool = True) -> None:
        """Stop counting and write the counts; the last step before MPI's end.

        Collective, unless ranks do not come to their end ``together``: then the links are not read.
        Errors are printed on stderr and not raised, for the program has done its work.
        """
        if self._comm is None:
            return
        if together:
            self._comm.Barrier()  # until all bytes have arrived
            self._content["after"] = read_links() if self._leads else []
            self._content["complete"] = True
        self._comm = None
        try:
            self._write()
        except OmbError as error:
            print(f"omb-py: {error}", file=sys.stderr, flush=True)

    def _write(self) -> None:
        files.write(self._path, json.dumps(self._content))


def _leader(comm: MPI.Intracomm) -> int:
    """Return the lowest rank on this host, which reads the meters of its links; collective."""
    from mpi4py import MPI

    host = comm.Split_type(MPI.COMM_TYPE_SHARED)
    leader: int = host.bcast(comm.Get_rank(), 0)
    host.Free()
    return leader
