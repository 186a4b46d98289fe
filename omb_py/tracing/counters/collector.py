"""Reads the meters at the beginning and at the end of a profile, and keeps what they said.

Everything here is light: it runs in the program that is profiled.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omb_py.core.errors import OmbError
from omb_py.core.mpi.tool_interface import ToolInterface
from omb_py.core.text import files
from omb_py.core.text.words import count
from omb_py.tracing import counters
from omb_py.tracing.counters import kernel, nvml, open_mpi
from omb_py.tracing.counters.connections import Open, connections, since
from omb_py.tracing.counters.links import Meter
from omb_py.tracing.counters.messages import Counts, LibraryCounts, add_all, rows
from omb_py.tracing.counters.probe import Probe

if TYPE_CHECKING:
    from mpi4py import MPI

METERS: tuple[Meter, ...] = (kernel.interfaces, kernel.ports, nvml.links, kernel.segments)
"""What reads links, on one rank of each host."""

LIBRARIES: Mapping[str, Callable[[Any], LibraryCounts]] = {"Open MPI": open_mpi.OpenMPICounts}
"""What reads an MPI library's own counts, by mpi4py's name of the library."""

ROOT = Path("/")


def before_mpi(environ: MutableMapping[str, str]) -> None:
    """Set what must be in the environment before MPI is started, whichever library it is."""
    open_mpi.before_mpi(environ)


def read_links(root: Path = ROOT) -> list[dict[str, Any]]:
    """All links of this host with what their counters say now, for a file."""
    return [link.row() for meter in METERS for link in meter(root)]


class TrafficCollector:
    """The traffic of one rank from `begin` to `end`.

    ``probe`` is to be told of the program's blocking collective calls.
    """

    def __init__(self) -> None:
        self.probe = Probe(self._take)
        self._counts: LibraryCounts | None = None
        self._total: Counts = {}
        self._content: dict[str, Any] = {}
        self._comm: MPI.Intracomm | None = None
        self._connections: Open | None = None
        self._storage: tuple[int, int] | None = None

    def begin(self, comm: MPI.Intracomm, folder: str) -> None:
        """Begin to count; collective over ``comm``, which is MPI_COMM_WORLD itself, untraced.

        Messages that this sends are not counted. Raises `OmbError` where the file of this rank in
        ``folder`` cannot be written.
        """
        from mpi4py import MPI

        self._comm = comm
        self._path = counters.path_in(folder, comm.Get_rank())
        name, version = MPI.get_vendor()
        leader = _leader(comm)
        self._leads = leader == comm.Get_rank()
        self._content = {
            "version": counters.VERSION,
            "rank": comm.Get_rank(),
            "ranks": comm.Get_size(),
            "host": os.uname().nodename,
            "leader": leader,
            "library": f"{name} {'.'.join(map(str, version))}",
            "vendor": name,
            "complete": False,
            "why": "",
            "before": read_links() if self._leads else [],
            "after": [],
            "connections": None,
            "storage": None,
        }
        self._connections = connections(ROOT)
        self._storage = kernel.storage(ROOT)
        comm.Barrier()
        self._open(name)
        if self._counts is not None:
            self.probe.begin(comm, MPI._handleof)
        self._write()

    def end(self, together: bool = True) -> None:
        """Count no more and write what was counted; the last before MPI's end.

        Collective, unless ranks do not come to their end ``together``: then the links are not read.
        What goes wrong is said on stderr, for the program has done its work.
        """
        if self._comm is None:
            return
        self._take()
        self.probe.end()
        if together:
            self._comm.Barrier()  # until all bytes have arrived
            self._content["after"] = read_links() if self._leads else []
            carried = since(self._connections, connections(ROOT))
            self._content["connections"] = carried.row() if carried else None
            self._content["storage"] = _difference(self._storage, kernel.storage(ROOT))
            self._content["complete"] = True
        self._counts = self._comm = None
        try:
            self._write()
        except OmbError as error:
            print(f"omb-py: {error}", file=sys.stderr, flush=True)

    def _open(self, library: str) -> None:
        """Begin to count in the library, or find out why that cannot be."""
        make = LIBRARIES.get(library)
        if make is None:
            self._content["why"] = not_counted(library)
            return
        try:
            self._counts = make(self._comm)
        except (OmbError, OSError) as error:
            self._content["why"] = " ".join(str(error).split())

    def _take(self) -> Counts | None:
        """What was sent since the last time, None where it is not known; kept in the total."""
        if self._counts is None:
            return None
        try:
            counts = self._counts.take()
        except (OmbError, OSError) as error:
            self._content["why"] = " ".join(str(error).split())
            self._counts = None
            self.probe.end()
            return None
        add_all(self._total, counts)
        return counts

    def _write(self) -> None:
        self._content["moved"] = {kind: rows(peers) for kind, peers in self._total.items()}
        self._content["collectives"] = self.probe.rows()
        files.write(self._path, json.dumps(self._content))


def not_counted(library: str) -> str:
    """Why a library whose counts we do not read has none that we could; asks its MPI_T."""
    try:
        tools = ToolInterface()
        number = tools.counters()
        tools.close()
    except OmbError as error:
        return f"not reported by {library} ({error})"
    if number == 0:
        return f"not reported by {library}: as it was built, its MPI_T has no performance variable"
    known = count(number, "performance variable")
    return f"not reported by {library}: none of the {known} of its MPI_T counts messages by peer"


def _difference(
    before: tuple[int, int] | None, after: tuple[int, int] | None
) -> tuple[int, int] | None:
    if before is None or after is None:
        return None
    return max(0, after[0] - before[0]), max(0, after[1] - before[1])


def _leader(comm: MPI.Intracomm) -> int:
    """The lowest rank on this host, which reads the meters of its links; collective."""
    from mpi4py import MPI

    host = comm.Split_type(MPI.COMM_TYPE_SHARED)
    leader: int = host.bcast(comm.Get_rank(), 0)
    host.Free()
    return leader
