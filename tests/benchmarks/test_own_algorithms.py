"""Own algorithms give what the collective promises, with the messages of their definitions."""

from __future__ import annotations

from itertools import pairwise
from math import ceil
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.algorithms import folding, trees
from omb_py.algorithms.patterns import (
    CollectiveShape,
    Pattern,
    added,
    along,
    around,
    dissemination,
    from_root_in_turn,
    pairwise_exchange,
    pipelined,
    reduction,
    share,
    to_root_in_turn,
    together,
    whole,
)
from omb_py.benchmarks import Case, Plan, Resources, all_benchmarks, find_benchmark
from omb_py.benchmarks.algorithms import TABLE, check, for_point_to_point, further_memory, words
from omb_py.benchmarks.algorithms.members import shares
from omb_py.bindings import calls_of
from omb_py.buffers.numpy import BUFFER
from omb_py.core.calls import Call, Message
from omb_py.core.datatypes import TYPES, Datatype, find_types, parse_layout
from omb_py.core.errors import LeftOutError, UsageError
from omb_py.core.options import LIBRARY, PIPELINED, SEGMENT, Options
from omb_py.measure.validation import DataCheck
from omb_py.options.parse import make_options
from omb_py.results.text import banner
from tests import ROOT
from tests.benchmarks.simulation import Simulation
from tests.helpers.properties import examples
from tests.helpers.refusals import refuses
from tests.helpers.sent_messages import difference
from tests.options.test_command_line import parsed

INT, CHAR = find_types(["mpi_int", "mpi_char"])
EVERY = [(name, one.word) for name, found in TABLE.items() for one in found.algorithms]
each_algorithm = pytest.mark.parametrize(("name", "word"), EVERY)


def plans(
    name: str, options: Options, ranks: int, elements: int, datatype: Datatype, nodes: int
) -> list[Plan]:
    """The plan of every rank, on so many ranks of a node."""
    benchmark = find_benchmark(name)
    size = elements * datatype.itemsize
    of_node = tuple(rank // nodes for rank in range(ranks))
    resources = cast("Resources", None)
    return [
        benchmark.plan(Case(rank, ranks, size, datatype, 64, BUFFER, options, resources, of_node))
        for rank in range(ranks)
    ]


def simulate(
    name: str,
    options: Options,
    ranks: int,
    elements: int,
    datatype: Datatype = INT,
    seed: int = 0,
    nodes: int = 2,
) -> list[Simulation]:
    """All exchanges of a case, each checked twice over as ``-c`` checks it."""
    made = plans(name, options, ranks, elements, datatype, nodes)
    size = elements * datatype.itemsize
    checks = [DataCheck(rank, ranks, size, datatype) for rank in range(ranks)]
    found = []
    for number in range(len(made[0].iterations)):
        parts = [plan.iterations[number] for plan in made]
        for iteration in range(2):
            for found_by, part in zip(checks, parts, strict=True):
                found_by.fill(part, iteration)
            done = Simulation([part.steps for part in parts], Random(seed)).run()
            for found_by, part in zip(checks, parts, strict=True):
                assert found_by.faults(part, iteration) == []
        found.append(done)
    return found


@pytest.mark.product(strength=1)
@each_algorithm
@pytest.mark.parametrize("ranks", range(1, 18))
def test_every_rank_gets_the_result(name: str, word: str, ranks: int) -> None:
    for elements in (0, 1, ranks - 1, ranks, 200):
        simulate(name, Options(algorithm=word), ranks, elements, seed=elements)


@each_algorithm
@examples(25)
@given(
    ranks=st.integers(1, 17),
    elements=st.integers(0, 200),
    datatype=st.sampled_from(TYPES),
    in_place=st.booleans(),
    root=st.none() | st.integers(0, 16),
    nodes=st.integers(1, 17),
    seed=st.integers(0, 1 << 30),
)
def test_whatever_the_ranks_lengths_types_and_roots(
    name: str,
    word: str,
    ranks: int,
    elements: int,
    datatype: Datatype,
    in_place: bool,
    root: int | None,
    nodes: int,
    seed: int,
) -> None:
    options = Options(
        algorithm=word,
        in_place=in_place and name == "allreduce",
        root=root if root is None else root % ranks,
    )
    simulate(name, options, ranks, elements, datatype, seed, nodes)


def test_nodes_need_not_be_alike_nor_in_order() -> None:
    options = Options(algorithm="hierarchical")
    resources = cast("Resources", None)
    nodes = (2, 0, 0, 1, 2, 0, 2)
    plan = find_benchmark("allreduce").plan
    made = [plan(Case(r, 7, 40, INT, 64, BUFFER, options, resources, nodes)) for r in range(7)]
    checks = [DataCheck(rank, 7, 40, INT) for rank in range(7)]
    for found_by, part in zip(checks, made, strict=True):
        found_by.fill(part.iterations[0], 0)
    done = Simulation([part.iterations[0].steps for part in made], Random(1)).run()
    for found_by, part in zip(checks, made, strict=True):
        assert found_by.faults(part.iterations[0], 0) == []
    between = {(s, t) for s, t, _ in done.sent if nodes[s] != nodes[t]}
    assert {rank for pair in between for rank in pair} == {0, 1, 3}  # the first of each node


def test_a_rank_that_waits_for_itself_or_is_left_alone_is_found() -> None:
    memory = BUFFER.allocate(4, INT)
    message = Message(memory, INT, (1,))
    send = [Call("send", (message,), peer, 1) for peer in (1, 0)]
    receive = [Call("recv", (message,), peer, 1) for peer in (1, 0)]
    with pytest.raises(AssertionError, match=r"ranks \[0, 1\] wait for each other"):
        Simulation([[send[0], receive[0]], [send[1], receive[1]]]).run()
    alone = Call("irecv", (message,), 1, 1, slot=None)
    with pytest.raises(AssertionError):
        Simulation([[alone], []]).run()


ROOTED = ("bcast", "gather", "gatherv", "reduce", "scatter", "scatterv")
binomial = trees.down(trees.binomial_by_lowest, order=trees.largest_first())
scattered = trees.scattered(trees.binomial_by_lowest, share, trees.largest_first())
DEFINITIONS: dict[tuple[str, str], Pattern] = {
    ("bcast", "binomial"): binomial,
    ("bcast", "pipelined_chain"): pipelined(along, SEGMENT),
    ("bcast", "scatter_ring"): together(scattered, around(share)),
    ("allreduce", "ring"): together(added(around(share)), around(share)),
    ("allreduce", "recursive_doubling"): folding.recursive_doubling,
    ("allreduce", "rabenseifner"): folding.fold(
        folding.halving_and_doubling, added(folding.lower_to_upper), folding.upper_to_lower
    ),
    ("allreduce", "parameter_server"): together(added(to_root_in_turn), from_root_in_turn),
    **{(name, "ring"): around(whole) for name in ("allgather", "allgatherv")},
    **{(name, "pairwise"): pairwise_exchange(whole) for name in ("alltoall", "alltoallv")},
    **{
        (name, "pairwise"): added(pairwise_exchange(share))
        for name in ("reduce_scatter", "reduce_scatter_block")
    },
    **{(name, "linear"): to_root_in_turn for name in ("gather", "gatherv")},
    **{(name, "linear"): from_root_in_turn for name in ("scatter", "scatterv")},
    ("reduce", "binomial"): reduction(binomial),
    ("barrier", "dissemination"): dissemination(lambda shape, distance: INT.itemsize),
}
"""What the library's algorithms of the same kind send."""


def test_every_algorithm_on_one_level_has_a_definition() -> None:
    assert set(DEFINITIONS) == {one for one in EVERY if one[1] not in ("hierarchical", "by_size")}


@pytest.mark.parametrize(
    ("name", "ranks", "elements", "word"),
    [
        ("allreduce", 5, 2048, "recursive_doubling"),
        ("allreduce", 5, 2049, "rabenseifner"),
        ("bcast", 7, 100_000, "binomial"),
        ("bcast", 9, 12287, "binomial"),
        ("bcast", 9, 12288, "scatter_ring"),
    ],
)
def test_length_decides_the_algorithm(name: str, ranks: int, elements: int, word: str) -> None:
    def sent(chosen: str) -> list[tuple[int, int, int]]:
        (done,) = simulate(name, Options(algorithm=chosen), ranks, elements)
        return sorted(done.sent)

    assert sent("by_size") == sent(word)


def test_ranks_that_can_only_send_have_an_algorithm_for_each() -> None:
    for name, own in TABLE.items():
        assert own.default in {one.word for one in own.algorithms}
        assert for_point_to_point(name, Options()).algorithm == own.default
    assert for_point_to_point("allreduce", Options(algorithm="ring")).algorithm == "ring"
    assert for_point_to_point("latency", Options()).algorithm is None


@pytest.mark.parametrize(("name", "word"), DEFINITIONS)
@pytest.mark.parametrize("root", [0, 2])
def test_the_messages_are_those_of_the_definition(name: str, word: str, root: int) -> None:
    for ranks in range(3, 18):
        elements = 256 * ranks
        options = Options(algorithm=word, root=root)
        (done,) = simulate(name, options, ranks, elements)
        sent = [[[0, 0] for _ in range(ranks)] for _ in range(ranks)]
        for source, target, nbytes in done.sent:
            if source != target:  # a copy
                sent[source][target][0] += 1
                sent[source][target][1] += nbytes
        known = [[(count, nbytes) for count, nbytes in row] for row in sent]
        shape = CollectiveShape(ranks, elements * INT.itemsize, INT.itemsize)
        turned = root if name in ROOTED else 0
        try:
            assert difference(DEFINITIONS[name, word], shape, known, turned) is None
        except NotImplementedError:
            continue


def test_nothing_is_copied_that_need_not_be() -> None:
    """What a rank gives is added to what arrives; it is not written to, nor copied first."""
    for word in words("allreduce")[1:]:
        for plan in plans("allreduce", Options(algorithm=word), 6, 100, INT, 2):
            (given,) = {id(content.memory) for content in plan.iterations[0].inputs}
            written = [
                call.written(0) for step in plan.iterations[0].steps for call in calls_of(step)
            ]
            assert all(id(message.memory) != given for message in written if message)


def test_one_rank_alone_has_its_own_sum() -> None:
    (plan,) = plans("allreduce", Options(algorithm="ring"), 1, 10, INT, 1)
    assert [cast("Call", step).function for step in plan.iterations[0].steps] == ["sendrecv"]
    (plan,) = plans("allreduce", Options(algorithm="ring", in_place=True), 1, 10, INT, 1)
    assert plan.iterations[0].steps == ()


def test_the_librarys_own_is_one_call() -> None:
    for name in TABLE:
        for algorithm in (None, LIBRARY):
            (plan, *_) = plans(name, Options(algorithm=algorithm), 4, 10, INT, 2)
            (step,) = plan.iterations[0].steps
            assert cast("Call", step).function == name
            assert not plan.chained


@given(elements=st.integers(0, 10_000), number=st.integers(1, 100))
def test_parts_of_a_vector_follow_each_other(elements: int, number: int) -> None:
    parts = shares(range(elements), number)
    assert [index for part in parts for index in part] == list(range(elements))
    lengths = [len(part) for part in parts]
    assert len(lengths) == number
    assert max(lengths) - min(lengths) <= 1
    assert lengths == sorted(lengths, reverse=True)


@each_algorithm
@pytest.mark.parametrize("elements", [1, 7, 1000])
@pytest.mark.parametrize("ranks", [1, 2, 5, 8])
def test_further_memory_is_what_is_allocated(
    name: str, word: str, elements: int, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocated: list[int] = []
    allocate = type(BUFFER).allocate

    def count(self: Any, nbytes: int, datatype: Datatype) -> Any:
        allocated.append(nbytes)
        return allocate(self, nbytes, datatype)

    monkeypatch.setattr(type(BUFFER), "allocate", count)
    benchmark, size = find_benchmark(name), elements * INT.itemsize
    needed, promised = [], []
    for options in (Options(), Options(algorithm=word)):
        allocated.clear()
        case = Case(0, ranks, size, INT, 64, BUFFER, options, cast("Resources", None), (0,) * ranks)
        benchmark.plan(case)
        needed.append(sum(allocated))
        promised.append(benchmark.memory(options, size, ranks))
    further = further_memory(name, options, size, ranks)
    if benchmark.sized:
        assert promised[1] - promised[0] == further
    # a part of a message is rounded to whole elements
    assert further - INT.itemsize <= needed[1] - needed[0] < further + 2 * INT.itemsize


def test_only_blocking_collectives_have_own_algorithms() -> None:
    having = {found.name for found in all_benchmarks() if "algorithm" in found.options}
    assert having == set(TABLE)
    mapped = {found.name for found in all_benchmarks() if "node_map" in found.options}
    assert mapped == {"allreduce"}


def test_the_command_line_knows_the_words_of_each() -> None:
    assert parsed("bcast", "--p2p-algorithm", "binomial").own_algorithm == "binomial"
    assert parsed("bcast", "--p2p-algorithm", "library").own_algorithm is None
    assert parsed("bcast").algorithm is None
    assert parsed("allreduce", "--p2p-algorithm", "hierarchical", "--node-map", "2").node_map == 2
    with refuses(Exception, "'ring' library, binomial, scatter_ring"):
        parsed("bcast", "--p2p-algorithm", "ring")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"algorithm": "ring", "library_algorithm": "ring"}, "--coll-algorithm"),
        ({"algorithm": "binomial", "segment": 4096}, "--segment --p2p-algorithm pipelined_chain"),
        ({"segment": 4096}, "--segment --p2p-algorithm pipelined_chain"),
        ({"algorithm": "binomial", "staging": True}, "--staging one call"),
        ({"algorithm": "binomial", "layout": parse_layout("vect:2:1")}, "-D one call"),
    ],
)
def test_options_that_exclude_each_other_refused(values: dict[str, Any], sentence: str) -> None:
    with refuses(UsageError, sentence):
        make_options(values)


def test_a_segment_has_a_byte_at_least() -> None:
    assert parsed("bcast", "--p2p-algorithm", PIPELINED, "--segment", "4K").own_segment == 4096
    assert parsed("bcast", "--p2p-algorithm", PIPELINED).own_segment == SEGMENT
    with refuses(UsageError, "--segment 0 1 byte"):
        parsed("bcast", "--p2p-algorithm", PIPELINED, "--segment", "0")


@pytest.mark.parametrize(
    ("elements", "segment", "lengths"),
    [
        (10, 12, [12, 12, 12, 4]),  # the last one is shorter
        (10, 15, [12, 12, 12, 4]),  # no multiple of an element
        (10, 3, [4] * 10),  # less than an element
        (10, 40, [40]),
        (10, 1 << 40, [40]),
        (20_000, None, [SEGMENT, 80_000 - SEGMENT]),
        (0, 12, []),
    ],
)
@pytest.mark.parametrize("root", [0, 3])
def test_a_segment_is_passed_on_while_the_next_arrives(
    elements: int, segment: int | None, lengths: list[int], root: int
) -> None:
    options = Options(algorithm=PIPELINED, segment=segment, root=root)
    (of_four_bytes,) = find_types(["mpi_int"])
    (done,) = simulate("bcast", options, 4, elements, of_four_bytes)
    chain = [(root + place) % 4 for place in range(4)]
    for source, target in pairwise(chain):
        assert [n for s, t, n in done.sent if (s, t) == (source, target)] == lengths
    assert len(done.sent) == 3 * len(lengths)
    second = plans("bcast", options, 4, elements, of_four_bytes, 2)[chain[1]].iterations[0].steps
    assert [
        [(call.function, call.messages[0].elements * 4) for call in calls_of(step)]
        for step in second
    ] == [
        *([("recv", nbytes)] for nbytes in lengths[:1]),
        *([("irecv", later), ("isend", nbytes)] for nbytes, later in pairwise(lengths)),
        *([("send", nbytes)] for nbytes in lengths[-1:]),
    ]


def test_too_many_segments_are_left_out() -> None:
    with refuses(LeftOutError, "65537 segments --segment"):
        plans("bcast", Options(algorithm=PIPELINED, segment=1), 2, 65537, INT, 2)


def test_the_page_has_every_word() -> None:
    page = (ROOT / "docs" / "algorithms.md").read_text()
    page = page.partition("\n## Point-to-point algorithms\n")[2]
    rows = [line.split("|")[1:3] for line in page.splitlines() if line[:1] == "|"]
    words_of_page = [
        word.strip()
        for names, word in rows
        for _ in names.split(",")
        if word.strip()[:1] == "`" and " " not in word.strip()
    ]
    assert words_of_page == [f"`{word}`" for _, word in EVERY]


def test_the_librarys_own_may_be_told_which() -> None:
    check(Options(algorithm=LIBRARY, library_algorithm="ring"))


def test_the_banner_names_the_algorithm() -> None:
    bcast = find_benchmark("bcast")
    said = banner(bcast, Options(algorithm="binomial"), {"ranks": "2"})
    assert "own algorithm binomial)" in said
    assert said.count("algorithm") == 1
    said = banner(bcast, Options(algorithm=PIPELINED), {"ranks": "2"})
    assert "own algorithm pipelined_chain, segments of 65536 bytes)" in said
    assert "algorithm" not in banner(bcast, Options(algorithm=LIBRARY), {"ranks": "2"})


def test_a_ring_needs_no_more_than_a_part() -> None:
    options = Options(algorithm="ring")
    assert further_memory("allreduce", options, 1000, 3) == ceil(1000 / 3)
    assert further_memory("bcast", Options(algorithm="binomial"), 1000, 3) == 0
