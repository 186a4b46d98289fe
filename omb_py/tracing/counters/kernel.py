"""Counters of the kernel: TCP segments, network interfaces, ports of InfiniBand and its kin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from omb_py.tracing.counters.links import Link, names_in, number_in

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

EVENTS = {"frames sent": "tx_packets", "frames received": "rx_packets"}


def interfaces(root: Path) -> Sequence[Link]:
    """Return all network interfaces of this host, or of its network namespace."""
    return list(_interfaces(root / "sys" / "class" / "net"))


def _interfaces(folder: Path) -> Iterator[Link]:
    for name in names_in(folder):
        one = folder / name
        if not (one / "statistics").is_dir():
            continue  # such as the file bonding_masters
        sent, received = (number_in(one / "statistics" / f"{way}_bytes") for way in ("tx", "rx"))
        events = {word: number_in(one / "statistics" / file) for word, file in EVENTS.items()}
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
