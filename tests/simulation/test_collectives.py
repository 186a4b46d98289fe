"""Collectives as programs: the messages of both sides meet, in the order of the algorithms."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from omb_py.algorithms import Algorithm, library
from omb_py.algorithms.patterns import CollectiveShape, Pattern, Round
from omb_py.benchmarks import Case, find_benchmark
from omb_py.benchmarks.algorithms import TABLE
from omb_py.core.dataclass import replace
from omb_py.core.errors import OmbError, UnsupportedError, UsageError
from omb_py.core.job import mapped
from omb_py.core.options import Options
from omb_py.simulation import collectives
from omb_py.simulation.points import BUFFER, RESOURCES
from omb_py.simulation.program import Add, Operation, Program, Receive, Send, Wait
from tests.algorithms.test_patterns import EVERY, IDS
from tests.benchmarks.test_own_algorithms import DEFINITIONS, INT
from tests.helpers.refusals import refuses
from tests.helpers.sent_messages import Sent, difference


def cases(ranks: int, size: int, options: Options, window: int = 64) -> Callable[[int], Case]:
    """The case of each rank."""
    nodes = mapped(options.node_map, ranks, f"{ranks} are simulated")
    return lambda rank: Case(rank, ranks, size, INT, window, BUFFER, options, RESOURCES, nodes)


def made(name: str, ranks: int, size: int, options: Options, vendor: str = "MPICH") -> Program:
    return collectives.program(find_benchmark(name), cases(ranks, size, options), vendor)


def messages(operations: Iterator[Operation]) -> list[tuple[str, int, float]]:
    """Messages of a rank in order, those that it receives without their bytes."""
    return [
        ("to", one.peer, one.nbytes) if isinstance(one, Send) else ("from", one.peer, 0)
        for one in operations
        if isinstance(one, Send | Receive)
    ]


def meet(program: Program) -> list[tuple[int, int, float]]:
    """Make all operations of all ranks, each send early; fails where a rank waits for ever."""
    under_way: defaultdict[tuple[int, int, int], deque[float]] = defaultdict(deque)
    going = {rank: program.operations(rank) for rank in range(program.ranks)}
    wanted: dict[int, list[tuple[int, int, int]]] = {rank: [] for rank in going}
    begun: dict[int, dict[int, tuple[int, int, int] | None]] = {rank: {} for rank in going}
    sent: list[tuple[int, int, float]] = []
    while going:
        before = len(sent), sum(map(len, wanted.values())), len(going)
        for rank in list(going):
            while all(len(under_way[one]) >= n for one, n in Counter(wanted[rank]).items()):
                for one in wanted[rank]:
                    under_way[one].popleft()
                wanted[rank] = []
                operation = next(going[rank], None)
                if operation is None:
                    assert not begun[rank], f"rank {rank} does not wait for {begun[rank]}"
                    del going[rank]
                    break
                if isinstance(operation, Send):
                    under_way[rank, operation.peer, operation.tag].append(operation.nbytes)
                    sent.append((rank, operation.peer, operation.nbytes))
                    if operation.request is not None:
                        assert operation.request not in begun[rank]
                        begun[rank][operation.request] = None
                elif isinstance(operation, Receive):
                    channel = (operation.peer, rank, operation.tag)
                    if operation.request is None:
                        wanted[rank] = [channel]
                    else:
                        assert operation.request not in begun[rank]
                        begun[rank][operation.request] = channel
                elif isinstance(operation, Wait):
                    found = [begun[rank].pop(number) for number in operation.requests]
                    wanted[rank] = [channel for channel in found if channel is not None]
        after = len(sent), sum(map(len, wanted.values())), len(going)
        assert after != before, f"ranks {sorted(going)} wait for each other"
    assert not any(under_way.values())
    return sent


def counted(program: Program) -> Sent:
    """Messages and bytes from each rank to each other one, of all operations."""
    ranks = range(program.ranks)
    found: defaultdict[tuple[int, int], int] = defaultdict(int)
    nbytes: defaultdict[tuple[int, int], float] = defaultdict(float)
    for source, target, length in meet(program):
        found[source, target] += 1
        nbytes[source, target] += length
    return [[(found[s, t], nbytes[s, t]) for t in ranks] for s in ranks]


def to_others(pattern: Pattern) -> Pattern:
    """A pattern without the messages of ranks to themselves."""

    def rounds(shape: CollectiveShape) -> Iterator[Round]:
        for one in pattern(shape):
            yield replace(one, sends=[send for send in one.sends if send[0] != send[1]])

    return rounds


@pytest.mark.parametrize(("name", "function", "algorithm"), EVERY, ids=IDS)
def test_messages_have_both_sides(name: str, function: str, algorithm: Algorithm) -> None:
    for ranks in (2, 3, 4, 6, 8):
        size = 0 if function == "barrier" else 128 * 1024 * ranks
        shape = CollectiveShape(ranks, size, 4)
        if algorithm.refusal(shape):
            continue
        try:
            program = collectives.of_library(algorithm, shape, root=1)
        except UnsupportedError:
            continue
        assert difference(to_others(algorithm.rounds), shape, counted(program), root=1) is None


ORDERED = [
    *((name, word, 0) for name, word in DEFINITIONS),
    *((name, word, 2) for name, word in DEFINITIONS if name in ("bcast", "reduce")),
]
"""Linear gathers and scatters are in the order of the ranks whatever the root."""


@pytest.mark.parametrize(("name", "word", "root"), ORDERED)
def test_ours_send_in_the_order_of_the_definition(name: str, word: str, root: int) -> None:
    """Steps that were checked with data, beside rounds: rank by rank, message by message."""
    for ranks in range(3, 10):
        shape = CollectiveShape(ranks, 1024 * ranks, INT.itemsize)
        options = Options(algorithm=word, root=root)
        ours = made(name, ranks, shape.nbytes, options)
        definition = Algorithm(word, "", DEFINITIONS[name, word])
        try:
            theirs = collectives.of_library(definition, shape, root)
        except UnsupportedError:
            continue
        for rank in range(ranks):
            found = messages(ours.operations(rank))
            assert found == messages(theirs.operations(rank)), (ranks, rank)


@pytest.mark.parametrize("name", TABLE)
def test_all_ours_are_programs(name: str) -> None:
    for algorithm in TABLE[name].algorithms:
        options = Options(algorithm=algorithm.word, node_map=(0, 0, 1, 0, 1))
        assert meet(made(name, 5, 80_000, options))


def test_a_rank_waits_where_its_algorithm_does() -> None:
    shape = CollectiveShape(4, 400, 4)
    program = collectives.of_library(library("MPICH").algorithm("allreduce", "ring"), shape)
    transfer: list[Operation] = [Receive(0, 0), Send(2, 100.0, 1), Wait((0, 1))]
    assert list(program.operations(1)) == [*[*transfer, Add(100.0)] * 3, *transfer * 3]
    program = collectives.of_library(library("MPICH").algorithm("bcast", "binomial"), shape, root=1)
    assert list(program.operations(1)) == [Send(3, 400), Send(2, 400)]
    assert list(program.operations(3)) == [Receive(1), Send(0, 400)]
    program = collectives.of_library(library("Open MPI").algorithm("bcast", "binomial"), shape)
    assert list(program.operations(0)) == [Send(1, 400, 0), Send(2, 400, 1), Wait((0, 1))]


def test_sends_of_a_pipeline_overlap_until_the_end() -> None:
    shape = CollectiveShape(4, 24 << 10)
    algorithm = library("MPICH").algorithm("bcast", "pipelined_binary")
    piece = 8.0 * 1024
    assert list(collectives.of_library(algorithm, shape).operations(1)) == [
        *(Receive(0), Send(3, piece, -1)),
        *(Receive(0), Send(3, piece, -2)),
        *(Receive(0), Send(3, piece, -3)),
        Wait((-1, -2, -3)),
    ]


def test_a_program_runs_again() -> None:
    shape = CollectiveShape(3, 300, 4)
    program = collectives.of_library(library("MPICH").algorithm("allreduce", "ring"), shape)
    first = [list(program.operations(rank)) for rank in range(3)]
    assert [list(program.operations(rank)) for rank in range(3)] == first


class TestManyRanks:
    @pytest.mark.slow
    def test_repeated_rounds_are_a_number_and_can_be_fewer(self) -> None:
        algorithm, shape = (
            library("MPICH").algorithm("allreduce", "ring"),
            CollectiveShape(16384, 1 << 20),
        )
        assert collectives.repetitions(algorithm, shape) == [16383, 16383]
        program = collectives.of_library(algorithm, shape, limits={16383: 2})
        assert len(list(program.operations(9000))) == 2 * 4 + 2 * 3

    @pytest.mark.slow
    def test_a_round_is_divided_when_a_rank_gets_there(self) -> None:
        algorithm = library("MPICH").algorithm("alltoall", "pairwise")
        program = collectives.of_library(algorithm, CollectiveShape(16384, 8))
        assert len(list(islice(program.operations(5), 6))) == 6


class TestWhatIsNoProgram:
    @pytest.mark.parametrize(
        ("name", "options", "sentence"),
        [
            ("bcast", Options(), "algorithm MPICH bcast --coll-algorithm"),
            ("bcast", Options(library_algorithm="chain"), "MPICH no algorithm 'chain'"),
            (
                "bcast",
                Options(library_algorithm="scatter_allgather"),
                "algorithm scatter_allgather: nothing 5 ranks",
            ),
            ("allreduce", Options(algorithm="hierarchical"), "--node-map"),
            ("allreduce", Options(algorithm="ring", node_map=(0, 1)), "2 ranks, 5"),
            ("put_latency", Options(), "one-sided not simulated"),
            ("iallreduce", Options(), "MPI_Iallreduce not simulated"),
            ("neighbor_allgather", Options(), "neighbourhoods not simulated"),
        ],
    )
    def test_impossible_program_refused(self, name: str, options: Options, sentence: str) -> None:
        with refuses(OmbError, sentence):
            list(made(name, 5, 64, options).operations(0))

    def test_a_library_that_would_take_another_algorithm(self) -> None:
        options = Options(library_algorithm="neighbor_exchange")
        with refuses(UnsupportedError, "on 5 ranks: even"):
            made("allgather", 5, 64, options, "Open MPI")

    def test_node_map_names_a_node_for_each_rank(self) -> None:
        assert mapped(None, 3, "") == ()
        assert mapped(2, 3, "") == (0, 0, 1)
        with refuses(UsageError, "--node-map names 2 ranks, and 3 are simulated"):
            mapped((0, 1), 3, "3 are simulated")


class TestTwoRanks:
    def test_ping_pong_is_a_message_each_way(self) -> None:
        program = made("latency", 2, 64, Options())
        assert list(program.operations(0)) == [Send(1, 64, None, 100), Receive(1, None, 100)]
        assert list(program.operations(1)) == [Receive(0, None, 100), Send(0, 64, None, 100)]

    def test_a_window_waits_for_all_its_messages(self) -> None:
        benchmark = find_benchmark("bw")
        program = collectives.program(benchmark, cases(2, 64, Options(), window=3), "MPICH")
        assert list(program.operations(0)) == [
            *(Send(1, 64, number, 100) for number in range(3)),
            Wait((0, 1, 2)),
            Receive(1, None, 101),
        ]

    def test_both_directions_wait_for_the_sends_first(self) -> None:
        benchmark = find_benchmark("bibw")
        program = collectives.program(benchmark, cases(2, 64, Options(), window=2), "MPICH")
        assert list(program.operations(1)) == [
            *(Receive(0, number, 100) for number in (0, 1)),
            *(Send(0, 64, number, 100) for number in (2, 3)),
            Wait((2, 3)),
            Wait((0, 1)),
        ]

    def test_pairs_and_those_without_one(self) -> None:
        program = made("multi_lat", 6, 64, Options(pairs=2))
        assert messages(program.operations(0)) == [("to", 3, 64), ("from", 3, 0)]
        assert messages(program.operations(2)) == []
