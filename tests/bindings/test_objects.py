"""Kinds of objects that bindings pickle: they carry the bytes, and give them back."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omb_py.bindings._objects import KINDS
from tests.conftest import Finished
from tests.helpers.battery import Battery, Line, passes
from tests.helpers.properties import examples
from tests.mpi.lines import CHECKED, lines, named


@pytest.mark.parametrize("kind", KINDS)
@examples(50)
@given(data=st.binary(max_size=1000))
def test_an_object_carries_its_bytes_through_a_pickle(kind: str, data: bytes) -> None:
    sent = KINDS[kind].made(data)
    arrived = pickle.loads(pickle.dumps(sent))
    assert KINDS[kind].back(arrived) == data


OBJECTS = "latency bw bibw allgather scatter alltoall gather bcast"


@pytest.mark.product
@pytest.mark.parametrize(
    "line",
    [
        one
        for kind in KINDS
        for binding, names in (("pickle", OBJECTS), ("pkl5", "latency allgather"))
        for one in lines(
            named(names), f"{CHECKED} --binding {binding} --object {kind}", "--sizes 0,7,65536"
        )
    ],
    ids=str,
)
def test_the_data_arrives(battery: Battery, line: Line) -> None:
    passes(battery(line))


def test_results_tell_kinds_apart(mpiexec: Callable[..., Finished]) -> None:
    words = "latency --binding pickle --object dict -i 2 --sizes 8 --format csv"
    finished = mpiexec(2, *words.split())
    assert finished.code == 0, finished.err
    assert "# object: a dict of 64 bytes for each key" in finished.out
    assert finished.out.count(",object dict,") == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("allreduce --binding pickle --object list", "without --object"),
        ("latency --object list", "--object has no meaning for binding buffer"),
        ("bw --binding pkl5 --object list", "mpi4py.util.pkl5 has no irecv"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    mpiexec: Callable[..., Finished], words: str, sentence: str
) -> None:
    finished = mpiexec(2, *words.split(), "-i", "2")
    assert finished.code != 0
    assert finished.err.count(sentence) == 1
