"""Blocks from every rank to every other: by one collective call, or by messages timed by pair.

An alltoall does not tell which pair of ranks was slow. Dask's workers send each other messages, and
dask-cuda's benchmarks show quantiles of their bandwidth for each pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from time import perf_counter
from typing import Any, Protocol

from omb_py.apps import Detail, Transfer, option
from omb_py.apps.runtime.team import Array, Team
from omb_py.core.calls import Call

ALLTOALL, PAIRS = "alltoall", "pairs"
EXCHANGES = (ALLTOALL, PAIRS)

TAG = 1


def exchange_option() -> Any:
    """Return the field of a problem that chooses one of `EXCHANGES`."""
    return option(
        ALLTOALL,
        "Exchange by one call of all ranks, or by messages whose bandwidth is told for each pair.",
        choices=EXCHANGES,
    )


@dataclass(frozen=True)
class Divided:
    """An array of one dimension with a block for each rank, of so many elements."""

    array: Array
    counts: tuple[int, ...]

    def blocks(self) -> list[Array]:
        """Return the block of each rank."""
        ends = list(accumulate(self.counts, initial=0))
        return [self.array.rows(*bounds) for bounds in pairwise(ends)]


class PairExchange(Protocol):
    """Brings each block to its rank, all ranks together.

    ``transfers`` are this rank's messages received the last time, if that was timed.
    """

    transfers: list[Transfer]

    def __call__(self) -> None:
        """Do it."""


def all_to_all(
    team: Team, sent: Divided, received: Divided, exchange: str, even: bool = False
) -> PairExchange:
    """Return the exchange of blocks; ``even`` is true if all blocks of all ranks have one size."""
    return (Pairwise if exchange == PAIRS else CollectiveExchange)(team, sent, received, even)


class CollectiveExchange:
    """One MPI_Alltoall or MPI_Alltoallv."""

    def __init__(self, team: Team, sent: Divided, received: Divided, even: bool) -> None:
        form: Any = "" if even else "v"
        sides = [side.array.message(side.counts, form) for side in (sent, received)]
        self._call = team.bind(Call(f"alltoall{form}", tuple(sides)))
        self.transfers: list[Transfer] = []

    def __call__(self) -> None:
        self._call()


class Pairwise:
    """A round for each other rank: each rank sends to one rank and receives from another.

    A barrier begins each round if waiting is timed separately; without it, the time of a message
    includes the wait for its sender. A rank's own block is copied.
    """

    def __init__(self, team: Team, sent: Divided, received: Divided, even: bool) -> None:
        self._team = team
        to, of = sent.blocks(), received.blocks()
        self._own = of[team.rank].data, to[team.rank].data
        self._rounds = []
        for distance in range(1, team.ranks):
            target = (team.rank + distance) % team.ranks
            source = (team.rank - distance) % team.ranks
            call = Call(
                "sendrecv",
                (to[target].message(), of[source].message()),
                values=(target, TAG, source, TAG),
            )
            nbytes = of[source].data.size * of[source].datatype.itemsize
            self._rounds.append((source, nbytes, team.bind(call)))
        self.transfers: list[Transfer] = []

    def __call__(self) -> None:
        team, self.transfers = self._team, []
        with team.computing:
            self._own[0][...] = self._own[1]
        for source, nbytes, call in self._rounds:
            team.wait_for_all()
            began = perf_counter()
            call()
            spent = perf_counter() - began
            self.transfers.append(Transfer(source, team.rank, nbytes, spent))


def bandwidths(transfers: Sequence[Transfer]) -> list[Detail]:
    """Return the bytes sent by each pair, and the bandwidth of messages that were not empty."""
    pairs: dict[tuple[int, int], list[Transfer]] = {}
    for one in transfers:
        if one.nbytes:
            pairs.setdefault((one.sender, one.receiver), []).append(one)
    return [_of_pair(*pair, found) for pair, found in sorted(pairs.items())]


def _of_pair(sender: int, receiver: int, transfers: Sequence[Transfer]) -> Detail:
    from omb_py.core.statistics import percentile

    ordered = sorted(one.nbytes / one.seconds / 1e9 for one in transfers)
    low, first, middle, third, high = (percentile(ordered, at) for at in (0, 25, 50, 75, 100))
    return Detail(
        f"rank {sender} -> rank {receiver}",
        seconds=sum(one.seconds for one in transfers),
        value=middle,
        unit="GB/s",
        calls=len(transfers),
        nbytes=sum(one.nbytes for one in transfers) / len(transfers),
        spread=(low, first, third, high),
    )
