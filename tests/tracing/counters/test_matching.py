"""Which algorithm ran, told from messages: every known one is recognised by what it sends."""

from __future__ import annotations

import pytest

from omb_py.algorithms.openmpi import TABLE
from omb_py.tracing.counters.matching import (
    Call,
    Edges,
    edges,
    matching_algorithms,
    rotated,
    shape_of,
)
from omb_py.tracing.records.routines import Dependence, dependence

SIZE = 1 << 20
MIB = 1 << 20


def call_of(routine: str, word: str, ranks: int, nbytes: int = SIZE, root: int = 0) -> Call | None:
    """A call made by an algorithm, blocks rounded to whole bytes; None if it cannot be."""
    (algorithm,) = [one for one in TABLE[routine] if one.word == word]
    shape = shape_of(Call(routine, ranks, nbytes, {}))
    if algorithm.refusal(shape) is not None:
        return None
    try:
        sent = rotated(edges(algorithm.rounds, shape), root, ranks)
    except NotImplementedError:
        return None
    rounded: Edges = {edge: (number, round(length)) for edge, (number, length) in sent.items()}
    return Call(routine, ranks, nbytes, rounded)


EVERY = [(routine, one.word) for routine, table in TABLE.items() for one in table]


@pytest.mark.parametrize(("routine", "word"), EVERY)
@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8, 13])
def test_every_algorithm_is_recognised(routine: str, word: str, ranks: int) -> None:
    call = call_of(routine, word, ranks)
    if call is None:
        return
    found = matching_algorithms("Open MPI", call)
    assert word.replace("_", " ") in found
    others = [call_of(routine, name.replace(" ", "_"), ranks) for name in found]
    if dependence(routine) not in (Dependence.ROOT, Dependence.AT_ROOT):
        # what is named beside it sends the same, to the rounding of blocks
        assert all(other is not None and other.sent.keys() == call.sent.keys() for other in others)


@pytest.mark.parametrize(
    ("word", "sent_by_0"),
    [
        ("linear", {1: (1, MIB), 2: (1, MIB), 3: (1, MIB)}),
        ("recursive_doubling", {1: (1, MIB), 2: (1, MIB)}),
        ("ring", {1: (6, 6 * MIB // 4)}),
        ("rabenseifner", {1: (2, MIB), 2: (2, MIB // 2)}),
    ],
)
def test_allreduce_of_a_mebibyte_on_4_ranks(
    word: str, sent_by_0: dict[int, tuple[int, int]]
) -> None:
    call = call_of("allreduce", word, 4)
    assert call is not None
    mine = {target: sent for (source, target), sent in call.sent.items() if source == 0}
    assert mine == sent_by_0
    assert matching_algorithms("Open MPI", call) == (word.replace("_", " "),)


@pytest.mark.parametrize("root", range(5))
@pytest.mark.parametrize("word", ["linear", "chain", "binomial", "scatter_ring"])
def test_the_root_need_not_be_known(word: str, root: int) -> None:
    call = call_of("bcast", word, 5, root=root)
    assert call is not None
    assert word.replace("_", " ") in matching_algorithms("Open MPI", call)


def test_small_messages_are_told_apart() -> None:
    for word in ("linear", "recursive_doubling"):
        call = call_of("allreduce", word, 4, nbytes=8)
        assert call is not None
        assert matching_algorithms("Open MPI", call) == (word.replace("_", " "),)


def test_bytes_must_fit_too() -> None:
    ring = {(rank, (rank + 1) % 4): (6, MIB) for rank in range(4)}
    assert matching_algorithms("Open MPI", Call("allreduce", 4, MIB, ring)) == ()


def test_where_blocks_are_tiny_the_nearest_is_named() -> None:
    for word in ("recursive_doubling", "recursive_halving", "butterfly"):
        call = call_of("reduce_scatter_block", word, 4, nbytes=1)
        assert call is not None
        assert matching_algorithms("Open MPI", call) == (word.replace("_", " "),)


def test_other_pieces_are_said() -> None:
    whole = {(rank, rank + 1): (1, MIB) for rank in range(3)}
    assert matching_algorithms("Open MPI", Call("bcast", 4, MIB, whole)) == (
        "pipeline in pieces of 1 MiB",
    )
    ring = {(rank, (rank + 1) % 4): (12, 6 * MIB // 4) for rank in range(4)}
    (name, *_) = matching_algorithms("Open MPI", Call("allreduce", 4, MIB, ring))
    assert name.startswith("ring in pieces of")


def test_what_nobody_knows_has_no_name() -> None:
    strange = {(0, 3): (1, 5), (3, 0): (2, 700)}
    assert matching_algorithms("Open MPI", Call("allreduce", 4, MIB, strange)) == ()
    assert matching_algorithms("Open MPI", Call("allreduce", 4, MIB, {})) == ()
    assert matching_algorithms("another library", Call("allreduce", 4, MIB, {})) == ()
    assert matching_algorithms("Open MPI", Call("neighbor_alltoall", 4, MIB, strange)) == ()
