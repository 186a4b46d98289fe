"""What algorithms send by their definitions agrees with what is known of them."""

from __future__ import annotations

from math import ceil, log2

import pytest

from docs.generate import algorithm_table
from omb_py.algorithms import MODULES, Algorithm, library
from omb_py.algorithms.patterns import CollectiveShape, messages
from omb_py.algorithms.trees import by_levels
from omb_py.core.errors import UsageError
from tests.helpers.refusals import refuses
from tests.helpers.sent_messages import by_definition, difference

EVERY = [
    (name, function, algorithm)
    for name in MODULES
    for function, algorithms in library(name).table.items()
    for algorithm in algorithms
]
IDS = [f"{name}-{function}-{algorithm.word}" for name, function, algorithm in EVERY]


def shape_of(function: str, ranks: int) -> CollectiveShape:
    return CollectiveShape(ranks, 0 if function == "barrier" else 64 * 1024 * 840, 4)


def test_tree_by_levels_has_the_children_of_open_mpi() -> None:
    """Rank r of level l, of 2^l ranks, has the children r + 2^l and r + 2 * 2^l."""
    for rank in range(127):
        level = 1 << ((rank + 1).bit_length() - 1)
        assert [by_levels(rank + turn * level, 300) for turn in (1, 2)] == [rank, rank]


@pytest.mark.parametrize("function", library("Open MPI").table)
def test_algorithms_of_open_mpi_have_a_word_and_a_number_each(function: str) -> None:
    algorithms = library("Open MPI").table[function]
    numbers = [int(algorithm.value) for algorithm in algorithms]
    assert numbers == sorted(set(numbers))
    assert numbers[0] > 0
    words = [algorithm.word for algorithm in algorithms]
    assert len(set(words)) == len(words)
    assert all(word.isidentifier() for word in words)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "function", "algorithm"), EVERY, ids=IDS)
def test_collective_gives_each_its_part(name: str, function: str, algorithm: Algorithm) -> None:
    """Data reaches, along the messages, every rank that needs it; and there is enough of it."""
    for ranks in range(2, 18):
        shape = shape_of(function, ranks)
        if algorithm.refusal(shape):
            continue
        try:
            sent = by_definition(algorithm.rounds, shape)
        except NotImplementedError:
            continue
        reached = [{rank} for rank in range(ranks)]
        for _ in range(ranks):
            for source in range(ranks):
                for target in range(ranks):
                    if sent[source][target][0]:
                        reached[target] |= reached[source]
        everything = set(range(ranks))
        to_root = function in ("gather", "reduce")
        from_root = function in ("bcast", "scatter")
        if to_root:
            assert reached[0] == everything
        elif from_root:
            assert all(0 in known for known in reached)
        elif function in ("scan", "exscan"):
            assert all(set(range(rank)) <= reached[rank] for rank in range(ranks))
        else:
            assert all(known == everything for known in reached)
        received = [sum(sent[s][r][1] for s in range(ranks)) for r in range(ranks)]
        minimum = {
            "allgather": shape.nbytes * (ranks - 1),
            "allgatherv": shape.nbytes * (ranks - 1),
            "alltoall": shape.nbytes * (ranks - 1),
            "alltoallv": shape.nbytes * (ranks - 1),
            "allreduce": shape.nbytes,
        }.get(function, 0)
        assert all(nbytes >= minimum * 0.999 for nbytes in received)


def test_rings_and_halving_move_what_the_books_say() -> None:
    """Thakur, Rabenseifner and Gropp: 2 n (p - 1) / p each, in 2 (p - 1) or 2 log p messages."""
    table = library("Open MPI")
    for ranks in (2, 4, 8, 16):
        shape = CollectiveShape(ranks, 4096 * ranks, 4)
        for word, number in (("ring", 2 * (ranks - 1)), ("rabenseifner", 2 * log2(ranks))):
            sent = by_definition(table.algorithm("allreduce", word).rounds, shape)
            for row in sent:
                assert sum(count for count, _ in row) == number
                assert sum(nbytes for _, nbytes in row) == 2 * shape.nbytes * (ranks - 1) / ranks


def test_trees_are_as_deep_as_their_logarithm() -> None:
    for ranks in range(2, 40):
        for name, word in (("MPICH", "binomial"), ("Open MPI", "binomial")):
            rounds = library(name).algorithm("bcast", word).rounds
            depth = {0: 0}
            edges = {(s, t) for s, t, _ in messages(rounds, CollectiveShape(ranks, 8))}
            while len(depth) < ranks:
                depth |= {t: depth[s] + 1 for s, t in edges if s in depth and t not in depth}
            assert max(depth.values()) <= ceil(log2(ranks))
            children = [sum(s == rank for s, _ in edges) for rank in range(ranks)]
            assert max(children) == children[0] == ceil(log2(ranks))


def test_a_difference_names_the_first_ranks_that_differ() -> None:
    ring = library("MPICH").algorithm("allgather", "ring").rounds
    shape = CollectiveShape(3, 100)
    sent = [[(count, nbytes) for count, nbytes in row] for row in by_definition(ring, shape)]
    assert difference(ring, shape, sent) is None
    sent[1][0] = (1, 100)
    assert difference(ring, shape, sent) == "rank 1 sent 1 message to rank 0 instead of 0"
    sent[1][0] = (0, 0)
    sent[1][2] = (2, 100)
    assert difference(ring, shape, sent) == "rank 1 sent 100 bytes to rank 2 instead of 200"
    sent[1][2] = (2, None)  # type: ignore[assignment]
    assert difference(ring, shape, sent) is None


def test_a_root_turns_the_pattern() -> None:
    linear = library("Open MPI").algorithm("bcast", "linear").rounds
    sent = by_definition(linear, CollectiveShape(3, 8), root=2)
    assert [[count for count, _ in row] for row in sent] == [[0, 0, 0], [0, 0, 0], [1, 1, 0]]


def test_table_of_words_has_those_of_all_libraries() -> None:
    rows = algorithm_table().splitlines()
    assert rows[0] == "| collective | MPICH | Open MPI | NCCL |"
    scatter = "| scatter | `binomial` | `linear`, `binomial`, `linear_nonblocking` |  |"
    assert scatter in rows


class TestWords:
    def test_hyphens_and_capitals_do_not_matter(self) -> None:
        found = library("MPICH").algorithm("bcast", "Scatter-Ring")
        assert found.value == "scatter_ring_allgather"

    @pytest.mark.parametrize(
        ("vendor", "words"),
        [
            ("Open MPI", "did you mean binomial default, linear, chain"),
            ("Other MPI", "algorithms of Other MPI not known"),
        ],
    )
    def test_unknown_library_or_algorithm_refused(self, vendor: str, words: str) -> None:
        with refuses(UsageError, words):
            library(vendor).algorithm("bcast", "binominal")

    def test_no_word_is_there_twice(self) -> None:
        for name in MODULES:
            for function in library(name).table:
                words = library(name).words(function)
                assert len(set(words)) == len(words)
                assert "default" not in words


class TestEnvironment:
    def test_variable_that_is_set_is_kept_or_refused(self) -> None:
        found = library("Open MPI")
        ring = found.algorithm("allreduce", "ring")
        wanted = found.environment("allreduce", ring, {})
        assert wanted["OMPI_MCA_coll_tuned_use_dynamic_rules"] == "1"
        assert wanted["OMPI_MCA_coll_tuned_allreduce_algorithm"] == "4"
        assert found.environment("allreduce", ring, wanted) == wanted
        with refuses(UsageError, "use_dynamic_rules=0 is set"):
            found.environment("allreduce", ring, {"OMPI_MCA_coll_tuned_use_dynamic_rules": "0"})

    @pytest.mark.parametrize(
        "rival", ["OMPI_MCA_coll_adapt_priority", "OMPI_MCA_coll_tuned_dynamic_rules_filename"]
    )
    def test_variable_of_a_rival_component_refused(self, rival: str) -> None:
        found = library("Open MPI")
        with refuses(UsageError, f"{rival}=90 set"):
            found.environment("bcast", found.algorithm("bcast", "chain"), {rival: "90"})

    def test_mpich_is_told_of_one_collective_alone(self) -> None:
        found = library("MPICH")
        wanted = found.environment("bcast", found.algorithm("bcast", "binomial"), {})
        assert wanted == {
            "MPIR_CVAR_DEVICE_COLLECTIVES": "percoll",
            "MPIR_CVAR_BCAST_DEVICE_COLLECTIVE": "0",
            "MPIR_CVAR_BCAST_INTRA_ALGORITHM": "binomial",
        }
