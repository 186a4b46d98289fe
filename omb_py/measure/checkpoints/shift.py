"""Which rank reads whose data: of another node where there is one, so that no cache holds it."""

from __future__ import annotations

from collections.abc import Sequence

from omb_py.core.job.control import Control


def nodes_of_ranks(control: Control) -> list[int]:
    """The first rank of each rank's node, in the order of ranks; collective."""
    host = control.on_host()
    first = host.bcast(str(control.rank).encode())
    host.free()
    return [int(text) for text in control.allgather(first)]


def default_shift(nodes: Sequence[int]) -> int:
    """The smallest shift by which the most ranks read what another node wrote; else 1.

    ``nodes`` has the node of each rank. 0 for a single rank. The number of ranks on a node is
    enough where they fill one node after the other (as IOR's ``-C`` has it), 1 where they go round.
    """
    ranks = len(nodes)
    if ranks == 1:
        return 0

    def far(shift: int) -> int:
        return sum(nodes[rank] != nodes[(rank + shift) % ranks] for rank in range(ranks))

    most_on_node = max(map(nodes.count, set(nodes)))
    return max(range(1, min(most_on_node, ranks - 1) + 1), key=far)
