"""Messages from a rank to others, as an MPI library counts them itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

MESSAGES, PUT, GET = "messages", "put", "get"
"""What is counted: messages, the program's own as well as those of the library's collectives and of
its management of communicators; and accesses to windows, where what is got comes from the peer."""

Peers: TypeAlias = dict[int, tuple[int, int]]
"""Messages and bytes by the other side's rank in MPI_COMM_WORLD."""

Counts: TypeAlias = dict[str, Peers]
"""Messages and bytes of each kind by peer."""


class LibraryCounts(Protocol):
    """A library that counts what a rank sends."""

    def take(self) -> Counts:
        """What was sent since the last time; raises `OmbError` where that is not known."""


def add(into: Peers, peer: int, messages: int, nbytes: int) -> None:
    """Add to what is counted for a peer."""
    before = into.get(peer, (0, 0))
    into[peer] = before[0] + messages, before[1] + nbytes


def add_all(into: Counts, counts: Mapping[str, Mapping[int, tuple[int, int]]]) -> None:
    """Add counts to others."""
    for kind, peers in counts.items():
        for peer, (messages, nbytes) in peers.items():
            add(into.setdefault(kind, {}), peer, messages, nbytes)


def rows(peers: Mapping[int, tuple[int, int]]) -> list[list[int]]:
    """For a file: peer, messages, bytes."""
    return [[peer, *peers[peer]] for peer in sorted(peers)]
