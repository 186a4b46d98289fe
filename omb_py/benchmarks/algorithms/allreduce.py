"""Allreduces made of messages between two ranks and additions.

Each function gives the steps of one member. `omb_py.algorithms.patterns` has the sources behind the
letters, and `omb_py.benchmarks.algorithms` those of whole algorithms.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TypeAlias

from omb_py.algorithms.folding import staying
from omb_py.algorithms.patterns import power_within, powers_below
from omb_py.algorithms.trees import binomial_by_lowest
from omb_py.benchmarks.algorithms.bcast import binomial, children, gather_around
from omb_py.benchmarks.algorithms.members import Members, Sum, part, shares, span
from omb_py.core.calls import Step

Inner: TypeAlias = Callable[[Members, Sum], Iterator[Step]]
"""An algorithm for powers of two of members."""


def ring(members: Members, data: Sum) -> Iterator[Step]:
    """Send parts of the vector around a ring, where they grow, then once more around it."""
    after, before = members.around(1)
    blocks = shares(data.elements, members.number)
    for step in range(members.number - 1):
        leaving, growing = (
            data.within(blocks[(members.place - step - behind) % members.number])
            for behind in (0, 1)
        )
        outgoing = (leaving.grown if step else leaving).current
        yield from members.exchange(after, outgoing, before, growing.arrival)
        yield from growing.addition()
    yield from gather_around(members, data.result, blocks, members.place + 1)


def folded(inner: Inner, members: Members, data: Sum) -> Iterator[Step]:
    """Make an algorithm for powers of two serve any number of members [TRG].

    Among the first members, one of each pair adds the other's data, and gives it the result.
    """
    place, number = members.place, members.number
    in_pair = place < 2 * (number - power_within(number))
    if in_pair and place % 2 == 0:
        yield from members.send(place + 1, data.current)
        yield from members.receive(place + 1, data.total)
        return
    if in_pair:
        yield from data.contribution(members, place - 1)
        data = data.grown
    all_stay = number == power_within(number)
    yield from inner(members if all_stay else members.chosen(staying(number, keep=1)), data)
    if in_pair:
        yield from members.send(place - 1, data.total)


def recursive_doubling(members: Members, data: Sum) -> Iterator[Step]:
    """Exchange all data at distances 1, 2, 4 … [TRG]."""
    return folded(doubling, members, data)


def doubling(members: Members, data: Sum) -> Iterator[Step]:
    """Run recursive doubling on a power of two of members."""
    for distance in powers_below(members.number):
        yield from data.exchange(members, members.place ^ distance)
        data = data.grown


def rabenseifner(members: Members, data: Sum) -> Iterator[Step]:
    """Exchange half of the vector, then a quarter …, and the way back [TRG]."""
    return folded(halving_and_doubling, members, data)


def halving_and_doubling(members: Members, data: Sum) -> Iterator[Step]:
    """Run Rabenseifner's algorithm on a power of two of members."""
    blocks = shares(data.elements, members.number)
    first, end = 0, members.number
    back: list[tuple[int, range, range]] = []
    for distance in powers_below(members.number):
        partner, middle = members.place ^ distance, (first + end) // 2
        lower, upper = span(blocks, first, middle), span(blocks, middle, end)
        if members.place & distance:
            first, keeps, gives = middle, upper, lower
        else:
            end, keeps, gives = middle, lower, upper
        kept = data.within(keeps)
        yield from members.exchange(partner, data.within(gives).current, partner, kept.arrival)
        yield from kept.addition()
        data = kept.grown
        back.append((partner, keeps, gives))
    for partner, keeps, gives in reversed(back):
        mine, theirs = part(data.result, keeps), part(data.result, gives)
        yield from members.exchange(partner, mine, partner, theirs)


SHORT = 2048
"""Bytes up to which the number of messages counts more than their length [TRG]."""


def by_size(members: Members, data: Sum) -> Iterator[Step]:
    """Use recursive doubling for short vectors, Rabenseifner's for long ones [TRG]."""
    nbytes = data.result.elements * data.result.datatype.itemsize
    chosen = recursive_doubling if nbytes <= SHORT else rabenseifner
    return chosen(members, data)


def up(members: Members, data: Sum) -> Generator[Step, None, Sum]:
    """Send a sum up a binomial tree to the first member; return this one's data afterwards."""
    for child in children(members):
        yield from data.contribution(members, child)
        data = data.grown
    if members.place:
        above = binomial_by_lowest(members.place, members.number)
        yield from members.send(above, data.current)
    return data


def parameter_server(members: Members, data: Sum) -> Iterator[Step]:
    """Let the first member add up the others' data, one after the other, and answer each [LI]."""
    others = range(1, members.number)
    if members.place:
        yield from members.send(0, data.current)
        yield from members.receive(0, data.total)
        return
    for other in others:
        yield from data.contribution(members, other)
        data = data.grown
    for other in others:
        yield from members.send(other, data.total)


def hierarchical(members: Members, data: Sum) -> Iterator[Step]:
    """Add up on each node, exchange sums among first ranks, and share the result on each node."""
    nodes = members.nodes
    family = [place for place, node in enumerate(nodes) if node == nodes[members.place]]
    leaders = [nodes.index(node) for node in dict.fromkeys(nodes)]
    here = members.chosen(family)
    data = yield from up(here, data)
    if members.place in leaders:
        yield from recursive_doubling(members.chosen(leaders), data)
    yield from binomial(here, data.total)
