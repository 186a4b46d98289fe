"""Ports of InfiniBand, Omni-Path, RoCE and EFA adapters, by the kernel's counters.

``port_xmit_data`` and ``port_rcv_data`` count words of 4 bytes (sysfs-class-infiniband of the
kernel's documentation). In ``counters`` old drivers have 32 bits that stay at their greatest value,
and 64 bits of the same in ``counters_ext``. EFA has bytes in ``hw_counters``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from omb_py.traffic.wires import Wire, names_in, number_in

WORD = 4

PLACES = (
    ("counters_ext", "port_xmit_data_64", "port_rcv_data_64", WORD, 64),
    ("counters", "port_xmit_data", "port_rcv_data", WORD, 64),
    ("hw_counters", "tx_bytes", "rx_bytes", 1, 64),
)
"""Folders with counters, the best first: for what was sent and received; bytes of a unit; bits."""

FULL = (1 << 32) - 1
"""Where a counter of 32 bits stays; one that is beyond has more."""

EVENTS = {"waits for room to send": "port_xmit_wait"}


def ports(root: Path) -> Sequence[Wire]:
    """All ports of all adapters of this host."""
    return list(_ports(root / "sys" / "class" / "infiniband"))


def _ports(folder: Path) -> Iterator[Wire]:
    for device in names_in(folder):
        for port in names_in(folder / device / "ports"):
            yield _port(f"{device}/{port}", folder / device / "ports" / port)


def _port(name: str, folder: Path) -> Wire:
    for place, sent_file, received_file, unit, bits in PLACES:
        sent, received = (number_in(folder / place / file) for file in (sent_file, received_file))
        if sent is None or received is None:
            continue
        narrow = place == "counters" and FULL in (sent, received)
        waits = {word: number_in(folder / "counters" / file) for word, file in EVENTS.items()}
        return Wire(
            "infiniband",
            name,
            sent * unit,
            received * unit,
            bits=32 if narrow else bits,
            sticks=narrow,
            unit=unit,
            events={word: number for word, number in waits.items() if number is not None},
        )
    return Wire("infiniband", name, None, None, problem="not readable")
