"""Collectives as programs: a library's algorithm from its rounds, ours from their own steps.

Steps are a rank's calls of two ranks and additions: `_Steps` translates them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from types import MappingProxyType
from typing import TypeAlias

from omb_py.algorithms import DEFAULT, Algorithm, library
from omb_py.algorithms.patterns import CollectiveShape, Round, powers_below
from omb_py.benchmarks import Benchmark, Case
from omb_py.core.calls import WITH_ROOT, Call, Message, Slot, Step, Window
from omb_py.core.dataclass import replace
from omb_py.core.errors import UnsupportedError, UsageError
from omb_py.simulation.program import Add, Operation, Program, Receive, Send, Wait

Peers: TypeAlias = list[tuple[int, float]]
"""Messages of a rank in one direction: who is on the other side, and bytes."""

Part: TypeAlias = tuple[Round, Peers, Peers]
"""A rank's part of a round: the round, senders to it, and receivers from it."""


def program(
    benchmark: Benchmark,
    case: Callable[[int], Case],
    vendor: str,
    limits: Mapping[int, int] = MappingProxyType({}),
) -> Program:
    """Return the program of one call, or one iteration, of a benchmark.

    ``case`` has the case of each rank, whose options name the algorithm of a collective: one of
    omb-py's, or one of the MPI library ``vendor`` (mpi4py's name). ``limits`` are those of
    `of_library`. Raises `UsageError` if a collective's algorithm is not named or not known, and
    `UnsupportedError` if it does not support the call.
    """
    first = case(0)
    options, word = first.options, first.options.library_algorithm
    if options.own_algorithm is not None:
        return of_ours(benchmark, case)
    if "library_algorithm" not in benchmark.options:
        return Program(
            first.ranks,
            lambda rank: _Steps(rank).operations(benchmark.plan(case(rank)).iterations[0].steps),
            benchmark.name,
        )
    if word in (None, DEFAULT):
        raise UsageError(
            f"the algorithm that {vendor} chooses for {benchmark.name} on {first.ranks} ranks is "
            "unknown: name one with --coll-algorithm or --p2p-algorithm"
        )
    algorithm = library(vendor).algorithm(benchmark.name, word)
    shape = CollectiveShape(first.ranks, first.payload, first.datatype.itemsize, options.in_place)
    refusal = algorithm.refusal(shape)
    if refusal is not None:
        raise UnsupportedError(
            f"{vendor} cannot use algorithm {algorithm.word} for {benchmark.name} of {first.size} "
            f"bytes on {first.ranks} ranks: {refusal}"
        )
    root = options.root or 0 if benchmark.name in WITH_ROOT else 0
    return of_library(algorithm, shape, root, limits)


def repetitions(algorithm: Algorithm, shape: CollectiveShape) -> list[int]:
    """Return how often an algorithm repeats each of its rounds, in their order.

    Raises `UnsupportedError` if its messages are not known for this number of ranks.
    """
    try:
        return [one.times for one in algorithm.rounds(shape)]
    except NotImplementedError as error:
        raise UnsupportedError(f"algorithm {algorithm.word}: {error}") from error


def of_library(
    algorithm: Algorithm,
    shape: CollectiveShape,
    root: int = 0,
    limits: Mapping[int, int] = MappingProxyType({}),
) -> Program:
    """Return the program of one call by an algorithm's definition.

    Rounds whose number of repetitions is a key of ``limits`` are repeated by its value instead. A
    rank's message to itself is omitted. Raises `UnsupportedError` as `repetitions` does.
    """
    try:
        next(algorithm.rounds(shape), None)
    except NotImplementedError as error:
        raise UnsupportedError(f"algorithm {algorithm.word}: {error}") from error
    shared: list[_Parts] = []

    def of_rank(rank: int) -> Iterator[Operation]:
        relative = (rank - root) % shape.ranks
        if not shared or relative in shared[0].begun:  # the program runs once more
            shared[:] = [_Parts(algorithm.rounds(shape))]
        shared[0].begun.add(relative)
        return _of_parts(shared[0].of(relative), root, shape.ranks, limits)

    return Program(shape.ranks, of_rank, algorithm.word)


class _Parts:
    """Rounds divided among their ranks, each when the first rank gets there.

    Only the parts of ranks behind the first one are kept.
    """

    def __init__(self, rounds: Iterator[Round]) -> None:
        self._rounds = rounds
        self._waiting: defaultdict[int, deque[Part]] = defaultdict(deque)
        self.begun: set[int] = set()

    def of(self, rank: int) -> Iterator[Part]:
        """Yield a rank's parts, round after round."""
        mine = self._waiting[rank]
        while True:
            while not mine:
                following = next(self._rounds, None)
                if following is None:
                    return
                self._divide(following)
            yield mine.popleft()

    def _divide(self, one: Round) -> None:
        parts: defaultdict[int, Part] = defaultdict(lambda: (one, [], []))
        for source, target, nbytes in one.sends:
            if source != target:
                parts[target][1].append((source, nbytes))
                parts[source][2].append((target, nbytes))
        for rank, part in parts.items():
            self._waiting[rank].append(part)


def _of_parts(
    parts: Iterator[Part], root: int, ranks: int, limits: Mapping[int, int]
) -> Iterator[Operation]:
    """Yield the operations of a rank from its parts of rounds, whose ranks are counted from the
    root."""
    overlapping: list[int] = []
    for one, receives, sends in parts:
        for _ in range(limits.get(one.times, one.times)):
            alone = len(receives) + len(sends) == 1
            waited: list[int] = []
            for number, (source, _) in enumerate(receives):
                yield Receive((source + root) % ranks, None if alone else number)
                waited.append(number)
            for number, (target, nbytes) in enumerate(sends, len(receives)):
                request: int | None = None
                if one.overlapping:
                    request = -1 - len(overlapping)
                    overlapping.append(request)
                elif not alone:
                    request = number
                    waited.append(number)
                yield Send((target + root) % ranks, nbytes, request)
            if waited and not alone:
                yield Wait(tuple(waited))
            arrived = sum(nbytes for _, nbytes in receives)
            if one.added and arrived:
                yield Add(arrived)
    if overlapping:
        yield Wait(tuple(overlapping))


def of_ours(benchmark: Benchmark, case: Callable[[int], Case]) -> Program:
    """Return the program of one call of a collective by an algorithm of omb-py, named in the
    options.

    A rotating root is replaced by the first one. Raises `UsageError` for an unknown name.
    """
    from omb_py.benchmarks.algorithms import select, steps_of
    from omb_py.benchmarks.algorithms.members import Members

    first = case(0)
    options = first.options
    algorithm = select(benchmark.name, options)
    assert algorithm is not None
    if algorithm.by_nodes and not first.nodes:
        raise UsageError(
            f"--p2p-algorithm {algorithm.word} has to know the node of each rank: add --node-map"
        )
    everyone = tuple(range(first.ranks))
    calls = replace(options, algorithm=None)

    def of_rank(rank: int) -> Iterator[Operation]:
        mine = replace(case(rank), options=calls)
        (call,) = benchmark.plan(mine).iterations[0].steps
        assert isinstance(call, Call)
        members = Members(everyone, rank, mine.nodes)
        steps = steps_of(algorithm, call, members, lambda count: mine.message((count,)))
        return _Steps(rank).operations(steps)

    return Program(first.ranks, of_rank, algorithm.word)


BARRIER_TAG = -1


def barrier(nodes: Sequence[int]) -> Program:
    """Return a barrier as MPI libraries make it: within nodes to a leader, among these by
    dissemination [HFM], and back.

    ``nodes`` has the node of each rank.
    """
    members: dict[int, list[int]] = {}
    for rank, node in enumerate(nodes):
        members.setdefault(node, []).append(rank)
    leaders = [ranks[0] for ranks in members.values()]
    places = {leader: place for place, leader in enumerate(leaders)}

    def operations(rank: int) -> Iterator[Operation]:
        leader, *others = members[nodes[rank]]
        if rank != leader:
            yield Send(leader, 0.0, None, BARRIER_TAG)
            yield Receive(leader, None, BARRIER_TAG)
            return
        for other in others:
            yield Receive(other, None, BARRIER_TAG)
        for distance in powers_below(len(leaders)):
            before = leaders[(places[rank] - distance) % len(leaders)]
            after = leaders[(places[rank] + distance) % len(leaders)]
            yield Receive(before, 0, BARRIER_TAG)
            yield Send(after, 0.0, 1, BARRIER_TAG)
            yield Wait((0, 1))
        for other in others:
            yield Send(other, 0.0, None, BARRIER_TAG)

    return Program(len(nodes), operations, "barrier")


def nbytes_of(message: Message) -> int:
    """Bytes of a message that travel."""
    return message.layout.transmitted(message.elements) * message.datatype.itemsize


class _Steps:
    """The requests of a rank, from the calls that begin them to those that wait for them.

    A rank's message to itself is a copy, which costs nothing.
    """

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._numbers = count()
        self._begun: dict[Slot, dict[int, int]] = {}

    def operations(self, steps: Iterable[Step]) -> Iterator[Operation]:
        """Yield the operations for some steps, which are made as they are needed.

        Raises `UnsupportedError` for calls that are no messages between two ranks.
        """
        for step in steps:
            if isinstance(step, Window):
                yield from self._window(step)
            elif isinstance(step, Call):
                yield from self._call(step)
            else:
                raise UnsupportedError(f"{step.name} is not simulated, only messages of two ranks")

    def _window(self, window: Window) -> Iterator[Operation]:
        groups = []
        for calls in window.groups:
            started = [self._started(call, next(self._numbers)) for call in calls]
            yield from started
            groups.append(tuple(one.request for one in started if one.request is not None))
        for group in reversed(groups):
            yield Wait(group)

    def _call(self, call: Call) -> Iterator[Operation]:
        name = call.function
        if name in ("send", "recv"):
            if call.peer != self._rank:
                yield self._started(call, None)
        elif name in ("isend", "irecv"):
            assert call.slot is not None
            if call.peer != self._rank:
                number = next(self._numbers)
                self._begun.setdefault(call.slot, {})[call.index] = number
                yield self._started(call, number)
        elif name == "sendrecv":
            yield from self._exchange(call)
        elif name in ("wait", "waitall"):
            assert call.slot is not None
            begun = self._begun.get(call.slot, {})
            indices = list(begun) if name == "waitall" else [call.index]
            requests = tuple(begun.pop(index) for index in indices if index in begun)
            if requests:
                yield Wait(requests)
        elif name == "reduce_local":
            yield Add(nbytes_of(call.messages[-1]))
        else:
            raise UnsupportedError(
                f"MPI_{name.capitalize()} is not simulated, only messages of two ranks"
            )

    def _exchange(self, call: Call) -> Iterator[Operation]:
        to, sent_tag, source, received_tag = call.values
        if to == source == self._rank:
            return
        receive, send = next(self._numbers), next(self._numbers)
        yield Receive(source, receive, received_tag)
        yield Send(to, nbytes_of(call.messages[0]), send, sent_tag)
        yield Wait((receive, send))

    def _started(self, call: Call, request: int | None) -> Send | Receive:
        assert call.peer is not None
        if call.function.endswith("send"):
            return Send(call.peer, nbytes_of(call.messages[0]), request, call.tag)
        return Receive(call.peer, request, call.tag)
