"""TCP of this host: segments, and how many were sent again (RFC 1213, tcpOutSegs, tcpRetransSegs).

It explains why a wire carried more than was sent; bytes are counted by the interfaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omb_py.traffic.wires import Wire

EVENTS = {"segments sent": "OutSegs", "segments sent again": "RetransSegs"}


def segments(root: Path) -> Sequence[Wire]:
    """TCP's counters of this host, or of its network namespace."""
    try:
        lines = (root / "proc" / "net" / "snmp").read_text().splitlines()
        names, values = (line.split()[1:] for line in lines if line.startswith("Tcp:"))
        found = dict(zip(names, map(int, values), strict=True))
    except (OSError, ValueError):
        return []
    events = {word: found[name] for word, name in EVENTS.items() if name in found}
    return [Wire("tcp", "TCP", None, None, events=events)]
