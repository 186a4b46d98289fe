"""Own algorithms for collectives: a library's single call, made of calls of ours.

An algorithm is a function of a module in this folder, and a row here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar

from omb_py.benchmarks import Case, Plan
from omb_py.benchmarks.algorithms import allreduce as reducing
from omb_py.benchmarks.algorithms import bcast as spreading
from omb_py.benchmarks.algorithms import exchanges
from omb_py.benchmarks.algorithms.exchanges import Exchange
from omb_py.benchmarks.algorithms.members import Members, Sum
from omb_py.core.calls import IN_PLACE, Call, Message, Step
from omb_py.core.dataclass import dataclass, replace
from omb_py.core.errors import UnsupportedError, UsageError
from omb_py.core.options import LIBRARY, PIPELINED, Options

D = TypeVar("D", Message, Sum, Exchange)

Scratch = Callable[[int, int], int]
"""From the length of a message and the number of ranks to the length of the further memory that a
rank needs, in the same unit, rounded up."""


def whole(length: int, ranks: int) -> int:
    """Return the length of scratch memory that holds a whole message."""
    return length


def share(length: int, ranks: int) -> int:
    """Return the length of one rank's part of a message, rounded up."""
    return -(-length // ranks)


@dataclass(frozen=True)
class OwnAlgorithm(Generic[D]):
    """One row of the table.

    ``steps`` gives a member's steps from what it works on. ``by_nodes`` means that it has to know
    the node of each rank.
    """

    word: str
    steps: Callable[[Members, D], Iterator[Step]]
    source: str
    scratch: Scratch = lambda length, ranks: 0
    by_nodes: bool = False


CHPG = "Chan, Heimlich, Purkayastha, van de Geijn 2007"
TRG = "Thakur, Rabenseifner, Gropp 2005"
PY = "Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms. JPDC 69(2), 2009"
HFM = "Hensgen, Finkel, Manber: Two algorithms for barrier synchronization. IJPP 17(1), 1988"
LI = "Li et al.: Scaling distributed machine learning with the parameter server. OSDI 2014"
PG = "Pjesivac-Grbovic et al.: Performance analysis of MPI collective operations. 2007"

BCAST: tuple[OwnAlgorithm[Message], ...] = (
    OwnAlgorithm("binomial", spreading.binomial, CHPG),
    OwnAlgorithm(PIPELINED, spreading.pipelined_chain, PG),
    OwnAlgorithm("scatter_ring", spreading.scatter_ring, CHPG),
    OwnAlgorithm("by_size", spreading.by_size, TRG),
)

ALLREDUCE: tuple[OwnAlgorithm[Sum], ...] = (
    OwnAlgorithm("ring", reducing.ring, PY, share),
    OwnAlgorithm("recursive_doubling", reducing.recursive_doubling, TRG, whole),
    OwnAlgorithm("rabenseifner", reducing.rabenseifner, TRG, whole),
    OwnAlgorithm("hierarchical", reducing.hierarchical, "MPICH's smp", whole, by_nodes=True),
    OwnAlgorithm("by_size", reducing.by_size, TRG, whole),
    OwnAlgorithm("parameter_server", reducing.parameter_server, LI, whole),
)


NewMessage = Callable[[int], Message]
"""A message of a number of elements in memory of its own."""


def broadcast(
    algorithm: OwnAlgorithm[Message], call: Call, everyone: Members, new: NewMessage
) -> Iterator[Step]:
    """Return the steps of a broadcast: members are in the order of the ranks, from the root on."""
    assert call.root is not None
    (message,) = call.messages
    number = everyone.number
    members = everyone.chosen([(call.root + place) % number for place in range(number)])
    return algorithm.steps(members, message)


def reduction(
    algorithm: OwnAlgorithm[Sum], call: Call, everyone: Members, new: NewMessage
) -> Iterator[Step]:
    """Return the steps of an allreduce, which has two messages unless it is in place."""
    *given, result = call.messages
    further = algorithm.scratch(result.elements, everyone.number)
    data = Sum(range(result.elements), given[0] if given else None, result, new(further))
    if everyone.number == 1 and given:
        return everyone.exchange(0, data.current, 0, data.total)
    return algorithm.steps(everyone, data)


def exchange(
    algorithm: OwnAlgorithm[Exchange], call: Call, everyone: Members, new: NewMessage
) -> Iterator[Step]:
    """Return the steps of a call with separate buffers for its two sides.

    Raises `UnsupportedError` in place, because data would be overwritten before it is sent.
    """
    source, target = (*call.operands, None, None)[:2]
    given, got = (side if isinstance(side, Message) else None for side in (source, target))
    if IN_PLACE in call.operands and call.function.startswith(("alltoall", "reduce_scatter")):
        raise UnsupportedError(
            f"--p2p-algorithm has no {call.function} in place, which needs a copy: leave out -l"
        )
    longer = max((side.elements for side in (given, got) if side is not None), default=0)
    if call.counts is not None and given is not None:
        given = replace(given, counts=call.counts)
    further = new(algorithm.scratch(longer, everyone.number))
    return algorithm.steps(everyone, Exchange(given, got, call.root, further))


@dataclass(frozen=True)
class Own:
    """The algorithms for one collective, and what makes the steps of a call from one of them.

    ``default`` is the word of the one that serves if ranks can only send to each other.
    """

    algorithms: tuple[OwnAlgorithm[Any], ...]
    steps: Callable[[OwnAlgorithm[Any], Call, Members, NewMessage], Iterator[Step]]
    default: str


def only(algorithm: OwnAlgorithm[Exchange]) -> Own:
    """Return a collective for which there is one algorithm."""
    return Own((algorithm,), exchange, algorithm.word)


ALLGATHER = only(OwnAlgorithm("ring", exchanges.ring_allgather, CHPG))
ALLTOALL = only(OwnAlgorithm("pairwise", exchanges.pairwise, TRG))
GATHER = only(OwnAlgorithm("linear", exchanges.linear_gather, PG))
SCATTER = only(OwnAlgorithm("linear", exchanges.linear_scatter, PG))
PARTS = only(OwnAlgorithm("pairwise", exchanges.pairwise_reduce_scatter, TRG, share))

TABLE = {
    "bcast": Own(BCAST, broadcast, "by_size"),
    "allreduce": Own(ALLREDUCE, reduction, "by_size"),
    "allgather": ALLGATHER,
    "allgatherv": ALLGATHER,
    "alltoall": ALLTOALL,
    "alltoallv": ALLTOALL,
    "barrier": only(OwnAlgorithm("dissemination", exchanges.dissemination, HFM, lambda *_: 2)),
    "gather": GATHER,
    "gatherv": GATHER,
    "reduce": only(
        OwnAlgorithm("binomial", exchanges.binomial_reduce, CHPG, lambda length, *_: 2 * length)
    ),
    "reduce_scatter": PARTS,
    "reduce_scatter_block": PARTS,
    "scatter": SCATTER,
    "scatterv": SCATTER,
}
"""By the name of the collective."""


def for_point_to_point(benchmark: str, options: Options) -> Options:
    """Return options with a collective's algorithm if none is named and ranks can only send."""
    if options.algorithm is None and benchmark in TABLE:
        return replace(options, algorithm=TABLE[benchmark].default)
    return options


def algorithms(benchmark: str) -> dict[str, OwnAlgorithm[Any]]:
    """Return the algorithms of a collective by their words."""
    return {algorithm.word: algorithm for algorithm in TABLE[benchmark].algorithms}


def words(benchmark: str) -> tuple[str, ...]:
    """Return the words that ``--p2p-algorithm`` accepts for a collective."""
    return (LIBRARY, *algorithms(benchmark))


def select(benchmark: str, options: Options) -> OwnAlgorithm[Any] | None:
    """Return the algorithm that was asked for; None for the library's.

    Raises `UsageError` for an unknown word.
    """
    word = options.own_algorithm
    if word is None:
        return None
    if (found := algorithms(benchmark).get(word)) is not None:
        if (segment := options.own_segment) is None:
            return found
        return replace(found, steps=partial(spreading.pipelined_chain, segment=segment))
    raise UsageError(
        f"--p2p-algorithm: {benchmark} has no {word!r}: choose from {', '.join(words(benchmark))}"
    )


def further_memory(benchmark: str, options: Options, size: int, ranks: int) -> int:
    """Return the bytes that a rank needs in addition to its messages of ``size`` bytes."""
    algorithm = select(benchmark, options)
    return 0 if algorithm is None else algorithm.scratch(size, ranks)


def own(plan: Plan, case: Case, benchmark: str) -> Plan:
    """Return the plan with the chosen algorithm's steps instead of each call of the collective."""
    algorithm = select(benchmark, case.options)
    if algorithm is None:
        return plan
    everyone = Members(tuple(range(case.ranks)), case.rank, case.nodes)
    iterations = []
    for iteration in plan.iterations:
        (call,) = iteration.steps
        assert isinstance(call, Call)
        made = steps_of(algorithm, call, everyone, lambda count: case.message((count,)))
        iterations.append(replace(iteration, steps=tuple(made)))
    return replace(plan, iterations=tuple(iterations), chained=True)


def steps_of(
    algorithm: OwnAlgorithm[Any],
    call: Call,
    everyone: Members,
    new: NewMessage,
) -> Iterator[Step]:
    """Return an algorithm's steps for a call of its collective, on the rank of ``everyone``.

    Steps are made as they are needed. ``new`` makes the further memory.
    """
    return TABLE[call.function].steps(algorithm, call, everyone, new)


def check(options: Options) -> None:
    """Raise `UsageError` for options that do not go with own algorithms."""
    word = options.own_algorithm
    asked = {
        "--coll-algorithm": options.library_algorithm is not None,
        "--staging": options.staging,
        "-D": not options.layout.contiguous,
    }
    name = next((name for name, given in asked.items() if given), None)
    if word is not None and name is not None:
        raise UsageError(
            f"{name} is about one call of the library, and --p2p-algorithm {word} makes many of "
            "its own: leave out one"
        )
