"""Links that carry bytes in or between hosts, counted below MPI while a program is profiled.

Counters are the host's: they include other programs' traffic over the same link. Each rank writes
them to a file in the folder of the profile, which `omb_py.tracing.traffic` reads. Everything here
is light: it runs in the program that is profiled.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from omb_py.core.errors import OmbError
from omb_py.core.text import files

if TYPE_CHECKING:
    from mpi4py import MPI


@dataclass(frozen=True)
class Link:
    """A link's counters at one moment; None stands for an unreadable counter.

    ``sent`` and ``received`` are bytes since the link was set up. A counter of ``bits`` bits begins
    anew when it is full, or stays there if it ``sticks``. ``over`` names links that carry the same
    bytes below this one. ``events`` are further counters, named in words.
    """

    meter: str
    name: str
    sent: int | None
    received: int | None
    bits: int = 64
    sticks: bool = False
    unit: int = 1
    over: tuple[str, ...] = ()
    events: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""

    def row(self) -> dict[str, Any]:
        """For a file."""
        return {**asdict(self), "over": list(self.over)}


Meter: TypeAlias = Callable[[Path], Sequence[Link]]
"""Reads all links of a kind on this host, below the root of its file system; raises nothing."""


@dataclass(frozen=True)
class LinkUsage:
    """The traffic of a link between two moments, in bytes; None if it is unknown.

    ``remark`` is a note about the numbers.
    """

    meter: str
    name: str
    sent: int | None
    received: int | None
    over: tuple[str, ...] = ()
    events: Mapping[str, int] = field(default_factory=dict)
    remark: str = ""


def usage(before: Link, after: Link) -> LinkUsage:
    """Return the difference of a link's counters."""
    remarks = [text for text in dict.fromkeys((before.problem, after.problem)) if text]
    amounts = []
    for start, end in ((before.sent, after.sent), (before.received, after.received)):
        amount, remark = _difference(start, end, after)
        amounts.append(amount)
        if remark and remark not in remarks:
            remarks.append(remark)
    events = {
        name: max(0, number - before.events.get(name, number))
        for name, number in after.events.items()
    }
    return LinkUsage(
        *(after.meter, after.name, amounts[0], amounts[1], after.over),
        {name: number for name, number in events.items() if number},
        "; ".join(remarks),
    )


def _difference(start: int | None, end: int | None, link: Link) -> tuple[int | None, str]:
    if start is None or end is None:
        return None, ""
    maximum = (1 << link.bits) * link.unit
    if link.sticks and end >= maximum - link.unit:
        return None, f"a counter of {link.bits} bits is full"
    if end >= start:
        return end - start, ""
    if link.bits < 64 and start < maximum:
        return end - start + maximum, f"a counter of {link.bits} bits began anew, once or more"
    return None, "a counter was set back"


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


def segments(root: Path) -> Sequence[Link]:
    """TCP's counters of this host, or of its network namespace."""
    try:
        lines = (root / "proc" / "net" / "snmp").read_text().splitlines()
        names, values = (line.split()[1:] for line in lines if line.startswith("Tcp:"))
        found = dict(zip(names, map(int, values), strict=True))
    except (OSError, ValueError):
        return []
    events = {word: found[name] for word, name in TCP_EVENTS.items() if name in found}
    return [Link("tcp", "TCP", None, None, events=events)]


# Network interfaces, by the kernel's counters (sysfs-class-net-statistics of its documentation).
#
# Bytes are those of frames, with the headers of Ethernet, IP and TCP.

FRAMES = {"frames sent": "tx_packets", "frames received": "rx_packets"}


def interfaces(root: Path) -> Sequence[Link]:
    """Return all network interfaces of this host, or of its network namespace."""
    return list(_interfaces(root / "sys" / "class" / "net"))


def _interfaces(folder: Path) -> Iterator[Link]:
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
            problem="not readable" if sent is None or received is None else "",
        )


# Ports of InfiniBand, Omni-Path, RoCE and EFA adapters, by the kernel's counters.
#
# ``port_xmit_data`` and ``port_rcv_data`` count words of 4 bytes (sysfs-class-infiniband of the
# kernel's documentation). In ``counters`` old drivers have 32 bits that stay at their maximum, and
# 64 bits of them in ``counters_ext``. EFA has bytes in ``hw_counters``.

WORD = 4

PLACES = (
    ("counters_ext", "port_xmit_data_64", "port_rcv_data_64", WORD, 64),
    ("counters", "port_xmit_data", "port_rcv_data", WORD, 64),
    ("hw_counters", "tx_bytes", "rx_bytes", 1, 64),
)
"""Folders with counters, the best first: their counters of sent and received data, bytes of a unit,
and bits."""

FULL = (1 << 32) - 1
"""The value at which a counter of 32 bits stays; a larger value has more bits."""

PORT_EVENTS = {"waits for room to send": "port_xmit_wait"}


def ports(root: Path) -> Sequence[Link]:
    """Return all ports of all adapters of this host."""
    return list(_ports(root / "sys" / "class" / "infiniband"))


def _ports(folder: Path) -> Iterator[Link]:
    for device in names_in(folder):
        for port in names_in(folder / device / "ports"):
            yield _port(f"{device}/{port}", folder / device / "ports" / port)


def _port(name: str, folder: Path) -> Link:
    for place, sent_file, received_file, unit, bits in PLACES:
        sent, received = (number_in(folder / place / file) for file in (sent_file, received_file))
        if sent is None or received is None:
            continue
        narrow = place == "counters" and FULL in (sent, received)
        waits = {word: number_in(folder / "counters" / file) for word, file in PORT_EVENTS.items()}
        return Link(
            "infiniband",
            name,
            sent * unit,
            received * unit,
            bits=32 if narrow else bits,
            sticks=narrow,
            unit=unit,
            events={word: number for word, number in waits.items() if number is not None},
        )
    return Link("infiniband", name, None, None, problem="not readable")


# NVLink and PCIe of GPUs, by NVIDIA's management library (NVML API reference guide).
#
# The fields for NVLink count KiB of data over all links of a GPU since its driver was loaded, those
# for PCIe count bytes and may begin anew.

ALL_LINKS = 0xFFFFFFFF
GPU_FIELDS = {
    "NVLink": ("NVLINK_THROUGHPUT_DATA_TX", "NVLINK_THROUGHPUT_DATA_RX", 1024, ALL_LINKS),
    "PCIe": ("PCIE_COUNT_TX_BYTES", "PCIE_COUNT_RX_BYTES", 1, 0),
}
"""NVML's fields for sent and received data, bytes of a unit, and the scope."""

UNSIGNED = {1: ("uiVal", 32), 2: ("ulVal", 8 * ctypes.sizeof(ctypes.c_ulong)), 3: ("ullVal", 64)}
"""Attributes of NVML's unsigned types, and their bits."""


def gpu_links(root: Path) -> Sequence[Link]:
    """NVLink and PCIe of all GPUs; none without NVML or pynvml. ``root`` does not matter."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return list(_gpu_links(pynvml))
    except pynvml.NVMLError:  # a library that is too old
        return []
    finally:
        pynvml.nvmlShutdown()


def _gpu_links(nvml: Any) -> Iterator[Link]:
    for number in range(nvml.nvmlDeviceGetCount()):
        for word, (sent, received, unit, scope) in GPU_FIELDS.items():
            fields = [(getattr(nvml, f"NVML_FI_DEV_{name}"), scope) for name in (sent, received)]
            try:
                device = nvml.nvmlDeviceGetHandleByIndex(number)
                out, into = map(_value, nvml.nvmlDeviceGetFieldValues(device, fields))
            except nvml.NVMLError:  # a GPU that this user may not use
                continue
            if out is not None and into is not None:
                name, bits = f"GPU {number} {word}", out[1]
                yield Link("nvml", name, out[0] * unit, into[0] * unit, bits=bits, unit=unit)


def _value(told: Any) -> tuple[int, int] | None:
    """Return the count of a field and its bits; None if the GPU has no such link."""
    if told.nvmlReturn != 0 or told.valueType not in UNSIGNED:
        return None
    name, bits = UNSIGNED[told.valueType]
    return getattr(told.value, name), bits


VERSION = 3
"""The version of the files."""

METERS: tuple[Meter, ...] = (interfaces, ports, gpu_links, segments)
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
