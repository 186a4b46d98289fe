"""Allreduces made of messages between two ranks and additions.

Each function gives the steps of one member. ``longest`` is the elements of a segment, if an
algorithm cuts. `omb_py.algorithms.patterns` has the sources behind the letters, and
`omb_py.benchmarks.algorithms` those of whole algorithms.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TypeAlias

from omb_py.algorithms.folding import staying
from omb_py.algorithms.patterns import power_within, powers_below
from omb_py.algorithms.trees import binomial_by_lowest
from omb_py.benchmarks.algorithms.bcast import binomial, children, gather_around
from omb_py.benchmarks.algorithms.members import Members, Sum, part, pieces, shares, span
from omb_py.core.calls import Message, Step
from omb_py.core.dataclass import replace

Inner: TypeAlias = Callable[[Members, Sum], Iterator[Step]]
"""An algorithm for powers of two of members."""


def ring(members: Members, data: Sum, longest: int) -> Iterator[Step]:
    """Send parts of the vector around a ring, where they grow, then once more around it."""
    after, before = members.around(1)
    blocks = shares(data.elements, members.number)
    for outgoing, growing in transfers(members, data, [(block,) for block in blocks]):
        yield from members.exchange(after, outgoing, before, growing.arrival)
        yield from growing.addition()
    yield from gather_around(members, data.result, blocks, members.place + 1)


def segmented_ring(members: Members, data: Sum, longest: int) -> Iterator[Step]:
    """Run a ring whose parts are cut: the next segment is under way while one is added up."""
    after, before = members.around(1)
    blocks = shares(data.elements, members.number)
    longest = max(1, min(longest, len(blocks[0])))
    cut = [pieces(block, longest) for block in blocks]
    begun: list[list[Step]] = []
    ended: list[list[Step]] = []  # with the addition of what has come
    for number, (outgoing, segment) in enumerate(transfers(members, data, cut)):
        growing = replace(segment, slot=number % 2 * longest)
        begin, end = members.under_way(after, outgoing, before, growing.arrival)
        begun.append(begin)
        ended.append([*end, *growing.addition()])
    # a segment is sent on when it was added up, which is one transfer back where nothing is cut
    ahead = max(map(len, cut)) > 1
    for begin, end in zip([*begun, []], [[], *ended], strict=True):
        yield from (*begin, *end) if ahead else (*end, *begin)
    yield from gather_around(members, data.result, blocks, members.place + 1)


def transfers(
    members: Members, data: Sum, blocks: Sequence[tuple[range, ...]]
) -> Iterator[tuple[Message, Sum]]:
    """Yield what a member sends and adds in each step, until it has the sum of one block.

    The block is the one after its place. Each item is a message to send and the elements to receive
    and add. Blocks are in pieces, which follow each other; a block with fewer pieces has empty ones
    at its end.
    """
    number = members.number
    most = max(map(len, blocks))

    def piece(step: int, index: int) -> range:
        block = blocks[(members.place - step) % number]
        return block[index] if index < len(block) else range(0)

    for step in range(number - 1):
        for index in range(most):
            leaving = data.within(piece(step, index))
            yield (leaving.grown if step else leaving).current, data.within(piece(step + 1, index))


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


def recursive_doubling(members: Members, data: Sum, longest: int) -> Iterator[Step]:
    """Exchange all data at distances 1, 2, 4 … [TRG]."""
    return folded(doubling, members, data)


def doubling(members: Members, data: Sum) -> Iterator[Step]:
    """Run recursive doubling on a power of two of members."""
    for distance in powers_below(members.number):
        yield from data.exchange(members, members.place ^ distance)
        data = data.grown


def rabenseifner(members: Members, data: Sum, longest: int) -> Iterator[Step]:
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


def by_size(members: Members, data: Sum, longest: int) -> Iterator[Step]:
    """Use recursive doubling for short vectors, Rabenseifner's for long ones [TRG]."""
    nbytes = data.result.elements * data.result.datatype.itemsize
    chosen = recursive_doubling if nbytes <= SHORT else rabenseifner
    return chosen(members, data, longest)


def tree(members: Members, data: Sum, longest: int) -> Iterator[Step]:
    """Go up a binomial tree and down again, segment by segment [CHPG]."""
    segments = pieces(data.elements, longest)
    for segment in segments:
        yield from up(members, data.within(segment))
    for segment in segments:
        yield from binomial(members, part(data.result, segment), longest)


def up(members: Members, data: Sum) -> Generator[Step, None, Sum]:
    """Send a sum up a binomial tree to the first member; return this one's data afterwards."""
    for child in children(members):
        yield from data.contribution(members, child)
        data = data.grown
    if members.place:
        above = binomial_by_lowest(members.place, members.number)
        yield from members.send(above, data.current)
    return data


def parameter_server(members: Members, data: Sum, longest: int) -> Iterator[Step]:
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


def hierarchical(members: Members, data: Sum, longest: int) -> Iterator[Step]:
    """Add up on each node, exchange sums among first ranks, and share the result on each node."""
    nodes = members.nodes
    family = [place for place, node in enumerate(nodes) if node == nodes[members.place]]
    leaders = [nodes.index(node) for node in dict.fromkeys(nodes)]
    here = members.chosen(family)
    data = yield from up(here, data)
    if members.place in leaders:
        yield from recursive_doubling(members.chosen(leaders), data, longest)
    yield from binomial(here, data.total, longest)
