"""Links that carry bytes in or between hosts, counted below MPI while a program is profiled.

Counters are the host's: they include other programs' traffic over the same link. Each rank writes
them to a file in the folder of the profile, which `omb_py.tracing.traffic` reads. Everything here
is light: it runs in the program that is profiled.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omb_py.core.errors import OmbError
from omb_py.core.text import files

if TYPE_CHECKING:
    from mpi4py import MPI


@dataclass(frozen=True)
class Link:
    """A link's counters at one moment, or their differences between two.

    ``sent`` and ``received`` are bytes, at one moment since the link was set up; None if they are
    unknown. ``over`` names links that carry the same bytes below this one. ``events`` are further
    counters, named in words. ``remark`` is a note about the numbers.
    """

    meter: str
    name: str
    sent: int | None
    received: int | None
    over: tuple[str, ...] = ()
    events: Mapping[str, int] = field(default_factory=dict)
    remark: str = ""


def usage(before: Link, after: Link) -> Link:
    """Return the difference of a link's counters."""
    remarks = [text for text in dict.fromkeys((before.remark, after.remark)) if text]
    amounts = []
    for start, end in ((before.sent, after.sent), (before.received, after.received)):
        amount, remark = _difference(start, end)
        amounts.append(amount)
        if remark and remark not in remarks:
            remarks.append(remark)
    events = {
        name: max(0, number - before.events.get(name, number))
        for name, number in after.events.items()
    }
    sent, received = amounts
    return replace(
        after,
        sent=sent,
        received=received,
        events={name: number for name, number in events.items() if number},
        remark="; ".join(remarks),
    )


def _difference(start: int | None, end: int | None) -> tuple[int | None, str]:
    if start is None or end is None:
        return None, ""
    return (end - start, "") if end >= start else (None, "a counter was set back")


def number_in(path: Path) -> int | None:
    """Return the number in a file of the kernel, None if it cannot be read."""
    try:
        return int(path.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; none if it cannot be read."""
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []


# TCP of this host: segments, and how many were sent again (RFC 1213, tcpOutSegs, tcpRetransSegs).
#
# It explains why a link carried more than was sent; bytes are counted by the interfaces.

TCP_EVENTS = {"segments sent": "OutSegs", "segments sent again": "RetransSegs"}


def segments(root: Path) -> Iterator[Link]:
    """Yield TCP's counters of this host, or of its network namespace."""
    try:
        lines = (root / "proc" / "net" / "snmp").read_text().splitlines()
        names, values = (line.split()[1:] for line in lines if line.startswith("Tcp:"))
        found = dict(zip(names, map(int, values), strict=True))
    except (OSError, ValueError):
        return
    events = {word: found[name] for word, name in TCP_EVENTS.items() if name in found}
    yield Link("tcp", "TCP", None, None, events=events)


# Network interfaces, by the kernel's counters (sysfs-class-net-statistics of its documentation).
#
# Bytes are those of frames, with the headers of Ethernet, IP and TCP.

FRAMES = {"frames sent": "tx_packets", "frames received": "rx_packets"}


def interfaces(root: Path) -> Iterator[Link]:
    """Yield all network interfaces of this host, or of its network namespace."""
    folder = root / "sys" / "class" / "net"
    for name in names_in(folder):
        one = folder / name
        if not (one / "statistics").is_dir():
            continue  # such as the file bonding_masters
        sent, received = (number_in(one / "statistics" / f"{way}_bytes") for way in ("tx", "rx"))
        events = {word: number_in(one / "statistics" / file) for word, file in FRAMES.items()}
        yield Link(
            "network",
            name,
            sent,
            received,
            # a bond, a bridge or a VLAN counts what interfaces below it count as well
            over=tuple(
                entry.removeprefix("lower_")
                for entry in names_in(one)
                if entry.startswith("lower_")
            ),
            events={word: number for word, number in events.items() if number is not None},
            remark="not readable" if sent is None or received is None else "",
        )


# Ports of InfiniBand, Omni-Path, RoCE and EFA adapters, by the kernel's counters.
#
# ``port_xmit_data`` and ``port_rcv_data`` count words of 4 bytes (sysfs-class-infiniband of the
# kernel's documentation). In ``counters`` old drivers have 32 bits that stay at their maximum, and
# 64 bits of them in ``counters_ext``. EFA has bytes in ``hw_counters``.

WORD = 4

PLACES = (
    ("counters_ext", "port_xmit_data_64", "port_rcv_data_64", WORD),
    ("counters", "port_xmit_data", "port_rcv_data", WORD),
    ("hw_counters", "tx_bytes", "rx_bytes", 1),
)
"""Folders with counters, the best first: their counters of sent and received data, and bytes of a
unit."""

FULL = (1 << 32) - 1
"""The value at which a counter of 32 bits stays; a larger value has more bits."""

PORT_EVENTS = {"waits for room to send": "port_xmit_wait"}


def ports(root: Path) -> Iterator[Link]:
    """Yield all ports of all adapters of this host."""
    folder = root / "sys" / "class" / "infiniband"
    for device in names_in(folder):
        for port in names_in(folder / device / "ports"):
            yield _port(f"{device}/{port}", folder / device / "ports" / port)


def _port(name: str, folder: Path) -> Link:
    for place, sent_file, received_file, unit in PLACES:
        sent, received = (number_in(folder / place / file) for file in (sent_file, received_file))
        if sent is None or received is None:
            continue
        full = place == "counters" and FULL in (sent, received)
        waits = {word: number_in(folder / "counters" / file) for word, file in PORT_EVENTS.items()}
        return Link(
            "infiniband",
            name,
            None if full and sent == FULL else sent * unit,
            None if full and received == FULL else received * unit,
            events={word: number for word, number in waits.items() if number is not None},
            remark="a counter of 32 bits is full" if full else "",
        )
    return Link("infiniband", name, None, None, remark="not readable")


VERSION = 4
"""The version of the files."""

METERS = (interfaces, ports, segments)
"""Functions that read all links of a kind, on one rank of each host; they raise nothing."""

ROOT = Path("/")


def path_in(folder: str, rank: int) -> str:
    """Return the file of a rank in the folder of a run."""
    return f"{folder}/traffic-{rank:06d}.json"


def read_links(root: Path = ROOT) -> list[dict[str, Any]]:
    """Return all links of this host with their counters, as rows for a file."""
    return [asdict(link) for meter in METERS for link in meter(root)]


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
