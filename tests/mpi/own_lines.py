"""Command lines with own algorithms, each word on each number of ranks."""

from __future__ import annotations

from omb_py.benchmarks.algorithms import TABLE
from omb_py.core.options import LIBRARY, PIPELINED
from tests.helpers.battery import Line, line

RANKS = (1, 2, 3, 4, 5, 8)
NODES = {2: "1", 3: "0,1,1", 4: "2", 5: "0,0,1,0,2", 8: "4"}
"""What hierarchical is given for nodes; one rank is on one node, and has no use for it."""

SIZES = "--sizes 4,24,1000,20000"
"""Fewer elements than ranks, and unequal parts."""

SIZES_OF = {"reduce_scatter_block": "--sizes 32,96,1000,20000"}
"""Of what wants an element for each rank."""

MOST = {"bcast": 8, "allreduce": 8}
"""The most ranks; for collectives with one simple algorithm fewer show as much."""

FEWER = 5

SEGMENT = 900
"""Bytes of a segment: one or two of the smaller sizes, and a shorter last one."""


def own_lines(options: str, ranks: tuple[int, ...] = RANKS) -> list[Line]:
    """A line for every own algorithm."""
    found = []
    for name, known in TABLE.items():
        if name == "barrier":  # which carries nothing that could be checked
            continue
        for algorithm in known.algorithms:
            for count in ranks:
                if (count == 4 and name not in MOST) or count > MOST.get(name, FEWER):
                    continue
                nodes = ""
                if algorithm.by_nodes:
                    if count not in NODES:
                        continue
                    nodes = f" --node-map {NODES[count]}"
                if algorithm.word == PIPELINED:
                    nodes = f" --segment {SEGMENT}"
                sizes = SIZES_OF.get(name, SIZES)
                words = f"{name} --p2p-algorithm {algorithm.word}{nodes} {sizes} {options}"
                found.append(line(count, words))
    return found


def in_place(lines: list[Line]) -> list[Line]:
    """The allreduces among some lines, in place."""
    return [
        Line(one.ranks, (*one.arguments, "-l"))
        for one in lines
        if one.arguments[0] == "allreduce" and LIBRARY not in one.arguments
    ]
