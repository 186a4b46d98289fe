"""What messages cost and how nodes are connected: a network that can be written to a file."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Protocol:
    """Costs of messages of up to ``up_to`` bytes.

    A message keeps its sender, and then its receiver, busy for ``overhead_us``. Between them it
    takes ``handshake_us`` more than the latency of its links, without keeping anybody busy. It
    gets ``efficiency`` of the bandwidth of its links: 0.8 moves a byte as 1.25 bytes.
    """

    up_to: float = inf
    overhead_us: float = 0.0
    handshake_us: float = 0.0
    efficiency: float = 1.0


@dataclass(frozen=True)
class Path:
    """Where messages go: between nodes, or through the memory of one.

    ``latency_us`` is of all links of a route together where ranks are on different nodes next to
    each other, ``bandwidth_MBps`` of one link, or of one pair of ranks in memory. ``eager`` is the
    maximum message in bytes that is sent whether or not its receiver is there.
    """

    latency_us: float
    bandwidth_MBps: float
    eager: float
    protocols: tuple[Protocol, ...] = (Protocol(),)

    def protocol(self, nbytes: float) -> Protocol:
        """The costs of a message of so many bytes."""
        for protocol in self.protocols:
            if nbytes <= protocol.up_to:
                return protocol
        return self.protocols[-1]


@dataclass(frozen=True)
class Network:
    """A machine: what its messages cost, and how its nodes are connected.

    ``topology`` is as ``--network`` spells it. ``memory_MBps`` is what all messages through a
    node's memory share, ``add_us_per_byte`` what a rank takes to add up a byte. ``sources`` says
    where each number comes from, by its name in the file.
    """

    topology: str
    between: Path
    within: Path
    memory_MBps: float = inf
    add_us_per_byte: float = 0.0
    sources: tuple[tuple[str, str], ...] = ()
