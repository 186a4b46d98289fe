"""Network interfaces, by the kernel's counters (sysfs-class-net-statistics of its documentation).

Bytes are those of frames, with the headers of Ethernet, IP and TCP.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from omb_py.traffic.wires import HOST, NETWORK, Wire, names_in, number_in

LOOPBACK = 772
"""The kernel's number for interfaces that lead back to their own host (ARPHRD_LOOPBACK)."""

METER = "network"
EVENTS = {"frames sent": "tx_packets", "frames received": "rx_packets"}


def interfaces(root: Path) -> Sequence[Wire]:
    """All network interfaces of this host, or of its network namespace."""
    return list(_interfaces(root / "sys" / "class" / "net"))


def _interfaces(folder: Path) -> Iterator[Wire]:
    for name in names_in(folder):
        one = folder / name
        if not (one / "statistics").is_dir():
            continue  # such as the file bonding_masters
        sent, received = (number_in(one / "statistics" / f"{way}_bytes") for way in ("tx", "rx"))
        events = {word: number_in(one / "statistics" / file) for word, file in EVENTS.items()}
        yield Wire(
            METER,
            name,
            sent,
            received,
            HOST if number_in(one / "type") == LOOPBACK else NETWORK,
            # a bond, a bridge or a VLAN counts what interfaces below it count as well
            over=tuple(
                entry.removeprefix("lower_")
                for entry in names_in(one)
                if entry.startswith("lower_")
            ),
            events={word: number for word, number in events.items() if number is not None},
            problem="not readable" if sent is None or received is None else "",
        )
